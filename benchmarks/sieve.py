"""Which rule for who teaches a tree is best on real two-stage lists: five-fold cross-validation on bug localisation.

    python benchmarks/sieve.py ../shared/data/ir [--features FOLDER] [--work FOLDER] [--folds 5]

3,000 bug reports of four projects, pooled: a project alone has 300 to 600 training reports, too few to tell rules
apart, and the features mean the same in all of them. Each report comes with the 300 files BM25F ranks best, in
training, validation and test lists alike: relevant files beyond are dropped, so NDCG is that of the relevant files
retrieved, and reports without any are left out. `sieve_sides.py` has the sides and their settings; in every fold a
side's setting and its number of trees are those with the best NDCG@10 on the fold's validation lists. Cells store what
they say of test lists, and the table takes that of the chosen cells.

A cell (fold, learner, all its settings) is stored under a digest of them when it is done, so an interrupted run goes on
with what is missing, and a setting that changes is run anew; the table is of the settings that all folds have. One
thread.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import ranksieve as rs
from bug_lists import Fold, feature_files, shortened
from ranksieve.data.pieces import Piece, Pieces
from ranksieve.data.read import read_source
from ranksieve.data.splits import fold_queries
from ranksieve.files import atomic_path
from results import save
from sieve_sides import COMMON, EXPLORED, LEARNER_OF, LEARNERS, METRIC, TRIED, Setting


@dataclass(frozen=True)
class Cell:
    """One side's model of one fold with one setting, and the file that says what came of it."""

    fold: int
    plan: Plan
    learner: str
    setting: Setting

    @cached_property
    def path(self) -> Path:
        settled = {**COMMON, **self.setting}
        key = json.dumps([self.fold, self.plan.n_folds, self.plan.depth, self.learner, settled], sort_keys=True)
        digest = hashlib.sha256(key.encode()).hexdigest()[:16]
        return self.plan.work / f"{self.fold}-{self.learner}-{digest}.json"

    @cached_property
    def found(self) -> dict[str, Any]:
        return json.loads(self.path.read_text())

    def run(self, fold: Fold) -> None:
        start = time.process_time()
        valid, trees, scores = LEARNERS[self.learner](fold, self.setting)
        cpu = time.process_time() - start
        values = METRIC.per_query(fold.test.labels, scores, fold.test.offsets)
        facts = {"valid": valid, "trees": trees, "cpu s": round(cpu, 1), "setting": {**COMMON, **self.setting}}
        queries = [str(query) for query in fold.test.lists.query_ids]
        with atomic_path(self.path) as temporary:
            temporary.write_text(json.dumps({**facts, "test": dict(zip(queries, values.tolist(), strict=True))}))
        print(f"fold {self.fold}, {self.learner} {named(self.setting)}: valid {valid:.4f}, {cpu:.0f} s", flush=True)


def named(setting: Setting) -> str:
    return ", ".join(f"{name} {value}" for name, value in setting.items() if name not in ("trees", "early_stopping"))


@dataclass(frozen=True)
class Plan:
    """The cells of all sides, setting by setting."""

    n_folds: int
    depth: int
    work: Path

    def settings(self) -> Iterator[tuple[str, list[Cell]]]:
        """Each side's settings, and the cells of one for all folds."""
        for side, setting in TRIED:
            yield side, [Cell(fold, self, LEARNER_OF[side], setting) for fold in range(self.n_folds)]


def run(data: rs.Dataset, plan: Plan) -> None:
    folds = [Fold(data, *queries) for queries in fold_queries(data.n_queries, plan.n_folds, seed=0)]
    for _, cells in plan.settings():
        for cell in cells:
            if not cell.path.exists():
                cell.run(folds[cell.fold])


@dataclass(frozen=True)
class Outcome:
    """What the validation lists of each fold chose for one side, and what that says of the test lists."""

    side: str
    settings: list[list[Cell]]

    @cached_property
    def chosen(self) -> list[Cell]:
        return [max(cells, key=lambda cell: cell.found["valid"]) for cells in zip(*self.settings, strict=True)]

    @cached_property
    def values(self) -> dict[str, float]:
        """NDCG@10 of every report, by the model of the fold it tests."""
        return {report: value for cell in self.chosen for report, value in cell.found["test"].items()}

    def row(self) -> dict[str, Any]:
        return {
            "side": self.side,
            "validation NDCG@10": mean(cell.found["valid"] for cell in self.chosen),
            "NDCG@10": mean(self.values.values()),
            "NDCG@10 by fold": [mean(cell.found["test"].values()) for cell in self.chosen],
            "trees by fold": [cell.found["trees"] for cell in self.chosen],
            "chosen by fold": [named(cell.setting) for cell in self.chosen],
        }

    def setting_rows(self) -> Iterator[dict[str, Any]]:
        for cells in self.settings:
            yield {
                "side": self.side,
                "setting": named(cells[0].setting),
                "validation NDCG@10": mean(cell.found["valid"] for cell in cells),
                "by fold": [round(cell.found["valid"], 4) for cell in cells],
                "cpu s a fold": mean((cell.found["cpu s"] for cell in cells), 1),
            }


def compared(one: Outcome, other: Outcome, folds: list[int]) -> dict[str, Any]:
    """The randomization test over the reports that some folds test."""
    chosen = [cell for cell in one.chosen if cell.fold in folds]
    reports = sorted(report for cell in chosen for report in cell.found["test"])
    a, b = (np.array([outcome.values[report] for report in reports]) for outcome in (one, other))
    test = rs.randomization_test(a, b)
    facts = {"folds": folds, "reports": int(np.isfinite(a).sum())}
    return {
        "side": one.side,
        "against": other.side,
        **facts,
        "difference": round(test.difference, 4),
        "p": round(test.p_value, 4),
    }


def table(plan: Plan) -> list[dict[str, Any]]:
    """Each side with what its validation lists chose, the tests against the sieve, and every setting."""
    done: dict[str, list[list[Cell]]] = {}
    for side, cells in plan.settings():
        if all(cell.path.exists() for cell in cells):
            done.setdefault(side, []).append(cells)
    outcomes = {side: Outcome(side, settings) for side, settings in done.items()}
    folds = list(range(plan.n_folds))
    untouched = [fold for fold in folds if (fold + 1) % plan.n_folds not in EXPLORED]
    rows = [{"what": "lists", "files a report": plan.depth, "folds": plan.n_folds}]
    rows += [outcome.row() for outcome in outcomes.values()]
    for side, other in outcomes.items():
        if side != "sieve":
            rows += [compared(outcomes["sieve"], other, some) for some in (folds, untouched)]
    return rows + [row for outcome in outcomes.values() for row in outcome.setting_rows()]


def mean(values: Any, digits: int = 4) -> float:
    return round(float(np.nanmean(np.array(list(values)))), digits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", type=Path, help="folder that holds bugs-ecf, bugs-tomcat70, …")
    parser.add_argument("--features", type=Path, default=Path("build/bugs"), help="where the features are or go")
    parser.add_argument("--work", type=Path, default=Path("build/sieve"), help="where finished cells are kept")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--depth", type=int, default=300, help="files a report comes with")
    parser.add_argument("--table", action="store_true", help="only the table of the cells that are there")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    plan = Plan(arguments.folds, arguments.depth, arguments.work)
    if not arguments.table:
        files = feature_files(arguments.collections, arguments.features)
        short = [shortened(file, arguments.work, arguments.depth) for file in files]
        run(read_source(Pieces([Piece(file) for file in short])), plan)
    rows = table(plan)
    for row in rows:
        print(row)
    save("sieve", rows)


if __name__ == "__main__":
    main()

"""Selections compared on real two-stage lists: five-fold cross-validation on bug localisation.

    python benchmarks/sieve.py ../shared/data/ir [--features FOLDER] [--work FOLDER] [--folds 5]

3,000 bug reports of four projects, pooled: a project alone has 300 to 600 training reports, too few for significant
differences, and the features mean the same in all of them. Each report comes with the 300 files BM25F ranks best, in
training, validation and test lists alike: relevant files beyond are dropped, so NDCG is that of the relevant files
retrieved, and reports without any are left out. `sieve_sides.py` has the sides and their settings; in every fold a
side's setting and its number of trees are those with the best NDCG@10 on the fold's validation lists. A run that was
interrupted goes on with the cells that are missing; the table is of the settings that all folds have. One thread.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import ranksieve as rs
from bug_lists import Fold, feature_files, shortened
from cells import Cell, Outcome, compared
from ranksieve.data.joined import JoinedSource, Piece
from ranksieve.data.read import read_source
from ranksieve.data.sampling import fold_queries
from results import save
from sieve_sides import COMMON, EXPLORED, LEARNER_OF, LEARNERS, TRIED


@dataclass(frozen=True)
class Plan:
    """The cells of all sides, setting by setting."""

    n_folds: int
    depth: int
    work: Path

    def settings(self) -> Iterator[tuple[str, list[Cell]]]:
        """Each side's settings, and the cells of one for all folds."""
        for side, setting in TRIED:
            lists, learner = (self.n_folds, self.depth), LEARNER_OF[side]
            yield side, [Cell(self.work, lists, fold, learner, COMMON, setting) for fold in range(self.n_folds)]


def run(data: rs.Dataset, plan: Plan) -> None:
    folds = [Fold(data, *queries) for queries in fold_queries(data.n_queries, plan.n_folds, seed=0)]
    for _, cells in plan.settings():
        for cell in cells:
            if not cell.path.exists():
                fold = folds[cell.fold]
                cell.run(partial(LEARNERS[cell.learner], fold, cell.setting), fold.test)


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
        run(read_source(JoinedSource([Piece(file) for file in short])), plan)
    rows = table(plan)
    for row in rows:
        print(row)
    save("sieve", rows)


if __name__ == "__main__":
    main()

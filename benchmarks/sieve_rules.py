"""Variants of the sieve's selection, compared on validation lists only; `sieve.py` then measures the chosen one.

    python benchmarks/sieve_rules.py ../shared/data/ir [--features FOLDER] [--work FOLDER]

The folds, lists and features are those of `sieve.py`. A variant is trained on the training lists of the first two folds
and evaluated by NDCG@10 on their validation lists. Test lists are not used. Finished cells are kept, under a digest of
their settings. One thread.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import ranksieve as rs
from bug_lists import Fold, feature_files, shortened
from finished_cells import path_of_cell
from ranksieve.boosting.scores import Choice
from ranksieve.boosting.views import Selection, View
from ranksieve.data.joined import JoinedSource, Piece
from ranksieve.data.negatives import Negatives
from ranksieve.data.read import read_source
from ranksieve.data.sampling import fold_queries
from ranksieve.files import atomic_path
from results import save
from sieve_sides import COMMON, EVERY_RANK, EXPLORED, SLOW

DEPTH = 300
SPEED = {"learning_rate": 0.1, "trees": 300, "early_stopping": 40, "truncation": 30}


@dataclass(frozen=True)
class Rule:
    """The adaptive selection (margin 1.5, 20 negatives to 50% of them), with optional sampling."""

    queries: float = 1.0  # share of the queries that a tree is trained on
    near: float = 1.0  # share of the negatives near the positives
    jitter: float = 0.0  # a query's margin is drawn anew for each tree, this share of it up or down
    reach: int = 0  # from the tenth tree on, positives with so many negatives above them are left out (0: none)
    chance: int = 0  # positives with n negatives above them are selected with probability chance / n (0: always)

    def selection(self) -> Selection:
        negatives: Negatives | None = None
        last: Choice | None = None

        def select(view: View) -> np.ndarray:
            nonlocal negatives, last
            negatives = negatives or Negatives(view.lists)
            lists, rng = view.lists, view.rng
            lows = negatives.counts(0.0, 20)
            highs = np.maximum(negatives.counts(0.5, 1), lows)
            positives = self._positives(view, negatives.positives)
            margins = 1.5 * (1 + self.jitter * (2 * rng.random(lists.n_queries) - 1))
            thresholds = lowest_of(positives, view) - margins
            last = view.scores.choose(lows, highs, thresholds, last, labels=negatives.marks)
            selected = np.zeros(lists.n_docs, bool)
            selected[some(last.rows, self.near, rng)] = True
            selected[positives] = True
            if self.queries < 1:
                selected &= np.repeat(rng.random(lists.n_queries) < self.queries, lists.sizes)
            if self.reach or self.chance:  # a query without positives has no gradients
                selected &= np.repeat(np.diff(np.searchsorted(positives, lists.offsets)) > 0, lists.sizes)
            return np.flatnonzero(selected)

        return select

    def _positives(self, view: View, positives: np.ndarray) -> np.ndarray:
        if self.chance:
            above = negatives_above(positives, view)
            return positives[view.rng.random(len(positives)) < self.chance / np.maximum(above, self.chance)]
        if self.reach and view.step >= 10:
            return positives[negatives_above(positives, view) < self.reach]
        return positives


def some(rows: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    return rows[rng.random(len(rows)) < share] if share < 1 else rows


def lowest_of(positives: np.ndarray, view: View) -> np.ndarray:
    """The score of each query's lowest among some positives; infinity where it has none."""
    offsets = np.searchsorted(positives, view.lists.offsets)
    lowest = np.minimum.reduceat(np.append(view.scores.at(positives), np.inf), offsets[:-1])
    return np.where(np.diff(offsets) > 0, lowest, np.inf)


def negatives_above(positives: np.ndarray, view: View) -> np.ndarray:
    """How many negatives of its query score higher than each positive."""
    scores, lists = view.scores.all(), view.lists
    query = np.searchsorted(lists.offsets, positives, side="right") - 1
    sizes = lists.sizes[query]
    starts = np.cumsum(sizes) - sizes
    rows = np.arange(sizes.sum()) - np.repeat(starts - lists.offsets[query], sizes)
    higher = (scores[rows] > np.repeat(scores[positives], sizes)) & (lists.labels[rows] == 0)
    return np.add.reduceat(higher, starts, dtype=np.int64)


TRIED: list[tuple[str, Rule | None, dict[str, Any]]] = [
    ("λ-MART", None, {"algo": "lambdamart"}),
    ("sieve", Rule(), {}),
    ("sieve, every rank", Rule(), EVERY_RANK),
    ("half of the queries", Rule(queries=0.5), EVERY_RANK),
    ("40% of the near negatives", Rule(near=0.4), EVERY_RANK),
    ("margin drawn from 0 to 3", Rule(jitter=1.0), EVERY_RANK),
    ("no positives below 100 negatives", Rule(reach=100), EVERY_RANK),
    ("no positives below 40 negatives", Rule(reach=40), EVERY_RANK),
    ("positives by chance, 20 / negatives above", Rule(chance=20), EVERY_RANK),
    ("8 leaves", Rule(), EVERY_RANK | {"leaves": 8}),
    ("10% of the features", Rule(), EVERY_RANK | {"feature_fraction": 0.1}),
    ("learning rate 0.05", Rule(), SLOW | EVERY_RANK),
]


def cell_path(work: Path, fold: int, rule: Rule | None, setting: dict[str, Any]) -> Path:
    return path_of_cell(work, f"rule-{fold}", [fold, DEPTH, rule and asdict(rule), setting])


def run_cell(path: Path, fold: Fold, rule: Rule | None, setting: dict[str, Any]) -> None:
    start = time.process_time()
    selection = None if rule is None else rule.selection()
    model = rs.train(fold.train, valid=fold.valid, selection=selection, threads=1, gain="newton", **setting)
    found = {"valid": model.info["best_score"], "trees": model.n_trees, "cpu s": round(time.process_time() - start, 1)}
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(found))
    print(path.stem, found, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", type=Path, help="folder that holds bugs-ecf, bugs-tomcat70, …")
    parser.add_argument("--features", type=Path, default=Path("build/bugs"), help="where the features are or go")
    parser.add_argument("--work", type=Path, default=Path("build/sieve"), help="where finished cells are kept")
    arguments = parser.parse_args()
    files = feature_files(arguments.collections, arguments.features)
    data = read_source(JoinedSource([Piece(shortened(file, arguments.work, DEPTH)) for file in files]))
    queries = list(fold_queries(data.n_queries, 5, seed=0))
    rows: list[dict[str, Any]] = [{"name": name, "valid": [], "trees": [], "cpu s": []} for name, *_ in TRIED]
    for number in EXPLORED:
        fold = Fold(data, *queries[number])
        for (_, rule, own), row in zip(TRIED, rows, strict=True):
            setting = {**COMMON, **SPEED, **own}
            path = cell_path(arguments.work, number, rule, setting)
            if not path.exists():
                run_cell(path, fold, rule, setting)
            for name, value in json.loads(path.read_text()).items():
                row[name].append(round(value, 4))
    for row in rows:
        row["mean"] = round(float(np.mean(row["valid"])), 4)
        print(row)
    save("sieve_rules", rows)


if __name__ == "__main__":
    main()

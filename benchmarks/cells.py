"""What benchmarks of several sides, settings and folds store as they go, and the tables of it.

A cell (fold, learner, all its settings) is stored under a digest of them when it is done, so an interrupted run goes on
with what is missing, and a setting that changes is run anew. Cells store what they say of test lists; tables take that
of the cells with the best NDCG@10 on validation lists.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import ranksieve as rs
from finished_cells import path_of_cell
from ranksieve.files import atomic_path

METRIC = rs.metrics.parse_metric("ndcg@10")
Setting = Mapping[str, Any]
Learned = tuple[float, int, np.ndarray]  # the best validation value, its trees, and scores of the test lists


@dataclass(frozen=True)
class Cell:
    """One side's model of one fold with one setting, and the file with its results."""

    work: Path
    lists: tuple[Any, ...]  # identifies the data and how it is split into folds
    fold: int
    learner: str
    common: Setting
    setting: Setting

    @cached_property
    def settled(self) -> Setting:
        return {**self.common, **self.setting}

    @cached_property
    def path(self) -> Path:
        settings = [self.fold, *self.lists, self.learner, self.settled]
        return path_of_cell(self.work, f"{self.fold}-{self.learner}", settings)

    @cached_property
    def found(self) -> dict[str, Any]:
        return json.loads(self.path.read_text())

    def run(self, learn: Callable[[], Learned], test: rs.Dataset) -> None:
        start = time.process_time()
        valid, trees, scores = learn()
        cpu = time.process_time() - start
        values = METRIC.per_query(test.labels, scores, test.offsets)
        facts = {"valid": valid, "trees": trees, "cpu s": round(cpu, 1), "setting": self.settled}
        queries = [str(query) for query in test.lists.query_ids]
        with atomic_path(self.path) as temporary:
            temporary.write_text(json.dumps({**facts, "test": dict(zip(queries, values.tolist(), strict=True))}))
        print(f"fold {self.fold}, {self.learner} {named(self.setting)}: valid {valid:.4f}, {cpu:.0f} s", flush=True)


def named(setting: Setting) -> str:
    return ", ".join(f"{name} {value}" for name, value in setting.items() if name not in ("trees", "early_stopping"))


@dataclass(frozen=True)
class Outcome:
    """The settings chosen on each fold's validation lists for one side, and their results on the test lists."""

    side: str
    settings: list[list[Cell]]

    @cached_property
    def chosen(self) -> list[Cell]:
        return [max(cells, key=lambda cell: cell.found["valid"]) for cells in zip(*self.settings, strict=True)]

    @cached_property
    def values(self) -> dict[str, float]:
        """NDCG@10 of every query, by the model of the fold it tests."""
        return {query: value for cell in self.chosen for query, value in cell.found["test"].items()}

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
    """The randomization test over the queries that some folds test."""
    chosen = [cell for cell in one.chosen if cell.fold in folds]
    queries = sorted(query for cell in chosen for query in cell.found["test"])
    a, b = (np.array([outcome.values[query] for query in queries]) for outcome in (one, other))
    test = rs.significance.randomization_test(a, b)
    return {
        "side": one.side,
        "against": other.side,
        "folds": folds,
        "queries": int(np.isfinite(a).sum()),
        "difference": round(test.difference, 4),
        "p": round(test.p_value, 4),
    }


def mean(values: Any, digits: int = 4) -> float:
    return round(float(np.nanmean(np.array(list(values)))), digits)

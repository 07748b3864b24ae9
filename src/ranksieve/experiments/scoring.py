"""How long a cell's model takes to score a document."""

from __future__ import annotations

import time

import numpy as np

from ranksieve.data.blocks import widened
from ranksieve.experiments.measuring import base_trees, first_trees
from ranksieve.experiments.spec import Cell
from ranksieve.forest.forest import Forest

DOCUMENTS = 20_000
REPEATS = 5


def scoring_times(cell: Cell, forest: Forest) -> dict[str, float]:
    """Microseconds a document on one thread, of the first trees at every stage and of all; the best of some runs."""
    documents = _documents(cell, forest.n_features)
    new_trees = forest.n_trees - base_trees(forest)
    parts = {str(stage): first_trees(forest, stage) for stage in cell.stages if stage < new_trees} | {"full": forest}
    return {name: _microseconds(part, documents) for name, part in parts.items()}


def _documents(cell: Cell, n_features: int) -> np.ndarray:
    """The first test documents."""
    source = cell.data.sources()[2]
    found: list[np.ndarray] = []
    for block in source.blocks():
        found.append(widened(block.features, n_features, source.absent))
        if sum(map(len, found)) >= DOCUMENTS:
            break
    return np.ascontiguousarray(np.concatenate(found)[:DOCUMENTS])


def _microseconds(forest: Forest, documents: np.ndarray) -> float:
    times = []
    for _ in range(REPEATS + 1):  # the first builds the scorer
        begin = time.perf_counter()
        forest.predict(documents, threads=1)
        times.append(time.perf_counter() - begin)
    return 1e6 * min(times) / len(documents)

"""What a cell stores of its model: the curve, values per query, the documents a reader looks at, who taught."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from ranksieve.boosting.callbacks import Record, Tally
from ranksieve.boosting.registry import selection_name
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.tree import to_trees
from ranksieve.data.blocks import widened
from ranksieve.data.lists import Lists
from ranksieve.data.negatives import Negatives
from ranksieve.evaluation.analyses import list_ranks, shared_leaves
from ranksieve.evaluation.metrics import mean, parse_metric
from ranksieve.experiments.data import Loaded, Part, load_values
from ranksieve.experiments.spec import Cell
from ranksieve.experiments.training import scores_by_values
from ranksieve.forest.forest import Forest
from ranksieve.rankers.blend import Blend
from ranksieve.rankers.grades import Grades

SHOWN = 20  # documents of each test query that are stored with their ranks, besides the positives


class Stopwatch:
    """A training callback that keeps each tree's time, without the time spent measuring."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.measuring: list[float] = []

    def __call__(self, record: Record) -> None:
        self.seconds.append(record.seconds - record.measuring)
        self.measuring.append(record.measuring)

    def fit(self, n: int, in_all: float) -> None:
        """Share the time in all out among n points of a curve, where no tree told its own."""
        if len(self.seconds) != n:
            self.seconds, self.measuring = [in_all / n] * n, [0.0] * n

    def summary(self, trees_a_round: int) -> dict[str, float | None]:
        """Training and measuring in all, and the median of a tree; None where no trees are grown one after another."""
        median = statistics.median(self.seconds[1:] or self.seconds)
        per_tree = median / trees_a_round if trees_a_round else None
        return {"training": sum(self.seconds), "measuring": sum(self.measuring), "per_tree": per_tree}


def history_of(cell: Cell, model: Any, loaded: Loaded) -> dict[str, list[float]]:
    """The metric on the lists that were followed, after each tree; one value each of rankers that have no rounds."""
    metric = str(parse_metric(cell.params.metric))
    history = model.info.get("history") or _staged(cell, model, loaded, metric)
    return {name: history[name][metric] for name in ("valid", "test", "train") if name in history}


def _staged(cell: Cell, forest: Forest, loaded: Loaded, metric: str) -> dict[str, dict[str, list[float]]]:
    """The metric of a finished forest's first trees, as training in one go would have noted it."""
    wanted, history = parse_metric(metric), {}
    for name in ("valid", "test"):
        data = getattr(loaded, name).binned
        scores, values = Scores(data), []
        for tree in to_trees(forest, data.binning):
            scores.add(tree)
            found = wanted.per_query(data.lists.labels, scores.all(), data.lists.offsets)
            values.append(mean(found, data.lists.query_weights))
        history[name] = {metric: values}
    return history


def docs_per_tree(cell: Cell, tally: Tally | None, n_trees: int, n_docs: int) -> float | None:
    """How many documents taught a tree on average; None of interpolations and pruned forests, which nothing teaches,
    and of forests that draw rows or select without telling.
    """
    if cell.blended or cell.prune is not None:
        return None
    if tally is not None:
        return tally.lessons / n_trees
    selects = cell.in_rounds and selection_name(cell.params) != "everything"
    return None if selects or cell.params.row_fraction < 1 else float(n_docs)


def measure(cell: Cell, model: Any, test: Part) -> tuple[dict[str, dict[str, float]], pa.Table, np.ndarray]:
    """Means by metric and stage, per-query values, and the final scores."""
    lists = test.binned.lists
    positives = np.add.reduceat(lists.labels > 0, lists.offsets[:-1])
    columns: dict[str, Any] = {
        "query": [str(q) for q in lists.query_ids],
        "n_docs": lists.sizes,
        "n_positives": positives,
    }
    means: dict[str, dict[str, float]] = {metric: {} for metric in cell.metrics}
    scores = np.empty(0)
    for stage, scores in (_by_bins if cell.on_bins else _by_values)(cell, model, test):
        for metric in cell.metrics:
            values = parse_metric(metric).per_query(lists.labels, scores, lists.offsets)
            name = metric if stage is None else f"{metric} at {stage}"
            columns[name] = values
            means[metric]["full" if stage is None else str(stage)] = mean(values)
    return means, pa.table(columns), scores.copy()


Staged = Iterator[tuple[int | None, np.ndarray]]  # so many trees (None: all) and the scores they give


def _by_bins(cell: Cell, forest: Forest, test: Part) -> Staged:
    scores, trees = Scores(test.binned), to_trees(forest, test.binned.binning)
    for stage in [*sorted(cell.stages), None]:
        for tree in trees[scores.n_trees : stage]:
            scores.add(tree)
        yield stage, scores.all()


def _by_values(cell: Cell, model: Any, test: Part) -> Staged:
    """The scores of any ranker; one without trees is the same at every stage."""
    values = load_values(cell.data)["test"]
    for stage in [*sorted(cell.stages), None]:
        yield stage, scores_by_values(model if stage is None else first_trees(model, stage), values)


def first_trees(model: Any, stage: int) -> Any:
    """A ranker with its first so many trees: those of whole rounds, and beside a base all of which stays."""
    if isinstance(model, Grades):
        return model.first(stage // model.n_outputs)
    if isinstance(model, Forest):
        return model.first(base_trees(model) + stage)
    if isinstance(model, Blend) and "init" in model.info:  # a base of another kind, and the trees on top of it
        base, forest = model.models
        return replace(model, models=(base, forest.first(stage)))
    return model


def base_trees(model: Any) -> int:
    """How many trees a forest starts with that are those of the model boosting started from."""
    return int(model.info.get("init", {}).get("trees", 0)) if isinstance(model, Forest) else 0


def documents(test: Part, scores: np.ndarray) -> pa.Table:
    """The documents of each test query that a reader looks at: the best-scored, and all positives."""
    lists = test.binned.lists
    ranks = list_ranks(scores, lists.offsets)
    rows = np.flatnonzero((ranks <= SHOWN) | (lists.labels > 0))
    query = np.searchsorted(lists.offsets, rows, side="right") - 1
    columns: dict[str, Any] = {
        "query": [str(q) for q in lists.query_ids[query]],
        "document": (rows - lists.offsets[query]).astype(np.int32),
        "label": lists.labels[rows],
        "score": scores[rows],
        "rank": ranks[rows].astype(np.int32),
    }
    if test.first_stage is not None:
        columns["first_stage_rank"] = list_ranks(test.first_stage, lists.offsets)[rows].astype(np.int32)
    if test.doc_ids is not None:
        columns["doc_id"] = [None if doc is None else str(doc) for doc in test.doc_ids[rows]]
    return pa.table(columns)


def selected(taught: Part, tally: Tally) -> pa.Table:
    """How often each negative taught, by its query's number and its first-stage rank; those never chosen left out."""
    lists = taught.binned.lists
    ranks = np.arange(lists.n_docs) - np.repeat(lists.offsets[:-1], lists.sizes) + 1
    if taught.first_stage is not None:
        ranks = list_ranks(taught.first_stage, lists.offsets)
    rows = np.flatnonzero((tally.counts > 0) & (lists.labels == 0))
    query = np.searchsorted(lists.offsets, rows, side="right") - 1
    return pa.table(
        {"query": query.astype(np.int32), "rank": ranks[rows].astype(np.int32), "count": tally.counts[rows]}
    )


def pairs_by_shared_leaves(cell: Cell, forest: Forest, lists: Lists) -> pa.Table:
    """Pairs of negatives of one query by the number of leaves they share, over the whole training set."""
    source = cell.data.sources()[0]
    kind = np.uint8 if forest.n_leaves.max(initial=0) <= 256 else np.int32
    leaves = np.concatenate(
        [
            forest.predict_leaves(widened(block.features, forest.n_features, source.absent)).astype(kind)
            for block in source.blocks()
        ]
    )
    negatives = Negatives(lists)
    rows = negatives.rows if lists.order is None else lists.order[negatives.rows]
    pairs = shared_leaves(leaves[rows], negatives.offsets)
    return pa.table({"shared": np.arange(forest.n_trees + 1), "pairs": pairs})

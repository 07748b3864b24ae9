"""What a cell stores of its model: the curve, values per query, the best documents, selections, times."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from ranksieve.boosting.callbacks import Record, SelectionCounter
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.tree import to_trees
from ranksieve.data.blocks import widened
from ranksieve.data.lists import Lists
from ranksieve.data.negatives import Negatives
from ranksieve.evaluation.analyses import list_ranks, shared_leaves
from ranksieve.evaluation.metrics import mean, parse_metric
from ranksieve.experiments.data_sets import DataPart, Loaded, load_values
from ranksieve.experiments.spec import Cell
from ranksieve.experiments.train_cell import scores_on_values
from ranksieve.forest.forest import Forest
from ranksieve.forest.matrix import encoded
from ranksieve.forest.score_file import fitted
from ranksieve.models.blend import Blend
from ranksieve.models.grades import Grades

SHOWN = 20  # documents of each test query that are stored with their ranks, besides the positives
TIMED_DOCUMENTS = 20_000  # documents that are scored to measure the time
TIMED_REPEATS = 5


class Stopwatch:
    """A training callback that keeps each tree's time, without the time spent measuring."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.measuring: list[float] = []

    def __call__(self, record: Record) -> None:
        self.seconds.append(record.seconds - record.measuring)
        self.measuring.append(record.measuring)

    def fill(self, n: int, total: float) -> None:
        """Divide the total time among the n points of a curve, if it was not called for each."""
        if len(self.seconds) != n:
            self.seconds, self.measuring = [total / n] * n, [0.0] * n

    def summary(self, trees_per_round: int) -> dict[str, float | None]:
        """Training and measuring in total, and the median of a tree; None if trees are not grown one after another."""
        median = statistics.median(self.seconds[1:] or self.seconds)
        per_tree = median / trees_per_round if trees_per_round else None
        return {"training": sum(self.seconds), "measuring": sum(self.measuring), "per_tree": per_tree}


def history_of(cell: Cell, model: Any, loaded: Loaded) -> dict[str, list[float]]:
    """The metric on the lists that were followed, after each tree; one value for rankers without rounds."""
    metric = str(parse_metric(cell.params.metric))
    history = model.info.get("history") or _staged(model, loaded, metric)
    return {name: history[name][metric] for name in ("valid", "test", "train") if name in history}


def _staged(forest: Forest, loaded: Loaded, metric: str) -> dict[str, dict[str, list[float]]]:
    """The metric of a finished forest's first trees, as training tree by tree would have recorded it."""
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


def docs_per_tree(cell: Cell, counter: SelectionCounter | None, n_trees: int, n_docs: int) -> float | None:
    """Mean number of documents that a tree is trained on; None if nothing is trained or rows are not counted."""
    if cell.interpolated or cell.prune is not None:
        return None
    if counter is not None:
        return counter.n_rows / n_trees
    selects = cell.in_rounds and "every" in cell.params.used  # a parameter of all selections but everything
    return None if selects or cell.params.row_fraction < 1 else float(n_docs)


def measure(cell: Cell, model: Any, test: DataPart) -> tuple[dict[str, dict[str, float]], pa.Table, np.ndarray]:
    """Means by metric and stage, per-query values, and the final scores."""
    lists = test.binned.lists
    columns = list_columns(lists)
    means: dict[str, dict[str, float]] = {metric: {} for metric in cell.metrics}
    scores = np.empty(0)
    for stage, scores in (_by_bins if cell.on_bins else _by_values)(cell, model, test):
        for metric in cell.metrics:
            values = parse_metric(metric).per_query(lists.labels, scores, lists.offsets)
            name = metric if stage is None else f"{metric} at {stage}"
            columns[name] = values
            means[metric]["full" if stage is None else str(stage)] = mean(values)
    return means, pa.table(columns), scores.copy()


def list_columns(lists: Lists) -> dict[str, Any]:
    """The name of each query, and its numbers of documents and positives."""
    positives = np.add.reduceat(lists.labels > 0, lists.offsets[:-1])
    return {"query": [str(q) for q in lists.query_ids], "n_docs": lists.sizes, "n_positives": positives}


Staged = Iterator[tuple[int | None, np.ndarray]]  # a number of trees (None: all) and their scores


def _by_bins(cell: Cell, forest: Forest, test: DataPart) -> Staged:
    scores, trees = Scores(test.binned), to_trees(forest, test.binned.binning)
    for stage in [*sorted(cell.stages), None]:
        for tree in trees[scores.n_trees : stage]:
            scores.add(tree)
        yield stage, scores.all()


def _by_values(cell: Cell, model: Any, test: DataPart) -> Staged:
    """The scores of any ranker; one without trees is the same at every stage."""
    values = load_values(cell.data)["test"]
    for stage in [*sorted(cell.stages), None]:
        yield stage, scores_on_values(model if stage is None else first_trees(model, stage), values)


def first_trees(model: Any, stage: int) -> Any:
    """A ranker with its first `stage` trees: trees of whole rounds, not counting the trees of a base model."""
    if isinstance(model, Grades):
        return model.first(stage // model.n_outputs)
    if isinstance(model, Forest):
        return model.first(base_trees(model) + stage)
    if isinstance(model, Blend) and "init" in model.info:  # a base model of another kind, and the trees on top of it
        base, forest = model.models
        return replace(model, models=(base, forest.first(stage)))
    return model


def base_trees(model: Any) -> int:
    """The number of trees of the model that boosting started from."""
    return int(model.info.get("init", {}).get("trees", 0)) if isinstance(model, Forest) else 0


def documents(test: DataPart, scores: np.ndarray) -> pa.Table:
    """The documents of each test query that a report shows: the best-scored, and all positives."""
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


def selected(train: DataPart, counter: SelectionCounter) -> pa.Table:
    """How often each selected negative was selected, with the number of its query and its first-stage rank."""
    lists = train.binned.lists
    ranks = np.arange(lists.n_docs) - np.repeat(lists.offsets[:-1], lists.sizes) + 1
    if train.first_stage is not None:
        ranks = list_ranks(train.first_stage, lists.offsets)
    rows = np.flatnonzero((counter.counts > 0) & (lists.labels == 0))
    query = np.searchsorted(lists.offsets, rows, side="right") - 1
    return pa.table(
        {"query": query.astype(np.int32), "rank": ranks[rows].astype(np.int32), "count": counter.counts[rows]}
    )


def pairs_by_shared_leaves(cell: Cell, forest: Forest, lists: Lists) -> pa.Table:
    """Pairs of negatives of one query by the number of leaves they share, over the whole training set."""
    source = cell.data.sources()[0]
    kind = np.uint8 if forest.n_leaves.max(initial=0) <= 256 else np.int32
    leaves = np.concatenate(
        [
            forest.predict_leaves(fitted(block.features, "the model", forest, source)).astype(kind)
            for block in source.blocks()
        ]
    )
    negatives = Negatives(lists)
    rows = negatives.rows if lists.order is None else lists.order[negatives.rows]
    pairs = shared_leaves(leaves[rows], negatives.offsets)
    return pa.table({"shared": np.arange(forest.n_trees + 1), "pairs": pairs})


def scoring_times(cell: Cell, forest: Forest) -> dict[str, float]:
    """Microseconds per document on one thread, of the first trees at every stage and of all; the best of some runs."""
    documents = encoded(_timed_documents(cell, forest.n_features), forest)
    new_trees = forest.n_trees - base_trees(forest)
    parts = {str(stage): first_trees(forest, stage) for stage in cell.stages if stage < new_trees} | {"full": forest}
    return {name: _microseconds(part, documents) for name, part in parts.items()}


def _timed_documents(cell: Cell, n_features: int) -> np.ndarray:
    """The first test documents."""
    source = cell.data.sources()[2]
    found: list[np.ndarray] = []
    for block in source.blocks():
        found.append(widened(block.features, n_features, source.absent))
        if sum(map(len, found)) >= TIMED_DOCUMENTS:
            break
    return np.ascontiguousarray(np.concatenate(found)[:TIMED_DOCUMENTS])


def _microseconds(forest: Forest, documents: np.ndarray) -> float:
    times = []
    for _ in range(TIMED_REPEATS + 1):  # the first builds the scorer
        begin = time.perf_counter()
        forest.predict(documents, threads=1)
        times.append(time.perf_counter() - begin)
    return 1e6 * min(times) / len(documents)

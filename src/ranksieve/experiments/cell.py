"""Running one cell: sample, train, measure on the test lists, store everything that a report may ask for."""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ranksieve import __version__
from ranksieve.boosting.callbacks import Record, Tally
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.tree import to_trees
from ranksieve.data.binned import Binned
from ranksieve.data.blocks import widened
from ranksieve.data.dataset import Lists
from ranksieve.data.negatives import Negatives
from ranksieve.errors import RanksieveError
from ranksieve.evaluation.metrics import mean, parse_metric
from ranksieve.evaluation.ranks import list_ranks
from ranksieve.evaluation.shared_leaves import shared_leaves
from ranksieve.experiments.data import Loaded, Part, load
from ranksieve.experiments.spec import Cell
from ranksieve.experiments.training import CELLS, taught_part, trained
from ranksieve.files import atomic_path
from ranksieve.forest.forest import Forest

UNFINISHED = ".unfinished-"
SHOWN = 20  # documents of each test query that are stored with their ranks, besides the positives


Watch = Callable[[Cell], AbstractContextManager[Any]]


def run_cell(cell: Cell, out: Path, *, threads: int = 0, alone: bool = True, watch: Watch | None = None) -> None:
    """Train and measure a cell into `out/cells/<key>`; the folder appears when everything in it is written.

    `watch` gives a context around the training whose value is one more training callback.
    """
    began, clock, cpu = datetime.now(timezone.utc), time.perf_counter(), time.process_time()
    loaded = load(cell.data, cell.params.max_bins)
    loading = time.perf_counter() - clock
    _store_lists(cell, out, loaded)
    taught = taught_part(cell, out, loaded.train)
    watched = _Watch()
    tally = Tally() if cell.selections else None
    sets = {"valid": loaded.valid.binned, "test": loaded.test.binned}
    with nullcontext() if watch is None else watch(cell) as own:
        callbacks = (watched,) if own is None else (watched, own)
        forest = trained(cell, taught, sets, threads, callbacks, tally)
    if cell.in_rounds:
        watched.spread(forest)
    tables = {"curve": watched.table(forest, sets, str(parse_metric(cell.params.metric)))}
    measured, tables["queries"], scores = _measure(cell, forest, loaded.test)
    tables["documents"] = _documents(loaded.test, scores)
    if tally is not None:
        tables["selected"] = _selected(taught, tally)
    if cell.shared_leaves:
        tables["shared_leaves"] = _shared(cell, forest, loaded.train.binned.lists)
    seconds = watched.seconds
    facts = {
        "key": cell.key,
        "label": cell.label,
        "settings": cell.settings(),
        "data": cell.data.name,
        "fold": cell.data.fold,
        "n_trees": forest.n_trees,
        "n_grown": len(seconds),
        "taught": {"queries": taught.binned.lists.n_queries, "documents": taught.binned.lists.n_docs,
                   "share": taught.binned.lists.n_docs / loaded.train.binned.lists.n_docs},
        "valid": forest.info.get("best_score"),
        "test": measured,
        "conventions": [parse_metric(metric).describe() for metric in cell.metrics],
        "seconds": {"loading": loading, "training": float(sum(seconds)), "measuring": float(sum(watched.measuring)),
                    "per_tree": statistics.median(seconds[1:] or seconds), "all": time.perf_counter() - clock,
                    "cpu": time.process_time() - cpu},
        "threads": threads or cell.params.threads or os.cpu_count(),
        "alone": alone,
        "began": began.isoformat(timespec="seconds"),
        "versions": versions(),
    }  # fmt: skip
    _store(out / CELLS, cell.key, facts, forest, tables)


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    return {
        "ranksieve": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
    }


class _Watch:
    """A training callback that keeps each tree's time, without the time spent measuring."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.measuring: list[float] = []

    def __call__(self, record: Record) -> None:
        self.seconds.append(record.seconds - record.measuring)
        self.measuring.append(record.measuring)

    def spread(self, forest: Forest) -> None:
        """Share the time of a forest made in rounds out among its trees."""
        self.seconds = [sum(forest.info["seconds"]) / forest.n_trees] * forest.n_trees
        self.measuring = [0.0] * forest.n_trees

    def table(self, forest: Forest, sets: Mapping[str, Binned], metric: str) -> pa.Table:
        history = forest.info.get("history") or _staged(forest, sets, metric)
        return pa.table(
            {
                "trees": np.arange(1, len(self.seconds) + 1),
                "valid": history["valid"][metric],
                "test": history["test"][metric],
                "seconds": self.seconds,
            }
        )


def _staged(forest: Forest, sets: Mapping[str, Binned], metric: str) -> dict[str, dict[str, list[float]]]:
    """The metric of a finished forest's first trees, as training in one go would have noted it."""
    wanted, history = parse_metric(metric), {}
    for name, data in sets.items():
        scores, values = Scores(data), []
        for tree in to_trees(forest, data.binning):
            scores.add(tree)
            found = wanted.per_query(data.lists.labels, scores.all(), data.lists.offsets)
            values.append(mean(found, data.lists.query_weights))
        history[name] = {metric: values}
    return history


def _measure(cell: Cell, forest: Forest, test: Part) -> tuple[dict[str, dict[str, float]], pa.Table, np.ndarray]:
    """Means by metric and stage, per-query values, and the final scores."""
    lists = test.binned.lists
    positives = np.add.reduceat(lists.labels > 0, lists.offsets[:-1])
    columns: dict[str, Any] = {
        "query": [str(q) for q in lists.query_ids],
        "n_docs": lists.sizes,
        "n_positives": positives,
    }
    means: dict[str, dict[str, float]] = {metric: {} for metric in cell.metrics}
    scores, trees = Scores(test.binned), to_trees(forest, test.binned.binning)
    for stage in [*sorted(cell.stages), None]:
        for tree in trees[scores.n_trees : stage]:
            scores.add(tree)
        for metric in cell.metrics:
            values = parse_metric(metric).per_query(lists.labels, scores.all(), lists.offsets)
            name = metric if stage is None else f"{metric} at {stage}"
            columns[name] = values
            means[metric]["full" if stage is None else str(stage)] = mean(values)
    return means, pa.table(columns), scores.all().copy()


def _documents(test: Part, scores: np.ndarray) -> pa.Table:
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


def _selected(taught: Part, tally: Tally) -> pa.Table:
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


def _shared(cell: Cell, forest: Forest, lists: Lists) -> pa.Table:
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


def _store_lists(cell: Cell, out: Path, loaded: Loaded) -> None:
    """Sizes of the lists of each part, once for each data set."""
    folder = out / "data"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("train", "valid", "test"):
        lists = getattr(loaded, name).binned.lists
        path = folder / f"{cell.data.title} {name}.parquet"
        with atomic_path(path) as temporary:
            pq.write_table(
                pa.table(
                    {
                        "query": [str(q) for q in lists.query_ids],
                        "n_docs": lists.sizes,
                        "n_positives": np.add.reduceat(lists.labels > 0, lists.offsets[:-1]),
                    }
                ),
                temporary,
            )


def _store(folder: Path, key: str, facts: dict[str, Any], forest: Forest, tables: dict[str, pa.Table]) -> None:
    unfinished = folder / f"{UNFINISHED}{os.getpid()}-{key}"
    unfinished.mkdir(parents=True)
    forest.save(unfinished / "model.txt")
    for name, table in tables.items():
        pq.write_table(table, unfinished / f"{name}.parquet")
    with open(unfinished / "cell.json", "w", encoding="utf-8") as file:
        json.dump(facts, file, indent=1, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.replace(unfinished, folder / key)
    except OSError as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        if (folder / key).is_dir():  # a worker of an earlier, killed run was faster
            return
        raise RanksieveError(f"{folder / key}: cannot be written ({error.strerror})") from error

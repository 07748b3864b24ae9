"""`Shard`: the queries of one worker, and everything that is computed on them. It is a Dask actor on the worker."""

from __future__ import annotations

import gc
import zlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve.boosting.bagging import part_of
from ranksieve.boosting.callbacks import ValidationSet
from ranksieve.boosting.disk_scores import new_scores
from ranksieve.boosting.external_grower import HistogramRequest, LeafSplit, RootHistogram
from ranksieve.boosting.fixed_point import Extent, Scales, Sums
from ranksieve.boosting.initial_scores import TRAIN, Base
from ranksieve.boosting.query_labels import QueryLabels
from ranksieve.boosting.train_forest import first_selection
from ranksieve.boosting.training_rows import TrainingLists, TreeTarget
from ranksieve.boosting.tree import Tree
from ranksieve.cluster.copies import LocalCopy, ShardData, folder_of, remove_old
from ranksieve.cluster.layout import Shares
from ranksieve.cluster.leaf_sums import DiskLeafSums, FileLeafSums, LeafSums
from ranksieve.cluster.messages import RunConfig, SelectedRows, SetSummary, ShardReport
from ranksieve.cluster.partitions import category_options, numba_threads
from ranksieve.data.bin_file import BinFile
from ranksieve.data.bin_store import BinStore
from ranksieve.data.binned import Binned, bin_data
from ranksieve.data.blocks import give_back_memory
from ranksieve.data.features import check_feature_names
from ranksieve.data.joined import JoinedSource, Piece
from ranksieve.data.lists import Lists
from ranksieve.dtypes import OFFSET, POSITION, ROW
from ranksieve.errors import ParameterError
from ranksieve.evaluation.metric_table import METRICS
from ranksieve.evaluation.metrics import Metric
from ranksieve.params import Params
from ranksieve.rules import AUTO, traits_of

MAX_CACHED = 4  # the coordinator caches at most this many times the rows of one selection


class Shard:
    """The training and validation queries of one worker: bins and scores.

    The coordinator calls the public methods. It sends trees with `advance`, in order. Everything else follows from the
    data and the trees, so a lost shard is loaded again from its partitions, or if `partitions` is None from the copy
    named `copy`, and continues after `begin`.
    """

    def __init__(
        self, config: RunConfig, shares: Shares, partitions: dict[str, list[Any]] | None, threads: int, copy: str
    ) -> None:
        self._config, self._threads, self._portion = config, threads, shares[TRAIN].portion
        if config.user_metric is not None:
            METRICS.setdefault(config.metric.name, config.user_metric)
        from distributed import get_worker

        folder = folder_of(get_worker())
        remove_old(folder)
        self._copy = LocalCopy(folder, copy)
        self._sources: dict[str, JoinedSource] = {}
        # Raised by `summaries`: Dask logs errors of constructors with tracebacks.
        self._error: ParameterError | None = None
        with numba_threads(threads):
            try:
                self._data = self._copy.read() if partitions is None else self._load(shares, partitions, folder)
            except ParameterError as error:
                self._error = error
                return
            train_set = self._data.sets[TRAIN]
            self._leaf_sums = (LeafSums if train_set.disk is None else DiskLeafSums)(train_set, config.params, threads)
            self._growing: LeafSums | FileLeafSums = self._leaf_sums  # the one that holds the last tree's leaves

    def _load(self, shares: Shares, partitions: dict[str, list[Any]], folder: Path) -> ShardData:
        config, sets = self._config, {}
        store = _bin_store(config.params, folder)
        for name, share in shares.items():
            if share.n_docs:
                parts = zip(partitions[name], share.pieces, strict=True)
                pieces = [Piece(data, queries) for data, (_, queries) in parts]
                wanted = category_options(config.feature_names, config.categories)
                source = JoinedSource(pieces, missing=config.missing, n_docs=share.n_docs, wanted=wanted)
                sets[name] = bin_data(source, binning=config.binning, store=store, validation=name != TRAIN)
                check_feature_names(sets[name].feature_names, config.feature_names, sets[name].source)
                self._sources[name] = source
        return ShardData(sets, {name: _summarize(data) for name, data in sets.items()}, {})

    def summaries(self) -> dict[str, SetSummary]:
        """A summary of each data set."""
        if self._error is not None:
            raise self._error
        return self._data.summaries

    def begin(self, base: Base, trees: Sequence[Tree], biases: Sequence[np.ndarray]) -> np.ndarray:
        """Start from a base and the trees so far; returns a checksum of each query's initial scores.

        `biases` are those of positions before each tree and after the last; empty where none are learned.
        """
        config, sets = self._config, self._data.sets
        with numba_threads(self._threads):
            starts = self._initial_scores(base)
            self._valid_sets = {
                name: ValidationSet(name, data, new_scores(data, start=starts[name]), starts[name])
                for name, data in sets.items()
                if name != TRAIN
            }
            lists, highest = sets[TRAIN].lists, config.highest_labels[TRAIN]
            of_shard = TrainingLists(lists, config.params, config.metric, first_selection(base), self._portion, highest)
            self._part = part_of(of_shard, sets[TRAIN], starts[TRAIN])
            self._target: TreeTarget | None = None
            self._trees: list[Tree] = []
            self._place = np.full(lists.n_docs, -1, ROW)  # place of each row in the coordinator's cache; -1: not cached
            self._n_cached = 0
            self._last_sent: np.ndarray | None = None
            self._set_biases(biases[:1])
            self._replay(trees, biases[1:])
        return _checksums(lists, starts[TRAIN])

    def _initial_scores(self, base: Base) -> dict[str, np.ndarray]:
        """The initial scores of the data sets. The first call also writes the copy, which contains them."""
        if not self._data.initial_scores:
            starts = {name: base.scores(name, self._sources[name], data) for name, data in self._data.sets.items()}
            self._data = replace(self._data, initial_scores=starts)
            if self._config.copies:
                self._copy.write(self._data)
        return self._data.initial_scores

    def _set_biases(self, biases: Sequence[np.ndarray]) -> None:
        for one in biases:
            self._part.lists.set_biases(one)

    def _replay(self, trees: Sequence[Tree], biases: Sequence[np.ndarray]) -> None:
        """Add trees, and repeat those earlier selections that later selections or gradients depend on."""
        part, first = self._part, len(self._trees)
        stop = first + len(trees)
        steps = [step for step in range(first + (self._target is not None), stop) if part.lists.selects_at(step)]
        params = self._config.params
        if not traits_of(params.selection_rule).needs_last_selection and params.bag == 1:
            steps = [] if part.lists.selects_at(stop) else steps[-1:]
        for step, tree in enumerate(trees, start=first):
            if step in steps:
                part.rows = part.lists.select_rows(part.rows, part.scores, step, self._rng(step))
            self._add(tree)
            self._set_biases(biases[step - first : step - first + 1])

    def _rng(self, step: int) -> np.random.Generator:
        return np.random.default_rng([self._config.params.seed, step])

    def _add(self, tree: Tree) -> None:
        all_rows = self._target is not None and self._target.rows is None
        self._part.scores.add(tree, self._growing.leaves() if all_rows else None)
        self._trees.append(tree)
        self._growing.discard_leaves()
        self._growing = self._leaf_sums

    def advance(
        self,
        trees: Sequence[Tree],
        biases: Sequence[np.ndarray],
        with_gradients: bool,
        kept_set: str | None = None,
    ) -> ShardReport:
        """Add new trees, with the biases of positions after each; returns the metric on the validation queries.

        The report also has gradients for the next tree if `with_gradients`. The validation set `kept_set` keeps its
        scores before the new trees are added.
        """
        with numba_threads(self._threads):
            if kept_set in self._valid_sets:
                self._valid_sets[kept_set].keep_scores()
            if not self._trees and len(biases) > len(trees):  # the first ones
                self._set_biases(biases[:1])
                biases = biases[1:]
            self._replay(trees, biases)
            self._copy.touch()
            metric, highest = self._config.metric, self._config.highest_labels
            values = {
                name: found.per_query(self._trees, metric.with_highest(highest[name]))
                for name, found in self._valid_sets.items()
            }
            if not with_gradients:
                return ShardReport(values)
            part, step = self._part, len(self._trees)
            rng = self._rng(step)
            part.rows = part.lists.select_rows(part.rows, part.scores, step, rng)
            target = self._target = part.lists.gradients(part.rows, part.scores, step, rng)
            extent = Extent.of(target.grad, target.hess)
            n_rows = len(target.grad)
            if target.rows is None or n_rows > self._config.max_sent_rows or not self._leaf_sums.fits(n_rows):
                return ShardReport(values, extent, position_sums=target.position_sums)
            return ShardReport(values, extent, self._sent_rows(target), target.position_sums)

    def measure_again(self, name: str, n_trees: int, metrics: Sequence[Metric]) -> list[np.ndarray] | None:
        """Metrics of a validation set's queries with the first trees only; None if none of them is here."""
        if name not in self._valid_sets:
            return None
        with numba_threads(self._threads):
            highest = self._config.highest_labels[name]
            metrics = [metric.with_highest(highest) for metric in metrics]
            return self._valid_sets[name].measure_again(self._trees[:n_trees], metrics)

    def update_scores(self) -> None:
        """Bring the scores of all documents up to date now rather than when they are next needed."""
        with numba_threads(self._threads):
            self._part.scores.all()

    def _sent_rows(self, target: TreeTarget) -> SelectedRows:
        """The training rows as a message. The bins of a row are sent once, until the coordinator's cache is emptied."""
        rows = target.rows
        assert rows is not None
        if rows is self._last_sent:
            none, no_numbers = self._leaf_sums.take(rows[:0]), np.empty(0, OFFSET)
            return SelectedRows(self._n_cached, none, no_numbers, None, target.grad, target.hess)
        self._last_sent = rows
        new = rows[self._place[rows] < 0]
        if self._n_cached + len(new) > MAX_CACHED * len(rows):
            self._place.fill(-1)
            self._n_cached, new = 0, rows
        first = self._n_cached
        self._n_cached += len(new)
        self._place[new] = np.arange(first, self._n_cached, dtype=ROW)
        numbers = new.astype(OFFSET) + self._portion.first_row
        return SelectedRows(first, self._leaf_sums.take(new), numbers, self._place[rows], target.grad, target.hess)

    def sums(self, extent: Extent) -> Sums:
        """The sums of this shard's gradients, from which the coordinator computes the scales of all shards."""
        assert self._target is not None
        return self._leaf_sums.sums(extent, self._target)

    def root(self, scales: Scales) -> RootHistogram:
        """Start a tree; returns the sums of all training rows."""
        assert self._target is not None
        with numba_threads(self._threads):
            self._growing = self._leaf_sums.of_tree(self._target)
            return self._growing.begin(self._target, scales)

    def split(self, splits: Sequence[LeafSplit], requests: Sequence[HistogramRequest]) -> np.ndarray:
        """Split leaves; returns the requested histograms, one per row."""
        with numba_threads(self._threads):
            return self._growing.split(splits, requests)

    def finish(self, splits: Sequence[LeafSplit]) -> np.ndarray:
        """Split leaves; returns the exact sums of every leaf."""
        with numba_threads(self._threads):
            return self._growing.finish(splits)


def _bin_store(params: Params, folder: Path) -> BinStore | None:
    """Where bins are kept if memory is limited: in `bin_folder`, or in unnamed files in `folder`; otherwise None."""
    if params.memory == AUTO:
        return None
    gc.collect()  # free the shards of earlier runs, whose memory would count against the limit
    give_back_memory()
    where, keep = (str(folder), False) if params.bin_folder == AUTO else (params.bin_folder, params.keep_bins)
    return BinStore(params.memory, where, keep, forests=params.bag, on_cluster=True)


def _summarize(data: Binned) -> SetSummary:
    lists = data.lists
    query_weights = lists.query_weights
    more = [column for column in (lists.weights, lists.positions) if column is not None]
    last = None if lists.positions is None else np.maximum.reduceat(lists.positions, lists.offsets[:-1])
    return SetSummary(
        **vars(QueryLabels.of(lists)),
        n_docs=lists.n_docs,
        query_weights=np.empty(0) if query_weights is None else query_weights,
        last_positions=np.empty(0, POSITION) if last is None else last,
        checksums=_checksums(lists, lists.labels, data.bins if data.disk is None else data.disk.file, *more),
    )


def _checksums(lists: Lists, *arrays: np.ndarray | BinFile) -> np.ndarray:
    """A checksum of each query's rows of the arrays."""
    checksums = np.zeros(lists.n_queries, np.uint32)
    for q, (start, stop) in enumerate(pairwise(lists.offsets.tolist())):
        for array in arrays:
            checksums[q] = zlib.crc32(array[start:stop].tobytes(), int(checksums[q]))
    return checksums

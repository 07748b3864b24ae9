"""`Binned`: data with one byte per feature, made of arrays or streamed from a file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ranksieve.data.bin_store import BinStore, MemoryStore
from ranksieve.data.binning import Binning, BinningSketch, check_codes
from ranksieve.data.blocks import Block, ListsBuilder, Source, check_narrow, give_back_memory, reading_ahead, widened
from ranksieve.data.categories import check_same_codes
from ranksieve.data.dataset import Dataset
from ranksieve.data.disk_rows import DiskRows
from ranksieve.data.feature_columns import FeatureColumns, Rows
from ranksieve.data.features import Described, FeatureInfo, check_feature_names
from ranksieve.data.lists import Lists
from ranksieve.data.read import open_data
from ranksieve.data.stored_bins import FileSink, StoredBins
from ranksieve.dtypes import BIN, MAX_BINS
from ranksieve.errors import DataError, param
from ranksieve.kernels.histograms import LANES
from ranksieve.text_formats import counted

MOVED_ROWS = 16_384  # rows that move in place at a time


@dataclass(frozen=True)
class Binned(Described):
    """Row-major bins (`n_docs` × padded features; the padding is zero), with their lists and thresholds.

    Bins that do not fit into memory are those of a file, mapped; `disk` has some rows of it in memory.
    """

    bins: np.ndarray
    lists: Lists
    binning: Binning
    info: FeatureInfo
    disk: DiskRows | None = None

    @property
    def feature_names(self) -> tuple[str, ...]:
        return self.info.feature_names

    def take_rows(self, rows: np.ndarray) -> Binned:
        """Some documents, given by ascending rows, with the same thresholds; queries with none of them are left out."""
        return replace(self, bins=self.bins[rows], lists=self.lists.take_rows(rows), disk=None)

    def keep_rows(self, rows: np.ndarray) -> Binned:
        """The same as `take_rows`, in the memory of these bins, which are overwritten."""
        for first in range(0, len(rows), MOVED_ROWS):  # rows move up, so the next ones are still there
            chosen = rows[first : first + MOVED_ROWS]
            self.bins[first : first + len(chosen)] = self.bins[chosen]
        return replace(self, bins=self.bins[: len(rows)], lists=self.lists.take_rows(rows), disk=None)

    def put_back(self, kept: np.ndarray, rows: np.ndarray, others: Binned) -> None:
        """Undo `keep_rows(kept)`; `others` are the documents of the other `rows`."""
        for first in reversed(range(0, len(kept), MOVED_ROWS)):  # rows move down, so those before are still there
            chosen = kept[first : first + MOVED_ROWS]
            self.bins[chosen] = self.bins[first : first + len(chosen)].copy()
        self.bins[rows] = others.bins

    @classmethod
    def of(cls, stored: StoredBins, store: BinStore) -> Binned:
        """The bins of a file."""
        disk = DiskRows(stored.file, store.rows_in_memory)
        return cls(stored.file.mapped, stored.lists, stored.binning, stored.info, disk)


def bin_data(
    data: Any,
    *,
    max_bins: int = MAX_BINS,
    max_cat_bins: int = MAX_BINS,
    binning: Binning | None = None,
    missing: str = "zero",
    store: BinStore | None = None,
    validation: bool = False,
) -> Binned:
    """Bins of a data set, a file or a table; validation data is binned with the `binning` of the training set.

    A file is read in blocks, twice if thresholds are to be learned; its float matrix is never in memory as a whole.
    A `store` keeps bins in a file if they do not fit into memory. `validation` is True for validation data.
    """
    data = open_data(data, missing=missing)
    most = {"max_bins": max_bins, "max_cat_bins": max_cat_bins}
    destination = _Destination(store or MemoryStore(), validation)
    if isinstance(data, Binned):
        _check_same_binning(data, binning, most)
        return data
    if isinstance(data, Dataset):
        return _bin_dataset(data, most, binning, destination)
    return _bin_source(data, most, binning, destination)


def bin_like(given: Any, train_set: Binned, *, missing: str = "zero", store: BinStore | None = None) -> Binned:
    """Bins of validation data with the thresholds of the training set; tables are matched by name."""
    data = open_data(given, missing=missing, wanted=train_set.feature_names, categories=train_set.categories)
    binned = bin_data(data, binning=train_set.binning, store=store, validation=True)
    check_feature_names(binned.feature_names, train_set.feature_names, binned.source)
    check_same_codes(binned.info, train_set.info)
    return binned


@dataclass(frozen=True)
class _Destination:
    """Where bins go."""

    store: BinStore
    validation: bool

    def find(self, source: Source, key: str | None) -> Binned | None:
        """Bins that an earlier run has written to a file."""
        stored = self.store.find(source, key, validation=self.validation)
        return None if stored is None else Binned.of(stored, self.store)

    def open_sink(self, source: Source | None, key: str | None, n_docs: int, binning: Binning) -> MemorySink | FileSink:
        width = -(-binning.n_features // LANES) * LANES
        sink = self.store.new_file(source, key, n_docs, width, validation=self.validation)
        return sink or MemorySink(n_docs, width)

    def binned(self, sink: MemorySink | FileSink, lists: Lists, binning: Binning, info: FeatureInfo) -> Binned:
        """The bins that were written to a sink."""
        if isinstance(sink, FileSink):
            return Binned.of(sink.stored(), self.store)
        return Binned(sink.bins if lists.order is None else sink.bins[lists.order], lists, binning, info)


class MemorySink:
    """Bins in memory, as `FileSink` has them in a file."""

    def __init__(self, n_docs: int, width: int) -> None:
        self.bins, self.n_docs = np.zeros((n_docs, width), BIN), 0

    def __enter__(self) -> MemorySink:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def reserve(self, n_rows: int, source: str) -> np.ndarray:
        """Where to put the bins of the next rows."""
        if self.n_docs + n_rows > len(self.bins):
            raise DataError(f"{source}: the file grew while it was read; start again")
        return self.bins[self.n_docs : self.n_docs + n_rows]

    def advance(self, n_rows: int) -> None:
        """The bins of the next rows are there."""
        self.n_docs += n_rows

    def finish(self, lists: Lists, binning: Binning, info: FeatureInfo) -> None:
        """All bins are there."""


def _bin_dataset(data: Dataset, most: dict[str, int], binning: Binning | None, destination: _Destination) -> Binned:
    sketch = BinningSketch(data.info, **most)
    if binning is None:
        destination.store.check_sample(data.n_docs, data.n_features, data.source)
        for block in data.blocks(in_user_order=True):  # the rows have the numbers that they have in a file
            sketch.add(block, source=data.source)
        binning = sketch.finish()
    _check_width(data.n_features, binning, data.source)
    lists = replace(data.lists, order=None)  # blocks are in the order of the lists
    with destination.open_sink(None, None, data.n_docs, binning) as sink:
        for block in data.blocks():
            _fill_rows(sink, block, binning, data.info)
        sink.finish(lists, binning, data.info)
    binned = destination.binned(sink, lists, binning, data.info)
    return replace(binned, lists=replace(binned.lists, order=data.lists.order))


def _bin_source(source: Source, most: dict[str, int], binning: Binning | None, destination: _Destination) -> Binned:
    key = destination.store.key(source, most, binning)
    found = destination.find(source, key)
    if found is not None:
        return found
    lists = None
    if binning is None or source.n_docs is None:  # else one pass is enough
        lists, binning = _first_pass(source, most, binning, None, destination)
        give_back_memory()
    n_docs = source.n_docs if lists is None else lists.n_docs
    assert n_docs is not None
    with destination.open_sink(source, key, n_docs, binning) as sink:
        if lists is None:
            lists, _ = _first_pass(source, most, binning, sink, destination)
        else:
            _second_pass(source, binning, sink, destination)
        if sink.n_docs != n_docs:
            change = "shrank" if sink.n_docs < n_docs else "grew"
            raise DataError(f"{source.path}: the file {change} while it was read; start again")
        info = source.info.with_names(binning.n_features)
        sink.finish(lists, binning, info)
    give_back_memory()
    return destination.binned(sink, lists, binning, info)


def _first_pass(
    source: Source,
    most: dict[str, int],
    binning: Binning | None,
    sink: MemorySink | FileSink | None,
    destination: _Destination,
) -> tuple[Lists, Binning]:
    """The lists, and the binning if none is given; writes the bins if there is a sink."""
    name = source.path
    growing = ListsBuilder(name)
    sketch = BinningSketch(source.info, **most, n_all=source.n_docs or 0)
    if binning is None:
        destination.store.check_sample(source.n_docs or 0, source.n_features or 0, name)
    width = n_docs = 0
    with reading_ahead(source, sampled_from=0 if binning is None else None) as blocks:
        for block in blocks:
            n_docs += block.n_docs
            if binning is None:
                destination.store.check_sample(n_docs, block.rows.shape[1], name)  # of text, which is not known before
                sketch.add(block.rows, source=name)
            elif sink is not None:
                _check_width(block.rows.shape[1], binning, name, narrower=block.columns is None)
                _fill(sink, block, binning, source)
            width = max(width, block.rows.shape[1])
            growing.append(block)
            destination.store.listener.prepare("reading the data", source.fraction_read)
    lists = growing.finish()
    binning = binning or sketch.finish()
    _check_width(width, binning, name, narrower=source.feature_names is None)
    check_narrow(source, width, binning.n_features)
    return lists, binning


def _second_pass(source: Source, binning: Binning, sink: MemorySink | FileSink, destination: _Destination) -> None:
    """Write the bins."""
    with reading_ahead(source) as blocks:
        for block in blocks:
            _fill(sink, block, binning, source)
            del block  # before the next one is waited for
            destination.store.listener.prepare("binning the data", source.fraction_read)


def _check_same_binning(data: Binned, binning: Binning | None, most: dict[str, int]) -> None:
    """Raise `DataError` if the data was binned with other thresholds."""
    if binning is None:
        n_bins, by_set = data.binning.n_bins, data.binning.categorical
        for (name, limit), chosen in zip(most.items(), (~by_set, by_set), strict=True):
            if n_bins[chosen].max(initial=1) > limit:
                raise DataError(f"{data.source}: has more than ", param(name, limit), " bins; bin it again")
        return
    if not binning.same_as(data.binning):
        raise DataError(f"{data.source}: was binned with other thresholds; use bin_data(..., binning=train.binning)")


def _fill(sink: MemorySink | FileSink, block: Block, binning: Binning, source: Source) -> None:
    rows = block.rows
    if source.feature_names is not None and rows.shape[1] == 0:  # only thresholds may be learned without all rows
        _check_width(0, binning, source.path)
    if not isinstance(rows, FeatureColumns):
        rows = widened(rows, binning.n_features, source.absent)
    _fill_rows(sink, rows, binning, source.info)


def _fill_rows(sink: MemorySink | FileSink, block: Rows, binning: Binning, info: FeatureInfo) -> None:
    for feature in binning.codes:
        check_codes(block[:, feature], info.name_of(feature), info.source)
    binning.transform(block, sink.reserve(len(block), info.source))
    sink.advance(len(block))


def _check_width(width: int, binning: Binning, source: str, *, narrower: bool = False) -> None:
    expected = binning.n_features
    if width != expected and not (narrower and width < expected):
        raise DataError(
            f"{source}: {counted(feature=width)}; expected {expected}, as in training; "
            "validation and test data must have the features of the training data"
        )

"""`Binned`: data with one byte per feature, made of arrays or streamed from a file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ranksieve.data.binning import Binning, BinningSketch
from ranksieve.data.blocks import Source, check_narrow, give_back_memory, widened
from ranksieve.data.dataset import Dataset
from ranksieve.data.features import Described, FeatureInfo, check_feature_names
from ranksieve.data.list_builder import ListBuilder
from ranksieve.data.lists import Lists
from ranksieve.data.read import open_data
from ranksieve.dtypes import BIN, MAX_BINS
from ranksieve.errors import DataError
from ranksieve.kernels.histograms import LANES
from ranksieve.text_formats import counted


@dataclass(frozen=True)
class Binned(Described):
    """Row-major bins (`n_docs` × padded features; the padding is zero), with their lists and thresholds."""

    bins: np.ndarray
    lists: Lists
    binning: Binning
    info: FeatureInfo

    @property
    def feature_names(self) -> tuple[str, ...]:
        return self.info.feature_names

    def take_rows(self, rows: np.ndarray) -> Binned:
        """Some documents, given by ascending rows, with the same thresholds; queries with none of them are left out."""
        return replace(self, bins=self.bins[rows], lists=self.lists.take_rows(rows))


def bin_data(data: Any, *, max_bins: int = MAX_BINS, binning: Binning | None = None, missing: str = "zero") -> Binned:
    """Bins of a data set, a file or a table; validation data is binned with the `binning` of the training set.

    A file is read in blocks, twice if thresholds are to be learned; its float matrix is never in memory as a whole.
    """
    data = open_data(data, missing=missing)
    if isinstance(data, Binned):
        _check_same_binning(data, binning, max_bins)
        return data
    if isinstance(data, Dataset):
        return _bin_dataset(data, max_bins, binning)
    return _bin_source(data, max_bins, binning)


def bin_like(given: Any, train_set: Binned, *, missing: str = "zero") -> Binned:
    """Bins of validation data with the thresholds of the training set; tables are matched by name."""
    data = open_data(given, missing=missing, wanted=train_set.feature_names)
    binned = bin_data(data, binning=train_set.binning)
    check_feature_names(binned.feature_names, train_set.feature_names, binned.source)
    return binned


def _bin_dataset(data: Dataset, max_bins: int, binning: Binning | None) -> Binned:
    sketch = BinningSketch(max_bins=max_bins)
    if binning is None:
        for block in data.blocks():
            sketch.add(block, source=data.source)
        binning = sketch.finish()
    _check_width(data.n_features, binning, data.source)
    bins = _empty_bins(data.n_docs, binning)
    start = 0
    for block in data.blocks():
        _fill(bins, start, block, binning, data.source)
        start += len(block)
    return Binned(bins, data.lists, binning, data.info)


def _bin_source(source: Source, max_bins: int, binning: Binning | None) -> Binned:
    bins = None
    if binning is not None and source.n_docs is not None:  # one pass is enough
        bins = _empty_bins(source.n_docs, binning)
    lists, binning = _first_pass(source, max_bins, binning, bins)
    give_back_memory()
    if bins is None:
        bins = _empty_bins(lists.n_docs, binning)
        _second_pass(source, binning, bins)
        give_back_memory()
    if lists.order is not None:
        bins = bins[lists.order]
    return Binned(bins, lists, binning, source.info.with_names(binning.n_features))


def _first_pass(
    source: Source, max_bins: int, binning: Binning | None, bins: np.ndarray | None
) -> tuple[Lists, Binning]:
    """The lists, and the binning if none is given; fills the bins if they are allocated."""
    name = source.path
    growing = ListBuilder(name)
    sketch = BinningSketch(max_bins=max_bins, fill=source.absent)
    width = start = 0
    for block in source.blocks():
        if binning is None:
            sketch.add(block.features, source=name)
        elif bins is not None:
            _check_width(block.features.shape[1], binning, name, narrower=True)
            _fill(bins, start, widened(block.features, binning.n_features, source.absent), binning, name)
            start += block.n_docs
        width = max(width, block.features.shape[1])
        growing.append(block)
    lists = growing.finish()
    binning = binning or sketch.finish()
    _check_width(width, binning, name, narrower=source.feature_names is None)
    check_narrow(source, width, binning.n_features)
    if bins is not None and start != len(bins):
        raise DataError(f"{name}: the file shrank while it was read; start again")
    return lists, binning


def _second_pass(source: Source, binning: Binning, bins: np.ndarray) -> None:
    """Fill the bins."""
    start = 0
    for block in source.blocks():
        features = widened(block.features, binning.n_features, source.absent)
        _fill(bins, start, features, binning, source.path)
        start += len(features)
        del block, features  # free them before the next are read
    if start != len(bins):
        raise DataError(f"{source.path}: the file shrank while it was read; start again")


def _check_same_binning(data: Binned, binning: Binning | None, max_bins: int) -> None:
    """Raise `DataError` if the data was binned with other thresholds."""
    if binning is None:
        if data.binning.n_bins.max(initial=1) > max_bins:
            raise DataError(f"{data.source}: has more than max_bins={max_bins} bins; bin it again")
        return
    same = binning is data.binning or (
        np.array_equal(binning.thresholds, data.binning.thresholds)
        and np.array_equal(binning.offsets, data.binning.offsets)
        and np.array_equal(binning.features, data.binning.features)
    )
    if not same:
        raise DataError(f"{data.source}: was binned with other thresholds; use bin_data(..., binning=train.binning)")


def _empty_bins(n_docs: int, binning: Binning) -> np.ndarray:
    width = -(-binning.n_features // LANES) * LANES
    return np.zeros((n_docs, width), BIN)


def _fill(bins: np.ndarray, start: int, block: np.ndarray, binning: Binning, source: str) -> None:
    if start + len(block) > len(bins):
        raise DataError(f"{source}: the file grew while it was read; start again")
    binning.transform(block, bins[start : start + len(block)])


def _check_width(width: int, binning: Binning, source: str, *, narrower: bool = False) -> None:
    expected = binning.n_features
    if width != expected and not (narrower and width < expected):
        raise DataError(
            f"{source}: {counted(feature=width)}; expected {expected}, as in training; "
            "validation and test data must have the features of the training data"
        )

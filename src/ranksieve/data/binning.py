"""`Binning`: thresholds that map feature values to one byte each, computed once on the full training set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ranksieve.data.categories import MAX_CATEGORIES, most_frequent
from ranksieve.data.dataset import BLOCK_ROWS
from ranksieve.data.feature_columns import FeatureColumns, Rows
from ranksieve.data.features import FeatureInfo, infinite_feature
from ranksieve.data.lists import starts_of
from ranksieve.data.sampled_rows import key_of, parts_of, share_below
from ranksieve.dtypes import BIN, FEATURE, MAX_BINS, MISSING_BIN
from ranksieve.errors import DataError
from ranksieve.kernels import binning as kernels
from ranksieve.kernels.quantize import make_heaps

SAMPLE_ROWS = 65_536  # rows that quantiles are taken from, 250 a bin; all of them in smaller sets
LARGEST = np.finfo(FEATURE).max  # threshold of "every value left, missing right"
NO_INFO = FeatureInfo()  # features f1, f2, …, none of them categorical
NO_CUTS = np.empty(0, FEATURE)


@dataclass(frozen=True)
class Binning:
    """Column c of the bins holds feature `features[c]`, cut at `thresholds[offsets[c]:offsets[c + 1]]`.

    Bin b holds values in (t[b-1], t[b]]. Columns are ordered for the split search: features without missing values
    first, then by decreasing number of bins, so that features searched together take the same time.
    A categorical feature f has no thresholds: bin b holds category `codes[f][b]`, the most frequent ones first; all
    other categories share the bin of missing values.
    """

    thresholds: np.ndarray
    offsets: np.ndarray
    features: np.ndarray
    codes: Mapping[int, np.ndarray] = field(default_factory=dict)

    @property
    def n_features(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_bins(self) -> np.ndarray:
        """Bins of each column that values can fall into."""
        n_bins = np.diff(self.offsets) + 1
        for feature, codes in self.codes.items():
            n_bins[self._column_of[feature]] = max(1, len(codes))
        return n_bins

    @property
    def categorical(self) -> np.ndarray:
        """Whether each column is that of a categorical feature."""
        return np.isin(self.features, list(self.codes))

    def same_as(self, other: Binning) -> bool:
        """Whether both make the same bins."""
        arrays = (self.thresholds, other.thresholds), (self.offsets, other.offsets), (self.features, other.features)
        return self is other or (
            all(np.array_equal(*pair) for pair in arrays)
            and self.codes.keys() == other.codes.keys()
            and all(np.array_equal(codes, other.codes[feature]) for feature, codes in self.codes.items())
        )

    def threshold(self, column: np.ndarray, split_bin: np.ndarray) -> np.ndarray:
        """The threshold equal to `bin <= split_bin`, exact for every float32 value."""
        last = split_bin >= self.n_bins[column] - 1
        index = np.minimum(self.offsets[column] + split_bin, max(len(self.thresholds) - 1, 0))
        values = self.thresholds[index] if len(self.thresholds) else np.zeros(len(index), FEATURE)
        return np.where(last, LARGEST, values).astype(np.float64)

    def transform(self, block: Rows, out: np.ndarray) -> None:
        """Write the bins of float32 rows into the leading columns of `out`; columns take less time."""
        assert block.shape[1] == self.n_features
        values, addresses = np.empty(0, FEATURE), np.empty(0, np.int64)
        if isinstance(block, FeatureColumns):
            addresses = block.addresses
        else:
            values = np.ascontiguousarray(block).reshape(-1)
        kernels.to_bins(values, addresses, self._column_of, *self._heaps, out[: len(block)])
        for feature, table in self._bins_of_codes.items():
            values = block[:, feature]
            known = (values >= 0.0) & (values < len(table))
            bins = np.full(len(values), MISSING_BIN, BIN)
            bins[known] = table[values[known].astype(np.int64)]
            out[:, self._column_of[feature]] = bins

    @cached_property
    def _bins_of_codes(self) -> dict[int, np.ndarray]:
        """The bin of each category of the categorical features."""
        tables = {}
        for feature, codes in self.codes.items():
            tables[feature] = np.full(int(codes.max(initial=-1)) + 1, MISSING_BIN, BIN)
            tables[feature][codes] = np.arange(len(codes))
        return tables

    @cached_property
    def _heaps(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return heaps_of(self.thresholds, self.offsets)

    @cached_property
    def _column_of(self) -> np.ndarray:
        """The column of each feature."""
        return np.argsort(self.features)


class BinningSketch:
    """Computes a `Binning` from blocks of rows in one pass.

    It looks at the rows that `sampled_rows` names: of large data not all. It keeps the distinct values of features that
    have few, and the rows with the smallest hash of their row number: a uniform sample that does not depend on the
    sizes of the blocks. Sketches of parts of the data can be merged; each is given the number of its `first_row`. With
    the number of all rows, `n_all`, a part keeps only rows that may be used.
    """

    def __init__(
        self,
        info: FeatureInfo = NO_INFO,
        *,
        max_bins: int = MAX_BINS,
        sample_rows: int = SAMPLE_ROWS,
        first_row: int = 0,
        n_all: int = 0,
        max_cat_bins: int = MAX_BINS,
    ) -> None:
        self._max_bins = max_bins
        self._max_cat_bins = max_cat_bins
        self._info, self._fill = info, info.absent
        self._code_counts: dict[int, Counter[int]] = {}  # how often each category of a feature occurs
        self._sample_rows = sample_rows
        self._first_row = first_row
        self._n_rows = self._n_sampled = 0
        self._distinct = np.empty((0, max_bins), FEATURE)
        self._counts = np.zeros(0, np.int64)
        self._missing = np.zeros(0, np.bool_)
        self._kept: list[tuple[np.ndarray, np.ndarray]] = []
        self._n_kept = 0
        # of n_all rows those of the sample, and 12 standard deviations more, have keys below this
        share = share_below(sample_rows + 12.0 * sample_rows**0.5, n_all)
        self._limit = np.uint64(min(int(share * 2.0**64), 2**64 - 1) if n_all else 2**64 - 1)

    def add(self, block: Rows, *, source: str = "the data") -> None:
        """Add the next rows; a block may have more features than those before it, or none if no row is sampled."""
        self._widen(block.shape[1])
        self._count_codes(block, source)
        first = self._first_row + self._n_rows
        for start, stop, weight in parts_of(first, len(block)):
            if weight:
                self._add_sampled(block[start:stop], first + start, weight, source)
            elif np.isinf(block[start:stop]).any():
                row, feature = np.argwhere(np.isinf(block[start:stop]))[0]
                raise infinite_feature(source, self._info.name_of(feature), self._n_rows + start + int(row) + 1)
        self._n_rows += len(block)
        if self._n_kept > self._sample_rows * 5 // 4:
            self._shrink()

    def _add_sampled(self, block: np.ndarray, first: int, weight: int, source: str) -> None:
        """Add rows, from number `first` on, that each stand for `weight` rows."""
        columns = np.ascontiguousarray(block.T)
        bad = np.empty(len(columns), np.int64)
        kernels.track_distinct(columns, self._distinct, self._counts, self._missing, bad)
        if (bad >= 0).any():
            feature = int(np.argmax(bad >= 0))
            raise infinite_feature(source, self._info.name_of(feature), first - self._first_row + int(bad[feature]) + 1)
        keys = key_of(np.arange(first, first + len(block), dtype=np.uint64), weight)
        chosen = np.flatnonzero(keys <= self._limit)
        self._kept.append((keys[chosen], np.take(columns, chosen, axis=1)))
        self._n_kept += len(chosen)
        self._n_sampled += len(block)

    def _count_codes(self, block: Rows, source: str) -> None:
        for feature, counts in self._code_counts.items():
            if feature >= block.shape[1]:
                continue
            values = block[:, feature]
            check_codes(values, self._info.name_of(feature), source)
            values = values[values >= 0]  # not NaN, and negative ones are missing too
            codes, times = np.unique(values.astype(np.int64), return_counts=True)
            counts.update(dict(zip(codes.tolist(), times.tolist(), strict=True)))

    def recode(self, tables: Mapping[int, np.ndarray | None]) -> None:
        """Give categories the numbers in a feature's table; None leaves them."""
        for feature, table in tables.items():
            if table is not None:
                counts = self._code_counts[feature]
                self._code_counts[feature] = Counter({int(table[code]): times for code, times in counts.items()})

    def merge(self, other: BinningSketch) -> None:
        """Add the sketch of other rows of the same data; the order of merging does not matter."""
        width = max(len(self._counts), len(other._counts))
        self._widen(width)
        other._widen(width)
        # the other's distinct values as if they were data
        size = np.minimum(other._counts, self._max_bins)
        values = np.where(np.arange(self._max_bins) < size[:, None], other._distinct, FEATURE(np.nan))
        no_flags, no_rows = np.zeros(width, np.bool_), np.empty(width, np.int64)
        kernels.track_distinct(values, self._distinct, self._counts, no_flags, no_rows)
        self._counts = np.where(other._counts > self._max_bins, self._max_bins + 1, self._counts)
        self._missing |= other._missing
        for feature, counts in other._code_counts.items():
            self._code_counts[feature].update(counts)
        self._kept.extend(other._kept)
        self._n_kept += other._n_kept
        self._n_rows += other._n_rows
        self._n_sampled += other._n_sampled
        self._limit = min(self._limit, other._limit)
        self._shrink()

    def finish(self) -> Binning:
        """The thresholds of all rows added."""
        self._shrink()
        sample, self._kept = [columns for _, columns in self._kept], []
        codes = {f: self._frequent_codes(counts) for f, counts in self._code_counts.items()}
        numbers = np.arange(len(self._counts))
        cuts = [NO_CUTS if f in codes else self._cuts(f, sample) for f in numbers.tolist()]
        sizes = np.array([len(codes[f]) - 1 if f in codes else len(some) for f, some in enumerate(cuts)])
        features = np.lexsort((-sizes, self._missing | np.isin(numbers, list(codes))))
        sizes[list(codes)] = 0
        return Binning(np.concatenate([cuts[f] for f in features]), starts_of(sizes[features]), features, codes)

    def _frequent_codes(self, counts: Counter[int]) -> np.ndarray:
        """The most frequent categories first, equally frequent ones by number."""
        return np.array(most_frequent(counts, self._max_cat_bins), np.int64)

    def _cuts(self, f: int, sample: list[np.ndarray]) -> np.ndarray:
        """The thresholds of a feature: between all its values where they are few, else at quantiles of the sample."""
        if self._counts[f] <= self._max_bins:
            values = self._distinct[f, : self._counts[f]]
            max_bins = max(len(values), 1)
        else:
            values = np.sort(np.concatenate([_column(columns, f, self._fill) for columns in sample]))
            values, max_bins = values[: len(values) - np.isnan(values).sum()], self._max_bins
        cuts = np.empty(self._max_bins, FEATURE)
        return cuts[: kernels.quantile_cuts(values, max_bins, cuts)]

    def _widen(self, width: int) -> None:
        known = len(self._counts)
        new = width - known
        if new <= 0:
            return
        for feature in range(known, width):
            if self._info.name_of(feature) in self._info.categories:
                before = 0 if np.isnan(self._fill) else self._n_rows
                self._code_counts[feature] = Counter({int(self._fill): before} if before else {})
        self._distinct = np.concatenate([self._distinct, np.zeros((new, self._max_bins), FEATURE)])
        # rows before this one did not have the new features: these have the fill value
        seen = int(self._n_sampled > 0 and not np.isnan(self._fill))
        self._counts = np.concatenate([self._counts, np.full(new, seen, np.int64)])
        absent = self._n_sampled > 0 and np.isnan(self._fill)
        self._missing = np.concatenate([self._missing, np.full(new, absent)])

    def _shrink(self) -> None:
        if self._n_kept <= self._sample_rows:
            return
        keys = np.concatenate([k for k, _ in self._kept])
        self._limit = np.partition(keys, self._sample_rows - 1)[self._sample_rows - 1]
        for place, (k, columns) in enumerate(self._kept):  # one after the other, so that few rows are there twice
            self._kept[place] = k[k <= self._limit], columns[:, k <= self._limit]
        self._n_kept = sum(len(k) for k, _ in self._kept)


def sample_bytes(n_rows: int, n_features: int) -> int:
    """The most that the sample of a sketch of so many rows takes."""
    return min(n_rows, SAMPLE_ROWS * 5 // 4 + BLOCK_ROWS) * n_features * np.dtype(FEATURE).itemsize


def _column(columns: np.ndarray, feature: int, fill: float) -> np.ndarray:
    """A feature of rows; rows that were read before it occurred first do not have it."""
    return columns[feature] if feature < len(columns) else np.full(columns.shape[1], fill, FEATURE)


def check_codes(values: np.ndarray, feature: str, source: str) -> None:
    """Raise `DataError` for values of a categorical feature that are not numbers of categories.

    NaN and negative integers are missing.
    """
    with np.errstate(invalid="ignore"):
        wrong = values[~np.isnan(values) & ((values != np.floor(values)) | (values >= MAX_CATEGORIES))]
    if len(wrong):
        raise DataError(
            f"{source}: feature {feature!r} is categorical and holds {wrong[0]:g}; expected integers from 0 to "
            f"{MAX_CATEGORIES - 1:,}, or texts"
        )


def heaps_of(thresholds: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The heaps of columns of ascending thresholds: their values, where each begins, and its levels."""
    levels = np.maximum(4, np.ceil(np.log2(np.diff(starts) + 1))).astype(np.int64)
    heap_starts = np.concatenate([[0], np.cumsum(1 << levels)]).astype(np.int64)
    heaps = np.zeros(heap_starts[-1], np.float32)
    make_heaps(thresholds, starts, levels, heap_starts, heaps)
    return heaps, heap_starts[:-1].copy(), levels

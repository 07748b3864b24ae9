import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranksieve.data.binned import bin_data
from ranksieve.data.binning import Binning, BinningSketch
from ranksieve.data.dataset import Dataset
from ranksieve.data.feature_columns import FeatureColumns
from ranksieve.data.letor import write_letor
from ranksieve.data.parquet import write_parquet
from ranksieve.errors import DataError
from samples import small_dataset

values = st.floats(width=32, allow_infinity=False, allow_nan=True)


@settings(max_examples=60, deadline=None)
@given(st.lists(values, min_size=1, max_size=60), st.integers(2, 9))
def test_bins_keep_the_order_and_thresholds_separate_them(column, max_bins):
    block = np.array(column, np.float32)[:, None]
    sketch = BinningSketch(max_bins=max_bins)
    sketch.add(block)
    binning = sketch.finish()
    bins = np.zeros((len(block), 16), np.uint8)
    binning.transform(block, bins)
    known = ~np.isnan(block[:, 0])
    assert (bins[~known, 0] == 255).all()
    x, b = block[known, 0], bins[known, 0]
    assert binning.n_bins[0] <= max_bins
    if known.any():
        assert b.max() < binning.n_bins[0]
    if len(np.unique(x)) <= max_bins:
        assert len(np.unique(b)) == len(np.unique(x)), "few distinct values are kept apart exactly"
    for split in range(binning.n_bins[0]):
        threshold = binning.threshold(np.array([0]), np.array([split]))[0]
        np.testing.assert_array_equal(x <= threshold, b <= split)


def test_thresholds_do_not_depend_on_blocks():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 3)).astype(np.float32)
    results = []
    for size in (5000, 77):
        sketch = BinningSketch(max_bins=20, sample_rows=700)
        for start in range(0, len(X), size):
            sketch.add(X[start : start + size])
        results.append(sketch.finish().thresholds)
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("cuts", [[0, 5000], [0, 1200, 1201, 4000, 5000]])
def test_sketches_of_parts_merge_to_the_sketch_of_the_whole(cuts):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 4)).astype(np.float32)
    X[:, 1] = rng.integers(0, 30, len(X))  # too many values to keep apart, though no part has all of them early
    X[:, 2] = rng.integers(0, 9, len(X))
    X[4100:, 3] = np.nan
    whole = BinningSketch(max_bins=20, sample_rows=700)
    whole.add(X)
    parts = []
    for start, stop in itertools.pairwise(cuts):
        part = BinningSketch(max_bins=20, sample_rows=700, first_row=start, n_all=len(X))
        part.add(X[start:stop])
        parts.append(part)
    parts.reverse()
    for part in parts[1:]:
        parts[0].merge(part)
    ours, theirs = parts[0].finish(), whole.finish()
    for name in ("thresholds", "offsets", "features"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


def test_a_narrower_part_lacks_the_last_features():
    rows = np.arange(1, 13, dtype=np.float32).reshape(4, 3)
    whole = BinningSketch()
    whole.add(np.concatenate([[[1, 2, 0]], rows]).astype(np.float32))
    narrow, wide = BinningSketch(), BinningSketch(first_row=1)
    narrow.add(np.array([[1, 2]], np.float32))
    wide.add(rows)
    wide.merge(narrow)
    np.testing.assert_array_equal(wide.finish().thresholds, whole.finish().thresholds)


@pytest.mark.parametrize("n", [1, 127, 128, 300])
def test_columns_have_the_bins_of_rows(n):
    """Columns that are parts of longer arrays, too: values before and behind them do not matter."""
    X = np.random.default_rng(n).standard_normal((n + 7, 18)).astype(np.float32)
    X[::5, 3] = np.nan
    sketch = BinningSketch(max_bins=40)
    sketch.add(X)
    binning = sketch.finish()
    by_row, by_column = np.zeros((2, n, 32), np.uint8)
    binning.transform(X[3 : n + 3], by_row)
    binning.transform(FeatureColumns([np.ascontiguousarray(column)[3 : n + 3] for column in X.T]), by_column)
    np.testing.assert_array_equal(by_column, by_row)


def test_bins_hold_about_equally_many_values_and_frequent_values_have_their_own():
    rng = np.random.default_rng(0)
    x = np.concatenate([np.zeros(6000), rng.standard_normal(4000)]).astype(np.float32)[:, None]
    sketch = BinningSketch(max_bins=50)
    sketch.add(x)
    binning = sketch.finish()
    bins = np.zeros((len(x), 16), np.uint8)
    binning.transform(x, bins)
    counts = np.bincount(bins[:, 0])
    zero = bins[0, 0]
    assert counts[zero] == 6000
    assert np.delete(counts, zero).max() <= 3 * 4000 / 49


def test_files_and_arrays_give_the_same_bins(tmp_path):
    data = small_dataset()
    data = Dataset.from_arrays(np.nan_to_num(data.features), data.labels, group=np.diff(data.offsets))
    write_letor(data, tmp_path / "a.txt.gz")
    write_parquet(data, tmp_path / "a.parquet")
    expected = bin_data(data)
    for name in ("a.txt.gz", "a.parquet"):
        binned = bin_data(tmp_path / name)
        np.testing.assert_array_equal(binned.bins, expected.bins)
        np.testing.assert_array_equal(binned.lists.labels, expected.lists.labels)
        np.testing.assert_array_equal(binned.lists.offsets, expected.lists.offsets)


def test_queries_that_lie_apart_are_regrouped_in_bins_too(tmp_path):
    (tmp_path / "apart.txt").write_text("1 qid:1 1:1\n0 qid:2 1:2\n0 qid:1 1:3 2:7\n2 qid:2 1:4\n")
    binned = bin_data(tmp_path / "apart.txt")
    assert binned.lists.order.tolist() == [0, 2, 1, 3]
    assert binned.bins[:, 0].tolist() == [0, 2, 1, 3]
    assert binned.bins[:, 1].tolist() == [0, 1, 0, 0]


def test_narrower_letor_validation_is_padded_and_wider_refused(tmp_path):
    (tmp_path / "train.txt").write_text("1 qid:1 1:1 2:5\n0 qid:1 1:2 2:6\n")
    (tmp_path / "narrow.txt").write_text("1 qid:1 1:1\n0 qid:1\n")
    (tmp_path / "dense.txt").write_text("1 qid:1 1:1\n0 qid:1 1:2\n")
    (tmp_path / "wide.txt").write_text("1 qid:1 1:1 3:1\n")
    train = bin_data(tmp_path / "train.txt")
    with pytest.warns(UserWarning, match="no feature beyond 1 occurs, but 2 are expected"):
        narrow = bin_data(tmp_path / "narrow.txt", binning=train.binning)
    assert narrow.bins[:, 1].tolist() == [0, 0]
    with pytest.raises(DataError, match="every line names features 1 to 1 and no other, but 2 are expected"):
        bin_data(tmp_path / "dense.txt", binning=train.binning)
    with pytest.raises(ValueError, match="3 features; expected 2, as in training"):
        bin_data(tmp_path / "wide.txt", binning=train.binning)


@pytest.mark.parametrize(("n_rows", "n_features"), [(1, 1), (16, 15), (130, 16), (257, 17), (128, 40)])
def test_bins_count_the_thresholds_below(n_rows, n_features):
    rng = np.random.default_rng(n_rows)
    sizes = rng.integers(0, 255, n_features)
    sizes[0] = 254
    cuts = [np.sort(rng.choice(4096, size, replace=False).astype(np.float32)) for size in sizes]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    binning = Binning(np.concatenate(cuts), offsets, rng.permutation(n_features))
    values = rng.integers(-1, 4097, (n_rows, n_features)).astype(np.float32)  # many lie on a threshold
    values[rng.random(values.shape) < 0.1] = np.nan
    out = np.zeros((n_rows, -(-n_features // 16) * 16), np.uint8)
    binning.transform(values, out)
    for column, feature in enumerate(binning.features):
        expected = np.searchsorted(cuts[column], values[:, feature])
        assert (out[:, column] == np.where(np.isnan(values[:, feature]), 255, expected)).all()
    assert not out[:, n_features:].any()

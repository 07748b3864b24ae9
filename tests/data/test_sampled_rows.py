import itertools
from dataclasses import replace

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.data import parquet, sampled_rows
from ranksieve.data.binned import bin_data
from ranksieve.data.binning import BinningSketch
from ranksieve.data.blocks import reading_ahead
from ranksieve.data.joined import JoinedSource, Piece
from ranksieve.data.letor import write_letor
from ranksieve.data.read import open_data
from ranksieve.errors import DataError

STRIPE = 16
N = 90 * STRIPE + 5


@pytest.fixture
def short_stripes(monkeypatch):
    monkeypatch.setattr(sampled_rows, "STRIPE", STRIPE)
    monkeypatch.setattr(sampled_rows, "ALL", 4)
    monkeypatch.setattr(parquet, "GROUP_ROWS", STRIPE)


def large_data():
    """Values of later rows are larger, some features have few values, and one has a value in late rows only."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 4)).astype(np.float32) + np.linspace(0, 3, N, dtype=np.float32)[:, None]
    X[:, 1] = rng.integers(0, 9, N)
    X[:, 2] = np.arange(N) > 0.9 * N
    X[rng.random(N) < 0.1, 3] = np.nan
    sizes = np.append(np.full(N // 7, 7), N % 7)
    return rs.Dataset.from_arrays(X, rng.integers(0, 3, N), group=sizes)


def weights(first, n):
    """The weight of each row, one after the other."""
    return [sampled_rows.weight_of(row // sampled_rows.STRIPE) for row in range(first, first + n)]


@pytest.mark.parametrize(("first", "n"), [(0, N), (5, 40), (70, 1), (3 * STRIPE, STRIPE), (200, 700)])
def test_parts_have_the_weights_of_their_rows(short_stripes, first, n):
    parts = list(sampled_rows.parts_of(first, n))
    assert [weight for start, stop, weight in parts for _ in range(start, stop)] == weights(first, n)
    assert all(before[2] != after[2] for before, after in itertools.pairwise(parts))
    assert sampled_rows.is_sampled(first, n) == any(weights(first, n))


def test_keys_are_those_of_splitmix64():
    """Its first outputs with the seed 0, as in Vigna's reference; another hash would change the bits of models."""
    numbers = np.arange(3, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    expected = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert sampled_rows.key_of(numbers, 1).tolist() == expected
    assert sampled_rows.key_of(numbers, 4).tolist() == [key // 4 for key in expected]


def test_few_stripes_of_large_data_stand_for_all_rows():
    assert [sampled_rows.weight_of(stripe) for stripe in (0, 15, 16, 17, 32, 34, 63, 64, 68, 76)] == [
        1, 1, 0, 2, 0, 4, 0, 0, 8, 8,
    ]  # fmt: skip
    for n in (100, 262_144, 2_637_786, 10**8):
        counts = sampled_rows.rows_by_weight(n)
        assert sum(weight * rows for weight, rows in counts.items()) == pytest.approx(n, abs=4 * sampled_rows.STRIPE)
        assert sum(counts.values()) <= min(n, 2**19 + 2**18 + n / 8)


def test_files_parts_of_files_and_arrays_have_the_same_thresholds(short_stripes, tmp_path):
    data = large_data()
    rs.io.write_parquet(data, tmp_path / "all.parquet")
    cut = data.lists.n_queries // 3
    rs.io.write_parquet(data.take_queries(np.arange(cut)), tmp_path / "first.parquet")
    rs.io.write_parquet(data.take_queries(np.arange(cut, data.lists.n_queries)), tmp_path / "second.parquet")
    joined = JoinedSource([Piece(str(tmp_path / name)) for name in ("first.parquet", "second.parquet")])
    assert joined.n_docs == N
    expected = bin_data(data, max_bins=20)
    for given in (tmp_path / "all.parquet", joined):
        binned = bin_data(given, max_bins=20)
        assert binned.binning.same_as(expected.binning)
        np.testing.assert_array_equal(binned.bins, expected.bins)
        np.testing.assert_array_equal(binned.lists.labels, expected.lists.labels)
        np.testing.assert_array_equal(binned.lists.offsets, expected.lists.offsets)


def test_rows_of_scattered_queries_have_their_numbers_in_the_file(short_stripes, tmp_path):
    data = large_data()
    qid = np.random.default_rng(1).integers(0, 50, N)
    data = rs.Dataset.from_arrays(np.nan_to_num(data.features), data.labels, qid=qid)
    rs.io.write_parquet(data, tmp_path / "all.parquet")
    write_letor(data, tmp_path / "all.txt")
    expected = bin_data(data, max_bins=20)
    in_list_order = data.take_queries(np.arange(data.lists.n_queries))
    assert not bin_data(in_list_order, max_bins=20).binning.same_as(expected.binning)
    for path in (tmp_path / "all.parquet", tmp_path / "all.txt"):
        for given in (path, rs.read(path)):
            binned = bin_data(given, max_bins=20)
            assert binned.binning.same_as(expected.binning)
            np.testing.assert_array_equal(binned.bins, expected.bins)


@pytest.mark.parametrize("times", [1, 2])
def test_sources_of_sources_have_the_same_bins(short_stripes, tmp_path, times):
    data = large_data()
    cuts = [0, 40, 90, 130, data.lists.n_queries]
    for number, (start, stop) in enumerate(itertools.pairwise(cuts)):
        rs.io.write_parquet(data.take_queries(np.arange(start, stop)), tmp_path / f"{number}.parquet")
    first, *middle, last = [Piece(str(tmp_path / f"{number}.parquet")) for number in range(4)]
    outer = JoinedSource([first, Piece(JoinedSource([Piece(JoinedSource(middle))])), last])
    expected = bin_data(data, max_bins=20)
    for _ in range(times):
        binned = bin_data(outer, max_bins=20)
    assert binned.binning.same_as(expected.binning)
    np.testing.assert_array_equal(binned.bins, expected.bins)


def test_bins_of_rows_without_features_are_refused(short_stripes, tmp_path):
    rs.io.write_parquet(large_data(), tmp_path / "all.parquet")
    source = open_data(tmp_path / "all.parquet")
    blocks, passes = source.blocks, []

    def without_features_when_read_again(rows):
        passes.append(rows)
        for block in blocks(rows):
            yield block if len(passes) == 1 else replace(block, features=block.features[:, :0], columns=None)

    source.blocks = without_features_when_read_again
    with pytest.raises(DataError, match=r"all.parquet: 0 features; expected 4"):
        bin_data(source)


def test_text_has_the_same_thresholds(short_stripes, tmp_path):
    data = large_data()
    data = rs.Dataset.from_arrays(np.nan_to_num(data.features), data.labels, group=data.lists.sizes)
    write_letor(data, tmp_path / "all.txt")
    assert bin_data(tmp_path / "all.txt", max_bins=20).binning.same_as(bin_data(data, max_bins=20).binning)


def test_row_groups_that_are_not_sampled_are_not_decoded(short_stripes, tmp_path):
    data = large_data()
    rs.io.write_parquet(data, tmp_path / "all.parquet")
    source = open_data(tmp_path / "all.parquet")
    for first in (0, 7):
        with reading_ahead(source, sampled_from=first) as blocks:
            widths = np.concatenate([np.full(block.n_docs, block.rows.shape[1]) for block in blocks])
        needed = np.array([any(weights(first + row, min(STRIPE, N - row))) for row in range(0, N, STRIPE)])
        np.testing.assert_array_equal(widths, np.repeat(np.where(needed, 4, 0), STRIPE)[:N])
        assert needed.mean() < 0.5
    with reading_ahead(source) as blocks:
        assert {block.rows.shape[1] for block in blocks} == {4}


def test_all_categories_are_counted(short_stripes, tmp_path):
    rng = np.random.default_rng(0)
    X = np.stack([rng.standard_normal(N), np.arange(N) // STRIPE], axis=1)
    data = rs.Dataset.from_arrays(X, np.zeros(N), group=[N]).with_features(["a", "c"], categorical="c")
    rs.io.write_parquet(data, tmp_path / "all.parquet")
    for given in (data, tmp_path / "all.parquet"):
        assert len(bin_data(given).binning.codes[1]) == 91


@pytest.mark.parametrize("n", [0, 1, 60, 500, N])
@pytest.mark.parametrize("n_expected", [1.0, 30.0, 150.0, 250.0, 1e4])
def test_as_many_rows_as_expected_have_keys_below_the_share(short_stripes, n, n_expected):
    share, counts = sampled_rows.share_below(n_expected, n), sampled_rows.rows_by_weight(n)
    found = sum(min(1.0, weight * share) * rows for weight, rows in counts.items())
    assert found == pytest.approx(min(n_expected, sum(counts.values())))
    assert sorted(counts, reverse=True) == list(counts) and sum(counts.values()) == np.count_nonzero(weights(0, n))


@pytest.mark.parametrize("cuts", [[0, N], [0, 30, 31, 700, N]])
@pytest.mark.parametrize("size", [30, 200, 250, 270, 2000])
def test_sketches_of_parts_merge_to_the_sketch_of_the_whole(short_stripes, cuts, size):
    """Also where the sample has most or all of the rows that thresholds are learned from."""
    X = large_data().features
    whole = BinningSketch(max_bins=20, sample_rows=size)
    for start in range(0, N, 77):
        whole.add(X[start : start + 77])
    parts = []
    for start, stop in itertools.pairwise(cuts):
        part = BinningSketch(max_bins=20, sample_rows=size, first_row=start, n_all=N)
        part.add(X[start:stop])
        parts.append(part)
    parts.reverse()
    for part in parts[1:]:
        parts[0].merge(part)
    assert parts[0].finish().same_as(whole.finish())


def test_the_sample_stands_for_all_rows(short_stripes):
    """More of the first rows than of the last are looked at, and later rows have larger values."""
    X = np.linspace(0, 1, 400 * STRIPE, dtype=np.float32)[:, None]
    sketch = BinningSketch(max_bins=5, sample_rows=600)
    sketch.add(X)
    shares = np.searchsorted(X[:, 0], sketch.finish().thresholds) / len(X)
    np.testing.assert_allclose(shares, [0.2, 0.4, 0.6, 0.8], atol=0.06)


def test_an_infinite_value_is_refused_in_rows_that_are_not_sampled(short_stripes):
    X = np.zeros((N, 2))
    X[4 * STRIPE, 1] = np.inf
    assert not sampled_rows.is_sampled(4 * STRIPE, 1)
    with pytest.raises(DataError, match=rf"feature 'f2' of row {4 * STRIPE + 1} is infinite"):
        bin_data(rs.Dataset.from_arrays(X, np.zeros(N), group=[N]))

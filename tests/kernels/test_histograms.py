import numpy as np
import pytest

from naive_trees import naive_histogram
from ranksieve.kernels.histograms import (
    CHUNK,
    LANES,
    Columns,
    TreeRows,
    add_histogram,
    add_members,
    build_histogram,
    sum_leaf,
)

N, WIDTH, N_BINS = 90, 2 * LANES, 7


def sample_rows(seed=0, n=N, width=WIDTH):
    """Rows of random bins, some missing, with random integers to sum."""
    rng = np.random.default_rng(seed)
    bins = rng.integers(0, N_BINS, (n, width)).astype(np.uint8)
    bins[rng.random(bins.shape) < 0.1] = 255
    members = rng.permutation(n).astype(np.int32)
    packed, hess = rng.integers(-999, 999, n), rng.integers(0, 999, n)
    return TreeRows(bins, members, np.empty_like(members), packed, hess)


def summed(rows, start, stop):
    members = rows.members[start:stop]
    return naive_histogram(rows.bins[members], rows.packed[members], rows.hess[members])


def test_a_histogram_sums_the_rows_of_every_bin():
    rows, n_bins = sample_rows(), np.full(WIDTH, N_BINS)
    hist = np.zeros((WIDTH // LANES, 2, 256, LANES), np.int64)
    build_histogram(rows, 10, 70, n_bins, 0, WIDTH, hist)
    np.testing.assert_array_equal(hist, summed(rows, 10, 70))
    build_histogram(rows, 0, 5, n_bins, LANES, WIDTH, hist[1:])  # columns of the second group only, what was there goes
    np.testing.assert_array_equal(hist[0], summed(rows, 10, 70)[0])
    np.testing.assert_array_equal(hist[1], summed(rows, 0, 5)[1])


@pytest.mark.parametrize("n_planes", [1, 2])
@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("n", [0, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 3])
def test_rows_are_summed_in_chunks(n, groups, n_planes):
    rows, width = sample_rows(2, n + 5, groups * LANES), groups * LANES
    hist = np.zeros((groups, n_planes, 256, LANES), np.int64)
    given = rows if n_planes == 2 else rows._replace(hess=np.empty(0, np.int64))
    build_histogram(given, 5, n + 5, np.full(width, N_BINS), 0, width, hist)
    expected = summed(rows, 5, n + 5)[:, :n_planes]
    np.testing.assert_array_equal(hist, expected)
    hist[-1:] = -7
    build_histogram(given, 5, n + 5, np.full(width, N_BINS), width - LANES, width, hist[-1:])
    np.testing.assert_array_equal(hist[-1][:, :N_BINS], expected[-1][:, :N_BINS])
    np.testing.assert_array_equal(hist[-1][:, 255], expected[-1][:, 255])


def test_counts_that_are_there_already_are_subtracted():
    rows, n = sample_rows(3, CHUNK + 9)._replace(hess=np.empty(0, np.int64)), CHUNK + 9
    hist, expected = (np.zeros((WIDTH // LANES, 1, 256, LANES), np.int64) for _ in range(2))
    add_members(rows, 0, n, 1, 0, WIDTH, hist)
    add_members(rows._replace(packed=rows.packed - 1), 0, n, 0, 0, WIDTH, expected)
    np.testing.assert_array_equal(hist, expected)


def test_one_plane_sums_gradients_only():
    rows = sample_rows()._replace(hess=np.empty(0, np.int64))
    hist = np.zeros((WIDTH // LANES, 1, 256, LANES), np.int64)
    build_histogram(rows, 0, N, np.full(WIDTH, N_BINS), 0, WIDTH, hist)
    np.testing.assert_array_equal(hist[:, 0], summed(sample_rows(), 0, N)[:, 0])


def test_parent_histogram_is_left_plus_right():
    rows, n_bins = sample_rows(), np.full(WIDTH, N_BINS)
    hists = np.zeros((3, WIDTH // LANES, 2, 256, LANES), np.int64)
    for hist, (start, stop) in zip(hists, [(0, N), (0, N // 3), (N // 3, N)], strict=True):
        build_histogram(rows, start, stop, n_bins, 0, WIDTH, hist)
    add_histogram(hists[0], hists[1], n_bins, 0, -1)
    np.testing.assert_array_equal(hists[0], hists[2])


def test_a_leaf_is_summed_into_its_slot_and_subtracted_from_its_parent():
    rows = sample_rows(1)
    borders = np.array([0, LANES, WIDTH])
    columns = Columns(np.full(WIDTH, N_BINS), np.ones(WIDTH, np.int8), np.zeros(0, np.int8), borders)
    hist, spare = np.zeros((2, WIDTH // LANES, 2, 256, LANES), np.int64), np.empty((1, 2, 2, 256, LANES), np.int64)
    sum_leaf(rows, columns, 0, N, hist, spare, 0, -1)
    sum_leaf(rows, columns, 20, 50, hist, spare, 1, 0)
    np.testing.assert_array_equal(hist[1], summed(rows, 20, 50))
    np.testing.assert_array_equal(hist[0], summed(rows, 0, 20) + summed(rows, 50, N))

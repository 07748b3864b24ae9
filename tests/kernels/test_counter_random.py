"""Random numbers of rows, against integers of Python, and draws without repetition."""

import numpy as np
import pytest

import naive_random
from ranksieve.kernels.counter_random import draw_per_query, step_key, uniform


def uniforms(seed, step, rows):
    """The key of a step, and the numbers of rows under it."""
    with np.errstate(over="ignore"):  # of 64-bit numbers; interpreted, NumPy warns of it
        key = np.uint64(step_key(seed, step))
        return key, [uniform(key, row) for row in rows]


@pytest.mark.parametrize(("seed", "step"), [(0, 0), (7, 3), (np.uint64(2**64 - 1), 1000)])
def test_random_numbers_are_those_of_splitmix64(seed, step):
    rows = [0, 1, 2, 999_999_999]
    key = naive_random.step_key(seed, step)
    assert uniforms(seed, step, rows) == (key, naive_random.uniforms(key, rows))


def test_random_numbers_are_uniform_and_unrelated():
    numbers = np.array([uniforms(seed, step, range(2000))[1] for seed, step in ((0, 0), (0, 1), (1, 0))])
    assert 0 < numbers.min() < numbers.max() < 1
    np.testing.assert_allclose(numbers.mean(axis=1), 0.5, atol=0.03)
    assert (abs(np.corrcoef(numbers)[np.triu_indices(3, 1)]) < 0.08).all()


def draw(sizes, counts, key, first=0):
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    out = np.empty(starts[-1], np.int32)
    with np.errstate(over="ignore"):  # of 64-bit numbers; interpreted, NumPy warns of it
        draw_per_query(np.array(sizes), np.array(counts), starts, np.uint64(key), first, out)
    return np.split(out, starts[1:-1])


def test_draws_have_no_repetition_and_depend_on_key_and_query_only():
    sizes, counts = [30, 5, 12], [7, 5, 0]
    drawn = draw(sizes, counts, 3)
    for places, size, count in zip(drawn, sizes, counts, strict=True):
        assert len(places) == count and (np.diff(places) > 0).all() and set(places) <= set(range(size))
    alone = draw(sizes[1:], counts[1:], 3, first=1)  # the same queries in another part of the data
    np.testing.assert_array_equal(np.concatenate(alone), np.concatenate(drawn[1:]))
    assert draw([30], [7], 4)[0].tolist() != drawn[0].tolist()


def test_all_places_are_drawn_equally_often():
    counts = np.zeros(10)
    for places in draw([10] * 600, [3] * 600, 1):
        counts[places] += 1
    assert abs(counts - 180).max() < 5 * np.sqrt(180 * 0.7)

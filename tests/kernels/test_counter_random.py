import numpy as np

from ranksieve.kernels.counter_random import draw_per_query


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

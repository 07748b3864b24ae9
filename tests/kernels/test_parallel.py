"""A loop over parts covers everything once, for any number of threads; constants make no specialisations."""

import numba
import numpy as np
import pytest
from numba.core import event

from ranksieve.kernels.jit import njit
from ranksieve.kernels.leaf_values import add_leaf_values
from ranksieve.kernels.metrics import sort_rows
from ranksieve.kernels.parallel import run_parts
from ranksieve.threads import using_threads


@njit(nogil=True)
def note_parts(first, last, pair, out):
    factor, offset = pair
    for i in range(first, last):
        out[i] += factor * i + offset


@njit(nogil=True)
def note_all(n, pair, out):
    run_parts(note_parts, n, (pair, out))


@njit(nogil=True)
def need_memory(first, last, size, out):
    for i in range(first, last):
        out[i] = np.zeros(size)[0]


@njit(nogil=True)
def need_memory_everywhere(size, out):
    run_parts(need_memory, len(out), (size, out))


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="memory of compiled code")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_part_that_runs_out_of_memory_is_an_error(threads):
    out = np.full(4, -7.0)
    with using_threads(threads):
        with pytest.raises(MemoryError, match="not enough memory for all threads"):
            need_memory_everywhere(1 << 50, out)
        need_memory_everywhere(10, out)
    assert out.tolist() == [0.0] * 4


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 100])
def test_every_element_is_in_one_part(n, threads):
    out = np.zeros(n + 3, np.int64)
    with using_threads(threads):
        note_all(n, (2, 1), out)
    assert out.tolist() == [2 * i + 1 for i in range(n)] + [0, 0, 0]


def test_fewer_parts_than_threads_leave_the_number_of_threads_as_it_is():
    with using_threads(2) as used:
        for n in (1, 0, 2):
            note_all(n, (2, 1), np.zeros(3, np.int64))
            assert numba.get_num_threads() == used


def test_a_kernel_is_the_same_for_any_number_of_threads():
    members, values, scores = np.arange(9, dtype=np.int32)[::-1].copy(), np.array([1.0, 2.0, 4.0]), []
    bounds = np.array([[0, 2], [2, 7], [7, 9]])
    for threads in (1, 2):
        with using_threads(threads):
            scores.append(np.zeros(9))
            add_leaf_values(members, bounds, values, scores[-1])
    assert scores[0].tolist() == scores[1].tolist() == [4.0, 4.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0]


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_constants_make_no_specialisations(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    @njit(cache=True)
    def power(base, exponent):
        return base**exponent

    @njit(cache=True)
    def both(base):
        return power(base, 2) + power(base, 3)

    with event.install_recorder("numba:compile") as recorder:
        assert both(2.0) == 12.0
    names = [one.data["dispatcher"].py_func.__name__ for _, one in recorder.buffer if one.is_start]
    assert names.count("power") == 1


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 32, 33, 100, 1000])
def test_rows_are_sorted_by_score_then_row(n):
    scores = np.random.default_rng(n).integers(0, max(1, n // 3), n).astype(float)
    rows = np.arange(n, dtype=np.int32)
    sort_rows(scores, rows, np.empty_like(rows))
    assert rows.tolist() == np.argsort(-scores, kind="stable").tolist()

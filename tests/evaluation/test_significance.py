"""Paired tests against scipy, and by their laws."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from ranksieve.errors import DataError, ParameterError
from ranksieve.evaluation.significance import paired_t_test, randomization_test

VALUES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=9)


def mean_difference(a, b, axis=-1):
    return np.mean(a - b, axis=axis)


@settings(max_examples=40, deadline=None)
@given(pairs=VALUES)
def test_exact_randomization_equals_scipy(pairs):
    a, b = np.array(pairs, dtype=float).T / 7  # sevenths: sums are not exact
    result = randomization_test(a, b)
    if len(a) == 1:  # scipy wants two
        assert result.p_value == 1.0
        return
    # Shares of the integers: scipy has no tolerance for sums that differ by rounding only.
    peer = scipy.stats.permutation_test(
        (np.rint(a * 7), np.rint(b * 7)), lambda x, y, axis: np.abs(np.sum(x - y, axis=axis)),
        permutation_type="samples", alternative="greater", vectorized=True, n_resamples=10_000,
    )  # fmt: skip
    assert result.p_value == pytest.approx(peer.pvalue)
    assert result.difference == pytest.approx(mean_difference(a, b))


def test_random_exchanges_estimate_the_exact_value():
    rng = np.random.default_rng(5)
    a = rng.random(13)
    b = a + rng.normal(0.05, 0.1, 13)
    exact = randomization_test(a, b, permutations=2**13)
    random = randomization_test(a, b, permutations=8000, seed=3)
    assert "all 8192" in exact.method and "8000" in random.method
    assert random.p_value == pytest.approx(exact.p_value, abs=0.02)
    assert random == randomization_test(a, b, permutations=8000, seed=3)
    assert random.p_value == pytest.approx(randomization_test(b, a, permutations=8000, seed=3).p_value)


def test_chunks_change_nothing(monkeypatch):
    rng = np.random.default_rng(6)
    a, b = rng.random((2, 40))
    for n, permutations in ((40, 1000), (9, 1000)):
        whole = randomization_test(a[:n], b[:n], permutations=permutations)
        with monkeypatch.context() as patch:
            patch.setattr("ranksieve.evaluation.significance.CHUNK", 40 * 250)
            assert randomization_test(a[:n], b[:n], permutations=permutations) == whole


def test_a_clear_difference_is_found_and_never_called_impossible():
    a = np.linspace(0, 1, 200)
    result = randomization_test(a + 0.1, a)
    assert result.p_value == 1 / 10_001
    assert result.relative == pytest.approx(20)


def test_equal_systems():
    a = np.array([0.1, 0.2, 0.7])
    assert randomization_test(a, a).p_value == 1.0
    assert paired_t_test(a, a).p_value == 1.0
    assert paired_t_test(a, a).interval == (0.0, 0.0)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 60))
def test_t_equals_scipy(seed, n):
    a, b = np.random.default_rng(seed).random((2, n))
    result, peer = paired_t_test(a, b), scipy.stats.ttest_rel(a, b)
    interval = peer.confidence_interval(0.95)
    assert result.p_value == pytest.approx(peer.pvalue)
    assert result.interval == pytest.approx((interval.low, interval.high))


def test_equal_differences_leave_no_doubt():
    result = paired_t_test([1.0, 2.0, 3.0], [0.5, 1.5, 2.5])
    assert result.p_value == 0.0 and result.interval == (0.5, 0.5)


@pytest.mark.parametrize("test", [randomization_test, paired_t_test])
def test_queries_without_a_value_are_dropped(test):
    a, b = [0.1, np.nan, 0.5, 0.7, 0.3], [0.0, 0.3, np.nan, 0.9, 0.1]
    result = test(a, b)
    assert result == test([0.1, 0.7, 0.3], [0.0, 0.9, 0.1])
    assert result.n == 3


def test_relative_to_nothing_is_nan():
    assert np.isnan(randomization_test([1.0, 1.0], [0.0, 0.0]).relative)


@pytest.mark.parametrize("test", [randomization_test, paired_t_test])
def test_mistakes_are_named(test):
    with pytest.raises(DataError, match=r"shapes \(2,\) and \(3,\)"):
        test([1, 2], [1, 2, 3])
    with pytest.raises(DataError, match="none of the 2 queries"):
        test([1, np.nan], [np.nan, 2])
    with pytest.raises(DataError, match="none of the 0"):
        test([], [])


def test_parameters_are_checked():
    with pytest.raises(DataError, match="at least two"):
        paired_t_test([1], [2])
    with pytest.raises(ParameterError, match="permutations is 0"):
        randomization_test([1], [2], permutations=0)

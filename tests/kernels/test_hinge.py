"""The squared hinge and its second derivative, against every pair of a list."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive_pairs import squared_hinge
from ranksieve.kernels import hinge

N_FEATURES = 6


def lists(seed, sizes, n_grades):
    rng = np.random.default_rng(seed)
    n, offsets = sum(sizes), np.cumsum([0, *sizes])
    X = rng.normal(size=(n, N_FEATURES)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    labels = rng.integers(0, n_grades, n).astype(np.float32)
    return X, labels, offsets, rng.random(n), rng.normal(size=N_FEATURES), rng.normal(size=N_FEATURES)


def centred(X, means):
    return np.nan_to_num(X.astype(np.float64) - means)


@pytest.mark.parametrize(("seed", "sizes", "n_grades"), [(0, [9, 1, 12], 2), (1, [1], 3), (2, [7] * 20, 5)])
def test_a_block_adds_up_its_pairs(interpreted, seed, sizes, n_grades):
    module = interpreted(hinge)
    X, labels, offsets, weights, means, coefficients = lists(seed, sizes, n_grades)
    grades = np.empty(len(X), np.int32)
    module.grade_numbers(labels, offsets, grades)
    losses, gradients = np.zeros(module.PARTS), np.zeros((module.PARTS, N_FEATURES))
    module.block_hinge(X, offsets, grades, weights, means, coefficients, losses, gradients)
    loss, gradient, counts, sums = squared_hinge(centred(X, means), labels, offsets, weights, coefficients)
    assert losses.sum() == pytest.approx(loss)
    np.testing.assert_allclose(gradients.sum(axis=0), gradient, atol=1e-10)

    found_counts, found_sums = np.zeros(len(X)), np.zeros((len(X), N_FEATURES))
    slots = np.random.default_rng(3).permutation(len(X))
    module.block_curvature(X, offsets, grades, weights, means, coefficients, slots, found_counts, found_sums)
    np.testing.assert_allclose(found_counts, counts, atol=1e-12)
    np.testing.assert_allclose(found_sums[slots], sums, atol=1e-12)


def test_grades_are_numbered_within_each_list(interpreted):
    grades = np.zeros(7, np.int32)
    labels = np.array([2.0, 0.0, 2.0, 5.0, 1.0, 1.0, 0.5], np.float32)
    interpreted(hinge).grade_numbers(labels, np.array([0, 4, 4, 7]), grades)
    assert grades.tolist() == [2, 1, 2, 3, 2, 2, 1]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from([1, 2, 5, 1000]))
def test_the_loss_of_a_list_is_the_sum_over_its_pairs(seed, n, n_grades):
    rng = np.random.default_rng(seed)
    scores = rng.choice([rng.normal(size=n), rng.integers(-2, 3, n) / 2])  # ties, and margins of exactly one
    labels, weights = rng.integers(0, n_grades, n).astype(np.float32), rng.random(n)
    grades, offsets = np.empty(n, np.int32), np.array([0, n])
    hinge.grade_numbers(labels, offsets, grades)
    losses, slopes = np.zeros(hinge.PARTS), np.zeros((hinge.PARTS, n))
    rows = np.eye(n, dtype=np.float32)  # a coefficient is a score, and the gradient has the derivative by each score
    rows.flags.writeable = False  # as in training: compiled once
    hinge.block_hinge(rows, offsets, grades, weights, np.zeros(n), scores, losses, slopes)
    loss, gradient, *_ = squared_hinge(np.eye(n), labels, offsets, weights, scores)
    assert losses.sum() == pytest.approx(loss, abs=1e-9)
    np.testing.assert_allclose(slopes.sum(axis=0), gradient, atol=1e-9)

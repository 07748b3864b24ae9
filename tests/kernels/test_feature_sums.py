import numpy as np
import pytest

from ranksieve.kernels import feature_sums as kernels


@pytest.mark.parametrize("by_column", [False, True])
def test_a_missing_value_counts_as_the_mean(interpreted, monkeypatch, by_column):
    module, rng = interpreted(kernels), np.random.default_rng(1)
    monkeypatch.setattr(module, "prange", range)
    X = rng.normal(size=(7, 5)).astype(np.float32)
    X[2, 3] = X[6, 1] = np.nan
    features, means = np.array([3, 1], np.int32), np.array([0.5, -0.25])
    weights, biases = rng.normal(size=(2, 3)), np.array([1.0, 0.0, -2.0])
    out = np.empty((7, 3))
    flat, steps = (X.T.ravel(), (1, 7)) if by_column else (X.ravel(), (5, 1))
    module.feature_sums(flat, *steps, 7, features, means, weights, biases, out)
    centred = np.nan_to_num(X[:, features].astype(np.float64) - means)
    assert np.allclose(out, biases + centred @ weights, rtol=1e-12)
    assert np.allclose(out[2], biases + centred[2, 1] * weights[1], rtol=1e-12)

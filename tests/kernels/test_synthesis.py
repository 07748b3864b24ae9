"""Feature values of synthetic documents, against their formulas."""

import numpy as np
import pytest

from ranksieve.kernels import synthesis

N_DOCS = 150  # more than two tiles
SHAPES = {
    synthesis.PLAIN: lambda x: x,
    synthesis.EXPONENTIAL: lambda x: np.maximum(1 + x / 8, 0) ** 8,
    synthesis.COUNT: lambda x: np.floor(1.6 * np.maximum(1 + x / 8, 0) ** 8),
    synthesis.SPARSE: lambda x: np.maximum(x - 0.8, 0),
    synthesis.SHARE: lambda x: 0.5 + 0.5 * x / (1 + abs(x)),
    synthesis.BUCKET: lambda x: np.floor(2 * x),
}


def filled(latents, *, noise=0.0, missing=0.0, by_query=False):
    """One feature of each shape, made of traits 0 and 1; the weights of the two are 0.5 and -1."""
    n = len(SHAPES)
    out = np.empty((latents.shape[1], n), np.float32)
    with np.errstate(over="ignore"):
        synthesis.fill_features(
            latents, np.tile([0, 1], (n, 1)), np.tile(np.float32([0.5, -1]), (n, 1)), np.full(n, noise, np.float32),
            np.array([*SHAPES]), np.full(n, missing, np.float32), np.full(n, by_query),
            np.arange(7, 7 + 1000 * n, 1000).astype(np.uint32), out,
        )  # fmt: skip
    return out


@pytest.fixture
def latents():
    traits = np.random.default_rng(0).normal(size=(3, N_DOCS)).astype(np.float32)
    traits[2] = 0  # clicks
    return traits


def test_shapes(latents):
    values = filled(latents)
    x = np.float32(0.5) * latents[0] - latents[1]
    for column, shape in enumerate(SHAPES.values()):
        near = np.abs(values[:, column] - shape(x)) < 1e-3 * (1 + np.abs(values[:, column]))
        assert near.mean() > 0.98  # rounding may move a value across a step


def test_a_document_does_not_depend_on_those_after_it(latents):
    np.testing.assert_array_equal(filled(latents, noise=1)[:70], filled(latents[:, :70].copy(), noise=1))


def test_noise_of_a_query_is_the_same_for_its_documents(latents):
    latents[:] = 0
    assert len(np.unique(filled(latents, noise=1, by_query=True)[:, 0])) == 1
    noise = filled(latents, noise=1)[:, 0]
    assert len(np.unique(noise)) > 140 and abs(noise.mean()) < 0.3 and abs(noise.std() - 1) < 0.2


def test_clicked_documents_miss_fewer_values(latents):
    assert 0.3 < np.isnan(filled(latents, missing=0.4)).mean() < 0.5
    latents[2] = 4
    assert not np.isnan(filled(latents, missing=0.4)).any()

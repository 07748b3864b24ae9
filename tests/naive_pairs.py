"""The squared hinge of a linear model by explicit pairs: the slow truth for RankSVM."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from ranksieve.data.dataset import Dataset
from ranksieve.models.linear import Standard


def ordered_pairs(labels, offsets) -> Iterator[tuple[int, int]]:
    """Pairs of documents of one list of which the first has the higher label."""
    for start, stop in itertools.pairwise(offsets):
        for i in range(start, stop):
            for j in range(start, stop):
                if labels[i] > labels[j]:
                    yield i, j


def squared_hinge(rows, labels, offsets, weights, coefficients):
    """Over the pairs within the margin: the loss and its gradient; what the curvature is made of.

    These are, for each document, the weight of its pairs, and the weighted rows of those it should beat.
    """
    scores, gradient = rows @ coefficients, np.zeros(rows.shape[1])
    loss, counts, sums = 0.0, np.zeros(len(rows)), np.zeros(rows.shape)
    for i, j in ordered_pairs(labels, offsets):
        margin, weight = 1 - (scores[i] - scores[j]), weights[i] * weights[j]
        if margin > 0:
            loss += weight * margin**2
            gradient -= 2 * weight * margin * (rows[i] - rows[j])
            counts[i] += weight
            counts[j] += weight
            sums[i] += weights[j] * rows[j]
    return loss, gradient, counts, sums


def pair_differences(data: Dataset, standard: Standard) -> tuple[np.ndarray, np.ndarray]:
    """Standardised x_i - x_j of every pair i ≻ j of one query, and the product of the two weights."""
    rows = np.concatenate(list(data.blocks()))
    features = np.nan_to_num((rows - standard.means) * standard.factors)
    weights = np.ones(data.n_docs) if data.lists.weights is None else data.lists.weights
    higher, lower = np.array([*ordered_pairs(data.labels, data.offsets)], int).reshape(-1, 2).T
    return features[higher] - features[lower], weights[higher] * weights[lower]


def pair_objective(data: Dataset, standard: Standard, c: float, weights: np.ndarray) -> float:
    """What RankSVM minimises."""
    differences, products = pair_differences(data, standard)
    return 0.5 * weights @ weights + c * products @ np.square(np.maximum(0, 1 - differences @ weights))

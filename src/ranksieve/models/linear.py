"""`Linear`: a ranker that scores by a weighted sum of standardised features, or by one feature alone."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ranksieve.data.dataset import Dataset
from ranksieve.data.features import infinite_feature
from ranksieve.dtypes import SCORE
from ranksieve.forest.json_model import numbers, parse_model, write_model
from ranksieve.forest.matrix import matrices
from ranksieve.forest.model import Model, TrainedModel
from ranksieve.forest.scorer import in_user_order
from ranksieve.forest.summary import WEIGHT, Summary
from ranksieve.kernels.feature_sums import feature_sums
from ranksieve.text_formats import counted
from ranksieve.threads import using_threads

KIND = "linear"


@dataclass(frozen=True)
class Standard:
    """Means and standard deviations of the features, missing values left out; 0 where a feature does not vary."""

    means: np.ndarray
    scales: np.ndarray

    @classmethod
    def of(cls, data: Dataset) -> Standard:
        """Computed block by block in float64: the data is not copied, and sums of squares stay small."""
        counts, means, squares = (np.zeros(data.n_features) for _ in range(3))
        row = 0
        for block in data.blocks():
            _check_finite(block, row, data)
            row += len(block)
            known = ~np.isnan(block)
            values = np.where(known, block.astype(np.float64), 0.0)
            n = known.sum(axis=0).astype(np.float64)
            here = values.sum(axis=0) / np.maximum(n, 1)
            away = here - means
            total = counts + n
            share = n / np.maximum(total, 1)
            squares += np.square((values - here) * known).sum(axis=0) + away**2 * counts * share
            means += away * share
            counts = total
        deviations = np.sqrt(squares / np.maximum(counts, 1))
        varies = deviations > 1e-6 * np.abs(means)  # else the float32 values are nearly equal
        return cls(means, np.where(varies, deviations, 0.0))

    @cached_property
    def factors(self) -> np.ndarray:
        """1 / scale of each feature; 0 for a feature that does not vary."""
        return np.asarray(np.divide(1.0, self.scales, out=np.zeros_like(self.scales), where=self.scales > 0))

    def apply(self, rows: np.ndarray) -> np.ndarray:
        """float32 rows as differences from the mean in standard deviations; 0 where a value is missing."""
        values: np.ndarray = (rows - self.means) * self.factors
        np.copyto(values, 0.0, where=np.isnan(values))
        return values


def _check_finite(block: np.ndarray, row: int, data: Dataset) -> None:
    bad = np.isinf(block)
    if bad.any():
        at, feature = np.argwhere(bad)[0]
        raise infinite_feature(data.source, data.feature_names[feature], row + int(at) + 1)


@dataclass(frozen=True, eq=False, repr=False)
class Linear(TrainedModel):
    """A document's score is the sum over features of `weights * (x - means) / scales`; a missing value adds nothing.

    Features with scale 0 did not vary in training and are not used.

    Attributes
    ----------
    weights
        One per feature.
    standard
        Means and scales of the features.
    feature_names
        The names of the features.
    info
        How it was trained.

    Examples
    --------
    >>> import ranksieve as rs
    >>> model = rs.train(rs.synth.cubic(20), algo="ranksvm")
    >>> model, model.weights.shape
    (Linear(50 weights), (50,))
    """

    weights: np.ndarray
    standard: Standard
    feature_names: tuple[str, ...]
    info: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> str:
        return counted(weight=int(np.count_nonzero(self.weights)))

    def predict(self, X: Any, *, threads: int | None = None) -> np.ndarray:
        """Scores of documents in any form `Forest.predict` takes; a document's score does not depend on the others."""
        coefficients = (self.weights * self.standard.factors)[:, None]
        return first_layer(self, X, self.standard.means, coefficients, np.zeros(1), threads)[:, 0]

    def own_summary(self) -> Summary:
        """The weights of its standardised features."""
        pairs = [("pairs", f"{self.info['pairs']:,.0f}")] if "pairs" in self.info else []
        return Summary([("linear ranker", self.size), *pairs], WEIGHT, self.weights)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as JSON, whole or not at all; `ranksieve.load` reads it back."""
        arrays = {"means": self.standard.means, "scales": self.standard.scales, "weights": self.weights}
        write_model(path, KIND, self.feature_names, arrays, self.info)


def read_linear(content: bytes, source: str) -> Linear:
    """The model in a file's content; `source` names it in errors."""
    found = parse_model(content, source)
    names = tuple(found["feature_names"])
    means, scales, weights = (numbers(found, key, (len(names),), source) for key in ("means", "scales", "weights"))
    return Linear(weights, Standard(means, scales), names, found["info"])


def one_feature(feature: int | str, feature_names: Sequence[str], info: Mapping[str, Any] | None = None) -> Linear:
    """The ranker that scores by one feature as it is, such as the first stage's score."""
    weights = np.zeros(len(feature_names))
    weights[feature if isinstance(feature, int) else list(feature_names).index(feature)] = 1.0
    plain = Standard(np.zeros(len(weights)), np.ones(len(weights)))
    return Linear(weights, plain, tuple(feature_names), dict(info or {}))


def first_layer(
    model: Model, X: Any, means: np.ndarray, weights: np.ndarray, biases: np.ndarray, threads: int | None
) -> np.ndarray:
    """`biases + (x - means) @ weights` of every document, in the user's order; features without weight are not read."""
    used = np.flatnonzero(weights.any(axis=1))
    means, weights = means[used], weights[used]
    n_docs, parts = matrices(X, model)
    sums = np.empty((n_docs, len(biases)), SCORE)
    start = 0
    with using_threads(threads):
        for values, row_step, column_step, _, n in parts:
            feature_sums(values, row_step, column_step, n, used, means, weights, biases, sums[start : start + n])
            start += n
    return in_user_order(X, sums)

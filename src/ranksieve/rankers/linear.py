"""`Linear`: a ranker that scores by a weighted sum of standardised features, or by one feature alone."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ranksieve.boosting.job import TrainingJob, model_info
from ranksieve.data.dataset import Dataset
from ranksieve.dtypes import SCORE
from ranksieve.errors import ParameterError, param
from ranksieve.forest.matrix import matrices
from ranksieve.forest.model import Model
from ranksieve.forest.scorer import in_user_order
from ranksieve.kernels.affine import weighted_sums
from ranksieve.rankers.inputs import Standard, measured, training_set, validation_sets
from ranksieve.rankers.json_model import numbers, parse_model, write_model
from ranksieve.threads import using_threads

KIND = "linear"


@dataclass(frozen=True, eq=False, repr=False)
class Linear:
    """A document's score is the sum over features of `weights * (x - means) / scales`; a missing value adds nothing.

    Features with scale 0 did not vary in training and are not used.

    Examples
    --------
    >>> ranker = one_feature("bm25", ["length", "bm25"])
    >>> ranker.predict(np.array([[3.0, 0.5], [2.0, 1.5]])).tolist()
    [0.5, 1.5]
    """

    weights: np.ndarray
    standard: Standard
    feature_names: tuple[str, ...]
    info: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Linear({self.size})"

    @property
    def n_features(self) -> int:
        return len(self.feature_names)

    @property
    def size(self) -> str:
        used = int(np.count_nonzero(self.weights))
        return f"{used} weight" + "s" * (used != 1)

    def predict(self, X: Any, *, threads: int | None = None) -> np.ndarray:
        """Scores of documents in any form `Forest.predict` takes; a document's score does not depend on the others."""
        coefficients = (self.weights * self.standard.factors)[:, None]
        return first_layer(self, X, self.standard.means, coefficients, np.zeros(1), threads)[:, 0]

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


def train_feature(job: TrainingJob) -> Linear:
    """The ranker that scores by one feature, such as the first stage's score; validation data is measured as usual."""
    data = training_set(job)
    model = one_feature(_feature_number(job.params.feature, data), data.feature_names)
    values = measured(job.params, model, validation_sets(job, data))
    return replace(model, info={**model_info(job.params, data.info), **values})


def _feature_number(name: str, data: Dataset) -> int:
    names = data.feature_names
    if name in names:
        return names.index(name)
    if name != "first-stage":
        raise ParameterError(
            f"{data.source}: no feature is named {name!r}; known: {', '.join(names[:8])}{', …' * (len(names) > 8)}"
        )
    if data.first_stage is None:
        raise ParameterError(
            f"{data.source}: has no information on which feature is the first stage's score; name one with ",
            param("feature"),
        )
    return data.first_stage


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
            weighted_sums(values, row_step, column_step, n, used, means, weights, biases, sums[start : start + n])
            start += n
    return in_user_order(X, sums)

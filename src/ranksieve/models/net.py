"""`Net`: a ranker that scores by a neural net of two layers on standardised features."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ranksieve.forest.json_model import numbers, parse_model, write_model
from ranksieve.forest.model import TrainedModel
from ranksieve.forest.summary import INFLUENCE, Summary
from ranksieve.models.linear import Standard, first_layer
from ranksieve.text_formats import counted

KIND = "net"


@dataclass(frozen=True, eq=False, repr=False)
class Net(TrainedModel):
    """A document's score is `tanh(z @ inner + biases) @ outer`, where z are its features, standardised.

    A missing value counts as the mean. Features with scale 0 did not vary in training and are not used.

    Attributes
    ----------
    inner
        Weights of the first layer: an array (n_features, n_hidden).
    biases, outer
        Bias and weight of each hidden unit.
    standard
        Means and scales of the features.
    feature_names
        The names of the features.
    info
        How it was trained.

    Examples
    --------
    >>> import ranksieve as rs
    >>> model = rs.train(rs.synth.cubic(20), algo="lambdarank", epochs=2, hidden=5)
    >>> model, model.influence().shape
    (Net(50 features, 5 hidden units), (50,))
    """

    inner: np.ndarray
    biases: np.ndarray
    outer: np.ndarray
    standard: Standard
    feature_names: tuple[str, ...]
    info: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Net({counted(feature=self.n_features)}, {self.size})"

    @property
    def size(self) -> str:
        return counted(**{"hidden unit": len(self.outer)})

    def predict(self, X: Any, *, threads: int | None = None) -> np.ndarray:
        """Scores of documents in any form `Forest.predict` takes; a document's score does not depend on the others."""
        weights = self.inner * self.standard.factors[:, None]
        hidden = np.tanh(first_layer(self, X, self.standard.means, weights, self.biases, threads))
        hidden *= self.outer
        return np.asarray(hidden.sum(axis=1))

    def influence(self) -> np.ndarray:
        """How far each feature can move the score: |inner| · |outer|, summed over the hidden units."""
        return np.asarray(np.abs(self.inner) @ np.abs(self.outer))

    def own_summary(self) -> Summary:
        """How far its standardised features can move the score."""
        return Summary([("net of two layers", self.size)], INFLUENCE, self.influence())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as JSON, whole or not at all; `ranksieve.load` reads it back."""
        arrays = {
            "means": self.standard.means,
            "scales": self.standard.scales,
            "inner": self.inner,
            "biases": self.biases,
            "outer": self.outer,
        }
        write_model(path, KIND, self.feature_names, arrays, self.info)


def read_net(content: bytes, source: str) -> Net:
    """The model in a file's content; `source` names it in errors."""
    found = parse_model(content, source)
    names = tuple(found["feature_names"])
    means, scales = (numbers(found, key, (len(names),), source) for key in ("means", "scales"))
    outer = numbers(found, "outer", (-1,), source)
    biases = numbers(found, "biases", (len(outer),), source)
    inner = numbers(found, "inner", (len(names), len(outer)), source)
    return Net(inner, biases, outer, Standard(means, scales), names, found["info"])

"""`Blend`: a weighted sum of models of any kind, as one model. Forests blend into one forest."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve.data.features import check_feature_names
from ranksieve.data.read import check_missing
from ranksieve.dtypes import SCORE
from ranksieve.errors import DataError, ModelError, ParameterError, param
from ranksieve.forest.forest import Forest, concatenate
from ranksieve.forest.json_model import RECOVER, numbers, parse_model, write_model
from ranksieve.forest.model import Model, TrainedModel, scores_by
from ranksieve.forest.summary import Summary

KIND = "blend"


@dataclass(frozen=True, eq=False, repr=False)
class Blend(TrainedModel):
    """A weighted sum of models: a document's score is the sum of `weights[i]` times the score by `models[i]`.

    Attributes
    ----------
    models
        The models.
    weights
        One per model.
    feature_names
        The names of the features.
    info
        How it was made.

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(20)
    >>> models = [rs.train(data, trees=5, leaves=4), rs.train(data, algo="ranksvm")]
    >>> both = rs.combine(models, weights=[0.5, 2.0])
    >>> both, both.weights.tolist()
    (Blend(5 trees + 50 weights), [0.5, 2.0])
    """

    models: tuple[Any, ...]
    weights: np.ndarray
    feature_names: tuple[str, ...]
    info: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> str:
        return " + ".join(getattr(model, "size", type(model).__name__) for model in self.models)

    def predict(self, X: Any, *, threads: int | None = None) -> np.ndarray:
        """Scores of documents, in the order of the rows."""
        total = 0.0
        for weight, model in zip(self.weights, self.models, strict=True):
            total = total + weight * np.asarray(scores_by(model, X, threads), dtype=SCORE).ravel()
        return np.asarray(total)

    def own_summary(self) -> Summary:
        """Its models and their weights."""
        parts = zip(self.weights, self.models, strict=True)
        facts = [
            (f"model {number} of {len(self.models)}", f"weight {weight:.6g}: {model!r}")
            for number, (weight, model) in enumerate(parts, start=1)
        ]
        return Summary(facts, "", np.empty(0))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the blend as JSON with the files of its models inside; `ranksieve.load` reads it back."""
        files = np.array([_file_of(model) for model in self.models], dtype=object)
        write_model(path, KIND, self.feature_names, {"weights": self.weights, "models": files}, self.info)


def blend(
    models: Sequence[Any], weights: Sequence[float] | np.ndarray, info: Mapping[str, Any], *, missing: str | None = None
) -> Forest | Blend:
    """The weighted sum of models; one forest where all are forests.

    Models with weight 0 are left out, unless all have it. `missing` is how the new model reads absent features, by
    default as the models were trained.
    """
    shares = np.asarray(weights, dtype=SCORE)
    names = common_features(models)
    info = {**info, **_reading(models, missing)}
    if shares.any():
        models, shares = [model for model, share in zip(models, shares, strict=True) if share], shares[shares != 0]
    if not all(isinstance(model, Forest) for model in models):
        return Blend(tuple(models), shares, names, dict(info))
    parts = [
        replace(forest.reweighted(weight * forest.weights), feature_names=names)
        for forest, weight in zip(models, shares, strict=True)
    ]
    return replace(concatenate(parts), info=dict(info))


def _reading(models: Sequence[Any], missing: str | None) -> dict[str, Any]:
    """How data is read for all of the models: what an absent feature is, and the categories; where they have these."""
    categories = [found for model in models if (found := dict(getattr(model, "info", None) or {}).get("categories"))]
    if any(found != categories[0] for found in categories):
        raise ModelError("the models were trained with different categories; train all of them on the same data")
    return {**_absent(models, missing), **({"categories": categories[0]} if categories else {})}


def _absent(models: Sequence[Any], missing: str | None) -> dict[str, str]:
    if missing is not None:
        check_missing(missing)
        return {"missing": missing}
    kinds = {str(model.info.get("missing", "zero")) for model in models if getattr(model, "info", None) is not None}
    if len(kinds) > 1:
        raise ModelError(
            "the models were trained with different values for absent features; give ",
            param("missing", "zero"),
            " or ",
            param("missing", "nan"),
            " for the new model",
        )
    return {"missing": kinds.pop()} if kinds else {}


def common_features(models: Sequence[Any]) -> tuple[str, ...]:
    """The feature names of models to combine; models without names fit any."""
    if not models:
        raise ParameterError("got no models; give at least one")
    known = [tuple(names) for model in models if (names := getattr(model, "feature_names", None)) is not None]
    for names in known[1:]:
        try:
            check_feature_names(names, known[0], "the second model" if len(models) == 2 else "a model")
        except DataError as error:
            raise ModelError("the models do not fit together: ", *error.parts) from error
    return known[0] if known else ()


def _file_of(model: Model) -> str:
    if not hasattr(model, "save"):
        raise ModelError(
            f"a {type(model).__name__} cannot be saved inside another model; save its parts (.models) separately"
        )
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model")
        return Path(folder, "model").read_text(encoding="utf-8")


def read_blend(content: bytes, source: str, read: Callable[[bytes, str], Any]) -> Blend:
    """The blend in a file's content; `read` reads the models inside it."""
    found = parse_model(content, source)
    weights = numbers(found, "weights", (-1,), source)
    files = found.get("models")
    if not isinstance(files, list) or len(files) != len(weights) or not all(isinstance(file, str) for file in files):
        raise ModelError(f"{source}: 'models' are not as many files as weights; the file was changed, {RECOVER}")
    models = tuple(read(file.encode(), f"{source}: model {number}") for number, file in enumerate(files, start=1))
    names = tuple(found["feature_names"])
    for number, model in enumerate(models, start=1):
        if model.n_features != len(names):
            raise ModelError(
                f"{source}: model {number} has {model.n_features} features, expected {len(names)}; "
                f"the file was changed, {RECOVER}"
            )
    return Blend(models, weights, names, found["info"])

"""Feature vectors of requests as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ranksieve.data.categories import Encoder, named
from ranksieve.data.features import to_float
from ranksieve.errors import DataError
from ranksieve.forest.matrix import encoded
from ranksieve.forest.model import Model
from ranksieve.text_formats import some_of


def to_matrix(vectors: Any, model: Model) -> np.ndarray:
    """The vectors as the model takes them: numbers, and for features with named categories their names."""
    names = named(model.info.get("categories", {}))
    if not names:
        return _numbers(vectors)
    rows = vectors.tolist() if isinstance(vectors, np.ndarray) else vectors
    width = model.n_features
    if not (rows and isinstance(rows, list) and all(isinstance(row, list) and len(row) == width for row in rows)):
        raise DataError(f"the features are not lists of {width} values, as the model has; null stands for missing")
    columns: list[Any] = list(zip(*rows, strict=True))
    for feature, known in names.items():
        place = model.feature_names.index(feature)
        columns[place] = _codes(columns[place], feature, known)
    return encoded(np.ascontiguousarray(_numbers(columns).T), model)


def _codes(values: Sequence[Any], feature: str, names: Sequence[str]) -> np.ndarray:
    """The model's numbers of categories."""
    for value in values:
        if not (value is None or isinstance(value, str)):
            raise DataError(
                f"feature {feature!r} is categorical in the model, with categories such as {some_of(names, 3)}, and "
                f"holds {str(value)[:40]} here; give JSON with a text for it, or null"
            )
    return Encoder(names, fixed=True).numbers(pa.array(values, pa.string()))


def _numbers(vectors: Any) -> np.ndarray:
    try:
        matrix = vectors if isinstance(vectors, np.ndarray) else to_float(np.array(vectors, dtype=np.float64))
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError("the features are not lists of numbers of equal length; null stands for missing") from error
    if matrix.ndim != 2:
        raise DataError("the features are not lists of numbers of equal length; null stands for missing")
    return matrix

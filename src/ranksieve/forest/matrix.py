"""`Matrix`: documents in any form that `predict` takes, as one flat array for the kernels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ranksieve.data.categories import Categorical, named, other_categories
from ranksieve.data.dataset import Dataset
from ranksieve.data.features import check_feature_names, is_dense, match_features
from ranksieve.data.tables import is_table, split_table
from ranksieve.errors import DataError, ModelError
from ranksieve.forest.float32 import floor_single, to_single
from ranksieve.forest.forest import Forest
from ranksieve.forest.model import Model, TrainedModel
from ranksieve.text_formats import counted

ROWS = 65_536  # rows of a sparse matrix or a regrouped data set that are made dense at a time


class Encoded(np.ndarray):
    """Rows in which categories have the model's numbers already, for models whose categories have names."""


def encoded(rows: np.ndarray, model: Any) -> np.ndarray:
    """Rows that a reader made for a model, so that `predict` takes the numbers in them as its categories' own."""
    return rows.view(Encoded) if isinstance(model, TrainedModel) else rows


class Matrix(NamedTuple):
    """float32 or float64 values; row i has feature f at `values[i * row_step + f * column_step]`."""

    values: np.ndarray
    row_step: int
    column_step: int
    n_features: int
    n_docs: int

    @property
    def rows(self) -> np.ndarray:
        """The documents as a two-dimensional array."""
        shape = (self.n_docs, self.n_features)
        return self.values.reshape(shape) if self.column_step == 1 else self.values.reshape(shape[::-1]).T


def check_encoder(model: Any, candidates: Mapping[str, Any] | None, source: str) -> None:
    """Refuse features of vectors for a model that was trained on those of another encoder.

    What made the vectors is known from the provenance of the candidates: that of the training data, which the model
    stores, and the given one. The same encoder may have other names, but not another dimension.
    """
    trained, given = encoder_of(model.info.get("candidates")), encoder_of(candidates)
    if trained is None or given is None or trained["dimension"] == given["dimension"]:
        return
    if any(map(is_dense, used_features(model))):
        raise ModelError(
            f"{source}: its vectors come from {_encoder_text(given)}, but those of the training data came from "
            f"{_encoder_text(trained)}, so features dense.* have other values; use the encoder of training, or train "
            "on features of this one"
        )


def encoder_of(candidates: Any) -> Mapping[str, Any] | None:
    """What made the vectors, where a provenance of candidates has it."""
    found = candidates.get("encoder") if isinstance(candidates, Mapping) else None
    return found if isinstance(found, Mapping) and {"name", "dimension"} <= found.keys() else None


def _encoder_text(encoder: Mapping[str, Any]) -> str:
    return f"{encoder['name']}, dimension {encoder['dimension']}"


def used_features(model: Model) -> list[str]:
    """The features that scores depend on; all of them for models other than forests."""
    if not isinstance(model, Forest):
        return list(model.feature_names)
    return [model.feature_names[number] for number in np.unique(model.feature)]


def matrices(X: Any, model: Model) -> tuple[int, Iterator[Matrix]]:
    """Number of documents, and the documents in one piece or several, in the order of their rows (or of the lists)."""
    if isinstance(X, str | os.PathLike):
        raise DataError(f"the data is the file name {os.fspath(X)!r}; give what rs.read({os.fspath(X)!r}) returns")
    if isinstance(X, Dataset):
        check_features(X.n_features, model)
        check_encoder(model, X.candidates, X.source)
        X = X.in_order(model.feature_names, model.categories)
        order = match_features(X.feature_names, model.feature_names, X.source)
        blocks = X.blocks(ROWS)
        return X.n_docs, (flat(rows if order is None else rows[:, order]) for rows in blocks)
    if isinstance(X, Mapping) or (isinstance(X, list | tuple) and X and isinstance(X[0], Mapping)):
        raise DataError(
            f"the data is a {'dict' if isinstance(X, Mapping) else 'list of dicts'}; give a DataFrame or an Arrow table"
        )
    if isinstance(X, Encoded):
        X = X.view(np.ndarray)
    elif not is_table(X):
        for name, names in named(model.categories).items():
            raise other_categories(f"the array: feature {name!r} holds numbers", names)
    if not isinstance(X, np.ndarray) or X.dtype not in (np.float32, np.float64):
        X = _plain(X, model)
    if X.ndim == 1:
        X = X[None, :]
    if X.ndim != 2:
        raise ModelError(f"got an array of {X.ndim} dimensions; give one row per document and one column per feature")
    check_features(X.shape[1], model)
    if scipy.sparse.issparse(X):
        X = X.tocsr()
        return X.shape[0], (flat(X[start : start + ROWS].toarray()) for start in range(0, X.shape[0], ROWS))
    return len(X), iter([flat(X)])


def flat(X: np.ndarray) -> Matrix:
    """A dense array as a flat one, without a copy where it is contiguous in C or Fortran order."""
    n_docs, n_features = X.shape
    if not (X.flags.c_contiguous or X.flags.f_contiguous) or not X.dtype.isnative:
        X = np.ascontiguousarray(X, dtype=X.dtype.newbyteorder("="))
    by_row = X.flags.c_contiguous
    values = X.reshape(-1) if by_row else X.T.reshape(-1)
    # always read-only, so that the kernels are compiled once for read-only and writeable arrays
    values = values.view()
    values.flags.writeable = False
    return Matrix(values, n_features if by_row else 1, 1 if by_row else n_docs, n_features, n_docs)


def _plain(X: Any, model: Model) -> Any:
    """An array or a sparse matrix of float32 or float64; named columns are put in the forest's order."""
    if isinstance(X, (list, tuple)):
        X = np.asarray(X)
    if not (isinstance(X, np.ndarray) and X.dtype.kind in "iubf"):
        table = split_table(X, model.feature_names, Categorical(known=model.categories), _table_type(model))
        if table.names is not None:
            check_feature_names(table.names, model.feature_names, "the table")
        X = table.features
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float32 if X.dtype == np.float16 else np.float64)
    return X


def _table_type(model: Model) -> Any:
    """The type of the numbers of a table: float32, as tables are read in training.

    A forest with thresholds between float32 numbers was trained elsewhere, on float64 numbers.
    """
    thresholds = model.threshold if isinstance(model, Forest) else np.empty(0)
    return np.float32 if np.array_equal(thresholds, to_single(thresholds)) else np.float64


def alike_in_float32(model: Model) -> list[str]:
    """Features of a forest with thresholds between which there is no float32 number."""
    if not isinstance(model, Forest):
        return []
    feature, threshold = model.feature[~model.categorical], model.threshold[~model.categorical]
    order = np.lexsort((threshold, feature))
    feature, threshold = feature[order], threshold[order]
    single = floor_single(threshold)
    alike = (feature[1:] == feature[:-1]) & (threshold[1:] > threshold[:-1]) & (single[1:] == single[:-1])
    return [model.feature_names[number] for number in np.unique(feature[1:][alike])]


def check_features(n_features: int, model: Model) -> None:
    """Refuse documents with another number of features than the model has."""
    if n_features != model.n_features:
        raise ModelError(
            f"got documents of {counted(feature=n_features)}, but the model was trained on {model.n_features}; "
            "give the same features in the same order"
        )

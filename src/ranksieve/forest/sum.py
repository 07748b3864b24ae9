"""`Feature`: one feature as a ranker. `Sum`: any ranker plus a forest that was trained on top of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve.data.dataset import Dataset
from ranksieve.data.tables import split_table
from ranksieve.dtypes import SCORE
from ranksieve.errors import DataError
from ranksieve.forest.forest import Forest
from ranksieve.forest.model import scores_by


@dataclass(frozen=True)
class Feature:
    """Ranks by one feature, such as the score of the first stage; larger is better.

    Examples
    --------
    >>> Feature(1, ("length", "bm25")).predict(np.array([[3, 0.5], [2, 1.5]])).tolist()
    [0.5, 1.5]
    """

    number: int
    feature_names: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.feature_names[self.number]

    @property
    def n_features(self) -> int:
        return len(self.feature_names)

    def predict(self, X: Any) -> np.ndarray:
        """The feature of every document, in the order of the rows."""
        if isinstance(X, Dataset):
            return X.lists.to_user_order(X.column(self.number)).astype(SCORE)
        matrix, _, _ = split_table(X)
        if matrix.shape[1] != self.n_features:
            raise DataError(
                f"got documents of {matrix.shape[1]} features, but {self.name!r} is one of {self.n_features}; "
                "give the same features in the same order"
            )
        column = matrix[:, [self.number]]
        column = column.toarray() if hasattr(column, "toarray") else column
        return np.asarray(column, dtype=SCORE).ravel()


@dataclass(frozen=True)
class Sum:
    """The scores of `base`, which is any object with `predict`, plus those of the forest."""

    base: Any
    forest: Forest

    @property
    def info(self) -> Mapping[str, Any]:
        return self.forest.info

    def predict(self, X: Any, *, threads: int | None = None) -> np.ndarray:
        """Scores of documents, in the order of the rows."""
        return np.asarray(scores_by(self.base, X, threads), dtype=SCORE) + self.forest.predict(X, threads=threads)

"""The labels of a training set, summed up per query: whether there is anything to train on, and where scores start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranksieve.data.lists import Lists
from ranksieve.errors import DataError, param


@dataclass(frozen=True)
class QueryLabels:
    """The lowest and the highest label of each query, the sum of its weighted labels, and its sum of weights.

    Values per query make the mean label the same number however queries are spread over workers.
    """

    lowest: np.ndarray
    highest: np.ndarray
    sums: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, lists: Lists) -> QueryLabels:
        """The labels of some lists."""
        labels, starts = lists.labels, lists.offsets[:-1]
        weights = np.ones(lists.n_docs) if lists.weights is None else lists.weights
        return cls(
            np.minimum.reduceat(labels, starts),
            np.maximum.reduceat(labels, starts),
            np.add.reduceat(labels * weights, starts),
            np.add.reduceat(weights, starts),
        )

    @property
    def mean(self) -> float:
        """The weighted mean label."""
        return float(self.sums.sum() / self.weights.sum())

    def check_grades(self, source: str, *, pairs: bool) -> None:
        """Refuse labels that are all equal; with `pairs`, some query must have documents of two grades."""
        if self.lowest.min() == self.highest.max():
            raise DataError(
                f"{source}: every label is {self.lowest[0]:g}; training needs documents of at least two grades"
            )
        if pairs and (self.highest == self.lowest).all():
            raise DataError(
                f"{source}: no query has documents of two grades, so there are no pairs to train on; check the query "
                "ids, or use ", param("algo", "mart"),
            )  # fmt: skip

"""`CtrForest`: a forest that also splits by statistics of categories and of their combinations, as CatBoost's do."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ranksieve.dtypes import SCORE
from ranksieve.errors import ModelError
from ranksieve.forest.contributions import Contributions
from ranksieve.forest.ctr_statistics import CATEGORY, KINDS, NO_HASH, Element, Statistics, StatisticTable
from ranksieve.forest.forest import Forest, forest_of
from ranksieve.forest.formats.lightgbm_reader import from_text
from ranksieve.forest.formats.lightgbm_writer import to_text
from ranksieve.forest.formats.nodes import reading
from ranksieve.forest.json_model import parse_model, write_model
from ranksieve.forest.matrix import matrices
from ranksieve.forest.model import TrainedModel
from ranksieve.forest.scorer import in_user_order
from ranksieve.forest.summary import Summary, tree_summary
from ranksieve.text_formats import counted, some_of

KIND = "ctr"
CELLS = 1 << 22  # values of documents and statistics held at a time


@dataclass(frozen=True, eq=False, repr=False)
class CtrForest(TrainedModel):
    """A forest on the features of a document and on statistics of combinations of them.

    `forest` has a column for each feature, then one for each statistic. `rs.load` and `rs.io.from_model` return one for
    CatBoost's models with combinations of features.

    Examples
    --------
    >>> import ranksieve as rs
    >>> model = rs.load("catboost.json")  # doctest: +SKIP
    >>> model.combinations  # doctest: +SKIP
    ['brand × size']
    """

    forest: Forest
    statistics: Statistics
    feature_names: tuple[str, ...]
    info: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> str:
        return f"{self.forest.size}, {counted(statistic=self.statistics.n_columns)}"

    @property
    def combinations(self) -> list[str]:
        """The combinations of features that have statistics, as in `brand × size`."""
        found = dict.fromkeys(table.features for table in self.statistics.tables)
        return [" × ".join(self.feature_names[one] for one in features) for features in found if len(features) > 1]

    def predict(
        self, X: Any, *, trees: int | None = None, threads: int | None = None, dtype: Any = SCORE,
        contributions: bool = False,
    ) -> np.ndarray:  # fmt: skip
        """Scores of documents, or contributions of their features, as `Forest.predict`.

        What a combination of features contributes is divided equally among them. CatBoost divides it among those that
        are in it by their category, and not among those that are compared with a number or with one category.
        """
        n_docs, blocks = self._blocks(X)
        found = np.empty((n_docs, self.n_features + 1) if contributions else n_docs, SCORE)
        start = 0
        for rows in blocks:
            part = found[start : start + len(rows)]
            if contributions:
                values = self._contributions(trees).predict(rows, threads=threads)
                part[:, :-1], part[:, -1] = values[:, :-1] @ self._shares, values[:, -1]
            else:
                part[:] = self.forest.predict(rows, trees=trees, threads=threads)
            start += len(rows)
        return in_user_order(X, found).astype(dtype, copy=False)

    def _blocks(self, X: Any) -> tuple[int, Iterator[np.ndarray]]:
        """Number of documents, and the documents with their statistics, block by block."""
        n_docs, parts = matrices(X, self)
        step = max(1, CELLS // max(1, self.forest.n_features))
        return n_docs, (
            self.statistics.expand(part.rows[start : start + step])
            for part in parts
            for start in range(0, part.n_docs, step)
        )

    def _contributions(self, trees: int | None) -> Contributions:
        return self._all_contributions if trees is None else Contributions(self.forest.first(trees), self._groups)

    @cached_property
    def _all_contributions(self) -> Contributions:
        return Contributions(self.forest, self._groups)

    @cached_property
    def _features(self) -> list[tuple[int, ...]]:
        """Per column of the forest, the features that it is made of."""
        made = [table.features for table in self.statistics.tables for _ in table.values]
        return [(feature,) for feature in range(self.n_features)] + made

    @cached_property
    def _groups(self) -> np.ndarray:
        """Per column of the forest, the number of its features among the different ones."""
        numbers: dict[tuple[int, ...], int] = {}
        return np.array([numbers.setdefault(features, len(numbers)) for features in self._features], np.int32)

    @cached_property
    def _shares(self) -> np.ndarray:
        """The share of each feature in each group of columns."""
        shares = np.zeros((int(self._groups.max(initial=-1)) + 1, self.n_features))
        for group, features in zip(self._groups, self._features, strict=True):
            shares[group, features] = 1.0 / len(features)
        return shares

    def split_counts(self) -> np.ndarray:
        """The number of splits by each feature, alone or in a combination."""
        counts = np.bincount(self._groups[self.forest.feature], minlength=len(self._shares))
        return np.asarray(counts @ (self._shares > 0))

    def gain_shares(self) -> np.ndarray:
        """The share of each feature in the gain of all splits."""
        return self._of_features(self.forest.gain_shares())

    def _of_features(self, of_columns: np.ndarray) -> np.ndarray:
        """Values of columns, divided equally among the features that they are made of."""
        return np.asarray(np.bincount(self._groups, of_columns, len(self._shares)) @ self._shares)

    def own_summary(self) -> Summary:
        """Its trees, leaves and statistics, and the share of each feature in the splits."""
        own = tree_summary(self.forest)
        facts = [*own.facts, ("statistics", f"{self.statistics.n_columns:,}, also of {some_of(self.combinations, 4)}")]
        return own._replace(facts=facts, importance=self._of_features(own.importance))

    def save(self, path: str | os.PathLike[str], *, format: str | None = None, **_: Any) -> None:
        """Write the model as JSON, whole or not at all; `ranksieve.load` reads it back. Other formats are refused."""
        if format is not None:
            raise ModelError(f"{path}: cannot be written as {format}: the model {self.not_a_forest()}")
        hashes = [[feature, found.tolist()] for feature, found in self.statistics.hashes.items()]
        tables = [[one.elements, one.keys.tolist(), one.values.tolist()] for one in self.statistics.tables]
        content = {"hashes": hashes, "tables": tables, "forest": to_text(self.forest)}
        write_model(path, KIND, self.feature_names, content, self.info)

    def not_a_forest(self) -> str:
        """Why it cannot be used where a forest on the features alone is needed; for errors."""
        return (
            f"splits by statistics of combinations of features ({some_of(self.combinations, 4)}), which only ranksieve "
            "and CatBoost can compute; it can be scored, evaluated and explained, but not converted or pruned; train "
            "CatBoost with max_ctr_complexity=1 for that"
        )


def trees_of(model: Any) -> Forest | CtrForest:
    """A model, or the model of a fitted estimator, if it has trees on features; others are refused."""
    trees = getattr(model, "model_", model)
    return trees if isinstance(trees, CtrForest) else forest_of(model)


def read_ctr_forest(content: bytes, source: str) -> CtrForest:
    """The model in a file's content; `source` names it in errors."""
    found = parse_model(content, source)
    with reading(source, "a model as ranksieve writes it"), np.errstate(over="ignore"):
        hashes = {int(feature): np.array(of, np.uint64) for feature, of in found["hashes"]}
        tables = tuple(_table(*one) for one in found["tables"])
        forest = from_text(found["forest"], source=source)
        model = CtrForest(forest, Statistics(hashes, tables), tuple(found["feature_names"]), found["info"])
        check(model)
    return model


def _table(elements: Any, keys: Any, values: Any) -> StatisticTable:
    parts = (
        Element(str(kind), int(feature), float(value), bool(missing)) for kind, feature, value, missing in elements
    )
    return StatisticTable(tuple(parts), np.array(keys, np.uint64), np.array(values, np.float32))


def check(model: CtrForest) -> None:
    """Raise ValueError where the parts of a model do not fit together."""
    n_features, statistics = model.n_features, model.statistics
    if model.forest.n_features != n_features + statistics.n_columns:
        raise ValueError(f"{counted(feature=n_features, statistic=statistics.n_columns)} for a forest of "
                         f"{model.forest.n_features}")  # fmt: skip
    for table in statistics.tables:
        keys, values = table.keys, table.values
        if not (keys.ndim == 1 and len(keys) and keys[-1] == NO_HASH and (keys[1:] > keys[:-1]).all()):
            raise ValueError("hashes of combinations that are not ascending")
        if values.ndim != 2 or values.shape[1] != len(keys) or not np.isfinite(values).all():
            raise ValueError("statistics that are not one finite number for each combination")
        for kind, feature, value, _ in table.elements:
            if kind not in KINDS or not 0 <= feature < n_features or np.isnan(value):
                raise ValueError(f"a combination with {kind!r} of feature number {feature}")
            if kind == CATEGORY and feature not in statistics.hashes:
                raise ValueError(f"no hashes of the categories of feature number {feature}")

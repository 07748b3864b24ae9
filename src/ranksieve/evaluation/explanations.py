"""`explain`: what each feature contributes to the ranking of one query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve.data.dataset import Dataset
from ranksieve.errors import DataError, ParameterError, check_choice
from ranksieve.evaluation.analyses import list_ranks
from ranksieve.forest.ctr_forest import CtrForest, trees_of
from ranksieve.forest.forest import Forest
from ranksieve.forest.matrix import encoded
from ranksieve.forest.score_file import read_for_models
from ranksieve.text_formats import counted, some_of

REMOVALS = {
    "contribution": "its contributions are replaced by their mean",
    "missing": "its values are set to missing, and the documents are scored again",
}


@dataclass(frozen=True)
class Difference:
    """The difference of one feature's contributions to the scores of two documents.

    Attributes
    ----------
    feature
        The name of the feature.
    value_above, value_below
        Its value in the upper and in the lower document; a category by its name, where it has one.
    above, below
        Its contribution to the score of each.

    Examples
    --------
    >>> print(Difference("bm25", value_above=12.5, value_below=3.0, above=0.4, below=-0.25))
    bm25 +0.6500 (12.5 against 3)
    """

    feature: str
    value_above: float | str
    value_below: float | str
    above: float
    below: float

    @property
    def difference(self) -> float:
        """What the feature adds to the difference of the two scores."""
        return self.above - self.below

    def __str__(self) -> str:
        above, below = map(value_text, (self.value_above, self.value_below))
        return f"{self.feature} {self.difference:+.4f} ({above} against {below})"


def value_text(value: float | str) -> str:
    """The value of a feature as text: a number, the name of a category, or a dash if it is missing.

    Examples
    --------
    >>> value_text(0.123456), value_text("acme"), value_text(float("nan"))
    ('0.1235', 'acme', '–')
    """
    return value if isinstance(value, str) else "–" if np.isnan(value) else f"{value:.4g}"


@dataclass(frozen=True, repr=False, eq=False)
class Explanation:
    """The documents of one query with their scores and what each feature added to them, as `explain` returns them.

    Documents have their given order. `scores[i] = expected + contributions[i].sum()`. Ranks count from 1; equal scores
    keep their order.

    Attributes
    ----------
    model
        The model.
    query_id
        The id of the query.
    documents
        The ids of the documents.
    labels, features, scores
        Labels, values of the features, and scores of the documents.
    contributions
        What each feature added to each score: an array (n_docs, n_features).
    expected
        The mean score of the model on its training documents.

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(20)
    >>> found = rs.explain(rs.train(data, trees=5, leaves=4), data, query=3)
    >>> found
    Explanation(query 3, 50 documents)
    >>> found.contributions.shape, sorted(found.ranks.tolist())[:3]
    ((50, 50), [1, 2, 3])
    >>> largest = found.why(1, 50)[0]  # the best document against the last one
    >>> largest.difference > 0
    True
    """

    model: Forest | CtrForest
    query_id: Any
    documents: tuple[str, ...]
    labels: np.ndarray
    features: np.ndarray
    scores: np.ndarray
    contributions: np.ndarray
    expected: float

    def __repr__(self) -> str:
        return f"Explanation(query {self.query_id}, {counted(document=len(self.scores))})"

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features."""
        return self.model.feature_names

    @property
    def ranks(self) -> np.ndarray:
        """Rank of every document, from 1."""
        return _ranks(self.scores)

    @property
    def order(self) -> np.ndarray:
        """The documents' numbers, best first."""
        return np.argsort(-self.scores, kind="stable")

    def document(self, name: str | int) -> int:
        """The number of a document, from 0. `name` is its id, or its rank, from 1, if no id is that text."""
        text = str(name)
        if text in self.documents:
            return self.documents.index(text)
        if text.isascii() and text.isdigit() and 1 <= int(text) <= len(self.documents):
            return int(self.order[int(text) - 1])
        raise DataError(
            f"query {self.query_id} has no document {text!r}; give an id ({', '.join(self.documents[:3])}, …) or a "
            f"rank, from 1 to {len(self.documents)}"
        )

    def why(self, above: str | int, below: str | int) -> list[Difference]:
        """Why one document is ranked above another: features by how much they add to the difference of the two scores.

        Documents are given by their ids or ranks. The differences add up to the difference of the scores. Features
        without a contribution to either are left out.
        """
        a, b = self.document(above), self.document(below)
        ours, theirs = self.contributions[a], self.contributions[b]
        found = [
            Difference(self.feature_names[f], self.value(a, f), self.value(b, f), float(ours[f]), float(theirs[f]))
            for f in np.flatnonzero((ours != 0.0) | (theirs != 0.0)).tolist()
        ]  # fmt: skip
        return sorted(found, key=lambda item: -abs(item.difference))

    def value(self, document: int, feature: int) -> float | str:
        """The value of a feature in a document, both given by number. A category is its name, if it has one."""
        number, names = float(self.features[document, feature]), self.model.categories.get(self.feature_names[feature])
        return str(names[int(number)]) if names and 0 <= number < len(names) else number

    def scores_without(self, features: str | int | Sequence[str | int], *, by: str = "contribution") -> np.ndarray:
        """Scores of the documents without some features, given by name or by number from 0.

        Parameters
        ----------
        features
            One feature, or several that are dropped together.
        by
            `"contribution"`: their contributions are subtracted; their mean effect stays in the scores, and the other
            features' contributions do not change. `"missing"`: their values become NaN and the model predicts again, as
            if the features were not available in production.
        """
        check_choice("by", by, REMOVALS)
        given = [features] if isinstance(features, str | int | np.integer) else list(features)
        numbers = [self._feature(feature) for feature in given]
        if by == "contribution":
            return np.asarray(self.scores - self.contributions[:, numbers].sum(axis=1))
        reduced = self.features.copy()
        reduced[:, numbers] = np.nan
        return self.model.predict(encoded(reduced, self.model))

    def ranks_without(self, features: str | int | Sequence[str | int], *, by: str = "contribution") -> np.ndarray:
        """Rank of every document, from 1, by `scores_without` those features; compare with `ranks`."""
        return _ranks(self.scores_without(features, by=by))

    def _feature(self, feature: str | int) -> int:
        names = self.feature_names
        if isinstance(feature, str) and feature in names:
            return names.index(feature)
        if not isinstance(feature, str) and 0 <= feature < len(names):
            return int(feature)
        raise ParameterError(f"the model has no feature {feature!r}; known: {some_of(names)}")


def _ranks(scores: np.ndarray) -> np.ndarray:
    return list_ranks(scores, [0, len(scores)])


def explain(model: Any, data: Dataset, query: Any, *, threads: int | None = None) -> Explanation:
    """Explain the ranking of one query: scores, and the exact contribution of every feature to each.

    Parameters
    ----------
    model : Forest or a fitted Ranker
    data : Dataset
    query
        The query's id, as in the data or as text.

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(20)
    >>> model = rs.train(data, trees=5, leaves=4, algo="lambdamart")
    >>> found = explain(model, data, query=3)
    >>> best, second = found.order[:2]
    >>> differences = found.why(1, 2)  # the documents of the first two ranks
    >>> bool(np.isclose(sum(d.difference for d in differences), found.scores[best] - found.scores[second]))
    True
    >>> found.ranks_without(differences[0].feature).shape
    (50,)
    """
    forest = trees_of(model)
    data = read_for_models(data, [forest]).in_order(forest.feature_names, forest.categories)
    one = data.take_queries([query_number(data.query_ids, query, data.source)])
    features = one.rows(0, one.n_docs)
    parts = forest.predict(one, contributions=True, threads=threads)
    return Explanation(
        model=forest,
        query_id=one.query_ids[0],
        documents=_names(one.lists.doc_ids, one.n_docs),
        labels=one.labels,
        features=features,
        scores=forest.predict(one, threads=threads),
        contributions=parts[:, :-1],
        expected=float(parts[0, -1]),
    )


def query_number(query_ids: Iterable[Any], query: Any, source: str) -> int:
    """The position of a query in the data, by its id or its id as text."""
    ids = list(map(str, query_ids))
    if str(query) not in ids:
        raise DataError(f"{source}: no query is called {str(query)!r}; known: {some_of(ids, 5)}")
    return ids.index(str(query))


def _names(doc_ids: np.ndarray | None, n_docs: int) -> tuple[str, ...]:
    """Ids of the documents, or their positions in the list if the data has no ids."""
    if doc_ids is None:
        return tuple(f"document {place}" for place in range(1, n_docs + 1))
    return tuple(f"document {place}" if name in (None, "") else str(name) for place, name in enumerate(doc_ids, 1))

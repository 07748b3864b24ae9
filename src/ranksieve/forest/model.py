"""`Model`: the protocol of every ranker."""

from __future__ import annotations

import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ranksieve.forest.summary import Summary, summarize
from ranksieve.html_tables import html_facts, html_table

if TYPE_CHECKING:
    from typing_extensions import Self


class Model(Protocol):
    """What every model has. It scores documents and can be saved; `ranksieve.load` reads it back.

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(20)
    >>> models = [rs.train(data, trees=5), rs.train(data, algo="ranksvm")]
    >>> [(model.size, model.predict(data).shape) for model in models]
    [('5 trees', (1000,)), ('50 weights', (1000,))]
    """

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features, in the order of the columns."""
        ...

    @property
    def n_features(self) -> int:
        """Number of features."""
        ...

    @property
    def info(self) -> Mapping[str, Any]:
        """How it was trained, as JSON can hold it: parameters, history, versions."""
        ...

    @property
    def categories(self) -> Mapping[str, Sequence[str]]:
        """The names of the categories of each categorical feature."""
        ...

    @property
    def size(self) -> str:
        """How large it is, in words."""
        ...

    def predict(self, X: Any, *, threads: int | None = None) -> np.ndarray:
        """Scores of documents, in the order of the rows; larger is better."""
        ...

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model; the file appears whole or not at all."""
        ...


class TrainedModel(ABC):
    """Shared by the models of this package, which have `feature_names`, `info` and `size`."""

    if TYPE_CHECKING:  # fields of the dataclasses, or properties

        @property
        def feature_names(self) -> tuple[str, ...]: ...

        @property
        def info(self) -> Mapping[str, Any]: ...

        @property
        def size(self) -> str: ...

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size})"

    def _repr_html_(self) -> str:
        """What a notebook shows: facts, and the most important features."""
        summary = summarize(self)
        top = summary.top_features(self.feature_names)
        features = html_table(top, header=["feature", summary.column]) if top else ""
        return html_facts(type(self).__name__, summary.facts) + features

    @abstractmethod
    def own_summary(self) -> Summary:
        """What this kind of model is."""

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.feature_names)

    @property
    def categories(self) -> Mapping[str, Sequence[str]]:
        """The names of the categories of each categorical feature, in the order of their numbers.

        Empty for a feature whose categories have numbers and no names.
        """
        categories: Mapping[str, Sequence[str]] = self.info.get("categories", {})
        return categories

    def with_info(self, **facts: Any) -> Self:
        """The same model with more facts in its `info`."""
        found: Self = replace(self, info={**self.info, **facts})  # type: ignore[type-var]  # models are dataclasses
        return found

    @property
    def evals_result_(self) -> dict[str, dict[str, list[float]]]:
        """Metric values per tree (or epoch, or round), `{"valid": {"ndcg@10": [...]}}`."""
        return dict(self.info.get("history", {}))


def scores_by(model: Any, X: Any, threads: int | None) -> Any:
    """`model.predict(X)`, with `threads` where the model takes it; models of other libraries may not."""
    try:
        takes_threads = "threads" in inspect.signature(model.predict).parameters
    except (TypeError, ValueError):  # compiled code may have no signature
        takes_threads = False
    return model.predict(X, threads=threads) if takes_threads else model.predict(X)

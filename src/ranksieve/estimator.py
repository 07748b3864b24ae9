"""`Ranker`: training and scoring as a scikit-learn estimator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ranksieve.boosting.callbacks import Record
from ranksieve.data.categories import Categorical
from ranksieve.data.data_file import DataFile
from ranksieve.data.dataset import Dataset
from ranksieve.data.tables import Table, is_table, split_table
from ranksieve.dtypes import Features, Vector
from ranksieve.errors import DataError, MissingQueriesError, ParameterError, did_you_mean
from ranksieve.evaluation.evaluate import evaluate
from ranksieve.evaluation.importance import importance
from ranksieve.evaluation.metrics import metric_of
from ranksieve.forest.forest import Forest, forest_of
from ranksieve.forest.matrix import encoded
from ranksieve.forest.model import Model
from ranksieve.other_names import ADVICE, ALIASES, ARGUMENT_ADVICE, NEAREST
from ranksieve.parameter_table import ParametersDoc, canonical, table, unknown_parameter
from ranksieve.params import Params
from ranksieve.rankers.train import train
from ranksieve.text_formats import counted

ROUTING = (
    "; in cross-validation keep a column 'qid' in X, or enable metadata routing: "
    "set_config(enable_metadata_routing=True), set_fit_request(qid=True) and set_score_request(qid=True)"
)


def _signature(*first: inspect.Parameter) -> inspect.Signature:
    """A keyword per parameter, including those of rules that users registered."""
    keywords = [inspect.Parameter(p.name, inspect.Parameter.KEYWORD_ONLY, default=p.default) for p in table().values()]
    return inspect.Signature([*first, *keywords])


class _Signature:
    """The signature of `Ranker`."""

    def __get__(self, instance: Any, owner: type) -> inspect.Signature:
        return _signature()


class _Init:
    """`Ranker.__init__`: scikit-learn reads from its signature which parameters are not at their defaults."""

    def __get__(self, instance: Any, owner: type) -> Callable[..., None]:
        def __init__(self: Ranker, **params: Any) -> None:
            known = table()
            for name, value in canonical(params).items():
                if name not in known and name in _arguments("fit"):
                    raise TypeError(f"{name!r} is not a parameter of Ranker; give it to fit({name}=…)")
                if name not in known:
                    raise TypeError(f"Ranker has {''.join(map(str, unknown_parameter(name, known)))}")
                setattr(self, name, value)

        init: Any = __init__
        init.__signature__ = _signature(inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD))
        return init if instance is None else MethodType(init, instance)


class Ranker(BaseEstimator):
    """Gradient-boosted trees that rank the documents of a query.

    The parameters are those of `ranksieve.train`, with the same names and defaults. Names of scikit-learn, LightGBM and
    XGBoost (`n_estimators`, `num_leaves`, `min_child_samples`, `reg_lambda`, `random_state`, …) are aliases of them.
    `X` is a numpy array, a scipy sparse matrix, or a pandas, polars or Arrow table. Rows of one query share a `qid`, or
    are adjacent and `group` gives the size of each query. A column `qid` of a table is used if neither is given.

    Attributes
    ----------
    model_ : Forest
        The trained model: `predict`, `save`.
    feature_importances_ : ndarray
        Share of the total split gain that each feature brought.
    best_iteration_, best_score_
        Number of trees, and the validation value of the model. Without validation data the cross-validated number of
        trees and value; None if that number was given.
    evals_result_ : dict
        Metric values per tree, `{"valid": {"ndcg@10": [...]}}`.
    n_features_in_, feature_names_in_
        Number of features; their names, if `X` was a table.

    Examples
    --------
    >>> import numpy as np
    >>> from ranksieve import Ranker
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((200, 3))
    >>> y = (X[:, 1] > 0.7).astype(int)
    >>> ranker = Ranker(algo="lambdamart", trees=5, leaves=4).fit(X, y, group=[20] * 10)
    >>> ranker.predict(X).shape
    (200,)
    >>> int(ranker.feature_importances_.argmax())
    1
    """

    _estimator_type = "ranker"
    __signature__ = _Signature()

    if TYPE_CHECKING:

        def __init__(self, **params: Any) -> None: ...
    else:
        __init__ = _Init()

    def __getattr__(self, name: str) -> Any:
        """Parameters that were not given have their defaults."""
        known = {} if name.startswith("_") else table()
        plain = ALIASES.get(name, name)
        if plain not in known:
            raise AttributeError(f"'Ranker' object has no attribute {name!r}")
        return self.__dict__.get(plain, known[plain].default)

    def __setattr__(self, name: str, value: Any) -> None:
        """An alias sets the parameter that it stands for."""
        if name in ALIASES:
            ((name, value),) = canonical({name: value}).items()
        super().__setattr__(name, value)

    def __sklearn_clone__(self) -> Ranker:
        """A clone has the parameters that were given; the others keep their defaults."""
        copy: Ranker = super().__sklearn_clone__()
        for name in table():
            if name not in self.__dict__:
                copy.__dict__.pop(name, None)
        return copy

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(table())

    def set_params(self, **params: Any) -> Ranker:
        """Set parameters by name or alias."""
        ranker: Ranker = super().set_params(**canonical(params))
        return ranker

    def fit(
        self,
        X: Features,
        y: Vector,
        *,
        qid: Vector | None = None,
        group: Vector | None = None,
        sample_weight: Vector | None = None,
        positions: Vector | None = None,
        eval_set: tuple[Features, Vector] | Sequence[tuple[Features, Vector]] | None = None,
        eval_qid: Vector | Sequence[Vector] | None = None,
        eval_group: Vector | Sequence[Vector] | None = None,
        eval_sample_weight: Vector | Sequence[Vector] | None = None,
        eval_metric: str | None = None,
        callbacks: Sequence[Callable[[Record], None]] | None = None,
        categorical: str | Sequence[str] | None = None,
        verbose: int = False,
        **unknown: object,
    ) -> Ranker:
        """Train on documents and their labels.

        Parameters
        ----------
        X : array, sparse matrix or table
            One row per document, one column per feature.
        y : array
            One label per document; 0 is not relevant.
        qid : array, optional
            The query of each document.
        group : array, optional
            The number of documents of each query, if the documents of a query are adjacent.
        sample_weight : array, optional
            One weight per document or one per query.
        positions : array, optional
            Where labels are clicks, the rank from 1 at which each document was shown; 0 for documents that were not.
            Biases of the positions are learned, and left out of predictions.
        eval_set : pair (X, y) or list of pairs, optional
            Validation sets. The first decides when to stop; the model is the best one on it. Without any, the number of
            trees is chosen by cross-validation by query, unless `trees` is given.
        eval_qid, eval_group, eval_sample_weight : array or list of arrays, optional
            `qid`, `group` and `sample_weight` of each validation set.
        eval_metric : str, optional
            Validation metric, instead of the parameter `metric`.
        callbacks : list of functions, optional
            Each is called with a `Record` after each tree.
        categorical : str or list of str, optional
            Names or globs of columns that hold categories. Columns of a categorical type need not be named.
        verbose : bool or int
            Show progress on standard error if it is a terminal, and in notebooks; False, 0 or -1: nowhere.
        **unknown
            Refused, with advice for the arguments of LightGBM and XGBoost.

        Returns
        -------
        Ranker
            The fitted estimator itself.
        """
        _refuse("fit", unknown)
        features = DataFile(X, categorical=categorical)
        try:
            data = Dataset.from_arrays(features, y, qid, group=group, weights=sample_weight, positions=positions)
        except MissingQueriesError as error:
            if qid is None and group is None:
                raise error.with_suffix(ROUTING) from None
            raise
        names = data.feature_names if is_table(X) else None
        valid = _validation_sets(eval_set, eval_qid, eval_group, eval_sample_weight, data.categories)
        params = {name: value for name, value in self.get_params(deep=False).items() if name in self.__dict__}
        if eval_metric is not None:
            params["metric"] = eval_metric
        self.model_: Model = train(data, valid=valid, callbacks=tuple(callbacks or ()), verbose=verbose, **params)
        self.n_features_in_ = data.n_features
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def predict(self, X: Features, *, contributions: bool = False, **unknown: object) -> np.ndarray:
        """Scores of the documents, in the order of the rows; larger is better. A `qid` column is ignored.

        With `contributions`, the contribution of each feature to each score, and the expected score in a last column.
        """
        _refuse("predict", unknown)
        check_is_fitted(self, "model_")
        table = self._table(X)
        return self._scores(table.features, table.names, contributions=contributions)

    def _table(self, X: Features) -> Table:
        """The features as in training."""
        known = Categorical(known=self.model_.categories)
        return split_table(X, tuple(getattr(self, "feature_names_in_", ())) or None, known)

    def score(
        self,
        X: Features,
        y: Vector,
        *,
        sample_weight: Vector | None = None,
        qid: Vector | None = None,
        group: Vector | None = None,
    ) -> float:
        """Mean of `metric` over the queries (NDCG@10 by default), by the conventions of `ranksieve.evaluate`.

        With `sample_weight`, per document or per query, a query counts by the mean weight of its documents.
        """
        check_is_fitted(self, "model_")
        matrix, names, column, _ = self._table(X)
        if qid is None and group is None:
            qid = column
        data = Dataset.from_arrays(matrix, y, qid=qid, group=group, weights=sample_weight)
        metric = metric_of(Params(metric=self.metric, gains=self.gains))
        weighted = sample_weight is not None
        return evaluate(self._scores(matrix, names), data.lists, metrics=metric, weighted=weighted).mean()

    @property
    def feature_importances_(self) -> np.ndarray:
        check_is_fitted(self, "model_")
        if not isinstance(self.model_, Forest):
            raise AttributeError(f"algo={self.algo!r} trains no forest, so it has no feature_importances_")
        return importance(self.model_)

    @property
    def best_iteration_(self) -> int:
        check_is_fitted(self, "model_")
        return int(self.model_.info.get("best_iteration") or getattr(self.model_, "n_trees", None) or 0)

    @property
    def best_score_(self) -> float | None:
        """The metric of the model on the validation lists; without these, the cross-validated one."""
        check_is_fitted(self, "model_")
        info = self.model_.info
        found: float | None = info.get("cross_validation", {}).get("value", info.get("best_score"))
        return found

    @property
    def evals_result_(self) -> dict[str, dict[str, list[float]]]:
        check_is_fitted(self, "model_")
        return dict(self.model_.info.get("history", {}))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "ranker"
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        return tags

    def _more_tags(self) -> dict[str, Any]:  # scikit-learn before 1.6
        return {"allow_nan": True, "requires_y": True, "X_types": ["2darray", "sparse"]}

    def _scores(self, matrix: Any, names: Sequence[str] | None, *, contributions: bool = False) -> np.ndarray:
        self._check_features(matrix.shape[1], names)
        if names is not None:
            matrix = encoded(matrix, self.model_)
        if contributions:
            return forest_of(self).predict(matrix, threads=self.threads or None, contributions=True)
        return self.model_.predict(matrix, threads=self.threads or None)

    def _check_features(self, n_features: int, names: Sequence[str] | None) -> None:
        if n_features != self.n_features_in_:
            raise DataError(
                f"X has {counted(feature=n_features)} but the model was trained on {self.n_features_in_}; "
                "give the same columns in the same order"
            )
        known = getattr(self, "feature_names_in_", None)
        if names is not None and known is not None and list(names) != list(known):
            first = next(i for i, (got, expected) in enumerate(zip(names, known, strict=True)) if got != expected)
            raise DataError(
                f"column {first} of X is {names[first]!r} but was {known[first]!r} in training; "
                "give the same columns in the same order"
            )


Ranker.__doc__ = ParametersDoc(Ranker.__doc__, "Parameters", "Attributes")  # type: ignore[assignment]


def _arguments(method: str) -> list[str]:
    """The keyword arguments of a method of `Ranker`."""
    parameters = inspect.signature(getattr(Ranker, method)).parameters.values()
    return [one.name for one in parameters if one.kind is not inspect.Parameter.VAR_KEYWORD]


def _refuse(method: str, unknown: Mapping[str, Any]) -> None:
    """Refuse keyword arguments that a method of `Ranker` does not have."""
    for name in unknown:
        plain, known = ALIASES.get(name, name), [one for one in _arguments(method) if one not in ("self", "X", "y")]
        advice: Sequence[object]
        if name in ARGUMENT_ADVICE[method]:
            advice = ARGUMENT_ADVICE[method][name]
        elif plain in table():
            advice = (f"it is a parameter of the estimator, Ranker({plain}=…)",)
        elif name in ADVICE and NEAREST.get(name) not in known:
            advice = ADVICE[name]
        else:
            advice = (did_you_mean(NEAREST.get(name, name), known).strip() or f"known: {', '.join(known)}",)
        raise ParameterError(f"{method} has no argument {name!r}; {''.join(map(str, advice))}")


def _validation_sets(
    eval_set: Any, eval_qid: Any, eval_group: Any, weights: Any, categories: Mapping[str, Sequence[str]]
) -> list[Dataset] | Dataset | None:
    if eval_set is None:
        if eval_qid is not None or eval_group is not None or weights is not None:
            raise ParameterError(
                "eval_qid, eval_group and eval_sample_weight belong to eval_set, which is missing; give all or none"
            )
        return None
    if isinstance(eval_set, tuple) and len(eval_set) == 2 and not isinstance(eval_set[0], tuple):
        eval_set = [eval_set]
        eval_qid = None if eval_qid is None else [eval_qid]
        eval_group = None if eval_group is None else [eval_group]
        weights = None if weights is None else [weights]
    qids = _one_per_set(eval_qid, "eval_qid", len(eval_set))
    groups = _one_per_set(eval_group, "eval_group", len(eval_set))
    weights = _one_per_set(weights, "eval_sample_weight", len(eval_set))
    sets = [
        Dataset.from_arrays(DataFile(X, categorical=_named(X, categories)), y, qid, group=group, weights=weight)
        for (X, y), qid, group, weight in zip(eval_set, qids, groups, weights, strict=True)
    ]
    return sets[0] if len(sets) == 1 else sets


def _named(X: Any, categories: Mapping[str, Sequence[str]]) -> list[str] | None:
    """The categorical columns of a table; an array has numbers already."""
    return list(categories) or None if is_table(X) else None


def _one_per_set(values: Any, name: str, n_sets: int) -> list[Any]:
    if values is None:
        return [None] * n_sets
    if len(values) != n_sets:
        raise ParameterError(f"{name} has {len(values)} entries for {n_sets} pairs in eval_set; give one per pair")
    return list(values)

"""`importance`: feature importance by the splits of a model or by its predictions on data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksieve.data.dataset import Dataset
from ranksieve.data.lists import Lists
from ranksieve.errors import ParameterError, check_choice, check_whole, param
from ranksieve.evaluation.metrics import Metric, parse_metric
from ranksieve.forest.ctr_forest import CtrForest, trees_of
from ranksieve.forest.forest import Forest
from ranksieve.forest.matrix import encoded

KINDS = ("gain", "split", "contribution", "permutation")


def importance(
    model: Any,
    kind: str = "gain",
    *,
    data: Dataset | None = None,
    metric: str | Metric = "ndcg@10",
    repeats: int = 5,
    seed: int = 0,
    threads: int | None = None,
) -> np.ndarray:
    """One number per feature, in the order of `model.feature_names`; features the model does not use have 0.

    Parameters
    ----------
    model : Forest or a fitted Ranker
    kind
        `"gain"`: share of the total split gain. `"split"`: number of splits. `"contribution"`: mean size of the
        feature's contribution to a score of `data`. `"permutation"`: how much the mean of `metric` on `data` falls when
        the feature's values are shuffled among the documents of each query, averaged over `repeats` shuffles.
    data : Dataset
        For the last two.
    metric, repeats, seed
        For `"permutation"`.

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(20)
    >>> model = rs.train(data, trees=5, leaves=4, algo="lambdamart")
    >>> float(importance(model).sum().round(9)), int(importance(model, "split").sum())
    (1.0, 15)
    >>> importance(model, "permutation", data=data, repeats=2).shape
    (50,)
    """
    trees = trees_of(model)
    check_choice("kind", kind, KINDS)
    if kind == "split":
        return trees.split_counts()
    if kind == "gain":
        return trees.gain_shares()
    if data is None:
        raise ParameterError(f"importance by {kind} is measured on documents; give ", param("data"))
    if kind == "contribution":
        return np.asarray(np.abs(trees.predict(data, contributions=True, threads=threads)[:, :-1]).mean(axis=0))
    drops = permutation_drops(trees, data, metric=metric, repeats=repeats, seed=seed, threads=threads)
    counted = ~np.isnan(drops).any(axis=0)
    return drops[:, counted].mean(axis=1) if counted.any() else np.full(trees.n_features, np.nan)


def permutation_drops(
    forest: Forest | CtrForest,
    data: Dataset,
    *,
    metric: str | Metric = "ndcg@10",
    repeats: int = 5,
    seed: int = 0,
    threads: int | None = None,
) -> np.ndarray:
    """How much each query's metric falls when a feature is shuffled within the query, (n_features, n_queries).

    A shuffle depends on (seed, feature, repeat) alone. Values stay within their query, so a feature that is
    constant within queries has no importance: it cannot change a ranking by itself.
    """
    check_whole("repeats", repeats)
    wanted, lists = parse_metric(metric), data.lists
    data = data.in_order(forest.feature_names, forest.categories)
    X = encoded(data.rows(0, data.n_docs).copy(), forest)
    before = wanted.per_query(lists.labels, forest.predict(X, threads=threads), lists.offsets)
    drops = np.zeros((forest.n_features, lists.n_queries))
    drops[:, np.isnan(before)] = np.nan
    for feature in np.flatnonzero(forest.split_counts()):
        kept = X[:, feature].copy()
        for repeat in range(repeats):
            X[:, feature] = kept[shuffled_within(lists, np.random.default_rng([seed, int(feature), repeat]))]
            after = wanted.per_query(lists.labels, forest.predict(X, threads=threads), lists.offsets)
            drops[feature] += (before - after) / repeats
        X[:, feature] = kept
    return drops


def shuffled_within(lists: Lists, rng: np.random.Generator) -> np.ndarray:
    """A random order of the rows within every query.

    Examples
    --------
    >>> lists = Dataset.from_arrays(np.zeros((5, 1)), np.zeros(5), group=[2, 3]).lists
    >>> order = shuffled_within(lists, np.random.default_rng(0))
    >>> sorted(order[:2].tolist()), sorted(order[2:].tolist())
    ([0, 1], [2, 3, 4])
    """
    query = np.repeat(np.arange(lists.n_queries), lists.sizes)
    return np.lexsort((rng.random(lists.n_docs), query))

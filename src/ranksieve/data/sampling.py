"""Static sampling: some documents of each list, selected once, before training. Test lists are never sampled."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ranksieve.data.dataset import Dataset
from ranksieve.data.lists import Lists
from ranksieve.data.negatives import Negatives, largest_rows
from ranksieve.dtypes import ROW
from ranksieve.errors import DataError, ParameterError, RanksieveWarning, param

POSITIVES = ("keep", "drop")
ORDERS = ("random", "ascending", "descending")
FEW = 0.05  # share of positives from beyond the cut; with more, models prefer low first-stage scores


def truncate(data: Dataset, k: int, *, by: int | str | None = None, positives: str = "keep") -> Dataset:
    """The k documents of each list that the first stage ranks best (Lucchese et al. 2018, §5.1).

    Parameters
    ----------
    data : Dataset
    k : int
        Documents kept of each list; ties are broken by row.
    by : int or str, optional
        The feature with the first stage's score, by number or name; the data set's `first_stage` by default.
    positives : "keep" or "drop"
        Whether to keep positives beyond rank k. If many are kept while the negatives around them are removed, the
        model learns to prefer low first-stage scores; there is a warning then.

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.Dataset.from_arrays([[3.0], [2.0], [1.0], [5.0], [4.0]], [0, 0, 1, 0, 1], group=[3, 2])
    >>> truncate(data, 1, by=0, positives="drop").labels.tolist()
    [0.0, 0.0]
    """
    rows = truncated_rows(data.lists, first_stage_values(data, by), k, positives=positives)
    _warn_of_positives_beyond(data.lists, rows, k)
    return data.take_rows(rows)


def by_model(data: Dataset, scores: Any, share: float, *, at_least: int = 1) -> Dataset:
    """All positives and the best-scored share of each query's negatives (Lucchese et al. 2015).

    Parameters
    ----------
    data : Dataset
    scores : array
        A score per document in the order the rows were given in, as a model's `predict(data)` returns them.
    share : float
        Of each query's negatives, rounded up.
    at_least : int
        Minimum number of negatives kept of a query.

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.Dataset.from_arrays([[3.0], [2.0], [1.0], [5.0], [4.0]], [0, 0, 1, 0, 1], group=[3, 2])
    >>> by_model(data, [0.1, 0.9, 0.5, 0.3, 0.2], 0.5).labels.tolist()
    [0.0, 1.0, 0.0, 1.0]
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scores.shape != (data.n_docs,):
        raise DataError(f"got scores of shape {scores.shape} for {data.n_docs} documents; give one per document")
    ours = scores if data.lists.order is None else scores[data.lists.order]
    return data.take_rows(best_rows(data.lists, ours, share, at_least=at_least))


def undersample(
    data: Dataset,
    *,
    n: int | None = None,
    share: float | None = None,
    order: str = "random",
    by: int | str | None = None,
    seed: int = 0,
) -> Dataset:
    """All positives and n, or a share, of each query's negatives (Ibrahim and Carman 2014).

    Parameters
    ----------
    data : Dataset
    n, share : int or float
        Number of negatives of each query, or their share, rounded up; give one of the two.
    order : "random", "ascending" or "descending"
        Select random negatives, or those with the smallest or the largest values of a feature, ties by row.
    by : int or str, optional
        That feature, by number or name; the data set's `first_stage` by default.
    seed : int
        Seed of the random selection.

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.Dataset.from_arrays([[3.0], [2.0], [1.0], [5.0], [4.0]], [0, 0, 1, 0, 1], group=[3, 2])
    >>> undersample(data, n=1, order="ascending", by=0).features.ravel().tolist()
    [2.0, 1.0, 5.0, 4.0]
    """
    values = first_stage_values(data, by) if order in ORDERS[1:] else None
    return data.take_rows(undersampled_rows(data.lists, values, n=n, share=share, order=order, seed=seed))


def first_stage_values(data: Dataset, by: int | str | None) -> np.ndarray:
    """The feature that documents are ordered by, in the order of the lists."""
    if by is None and data.first_stage is None:
        raise ParameterError(
            f"{data.source}: no first-stage feature is known; name the feature to order by, ", param("by", "NAME")
        )
    chosen = data.first_stage if by is None else by
    assert chosen is not None
    return data.column(chosen)


def truncated_rows(lists: Lists, values: np.ndarray, k: int, *, positives: str = "keep") -> np.ndarray:
    """The rows `truncate` keeps; `values` is the first stage's score of every document."""
    if not isinstance(k, int | np.integer) or k < 1:
        raise ParameterError(param("k"), f" is {k!r}; expected a whole number from 1")
    _check_one_of("positives", positives, POSITIVES)
    all_rows = np.arange(lists.n_docs, dtype=ROW)
    kept = largest_rows(values, all_rows, lists.offsets, np.minimum(lists.sizes, k))
    if positives == "drop":
        return kept
    return np.union1d(kept, np.flatnonzero(lists.labels).astype(ROW))


def _warn_of_positives_beyond(lists: Lists, kept: np.ndarray, k: int) -> None:
    """Warn if many of the positives kept are ranked beyond k by the first stage; their lists exceed k by these."""
    query = np.searchsorted(lists.offsets, kept, side="right") - 1
    sizes = np.bincount(query, minlength=lists.n_queries)
    n_beyond, n_positives = int(np.maximum(sizes - k, 0).sum()), int(np.count_nonzero(lists.labels))
    if n_beyond > FEW * n_positives:
        warnings.warn(
            RanksieveWarning(
                f"{n_beyond:,} of {n_positives:,} positives ({n_beyond / n_positives:.0%}) are ranked beyond {k} and "
                "kept without the negatives around them, so that the model learns to prefer low first-stage scores; "
                "consider ",
                param("positives", "drop"),
                ", or a larger ",
                param("k"),
            ),
            stacklevel=3,
        )


def best_rows(lists: Lists, scores: np.ndarray, share: float, *, at_least: int = 1) -> np.ndarray:
    """The rows `by_model` keeps; `scores` in the order of the lists."""
    _check_share(share)
    negatives = Negatives(lists)
    return np.union1d(negatives.positives, negatives.largest(scores, negatives.counts(share, at_least)))


def undersampled_rows(
    lists: Lists,
    values: np.ndarray | None,
    *,
    n: int | None = None,
    share: float | None = None,
    order: str = "random",
    seed: int = 0,
) -> np.ndarray:
    """The rows `undersample` keeps; `values` is the feature that decides, where one does."""
    _check_one_of("order", order, ORDERS)
    if (n is None) == (share is None):
        raise ParameterError(
            "give exactly one of ", param("n"), " (negatives per query) and ", param("share"), " (of the negatives)"
        )
    negatives = Negatives(lists)
    if n is not None:
        if not isinstance(n, int | np.integer) or n < 0:
            raise ParameterError(param("n"), f" is {n!r}; expected a whole number from 0")
        counts = negatives.counts(0.0, int(n))
    else:
        assert share is not None
        _check_share(share)
        counts = negatives.counts(share, 0)
    if order == "random":
        chosen = negatives.draw(counts, np.random.default_rng(seed))
    else:
        assert values is not None
        chosen = negatives.largest(values if order == "descending" else -values, counts)
    return np.union1d(negatives.positives, chosen)


def _check_share(share: float) -> None:
    if not 0 < share <= 1:
        raise ParameterError(param("share"), f" is {share!r}; expected a number in (0, 1]")


def _check_one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ParameterError(param(name), f" is {value!r}; expected one of {', '.join(known)}")

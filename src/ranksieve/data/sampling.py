"""Parts of a data set: whole queries, for training, validation and test data; or some documents of each list.

Documents are sampled once, before training. Test lists are never sampled.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass
from typing import Any

import numpy as np

from ranksieve.data.dataset import Dataset
from ranksieve.data.lists import Lists
from ranksieve.data.negatives import Negatives, largest_rows
from ranksieve.dtypes import ROW
from ranksieve.errors import DataError, ParameterError, RanksieveWarning, param
from ranksieve.rules import checked_fields, choice, integer, parameter, share
from ranksieve.text_formats import counted

FEW = 0.05  # of the positives may be ranked beyond k without a warning; with more, models prefer low first-stage scores


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
    rows = checked_fields(Truncate(k, positives)).rows(data.lists, first_stage_values(data, by))
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
        Share of each query's negatives, rounded up.
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
    rule = checked_fields(BestScored(share))
    return data.take_rows(rule.rows(data.lists, data.lists.ordered(scores), at_least=at_least))


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
    rule = checked_fields(Undersample(share, n, order))
    values = np.empty(0) if rule.order == "random" else first_stage_values(data, by)
    return data.take_rows(rule.rows(data.lists, values, seed))


def first_stage_values(data: Dataset, by: int | str | None) -> np.ndarray:
    """The feature that documents are ordered by, in the order of the lists."""
    feature = data.first_stage if by is None else by
    if feature is None:
        raise ParameterError(
            f"{data.source}: no first-stage feature is known; name the feature to order by, ", param("by", "NAME")
        )
    return data.column(feature)


@dataclass(frozen=True)
class Truncate:
    """`truncate` as a rule; `values` are the first stage's scores."""

    k: int = integer(MISSING, "Documents of each list to keep", 1)  # type: ignore[arg-type]
    positives: str = choice("keep", "Keep or drop positives beyond rank k", ("keep", "drop"))

    def rows(self, lists: Lists, values: np.ndarray, seed: int = 0) -> np.ndarray:
        """The rows that are kept."""
        all_rows = np.arange(lists.n_docs, dtype=ROW)
        kept = largest_rows(values, all_rows, lists.offsets, np.minimum(lists.sizes, self.k))
        return kept if self.positives == "drop" else np.union1d(kept, np.flatnonzero(lists.labels).astype(ROW))


@dataclass(frozen=True)
class BestScored:
    """`by_model` as a rule; `values` are the model's scores."""

    share: float = share(MISSING, "Share of a query's negatives to keep")  # type: ignore[arg-type]

    def rows(self, lists: Lists, values: np.ndarray, seed: int = 0, *, at_least: int = 1) -> np.ndarray:
        """The rows that are kept."""
        negatives = Negatives(lists)
        return np.union1d(negatives.positives, negatives.largest(values, negatives.counts(self.share, at_least)))


@dataclass(frozen=True)
class Undersample:
    """`undersample` as a rule; `values` are the feature that decides, where one does."""

    share: float | None = parameter(
        None, "Share of a query's negatives to keep", "a number in (0, 1]", lambda v: v is None or 0 < v <= 1
    )
    n: int | None = parameter(
        None, "Negatives of a query to keep", "an integer from 0", lambda value: value is None or value >= 0
    )
    order: str = choice("random", "Which negatives are kept, by the first stage", ("random", "ascending", "descending"))

    def __post_init__(self) -> None:
        if (self.n is None) == (self.share is None):
            raise ParameterError(
                "give exactly one of ", param("n"), " (negatives per query) and ", param("share"), " (of the negatives)"
            )

    def rows(self, lists: Lists, values: np.ndarray, seed: int = 0) -> np.ndarray:
        """The rows that are kept."""
        negatives = Negatives(lists)
        counts = negatives.counts(0.0, self.n or 0) if self.share is None else negatives.counts(self.share, 0)
        if self.order == "random":
            chosen = negatives.draw(counts, np.random.default_rng(seed))
        else:
            chosen = negatives.largest(values if self.order == "descending" else -values, counts)
        return np.union1d(negatives.positives, chosen)


SAMPLES: dict[str, Any] = {"truncate": Truncate, "by-model": BestScored, "undersample": Undersample}


def _warn_of_positives_beyond(lists: Lists, kept: np.ndarray, k: int) -> None:
    """Warn if many of the positives kept are ranked beyond k by the first stage; their lists exceed k by these."""
    query = np.searchsorted(lists.offsets, kept, side="right") - 1
    sizes = np.bincount(query, minlength=lists.n_queries)
    n_beyond, n_positives = int(np.maximum(sizes - k, 0).sum()), int(np.count_nonzero(lists.labels))
    if n_beyond > FEW * n_positives:
        warnings.warn(
            RanksieveWarning(
                f"{n_beyond:,} of {n_positives:,} positives ({n_beyond / n_positives:.0%}) are ranked beyond {k} and "
                "kept without the negatives around them, so the model learns to prefer low first-stage scores; "
                "consider ",
                param("positives", "drop"),
                ", or a larger ",
                param("k"),
            ),
            stacklevel=3,
        )


def split(data: Dataset, shares: Sequence[float] = (0.6, 0.2, 0.2), *, seed: int = 0) -> list[Dataset]:
    """Split a data set by query into parts of the given shares; a seed always gives the same queries.

    Examples
    --------
    >>> import ranksieve as rs
    >>> [part.n_queries for part in split(rs.synth.cubic(10))]
    [6, 2, 2]
    """
    return [data.take_queries(part) for part in split_queries(data.n_queries, shares, seed=seed)]


def split_queries(n_queries: int, shares: Sequence[float] = (0.6, 0.2, 0.2), *, seed: int = 0) -> list[np.ndarray]:
    """The numbers of the queries of each part, ascending."""
    given = np.asarray(shares, dtype=np.float64)
    if given.ndim != 1 or not len(given) or not (given > 0).all() or abs(given.sum() - 1) > 1e-9:
        raise ParameterError(param("shares"), f" are {list(shares)}; expected positive numbers that add up to 1")
    borders = np.round(np.cumsum(given) * n_queries).astype(int)
    parts = np.split(np.random.default_rng(seed).permutation(n_queries), borders[:-1])
    if min(map(len, parts)) == 0:
        raise too_few_queries(n_queries, shares)
    return [np.sort(part) for part in parts]


def too_few_queries(n_queries: int, shares: Sequence[float]) -> DataError:
    """The error if a part of a split would have no queries."""
    return DataError(
        f"the shares {', '.join(f'{one:g}' for one in shares)} of {counted(query=n_queries)} leave a part empty; use "
        "larger shares or more queries"
    )


def fold_queries(n_queries: int, n_folds: int = 5, *, seed: int = 0) -> Iterator[tuple[np.ndarray, ...]]:
    """Training, validation and test queries of each fold; every query is a test query once.

    Examples
    --------
    >>> [test.tolist() for _, _, test in fold_queries(6, 3)]
    [[4, 5], [0, 1], [2, 3]]
    """
    if n_folds < 3:
        raise ParameterError(
            param("folds"),
            f" is {n_folds}; expected at least 3: one for testing, one for validation, others for training",
        )
    if n_queries < n_folds:
        raise DataError(f"{n_queries} queries cannot be split into {n_folds} folds; every fold needs at least one")
    parts = np.array_split(np.random.default_rng(seed).permutation(n_queries), n_folds)
    for fold in range(n_folds):
        valid, test = parts[fold], parts[(fold + 1) % n_folds]
        rest = [parts[i] for i in range(n_folds) if i not in (fold, (fold + 1) % n_folds)]
        yield np.sort(np.concatenate(rest)), np.sort(valid), np.sort(test)

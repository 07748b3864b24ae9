"""Synthetic data sets: two-stage search with long lists, and a random cubic polynomial.

Query i of a seed is always the same: every query has its own random stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ranksieve.data.blocks import Block, Source, blocks_of
from ranksieve.data.dataset import Dataset
from ranksieve.data.features import FeatureInfo, default_names
from ranksieve.data.lists import Lists, starts_of
from ranksieve.data.search_features import (
    CLICKS,
    FRESH,
    INTENT,
    LENGTH,
    MATCH,
    N_TRAITS,
    PROFILE,
    TITLE,
    TOPIC,
    SearchFeatures,
)
from ranksieve.dtypes import FEATURE, LABEL, OFFSET
from ranksieve.errors import ParameterError, check_whole, param
from ranksieve.kernels.synthesis import fill_features

MAX_DOCS = 5000  # most documents that the first stage returns
COLLECTION = 2**64 - 1  # the random stream of what all queries of a seed share
GRADE_CHANCES = (0.45, 0.30, 0.17, 0.08)  # shares of the grades 1 to 4 among the positives

# Means of the traits:  match title auth. topic prof. fresh sem. spam intent length clicks
HARD = np.array([2.05, 1.65, 0.8, 0, 0, 0, 1.0, 0.4, 0, 0, 0.3])
POSITIVE = np.array([1.9, 1.5, 0.55, 0, 0, 0, 1.1, -0.2, 0, 0, 0.5])
PER_GRADE = np.array([0.45, 0.35, 0.25, 0, 0, 0, 0.35, -0.12, 0, 0, 0.30])
FIT = 0.85  # correlation of topic and profile in positives; negated in hard negatives
AGE = 1.0  # how fresh, or how old, positives are, depending on the query's intent
UNMATCHED = 0.22  # share of positives that do not match the query's words
HARD_SHARE = 0.025  # share of hard negatives in a list


def two_stage(n_queries: int, *, seed: int = 0, n_features: int = 220, start: int = 0) -> Dataset:
    """Search data as input of a second stage: long lists, few positives, sorted by the first stage.

    A list holds up to 5,000 documents (15 % of the queries up to 100, 39 % near 5,000, 2,700 in the mean), about 4.6 of
    them relevant, with grades 1 to 4. Feature `bm25f` is the first stage, by which lists are sorted. Hard negatives
    match the query as well as the positives do, and differ from them in how features go together: a topic feature and
    a profile feature agree for positives and disagree for hard negatives, and whether old or new documents are
    relevant depends on features of the query. A fifth of the positives do not match the query's words; some stand
    beyond rank 1,000. On unseen queries the first stage alone reaches an NDCG@10 of about 0.3, and 300 trees of
    LightGBM's lambdarank, learned from 250 queries, about 0.68.

    Parameters
    ----------
    n_queries : int
    seed : int
        Seed of the collection; use `start` for more queries of the same collection.
    n_features : int
        Number of features: the first of 220 named ones; noise beyond 220.
    start : int
        Number of the first query.

    Returns
    -------
    Dataset
        float32 features, some values missing (NaN); `first_stage` is 0.

    Examples
    --------
    >>> train = two_stage(3, seed=7)
    >>> test = two_stage(2, seed=7, start=3)
    >>> train.n_features, train.feature_names[train.first_stage], test.query_ids.tolist()
    (220, 'bm25f', [3, 4])
    """
    _check(n_queries, seed, n_features, start)
    queries = np.arange(start, start + n_queries)
    sizes = np.array([_list_size(_stream(seed, query)) for query in queries.tolist()], dtype=OFFSET)
    offsets = starts_of(sizes)
    features = np.empty((offsets[-1], n_features), dtype=FEATURE)
    labels = np.empty(offsets[-1], dtype=LABEL)
    table = SearchFeatures.draw(n_features, _stream(seed, COLLECTION))
    for query, first, stop in zip(queries.tolist(), offsets[:-1], offsets[1:], strict=True):
        _fill_query(_stream(seed, query), table, features[first:stop], labels[first:stop])
    info = FeatureInfo(table.names, 0, f"two_stage(seed={seed})", absent=np.nan)  # as in a Parquet file of it
    return Dataset(features, Lists(labels, offsets, queries), info)


def cubic(n_queries: int, *, seed: int = 0, docs: int = 50, n_features: int = 50, start: int = 0) -> Dataset:
    """Documents graded 0 to 4 by a random cubic polynomial of their features, without noise.

    After Burges et al. (2005): feature values are uniform in [-1, 1], and a document's value is the mean of three
    terms, each scaled to mean 0 and variance 1: a random weighted sum of the features; the sum of `x_i x_q(i)` and the
    sum of `x_i x_r(i) x_s(i)` for random permutations q, r and s. The polynomial belongs to the seed. Grades are cut
    from the value at fixed thresholds, below which about 50, 75, 90 and 97 % of all documents are.

    Examples
    --------
    >>> data = cubic(2, seed=1)
    >>> data.features.shape, data.lists.sizes.tolist()
    ((100, 50), [50, 50])
    """
    _check(n_queries, seed, n_features, start)
    if docs < 1:
        raise ParameterError(param("docs"), f" is {docs}; a query needs at least one document")
    polynomial = _Cubic(n_features, _stream(seed, COLLECTION))
    features = np.empty((n_queries * docs, n_features), dtype=FEATURE)
    labels = np.empty(n_queries * docs, dtype=LABEL)
    queries = np.arange(start, start + n_queries)
    offsets = np.arange(n_queries + 1, dtype=OFFSET) * docs
    for query, first in zip(queries.tolist(), offsets.tolist()[:-1], strict=True):
        rows = slice(first, first + docs)
        features[rows] = _stream(seed, query).uniform(-1, 1, (docs, n_features))
        labels[rows] = polynomial.grades(features[rows])
    info = FeatureInfo(default_names(n_features), None, f"cubic(seed={seed})")
    return Dataset(features, Lists(labels, offsets, queries), info)


GENERATORS = {"two-stage": (two_stage, 16), "cubic": (cubic, 1000)}  # with the queries of a block of about 40 MB


class GeneratedSource(Source):
    """A generator read like a file, some queries at a time."""

    def __init__(self, generate: Callable[..., Dataset], queries: range, seed: int, size: int) -> None:
        self._generate, self._queries, self._seed, self._size = generate, queries, seed, size
        sample = generate(1, seed=seed, start=queries.start)
        self.info, self.n_features = sample.info, sample.n_features

    def blocks(self, rows: int = 16_384) -> Iterator[Block]:
        n_docs = 0
        for first in range(self._queries.start, self._queries.stop, self._size):
            count = min(self._size, self._queries.stop - first)
            data = self._generate(count, seed=self._seed, start=first)
            n_docs += data.n_docs
            yield from blocks_of(data, rows)
        self.n_docs = n_docs


class _Cubic:
    """A random polynomial of degree three, and the values that separate the grades."""

    def __init__(self, n_features: int, rng: np.random.Generator) -> None:
        self.linear = rng.uniform(-1, 1, n_features)
        self.partners = [rng.permutation(n_features) for _ in range(3)]
        sample = rng.uniform(-1, 1, (10_000, n_features)).astype(FEATURE)
        terms = self.terms(sample)
        self.means, self.scales = terms.mean(axis=1, keepdims=True), terms.std(axis=1, keepdims=True)
        self.cuts = np.quantile(self.values(sample), [0.50, 0.75, 0.90, 0.97])

    def terms(self, X: np.ndarray) -> np.ndarray:
        """The three parts of the polynomial, one row each."""
        X = X.astype(np.float64)
        q, r, s = self.partners
        # sums, not matrix products: the value of a document must not depend on the number of documents
        return np.stack([(X * self.linear).sum(axis=1), (X * X[:, q]).sum(axis=1), (X * X[:, r] * X[:, s]).sum(axis=1)])

    def values(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(((self.terms(X) - self.means) / self.scales).mean(axis=0))

    def grades(self, X: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.cuts, self.values(X))


def _fill_query(rng: np.random.Generator, table: SearchFeatures, features: np.ndarray, labels: np.ndarray) -> None:
    n_docs = len(labels)
    _list_size(rng)  # `two_stage` has drawn it from the same random stream: the next numbers follow
    grades, hard = _draw_labels(rng, n_docs)
    traits = _draw_traits(rng, grades, hard)
    first_stage = (traits[:, MATCH] + 0.5 * traits[:, TITLE] + rng.normal(0, 0.5, n_docs)).astype(FEATURE)
    order = np.argsort(-first_stage, kind="stable")
    labels[:] = grades[order]
    keys = rng.integers(0, 2**32, len(table.names), dtype=np.uint32)
    fill_features(
        np.ascontiguousarray(traits[order].T, dtype=np.float32),
        table.terms,
        table.weights,
        table.noise,
        table.kinds,
        table.missing,
        table.by_query,
        keys,
        features,
    )
    features[:, 0] = 10 + 4 * first_stage[order]


def _draw_labels(rng: np.random.Generator, n_docs: int) -> tuple[np.ndarray, np.ndarray]:
    """Grades in no order, and which negatives are hard."""
    n_positives = min(1 + rng.negative_binomial(2, 2 / (2 + 3.7)), n_docs // 3)
    n_hard = int(HARD_SHARE * n_docs) + 3
    grades = np.zeros(n_docs)
    grades[:n_positives] = rng.choice([1, 2, 3, 4], n_positives, p=GRADE_CHANCES)
    hard = np.zeros(n_docs, dtype=bool)
    hard[n_positives : n_positives + n_hard] = True
    return grades, hard


def _draw_traits(rng: np.random.Generator, grades: np.ndarray, hard: np.ndarray) -> np.ndarray:
    """The hidden traits of the documents of a query, one row each."""
    positive = grades > 0
    traits = rng.normal(size=(len(grades), N_TRAITS))
    traits[:, TITLE] = 0.6 * traits[:, MATCH] + 0.8 * traits[:, TITLE]
    traits[hard] += HARD
    traits[positive] += POSITIVE + grades[positive, None] * PER_GRADE
    unmatched = positive & (rng.random(len(grades)) < UNMATCHED)
    traits[unmatched, MATCH : TITLE + 1] -= 2.0
    traits[unmatched, CLICKS] += 1.0
    # Topic and profile have the same distribution in every class; together they separate positives from hard negatives.
    fit = FIT * positive - FIT * hard
    traits[:, PROFILE] = fit * traits[:, TOPIC] + np.sqrt(1 - fit**2) * traits[:, PROFILE]
    intent = rng.choice([-1.0, 1.0])
    traits[:, INTENT] = intent
    traits[:, LENGTH] = rng.normal()
    traits[:, FRESH] += AGE * intent * (1.0 * positive - 1.0 * hard)
    return traits


def _list_size(rng: np.random.Generator) -> int:
    """The number of documents of a query."""
    kind = rng.random()
    if kind < 0.15:
        return int(rng.integers(10, 101))
    if kind < 0.15 + 0.39:
        return min(MAX_DOCS, int(rng.integers(MAX_DOCS - 100, MAX_DOCS + 150)))
    return 100 + int((MAX_DOCS - 200) * rng.beta(1.0, 2.16))


def _stream(seed: int, query: int) -> np.random.Generator:
    """The random stream of a query, or that of the collection."""
    return np.random.Generator(np.random.Philox(key=np.array([seed, query], dtype=np.uint64)))


def _check(n_queries: int, seed: int, n_features: int, start: int) -> None:
    check_whole("n_queries", n_queries)
    check_whole("seed", seed, 0)
    check_whole("n_features", n_features)
    check_whole("start", start, 0)

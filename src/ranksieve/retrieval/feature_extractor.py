"""`FeatureExtractor`: computes the features of candidates, block by block."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numba
import numpy as np

from ranksieve.data.features import RELATIVE
from ranksieve.data.index_features import DENSE, EXPANSION, FEEDBACK, FIRST, FIRST_STAGE, NEIGHBOURS, QUERY
from ranksieve.dtypes import FEATURE
from ranksieve.errors import DataError, ParameterError
from ranksieve.kernels import lexical
from ranksieve.kernels.expansion import N_EXPANSION, describe_expansion
from ranksieve.kernels.feedback import N_FEEDBACK, describe_feedback
from ranksieve.kernels.neighbours import N_NEIGHBOURS, all_key_terms, describe_neighbours
from ranksieve.kernels.neighbours import N_TERMS as N_COMPARED
from ranksieve.kernels.proximity import BIT_NUMBERS, N_PROXIMITY
from ranksieve.kernels.term_pairs import describe_pairs
from ranksieve.retrieval.dense_features import describe_vectors
from ranksieve.retrieval.feature_names import choose, layout_of
from ranksieve.retrieval.first_stage import idf
from ranksieve.retrieval.index import Index
from ranksieve.retrieval.queries import Prepared
from ranksieve.retrieval.searching import Candidates
from ranksieve.text_formats import counted
from ranksieve.user_functions import calling

UserFeature = Callable[[str, np.ndarray], Any]
JELINEK_MERCER_MIX = 0.5
K3 = 8.0  # saturation of repeated query terms, as in the first stage's default


class FeatureExtractor:
    """Computes the features of candidates.

    Parameters
    ----------
    index
        The index.
    select
        Names or patterns of features, such as `bm25*` or `*.title`, separated by commas or in a list; all if empty.
        With `relative.` in front, as in `relative.bm25*`, they are scaled within every list from 0 to 1.
    extra
        Your own features: functions (query text, document ids) → one number per document, by name.
    """

    def __init__(
        self,
        index: Index,
        select: str | Sequence[str] = (),
        extra: Mapping[str, UserFeature] | None = None,
        threads: int | None = None,
    ):
        self.index = index
        self._extra = dict(extra or {})
        self._layout = layout_of(index)
        taken = [name for name in self._extra if name in self._layout.names]
        if taken:
            raise ParameterError(f"a feature is named {taken[0]!r} already; choose another name for yours")
        for name, make in self._extra.items():
            if not callable(make):
                raise ParameterError(f"feature {name!r} is {make!r}; expected a function (query text, document ids)")
        self._choice = choose((*self._layout.names, *self._extra), select)
        made = {*self._choice.plain, *self._choice.relative}
        self._columns = [number for number, name in enumerate(self._layout.names) if name in made]
        self._extra = {name: make for name, make in self._extra.items() if name in made}
        self._positional, self._from_kernel = self._plan()
        self._threads = threads or numba.get_num_threads()
        self._documents = (
            index.lengths,
            np.maximum(index.lengths.mean(axis=1), 1e-12),
            index.document_array("distinct"),
            index.document_array("norms"),
        )

    def _plan(self) -> tuple[np.ndarray, np.ndarray]:
        """The fields whose positions are needed, and the columns to take of what the kernel computes."""
        n_lexical, positional = len(self._layout.columns) * lexical.N_LEXICAL, self._layout.positional
        n_kernel = n_lexical + len(positional) * N_PROXIMITY
        chosen = np.array([number for number in self._columns if number < n_kernel], dtype=np.int64)
        places = np.unique((chosen[chosen >= n_lexical] - n_lexical) // N_PROXIMITY)
        moved = np.arange(n_kernel)
        for rank, place in enumerate(places):
            start = n_lexical + place * N_PROXIMITY
            moved[start : start + N_PROXIMITY] = n_lexical + rank * N_PROXIMITY + np.arange(N_PROXIMITY)
        return np.array(positional, dtype=np.int64)[places], moved[chosen]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features, in the order of their columns."""
        return self._choice.names

    @property
    def first_stage(self) -> str | None:
        """The feature that orders lists as the first stage does, if it is among them."""
        return next((name for name in (FIRST_STAGE, RELATIVE + FIRST_STAGE) if name in self.names), None)

    @cached_property
    def _made(self) -> tuple[str, ...]:
        """Names of the features that are computed, each once."""
        return (*(self._layout.names[number] for number in self._columns), *self._extra)

    def extract(self, texts: Sequence[str], prepared: Prepared, candidates: Candidates) -> np.ndarray:
        """The features of all candidates, one row each."""
        made = self._all_once(texts, prepared, candidates)
        plain, relative = ([self._made.index(name) for name in names] for names in self._choice)
        kept = made if len(plain) == len(self._made) else made[:, plain]
        return np.hstack([kept, within_lists(made[:, relative], candidates.offsets)]) if relative else kept

    def _all_once(self, texts: Sequence[str], prepared: Prepared, candidates: Candidates) -> np.ndarray:
        """The features that are computed, before some are scaled."""
        n_rows, made = len(candidates.docs), self._from_postings(prepared, candidates)
        others = self._others(prepared, candidates)
        for name, make in self._extra.items():
            others[name] = self._user_feature(name, make, texts, candidates)
        out = np.empty((n_rows, len(self._made)), dtype=FEATURE)
        np.take(made, self._from_kernel, axis=1, out=out[:, : len(self._from_kernel)], mode="clip")
        for place, name in enumerate(self._made[len(self._from_kernel) :], len(self._from_kernel)):
            out[:, place] = others[name]
        return out

    def _from_postings(self, prepared: Prepared, candidates: Candidates) -> np.ndarray:
        """Features of the query's terms in the candidates, if any is selected."""
        n_lexical = len(self._layout.columns) * lexical.N_LEXICAL
        made = np.zeros((len(candidates.docs), n_lexical + len(self._positional) * N_PROXIMITY), dtype=FEATURE)
        if not len(self._from_kernel):
            return made
        term_stats, query_stats = self._statistics(prepared)
        describe_pairs(
            self.index.postings(prepared.terms), self._documents,
            (prepared.starts, prepared.terms, term_stats, query_stats, prepared.place_starts, prepared.places,
             prepared.spans), prepared.analyzer_of, self._positional,
            candidates.offsets, candidates.docs, int(self.index.lengths.max(initial=0)), BIT_NUMBERS,
            min(self._threads, max(prepared.n_queries, 1)), made,
        )  # fmt: skip
        return made

    def _statistics(self, prepared: Prepared) -> tuple[np.ndarray, np.ndarray]:
        """What the kernel needs of every query term and query, per field and over all."""
        index, columns = self.index, len(self._layout.columns)
        frequency = index.document_frequency[prepared.terms, :columns]
        occurrences = index.collection_frequency[prepared.terms, :columns]
        n_fields = len(index.fields)
        weights = prepared.weights
        if columns > n_fields:
            weights = np.concatenate([weights, weights.max(axis=1, keepdims=True, initial=0.0)], axis=1)
        weights = np.where(frequency > 0, weights, 0.0)
        share = np.maximum(occurrences, 1) / np.maximum(index.total_lengths[:columns], 1)
        stats = np.zeros((len(prepared.terms), columns, lexical.N_TERM))
        stats[..., lexical.WEIGHT] = saturated(weights)
        stats[..., lexical.IDF] = np.where(weights > 0, idf(index.n_docs, frequency), 0.0)
        stats[..., lexical.DIRICHLET] = 1 / (lexical.MU * share)
        stats[..., lexical.JELINEK_MERCER] = (1 - JELINEK_MERCER_MIX) / (JELINEK_MERCER_MIX * share)
        stats[..., lexical.ABSOLUTE] = 1 / (lexical.DISCOUNT * share)
        stats[..., lexical.INVERSE] = np.log2((index.n_docs + 1) / (frequency + 0.5))
        stats[..., lexical.MEAN_TF] = np.maximum(occurrences, 1) / index.n_docs
        stats[..., lexical.LOG_MEAN_TF] = np.log2(stats[..., lexical.MEAN_TF])
        with np.errstate(divide="ignore"):
            logs = np.where(weights > 0, 1 + np.log(weights), 0.0)
        stats[..., lexical.COSINE] = logs * stats[..., lexical.IDF]
        queries = np.zeros((prepared.n_queries, columns, lexical.N_QUERY))
        queries[..., lexical.TERMS] = _sums(weights > 0, prepared.starts)
        queries[..., lexical.TOTAL] = _sums(stats[..., lexical.WEIGHT], prepared.starts)
        queries[..., lexical.IDF_SUM] = _sums(stats[..., lexical.IDF], prepared.starts)
        queries[..., lexical.NORM] = np.sqrt(_sums(stats[..., lexical.COSINE] ** 2, prepared.starts))
        return stats, queries

    def _others(self, prepared: Prepared, candidates: Candidates) -> dict[str, np.ndarray]:
        """Features that are the same for all candidates of a query or all queries of a document."""
        sizes = np.diff(candidates.offsets)
        values = idf(self.index.n_docs, self.index.document_frequency[prepared.terms, -1])
        lists = [values[a:b] for a, b in zip(prepared.starts[:-1], prepared.starts[1:], strict=True)]
        of_query = [
            (
                n_words,
                len(some),
                *((some.sum(), some.min(), some.max(), some.mean(), some.var()) if len(some) else [0] * 5),
            )
            for n_words, some in zip(prepared.words, lists, strict=True)
        ]
        others = dict(
            zip(QUERY, np.repeat(np.array(of_query, dtype=float).reshape(-1, len(QUERY)), sizes, axis=0).T, strict=True)
        )
        starts = np.repeat(candidates.offsets[:-1], sizes)
        best = candidates.scores[starts]
        share = np.divide(candidates.scores, best, out=np.zeros(len(best)), where=best != 0)
        others |= zip(FIRST, (candidates.scores, np.arange(len(starts)) - starts + 1, share), strict=True)
        others |= self._feedback(candidates) | self._expansion(prepared, candidates) | self._neighbours(candidates)
        others |= self._dense(prepared, candidates)
        numbers = self.index.document_array("numbers")
        return others | {f"number.{name}": numbers[row][candidates.docs] for row, name in enumerate(self.index.numbers)}

    def _feedback(self, candidates: Candidates) -> dict[str, np.ndarray]:
        """Likeness to the best candidates, if it is selected."""
        if not set(self._made) & FEEDBACK.keys():
            return {}
        index, n_queries = self.index, len(candidates.offsets) - 1
        made = np.empty((len(candidates.docs), N_FEEDBACK))
        describe_feedback(
            index.forward(candidates.docs)[0], self._idf, index.document_array("norms")[-1], index.lengths[-1],
            float(index.lengths[-1].mean()), (candidates.offsets, candidates.docs, candidates.scores),
            min(self._threads, max(n_queries, 1)), made,
        )  # fmt: skip
        return dict(zip(FEEDBACK, made.T, strict=True))

    def _expansion(self, prepared: Prepared, candidates: Candidates) -> dict[str, np.ndarray]:
        """Scores by the query and expanded queries that count where terms first occur, if they are selected."""
        if not set(self._made) & EXPANSION.keys():
            return {}
        index, n_queries = self.index, prepared.n_queries
        weights = saturated(prepared.weights.max(axis=1, initial=0.0))
        totals = np.repeat(_sums(weights[:, None], prepared.starts).ravel(), np.diff(prepared.starts))
        made = np.empty((len(candidates.docs), N_EXPANSION))
        describe_expansion(
            *index.forward(candidates.docs), self._idf, index.lengths[-1],
            max(float(index.lengths[-1].mean()), 1e-12), (prepared.starts, prepared.terms, weights / totals),
            (candidates.offsets, candidates.docs, candidates.scores), min(self._threads, max(n_queries, 1)), made,
        )  # fmt: skip
        return dict(zip(EXPANSION, made.T, strict=True))

    def _neighbours(self, candidates: Candidates) -> dict[str, np.ndarray]:
        """Scores of the candidates most like each, if they are selected."""
        if not set(self._made) & NEIGHBOURS.keys():
            return {}
        docs, rows = np.unique(candidates.docs, return_inverse=True)
        shape = (len(docs), N_COMPARED)
        largest = np.empty(len(docs), np.int32), np.empty(shape, np.int32), np.empty(shape, np.float32)
        all_key_terms(self.index.forward(docs)[0], docs, self._idf, min(self._threads, max(len(docs), 1)), *largest)
        made = np.empty((len(candidates.docs), N_NEIGHBOURS))
        scores = within_lists(candidates.scores[:, None], candidates.offsets).ravel()
        describe_neighbours(
            largest, self.index.n_terms, candidates.offsets, rows, scores,
            min(self._threads, max(len(candidates.offsets) - 1, 1)), made,
        )  # fmt: skip
        return dict(zip(NEIGHBOURS, made.T, strict=True))

    def _dense(self, prepared: Prepared, candidates: Candidates) -> dict[str, np.ndarray]:
        """Features of vectors, if they are selected."""
        vectors = self.index.vectors
        if vectors is None or not set(self._made) & DENSE.keys():
            return {}
        return describe_vectors(vectors, prepared.vectors, candidates)

    @cached_property
    def _idf(self) -> np.ndarray:
        return idf(self.index.n_docs, self.index.document_frequency[:, -1])

    def _user_feature(self, name: str, make: UserFeature, texts: Sequence[str], candidates: Candidates) -> np.ndarray:
        parts = [np.empty(0, FEATURE)]
        for number, text in enumerate(texts):
            docs, _ = candidates.list_of(number)
            failure = f"feature {name!r} failed on the query {text[:80]!r}"
            with calling(failure, "gets a query's text and the ids of documents, and returns one number for each"):
                values = np.asarray(make(text, self.index.ids[docs]), dtype=FEATURE)
            if values.shape != docs.shape or np.isinf(values).any():
                what = f"an array of shape {values.shape}" if values.shape != docs.shape else "an infinite number"
                raise DataError(
                    f"feature {name!r} returned {what} for {counted(document=len(docs))}; return one number per "
                    "document, NaN where there is none"
                )
            parts.append(values)
        return np.concatenate(parts)


def saturated(weights: np.ndarray) -> np.ndarray:
    """What a term's occurrences in the query count."""
    return weights * (K3 + 1) / (K3 + weights)


def _sums(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Sums over the terms of each query, zero for a query without any; no query's sum depends on the others."""
    sums = np.zeros((len(starts) - 1, values.shape[1]))
    filled = np.flatnonzero(np.diff(starts))
    if len(filled):
        sums[filled] = np.add.reduceat(values.astype(np.float64), starts[filled], axis=0)
    return sums


def within_lists(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Columns scaled in every list: the smallest value becomes 0, the largest 1; what is missing stays missing.

    Examples
    --------
    >>> within_lists(np.array([[2.0], [4.0], [3.0], [7.0]]), np.array([0, 3, 4])).ravel().tolist()
    [0.0, 1.0, 0.5, 0.0]
    """
    sizes = np.diff(offsets)
    starts = offsets[:-1][sizes > 0]
    if not len(starts):
        return values
    lowest = np.fmin.reduceat(values, starts, axis=0)
    widths = np.fmax.reduceat(values, starts, axis=0) - lowest
    widths[widths == 0] = 1
    sizes = sizes[sizes > 0]
    return (values - np.repeat(lowest, sizes, axis=0)) / np.repeat(widths, sizes, axis=0)

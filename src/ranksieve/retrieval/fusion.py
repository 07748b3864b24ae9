"""`fuse`: several runs as one, by ranks or by normalised scores."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ranksieve.errors import DataError, ParameterError, check_choice, check_number, check_once, check_whole, param
from ranksieve.retrieval.runs import Run, as_run
from ranksieve.text_formats import counted

SMALLEST_SPREAD = 1e-9  # scores that are all equal are divided by it, as ranx does


def _min_max(scores: np.ndarray) -> np.ndarray:
    low = scores.min(initial=np.inf)
    return np.asarray((scores - low) / max(scores.max(initial=-np.inf) - low, SMALLEST_SPREAD))


NORMS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "min-max": _min_max,
    "zmuv": lambda scores: np.asarray((scores - scores.mean()) / max(scores.std(), SMALLEST_SPREAD)),
    "rank": lambda scores: 1 - np.arange(len(scores)) / len(scores),
    "none": lambda scores: scores,
}
METHODS = ("rrf", "sum", "mnz")
Found = dict[str, list[tuple[float, float]]]  # document → its points and the weight of each run that has it


def fuse(
    runs: Sequence[Any],
    method: str = "rrf",
    *,
    norm: str | None = None,
    weights: Sequence[float] | None = None,
    k: int | None = None,
    depth: int | None = None,
) -> Run:
    """Fuse runs into one; methods and normalisations are those of ranx, with the same names.

    A query has the documents that any run has for it. Documents with equal scores keep the order of the first run that
    has them.

    Parameters
    ----------
    runs
        Two or more runs: each a `Run`, a DataFrame with `qid`, `docno` and `score`, or a TREC run file.
    method
        "rrf": reciprocal rank fusion, the sum of 1 / (k + rank). "sum": CombSUM, the sum of the normalised scores.
        "mnz": CombMNZ, that sum times the number of runs that have the document.
    norm
        How "sum" and "mnz" normalise the scores of each list. "min-max" (default): to the range from 0 to 1. "zmuv":
        mean 0 and variance 1. "rank": 1 - (rank - 1) / length. "none": not at all.
    weights
        One weight per run, by which its scores are multiplied; "mnz" multiplies the sum of the scores by the sum of
        the weights of the runs that have the document. These are ranx's "wsum" and "wmnz".
    k
        The constant of "rrf"; 60 by default.
    depth
        Documents to keep per query; all by default.

    Examples
    --------
    >>> import ranksieve as rs
    >>> words = rs.retrieval.Run.from_rows([("q1", "d1", 9.0), ("q1", "d2", 8.0), ("q1", "d3", 1.0)])
    >>> vectors = rs.retrieval.Run.from_rows([("q1", "d2", 0.9), ("q1", "d4", 0.2)])
    >>> fuse([words, vectors]).doc_ids.tolist()
    ['d2', 'd1', 'd4', 'd3']
    >>> fuse([words, vectors], "sum", weights=[0.8, 0.2]).scores.round(2).tolist()
    [0.9, 0.8, 0.0, 0.0]
    """
    points = points_of(method, norm, k)
    check_once((os.fspath(run) for run in runs if isinstance(run, str | os.PathLike)), "name each run once")
    given = [run for run in map(as_run, runs) if run is not None]
    if len(given) < 2:
        raise ParameterError(f"{counted(run=len(given))} to fuse; give at least 2")
    factors = _weights(weights, len(given))
    if depth is not None:
        check_whole("depth", depth)
    found: dict[str, Found] = {}
    for run, factor in zip(given, factors, strict=True):
        for id, docs, scores in run.lists():
            of_query = found.setdefault(id, {})
            if len(docs):
                for doc, value in zip(docs, points(scores).tolist(), strict=True):
                    of_query.setdefault(doc, []).append((value, factor))
    return Run.from_lists((id, *_ranked(id, docs, method, depth)) for id, docs in found.items())


def fuse_numbers(
    lists: Sequence[tuple[np.ndarray, np.ndarray]],
    points: Callable[[np.ndarray], np.ndarray],
    weights: Sequence[float],
    depth: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Two lists of one query, documents as numbers and their scores; equivalent to `fuse`, and faster."""
    docs = np.concatenate([some for some, _ in lists])
    values = [weight * points(scores) for weight, (_, scores) in zip(weights, lists, strict=True)]
    found, first, places = np.unique(docs, return_index=True, return_inverse=True)
    totals = np.bincount(places, np.concatenate(values), minlength=len(found))
    order = np.lexsort((first, -totals))[:depth]
    return found[order], totals[order]


def points_of(method: str, norm: str | None = None, k: float | None = None) -> Callable[[np.ndarray], np.ndarray]:
    """The function from the scores of one list, best first, to what is added up."""
    check_choice("method", method, METHODS)
    if method == "rrf":
        if norm is not None:
            raise ParameterError(param("norm"), " is for the methods sum and mnz; rrf uses ranks alone")
        constant = 60 if k is None else k
        check_number("k", constant)
        return lambda scores: 1 / (constant + np.arange(1, len(scores) + 1))
    if k is not None:
        raise ParameterError(param("k"), " is for the method rrf; sum and mnz use scores")
    if norm is not None:
        check_choice("norm", norm, NORMS)
    return NORMS[norm or "min-max"]


def _weights(weights: Sequence[float] | None, n_runs: int) -> list[float]:
    if weights is None:
        return [1.0] * n_runs
    factors = [float(weight) for weight in weights]
    if len(factors) != n_runs or not np.isfinite(factors).all():
        raise ParameterError(param("weights"), f" are {factors}; expected {n_runs} finite numbers, one per run")
    if not any(factors):
        raise ParameterError(param("weights"), " are all 0, so every document would have the same score")
    return factors


def _ranked(id: str, found: Found, method: str, depth: int | None) -> tuple[list[str], np.ndarray]:
    """Documents and scores of one query, best first; sums are exact, so that they do not depend on the runs' order."""
    if not all(np.isfinite(values).all() for values in found.values()):
        raise DataError(f"query {id!r}: scores are too large to normalise; expected less than 1e300")
    totals = {doc: _total(values, method) for doc, values in found.items()}
    docs = sorted(totals, key=totals.__getitem__, reverse=True)[:depth]
    return docs, np.array([totals[doc] for doc in docs])


def _total(values: list[tuple[float, float]], method: str) -> float:
    if method == "mnz":
        return math.fsum(value for value, _ in values) * math.fsum(weight for _, weight in values)
    return math.fsum(weight * value for value, weight in values)

"""Features of vectors: similarity of query and document, and distances among the candidates."""

from __future__ import annotations

import numpy as np

from ranksieve.data.index_features import CENTROID, DENSE, DENSE_TOP
from ranksieve.retrieval.searching import Candidates
from ranksieve.retrieval.vectors import StoredVectors, divided, exact_products, lengths_of


def describe_vectors(vectors: StoredVectors, queries: np.ndarray, candidates: Candidates) -> dict[str, np.ndarray]:
    """The features of all candidates by name; those of a query do not depend on the other queries."""
    made = np.empty((len(DENSE), len(candidates.docs)))
    for number, query in enumerate(queries):
        docs, _ = candidates.list_of(number)
        if len(docs):
            made[:, candidates.offsets[number] : candidates.offsets[number + 1]] = _of_list(vectors, query, docs)
    return dict(zip(DENSE, made, strict=True))


def _of_list(vectors: StoredVectors, query: np.ndarray, docs: np.ndarray) -> list[np.ndarray]:
    """The features of one list, in the order of their names."""
    rows = vectors.rows(docs).astype(np.float64)
    lengths = vectors.lengths[docs]
    dots = exact_products(rows, query)
    units = divided(rows, lengths[:, None])
    centroid = units.mean(axis=0)
    found = {
        "dense.cosine": divided(dots, lengths * lengths_of(query[None])[0]),
        "dense.dot": dots,
        CENTROID: np.sqrt(exact_products(units - centroid, units - centroid)),
        **{name: _top_distances(units, n) for name, n in DENSE_TOP.items()},
    }
    return [found[name] for name in DENSE]


def _top_distances(units: np.ndarray, n: int) -> np.ndarray:
    """Mean of 1 - cosine with the first n candidates, or with the first n others for a candidate among them.

    Candidates stand in the order of the first stage.
    """
    if len(units) < 2:
        return np.full(len(units), np.nan)
    cosines = exact_products(units, units[:n].sum(axis=0)) / min(n, len(units))
    others = units[: n + 1].sum(axis=0)
    for place in range(min(n, len(units))):
        counted = min(n, len(units) - 1)
        cosines[place] = exact_products(units[place : place + 1], others - units[place])[0] / counted
    return 1.0 - cosines

"""The vectors of an index: the documents nearest to a query, exactly, or by a graph of near neighbours (HNSW)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.errors import DataError, import_extra

if TYPE_CHECKING:
    from ranksieve.retrieval.storage import StoredArrays

SIMILARITIES = ("cosine", "dot")
BLOCK_ROWS = 1 << 13  # documents whose products are computed at a time
MOST_PRODUCTS = 1 << 24  # products of queries and documents that are in memory at a time
SHORTEST = 1e-30  # vectors that are shorter count as zero: single precision cannot tell them apart
ROUNDING = 2.0**-24  # relative rounding error of single precision
NEIGHBOURS = 32  # neighbours of a document in the graph
CONSIDERED = 128  # documents that are considered as neighbours while it is built


def exact_products(rows: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Dot products of rows with one vector, or with as many, in double precision; none depends on the other rows.

    Products of matrices by BLAS are faster, but their last bits depend on the number of rows and threads.
    """
    return np.add.reduce(rows.astype(np.float64) * other.astype(np.float64), axis=1)


def lengths_of(rows: np.ndarray) -> np.ndarray:
    """The lengths of vectors; 0 for those that count as zero."""
    lengths = np.sqrt(exact_products(rows, rows))
    return np.where(lengths < SHORTEST, 0.0, lengths)


def divided(values: np.ndarray, lengths: Any) -> np.ndarray:
    """Values divided by lengths; 0 where a length is."""
    lengths = np.broadcast_to(lengths, values.shape)
    return np.divide(values, lengths, out=np.zeros(values.shape), where=lengths > 0)


class StoredVectors:
    """The vectors of the documents of an index, mapped into memory.

    Parameters
    ----------
    arrays
        The arrays of the index.
    dtype
        Type of the vectors: float32 or float16.
    similarity
        "cosine" or "dot".
    """

    def __init__(self, arrays: StoredArrays, dtype: str, similarity: str):
        self._arrays, self._dtype = arrays, np.dtype(dtype)
        self.similarity = similarity
        stored = arrays.unchecked("vectors")
        self.n_docs, self._row_bytes = stored.shape
        self.dimension = self._row_bytes // self._dtype.itemsize

    @property
    def dtype(self) -> str:
        return self._dtype.name

    @property
    def lengths(self) -> np.ndarray:
        """The length of each document's vector."""
        return self._arrays.whole("vector_lengths")

    def rows(self, docs: np.ndarray) -> np.ndarray:
        """The vectors of some documents."""
        places = docs.astype(np.int64) * self._row_bytes
        self._arrays.check_parts(("vectors",), places, places + self._row_bytes)
        return self._arrays.unchecked("vectors").view(self._dtype)[docs]

    def scores(self, docs: np.ndarray, query: np.ndarray) -> np.ndarray:
        """The similarity of a query to some documents."""
        products = np.concatenate(
            [np.empty(0), *(exact_products(self.rows(docs[a:b]), query) for a, b in blocks(len(docs)))]
        )
        if self.similarity == "dot":
            return products
        return divided(products, self.lengths[docs] * lengths_of(query[None])[0])

    def best(self, queries: np.ndarray, k: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The k most similar documents of each query, and their scores; equal scores in the order of documents.

        BLAS computes the products with all documents. Those that rounding could put among the k best are computed again
        exactly, so the result depends neither on the other queries nor on the number of threads.
        """
        lengths, size = lengths_of(queries), max(1, MOST_PRODUCTS // max(self.n_docs, 1))
        longest = 1.0 if self.similarity == "cosine" else float(self.lengths.max(initial=0.0))
        tolerance = 2 * (self.dimension + 8) * ROUNDING * longest
        for start in range(0, len(queries), size):
            units = divided(queries[start : start + size].astype(np.float64), lengths[start : start + size, None])
            for query, length, products in zip(
                queries[start : start + size], lengths[start : start + size], self._products(units), strict=True
            ):
                docs = _nearly_best(products, k, tolerance) if length else np.empty(0, np.int64)
                yield best_of(docs, self.scores(docs, query), k)

    def _products(self, units: np.ndarray) -> np.ndarray:
        """Products of queries of length one with all documents, or cosines, in single precision."""
        vectors = self._arrays.whole("vectors").view(self._dtype)
        found, units = np.empty((len(units), self.n_docs), np.float32), units.astype(np.float32)
        for a, b in blocks(self.n_docs):
            np.matmul(units, vectors[a:b].astype(np.float32, copy=False).T, out=found[:, a:b])
        if self.similarity == "cosine":
            found *= divided(np.ones(self.n_docs), self.lengths).astype(np.float32)
        return found


def blocks(n_rows: int) -> Iterator[tuple[int, int]]:
    for start in range(0, n_rows, BLOCK_ROWS):
        yield start, min(start + BLOCK_ROWS, n_rows)


def best_of(docs: np.ndarray, scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k best of some documents; equal scores in the order of documents."""
    order = np.lexsort((docs, -scores))[:k]
    return docs[order], scores[order]


def _nearly_best(products: np.ndarray, k: int, tolerance: float) -> np.ndarray:
    """The documents whose exact product may be among the k largest."""
    if k >= len(products):
        return np.arange(len(products))
    least = np.partition(products, len(products) - k)[len(products) - k]
    return np.flatnonzero(products >= least - tolerance)


def check_extra() -> Any:
    """The module faiss, or an error that names the extra."""
    return import_extra("faiss", "HNSW graphs need the package 'faiss-cpu'", "ranksieve[hnsw]")


def _comparable(vectors: np.ndarray, similarity: str) -> np.ndarray:
    """Vectors whose products order documents as the similarity does."""
    if similarity == "dot":
        return np.ascontiguousarray(vectors, dtype=np.float32)
    return divided(vectors.astype(np.float64), lengths_of(vectors)[:, None]).astype(np.float32)


class GraphBuilder:
    """Builds a graph of documents; on one thread, as several would make another graph each time."""

    def __init__(self, dimension: int, similarity: str):
        self._faiss, self._similarity = check_extra(), similarity
        self._graph = self._faiss.IndexHNSWFlat(dimension, NEIGHBOURS, self._faiss.METRIC_INNER_PRODUCT)
        self._graph.hnsw.efConstruction = CONSIDERED

    def add(self, vectors: np.ndarray) -> None:
        threads = self._faiss.omp_get_max_threads()
        self._faiss.omp_set_num_threads(1)
        try:
            self._graph.add(_comparable(vectors, self._similarity))
        finally:
            self._faiss.omp_set_num_threads(threads)

    def stored(self) -> np.ndarray:
        """The bytes of the graph."""
        return np.asarray(self._faiss.serialize_index(self._graph), dtype=np.uint8)


class Graph:
    """A graph on disk, mapped into memory; several threads may search it at once."""

    def __init__(self, path: Path, similarity: str):
        self._faiss, self._similarity = check_extra(), similarity
        try:
            self._graph = self._faiss.read_index(str(path), self._faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:
            raise DataError(
                f"{path}: faiss {self._faiss.__version__} cannot read it; index the corpus again"
            ) from error

    def near(self, queries: np.ndarray, k: int, ef: int) -> list[np.ndarray]:
        """About k documents near each query; with a larger `ef` they are more surely the nearest."""
        params = self._faiss.SearchParametersHNSW(efSearch=max(ef, k))
        _, docs = self._graph.search(_comparable(queries, self._similarity), k, params=params)
        return [some[some >= 0] for some in docs]

"""Graphs of near neighbours (HNSW), for approximate search in large indexes; by faiss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ranksieve.errors import DataError, import_extra
from ranksieve.retrieval.vectors import divided, lengths_of

NEIGHBOURS = 32  # of a document in the graph
CONSIDERED = 128  # documents that are considered as neighbours while it is built


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

"""Seconds of a dense search on one thread: with all documents, and in an HNSW graph; and what the graph misses.

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/vector_search.py [--documents 100000] [--dimension 384]

Vectors are random points of a space of 16 dimensions, turned into the full dimension, and noise: they have near
neighbours at all distances, as those of texts do.
Recall is the share of the exact 10 best that the graph finds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import ranksieve as rs
from ranksieve.retrieval.first_stage import FirstStage
from ranksieve.retrieval.searching import Retriever
from results import save

QUERIES, K = 100, 10
LATENT, NOISE = 16, 0.3
SIZES = (50, 200, 800)  # of the list of candidates in the graph


def vectors(n_docs: int, dimension: int, seed: int) -> np.ndarray:
    rng, turn = np.random.default_rng(seed), np.random.default_rng(0).normal(size=(LATENT, dimension))
    points = rng.normal(size=(n_docs, LATENT)) @ turn / np.sqrt(LATENT)
    return (points + rng.normal(scale=NOISE, size=points.shape)).astype(np.float32)


def seconds_per_query(search: Callable[[int], list[int]]) -> tuple[float, list[list[int]]]:
    """The median over queries, each alone; and what was found."""
    search(0)
    spans, found = [], []
    for query in range(QUERIES):
        start = time.perf_counter()
        found.append(search(query))
        spans.append(time.perf_counter() - start)
    return float(np.median(spans)), found


def measure(n_docs: int, dimension: int, dtype: str, folder: Path, *, hnsw: bool) -> list[dict]:
    rows = vectors(n_docs, dimension, 1).astype(dtype)
    queries = vectors(QUERIES, dimension, 2)
    start = time.perf_counter()
    index = rs.Index.build(
        ({"id": str(n), "text": "x"} for n in range(n_docs)), folder, vectors=rows, hnsw=hnsw, texts=False
    )
    built = time.perf_counter() - start
    made, exact = [], None
    for ef in (0, *SIZES) if hnsw else (0,):
        retriever = Retriever(
            index, FirstStage("dense", ef=ef), threads=1, query_vectors=lambda texts: queries[list(map(int, texts))]
        )
        span, found = seconds_per_query(lambda query, it=retriever: it.candidates([str(query)], K).docs.tolist())
        exact = exact or found
        recall = np.mean([len(set(a) & set(b)) / K for a, b in zip(found, exact, strict=True)])
        row = {
            "documents": n_docs,
            "dimension": dimension,
            "dtype": dtype,
            "ef": ef,
            "ms per query": round(1e3 * span, 3),
        }
        made.append({**row, f"recall@{K}": round(float(recall), 4), "index s": round(built, 1)})
        print(made[-1], flush=True)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=384)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as out:
        rows = [
            row
            for dtype, hnsw in (("float32", True), ("float16", False))
            for row in measure(arguments.documents, arguments.dimension, dtype, Path(out, dtype), hnsw=hnsw)
        ]
    save("vector_search", rows)


if __name__ == "__main__":
    main()

"""RankSVM: the same minimum as scikit-learn on explicit pairs, and the time and memory of 8 million documents.

Run `python benchmarks/ranksvm.py`; 6 GB of memory, a few minutes. The large data is `two_stage`, 2,700 documents
a query.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
from sklearn.svm import LinearSVC

import ranksieve as rs
from ranksieve.rankers.linear import Linear
from results import save


def explicit_pairs(data: rs.Dataset, model: Linear) -> np.ndarray:
    """Differences of standardised features of every pair of different grades."""
    rows = np.concatenate(list(data.blocks()))
    features = np.nan_to_num((rows - model.standard.means) * model.standard.factors)
    pairs = []
    for start, stop in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        higher, lower = np.nonzero(data.labels[start:stop, None] > data.labels[None, start:stop])
        pairs.append(features[start + higher] - features[start + lower])
    return np.concatenate(pairs)


def against_scikit_learn(c: float) -> dict:
    """Objectives and times on data small enough to list its pairs."""
    data = rs.cubic(40)
    rs.train(data, algo="ranksvm", c=c, threads=1)  # compiles
    start = time.process_time()
    model = rs.train(data, algo="ranksvm", c=c, threads=1)
    ours = time.process_time() - start
    pairs = explicit_pairs(data, model)
    signs = np.where(np.arange(len(pairs)) % 2, 1.0, -1.0)
    start = time.process_time()
    svm = LinearSVC(loss="squared_hinge", fit_intercept=False, dual=False, C=c, tol=1e-8, max_iter=100_000)
    weights = svm.fit(pairs * signs[:, None], signs).coef_[0]
    theirs = time.process_time() - start
    objective = 0.5 * weights @ weights + c * np.square(np.maximum(0, 1 - pairs @ weights)).sum()
    difference = abs(model.info["objective"] - objective) / objective
    assert difference < 1e-4
    return {
        "data": "cubic(40)", "pairs": len(pairs), "c": c, "objective": model.info["objective"],
        "relative difference from LinearSVC": float(f"{difference:.1e}"),
        "cpu s": round(ours, 2), "LinearSVC cpu s, pairs given": round(theirs, 2),
    }  # fmt: skip


def large(queries: int, features: int, threads: int) -> dict:
    """Time and memory of training on long lists."""
    data = rs.two_stage(queries, n_features=features)
    test = rs.two_stage(100, n_features=features, start=queries)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.perf_counter(), time.process_time()
    model = rs.train(data, algo="ranksvm", threads=threads)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    systems = {"first stage": rs.train(data.take_queries([0]), algo="feature"), "ranksvm": model}
    result = rs.evaluate(systems, test)
    gib = 2**20
    return {
        "data": f"two_stage({queries})", "documents": data.n_docs, "features": features, "pairs": model.info["pairs"],
        "iterations": model.info["iterations"], "converged": model.info["converged"], "threads": threads,
        "wall s": round(wall, 1), "cpu s": round(cpu, 1),
        "data GiB": round(data.features.nbytes / 2**30, 2), "peak GiB with data": round(before / gib, 2),
        "peak GiB with training": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / gib, 2),
        "test ndcg@10": round(result.mean("ranksvm"), 4), "first stage": round(result.mean("first stage"), 4),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=3000)
    parser.add_argument("--features", type=int, default=150)
    parser.add_argument("--threads", type=int, default=0)
    arguments = parser.parse_args()
    rows = []
    for c in (0.001, 1.0):
        rows.append(against_scikit_learn(c))
        print(rows[-1], flush=True)
    rows.append(large(arguments.queries, arguments.features, arguments.threads))
    print(rows[-1], flush=True)
    save("ranksvm", rows)


if __name__ == "__main__":
    main()

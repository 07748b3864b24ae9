"""RankSVM: the same minimum as scikit-learn on explicit pairs, and the time and memory of 8 million documents.

    python benchmarks/ranksvm.py                          # two_stage, 2,700 documents a query
    python benchmarks/ranksvm.py --bugs build/bugs        # files of benchmarks/bugs.py --depth 6000, together

6 GB of memory, a few minutes.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from pathlib import Path

import numpy as np
from sklearn.svm import LinearSVC

import ranksieve as rs
from ranksieve.data.read import open_data
from ranksieve.models.linear import Linear
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
    data = rs.synth.cubic(40)
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


def two_stage(queries: int, features: int) -> tuple[rs.Dataset, rs.Dataset]:
    """Lists to learn from and others to test on."""
    return rs.synth.two_stage(queries, n_features=features), rs.synth.two_stage(100, n_features=features, start=queries)


def bugs(folder: Path) -> tuple[rs.Dataset, rs.Dataset]:
    """The reports of all projects together, every twentieth to be tested on."""
    sources = [open_data(path) for path in sorted(folder.glob("*.parquet"))]
    names, first_stage = sources[0].feature_names, sources[0].first_stage
    assert all(source.feature_names == names for source in sources)
    n_docs = sum(source.n_docs for source in sources)
    train, test = (Rows(n, len(names)) for n in (n_docs, n_docs // 8))
    numbers: dict[str, int] = {}
    for source in sources:
        for block in source.blocks():
            ids = [numbers.setdefault(id, len(numbers)) for id in block.run_ids]
            queries = np.repeat(ids, block.run_lengths)
            tested = queries % 20 == 0
            train.append(block.features[~tested], block.labels[~tested], queries[~tested])
            test.append(block.features[tested], block.labels[tested], queries[tested])
    return train.dataset(names, first_stage), test.dataset(names, first_stage)


class Rows:
    """Room for documents, of which no second copy is made."""

    def __init__(self, n_docs: int, n_features: int) -> None:
        self.features = np.empty((n_docs, n_features), np.float32)
        self.labels, self.queries, self.n = np.empty(n_docs, np.float32), np.empty(n_docs, np.int64), 0

    def append(self, features: np.ndarray, labels: np.ndarray, queries: np.ndarray) -> None:
        part = slice(self.n, self.n + len(labels))
        self.features[part], self.labels[part], self.queries[part] = features, labels, queries
        self.n += len(labels)

    def dataset(self, names: tuple[str, ...], first_stage: int | None) -> rs.Dataset:
        parts = (self.features[: self.n], self.labels[: self.n])
        data = rs.Dataset.from_arrays(*parts, qid=self.queries[: self.n])
        return data.with_features(names, first_stage=first_stage)


def large(name: str, data: rs.Dataset, test: rs.Dataset, c: float, threads: int) -> dict:
    """Time and memory of training on long lists."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.perf_counter(), time.process_time()
    model = rs.train(data, algo="ranksvm", c=c, threads=threads)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    systems = {"first stage": rs.train(data.take_queries([0]), algo="feature"), "ranksvm": model}
    result = rs.evaluate(systems, test)
    gib = 2**20
    return {
        "data": name, "queries": data.n_queries, "documents": data.n_docs, "features": data.n_features,
        "positives": int(np.count_nonzero(data.labels)), "pairs": model.info["pairs"], "c": c,
        "iterations": model.info["iterations"], "converged": model.info["converged"],
        "objective": model.info["objective"], "threads": threads, "wall s": round(wall, 1), "cpu s": round(cpu, 1),
        "data GiB": round(data.features.nbytes / 2**30, 2), "peak GiB with data": round(before / gib, 2),
        "peak GiB with training": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / gib, 2),
        "test queries": test.n_queries, "test ndcg@10": round(result.mean("ranksvm"), 4),
        "first stage": round(result.mean("first stage"), 4),
        "load": round(os.getloadavg()[0], 1),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=3000)
    parser.add_argument("--features", type=int, default=150)
    parser.add_argument("--bugs", type=Path, help="folder of feature files of bug reports")
    parser.add_argument("--c", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--name", default="ranksvm", help="of the results file")
    given = parser.parse_args()
    rows = []
    for c in (0.001, 1.0):
        rows.append(against_scikit_learn(c))
        print(rows[-1], flush=True)
    if given.bugs is None:
        name, (data, test) = f"two_stage({given.queries})", two_stage(given.queries, given.features)
    else:
        name, (data, test) = "bug reports of four projects, depth 6000", bugs(given.bugs)
    rows.append(large(name, data, test, given.c, given.threads))
    print(rows[-1], flush=True)
    save(given.name, rows)


if __name__ == "__main__":
    main()

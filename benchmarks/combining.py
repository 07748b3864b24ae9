"""How long the exact best combination of two rankers takes, on lists of a second stage's size.

Before timing, the curve is compared with the metric measured at random places.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import ranksieve as rs
from ranksieve.data.lists import Lists
from results import save

CASES = (  # queries, documents, share of positives, metric
    (300, 2700, 0.002, "ndcg@10"),
    (300, 2700, 0.002, "map@10"),
    (100, 5000, 0.001, "ndcg@10"),
    (300, 2700, 0.002, "ndcg@100"),
    (10_000, 50, 0.5, "ndcg@10"),
)


def two_rankers(n_queries: int, n_docs: int, share: float) -> tuple[Lists, np.ndarray, np.ndarray]:
    """Scores of two rankers, both correlated with the labels."""
    rng = np.random.default_rng(0)
    n = n_queries * n_docs
    labels = ((rng.random(n) < share) * rng.integers(1, 5, n)).astype(np.float32)
    lists = Lists(labels, n_docs * np.arange(n_queries + 1), np.arange(n_queries))
    return lists, *(rng.standard_normal((2, n)) + 0.5 * labels)


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    rows = []
    for n_queries, n_docs, share, metric in CASES:
        lists, a, b = two_rankers(n_queries, n_docs, share)
        found = rs.combine(a, b, lists, metric)
        for alpha in np.random.default_rng(1).random(5):
            measured = rs.evaluate((1 - alpha) * a + alpha * b, lists, metric).mean()
            assert abs(measured - found.curve.at(np.array([alpha]))[0]) < 1e-9
        clock, cpu = time.perf_counter(), time.process_time()
        found = rs.combine(a, b, lists, metric)
        times = {"seconds": time.perf_counter() - clock, "cpu_seconds": time.process_time() - cpu}
        rows.append({"queries": n_queries, "documents": n_docs, "metric": metric, "alpha": found.alpha,
                     "value": found.value, "intervals": len(found.curve.values), **times})  # fmt: skip
        what = f"{n_queries:6} queries x {n_docs:5} documents, {metric:9} {found.value:.4f} at {found.alpha:.4f}"
        cost = f"{times['seconds']:.2f} s, CPU {times['cpu_seconds']:.2f} s"
        print(f"{what}, {len(found.curve.values):7,} intervals: {cost}")
    save("combining", rows)


if __name__ == "__main__":
    main()

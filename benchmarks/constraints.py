"""How much longer a tree takes under monotone constraints than a free one.

    python benchmarks/constraints.py [--trees 8]

λ-MART on `cubic` lists of 60 documents × 128 features, 64 leaves, one thread, both gains; every fourth feature gets a
sign, or all do. Times are processor time from one tree to the next, the median of all but the first two; free and bound
forests take turns, so that other work on the machine meets both.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import ranksieve as rs
import results

QUERIES = (100, 2_000)
DOCS, FEATURES = 60, 128
SIGNS = {
    "none": [0] * FEATURES,
    "every fourth": [(1, 0, 0, 0, -1, 0, 0, 0)[i % 8] for i in range(FEATURES)],
    "all": [(1, -1)[i % 2] for i in range(FEATURES)],
}


def ms_per_tree(data: rs.Dataset, signs: list[int], gain: str, trees: int) -> tuple[float, rs.Forest]:
    clock = [time.process_time()]
    forest = rs.train(
        data, algo="lambdamart", trees=trees, leaves=64, min_docs=5, gain=gain, threads=1,
        monotone=signs if any(signs) else "none", callbacks=[lambda record: clock.append(time.process_time())],
    )  # fmt: skip
    return float(np.median(np.diff(clock)[2:])) * 1e3, forest


def check_monotone(forest: rs.Forest, data: rs.Dataset, signs: list[int]) -> None:
    """Scores keep to the signs along each feature, from some documents."""
    rng = np.random.default_rng(0)
    for feature in np.flatnonzero(signs)[:16]:
        docs = np.repeat(data.rows(0, 20), 50, axis=0)
        docs[:, feature] = np.sort(rng.uniform(-1, 1, (20, 50)), axis=1).ravel()
        assert (np.diff(forest.predict(docs).reshape(20, 50), axis=1) * signs[feature] >= 0).all()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    rows = []
    for n_queries in QUERIES:
        data = rs.synth.cubic(n_queries, docs=DOCS, n_features=FEATURES)
        for gain in ("variance", "newton"):
            taken: dict[str, list[float]] = {name: [] for name in SIGNS}
            for _ in range(options.rounds):
                for name, signs in SIGNS.items():
                    ms, forest = ms_per_tree(data, signs, gain, options.trees)
                    check_monotone(forest, data, signs)
                    taken[name].append(ms)
            free = min(taken["none"])
            for name, found in taken.items():
                rows.append({
                    "documents": data.n_docs, "features": FEATURES, "gain": gain, "signs": name,
                    "ms_per_tree": round(min(found), 3), "times_as_long": round(min(found) / free, 2),
                })  # fmt: skip
                print(rows[-1], flush=True)
    results.save("constraints", rows)


if __name__ == "__main__":
    main()

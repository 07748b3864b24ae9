"""Small LETOR files, and settings that train on them in no time."""

from __future__ import annotations

import numpy as np

QUICK = ["--trees", "12", "--leaves", "6", "--min-docs", "3", "--learning-rate", "0.2", "--negatives", "0.3"]
QUICK += ["--min-negatives", "1", "--threads", "1"]  # small work: more threads would only wait for each other


def letor_text(n_queries: int, seed: int, *, n_features: int = 5, size: int = 12) -> str:
    rng = np.random.default_rng(seed)
    lines = []
    for query in range(n_queries):
        for _ in range(size):
            values = rng.random(n_features).round(4)
            label = int(3 * values[0] * values[1] + 0.4 * rng.random())
            features = " ".join(f"{number}:{value}" for number, value in enumerate(values, 1))
            lines.append(f"{label} qid:{query + 100 * seed} {features}\n")
    return "".join(lines)

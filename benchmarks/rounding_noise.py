"""What the noise of packed sums costs: λ-MART with larger units than needed, and with the usual ones beside exact sums.

Run `python benchmarks/rounding_noise.py`; about 8 minutes of one core. Splits are chosen by sums of gradients that are
rounded at random, see `boosting.fixed_point.Scale.packed`. The first part makes the units so large that the noise is at
most 1/64, …, 8. The second compares the usual units of more than 65,536 rows with the smallest that fit, and with sums
that are not rounded at random. NDCG@10 on other lists; differences of the means over seeds, with the standard error
over queries.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np

import ranksieve as rs
from ranksieve.boosting import fixed_point
from ranksieve.data.binned import bin_data
from results import save

COMMON = {"algo": "lambdamart", "trees": 100, "threads": 1, "early_stopping": 0, "verbose": False}
NOISES = (-6, -3, 0, 3)  # log2

Patches = dict[str, Callable[..., object]]


def with_noise(noise: int) -> Patches:
    """Units as large as a noise of 2^noise allows."""
    return {"packed_shift": lambda n_rows, fitting, of_least_bits, of_noise: min(fitting, of_noise - noise)}


SMALLEST: Patches = {"packed_shift": lambda n_rows, fitting, of_least_bits, of_noise: fitting}
EXACT: Patches = {"fits_one_integer": lambda n_rows: False}


def values(train: rs.Dataset, test: rs.Dataset, patches: Patches, seeds: int) -> np.ndarray:
    """NDCG@10 of each query, the mean over models of several seeds."""
    metric, binned = rs.metrics.parse_metric("ndcg@10"), bin_data(train)
    with ExitStack() as stack:
        for name, function in patches.items():
            stack.enter_context(patch.object(fixed_point, name, function))
        models = [rs.train(binned, seed=seed, feature_fraction=0.7, **COMMON) for seed in range(seeds)]
    found = [metric.per_query(test.labels, model.predict(test.features), test.offsets) for model in models]
    return np.mean(found, axis=0)


def rows(name: str, train: rs.Dataset, test: rs.Dataset, sides: dict[str, Patches], seeds: int) -> list[dict]:
    """One row for each side; differences are to the first."""
    out, first = [], None
    for side, patches in sides.items():
        found = values(train, test, patches, seeds)
        first = found if first is None else first
        difference = (found - first)[~np.isnan(found)]
        out.append(
            {
                "lists": name, "documents": train.n_docs, "sums": side, "seeds": seeds,
                "ndcg@10": round(float(np.nanmean(found)), 4),
                "difference": round(float(difference.mean()), 4),
                "s.e.": round(float(difference.std() / np.sqrt(len(difference))), 4),
            }
        )  # fmt: skip
        print(out[-1], flush=True)
    return out


def main() -> None:
    short = rs.synth.cubic(300, seed=1), rs.synth.cubic(500, seed=1, start=300)
    found = rows(
        "cubic, 50 documents a list", *short,
        {"exact": EXACT, **{f"noise up to {2.0**noise:g}": with_noise(noise) for noise in NOISES}}, 16,
    )  # fmt: skip
    usual: dict[str, Patches] = {"exact": EXACT, "smallest units": SMALLEST, "usual units": {}}
    many = rs.synth.cubic(2000, seed=1), rs.synth.cubic(600, seed=1, start=2000)
    found += rows("cubic, 50 documents a list", *many, usual, 4)
    found += rows("two-stage", rs.synth.two_stage(100), rs.synth.two_stage(200, start=360), usual, 3)
    save("rounding_noise", found)


if __name__ == "__main__":
    main()

"""How many trees optimal steps (OC) save against λ-MART's shrinkage, on artificial data (Wu et al. 2010, figure 3).

Both have the same settings and differ in the step alone. λ-MART's level is the test NDCG@10 of its trees chosen on
validation lists; OC gets half as many trees, and those it needs to reach the level are counted. `--lightgbm` times
λ-MART and LightGBM on the same data instead.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import ranksieve as rs
from ranksieve.data.binned import bin_data
from results import save

METRIC = "ndcg@10"


def runs(trees: int, low: float, high: float) -> dict[str, dict]:
    steps = {"step": "optimal", "step_range": (low, high), "trees": trees // 2}
    return {
        "λ-MART, shrinkage 0.1": {"learning_rate": 0.1, "trees": trees},
        "OC on training lists": steps,
        "OC on validation lists": {**steps, "step_on": "valid"},
    }


def trees_to(curve: np.ndarray, level: float) -> int | None:
    """The first tree at which a curve reaches a level."""
    reached = np.flatnonzero(curve >= level)
    return int(reached[0]) + 1 if len(reached) else None


def learn(sets: dict[str, rs.Dataset], options: dict, leaves: int, threads: int) -> tuple[rs.Forest, dict]:
    clock, cpu = time.perf_counter(), time.process_time()
    model = rs.train(
        sets["train"], valid={name: sets[name] for name in ("valid", "test")}, algo="lambdamart", leaves=leaves,
        early_stopping=0, metric=METRIC, threads=threads, **options,
    )  # fmt: skip
    return model, {"seconds": time.perf_counter() - clock, "cpu_seconds": time.process_time() - cpu}


def time_lightgbm(sets: dict[str, rs.Dataset], trees: int, leaves: int, threads: int) -> list[dict]:
    """λ-MART and LightGBM without validation, binning not counted; both warm."""
    import lightgbm

    train = sets["train"]
    settings = {
        "objective": "lambdarank", "num_leaves": leaves, "learning_rate": 0.1, "num_threads": threads, "verbose": -1,
        "min_data_in_leaf": 5, "lambda_l2": 1.0, "max_bin": 255,
    }  # fmt: skip
    data = lightgbm.Dataset(train.features, train.labels, group=train.lists.sizes, params=settings).construct()
    lightgbm.train(settings, data, 5)
    ours = {"algo": "lambdamart", "leaves": leaves, "learning_rate": 0.1, "threads": threads}
    binned = bin_data(train)
    rs.train(binned, trees=5, **ours)
    rows = {}
    for name, work in {
        "LightGBM": lambda: lightgbm.train(settings, data, trees),
        "λ-MART": lambda: rs.train(binned, trees=trees, **ours),
    }.items():
        clock, cpu = time.perf_counter(), time.process_time()
        work()
        rows[name] = [time.perf_counter() - clock, time.process_time() - cpu]
    return [{"run": name, "trees": trees, "seconds": wall, "cpu_seconds": cpu} for name, (wall, cpu) in rows.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=10_000, help="of training; half as many validate")
    parser.add_argument("--trees", type=int, default=1000)
    parser.add_argument("--leaves", type=int, default=10)
    parser.add_argument("--range", type=float, nargs=2, default=(0.1, 1.0))
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lightgbm", action="store_true", help="time λ-MART and LightGBM only")
    parser.add_argument("--name", default="oc", help="of the results file")
    args = parser.parse_args()
    n = args.queries
    sizes = {"train": n, "valid": n // 2, "test": n}
    starts = dict(zip(sizes, (0, n, n + n // 2), strict=True))
    sets = {name: rs.synth.cubic(size, start=starts[name], seed=args.seed) for name, size in sizes.items()}
    facts = {"queries": n, "leaves": args.leaves, "threads": args.threads}
    if args.lightgbm:
        rows = [{**facts, **row} for row in time_lightgbm(sets, args.trees, args.leaves, args.threads)]
        for row in rows:
            print(f"{row['run']:10} {row['trees']} trees: {row['seconds']:.1f} s, CPU {row['cpu_seconds']:.1f} s")
        save(args.name, rows)
        return
    rows, level = [], 0.0
    for name, options in runs(args.trees, *args.range).items():
        model, times = learn(sets, options, args.leaves, args.threads)
        test = np.array(model.evals_result_["test"][METRIC])
        chosen = int(np.argmax(model.evals_result_["valid"][METRIC]))
        level = level or float(test[chosen])
        row = {
            "run": name, **facts, **options, "chosen": chosen + 1, METRIC: float(test[chosen]), "level": level,
            "trees_to_level": trees_to(test, level), "curve": [round(float(value), 5) for value in test], **times,
        }  # fmt: skip
        rows.append(row)
        print(f"{name:24} {METRIC} {row[METRIC]:.4f} at {row['chosen']} trees; reaches {level:.4f} with "
              f"{row['trees_to_level']}; {times['seconds']:.0f} s, CPU {times['cpu_seconds']:.0f} s")  # fmt: skip
    save(args.name, rows)


if __name__ == "__main__":
    main()

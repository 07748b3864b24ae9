"""λ-MART, McRank and LambdaRank on cubic data, as Table 1 and Figure 2 of the LambdaMART paper, and LightGBM's time.

Run `python benchmarks/cubic.py`; the paper's size takes about half an hour of one core, `--queries 2000` five minutes.
Settings are the paper's where it gives them: 10 leaves and 1,000 rounds for both forests, shrinkage 0.1 for λ-MART and
0.05 for McRank, 10 hidden units. Chosen on validation are how λ are taken (`LAMBDAS`) and LambdaRank's step (`RATES`).
Queries whose documents all have one grade are left out, as in the paper.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import lightgbm
import numpy as np

import ranksieve as rs
from ranksieve.data.binned import bin_data
from results import save

METRICS = ("ndcg@10", "ndcg@3", "ndcg@1")
PAPER = {"λ-MART": (87.9, 81.7, 79.6), "McRank": (83.7, 75.6, 72.2), "LambdaRank": (75.4, 67.8, 65.8)}
LAMBDAS = {
    "plain, cut at 10": {"normalize": False, "truncation": 10},  # as in the paper
    "normalised, cut at 30": {"normalize": True, "truncation": 30},  # our defaults
}
RATES = (0.01, 0.003)
STAGES = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)


def timed(make: Any) -> tuple[Any, dict[str, float]]:
    """What a function makes, with its wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    made = make()
    return made, {"wall s": round(time.perf_counter() - wall, 1), "cpu s": round(time.process_time() - cpu, 1)}


def best_of(made: dict[str, tuple[Any, dict[str, float]]]) -> tuple[Any, dict[str, float]]:
    """The model that is best on validation, with its time."""
    values = {choice: round(model.info["best_score"], 4) for choice, (model, _) in made.items()}
    choice = max(values, key=lambda name: values[name])
    print({"validation": values, "chosen": choice}, flush=True)
    model, seconds = made[choice]
    return model, {"chosen": choice, **seconds}


def train_all(train: rs.Dataset, valid: rs.Dataset, rounds: int, epochs: int, threads: int) -> dict[str, Any]:
    """The rankers, each chosen on validation, with their times."""
    bins = bin_data(train)
    valid_bins = bin_data(valid, binning=bins.binning)
    trees = {"valid": valid_bins, "trees": rounds, "leaves": 10, "early_stopping": 100, "threads": threads}
    net = {"valid": valid, "algo": "lambdarank", "epochs": epochs, "early_stopping": 10, "threads": threads}
    return {
        "λ-MART": best_of(
            {
                name: timed(lambda kind=kind: rs.train(bins, algo="lambdamart", learning_rate=0.1, **kind, **trees))
                for name, kind in LAMBDAS.items()
            }
        ),
        "McRank": timed(lambda: rs.train(bins, algo="mcrank", learning_rate=0.05, **trees)),
        "McRank, ordinal": timed(lambda: rs.train(bins, algo="mcrank-ordinal", learning_rate=0.05, **trees)),
        "LambdaRank": best_of(
            {
                f"{name}, step {rate}": timed(
                    lambda kind=kind, rate=rate: rs.train(train, learning_rate=rate, **kind, **net)
                )
                for name, kind in LAMBDAS.items()
                for rate in RATES
            }
        ),
    }


def curve(name: str, model: Any, test: rs.Dataset) -> dict[str, float]:
    """NDCG@10 by number of trees (Figure 2)."""
    stages = [stage for stage in STAGES if stage <= model.n_trees]
    if name == "λ-MART":
        return {str(stage): ndcg(model.predict(test, trees=stage), test) for stage in stages}
    rounds = {stage: model.first(stage // model.n_outputs) for stage in stages if stage >= model.n_outputs}
    return {str(stage): ndcg(shorter.predict(test), test) for stage, shorter in rounds.items()}


def ndcg(scores: np.ndarray, test: rs.Dataset) -> float:
    return round(100 * rs.evaluate(scores, test, "ndcg@10").mean(), 2)


def interval(values: np.ndarray) -> tuple[float, float]:
    """Mean and half of its 95% interval, in percent."""
    values = 100 * values[~np.isnan(values)]
    return round(float(values.mean()), 2), round(1.96 * float(values.std(ddof=1)) / len(values) ** 0.5, 2)


def compare_times(train: rs.Dataset, trees: int, threads: int) -> Iterator[dict]:
    """Time of the same λ trees here and in LightGBM, without validation, binning apart."""
    settings = {
        "objective": "lambdarank", "num_leaves": 10, "learning_rate": 0.1, "min_data_in_leaf": 5,
        "min_sum_hessian_in_leaf": 0.0, "lambda_l2": 1.0, "metric": "None", "verbose": -1, "num_threads": threads,
    }  # fmt: skip
    theirs = lightgbm.Dataset(
        train.features, train.labels, group=train.lists.sizes, params={"feature_pre_filter": False, "verbose": -1}
    ).construct()
    bins = bin_data(train)
    ours = {"algo": "lambdamart", "leaves": 10, "learning_rate": 0.1, "threads": threads}
    for name, kind in LAMBDAS.items():
        same = {"lambdarank_norm": kind["normalize"], "lambdarank_truncation_level": kind["truncation"]}
        rs.train(bins, trees=1, **kind, **ours)  # compiles
        _, lightgbm_time = timed(lambda same=same: lightgbm.train({**settings, **same}, theirs, trees))
        _, our_time = timed(lambda kind=kind: rs.train(bins, trees=trees, **kind, **ours))
        ratio = {key: round(our_time[key] / lightgbm_time[key], 2) for key in our_time}
        yield {"time of": f"{trees} trees, λ {name}", "LightGBM": lightgbm_time, "λ-MART": our_time, "ratio": ratio}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=10_000, help="training queries; half validate, as many test")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--name", default="cubic", help="of the results file")
    arguments = parser.parse_args()
    n = arguments.queries
    train, valid, test = rs.cubic(n), rs.cubic(n // 2, start=n), rs.cubic(n, start=2 * n)
    rows: list[dict] = []
    for row in compare_times(train, arguments.rounds, arguments.threads):
        rows.append(row)
        print(row, flush=True)
    models = train_all(train, valid, arguments.rounds, arguments.epochs, arguments.threads)
    metrics = [rs.parse_metric(name, one_label="skip") for name in METRICS]
    result = rs.evaluate({name: model for name, (model, _) in models.items()}, test, metrics)
    for name, (model, seconds) in models.items():
        row = {"ranker": name, "train": n, "test": test.n_queries, "size": model.size, **seconds}
        for metric, paper in zip(METRICS, PAPER.get(name, (None,) * 3), strict=True):
            mean, half = interval(result.per_query(name, metric))
            row |= {metric: mean, f"{metric} ±": half, f"{metric} in the paper": paper}
        if name != "λ-MART":
            row["p against λ-MART"] = round(result.compare(name, "λ-MART", "ndcg@10", test="t").p_value, 4)
        if name != "LambdaRank":
            row["ndcg@10 by trees"] = curve(name, model, test)
        rows.append(row)
        print(row, flush=True)
    save(arguments.name, rows)


if __name__ == "__main__":
    main()

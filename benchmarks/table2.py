"""The whole experiment `table2` (six algorithms) beside LightGBM's λ-MART alone, on 300 two-stage training queries.

Run `python benchmarks/table2.py [--queries 300] [--trees 150]`. Both sides grow every tree (no early stopping) and
measure NDCG@10 on the same validation and test lists after each. The experiment counts whole: starting its processes,
reading its files, binning, training and storing. LightGBM's data is in memory; binning and training count.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import lightgbm
import numpy as np

import ranksieve as rs
from ranksieve.experiments.data_sets import DataSpec
from ranksieve.experiments.read_spec import load_spec
from ranksieve.experiments.results import Results
from ranksieve.experiments.run import run_experiment
from ranksieve.experiments.spec import find_spec
from results import save
from training import LIGHTGBM


def cpu_seconds() -> float:
    """Of this process and of its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def timed(work) -> tuple[float, float, object]:
    wall, cpu = time.perf_counter(), cpu_seconds()
    result = work()
    return time.perf_counter() - wall, cpu_seconds() - cpu, result


def run_table2(folder: Path, trees: int, jobs: int, name: str) -> Results:
    text = find_spec("table2").read_text(encoding="utf-8")
    text = text.replace("trees = 1000", f"trees = {trees}").replace("early-stopping = 100", "early-stopping = 0")
    text = text.replace("stages = [150]", f"stages = [{trees}]")
    (folder / "table2.toml").write_text(text, encoding="utf-8")
    files = {part: f"{part}.parquet" for part in ("train", "valid", "test")}
    spec = load_spec(folder / "table2.toml", data=DataSpec("two-stage", **files).checked(folder))
    return run_experiment(spec, folder / name, jobs=jobs)


def train_lightgbm(sets: list[rs.Dataset], trees: int) -> lightgbm.Booster:
    params = {**LIGHTGBM, "metric": "ndcg", "eval_at": [10]}
    train, *others = sets
    ours = lightgbm.Dataset(train.features, train.labels, group=np.diff(train.offsets), params=params)
    watched = [ours.create_valid(one.features, one.labels, group=np.diff(one.offsets)) for one in others]
    return lightgbm.train(params, ours, trees, valid_sets=watched)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--trees", type=int, default=150)
    parser.add_argument("--jobs", type=int, default=0)
    arguments = parser.parse_args()
    n, third = arguments.queries, max(1, arguments.queries // 3)
    sets = [rs.synth.two_stage(size, start=start) for size, start in ((n, 0), (third, n), (third, n + third))]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part, data in zip(("train", "valid", "test"), sets, strict=True):
            rs.io.write_parquet(data, folder / f"{part}.parquet")
        run_table2(folder, 2, arguments.jobs, "warm-up")  # compiles
        seconds, cpu, results = timed(lambda: run_table2(folder, arguments.trees, arguments.jobs, "out"))
        groups = results.groups("two-stage")
        rows = [
            {"what": "data", "training queries": n, "documents": sets[0].n_docs, "trees": arguments.trees},
            {"what": "table2, six algorithms", "s": round(seconds, 1), "cpu s": round(cpu, 1)},
            *(
                {
                    "what": group.label,
                    "training s": round(group.seconds("training"), 1),
                    "measuring s": round(group.seconds("measuring"), 1),
                    "NDCG@10": round(group.value("ndcg@10"), 4),
                }
                for group in groups
            ),
        ]
    seconds, cpu, booster = timed(lambda: train_lightgbm(sets, arguments.trees))
    value = rs.evaluate(booster.predict(sets[2].features), sets[2]).mean()
    rows.append({"what": "LightGBM λ-MART", "s": round(seconds, 1), "cpu s": round(cpu, 1), "NDCG@10": round(value, 4)})
    rows.append(
        {
            "what": "table2 / LightGBM λ-MART",
            "s": round(rows[1]["s"] / seconds, 3),
            "cpu s": round(rows[1]["cpu s"] / cpu, 3),
        }
    )
    for row in rows:
        print(row)
    save("table2", rows)


if __name__ == "__main__":
    main()

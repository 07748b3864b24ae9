"""Seconds and CPU seconds per tree beside LightGBM on two-stage data, peak memory of training from a file, import time.

Run `python benchmarks/training.py [--queries 300]`; about five minutes. The runs take turns, three rounds, and each
one's middle round counts, so that a noisy moment hits all alike. Before anything is timed, both sides are shown
to learn: 20 trees must reach an NDCG@10 of 0.35 on the training lists, where the first stage has 0.3. Times are per
tree after the tenth, without loading and binning.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time

import lightgbm
import numpy as np

import ranksieve as rs
from paper_settings import TREES, share
from ranksieve.data.binned import bin_data
from results import save

ROUNDS = 3
SETTINGS = {**TREES, "learning_rate": 0.05, "early_stopping": 0, "threads": 2}
LIGHTGBM = {
    "objective": "lambdarank",
    "num_leaves": 64,
    "learning_rate": 0.05,
    "lambdarank_truncation_level": 30,  # and λ normalised, documents per leaf and l2: our defaults
    "min_data_in_leaf": 5,
    "min_sum_hessian_in_leaf": 0.0,
    "lambda_l2": 1.0,
    "max_bin": 255,
    "num_threads": 2,
    "verbose": -1,
}
PEAK = """
import os
import sys

os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"  # as the command line does
import ranksieve as rs

def peak():  # ru_maxrss would begin with the parent's
    line = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024

rs.io.write_parquet(rs.synth.cubic(4), sys.argv[1] + ".tiny")
rs.train(sys.argv[1] + ".tiny", trees=1)  # the interpreter, the libraries and the compiled kernels
before = peak()
rs.train(sys.argv[1], algo=sys.argv[2], leaves=64, trees=10, early_stopping=0)
print(peak() - before)
"""


def timed(work) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def per_tree(train, trees: int, warm_up: int) -> tuple[float, float]:
    """Seconds and CPU seconds of one more tree: a long run less a short one, so set-up does not count."""
    short, long = timed(lambda: train(warm_up)), timed(lambda: train(warm_up + trees))
    return tuple((b - a) / trees for a, b in zip(short, long, strict=True))


def speed(data: rs.Dataset) -> list[dict]:
    binned = bin_data(data)
    theirs = lightgbm.Dataset(data.features, data.labels, group=np.diff(data.offsets), params=LIGHTGBM).construct()

    def ours(**parameters):
        return lambda n: rs.train(binned, trees=n, verbose=False, **parameters, **SETTINGS)

    runs = {
        "lightgbm lambdarank": (lambda n: lightgbm.train(LIGHTGBM, theirs, n), 20),
        "lambdamart": (ours(algo="lambdamart"), 20),
        "selgb 1%": (ours(algo="selgb", **share(0.01)), 300),
        "selgb 5%": (ours(algo="selgb", **share(0.05)), 100),
        "negsgb 1%": (ours(algo="negsgb", **share(0.01)), 100),
        "lambdamart, variance": (ours(algo="lambdamart", gain="variance"), 20),
        "selgb 1%, variance": (ours(algo="selgb", gain="variance", **share(0.01)), 300),
    }
    for train in (runs["lightgbm lambdarank"][0], runs["lambdamart"][0], runs["selgb 1%"][0]):
        assert rs.evaluate(train(20).predict(data.features), data).mean() > 0.35
    firsts = {name: timed(lambda train=train: train(2))[0] for name, (train, _) in runs.items()}
    rounds = [{name: per_tree(train, trees, 10) for name, (train, trees) in runs.items()} for _ in range(ROUNDS)]
    rows = []
    for name in runs:
        seconds, cpu = np.median([times[name] for times in rounds], axis=0).tolist()
        rows.append({"what": name, "ms per tree": round(1e3 * seconds, 2), "cpu ms per tree": round(1e3 * cpu, 2)})
        rows[-1]["times lightgbm"] = round(seconds / (rows[0]["ms per tree"] / 1e3), 4)
        rows[-1]["times lightgbm cpu"] = round(cpu / (rows[0]["cpu ms per tree"] / 1e3), 4)
        rows[-1]["ms per tree of each round"] = [round(1e3 * times[name][0], 2) for times in rounds]
        rows[-1]["first two trees, with compilation, s"] = round(firsts[name], 2)
        print(rows[-1], flush=True)
    return rows


def memory(data: rs.Dataset) -> list[dict]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/data.parquet"
        rs.io.write_parquet(data, path)
        for algo in ("selgb", "lambdamart"):
            answer = subprocess.run(
                [sys.executable, "-c", PEAK, path, algo], capture_output=True, text=True, check=True
            )
            per_value = int(answer.stdout) / (data.n_docs * data.n_features)
            rows.append({"what": f"peak memory of {algo} from a packed file", "bytes per value": round(per_value, 3)})
            print(rows[-1], flush=True)
    return rows


def import_time() -> dict:
    command = [sys.executable, "-c", "import ranksieve"]
    seconds = min(timed(lambda: subprocess.run(command, check=True))[0] for _ in range(5))
    row = {"what": "import ranksieve, with the interpreter's start", "s": round(seconds, 3)}
    print(row, flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=300)
    arguments = parser.parse_args()
    data = rs.synth.two_stage(arguments.queries)
    size = {"what": "data", "queries": data.n_queries, "documents": data.n_docs, "features": data.n_features}
    print(size, flush=True)
    save("training", [size, *speed(data), *memory(data), import_time()])


if __name__ == "__main__":
    main()

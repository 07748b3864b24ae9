"""Seconds and CPU seconds per tree beside LightGBM on two-stage data, peak memory of training from a file, import time.

Run `python benchmarks/training.py [--queries 300]`; two to six minutes. LightGBM and ranksieve are processes of their
own, as their users run them: in one process they share the threads of OpenMP, and how long these wait for work. The
runs take turns, three rounds, and each one's middle round counts, so that a noisy moment hits all alike. Before
anything is timed, both sides are shown to learn: 20 trees must reach an NDCG@10 of 0.35 on the training lists, where
the first stage has 0.3. Times are per tree after the tenth, without loading and binning.
"""

from __future__ import annotations

import argparse
import multiprocessing
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import ranksieve as rs
from paper_settings import TREES, share
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


LEARNERS: dict[str, Any] = {}  # of a process: the data, and how trees are trained on it
PARAMETERS: dict[str, dict[str, Any]] = {
    "lambdamart": {"algo": "lambdamart"},
    "selgb 1%": {"algo": "selgb", **share(0.01)},
    "selgb 5%": {"algo": "selgb", **share(0.05)},
    "negsgb 1%": {"algo": "negsgb", **share(0.01)},
    "lambdamart, variance": {"algo": "lambdamart", "gain": "variance"},
    "selgb 1%, variance": {"algo": "selgb", "gain": "variance", **share(0.01)},
}
THEIRS = "lightgbm lambdarank"
ARRAYS = ("features", "labels", "offsets")  # of a data set
N_TREES = {"selgb 1%": 300, "selgb 1%, variance": 300, "selgb 5%": 100, "negsgb 1%": 100}  # timed; of others 20


def loaded(folder: Path) -> list[np.ndarray]:
    """The arrays that `speed` has written."""
    return [np.load(folder / f"{name}.npy") for name in ARRAYS]


def prepare_theirs(folder: Path) -> None:
    import lightgbm

    features, labels, offsets = loaded(folder)
    data = lightgbm.Dataset(features, labels, group=np.diff(offsets), params=LIGHTGBM).construct()
    LEARNERS.update({"features": features, THEIRS: lambda n: lightgbm.train(LIGHTGBM, data, n)})


def prepare_ours(folder: Path) -> None:
    from ranksieve.data.binned import bin_data

    features, labels, offsets = loaded(folder)
    binned = bin_data(rs.Dataset.from_arrays(features, labels, group=np.diff(offsets)))
    for name, parameters in PARAMETERS.items():
        given = {**SETTINGS, **parameters, "verbose": False}
        LEARNERS[name] = lambda n, given=given: rs.train(binned, trees=n, **given)
    LEARNERS["features"] = features


def scores_of(name: str, n_trees: int) -> np.ndarray:
    return LEARNERS[name](n_trees).predict(LEARNERS["features"])


def timed(work) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def train_timed(name: str, n_trees: int) -> tuple[float, float]:
    return timed(lambda: LEARNERS[name](n_trees))


def per_tree(name: str, trees: int, warm_up: int) -> tuple[float, float]:
    """Seconds and CPU seconds of one more tree: a long run less a short one, so set-up does not count."""
    short, long = train_timed(name, warm_up), train_timed(name, warm_up + trees)
    return tuple((b - a) / trees for a, b in zip(short, long, strict=True))


def speed(data: rs.Dataset) -> list[dict]:
    names = [THEIRS, *PARAMETERS]
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        for name in ARRAYS:
            np.save(Path(folder, name), getattr(data, name))
        with (
            ProcessPoolExecutor(1, context, prepare_theirs, (Path(folder),)) as theirs,
            ProcessPoolExecutor(1, context, prepare_ours, (Path(folder),)) as ours,
        ):

            def call(function, name, *arguments):
                return (theirs if name == THEIRS else ours).submit(function, name, *arguments).result()

            for name in (THEIRS, "lambdamart", "selgb 1%"):
                assert rs.evaluate(call(scores_of, name, 20), data).mean() > 0.35
            for name in names:  # compiles
                call(train_timed, name, 2)
            rounds = [{name: call(per_tree, name, N_TREES.get(name, 20), 10) for name in names} for _ in range(ROUNDS)]
    rows: list[dict] = []
    for name in names:
        seconds, cpu = np.median([times[name] for times in rounds], axis=0).tolist()
        rows.append({"what": name, "ms per tree": round(1e3 * seconds, 2), "cpu ms per tree": round(1e3 * cpu, 2)})
        rows[-1]["times lightgbm"] = round(seconds / (rows[0]["ms per tree"] / 1e3), 4)
        rows[-1]["times lightgbm cpu"] = round(cpu / (rows[0]["cpu ms per tree"] / 1e3), 4)
        rows[-1]["ms per tree of each round"] = [round(1e3 * times[name][0], 2) for times in rounds]
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
    parser.add_argument("--name", default="training", help="of the results")
    arguments = parser.parse_args()
    data = rs.synth.two_stage(arguments.queries)
    size = {"what": "data", "queries": data.n_queries, "documents": data.n_docs, "features": data.n_features}
    print(size, flush=True)
    save(arguments.name, [size, *speed(data), *memory(data), import_time()])


if __name__ == "__main__":
    main()

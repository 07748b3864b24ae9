"""Scoring speed beside LightGBM, ONNX Runtime, treelite, tl2cgen, lleaves and YDF, on the same models and documents.

    python benchmarks/scoring.py [--folder FOLDER] [--models 300x64,...] [--quick]

Models are trained by LightGBM on the features of `two_stage`, with noisy grades as targets, and kept in the folder; the
oblivious one has random tests and leaf values. Times are processor time of one process; LightGBM is measured with every
peer as the common measure. lleaves and YDF get small environments of their own: lleaves needs an older llvmlite than
Numba does. YDF is timed by its own benchmark, which leaves out the conversion of the documents, on documents without
missing values, for which its fast engines have no direction.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import lightgbm
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import results
from ranksieve.data.generators import two_stage
from ranksieve.forest import bench
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.model_files import load_forest

MODELS = {
    "300x64": (300, 64),
    "1000x64": (1000, 64),
    "1000x16": (1000, 16),
    "200x32": (200, 32),
    "oblivious": (1000, 64),
}
BATCHES = (1, 100, 5_000, 100_000)
MOST_DOCUMENTS = {"treelite": 5_000}  # by far the slowest: the largest batch would take it minutes


def train(name: str, folder: Path) -> Path:
    """The model's file, trained where it is not there yet."""
    path = folder / f"{name}.txt"
    if path.exists():
        return path
    n_trees, n_leaves = MODELS[name]
    data = two_stage(8, seed=1)
    if name == "oblivious":
        oblivious(data.rows(0, 20_000), data.feature_names, n_trees, 6).save(path)
        return path
    longest = folder / f"1000x{n_leaves}.txt"
    if not longest.exists() or n_trees == 1000:
        # so few queries are soon ranked without a fault; noise keeps every tree at its full number of leaves
        labels = data.labels + np.random.default_rng(0).normal(size=data.n_docs)
        params = {"objective": "regression", "boost_from_average": False, "num_leaves": n_leaves, "verbose": -1}
        params |= {"learning_rate": 0.05, "feature_fraction": 0.3, "feature_fraction_seed": 0}
        dataset = lightgbm.Dataset(data.rows(0, data.n_docs), labels)
        booster = lightgbm.train(params, dataset, n_trees)
    else:
        booster = lightgbm.Booster(model_file=str(longest))
    booster.save_model(str(path), num_iteration=n_trees)
    return path


def oblivious(X: np.ndarray, names: tuple[str, ...], n_trees: int, depth: int) -> Forest:
    """Full trees with one test per level, at random values of the documents."""
    rng = np.random.default_rng(0)
    n_splits, n_leaves = 2**depth - 1, 2**depth
    level = np.floor(np.log2(np.arange(1, n_splits + 1))).astype(int)
    feature = rng.integers(0, X.shape[1], n_trees * depth)
    threshold = np.nan_to_num(X[rng.integers(0, len(X), len(feature)), feature].astype(float))
    tests = (np.arange(n_trees)[:, None] * depth + level).ravel()
    children = np.arange(1, 2 * n_splits + 1)
    children = np.where(children < n_splits, children, ~(children - n_splits)).astype(np.int32)
    total = n_trees * n_splits
    return Forest(
        feature=feature[tests].astype(np.int32),
        threshold=threshold[tests],
        left=np.tile(children[::2], n_trees),
        right=np.tile(children[1::2], n_trees),
        default_left=np.zeros(total, bool),
        zero_missing=np.zeros(total, bool),
        gain=np.ones(total),
        split_count=np.ones(total, np.int64),
        leaf_values=rng.normal(size=n_trees * n_leaves) / 100,
        leaf_count=np.ones(n_trees * n_leaves, np.int64),
        leaf_weight=np.ones(n_trees * n_leaves),
        split_offsets=np.arange(n_trees + 1) * n_splits,
        leaf_offsets=np.arange(n_trees + 1) * n_leaves,
        weights=np.ones(n_trees),
        feature_names=names,
    )


def measure(name: str, path: Path, X: np.ndarray, batches: tuple[int, ...], threads: int) -> list[dict]:
    """Rows of one model and thread count, our scorer and its peers in this process."""
    forest = load_forest(path)
    forest.predict(X[:600])
    start = time.perf_counter()
    fresh = load_forest(path)
    read = time.perf_counter() - start
    fresh.predict(X[:600], threads=1)
    converted = time.perf_counter() - start - read
    scorers = {"ranksieve": lambda X: forest.predict(X, threads=threads)}
    for peer, make in bench.PEERS.items():
        if peer != "lleaves" and not bench.absent(peer):
            scorers[peer] = make(path, forest.n_features, threads)
    expected = forest.predict(X[:2_000])
    largest = np.abs(expected).max()
    # ONNX thresholds are float32: checked against the forest with such thresholds, reported against the true forest
    rounded = dataclasses.replace(forest, threshold=forest.threshold.astype(np.float32).astype(float))
    references = {"onnxruntime": rounded.predict(X[:2_000])}
    rows = []
    for peer, predict in scorers.items():
        theirs = np.asarray(predict(X[:2_000]), float).ravel()
        difference = float(np.abs(theirs - expected).max() / largest)
        error = float(np.abs(theirs - references.get(peer, expected)).max() / largest)
        assert error <= bench.LIMITS.get(peer, bench.AGREE), (peer, error)
        for n_docs in (n for n in batches if n <= MOST_DOCUMENTS.get(peer, n)):
            docs = X[:n_docs]
            # processor time where one thread works: other processes do not count
            clock = time.process_time if threads == 1 else time.perf_counter
            taken = bench.seconds(lambda docs=docs, predict=predict: predict(docs), repeat=2, clock=clock)
            row = {"model": name, "threads": threads, "batch": n_docs, "scorer": peer}
            rows.append(row | {"us_per_doc": round(taken / n_docs * 1e6, 4), "max_difference": difference})
            print(rows[-1], flush=True)
    rows[0]["conversion_s"] = round(converted, 4)
    return rows


LLEAVES = """
import json, sys, time
import lightgbm, lleaves, numpy as np
path, X, batches, threads = sys.argv[1], np.load(sys.argv[2]), json.loads(sys.argv[3]), int(sys.argv[4])
model = lleaves.Model(model_file=path)
model.compile(cache=path + ".lleaves")
booster = lightgbm.Booster(model_file=path)
expected = booster.predict(X)
assert np.abs(model.predict(X) - expected).max() <= 1e-12 * np.abs(expected).max()
clock = time.process_time if threads == 1 else time.perf_counter
for n in batches:
    docs = X[:n]
    for name, predict in (("lleaves", lambda: model.predict(docs, n_jobs=threads)),
                          ("lightgbm (beside lleaves)", lambda: booster.predict(docs, num_threads=threads))):
        start = clock(); predict(); calls = max(1, int(0.2 / max(clock() - start, 1e-9))); best = 1e9
        for _ in range(3):
            start = clock()
            for _ in range(calls): predict()
            best = min(best, (clock() - start) / calls)
        print(json.dumps({"scorer": name, "batch": n, "us_per_doc": round(best / n * 1e6, 4)}), flush=True)
"""


YDF = """
import json, sys, time
import lightgbm, numpy as np, ydf
from ydf import tree as trees
path, X, batches, threads = sys.argv[1], np.load(sys.argv[2]), json.loads(sys.argv[3]), int(sys.argv[4])
X = np.nan_to_num(X)
booster = lightgbm.Booster(model_file=path)
names = [f"f{i:04d}" for i in range(X.shape[1])]
columns = {name: np.ascontiguousarray(X[:, i]) for i, name in enumerate(names)}
learner = ydf.GradientBoostedTreesLearner(label="y", task=ydf.Task.REGRESSION, num_trees=1, validation_ratio=0.0)
model = learner.train(columns | {"y": X[:, 0] + X[:, 1]}, verbose=0)
places = {column.name: place for place, column in enumerate(model.data_spec().columns)}

def node(given):
    if "leaf_value" in given:
        return trees.Leaf(value=trees.RegressionValue(value=given["leaf_value"], num_examples=1.0))
    cut, single = given["threshold"], np.float32(given["threshold"])  # `x <= cut` is `not x >= next float32 above`
    limit = float(np.nextafter(single, np.float32(np.inf)) if single <= cut else single)
    test = trees.NumericalHigherThanCondition(
        missing=False, score=0.0, attribute=places[names[given["split_feature"]]], threshold=limit)
    return trees.NonLeaf(condition=test, pos_child=node(given["right_child"]), neg_child=node(given["left_child"]))

model.remove_tree(0)
for one in booster.dump_model()["tree_info"]:
    model.add_tree(trees.Tree(root=node(one["tree_structure"])))
model.set_initial_predictions([0.0])
expected = booster.predict(X)
near = np.abs(model.predict(columns) - expected) <= 1e-5 * np.abs(expected).max()
assert near.mean() >= 0.999  # float32 thresholds: a document between two of them may go astray
for n in batches:
    docs = {name: values[:n] for name, values in columns.items()}
    found = model.benchmark(docs, benchmark_duration=1.0, warmup_duration=0.3, batch_size=n, num_threads=threads)
    time_ = round(found.duration_per_example * 1e6, 4)
    print(json.dumps({"scorer": "ydf", "batch": n, "us_per_doc": time_}), flush=True)
"""
# peers that cannot share an environment with us: what to install, and what to run there
ELSEWHERE = {
    "lleaves": (["lleaves", "llvmlite<0.45", f"lightgbm=={lightgbm.__version__}", "scipy"], LLEAVES),
    "ydf": (["ydf", f"lightgbm=={lightgbm.__version__}"], YDF),
}


def python_of(peer: str, folder: Path) -> Path:
    """The Python of a peer's own environment in a folder; made where it is not there yet."""
    python = folder / peer / "bin" / "python"
    if not python.exists():
        venv.create(folder / peer, with_pip=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *ELSEWHERE[peer][0]], check=True)
    return python


def measure_elsewhere(peer: str, name: str, path: Path, batches: tuple[int, ...], threads: int) -> list[dict]:
    """Rows of a peer in its own environment, which is beside the model's file."""
    command = [
        str(python_of(peer, path.parent)),
        "-c",
        ELSEWHERE[peer][1],
        str(path),
        str(path.parent / "documents.npy"),
        json.dumps(batches),
        str(threads),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"{peer} failed on {name}: {done.stderr.strip().splitlines()[-1]}")
        return []
    rows = [{"model": name, "threads": threads} | json.loads(line) for line in done.stdout.splitlines()]
    print(*rows, sep="\n", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "ranksieve-scoring")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument(
        "--threads", default="1,2", help="two threads are timed in wall time: use an otherwise unused machine"
    )
    parser.add_argument("--quick", action="store_true", help="batches of 1 and 5,000, one thread")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    batches = (1, 5_000) if options.quick else BATCHES
    data = two_stage(60, seed=1, start=1_000)
    X = data.rows(0, min(data.n_docs, max(batches)))
    np.save(options.folder / "documents.npy", X)
    rows: list[dict] = []
    for name in options.models.split(","):
        path = train(name, options.folder)
        for threads in (1,) if options.quick else map(int, options.threads.split(",")):
            rows += measure(name, path, X, batches, threads)
            for peer in ELSEWHERE:
                rows += measure_elsewhere(peer, name, path, batches, threads)
        results.save("scoring", rows)


if __name__ == "__main__":
    main()

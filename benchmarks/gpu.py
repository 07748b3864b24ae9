"""Milliseconds per tree, 1,000 trees with validation, and scoring on one NVIDIA GPU, beside the CPU of the machine.

Run `python benchmarks/gpu.py [--queries 3200] [--trees 200] [--cpu-trees 10] [--bugs lists.parquet]` on a machine with
a GPU; about five minutes at full size. Lists are generated: uniform bins of 220 features, 5,000 documents a list, 10
positives. Before anything is timed, a tree from equal gradients must be the CPU's bit for bit, and scores too. For the
quality on bug reports, give lists with features as `bug_lists.feature_files` makes them.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import Any

import numpy as np
from numba import cuda

import ranksieve as rs
from ranksieve.boosting.gpu.grower import GpuGrower
from ranksieve.boosting.gpu.rows import GpuLists
from ranksieve.boosting.gpu.scores import GpuScores
from ranksieve.boosting.grower import Grower
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.training_rows import TrainingLists, TreeTarget
from ranksieve.boosting.tree import Tree, to_trees
from ranksieve.cuda import device
from ranksieve.cuda.bins import send_bins
from ranksieve.cuda.growth import TreeSpace
from ranksieve.data.binned import Binned
from ranksieve.data.binning import Binning
from ranksieve.data.features import FeatureInfo
from ranksieve.data.lists import Lists
from ranksieve.evaluation.metrics import metric_of
from ranksieve.forest.forest import concatenate
from ranksieve.params import Params
from results import save

FEATURES, DOCS = 220, 5000
SETTINGS = {"leaves": 64, "gain": "newton", "early_stopping": 0}
RUNS = {
    "selgb 1%": {"algo": "selgb", "negatives": 0.01, "min_negatives": 1},
    "selgb 5%": {"algo": "selgb", "negatives": 0.05, "min_negatives": 1},
    "lambdamart": {"algo": "lambdamart"},
}
SHARE, LEAST, MOST = {"negatives": 0.01}, {"min_negatives": 1}, {"max_negatives": 0.05}
RULES = {
    "random": SHARE | LEAST, "gradient": SHARE | LEAST, "top+random": SHARE | LEAST, "top+bottom": SHARE | LEAST,
    "adaptive": LEAST | MOST, "progress": SHARE | LEAST | MOST, "goss": SHARE, "rows": SHARE,
}  # fmt: skip
MORE_RUNS = {
    **{f"selection {name}": {"algo": "sieve", "every": 1, "selection": name, **given} for name, given in RULES.items()},
    **{
        f"selgb 1%, {objective}": {**RUNS["selgb 1%"], "objective": objective}
        for objective in ("map", "squared", "xendcg", "yetiloss")
    },
    "mart": {"algo": "mart"},
    "lambdamart, half of the rows": {"algo": "lambdamart", "row_fraction": 0.5},
    "selgb 1%, bins streamed": {**RUNS["selgb 1%"], "memory": "4G"},
}


def binned_lists(n_queries: int, seed: int) -> Binned:
    """Lists of uniform bins whose labels depend on eight features and noise."""
    rng = np.random.default_rng(seed)
    n = n_queries * DOCS
    bins = np.zeros((n, -(-FEATURES // 16) * 16), np.uint8)
    for start in range(0, n, 1 << 20):
        part = bins[start : start + (1 << 20)]
        part[:, :FEATURES] = rng.integers(0, 255, (len(part), FEATURES), dtype=np.uint8)
    value = (bins[:, :8] * np.array([4, 3, 2, 2, 1, 1, 1, 1], np.float32)).sum(axis=1, dtype=np.float32)
    table = (value + 300 * rng.random(n, dtype=np.float32)).reshape(n_queries, DOCS)
    labels = np.zeros((n_queries, DOCS), np.float32)
    for grade, k in ((1, 10), (2, 2)):
        labels[table >= np.partition(table, DOCS - k, axis=1)[:, [DOCS - k]]] = grade
    offsets = (np.arange(n_queries + 1) * DOCS).astype(np.int64)
    thresholds = np.tile(np.arange(254, dtype=np.float32) + 0.5, FEATURES)
    binning = Binning(thresholds, np.arange(FEATURES + 1) * 254, np.arange(FEATURES))
    names = FeatureInfo().with_names(FEATURES)
    return Binned(bins, Lists(labels.reshape(-1), offsets, np.arange(n_queries)), binning, names)


def check_tree(data: Binned) -> None:
    """A tree from equal gradients is the CPU's."""
    rng, n = np.random.default_rng(0), data.lists.n_docs
    params = Params(algo="lambdamart", leaves=64, gain="newton")
    grad, hess = rng.normal(size=n), rng.random(n)
    want, _ = Grower(data, params, threads=1).grow(TreeTarget(None, grad, hess), np.random.default_rng(0))
    there = send_bins(data.bins, words=True)
    space = TreeSpace(n, there.words, there.columns, by_column=True)
    device.overwrite(space.grad, grad)
    device.overwrite(space.hess, hess)
    space.take(n)
    got, _ = GpuGrower(data, params).grow(space, np.random.default_rng(0))
    for name in want.__dataclass_fields__:
        assert np.array_equal(getattr(want, name), getattr(got, name)), name


def tree_row(name: str, where: str, train: Binned, trees: int) -> dict:
    """The middle time of a tree after the first ones, and the first two, where kernels compile and space is made."""
    model = rs.train(train, device=where, trees=trees, **{**RUNS, **MORE_RUNS}[name], **SETTINGS)
    milliseconds = 1000 * np.array(model.info["seconds"])
    row = {"run": name, "device": where, "documents": train.lists.n_docs, "features": FEATURES}
    row["ms per tree"] = round(float(np.median(milliseconds[min(10, trees // 2) :])), 3)
    return {**row, "ms of the first trees": milliseconds[:2].round(1).tolist()}


def long_row(train: Binned, valid: Binned) -> dict:
    """A whole run with validation after every tree, bins on the host at the start."""
    start = time.perf_counter()
    model = rs.train(train, valid=valid, device="cuda", trees=1000, **RUNS["selgb 1%"], **SETTINGS)
    seconds, ndcg = time.perf_counter() - start, model.info["history"]["valid"]["ndcg@10"][-1]
    return {
        "run": "selgb 1%, 1,000 trees with validation", "device": "cuda", "documents": train.lists.n_docs,
        "valid documents": valid.lists.n_docs, "seconds": round(seconds, 2), "ndcg@10": round(ndcg, 4),
    }  # fmt: skip


def bandwidth_row(train: Binned) -> dict:
    """Bytes a second of a copy on the GPU, and of one tree's scores added to those of all documents.

    The latter reads and writes a score of 8 bytes, and reads a bin for each split on the way to the leaf.
    """
    model = rs.train(train, device="cuda", trees=2, **RUNS["selgb 1%"], **SETTINGS)
    tree = to_trees(model, train.binning)[1]
    scores = GpuScores(send_bins(train.bins, words=False), np.zeros(train.lists.n_docs), train.lists.offsets, 64)
    space = device.empty(1 << 31, np.uint8), device.empty(1 << 31, np.uint8)
    seconds = []
    for run in (lambda: space[1].copy_to_device(space[0], stream=device.stream()), lambda: scores.add(tree)):
        times = []
        for _ in range(8):
            device.synchronize()
            start = time.perf_counter()
            run()
            device.synchronize()
            times.append(time.perf_counter() - start)
        seconds.append(min(times))
    leaves = np.unique(
        model.take([1]).predict_leaves(train.bins[:5000, :FEATURES].astype(np.float32)), return_counts=True
    )
    depth = float(np.average(leaf_depths(tree)[leaves[0]], weights=leaves[1]))
    moved = (16 + depth) * train.lists.n_docs
    copied, added = 2 * (1 << 31) / seconds[0], moved / seconds[1]
    row = {"run": "bandwidth", "copy, TB/s": round(copied / 1e12, 2), "add a tree, ms": round(1000 * seconds[1], 3)}
    return {**row, "splits a document": round(depth, 2), "at least, TB/s": round(added / 1e12, 2)}


def leaf_depths(tree: Tree) -> np.ndarray:
    """The number of splits above each leaf."""
    depths, above = np.zeros(len(tree.leaf_values), int), np.zeros(len(tree.splits), int)
    for number, split in enumerate(tree.splits):
        for child in split[3:5]:
            target, place = (above, child) if child >= 0 else (depths, ~child)
            target[place] = above[number] + 1
    return depths


def quality_row(name: str, train: Any, valid: Any) -> dict:
    """NDCG@10 of the same run on both devices, and on the CPU with other seeds, for the noise."""
    options = {"trees": 200, **RUNS["selgb 5%"], **SETTINGS, "feature_fraction": 0.9}
    gpu, *cpu = (
        rs.train(train, valid=valid, device=where, seed=seed, **options).info["history"]["valid"]["ndcg@10"][-1]
        for where, seed in (("cuda", 0), ("cpu", 0), ("cpu", 1), ("cpu", 2), ("cpu", 3))
    )
    row = {"run": f"quality on {name}, 200 trees of selgb 5%", "ndcg@10 cuda": round(gpu, 5)}
    return {**row, "ndcg@10 cpu": round(cpu[0], 5), "ndcg@10 cpu, other seeds": np.round(cpu[1:], 5).tolist()}


def bug_lists(file: str) -> tuple[rs.Dataset, rs.Dataset]:
    """Two thirds of the queries, and the rest."""
    data = rs.read(file)
    border = 2 * data.n_queries // 3
    return data.take_queries(np.arange(border)), data.take_queries(np.arange(border, data.n_queries))


def tie_row(data: Binned, trees: int = 100) -> dict:
    """Trees of both devices from equal scores, and how many trees of two runs are equal.

    Where a tree differs, the CPU must grow the GPU's tree from the GPU's gradients: nothing but gradients differs. The
    relative difference of the gains at the first split that differs says how close the two splits were.
    """
    params = Params(**RUNS["selgb 1%"], **SETTINGS)
    bins, n, metric = send_bins(data.bins, words=True), data.lists.n_docs, metric_of(params)
    sides = (
        (TrainingLists(data.lists, params, metric), Scores(data)),
        (GpuLists(data.lists, params, metric, bins=bins), GpuScores(bins, np.zeros(n), data.lists.offsets, 64)),
    )
    growers = Grower(data, params, threads=1), GpuGrower(data, params)
    rows, far, near, rows_differ = [lists.all_rows for lists, _ in sides], 0.0, [], 0
    for step in range(trees):
        rng = partial(np.random.default_rng, step)
        rows = [lists.select_rows(last, scores, step, rng()) for (lists, scores), last in zip(sides, rows, strict=True)]
        rows_differ += rows[0].rows is not None and not np.array_equal(rows[0].rows, rows[1].rows)
        targets = [lists.gradients(own, scores, step, rng()) for (lists, scores), own in zip(sides, rows, strict=True)]
        (cpu, _), (gpu, _) = (grower.grow(target, rng()) for grower, target in zip(growers, targets, strict=True))
        there = targets[1]
        grad, hess = (device.download(values)[: there.n_rows] for values in (there.grad, there.hess))
        far = max(far, float(np.abs(grad - targets[0].grad).max() / np.abs(grad).max()))
        if not np.array_equal(cpu.splits, gpu.splits):
            own, _ = growers[0].grow(TreeTarget(rows[1].rows, grad, hess), rng())
            assert np.array_equal(own.splits, gpu.splits) and np.array_equal(own.leaf_values, gpu.leaf_values)
            first = int(np.argmax((cpu.splits != gpu.splits).any(axis=1)))
            near.append(float(abs(cpu.gains[first] - gpu.gains[first]) / cpu.gains[first]))
        for _, scores in sides:
            scores.add(cpu)  # both go on from the same scores
    return {
        "run": "trees from equal scores, selgb 1%", "documents": n, "trees": trees, "trees that differ": len(near),
        "selections that differ": rows_differ, "gradients differ, relative": far,
        "gains at the first split that differs, relative": near, "equal trees of two runs": equal_trees(data, trees),
    }  # fmt: skip


def equal_trees(data: Binned, trees: int) -> int:
    """How many trees at the start of a run on the CPU and of one on the GPU have the same splits."""
    cpu, gpu = (rs.train(data, device=where, trees=trees, **RUNS["selgb 1%"], **SETTINGS) for where in ("cpu", "cuda"))
    for tree in range(trees):
        mine, other = cpu.take([tree]), gpu.take([tree])
        if not (np.array_equal(mine.feature, other.feature) and np.array_equal(mine.threshold, other.threshold)):
            return tree
    return trees


def score_row(data: Binned) -> dict:
    """Documents a second through 1,000 trees of 64 leaves, from float32 on the GPU and on the host."""
    model = rs.train(data, device="cuda", trees=100, algo="lambdamart", min_docs=2, **SETTINGS)
    model = concatenate([model] * 10)
    documents = 255 * np.random.default_rng(0).random((1 << 20, FEATURES), dtype=np.float32)
    there = device.upload(documents)
    scores, best = model.predict(there, device="cuda"), np.inf
    for _ in range(5):
        device.synchronize()
        start = time.perf_counter()
        scores = model.predict(there, device="cuda")
        device.synchronize()
        best = min(best, time.perf_counter() - start)
    start = time.perf_counter()
    from_host = model.predict(documents, device="cuda")
    host = time.perf_counter() - start
    assert np.array_equal(model.predict(documents[:2000]), from_host[:2000])
    assert np.array_equal(device.download(scores), from_host)
    rate, host_rate = (round(len(documents) / seconds / 1e6, 1) for seconds in (best, host))
    return {"run": "scoring, 1,000 trees × 64 leaves", "M documents/s": rate, "M documents/s from the host": host_rate}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=3200)
    parser.add_argument("--trees", type=int, default=200)
    parser.add_argument("--cpu-trees", type=int, default=10)
    parser.add_argument("--more-trees", type=int, default=30)
    parser.add_argument("--bugs", help="Parquet file with lists of bug reports")
    options = parser.parse_args()
    device.is_chosen("cuda")
    name = cuda.get_current_device().name
    small = binned_lists(40, 1)
    check_tree(small)
    rows: list[dict] = [{"gpu": name.decode() if isinstance(name, bytes) else name}]

    def keep(row: dict) -> None:
        rows.append(row)
        print(row, flush=True)
        save("gpu", rows)

    train, valid = binned_lists(options.queries, 3), binned_lists(max(1, options.queries // 10), 4)
    for name in RUNS:
        keep(tree_row(name, "cuda", train, options.trees))
    keep(long_row(train, valid))
    keep(bandwidth_row(train))
    keep(score_row(small))
    for name in MORE_RUNS if options.more_trees else ():
        keep(tree_row(name, "cuda", train, options.more_trees))
    # runs on the CPU come last: their threads share the cores with what the host does for a GPU
    keep(tie_row(small))
    keep(quality_row("generated lists", small, binned_lists(20, 2)))
    if options.bugs:
        keep(quality_row("bug reports", *bug_lists(options.bugs)))
    for name in RUNS if options.cpu_trees else ():
        keep(tree_row(name, "cpu", train, options.cpu_trees))


if __name__ == "__main__":
    main()

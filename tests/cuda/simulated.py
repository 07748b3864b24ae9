"""What `test_simulated.py` checks, in a process of its own: the CUDA simulator is chosen before Numba is imported.

Prints a JSON object: for each check, whether the GPU's result is the CPU's, or the error.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import checks
import greenlet
import numpy as np
from numba.cuda.simulator import kernel, kernelapi
from numba.cuda.simulator.kernel import BlockThread

import ranksieve as rs
from ranksieve.boosting import fixed_point
from ranksieve.boosting.gpu.grower import GpuGrower
from ranksieve.boosting.grower import Grower
from ranksieve.boosting.training_rows import TreeTarget
from ranksieve.cuda import bins
from ranksieve.cuda.bins import send_bins
from ranksieve.cuda.device import download, overwrite, upload
from ranksieve.cuda.forest import DeviceForest
from ranksieve.cuda.growth import TreeSpace
from ranksieve.cuda.ranked_forest import RankedForest, pack_trees
from ranksieve.data.binned import bin_data
from ranksieve.forest.float32 import floor_single
from ranksieve.forest.scorer import make_columns
from ranksieve.kernels import rounding
from ranksieve.params import Params


def lists(n_queries: int, seed: int) -> rs.Dataset:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(4, 12, n_queries)
    features = np.round(rng.normal(size=(sizes.sum(), 4)), 1).astype(np.float32)
    labels = np.clip(np.round(features[:, 0] + 0.5 * features[:, 1] - 0.5), 0, 2)
    features[rng.random(features.shape) < 0.1] = np.nan
    return rs.Dataset.from_arrays(features, labels, np.repeat(np.arange(n_queries), sizes))


def same_tree(**options) -> bool:
    """Whether a tree from equal gradients is equal to the CPU's bit for bit."""
    data = bin_data(lists(8, 0), max_bins=6)
    rng, n = np.random.default_rng(1), data.lists.n_docs
    params = Params(**{"algo": "lambdamart", "leaves": 4, "min_docs": 2, **options})
    grad, hess = rng.normal(size=n), rng.random(n)
    want, _ = Grower(data, params, threads=1).grow(TreeTarget(None, grad, hess), np.random.default_rng(3))
    there = send_bins(data.bins, words=True)
    space = TreeSpace(n, there.words, there.columns, by_column=True)
    overwrite(space.grad, grad)
    overwrite(space.hess, hess)
    space.take(n)
    got, _ = GpuGrower(data, params).grow(space, np.random.default_rng(3))
    return len(want.splits) == params.leaves - 1 and all(
        np.array_equal(getattr(want, name), getattr(got, name)) for name in want.__dataclass_fields__
    )


def with_many_rows(check: Callable[[], bool]) -> bool:
    """A check in which few rows are many: packed sums have fewer bits."""
    usual, rounding.MANY_ROWS = rounding.MANY_ROWS, 1
    try:
        return check()
    finally:
        rounding.MANY_ROWS = usual


def with_noise(check: Callable[[], bool]) -> bool:
    """A check in which packed sums are too noisy: there are two histograms."""
    usual, fixed_point.MOST_NOISE = fixed_point.MOST_NOISE, -40
    try:
        return check()
    finally:
        fixed_point.MOST_NOISE = usual


def same_forest(**options) -> bool:
    """Whether a run has the CPU's splits and validation metrics, and its leaf values up to rounding."""
    train, valid = lists(5, 2), lists(3, 3)
    options = {"trees": 2, "leaves": 3, "min_docs": 2, "max_bins": 6, "gain": "newton", **options}
    want, got = (rs.train(train, valid=valid, device=device, **options) for device in ("cpu", "cuda"))
    splits = all(np.array_equal(getattr(want, name), getattr(got, name)) for name in ("feature", "threshold", "left"))
    return bool(
        splits
        and np.allclose(want.leaf_values, got.leaf_values, rtol=1e-12)
        and want.info["history"] == got.info["history"]
        and np.array_equal(got.predict(train), got.predict(train, device="cuda"))
    )


def near_the_top(view: Any) -> np.ndarray:
    """A selection of the user: every second document, if it does not have the lowest score of them."""
    rows = np.arange(0, view.lists.n_docs, 2)
    scores = view.scores.at(rows)
    return rows[scores > scores.min()]


def same_scores() -> bool:
    """Whether scores by ranks, with several batches of trees, and scores by values are the CPU's."""
    data = lists(12, 5)
    model = rs.train(data, trees=4, leaves=9, min_docs=1)
    forest = replace(model, zero_missing=np.arange(len(model.feature)) % 2 == 0)
    documents = np.random.default_rng(6).normal(size=(37, 4)).astype(np.float32)
    documents[::5, 0], documents[::7, 1] = 0.0, np.nan
    values, offsets = forest.scaled_leaf_values(), (forest.split_offsets, forest.leaf_offsets)
    columns, _, column, cut = make_columns(forest)
    by_rank = (column, cut, forest.left, forest.right, forest.default_left)
    by_value = (forest.feature, forest.threshold, forest.left, forest.right, forest.default_left, forest.zero_missing)
    trees = pack_trees(by_rank, values, *offsets, most_nodes=20)
    edges = {np.dtype(np.float32): floor_single(columns.thresholds).astype(np.float32)}
    ranked = RankedForest(columns.feature, columns.zero_missing, edges, columns.starts, trees)
    want, there = forest.predict(documents), upload(documents)
    found = [download(one.score(there)) for one in (ranked, DeviceForest(by_value, values, *offsets))]
    return len(trees.batches) > 3 and all(np.array_equal(want, scores) for scores in found)


def same_warning() -> bool:
    """Whether a run warns of validation lists that are sorted by label with the CPU's values."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", rs.errors.TiedScoresWarning)
        labels = np.tile([2, 1, 0, 0], 12)
        valid = rs.Dataset.from_arrays(np.ones((48, 4), np.float32), labels, np.arange(48) // 4)
        for device in ("cpu", "cuda"):
            rs.train(lists(4, 2), valid=valid, device=device, trees=2, leaves=2, min_docs=2, early_stopping=1)
    cpu, gpu = (str(one.message) for one in found if issubclass(one.category, rs.errors.TiedScoresWarning))
    return cpu == gpu


def same_rows(name: str, **options) -> bool:
    """Whether a selection has the CPU's rows, and they its gradients."""
    data = bin_data(lists(3, 7), max_bins=6)
    return checks.same_selection(data, selection=name, **checks.SELECTIONS[name], **options)


def same_streamed() -> bool:
    """Whether a run on bins that do not fit has the trees of one on bins that do, and says so."""
    options = {"algo": "selgb", "negatives": 0.4, "min_negatives": 1, "leaves": 3, "min_docs": 2, "max_bins": 6}
    train, bins.STAGED = lists(8, 8), 500
    limit = str(checks.least_memory(train, Params(**options)) + 1500)
    cpu, gpu = (rs.train(train, trees=2, **options, **where) for where in ({}, {"device": "cuda", "memory": limit}))
    return all(np.array_equal(getattr(cpu, name), getattr(gpu, name)) for name in ("feature", "threshold", "left"))


def message(**options) -> str:
    try:
        rs.train(lists(3, 4), trees=1, device="cuda", **options)
    except rs.errors.RanksieveError as error:
        return str(error)
    return ""


CHECKS = {
    "newton": lambda: same_tree(gain="newton", leaves=8),
    "newton, many rows": lambda: with_many_rows(lambda: same_tree(gain="newton", leaves=8)),
    "variance": lambda: same_tree(gain="variance", feature_fraction=0.7),
    "monotone": lambda: same_tree(gain="newton", monotone=[1, -1, 0, 0], min_hessian=0.1, features=["f2", "f1"]),
    "selgb": lambda: same_forest(algo="selgb", negatives=0.4, min_negatives=1),
    "lambdamart, map": lambda: same_forest(algo="lambdamart", objective="map", metric="map"),
    "mart": lambda: same_forest(algo="mart", trees=1),
    "own selection": lambda: same_forest(algo="lambdamart", selection=near_the_top),
    "scores": same_scores,
    "random": lambda: same_rows("random", row_fraction=0.6),
    "adaptive": lambda: same_rows("adaptive"),
    "choice": lambda: checks.same_choice(bin_data(lists(6, 9), max_bins=6)),
    "goss": lambda: same_rows("goss", objective="xendcg"),
    "streamed": same_streamed,
    "sorted by label": same_warning,
    "newton, two histograms": lambda: with_noise(lambda: same_tree(gain="newton", leaves=8, l2=0.0)),
    "monotone, two histograms": lambda: with_noise(lambda: same_tree(gain="variance", monotone=[1, -1, 0, 0])),
    "memory": lambda: message(algo="lambdamart", memory="2M"),
    "oblivious": lambda: message(algo="oblivious-mart"),
    "leaves": lambda: message(leaves=2000),
}


class Lane:
    """A thread of a block: a greenlet, which runs until the block waits for it."""

    def __init__(self, manager: kernel.BlockManager, block: tuple[int, ...], thread: tuple[int, ...]) -> None:
        self._manager = manager
        self.blockIdx, self.threadIdx = kernelapi.Dim3(*block), kernelapi.Dim3(*thread)
        width, height, _ = manager._block_dim
        self.thread_id = thread[0] + width * (thread[1] + height * thread[2])

    def syncthreads(self) -> None:
        greenlet.getcurrent().parent.switch()

    syncthreads_count = BlockThread.syncthreads_count
    syncthreads_and = BlockThread.syncthreads_and
    syncthreads_or = BlockThread.syncthreads_or


def run_block(manager: kernel.BlockManager, grid_point: tuple[int, ...], *args: Any) -> None:
    """Numba's `BlockManager.run` without a thread of the system for each thread of a block, which takes minutes.

    One thread after the other runs until it ends or waits for the block; then all that wait go on.
    """
    threads = np.ndindex(*manager._block_dim)
    lanes = [(Lane(manager, grid_point, thread), greenlet.greenlet(manager._f)) for thread in threads]
    given = args
    while lanes:
        for lane, run in lanes:
            kernelapi.threading.lane = lane
            run.switch(*given)
        lanes, given = [(lane, run) for lane, run in lanes if not run.dead], ()


def shared_array(shared: kernelapi.FakeCUDAShared, shape: Any, dtype: Any, alignment: None = None) -> np.ndarray:
    """Numba's `cuda.shared.array`, which looks at the files of all callers on disk, to find the line that calls it."""
    dtype = kernelapi.numpy_support.as_dtype(dtype)
    if shape == 0:
        return np.frombuffer(shared._dynshared.data, dtype, shared._dynshared_size // dtype.itemsize)
    caller = sys._getframe(1)
    return shared._allocations.setdefault((caller.f_code, caller.f_lineno), np.empty(shape, dtype))


def save_time() -> None:
    """Spare the simulator work that tests do not need."""
    kernel.BlockManager.run = run_block
    kernelapi.threading = SimpleNamespace(current_thread=lambda: kernelapi.threading.lane)
    kernelapi.FakeCUDAShared.array = shared_array


if __name__ == "__main__":
    save_time()
    warnings.filterwarnings("ignore", message="overflow encountered", category=RuntimeWarning)  # of the simulator
    print(json.dumps({name: check() for name, check in CHECKS.items()}))

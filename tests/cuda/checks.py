"""What the GPU computes beside what the CPU computes, for the simulator and for a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksieve.boosting.gpu.backend import needed_bytes
from ranksieve.boosting.gpu.rows import GpuLists, GpuRows
from ranksieve.boosting.gpu.scores import GpuScores
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.training_rows import TrainingLists, TreeTarget
from ranksieve.cuda.bins import send_bins
from ranksieve.cuda.device import download
from ranksieve.data.binned import Binned, bin_data
from ranksieve.evaluation.metrics import metric_of
from ranksieve.params import Params

SELECTIONS: dict[str, dict[str, Any]] = {
    "top": {}, "random": {}, "rows": {"negatives": 0.3}, "gradient": {}, "top+random": {"rest": 0.2},
    "top+bottom": {"rest": 0.3}, "adaptive": {"margin": 0.3}, "progress": {"margin": 0.1}, "goss": {"rest": 0.2},
}  # fmt: skip
OBJECTIVES: dict[str, dict[str, Any]] = {
    "ndcg": {}, "map": {}, "mrr": {}, "err": {"truncation": 3}, "squared": {}, "xendcg": {},
    "yetiloss": {"neighbors": 2, "permutations": 3}, "labels": {"objective": "ndcg", "first_tree": "labels"},
}  # fmt: skip


def pair(data: Binned, params: Params, start: np.ndarray) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Lists and scores on the CPU, and on the GPU."""
    metric = metric_of(params)
    bins = send_bins(data.bins, words=True)
    return (
        (TrainingLists(data.lists, params, metric), Scores(data, start=start)),
        (GpuLists(data.lists, params, metric, bins=bins), GpuScores(bins, start, data.lists.offsets, params.leaves)),
    )


def targets(data: Binned, options: dict[str, Any], seed: int = 0) -> list[tuple[Any, TreeTarget]]:
    """The rows of two selections after each other, and the gradients of both, on the CPU and on the GPU."""
    rng = np.random.default_rng(seed)
    params = Params(**{"algo": "sieve", "every": 1, "negatives": 0.4, "min_negatives": 1, **options})
    start = np.round(rng.normal(size=data.lists.n_docs), 1)  # many scores are equal
    found = []
    for lists, scores in pair(data, params, start):
        rows = lists.all_rows
        for step in (1, 2):
            rows = lists.select_rows(rows, scores, step, np.random.default_rng(step))
            target = lists.gradients(rows, scores, step, np.random.default_rng(step + 10))
            found.append((rows, target if isinstance(target, TreeTarget) else _read(target)))
    return found


def _read(space: Any) -> TreeTarget:
    """What a tree on the GPU is fitted to."""
    n = space.n_rows
    rows = download(space.numbers)[:n] if space.numbered else None
    return TreeTarget(rows, download(space.grad)[:n], download(space.hess)[:n])


def same_selection(data: Binned, **options: Any) -> bool:
    """Whether the GPU selects the CPU's rows, with their weights, and has their gradients up to rounding."""
    found = targets(data, options)
    half = len(found) // 2
    same = [_same(*both) for both in zip(found[:half], found[half:], strict=True)]
    return all(same) and half == 2


def _same(cpu: tuple[Any, TreeTarget], gpu: tuple[Any, TreeTarget]) -> bool:
    (rows, want), (there, got) = cpu, gpu
    if rows.rows is not None:
        host = there.host if isinstance(there, GpuRows) else there
        weights, own = (None if one.weights is None else one.weights for one in (rows, host))
        if not np.array_equal(rows.rows, host.rows) or (weights is None) != (own is None):
            return False
        if weights is not None and not np.allclose(weights, own, rtol=1e-15):
            return False
    numbers = (np.arange(len(one.grad)) if one.rows is None else one.rows for one in (want, got))
    return (
        np.array_equal(*numbers)
        and np.allclose(want.grad, got.grad, rtol=1e-9, atol=1e-12)
        and np.allclose(want.hess, got.hess, rtol=1e-9, atol=1e-12)
    )


def same_gradients(data: Binned, **options: Any) -> bool:
    """Whether the gradients of the full lists, and of selected rows, are the CPU's up to rounding."""
    params = Params(**{"algo": "selgb", "negatives": 0.4, "min_negatives": 1, **options})
    start = np.round(np.random.default_rng(1).normal(size=data.lists.n_docs), 1)
    found = []
    for lists, scores in pair(data, params, start):
        step = 0 if options.get("first_tree") else 1
        full = lists.gradients(lists.all_rows, scores, step, np.random.default_rng(0))
        full = full if isinstance(full, TreeTarget) else _read(full)
        rows = lists.select_rows(lists.all_rows, scores, 1, np.random.default_rng(1))
        some = lists.gradients(rows, scores, step, np.random.default_rng(2))
        found.append((full, some if isinstance(some, TreeTarget) else _read(some)))
    return all(
        np.allclose(getattr(want, name), getattr(got, name), rtol=1e-9, atol=1e-12)
        for want, got in zip(*found, strict=True)
        for name in ("grad", "hess")
    )


def least_memory(data: Any, params: Params) -> int:
    """The least memory that training needs if bins are streamed."""
    return needed_bytes(bin_data(data, **params.bin_limits), params, is_trained_on=True, in_place=False)


def same_choice(data: Binned) -> bool:
    """Whether scores on the GPU choose the CPU's documents for rules of the user."""
    n, rng = data.lists.n_queries, np.random.default_rng(5)
    start = np.round(rng.normal(size=data.lists.n_docs), 1)
    (_, cpu), (_, gpu) = pair(data, Params(algo="lambdamart"), start)
    longest = int(data.lists.sizes.max())
    assert data.lists.sizes.min() < longest  # the last `lows` are more than some lists have
    return all(
        np.array_equal(
            *(one.choose(lows, lows if above is None else lows + 2, above, labels=labels, lowest=lowest).rows
              for one in (cpu, gpu))
        )
        for lows in (np.ones(n, np.int64), np.full(n, longest))
        for above in (None, rng.normal(size=n))
        for labels in (None, data.lists.labels)
        for lowest in (False, True)
    )  # fmt: skip

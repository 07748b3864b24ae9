"""Finding better tree weights by line search (Lucchese et al. 2018, §3.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ranksieve.kernels import leave_one_out as kernels
from ranksieve.pruning.tree_outputs import TreeOutputs, n_parts, pools_of
from ranksieve.pruning.weight_search import WeightSearch
from ranksieve.text_formats import is_monotone


class WeightStep(NamedTuple):
    """Tree weights after a round, and the metric with them, summed over the lists, in steps."""

    round: int
    weights: np.ndarray
    total: int
    valid_total: int | None
    without_gain: int  # rounds since the metric was best


def search_weights(outputs: TreeOutputs, valid: TreeOutputs | None, search: WeightSearch) -> Iterator[WeightStep]:
    """The forest's own weights, then the weights after every round; the metric on `outputs` never falls.

    A round first tries `samples` equally spaced weights for each tree alone, at most `window` · mean weight ·
    `shrink`^(rounds before) away. Then it tries `samples` points on the line from the current weights to all the best
    ones, and moves to the best point. Weights of a forest trained under monotone constraints stay at 0 or above. The
    search ends after `rounds`, or when the metric on `valid` (on `outputs` where there is none) has not improved for
    `patience` rounds.
    """
    weights = outputs.weights.copy()
    mean = float(np.abs(weights).mean()) or 1.0
    total, best, since = outputs.total(weights=weights), 0, 0
    for number in range(search.rounds + 1):
        if number:
            reach = search.window * mean * search.shrink ** (number - 1)
            weights, total = _improve(outputs, weights, total, search.samples, reach)
        valid_total = None if valid is None else valid.total(weights=weights)
        watched = total if valid_total is None else valid_total
        best, since = (watched, 0) if number == 0 or watched > best else (best, since + 1)
        yield WeightStep(number, weights, total, valid_total, since)
        if since >= search.patience:
            break


def better_step(found: WeightStep, best: WeightStep | None) -> WeightStep:
    """The better step on the validation lists, or on the training lists without them; if equal, the earlier one."""
    if best is None:
        return found
    better = found.total > best.total if found.valid_total is None else found.valid_total > (best.valid_total or 0)
    return found if better else best


def _improve(
    outputs: TreeOutputs, weights: np.ndarray, total: int, samples: int, reach: float
) -> tuple[np.ndarray, int]:
    """One round: weights that are better, or the same weights."""
    unit = outputs.unit(np.abs(weights) + reach)
    table = outputs.table(weights, unit)
    base = outputs.base(unit)
    scores = outputs.scores(table, np.arange(outputs.n_trees), base)
    offsets = np.linspace(-reach, reach, samples)
    grid = weights[:, None] + offsets
    if is_monotone(outputs.forest.info):
        grid = np.maximum(grid, 0.0)  # a negative weight would reverse the direction that the tree is constrained to
    changes = _changes_alone(outputs, grid, unit, table, scores)
    # of equal samples the nearest, then the lower
    nearest = np.argsort(np.abs(offsets), kind="stable")
    chosen = nearest[np.argmax(changes[:, nearest], axis=1)]
    trees = np.arange(outputs.n_trees)
    gains = changes[trees, chosen] > 0
    target = np.where(gains, grid[trees, chosen], weights)
    if not gains.any():
        return weights, total
    points = np.arange(1, samples + 1) / samples
    along = weights + points[:, None] * (target - weights)
    totals = _totals_along(outputs, along, unit, base, scores)
    best = int(np.argmax(totals))
    return (along[best], int(totals[best])) if totals[best] > total else (weights, total)


def _changes_alone(
    outputs: TreeOutputs, grid: np.ndarray, unit: int, table: np.ndarray, scores: np.ndarray
) -> np.ndarray:
    """What the metric gains when each tree alone takes each weight of its row in the grid."""
    tables = _tables(outputs, grid.T, unit)
    tables[:, : grid.shape[1]] -= table[:, None]
    tables[:, grid.shape[1] :] = 0
    trees = np.arange(outputs.n_trees)
    if not outputs.incremental.is_fast:
        now = outputs.measure(scores)
        return np.array([
            [outputs.measure(outputs.scores(column, [tree], scores)) - now for column in tables.T[: grid.shape[1]]]
            for tree in range(outputs.n_trees)
        ])  # fmt: skip
    reaches = outputs.reaches(tables).reshape(outputs.n_trees, -1, kernels.LANES).max(axis=2)
    pools = pools_of(outputs, scores, scores, int(reaches.max()))
    changes = np.zeros((n_parts(), outputs.n_trees, tables.shape[1]), np.int64)
    kernels.changes_with(
        outputs.leaves, trees, reaches, tables.ravel(), outputs.starts, pools, outputs.incremental.terms, changes
    )
    return changes.sum(axis=0)[:, : grid.shape[1]]


def _totals_along(
    outputs: TreeOutputs, along: np.ndarray, unit: int, base: np.ndarray, scores: np.ndarray
) -> np.ndarray:
    """The metric under each row of weights; all lie on the way from the weights of `scores` to the last row."""
    tables = _tables(outputs, along, unit)
    trees = np.arange(outputs.n_trees)
    if not outputs.incremental.is_fast:
        return np.array([outputs.measure(outputs.scores(column, trees, base)) for column in tables.T[: len(along)]])
    end = outputs.scores(np.ascontiguousarray(tables[:, len(along) - 1]), trees, base)
    # a score on the way lies between its two ends, but for the rounding of every output
    rounding = outputs.rounding()
    pools = pools_of(outputs, np.minimum(scores, end) - rounding, np.maximum(scores, end) + rounding, 0)
    totals = np.zeros((n_parts(), tables.shape[1]), np.int64)
    kernels.values_along(
        outputs.leaves, trees, tables.ravel(), outputs.starts, base, pools, outputs.incremental.terms, totals
    )
    return totals.sum(axis=0)[: len(along)] + outputs.incremental.constant


def _tables(outputs: TreeOutputs, weights: np.ndarray, unit: int) -> np.ndarray:
    """One column of outputs per row of weights, padded with copies of the last to whole lanes."""
    n_padding = -len(weights) % kernels.LANES
    columns = [outputs.table(row, unit) for row in weights]
    return np.stack(columns + n_padding * columns[-1:], axis=1)

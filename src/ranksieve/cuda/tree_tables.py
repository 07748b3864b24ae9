"""What the kernels of a growing tree share: the rows, the columns, the numbers of a tree, and what is planned."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import cuda

from ranksieve.cuda.device import SIMULATED
from ranksieve.kernels.gain import SplitRules

MOST_TASKS = 3 if SIMULATED else 8  # nodes that are divided in a round
MOST_LEAVES = 1024  # of a tree on a GPU
MOST_AHEAD = 32  # nodes that are divided before it is known that the tree splits them

# the numbers of a tree, `TreeSettings.numbers`; as many more are floats
COUNT_BITS, HESS_BITS, MIN_DOCS, NEWTON, MAX_DEPTH, KEY, N_ROWS, N_SIGNS, EXACT_ROOM, GRAD_ROOM, HESS_ROOM = range(11)
WITH_HESS = 11  # 1 where splits depend on second derivatives
# two factors of each scale, and the unit of second derivatives, are set on the GPU
MIN_HESS, L2, GRAD_A, GRAD_B, HESS_A, HESS_B, EXACT_GRAD_A, EXACT_GRAD_B, EXACT_HESS_A, EXACT_HESS_B, HESS_UNIT = range(
    11
)
N_SETTINGS = 16

# `Plan.numbers`: what the next round does
N_TASKS, N_TILES, N_PARTS, PART_ROWS, N_NODES, N_LEAVES, N_ROUNDS, IS_DONE = range(8)
EXPONENTS = 8  # four: of gradients and second derivatives, packed and exact
NOISE = 12  # that packed sums have, or would have, at most; as log2
N_NUMBERS = 13

# `Plan.tasks`: a node that the next round divides, and its two sides, of which the smaller is the first
COLUMN, CUT, MISSING_LEFT, START, STOP, BUFFER, SMALL_START, SMALL_STOP, FIRST_TILE, FIRST_PART = range(10)
SIDE, SLOT, IS_SEARCHED = 10, 12, 14  # two of each: the node, its histogram, and whether it may be divided again
N_FIELDS = 16


class TreeSettings(NamedTuple):
    """The numbers that differ from tree to tree, on the device."""

    numbers: Any  # int64
    floats: Any  # float64
    float_bits: Any  # the same as int64


class Rows(NamedTuple):
    """The rows that a tree is grown on."""

    words: Any  # see `bins`, laid out for `n_rows` rows
    bins: Any  # the bytes that rows are divided by
    by_column: int  # whether those are by columns, or else in groups
    n_rows: int
    members: Any  # two buffers of n_rows
    packed: Any  # the integers that are summed: gradients, counts and, with bits for them, second derivatives
    hess: Any  # integers of second derivatives, where these are summed on their own


class SplitColumns(NamedTuple):
    """The columns that a tree may split on."""

    n_bins: Any
    allowed: Any
    signs: Any
    places: Any  # a column's place among those that may ever be chosen: ties are decided by it
    widest: Any  # per group: the most bins


class Plan(NamedTuple):
    """The nodes that the next round divides, and the leaves of the tree so far."""

    numbers: Any
    tasks: Any  # int64, MOST_TASKS × N_FIELDS
    cursors: Any  # int32, task, 2: where the next rows of the left and of the right side go
    leaves: Any  # int32: the node of each leaf


class FoundCuts(NamedTuple):
    """What a search finds: for each task and side the best cut of every 16 columns."""

    gains: Any  # task, side, columns
    cuts: Any  # task, side, columns, 6: column, bin, missing left, the two left sums, order among equals


class TreeNodes(NamedTuple):
    """The root, and the two sides of every node that is divided."""

    totals: Any  # packed sums
    hess_totals: Any  # of second derivatives that are summed on their own
    limits: Any  # bounds on the value
    depths: Any
    bounds: Any  # of its rows: start, stop, buffer
    slots: Any  # of the histogram
    children: Any  # the left child, the right one follows; 0: not divided
    found: Any  # gain of the best cut
    gains: Any  # what that gains over the node as it is
    cuts: Any  # the best cut, as in `FoundCuts`, without its order
    sums: Any  # exact sums of gradients and of second derivatives, of nodes that are not divided


class Work(NamedTuple):
    """Space of a growing tree."""

    hist: Any  # slot, group, bin, column
    hess_hist: Any  # the same of second derivatives that are summed on their own, or one number
    plan: Plan
    found: FoundCuts
    nodes: TreeNodes


@cuda.jit(device=True)
def rules_of(settings):
    """How splits are valued."""
    numbers, floats = settings.numbers, settings.floats
    return SplitRules(
        numbers[COUNT_BITS], numbers[HESS_BITS], floats[HESS_UNIT], numbers[MIN_DOCS], floats[MIN_HESS], floats[L2],
        numbers[NEWTON] != 0, numbers[MAX_DEPTH],
    )  # fmt: skip


@cuda.jit(device=True)
def task_of(tasks, n_tasks, field, number):
    """The task that a tile or a part belongs to: the last one whose first is not beyond it."""
    task = 0
    for k in range(1, n_tasks):
        if tasks[k, field] <= number:
            task = k
    return task

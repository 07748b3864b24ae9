"""What the kernels of a growing tree share: its rows, its columns, its settings, the plan of a round, and its nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import cuda

from ranksieve.cuda.device import SIMULATED
from ranksieve.kernels.gain import SplitRules

MOST_TASKS = 3 if SIMULATED else 8  # most nodes that a round divides
MOST_LEAVES = 1024  # most leaves of a tree on a GPU
MOST_AHEAD = 32  # most nodes that are divided before it is known whether the tree splits them

# places in `TreeSettings.numbers`
COUNT_BITS, HESS_BITS, MIN_DOCS, NEWTON, MAX_DEPTH, KEY, N_ROWS, N_SIGNS, EXACT_ROOM, GRAD_ROOM, HESS_ROOM = range(11)
WITH_HESS = 11  # 1 where splits depend on second derivatives
# places in `TreeSettings.floats`; from GRAD_A on they are set on the GPU: two factors of each scale, and a unit
MIN_HESS, L2, GRAD_A, GRAD_B, HESS_A, HESS_B, EXACT_GRAD_A, EXACT_GRAD_B, EXACT_HESS_A, EXACT_HESS_B, HESS_UNIT = range(
    11
)
N_SETTINGS = 16  # length of both

# places in `Plan.numbers`: what the next round does, and the tree so far
N_TASKS, N_TILES, N_PARTS, PART_ROWS, N_NODES, N_LEAVES, N_ROUNDS, IS_DONE = range(8)
EXPONENTS = 8  # four of them: of packed gradients and second derivatives, then of exact ones
NOISE = 12  # log2 of the most noise that packed sums have, or would have
N_NUMBERS = 13

# places in a row of `Plan.tasks`: a node that the next round divides, and its two sides, the smaller one first
COLUMN, CUT, MISSING_LEFT, START, STOP, BUFFER, SMALL_START, SMALL_STOP, FIRST_TILE, FIRST_PART = range(10)
SIDE, SLOT, IS_SEARCHED = 10, 12, 14  # two of each: node of a side, slot of its histogram, whether it is searched
N_FIELDS = 16


class TreeSettings(NamedTuple):
    """The settings of a tree, on the device."""

    numbers: Any  # int64
    floats: Any  # float64
    float_bits: Any  # the bits of the floats, as int64


class Rows(NamedTuple):
    """The rows that a tree is grown on."""

    words: Any  # bins in groups, with room for `n_rows` rows, see `cuda.bins`
    bins: Any  # bins as bytes; rows are divided by these
    by_column: int  # whether `bins` are by columns; otherwise they are in groups
    n_rows: int
    members: Any  # two buffers of `n_rows` numbers of rows
    packed: Any  # the integers that histograms sum: gradient, count and, if it has bits, second derivative
    hess: Any  # second derivatives as integers, where these are summed on their own


class SplitColumns(NamedTuple):
    """The columns that a tree may split on."""

    n_bins: Any
    allowed: Any
    signs: Any
    places: Any  # the place of each column among those that trees may split on; of equal gains, the lower place wins
    widest: Any  # the most bins of a column in each group


class Plan(NamedTuple):
    """The nodes that the next round divides, and the leaves of the tree so far."""

    numbers: Any
    tasks: Any  # int64, MOST_TASKS × N_FIELDS
    cursors: Any  # int32, [task, 2]: where the next rows of the left and of the right side are written
    leaves: Any  # int32, the node of each leaf


class FoundCuts(NamedTuple):
    """What a search finds: for each task and side, the best cut of each 16 columns."""

    gains: Any  # [task, side, 16 columns]
    cuts: Any  # [task, side, 16 columns, 6]: column, bin, missing left, two left sums, key among equal gains


class TreeNodes(NamedTuple):
    """The root, and the two sides of every node that is divided."""

    totals: Any  # packed sums
    hess_totals: Any  # sums of second derivatives, where these are summed on their own
    limits: Any  # bounds on the value
    depths: Any
    bounds: Any  # where its rows are: start, stop, buffer
    slots: Any  # where its histogram is
    children: Any  # the left child, which the right one follows; 0: not divided
    found: Any  # gain of the best cut, that of the node itself not subtracted
    gains: Any  # gain of the best cut, less that of the node itself
    cuts: Any  # the best cut, as in `FoundCuts`, without the key
    sums: Any  # exact sums of gradients and of second derivatives, for nodes that are not divided


class Work(NamedTuple):
    """The work space of a growing tree."""

    hist: Any  # [slot, group, bin, column], flat
    hess_hist: Any  # the same for second derivatives that are summed on their own; otherwise one number
    plan: Plan
    found: FoundCuts
    nodes: TreeNodes


@cuda.jit(device=True)
def rules_of(settings):
    """The `SplitRules` of a tree."""
    numbers, floats = settings.numbers, settings.floats
    return SplitRules(
        numbers[COUNT_BITS], numbers[HESS_BITS], floats[HESS_UNIT], numbers[MIN_DOCS], floats[MIN_HESS], floats[L2],
        numbers[NEWTON] != 0, numbers[MAX_DEPTH],
    )  # fmt: skip


@cuda.jit(device=True)
def task_of(tasks, n_tasks, field, number):
    """The task of a tile or a part of rows; `field` is where tasks have the number of their first one."""
    task = 0
    for k in range(1, n_tasks):
        if tasks[k, field] <= number:
            task = k
    return task

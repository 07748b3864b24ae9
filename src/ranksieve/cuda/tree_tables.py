"""What the kernels of a growing tree share: the rows, the columns, the numbers of a tree, and what is planned."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import cuda

from ranksieve.cuda.device import SIMULATED
from ranksieve.kernels.gain import SplitRules
from ranksieve.kernels.histograms import Columns

MOST_TASKS = 3 if SIMULATED else 8  # leaves that are divided in a round
SPARE_SLOTS = 32  # histograms of leaves that are divided ahead and may never be split

# the numbers of a tree, `Settings.numbers`; as many more are floats
COUNT_BITS, HESS_BITS, MIN_DOCS, NEWTON, MAX_DEPTH, KEY, N_ROWS, N_SIGNS = range(8)
HESS_UNIT, MIN_HESS, L2, GRAD_A, GRAD_B, HESS_A, HESS_B, EXACT_GRAD_A, EXACT_GRAD_B, EXACT_HESS_A, EXACT_HESS_B = range(
    11
)
N_SETTINGS = 16

# `Plan.numbers`: what the next round does
N_TASKS, N_TILES, N_PARTS, PART_ROWS, N_SLOTS, N_ROUNDS, IS_DONE = range(7)
N_NUMBERS = 8

# `Plan.tasks`: a leaf that the next round divides, and its two sides, of which the smaller is the first
LEAF, COLUMN, CUT, MISSING_LEFT, START, STOP, BUFFER, SMALL_START, SMALL_STOP, FIRST_TILE, FIRST_PART = range(11)
SLOT, TOTAL, IS_SEARCHED = 11, 13, 15  # two of each: of the smaller side, of the larger side
N_FIELDS = 20
IS_SPLIT = -1  # of LEAF: the leaf is split already; else it is divided ahead


class Settings(NamedTuple):
    """The numbers that differ from tree to tree, on the device."""

    numbers: Any  # int64
    floats: Any  # float64


class Rows(NamedTuple):
    """The rows that a tree is grown on."""

    words: Any  # see `bins`, laid out for `n_rows` rows
    bins: Any  # the bytes that rows are divided by
    by_column: int  # whether those are by columns, or else in groups
    n_rows: int
    members: Any  # two buffers of n_rows
    packed: Any


class Features(NamedTuple):
    """The columns that a tree may split on."""

    n_bins: Any
    allowed: Any
    signs: Any
    places: Any  # a column's place among those that may ever be chosen: ties are decided by it
    widest: Any  # per group: the most bins


class Plan(NamedTuple):
    """The leaves that the next round divides."""

    numbers: Any
    tasks: Any  # int64, MOST_TASKS × N_FIELDS
    cursors: Any  # int32, task, 2: where the next rows of the left and of the right side go
    finished: Any  # blocks of a search


class Found(NamedTuple):
    """What a search finds: for each task and side the best cut of every 16 columns."""

    gains: Any  # task, side, columns
    cuts: Any  # task, side, columns, 5: column, bin, missing left, left sum, order among equals


class Leaves(NamedTuple):
    """Where the leaves are, and what is known of the two sides of those that are divided ahead."""

    bounds: Any  # start, stop, buffer
    slots: Any  # of histograms
    sums: Any  # exact sums of gradients and of second derivatives
    is_ahead: Any
    borders: Any  # where the right side begins
    ranks: Any  # among the leaves that may be divided ahead
    side_slots: Any  # 2, the smaller side first
    side_gains: Any  # 2
    side_cuts: Any  # 2 × 5


class Work(NamedTuple):
    """Space of a growing tree."""

    hist: Any  # slot, group, bin, column
    plan: Plan
    found: Found
    leaves: Leaves


@cuda.jit(device=True)
def rules_of(settings):
    """How splits are valued."""
    numbers, floats = settings.numbers, settings.floats
    return SplitRules(
        numbers[COUNT_BITS], numbers[HESS_BITS], floats[HESS_UNIT], numbers[MIN_DOCS], floats[MIN_HESS], floats[L2],
        numbers[NEWTON] != 0, numbers[MAX_DEPTH],
    )  # fmt: skip


@cuda.jit(device=True)
def columns_of(features, settings):
    """The columns as `next_split` takes them; no thread has columns of its own here."""
    return Columns(
        features.n_bins, features.allowed, features.signs[: settings.numbers[N_SIGNS]], features.n_bins,
        0.0, 0.0, 0, 0, 0,
    )  # fmt: skip


@cuda.jit(device=True)
def task_of(tasks, n_tasks, field, number):
    """The task that a tile or a part belongs to: the last one whose first is not beyond it."""
    task = 0
    for k in range(1, n_tasks):
        if tasks[k, field] <= number:
            task = k
    return task

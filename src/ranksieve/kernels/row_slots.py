"""Slots of a matrix in memory for rows of a file.

The first four bytes of a free slot are the number of the next free slot, so that the list of free slots takes no
memory. The slots from `state[N_USED]` on have never been used.
"""

from typing import NamedTuple

import numpy as np

from ranksieve.kernels.jit import njit

ABSENT, REQUESTED = -1, -2  # in place of a slot: the row is not in memory, and is not or is requested
FIRST_FREE, N_FREE, N_USED = 0, 1, 2  # places in `Slots.state`


class Slots(NamedTuple):
    """The slots of all rows, and those that are free."""

    of_rows: np.ndarray  # int32 per row; below 0: the row is not in memory
    next_free: np.ndarray  # int32 per slot: for a free slot, the next free one
    state: np.ndarray  # int64: FIRST_FREE, N_FREE, N_USED


@njit(cache=True, nogil=True)
def give_slot(row, slots):
    """Give a free slot to a row."""
    slot = slots.state[FIRST_FREE]
    if slot >= 0:
        slots.state[FIRST_FREE] = slots.next_free[slot]
    else:
        slot = slots.state[N_USED]
        slots.state[N_USED] += 1
    slots.state[N_FREE] -= 1
    slots.of_rows[row] = slot


@njit(cache=True, nogil=True)
def free_slot(row, slots):
    """Take the slot from a row."""
    slot = slots.of_rows[row]
    slots.of_rows[row] = ABSENT
    slots.next_free[slot] = slots.state[FIRST_FREE]
    slots.state[FIRST_FREE] = slot
    slots.state[N_FREE] += 1


@njit(cache=True, nogil=True)
def give_slots(rows, slots):
    """Give free slots to rows that have none."""
    for i in range(len(rows)):
        give_slot(rows[i], slots)


@njit(cache=True, nogil=True)
def renew_slots(first, priority, lowest, n_most, n_reserved, slots, new):
    """Choose which of the rows from `first` on are in memory.

    These are the rows of infinite priority, and up to `n_most` others whose priority is at least `lowest`. Other rows
    lose their slots. `n_reserved` free slots are kept for rows of infinite priority, here or later. Rows that get a
    slot are written to `new`; afterwards no row is REQUESTED. Returns the number of new rows, how many of them have
    infinite priority, and how many rows of finite priority are in memory.
    """
    n_near = n_coming = n_going = n_new = n_wanted = 0
    of_rows, going = slots.of_rows, np.empty(len(priority), np.int32)
    for i in range(len(priority)):  # no branches: half of them would be mispredicted
        is_near = (priority[i] >= lowest) & (priority[i] > -np.inf) & (priority[i] < np.inf) & (n_near < n_most)
        stays, is_here = is_near | (priority[i] == np.inf), of_rows[first + i] >= 0
        n_near += is_near
        new[n_coming], going[n_going] = first + i, first + i
        n_coming += stays & (not is_here)
        n_going += is_here & (not stays)
        of_rows[first + i] = max(of_rows[first + i], ABSENT)
    for k in range(n_going):
        free_slot(going[k], slots)
    for k in range(n_coming):
        is_wanted = priority[new[k] - first] == np.inf
        if is_wanted or slots.state[N_FREE] > n_reserved - n_wanted:
            give_slot(new[k], slots)
            new[n_new] = new[k]
            n_new += 1
            n_wanted += is_wanted
    return n_new, n_wanted, n_near - (n_coming - n_new)

"""Slots of a matrix in memory for rows of a file.

A free slot has the number of the next free one in its first four bytes, so that a list of them takes no memory. The
slots from `state[N_USED]` on have never been used.
"""

from typing import NamedTuple

import numpy as np

from ranksieve.kernels.jit import njit

ABSENT, REQUESTED = -1, -2  # slots of rows that are not in memory
FIRST_FREE, N_FREE, N_USED = 0, 1, 2


class Slots(NamedTuple):
    """The slots of all rows, and those that are free."""

    of_rows: np.ndarray  # int32 per row; below 0: the row is not in memory
    next_free: np.ndarray  # int32 per slot, of free ones
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
    """Take the slot from a row, if it has one."""
    slot = slots.of_rows[row]
    slots.of_rows[row] = ABSENT
    if slot >= 0:
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

    Those of infinite priority, and up to `n_most` others whose priority is at least `lowest`; others lose their slots.
    `n_reserved` free slots are for rows of infinite priority, here or later. Rows that get a slot are written to `new`.
    Returns how many these are, how many of them have infinite priority, and how many others are in memory.
    """
    n_near = n_new = n_wanted = 0
    for i in range(len(priority)):
        if priority[i] < np.inf:
            stays = priority[i] >= lowest and priority[i] > -np.inf and n_near < n_most
            n_near += stays
            if not stays:
                priority[i] = -np.inf
                free_slot(first + i, slots)
    for i in range(len(priority)):
        if priority[i] == -np.inf or slots.of_rows[first + i] >= 0:
            continue
        is_wanted = priority[i] == np.inf
        if is_wanted or slots.state[N_FREE] > n_reserved - n_wanted:
            give_slot(first + i, slots)
            new[n_new] = first + i
            n_new += 1
            n_wanted += is_wanted
        else:
            n_near -= 1
    return n_new, n_wanted, n_near

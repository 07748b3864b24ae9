"""Which rows of a file get slots in memory, and copies of rows in their slots."""

import numpy as np
import pytest

from ranksieve.kernels.row_slots import ABSENT, N_FREE, Slots, give_slots, renew_slots


@pytest.mark.parametrize("n_reserved", [0, 4])
def test_slots_go_to_wanted_rows_and_then_to_the_nearest(n_reserved):
    """Rows 2:8 of ten; rows 1, 3 and 4 are in memory, and five more fit."""
    slots = Slots(np.full(10, ABSENT, np.int32), np.zeros(8, np.int32), np.array([ABSENT, 8, 0]))
    give_slots(np.array([1, 3, 4], np.int32), slots)
    priority, new = np.array([np.inf, -2.0, 1.0, 3.0, -np.inf, 0.0]), np.empty(6, np.int32)
    found = renew_slots(2, priority, 0.0, 3, 1 + n_reserved, slots, new)
    assert found == ((3, 1, 3) if n_reserved == 0 else (2, 1, 2))  # the slot of row 3 is free again
    assert new[: found[0]].tolist() == ([2, 5, 7] if n_reserved == 0 else [2, 5])
    kept = np.flatnonzero(slots.of_rows >= 0)
    assert kept.tolist() == [1, 2, 4, *new[1 : found[0]]]
    assert len(set(slots.of_rows[kept])) == len(kept) and slots.state[N_FREE] == 8 - len(kept)

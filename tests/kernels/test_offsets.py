import numpy as np
import pytest

from ranksieve.kernels import offsets


@pytest.mark.parametrize(("borders", "longest"), [([0], 0), ([0, 0], 0), ([0, 2, 7, 7, 9], 5), ([3, 4, 10], 6)])
def test_the_longest_piece(interpreted, borders, longest):
    assert interpreted(offsets).longest_piece(np.array(borders)) == longest

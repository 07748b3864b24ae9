"""Arrays that are given by DLPack."""

from __future__ import annotations

import numpy as np
import pytest

from ranksieve.cuda.dlpack import DLPackArray, on_device
from ranksieve.errors import DataError


@pytest.mark.parametrize(
    "array", [np.arange(6.0).reshape(2, 3), np.ones((3, 2), np.float32, order="F"), np.zeros((4, 6))[::2, 1:3]]
)
def test_an_array_is_borrowed_as_it_is(array: np.ndarray) -> None:
    found, own = DLPackArray(array).__cuda_array_interface__, array.__array_interface__
    assert found["shape"] == own["shape"]
    assert found["typestr"] == own["typestr"]
    assert found["data"][0] == own["data"][0]
    strides = found["strides"]
    assert strides is None or strides == array.strides


def test_complex_numbers_are_refused() -> None:
    with pytest.raises(DataError, match="give float32 or float64"):
        DLPackArray(np.ones(3, np.complex64))


def test_arrays_of_the_host_are_not_on_the_device() -> None:
    assert on_device(np.ones((2, 2))) is None

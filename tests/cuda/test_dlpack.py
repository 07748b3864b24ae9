"""Arrays that are given by DLPack."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ranksieve.cuda import dlpack
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


@pytest.mark.parametrize("more", [(), ("__cuda_array_interface__",)])
def test_arrays_of_another_gpu_are_refused(monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]) -> None:
    current = SimpleNamespace(get_current_device=lambda: SimpleNamespace(id=0), as_cuda_array=lambda X: "read")
    monkeypatch.setattr(dlpack, "cuda", current)
    there, here = (
        SimpleNamespace(__dlpack_device__=lambda number=number: (2, number), **dict.fromkeys(more, 0))
        for number in (1, 0)
    )
    with pytest.raises(DataError, match="on GPU 1, and scores are computed on GPU 0; copy the array there, with"):
        on_device(there)
    if more:
        assert on_device(here) == "read"


def test_arrays_of_the_host_are_not_on_the_device() -> None:
    assert on_device(np.ones((2, 2))) is None

"""Arrays of other libraries on the GPU, used without a copy: by `__cuda_array_interface__` or by DLPack."""

from __future__ import annotations

import ctypes
from typing import Any

from numba import cuda

from ranksieve.cuda.device import SIMULATED, handle
from ranksieve.errors import DataError

CUDA_DEVICE = 2  # kDLCUDA of DLPack
TYPE_CODES = {0: "i", 1: "u", 2: "f", 6: "b"}  # NumPy's letter for each type code of DLPack


class _Tensor(ctypes.Structure):
    """DLPack's DLTensor; a capsule holds a structure that begins with it."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("device_number", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    ]  # fmt: skip


class DLPackArray:
    """An array given by DLPack, with the interface that Numba reads; keeps it alive."""

    def __init__(self, array: Any, **options: Any) -> None:
        self._capsule = array.__dlpack__(**options)
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        tensor = _Tensor.from_address(pointer(self._capsule, b"dltensor"))
        if tensor.code not in TYPE_CODES or tensor.lanes != 1:
            raise DataError(
                f"got an array of DLPack's type {tensor.code} with {tensor.bits} bits; give float32 or float64"
            )
        width = tensor.bits // 8
        strides = [tensor.strides[i] * width for i in range(tensor.ndim)] if tensor.strides else None
        self.__cuda_array_interface__ = {
            "shape": tuple(tensor.shape[i] for i in range(tensor.ndim)),
            "typestr": f"<{TYPE_CODES[tensor.code]}{width}",
            "data": ((tensor.data or 0) + tensor.offset, True),
            "strides": None if strides is None else tuple(strides),
            "version": 3,
        }


def on_device(X: Any) -> Any:
    """An array that is on the GPU, as Numba's; None where it is not there."""
    if SIMULATED:
        return X if hasattr(X, "copy_to_host") else None
    kind, number = X.__dlpack_device__() if hasattr(X, "__dlpack_device__") else (0, 0)
    if kind == CUDA_DEVICE:
        _check_current(number)
    if hasattr(X, "__cuda_array_interface__"):
        return cuda.as_cuda_array(X)
    return cuda.as_cuda_array(DLPackArray(X, stream=handle())) if kind == CUDA_DEVICE else None


def _check_current(number: int) -> None:
    """Refuse an array on another GPU than the current one: kernels could not read it."""
    current = cuda.get_current_device().id
    if number != current:
        raise DataError(
            f"got an array on GPU {number}, and scores are computed on GPU {current}; copy the array there, with "
            f"PyTorch by .to('cuda:{current}'), or start Python with CUDA_VISIBLE_DEVICES={number}"
        )

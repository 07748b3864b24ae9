"""Arrays of other libraries that are on the GPU, without a copy: `__cuda_array_interface__`, and DLPack."""

from __future__ import annotations

import ctypes
from typing import Any

from numba import cuda

from ranksieve.cuda.device import SIMULATED, handle
from ranksieve.errors import DataError

CUDA_DEVICE = 2  # DLPack: kDLCUDA
KINDS = {0: "i", 1: "u", 2: "f", 6: "b"}  # DLPack's types of numbers


class _Tensor(ctypes.Structure):
    """DLTensor, at the start of what a capsule of DLPack holds."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("device_number", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("kind", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    ]  # fmt: skip


class Borrowed:
    """An array given by DLPack, with the interface that Numba reads; keeps it alive."""

    def __init__(self, array: Any, **options: Any) -> None:
        self._capsule = array.__dlpack__(**options)
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        tensor = _Tensor.from_address(pointer(self._capsule, b"dltensor"))
        if tensor.kind not in KINDS or tensor.lanes != 1:
            raise DataError(
                f"got an array of DLPack's type {tensor.kind} with {tensor.bits} bits; give float32 or float64"
            )
        width = tensor.bits // 8
        strides = [tensor.strides[i] * width for i in range(tensor.ndim)] if tensor.strides else None
        self.__cuda_array_interface__ = {
            "shape": tuple(tensor.shape[i] for i in range(tensor.ndim)),
            "typestr": f"<{KINDS[tensor.kind]}{width}",
            "data": ((tensor.data or 0) + tensor.offset, True),
            "strides": None if strides is None else tuple(strides),
            "version": 3,
        }


def on_device(X: Any) -> Any:
    """An array that is on the GPU, as Numba's; None where it is not there."""
    if SIMULATED:
        return X if hasattr(X, "copy_to_host") else None
    if hasattr(X, "__cuda_array_interface__"):
        return cuda.as_cuda_array(X)
    if hasattr(X, "__dlpack_device__") and X.__dlpack_device__()[0] == CUDA_DEVICE:
        return cuda.as_cuda_array(Borrowed(X, stream=handle()))
    return None

"""The GPU: whether there is one, kernels that compute what the CPU computes, arrays on the device, and CUDA graphs."""

from __future__ import annotations

import gc
import importlib.util
import threading
import warnings
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import numpy as np
from numba import config, cuda

from ranksieve.errors import DeviceError, ParameterError, param

SIMULATED = bool(getattr(config, "ENABLE_CUDASIM", False))
THREADS = 32 if SIMULATED else 512  # threads of a block, unless a kernel needs another number


def is_available() -> bool:
    """Whether kernels can run here."""
    return missing() is None


@cache
def missing() -> str | None:
    """What is missing to use a GPU, in words; None where nothing is."""
    if SIMULATED:
        return None
    if importlib.util.find_spec("numba_cuda") is None:
        return "numba-cuda is not installed; install the extra: pip install 'ranksieve[cuda]'"
    try:
        if not cuda.is_available() or not len(cuda.gpus):
            return "no NVIDIA GPU or no driver for it was found; check nvidia-smi"
    except Exception as error:  # the driver has its own exceptions
        return f"the CUDA driver does not work ({error})"
    return None


def is_chosen(device: str) -> bool:
    """Whether a GPU is to be used: "cuda", or "auto" where there is one; refuses what is not there."""
    if device == "cpu" or (device == "auto" and not is_available()):
        return False
    if device not in ("cuda", "auto"):
        raise ParameterError(param("device"), f" is {device!r}; expected cpu, cuda or auto")
    if (reason := missing()) is not None:
        raise DeviceError(
            param("device", "cuda"), f" cannot be used: {reason}; or use ", param("device", "auto"), " or cpu"
        )
    return True


def n_blocks(per_multiprocessor: int) -> int:
    """The number of blocks of a launch with so many for each multiprocessor; 1 in the simulator."""
    return 1 if SIMULATED else per_multiprocessor * n_multiprocessors()


def n_multiprocessors() -> int:
    return 1 if SIMULATED else int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


def free_memory() -> int:
    """Free bytes of the GPU, after memory that earlier runs no longer use is freed."""
    if SIMULATED:
        return 1 << 40
    gc.collect()
    context = cuda.current_context()
    if hasattr(context.memory_manager, "deallocations"):  # Numba's own
        context.memory_manager.deallocations.clear()
    return int(context.get_memory_info()[0])


@contextmanager
def _separate_operations() -> Any:
    """Compile a multiplication and an addition as two operations, each rounded as on the CPU."""
    from numba.cuda.cudadrv import nvvm

    compile_ir = nvvm.compile_ir
    nvvm.compile_ir = lambda *args, **options: compile_ir(*args, **{**options, "fma": False})
    try:
        yield
    finally:
        nvvm.compile_ir = compile_ir


@cache
def _allow_single_blocks() -> None:
    """Turn off Numba's warning of launches of few blocks: one block is right for what one block can do."""
    warnings.filterwarnings("ignore", message=".*Grid size .* under-utilization")


class Kernel:
    """A CUDA kernel; `kernel[blocks, threads](*arrays)` runs it on the stream of this thread.

    `kernel[blocks, threads, shared]` gives it so many bytes of dynamic shared memory.
    """

    def __init__(self, function: Callable[..., None], shared: int = 0, registers: int | None = None) -> None:
        self.function = function
        self._shared = shared
        # linked as it is: an optimising linker would fuse multiplications and additions
        self._kernel = cuda.jit(function) if SIMULATED else cuda.jit(function, lto=False, max_registers=registers)
        self._prepared: dict[Any, int] = {}  # types of arguments: the most shared memory so far

    def __getitem__(self, size: tuple[Any, ...]) -> Callable[..., None]:
        _allow_single_blocks()
        shared = size[2] if len(size) > 2 else self._shared
        launch = self._kernel[size[0], size[1], stream(), shared]
        return launch if SIMULATED else lambda *args: self._run(launch, args, shared)

    def _run(self, launch: Callable[..., None], args: tuple[Any, ...], shared: int) -> None:
        types = tuple(self._kernel.typeof_pyval(arg) for arg in args)
        if shared > self._prepared.get(types, -1):  # less shared memory than before is allowed already
            with _separate_operations():
                self._prepare(types, shared)
            self._prepared[types] = shared
        launch(*args)

    def _prepare(self, types: tuple[Any, ...], shared: int) -> None:
        """Compile, and allow so much dynamic shared memory; by default, a kernel has 48 KB of shared memory in all."""
        from numba.cuda.cudadrv.driver import binding, driver

        compiled = self._kernel.compile(types)
        if shared:
            function = compiled._codelibrary.get_cufunc()
            most = binding.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            driver.cuKernelSetAttribute(most, shared, function.handle, function.device.id)


def most_shared() -> int:
    """The most shared memory of a block in bytes."""
    return 1 << 17 if SIMULATED else int(cuda.get_current_device().MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)


def shared(function: Any) -> Any:
    """A function of `kernels` for use in CUDA kernels, compiled for the GPU; the simulator calls the CPU's code."""
    return function if not SIMULATED else lambda *args: function(*(_plain(arg) for arg in args))


def shared_formula(function: Any) -> Any:
    """The same for a function of numbers alone, which the simulator runs in Python."""
    return getattr(function, "py_func", function) if SIMULATED else function


def _plain(value: Any) -> Any:
    """The NumPy arrays in what the simulator passes to kernels."""
    if isinstance(value, tuple):
        return type(value)(*map(_plain, value)) if hasattr(value, "_fields") else tuple(map(_plain, value))
    value = getattr(value, "_item", value)
    return getattr(value, "_ary", value)


def kernel(function: Callable[..., None] | None = None, *, shared: int = 0, registers: int | None = None) -> Any:
    """Decorate a kernel; `shared` is dynamic shared memory of a block in bytes, `registers` the most of a thread."""
    if function is None:
        return lambda decorated: Kernel(decorated, shared, registers)
    return Kernel(function)


class _Streams(threading.local):
    """The main stream, a side stream for work that runs at the same time, and the one that this thread uses now.

    Neither is the default stream, on which graphs cannot be recorded.
    """

    def __init__(self, main: Any, side: Any) -> None:
        self.main, self.side, self.current = main, side, main
        self.is_free, self.is_done = cuda.event(timing=False), cuda.event(timing=False)


@cache
def _streams() -> _Streams:
    return _Streams(cuda.stream(), cuda.stream())


def stream() -> Any:
    """The stream of the work that is launched now; the simulator has only 0."""
    return 0 if SIMULATED else _streams().current


@contextmanager
def side_stream() -> Iterator[None]:
    """Launch work on the side stream. It follows all work before it and runs at the same time as later work."""
    if SIMULATED:
        yield
        return
    streams = _streams()
    streams.is_free.record(streams.main)
    streams.is_free.wait(streams.side)
    streams.current = streams.side
    try:
        yield
    finally:
        streams.current = streams.main
        streams.is_done.record(streams.side)


def join_side_stream() -> None:
    """Let work that is launched later wait for the work of the last `side_stream`."""
    if not SIMULATED:
        _streams().is_done.wait(_streams().main)


_waits = 0  # how often `synchronize` was called


def synchronize() -> None:
    """Wait for all work on both streams."""
    global _waits
    _waits += 1
    if not SIMULATED:
        _streams().main.synchronize()
        _streams().side.synchronize()


class PinnedArray:
    """A flat array on the device, and one on the host that is sent to it or received from it.

    `host` is pinned, so that a copy can be part of a CUDA graph. The graph copies what the array holds when it runs.
    """

    def __init__(self, size: int, dtype: Any) -> None:
        self.device = upload(np.zeros(size, dtype))
        self.host = np.zeros(size, dtype) if SIMULATED else cuda.pinned_array(size, dtype)
        self.host[:] = 0
        self._written = -1

    def open(self) -> np.ndarray:
        """The array on the host, for writing. Waits until its last content has been sent."""
        if self._written == _waits:
            synchronize()
        self._written = _waits
        return self.host

    def send(self) -> None:
        """Copy to the device, after all work before it."""
        if SIMULATED:
            self.device.copy_to_device(self.host)
        else:
            _driver().cuMemcpyHtoDAsync(_address(self.device), self.host.ctypes.data, self.host.nbytes, handle())

    def receive(self) -> None:
        """Copy to the host, after all work before it; `synchronize` waits for that."""
        if SIMULATED:
            self.device.copy_to_host(self.host)
        else:
            _driver().cuMemcpyDtoHAsync(self.host.ctypes.data, _address(self.device), self.host.nbytes, handle())


def _driver() -> Any:
    from numba.cuda.cudadrv.driver import driver

    return driver


def _address(array: Any) -> int:
    return int(array.__cuda_array_interface__["data"][0])


def handle() -> int:
    """The stream, as the driver knows it."""
    return int(stream().handle)


class CudaGraph:
    """Launches that are the same each time. The first run launches them one by one, later ones as one CUDA graph."""

    def __init__(self, launches: Callable[[], None]) -> None:
        self._launches = launches
        self._runs = 0
        self._graph: Any = None

    def run(self) -> None:
        self._runs += 1
        if SIMULATED or self._runs == 1:  # the first run compiles kernels
            self._launches()
            return
        driver = _driver()
        if self._graph is None:
            from numba.cuda.cudadrv.driver import binding

            driver.cuStreamBeginCapture(handle(), binding.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
            self._launches()
            recorded = driver.cuStreamEndCapture(handle())
            self._graph = driver.cuGraphInstantiate(recorded, 0)
            driver.cuGraphDestroy(recorded)
        driver.cuGraphLaunch(self._graph, handle())

    def __del__(self) -> None:
        if self._graph is not None:
            with suppress(Exception):  # the driver may be gone when Python ends
                _driver().cuGraphExecDestroy(self._graph)


class CudaGraphs:
    """CUDA graphs by name; the launches of a name are the same each time."""

    def __init__(self) -> None:
        self._graphs: dict[Hashable, CudaGraph] = {}

    def run(self, name: Hashable, launches: Callable[[], None]) -> None:
        if name not in self._graphs:
            self._graphs[name] = CudaGraph(launches)
        self._graphs[name].run()


def upload(array: np.ndarray) -> Any:
    """A copy on the device."""
    array = np.ascontiguousarray(array)
    if not array.size:
        return empty(1, array.dtype)
    return cuda.to_device(array, stream=stream())


def empty(shape: Any, dtype: Any) -> Any:
    """An array on the device, its contents undefined; one element where there would be none."""
    shape = shape if isinstance(shape, tuple) else (int(shape),)
    return cuda.device_array(tuple(max(int(n), 1) for n in shape), dtype, stream=stream())


def overwrite(target: Any, values: np.ndarray) -> None:
    """Copy host values over an array of the same size on the device."""
    target.copy_to_device(np.ascontiguousarray(values), stream=stream())


def copy_values(target: Any, source: Any) -> None:
    """Copy an array on the device over another one there."""
    target.copy_to_device(source, stream=stream())


def pin(array: np.ndarray) -> Any:
    """Pin an array of the host for as long as the result lives; None where the system does not allow it."""
    if SIMULATED or not array.nbytes:
        return None
    try:
        return cuda.current_context().mempin(array, array.ctypes.data, array.nbytes)
    except Exception:  # an error of the driver: memory is limited, or mapped from a file
        return None


def download(array: Any) -> np.ndarray:
    """A copy on the host; waits until all work before it is done."""
    host = array.copy_to_host(stream=stream())
    synchronize()
    return host

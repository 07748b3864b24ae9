"""Threads of compiled loops: their number, how long they wait for work, and what happens in a forked process."""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numba

from ranksieve.errors import ParameterError, param

# A thread of GNU OpenMP that waits for the next loop spins before it sleeps, by default for milliseconds. Loops here
# follow each other within microseconds, so a short wait is enough. Beside another busy program long waits take the
# processor from threads that have work: measured, training on two threads is ten times slower than on one.
SPIN_COUNT = "2000"
SPIN_VARIABLES = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}

# What compiled loops call in place of OpenMP's `numba_parallel_for`, with the same parameters. In a forked process
# (flag != 0) the calling thread does all iterations. The braces are the addresses of the flag and of OpenMP's function.
_PARALLEL_FOR = """
define void @ranksieve_parallel_for(
    ptr %loop, ptr %args, ptr %sizes, ptr %steps, ptr %data, i64 %n_dims, i64 %n_arrays, i32 %threads
) {{
  %flag = load volatile i8, ptr inttoptr (i64 {flag} to ptr)
  %is_forked = icmp ne i8 %flag, 0
  br i1 %is_forked, label %serial, label %parallel
serial:
  call void %loop(ptr %args, ptr %sizes, ptr %steps, ptr %data)
  ret void
parallel:
  call void inttoptr (i64 {parallel_for} to ptr)(
    ptr %loop, ptr %args, ptr %sizes, ptr %steps, ptr %data, i64 %n_dims, i64 %n_arrays, i32 %threads
  )
  ret void
}}
"""

_is_forked = ctypes.c_uint8(0)
_engines: list[Any] = []  # own the compiled function
_has_default_waits = False


@contextmanager
def using_threads(threads: int | None) -> Iterator[int]:
    """Limit Numba to so many threads, at most the number it started with; None changes nothing."""
    prepare_threads()
    before = numba.get_num_threads()
    _shorten_default_waits()
    if threads is None:
        yield before
        return
    if threads < 1:
        raise ParameterError(param("threads"), f" is {threads}; expected a number from 1, or None for all cores")
    threads = min(threads, numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    numba.set_num_threads(threads)
    try:
        yield threads
    finally:
        numba.set_num_threads(before)


@cache
def prepare_threads() -> None:
    """Set up Numba's OpenMP threads before the first loop is compiled or loaded; other kinds need nothing.

    GNU OpenMP reads its settings when it is loaded. Afterwards the environment is as it was.
    """
    if sys.platform != "linux":  # elsewhere OpenMP is not GNU's
        return
    global _has_default_waits
    is_free = not SPIN_VARIABLES & os.environ.keys()
    loaded = _loaded_openmp()
    if is_free:
        os.environ["GOMP_SPINCOUNT"] = SPIN_COUNT
    try:
        omppool = _numba_openmp()
    except ImportError:
        return
    finally:
        if is_free:
            del os.environ["GOMP_SPINCOUNT"]
    if omppool.openmp_vendor == "GNU":
        _has_default_waits = is_free and bool(loaded) and _loaded_openmp() == loaded  # another library has loaded it
        _survive_forks(omppool)


def _numba_openmp() -> Any:
    """Numba's module for OpenMP; importing it loads OpenMP."""
    return importlib.import_module("numba.np.ufunc.omppool")


def _loaded_openmp() -> set[str]:
    """The files of GNU OpenMP in this process; some libraries bring their own."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:  # a system that hides it
        return set()
    return {line.split()[-1] for line in lines if "/libgomp" in line}


@cache
def _shorten_default_waits() -> None:
    """Let threads wait for a short time though OpenMP was loaded with its defaults, by LightGBM for example.

    OpenMP shortens the waits itself while it has more threads than the machine has cores. So as many threads as there
    are cores are started, and sleep as long as the process lives.
    """
    if not _has_default_waits or _is_forked.value or numba.threading_layer() != "omp":
        return
    parallel, nothing = ctypes.CDLL(_numba_openmp().__file__).GOMP_parallel, ctypes.CDLL(None).sched_yield
    are_started = threading.Event()

    def start_and_sleep() -> None:
        parallel(nothing, None, os.cpu_count(), 0)
        are_started.set()
        threading.Event().wait()

    threading.Thread(target=start_and_sleep, name="ranksieve-openmp", daemon=True).start()
    are_started.wait()


def _survive_forks(omppool: Any) -> None:
    """Let loops go through `_PARALLEL_FOR`.

    The threads of GNU OpenMP do not exist in a forked process. A loop would wait for them, so Numba ends the process.
    """
    from llvmlite import binding
    from numba.np.ufunc import parallel

    code = _PARALLEL_FOR.format(flag=ctypes.addressof(_is_forked), parallel_for=omppool.parallel_for)
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(code), machine)
    _engines.append(engine)
    omppool.parallel_for = engine.get_function_address("ranksieve_parallel_for")  # Numba links loops with this
    if parallel._is_initialized and parallel._threading_layer == "omp":  # another library has run loops before
        binding.add_symbol("numba_parallel_for", omppool.parallel_for)

    def note_fork() -> None:
        _is_forked.value = parallel._threading_layer == "omp"  # 0 if the parent has not started any threads

    os.register_at_fork(after_in_child=note_fork)

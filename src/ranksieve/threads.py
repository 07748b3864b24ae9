"""Threads of compiled loops: their number, how long they wait for work, and what happens in a forked process."""

from __future__ import annotations

import ctypes
import importlib
import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba

from ranksieve.errors import ParameterError, param

# A thread of GNU OpenMP that waits for the next loop spins before it sleeps, by default for milliseconds. Loops here
# follow each other within microseconds, so a short wait is enough. Beside another busy program long waits take the
# processor from threads that have work: measured, training on two threads is ten times slower than on one.
SPIN_COUNT = "2000"
SPIN_VARIABLES = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}

FORKED_WITHOUT_EXEC = 0x40  # in the flags of a Linux process

_is_forked = ctypes.c_uint8(0)  # compiled loops read it
_engines: list[Any] = []  # own the compiled function
_lock = threading.Lock()
_is_prepared = False
_has_default_waits = False


@contextmanager
def using_threads(threads: int | None) -> Iterator[int]:
    """Limit Numba to this number of threads, at most the number it started with; None changes nothing."""
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


def prepare_threads() -> None:
    """Set up Numba's OpenMP threads before the first loop is compiled or loaded; other kinds need nothing.

    Without this loops still run, so a failure is only logged.
    """
    global _is_prepared
    with _lock:
        if not _is_prepared:
            _is_prepared = True
            with _logged_failures("preparing OpenMP's threads"):
                _prepare_openmp()


@contextmanager
def _logged_failures(doing: str) -> Iterator[None]:
    try:
        yield
    except Exception:
        logging.getLogger("ranksieve").debug("%s failed; going on without it", doing, exc_info=True)


def _prepare_openmp() -> None:
    """Load GNU OpenMP, which reads its settings then. Afterwards the environment is as it was."""
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
            os.environ.pop("GOMP_SPINCOUNT", None)
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


def _shorten_default_waits() -> None:
    """Let threads wait for a short time though another library, LightGBM for example, has loaded OpenMP before.

    OpenMP has read its settings then. But it shortens the waits while it has more threads than there are cores. So
    this starts as many threads as there are cores, once; they sleep as long as the process lives.
    """
    global _has_default_waits
    with _lock:
        is_needed, _has_default_waits = _has_default_waits, False
    if not is_needed or _is_forked.value or numba.threading_layer() != "omp":
        return
    are_started = threading.Event()

    def start_and_sleep() -> None:
        with _logged_failures("shortening the waits of OpenMP's threads"):
            parallel, nothing = ctypes.CDLL(_numba_openmp().__file__).GOMP_parallel, ctypes.CDLL(None).sched_yield
            parallel(nothing, None, len(os.sched_getaffinity(0)), 0)  # OpenMP counts the same cores
        are_started.set()
        threading.Event().wait()

    with _logged_failures("starting a thread"):
        threading.Thread(target=start_and_sleep, name="ranksieve-openmp", daemon=True).start()
        are_started.wait()


def _survive_forks(omppool: Any) -> None:
    """Let loops run in forked processes.

    The threads of GNU OpenMP do not exist there. A loop would wait for them, so Numba ends the process.

    Numba links the loops of all libraries with one address, so loops of other libraries call the new function too. For
    them it is the same function, except that their forked processes go on as well.
    """
    from llvmlite import binding
    from numba.np.ufunc import parallel

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine()
    module = binding.parse_assembly(_parallel_for_code(omppool.parallel_for))
    module.verify()
    engine = binding.create_mcjit_compiler(module, machine)
    _engines.append(engine)
    omppool.parallel_for = engine.get_function_address("ranksieve_parallel_for")  # Numba links loops with this
    if parallel._is_initialized and parallel._threading_layer == "omp":  # another library has run loops before
        binding.add_symbol("numba_parallel_for", omppool.parallel_for)


def _parallel_for_code(parallel_for: int) -> str:
    """What compiled loops call in place of OpenMP's `numba_parallel_for` at this address, with the same parameters.

    In a forked process the calling thread does all iterations. llvmlite writes the code, so that the version of LLVM
    in use can read it.
    """
    from llvmlite import ir

    byte, size = ir.IntType(8), ir.IntType(8 * ctypes.sizeof(ctypes.c_size_t))
    pointer = byte.as_pointer()
    loop = ir.FunctionType(ir.VoidType(), [pointer] * 4)
    whole = ir.FunctionType(ir.VoidType(), [pointer] * 5 + [size, size, ir.IntType(32)])
    module = ir.Module()
    function = ir.Function(module, whole, "ranksieve_parallel_for")
    body = ir.IRBuilder(function.append_basic_block())
    flag = body.load(body.inttoptr(size(ctypes.addressof(_is_forked)), pointer))
    with body.if_then(body.icmp_unsigned("!=", flag, byte(0))):
        body.call(body.bitcast(function.args[0], loop.as_pointer()), function.args[1:5])
        body.ret_void()
    body.call(body.inttoptr(size(parallel_for), whole.as_pointer()), function.args)
    body.ret_void()
    return str(module)


def _note_fork() -> None:
    """In a forked process: note whether Numba used OpenMP before; its threads are missing here then."""
    global _lock
    _lock = threading.Lock()  # a thread of the parent may have held it
    _is_forked.value = getattr(sys.modules.get("numba.np.ufunc.parallel"), "_threading_layer", None) == "omp"


def _was_forked() -> bool:
    """Whether this process is a fork that has not started another program since; False where that is not known."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        return bool(int(fields[6]) & FORKED_WITHOUT_EXEC)
    except (OSError, ValueError, IndexError):
        return False


if hasattr(os, "register_at_fork"):  # at import: another library may run loops, and fork, before a loop runs here
    os.register_at_fork(after_in_child=_note_fork)
if _was_forked():  # before this import. If another library has run loops, here or in the parent, one thread is safe
    _note_fork()

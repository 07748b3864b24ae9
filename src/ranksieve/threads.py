"""Threads of compiled loops: how long they wait for work, and what happens to them in a forked process."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from types import ModuleType
from typing import Any

# A thread of GNU OpenMP that waits for the next loop spins before it sleeps, for a millisecond and more by default. The
# loops here follow each other within microseconds, so a short wait is enough; and beside another busy program long ones
# take the processor from the threads that have work.
SPIN_COUNT = "2000"

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


@cache
def prepare_threads() -> None:
    """Set up Numba's OpenMP threads, before the first loop runs; there is nothing to do where others are used.

    GNU OpenMP reads its settings when it is loaded. Afterwards the environment is as it was.
    """
    if sys.platform != "linux":  # elsewhere OpenMP is not GNU's
        return
    is_set = not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys()
    if is_set:
        os.environ["GOMP_SPINCOUNT"] = SPIN_COUNT
    try:
        from numba.np.ufunc import omppool
    except ImportError:
        return
    finally:
        if is_set:
            del os.environ["GOMP_SPINCOUNT"]
    if omppool.openmp_vendor == "GNU":
        _survive_forks(omppool)


def _survive_forks(omppool: ModuleType) -> None:
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

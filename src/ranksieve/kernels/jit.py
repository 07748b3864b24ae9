"""`njit`, the decorator of all kernels: Numba's, with a cache on disk that is valid while no source has changed."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import os
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import types
from numba.core.caching import FunctionCache, IndexDataCacheFile

from ranksieve.files import try_lock
from ranksieve.kernels.linking import link_without_machine_code, linking
from ranksieve.threads import prepare_threads

LINKED = "-linked"  # ends the names of files whose code is only for other kernels
LONGEST_WAIT = 60.0  # seconds to wait for another process that compiles the same kernel
UNUSED: dict[str, Any] = {"no_cfunc_wrapper": True}  # leave out code that is never called, to save time


class KernelIndex(IndexDataCacheFile):
    """The signatures of a kernel that are on disk."""

    def _load_index(self) -> dict[Any, str]:
        try:
            found: dict[Any, str] = super()._load_index()
        except (AttributeError, ImportError):  # a signature has a tuple whose class was renamed or moved since
            return {}
        return found


class KernelCache(FunctionCache):
    """The compiled code of one kernel on disk.

    Numba compiles anew when the file of a kernel changes. Code from other files is compiled into it, though: here a
    change in any file of the package that the kernel's file imports, directly or not, counts too.
    """

    def __init__(self, function: Any, suffix: str = "") -> None:
        super().__init__(function)
        base = self._cache_file._index_name.removesuffix(".nbi") + suffix
        files: Any = KernelIndex(self._cache_path, base, None)
        self._cache_file = files
        self._locks: list[tuple[Path, int]] = []
        # several processes may compile: Numba only counts, and two signatures could get one file
        files._data_name = lambda number: f"{base}.{os.getpid()}-{number}.nbc"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code for a signature, if it is there and up to date; Numba asks before it compiles or runs a kernel."""
        # Preparations are made here, before the first kernel runs, so that importing the package changes nothing.
        prepare_threads()
        numba.get_num_threads()  # loads what `run_parts` calls
        link_without_machine_code()
        self._stamp()
        found = super().load_overload(sig, target_context)
        if found is None:
            self._wait_for_others()
            found = super().load_overload(sig, target_context)
        return found

    def _wait_for_others(self) -> None:
        """Wait while another process compiles the kernel, then keep others waiting until `release` is called.

        Kernels that call each other in a circle could wait forever, so waiting has an end.
        """
        path, end = Path(self._cache_file._index_path + ".lock"), time.monotonic() + LONGEST_WAIT
        with contextlib.suppress(OSError):  # a folder that cannot be written, or has no locks
            while not self._locks and time.monotonic() < end:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
                try:
                    lock = try_lock(path)
                except OSError:
                    path.unlink(missing_ok=True)
                    raise
                if lock is not None:
                    self._locks.append((path, lock))
                    return
                time.sleep(0.02)

    def release(self) -> None:
        """Let processes that wait for the kernel continue."""
        while self._locks:
            path, lock = self._locks.pop()
            path.unlink(missing_ok=True)
            os.close(lock)

    def is_empty(self) -> bool:
        """Whether no code is there that is up to date."""
        self._stamp()
        return not self._cache_file._load_index()

    def _stamp(self) -> None:
        """Set what the index on disk must have for its code to be up to date."""
        depth = self._py_func.__module__.count(".")  # packages in which the module lies
        digest = digest_of_sources(self._py_func.__code__.co_filename, depth)
        self._cache_file._source_stamp = (self._impl.locator.get_source_stamp(), digest)


def njit(**options: Any) -> Callable[[Any], Any]:
    """`numba.njit`, with a `KernelCache` where `cache=True`; without one where the JIT is disabled.

    Arrays that a parallel kernel itself writes are parameters of their own. Numba does not see that arrays unpacked
    from a tuple belong to the caller, and drops assignments to slices of them as dead code.
    """

    def decorate(function: Any) -> Any:
        kernel: Any = numba.njit(**{**UNUSED, **options})(function)
        if options.get("cache") and hasattr(kernel, "enable_caching"):
            _keep_on_disk(kernel, KernelCache(function))
            _call_from_kernels(kernel, options)
        return kernel

    return decorate


def _keep_on_disk(kernel: Any, code: KernelCache) -> None:
    """Give a kernel its cache on disk, and compile it so that other kernels can link it."""
    compile_kernel, kernel._cache = kernel.compile, code

    def compile_once(signature: Any) -> Any:
        try:
            with linking():
                return compile_kernel(signature)
        finally:
            code.release()

    kernel.compile = compile_once


def _call_from_kernels(kernel: Any, options: dict[str, Any]) -> None:
    """Let other kernels call a copy of a kernel that Python cannot call, so that it needs no machine code."""

    @cache
    def copy() -> Any:
        copied: Any = numba.njit(**{**UNUSED, **options, "no_cpython_wrapper": True})(kernel.py_func)
        _keep_on_disk(copied, KernelCache(kernel.py_func, LINKED))
        copied._compiling_counter = kernel._compiling_counter  # for kernels that call themselves
        return copied

    # so that a kernel is not compiled again for each constant that others pass
    kernel.get_call_template = lambda args, kws: copy().get_call_template([types.unliteral(one) for one in args], kws)
    kernel.get_overload = lambda signature: copy().get_overload(signature)
    kernel.get_compile_result = lambda signature: copy().get_compile_result(signature)


@cache
def digest_of_sources(file: str, depth: int) -> str:
    """A checksum of a module that lies in `depth` packages, and of all it imports that is compiled into its kernels.

    These are modules beside it, kernels, and `dtypes`.
    """
    path, top = Path(file), Path(file).parents[depth]
    found, new = set(), {path}
    while new:
        found |= new
        imported = {source for one in new for source in _imports(one, top)}
        new = {one for one in imported - found if one.parent in (path.parent, Path(__file__).parent)}
        found |= {one for one in imported if one.name == "dtypes.py"}
    digest = hashlib.sha256()
    for one in sorted(found):
        digest.update(one.read_bytes())
    return digest.hexdigest()


@cache
def _imports(path: Path, top: Path) -> frozenset[Path]:
    """The modules under `top` that a module imports, by absolute names."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    files = {top.joinpath(*name.split(".")).with_suffix(".py") for name in names}
    return frozenset(file for file in files if file.is_file())

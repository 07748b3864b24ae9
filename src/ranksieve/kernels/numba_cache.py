"""Whether kernels are compiled yet; the first use of a kernel compiles it, which takes a while."""

from __future__ import annotations

import importlib
import logging
from functools import cache
from typing import Any

from ranksieve.kernels.jit import LINKED, KernelCache


def is_compiled(kernels: str, name: str = "") -> bool:
    """Whether a kernel of this file is compiled, in this process or on disk; True where the JIT is disabled.

    With a name it is this kernel, called by Python.
    """
    module = importlib.import_module(f"ranksieve.kernels.{kernels}")
    own = [
        kernel
        for kernel in vars(module).values()
        if isinstance(getattr(kernel, "_cache", None), KernelCache)
        and kernel.__module__ == module.__name__
        and name in ("", kernel.__name__)
    ]
    return not own or any(kernel.signatures or _is_on_disk(kernel, linked=not name) for kernel in own)


def _is_on_disk(kernel: Any, *, linked: bool) -> bool:
    """Whether code of a kernel is on disk; with `linked`, also code for other kernels counts."""
    return not kernel._cache.is_empty() or (linked and not KernelCache(kernel.py_func, LINKED).is_empty())


def report_first_compile(kernels: str) -> None:
    """Log once per process that kernels are compiled; a warning is shown even where logging is not set up."""
    if not is_compiled(kernels):
        _warn_once()


@cache
def _warn_once() -> None:
    logging.getLogger("ranksieve").warning("compiling kernels (first use only); this may take a minute or two")

"""Compiled kernels are kept on disk; here it is seen to that none outlives its source, and told when none is kept."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path

CACHE = Path(__file__).parent / "__pycache__"  # where Numba keeps kernels, if it may


def drop_stale(cache: Path, sources: Iterable[Path]) -> None:
    """Remove the compiled kernels in a folder unless all sources are as they were at the last call.

    Numba compares only the file in which a kernel stands, not those of the kernels and constants it uses: after an
    update of one file, code compiled from another would go on with the old callee. Where the folder cannot be written
    Numba keeps its files elsewhere, and nothing is done.
    """
    facts = ((source.name, source.stat()) for source in sorted(sources))
    now = "\n".join(f"{name} {stat.st_mtime_ns} {stat.st_size}" for name, stat in facts)
    stamp = cache / "kernels.stamp"
    try:
        if stamp.exists() and stamp.read_text(encoding="utf-8") == now:
            return
        cache.mkdir(exist_ok=True)
        for kind in ("*.nbi", "*.nbc"):
            for file in cache.glob(kind):
                file.unlink(missing_ok=True)
        stamp.write_text(now, encoding="utf-8")  # last: a process that was killed leaves the work to the next
    except OSError:
        return


def is_first_use(kernels: str) -> bool:
    """Whether kernels, named by their file, are yet to be compiled; False where Numba keeps them elsewhere or not."""
    elsewhere = os.environ.get("NUMBA_CACHE_DIR") or not os.access(CACHE if CACHE.exists() else CACHE.parent, os.W_OK)
    interpreted = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
    return not elsewhere and not interpreted and not any(CACHE.glob(f"{kernels}.*.nbi"))


def tell_first_use(kernels: str) -> None:
    """Log why nothing is seen for a while; shown even where logging is not set up, since it happens once."""
    if is_first_use(kernels):
        logging.getLogger("ranksieve").warning("compiling kernels (first use only); this may take a minute or two")

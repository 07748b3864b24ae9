"""Compiled kernels are kept on disk; here it is seen to that none outlives its source."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


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

"""How much memory this process may still use: that of the machine, or what the limits of its cgroups leave."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

LARGEST_LIMIT = 1 << 60  # cgroup v1 writes a number above this where there is no limit
USUAL_SIZE = 512 << 20  # assumed memory of a process with the kernels, where the system does not report it
# Both versions of cgroups: the folder, its files for the limit and the use, and the entry for the cache of files
V1 = ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
V2 = ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file")


def available_memory(root: Path = Path("/")) -> int | None:
    """Bytes that can be allocated without swapping; None where the system does not say it."""
    found = (_of_machine(root), *_of_cgroups(root))
    return min((n_bytes for n_bytes in found if n_bytes is not None), default=None)


def resident_memory() -> int:
    """Bytes of memory that this process occupies."""
    with contextlib.suppress(OSError, ValueError, IndexError, AttributeError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return USUAL_SIZE


def _of_machine(root: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in (root / "proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _of_cgroups(root: Path) -> Iterator[int | None]:
    """What the limits of this process's cgroups, and of those around them, leave."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number != "0" and "memory" not in controllers.split(","):
            continue
        top, *names = V2 if number == "0" else V1
        folder = root / top / path.strip("/")
        for one in (folder, *folder.parents):  # in a container the path may be that of the host
            yield _left_in(one, *names)
            if one == root / top:
                break


def _left_in(folder: Path, limit: str, used: str, cache: str) -> int | None:
    """The limit of a cgroup less what it uses, without the cache of files; None where there is no limit."""
    try:
        most, now = int((folder / limit).read_text()), int((folder / used).read_text())
    except (OSError, ValueError):  # there is no such cgroup, or it has no limit: "max"
        return None
    if most >= LARGEST_LIMIT:
        return None
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in (folder / "memory.stat").read_text().splitlines():
            if line.split()[0] == cache:
                now -= int(line.split()[1])
    return max(most - now, 0)

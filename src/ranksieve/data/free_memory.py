"""How much memory this process may still use: that of the machine, or what the limits of its cgroups leave."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

LARGEST_LIMIT = 1 << 60  # cgroup v1 writes a number above this where there is no limit
USUAL_SIZE = 512 << 20  # of a process that has loaded the kernels, where the system does not say it
# of a version of cgroups: the folder, and its files for the limit, for what is used, and for the cache in it
V1 = ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
V2 = ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file")


def available_memory(root: Path = Path("/")) -> int | None:
    """Bytes that can be allocated without swapping; None where the system does not say it."""
    found = [_of_machine(root), *_of_cgroups(root)]
    known = [one for one in found if one is not None]
    return min(known) if known else None


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


def _of_cgroups(root: Path) -> list[int]:
    """What the limits of this process's cgroups, and of those around them, leave."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    left = []
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number != "0" and "memory" not in controllers.split(","):
            continue
        top, *names = V2 if number == "0" else V1
        folder = root / top / path.strip("/")
        for one in (folder, *folder.parents):  # in a container the path may be that of the host
            left += _left_in(one, *names)
            if one == root / top:
                break
    return left


def _left_in(folder: Path, limit: str, used: str, cache: str) -> list[int]:
    """The limit of a cgroup less what it uses; cache of files does not count, since it is given back."""
    try:
        most, now = int((folder / limit).read_text()), int((folder / used).read_text())
    except (OSError, ValueError):  # there is no such cgroup, or it has no limit: "max"
        return []
    if most >= LARGEST_LIMIT:
        return []
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in (folder / "memory.stat").read_text().splitlines():
            if line.split()[0] == cache:
                now -= int(line.split()[1])
    return [max(most - now, 0)]

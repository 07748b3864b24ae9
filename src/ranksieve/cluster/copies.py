"""Copies of a shard on the worker's disk. A new worker on that machine reads the copy in place of the source."""

from __future__ import annotations

import os
import pickle
import stat
import struct
import tempfile
import threading
import time
import weakref
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from ranksieve.cluster.messages import SetSummary
from ranksieve.data.binned import Binned

if TYPE_CHECKING:
    from distributed import Worker

PREFIX = "ranksieve-"
MAX_AGE = 3600.0  # seconds after the last use; an older copy was left by a killed run
HEADER = struct.Struct("<QI")  # the size in bytes and the checksum of the table that follows


class NoCopy(Exception):
    """No copy exists, or it cannot be read."""


@dataclass(frozen=True)
class ShardData:
    """The binned data sets of a shard, with their summaries and initial scores, by the name of the data set."""

    sets: dict[str, Binned]
    summaries: dict[str, SetSummary]
    initial_scores: dict[str, np.ndarray]  # empty before boosting begins


class LocalCopy:
    """The data of one shard in a file, which is removed with this object.

    The file is in the parent of the workers' local directories, where all workers of a machine find it; Dask empties
    the directory of a lost worker. A worker that lost its connection may run on beside its successor, so each writes
    under a name of its own first, and removes only the file that it wrote or read.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / f"{PREFIX}{name}"

    def read(self) -> ShardData:
        """Read the copy; raises `NoCopy` if there is none, or another user's or a damaged file."""
        try:
            file = open(self._path, "rb")  # noqa: SIM115 (closed below)
        except OSError as error:
            raise NoCopy from error
        with file:
            status = os.fstat(file.fileno())
            if not _is_own_file(status):  # unpickling another user's file would run its code
                raise NoCopy
            try:
                data = _load(file)
            except MemoryError:
                raise
            except Exception as error:  # a damaged file can fail in any way
                _remove([self._path], status.st_ino)
                raise NoCopy from error
        weakref.finalize(self, _remove, [self._path], status.st_ino)
        return data

    def write(self, data: ShardData) -> None:
        """Write the copy in a background thread. Errors are ignored, because the source can be read again."""
        try:  # readable by this user only
            number, name = tempfile.mkstemp(".part", f"{self._path.name}.", self._path.parent)
        except OSError:
            return
        paths = [Path(name), self._path]  # in this order, because the writing thread may rename the first to the second
        weakref.finalize(self, _remove, paths, os.fstat(number).st_ino)
        threading.Thread(target=_write, args=(*paths, os.fdopen(number, "wb"), data), daemon=True).start()

    def touch(self) -> None:
        """Mark the copy as in use."""
        with suppress(OSError):
            os.utime(self._path)


def _write(unfinished: Path, path: Path, file: IO[bytes], data: ShardData) -> None:
    """Write without `fsync`: a copy is used after the loss of a process, not of a machine."""
    try:
        with file:
            _dump(data, file)
        os.replace(unfinished, path)
    except (OSError, MemoryError):
        with suppress(OSError):
            unfinished.unlink()


def _dump(data: ShardData, file: IO[bytes]) -> None:
    """Write a table with checksums, then the arrays, which are not copied."""
    arrays: list[pickle.PickleBuffer] = []
    rest = pickle.dumps(data, protocol=5, buffer_callback=arrays.append)
    table = pickle.dumps((rest, [(array.raw().nbytes, zlib.crc32(array.raw())) for array in arrays]))
    file.write(HEADER.pack(len(table), zlib.crc32(table)))
    file.write(table)
    for array in arrays:
        file.write(array.raw())


def _load(file: IO[bytes]) -> ShardData:
    """Read what `_dump` wrote. NumPy allocates the memory with large pages; without them trees are slower."""
    n_bytes, check = HEADER.unpack(file.read(HEADER.size))
    table = file.read(min(n_bytes, os.fstat(file.fileno()).st_size))
    if zlib.crc32(table) != check:
        raise ValueError("the table is damaged")
    rest, sizes = pickle.loads(table)
    arrays = [np.fromfile(file, np.uint8, size) for size, _ in sizes]
    if [zlib.crc32(array.data) for array in arrays] != [check for _, check in sizes]:
        raise ValueError("an array is damaged")
    return pickle.loads(rest, buffers=arrays)


def _is_own_file(status: os.stat_result) -> bool:
    """Whether a file is a regular file of this user."""
    user = os.getuid() if hasattr(os, "getuid") else 0  # on Windows st_uid is always 0
    return stat.S_ISREG(status.st_mode) and status.st_uid == user


def _remove(paths: Sequence[Path], inode: int) -> None:
    """Remove a file under each of its names; a name that now belongs to another file is kept."""
    for path in paths:
        with suppress(OSError):
            if path.lstat().st_ino == inode:
                path.unlink()


def folder_of(worker: Worker) -> Path:
    """The folder for copies on a worker's machine."""
    return Path(worker.local_directory).parent


def remove_old(folder: Path) -> None:
    """Remove copies of runs that were killed with all their workers."""
    for path in folder.glob(f"{PREFIX}*"):
        with suppress(OSError):  # removed already, or of another user
            if time.time() - path.lstat().st_mtime > MAX_AGE:
                path.unlink()


def list_copies(names: Sequence[str], dask_worker: Worker) -> list[str]:
    """The copies that can be read on a worker's machine."""
    folder = folder_of(dask_worker)
    return [name for name in names if _is_readable(folder / f"{PREFIX}{name}")]


def _is_readable(path: Path) -> bool:
    try:
        return _is_own_file(path.lstat())
    except OSError:
        return False


def remove_copies(run: str, dask_worker: Worker) -> None:
    """Remove the copies of a run on a worker's machine, also those of shards that were moved to another one."""
    for path in sorted(folder_of(dask_worker).glob(f"{PREFIX}{run}-*"), reverse=True):  # unfinished ones first
        with suppress(OSError):
            path.unlink()

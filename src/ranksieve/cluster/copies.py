"""Copies of a worker's lists on its own disk: who follows a lost worker on that machine need not read the source."""

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
MAX_AGE = 3600.0  # a copy that nobody touched for so long is left behind
HEAD = struct.Struct("<QI")  # the bytes and the checksum of the table that follows


class NoCopy(Exception):
    """There is no copy, or it cannot be read."""


@dataclass(frozen=True)
class ShardData:
    """The sets that a shard holds, what the coordinator was told of them, and the scores they start from."""

    sets: dict[str, Binned]
    summaries: dict[str, SetSummary]
    starts: dict[str, np.ndarray]


class LocalCopy:
    """What one shard holds, in a file of its own; it goes when this object does.

    The file lies beside the working folders of Dask's workers, where all of one machine look, and not in that of one
    worker, which Dask empties when the worker is gone. A worker that is cut off may live on beside its successor, so
    each writes under a name of its own first, and removes no file but the one it wrote or read.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / f"{PREFIX}{name}"

    def read(self) -> ShardData:
        """What was written, `NoCopy` if nothing was, or something else is there now."""
        try:
            file = open(self._path, "rb")  # noqa: SIM115 (closed below)
        except OSError as error:
            raise NoCopy from error
        with file:
            status = os.fstat(file.fileno())
            if not _is_ours(status):  # a pickle of somebody else's could do anything
                raise NoCopy
            try:
                held = _load(file)
            except MemoryError:
                raise
            except Exception as error:  # a damaged file can fail in any way
                _remove([self._path], status.st_ino)
                raise NoCopy from error
        weakref.finalize(self, _remove, [self._path], status.st_ino)
        return held

    def write(self, held: ShardData) -> None:
        """Write beside whatever goes on; a disk that is full is no error, since the source is there."""
        try:  # for the eyes of this user only
            number, name = tempfile.mkstemp(".part", f"{self._path.name}.", self._path.parent)
        except OSError:
            return
        paths = [Path(name), self._path]  # in this order, or a file finished meanwhile would stay
        weakref.finalize(self, _remove, paths, os.fstat(number).st_ino)
        threading.Thread(target=_write, args=(*paths, os.fdopen(number, "wb"), held), daemon=True).start()

    def touch(self) -> None:
        """Show that the copy is of use still."""
        with suppress(OSError):
            os.utime(self._path)


def _write(unfinished: Path, path: Path, file: IO[bytes], held: ShardData) -> None:
    """Write without `fsync`: a copy serves after the loss of a process, not of a machine."""
    try:
        with file:
            _dump(held, file)
        os.replace(unfinished, path)
    except (OSError, MemoryError):
        with suppress(OSError):
            unfinished.unlink()


def _dump(held: ShardData, file: IO[bytes]) -> None:
    """A table with checksums, and arrays that follow it, so that they need not be copied on the way."""
    arrays: list[pickle.PickleBuffer] = []
    rest = pickle.dumps(held, protocol=5, buffer_callback=arrays.append)
    table = pickle.dumps((rest, [(array.raw().nbytes, zlib.crc32(array.raw())) for array in arrays]))
    file.write(HEAD.pack(len(table), zlib.crc32(table)))
    file.write(table)
    for array in arrays:
        file.write(array.raw())


def _load(file: IO[bytes]) -> ShardData:
    """What `_dump` wrote. The memory is NumPy's, which asks for large pages; without them trees are slower."""
    n_bytes, check = HEAD.unpack(file.read(HEAD.size))
    table = file.read(min(n_bytes, os.fstat(file.fileno()).st_size))
    if zlib.crc32(table) != check:
        raise ValueError("the table is damaged")
    rest, sizes = pickle.loads(table)
    arrays = [np.fromfile(file, np.uint8, size) for size, _ in sizes]
    if [zlib.crc32(array.data) for array in arrays] != [check for _, check in sizes]:
        raise ValueError("an array is damaged")
    return pickle.loads(rest, buffers=arrays)


def _is_ours(status: os.stat_result) -> bool:
    """Whether it is a file that belongs to this user."""
    me = os.getuid() if hasattr(os, "getuid") else 0  # Windows tells no owner
    return stat.S_ISREG(status.st_mode) and status.st_uid == me


def _remove(paths: Sequence[Path], inode: int) -> None:
    """Remove a file under whichever of its names; what is another's by now stays."""
    for path in paths:
        with suppress(OSError):
            if path.lstat().st_ino == inode:
                path.unlink()


def folder_of(worker: Worker) -> Path:
    """Where copies lie on a worker's machine."""
    return Path(worker.local_directory).parent


def remove_old(folder: Path) -> None:
    """Remove what is left of runs that were killed with all their workers."""
    for path in folder.glob(f"{PREFIX}*"):
        with suppress(OSError):  # gone already, or of another user
            if time.time() - path.lstat().st_mtime > MAX_AGE:
                path.unlink()


def list_copies(names: Sequence[str], dask_worker: Worker) -> list[str]:
    """Those of the copies that can be read on a worker's machine."""
    folder = folder_of(dask_worker)
    return [name for name in names if _is_there(folder / f"{PREFIX}{name}")]


def _is_there(path: Path) -> bool:
    try:
        return _is_ours(path.lstat())
    except OSError:
        return False


def remove_copies(run: str, dask_worker: Worker) -> None:
    """Remove the copies of a run on a worker's machine, also of shards that went to another one."""
    for path in sorted(folder_of(dask_worker).glob(f"{PREFIX}{run}-*"), reverse=True):  # unfinished ones first
        with suppress(OSError):
            path.unlink()

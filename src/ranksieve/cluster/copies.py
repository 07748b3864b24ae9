"""Copies of a worker's lists on its own disk: who follows a lost worker on that machine need not read the source."""

from __future__ import annotations

import os
import pickle
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from ranksieve.cluster.messages import Facts
from ranksieve.data.binned import Binned

if TYPE_CHECKING:
    from distributed import Worker

PREFIX = "ranksieve-"
AN_HOUR = 3600.0  # a copy that nobody touched for so long is left behind


class NoCopy(Exception):
    """There is no copy, or it cannot be read."""


@dataclass(frozen=True)
class Held:
    """The sets that a shard holds, what the coordinator was told of them, and the scores they start from."""

    sets: dict[str, Binned]
    facts: dict[str, Facts]
    starts: dict[str, np.ndarray]


class LocalCopy:
    """What one shard holds, in a file of its own; it goes when this object does.

    The file lies beside the working folders of Dask's workers, where all of one machine look, and not in that of one
    worker, which Dask empties when the worker is gone.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / f"{PREFIX}{name}"
        weakref.finalize(self, _remove, self._path)

    def read(self) -> Held:
        """What was written, `NoCopy` if nothing was."""
        try:
            with open(self._path, "rb") as file:
                return _load(file)
        except Exception as error:  # a damaged pickle can fail in any way
            _remove(self._path)
            raise NoCopy from error

    def write(self, held: Held) -> None:
        """Write beside whatever goes on; a disk that is full is no error, since the source is there."""
        try:
            file = open(_unfinished(self._path), "wb")  # noqa: SIM115 (the thread closes it)
        except OSError:
            return
        threading.Thread(target=_write, args=(self._path, file, held), daemon=True).start()

    def touch(self) -> None:
        """Show that the copy is of use still."""
        with suppress(OSError):
            os.utime(self._path)


def _write(path: Path, file: IO[bytes], held: Held) -> None:
    """Write without `fsync`: a copy serves after the loss of a process, not of a machine."""
    try:
        with file:
            _dump(held, file)
        os.replace(_unfinished(path), path)
    except (OSError, MemoryError):
        _remove(path)


def _dump(held: Held, file: IO[bytes]) -> None:
    """A pickle whose arrays follow it, so that they need not be copied on the way."""
    arrays: list[pickle.PickleBuffer] = []
    rest = pickle.dumps(held, protocol=5, buffer_callback=arrays.append)
    pickle.dump((rest, [array.raw().nbytes for array in arrays]), file)
    for array in arrays:
        file.write(array.raw())


def _load(file: IO[bytes]) -> Held:
    """What `_dump` wrote. The memory is NumPy's, which asks for large pages; without them trees are slower."""
    rest, sizes = pickle.load(file)
    arrays = [np.fromfile(file, np.uint8, size) for size in sizes]
    return pickle.loads(rest, buffers=arrays)


def _unfinished(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _remove(path: Path) -> None:
    for name in (_unfinished(path), path):  # in this order, or a file finished meanwhile would stay
        name.unlink(missing_ok=True)


def folder_of(worker: Worker) -> Path:
    """Where copies lie on a worker's machine."""
    return Path(worker.local_directory).parent


def remove_old(folder: Path) -> None:
    """Remove what is left of runs that were killed with all their workers."""
    for path in folder.glob(f"{PREFIX}*"):
        if _age(path) > AN_HOUR:
            path.unlink(missing_ok=True)


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:  # gone already
        return 0.0


def copies_here(names: Sequence[str], dask_worker: Worker) -> list[str]:
    """Those of the copies that can be read on a worker's machine."""
    folder = folder_of(dask_worker)
    return [name for name in names if (folder / f"{PREFIX}{name}").exists()]


def remove_copies(run: str, dask_worker: Worker) -> None:
    """Remove the copies of a run on a worker's machine, also of shards that went to another one."""
    for path in sorted(folder_of(dask_worker).glob(f"{PREFIX}{run}-*"), reverse=True):  # unfinished ones first
        path.unlink(missing_ok=True)

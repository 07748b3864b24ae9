"""`BinFile`: bins in a file, for data that does not fit into memory.

    | bins, row by row | ZIP archive: lists, thresholds, checksums of the bins, and a note as JSON |

The bins begin at byte 0, so that the file can be mapped into memory. The archive is written last and is found by its
end, so that a file that was cut short has none. `unzip -l` lists it.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import mmap
import os
import sys
import threading
import weakref
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from io import FileIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ranksieve.dtypes import BIN
from ranksieve.errors import DataError
from ranksieve.text_formats import file_size

T = TypeVar("T")
FORMAT = "ranksieve bins 1"
NOTE = "note.json"
CHECKSUMS = "checksums"
BLOCK_BYTES = 1 << 24  # bytes that are read at a time
BLOCK_ROWS = 1 << 17  # at most
SMALL_BYTES = 1 << 22  # bytes that a thread reads and works on at a time: they are still in the CPU's cache
MAP_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)  # Python 3.10 has no name for it
PAGE = 1 << 12
NEAR_BYTES = 1 << 16  # a gap up to this is read rather than skipped: a seek of a fast disk takes as long

# raised on damaged archives by zipfile, NumPy and json
UNREADABLE = (
    OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, OverflowError, MemoryError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def block_rows(width: int) -> int:
    """Rows that are read, and have a checksum, together."""
    return max(1, min(BLOCK_BYTES // width, BLOCK_ROWS))


class BinFile:
    """The bins of a file; `bytes_read` counts what was read of it.

    The file is opened once, or given as `file`. What another process puts at the same path later is not read.
    """

    def __init__(self, path: Path, n_rows: int, width: int, file: FileIO | None = None) -> None:
        self.path, self.n_rows, self.width = path, n_rows, width
        self.bytes_read = 0
        self._file = open(path, "rb", buffering=0) if file is None else file  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()

    @property
    def n_bytes(self) -> int:
        return self.n_rows * self.width

    @cached_property
    def mapped(self) -> np.ndarray:
        """All bins as an array, whose pages are read when they are used. Writing to it does not change the file."""
        return np.frombuffer(self._map, BIN).reshape(self.n_rows, self.width)

    @cached_property
    def _map(self) -> mmap.mmap:
        try:
            if sys.platform == "linux":  # no memory is set aside for writing: the file may be larger than all of it
                flags, prot = mmap.MAP_PRIVATE | MAP_NORESERVE, mmap.PROT_READ | mmap.PROT_WRITE
                return mmap.mmap(self._file.fileno(), self.n_bytes, flags=flags, prot=prot)
            return mmap.mmap(self._file.fileno(), self.n_bytes, access=mmap.ACCESS_COPY)
        except ValueError as error:  # the file is shorter
            raise self._cut_short() from error

    def _cut_short(self) -> DataError:
        return DataError(f"{self.path}: the bin file was cut short while it was used; start again")

    def remove(self) -> None:
        """Remove the file, which stays usable; at the end of the program where open files cannot be removed."""
        assert self._map is not None
        try:
            self.path.unlink(missing_ok=True)
        except OSError:
            atexit.register(self._remove_at_exit)

    def _remove_at_exit(self) -> None:
        self._file.close()
        for name in ("mapped", "_map"):
            self.__dict__.pop(name, None)
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)

    def read(self, first: int, out: np.ndarray) -> np.ndarray:
        """Fill an array with the rows from `first` on."""
        flat = out.reshape(-1).data
        n_read = 0
        while n_read < len(flat):
            n = self._read_at(first * self.width + n_read, flat[n_read:])
            if not n:
                raise self._cut_short()
            n_read += n
        with self._lock:
            self.bytes_read += n_read
        return out

    def _read_at(self, place: int, out: memoryview) -> int | None:
        """Read bytes from a place on; returns how many were read."""
        if sys.platform == "linux":
            return os.preadv(self._file.fileno(), [out], place)  # several threads may read at a time
        with self._lock:
            self._file.seek(place)
            return self._file.readinto(out)

    def __getitem__(self, rows: slice) -> np.ndarray:
        """Rows start:stop, as of an array."""
        return self.read(rows.start, np.empty((rows.stop - rows.start, self.width), BIN))

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """All rows in blocks, each with the number of its first row; the next is read meanwhile.

        The memory of a block is used again.
        """
        for first, block, _ in self._visit(lambda first, bins: None, 1, block_rows(self.width)):
            yield first, block

    def visit(self, work: Callable[[int, np.ndarray], T], threads: int) -> Iterator[tuple[int, np.ndarray, T]]:
        """All rows in small blocks, each with the number of its first row, and with what `work` returned for the two.

        Threads read the next blocks and work on them meanwhile. The memory of a block is used again.
        """
        rows = min(SMALL_BYTES, 2 * BLOCK_BYTES // (threads + 1)) // self.width
        return self._visit(work, threads, max(1, min(rows, block_rows(self.width))))

    def _visit(
        self, work: Callable[[int, np.ndarray], T], threads: int, rows: int
    ) -> Iterator[tuple[int, np.ndarray, T]]:
        space = np.empty((threads + 1, min(rows, self.n_rows) * self.width + PAGE), BIN)
        starts = range(0, self.n_rows, rows)

        def fetch(number: int) -> tuple[int, np.ndarray, T]:
            first, part = starts[number], space[number % len(space)]
            # At the same place of a page as in the file: some CPUs (AMD's Zen) take six times as long to copy to a
            # place that is up to 31 bytes behind it.
            place = (first * self.width - part.ctypes.data) % PAGE
            n = min(rows, self.n_rows - first)
            bins = self.read(first, part[place : place + n * self.width].reshape(n, self.width))
            return first, bins, work(first, bins)

        with ThreadPoolExecutor(threads) as pool:
            coming = deque(pool.submit(fetch, number) for number in range(min(threads, len(starts))))
            while coming:
                ready = coming.popleft().result()
                number = ready[0] // rows + threads
                if number < len(starts):
                    coming.append(pool.submit(fetch, number))
                yield ready

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Some rows, ascending. Rows near each other are read together."""
        out = np.empty((len(rows), self.width), BIN)
        space = np.empty((min(block_rows(self.width), self.n_rows), self.width), BIN)
        for low, high in self._ranges(rows):
            first, last = int(rows[low]), int(rows[high - 1]) + 1
            np.take(self.read(first, space[: last - first]), rows[low:high] - first, axis=0, out=out[low:high])
        return out

    def cost(self, rows: np.ndarray) -> int:
        """About how many bytes could be read in the time in which `take` reads these rows."""
        ranges = self._ranges(rows)
        spans = rows[ranges[:, 1] - 1].astype(np.int64) - rows[ranges[:, 0]] + 1
        return int(spans.sum()) * self.width + len(ranges) * NEAR_BYTES

    def _ranges(self, rows: np.ndarray) -> np.ndarray:
        """Which of the rows are read together: a range of them in each line."""
        block = rows // block_rows(self.width)
        cuts = np.flatnonzero((np.diff(rows) > NEAR_BYTES // self.width) | (np.diff(block) > 0)) + 1
        ends = np.concatenate([[0], cuts, [len(rows)]])
        return np.stack([ends[:-1], ends[1:]], axis=1)[: len(rows)]


class BinWriter:
    """Writes the bins of rows to a file, one block after the other; `finish` adds the archive."""

    def __init__(self, path: Path, width: int) -> None:
        self.n_rows = 0
        self._width = width
        self._file = open(path, "w+b", buffering=0)  # noqa: SIM115 (closed by close)
        self._checksums: list[int] = []
        self._checked = 0  # rows in the last block that has a checksum

    def append(self, bins: np.ndarray) -> None:
        """Write rows of bins."""
        rows = block_rows(self._width)
        for part in _parts(bins, rows - self._checked, rows):
            data = np.ascontiguousarray(part).reshape(-1).data
            before = self._checksums.pop() if self._checked else 0
            self._checksums.append(zlib.crc32(data, before))
            self._checked = (self._checked + len(part)) % rows
            while len(data):
                data = data[self._file.write(data) :]
        self.n_rows += len(bins)

    def finish(self, note: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Write the archive."""
        arrays = {**arrays, CHECKSUMS: np.array(self._checksums, np.uint32)}
        whole = {"format": FORMAT, "shape": [self.n_rows, self._width], **note}
        with zipfile.ZipFile(self._file, "w") as archive:  # from the current position on
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)
            archive.writestr(NOTE, json.dumps(whole))

    def reader(self, path: Path) -> BinFile:
        """The same file, for reading, also after `close`; `path` is the name that it will have."""
        file = open(os.dup(self._file.fileno()), "rb", buffering=0)  # noqa: SIM115 (closed by BinFile)
        return BinFile(path, self.n_rows, self._width, file)

    def close(self) -> None:
        self._file.close()


def _parts(bins: np.ndarray, first: int, rows: int) -> Iterator[np.ndarray]:
    """Rows cut after the first `first`, and then after every `rows`."""
    start, stop = 0, first
    while start < len(bins):
        yield bins[start:stop]
        start, stop = stop, stop + rows


class BinFileError(Exception):
    """A bin file that is damaged, incomplete, or no bin file."""


def open_bins(path: Path) -> tuple[BinFile, dict[str, Any]]:
    """A bin file and its note, or `BinFileError`."""
    try:
        file = open(path, "rb", buffering=0)  # noqa: SIM115 (closed by BinFile)
    except OSError as error:
        raise BinFileError(f"{error}") from error
    try:
        note = read_note(file)
    except BinFileError:
        file.close()
        raise
    n_rows, width = note["shape"]
    return BinFile(path, n_rows, width, file), note


def read_note(file: Path | FileIO) -> dict[str, Any]:
    """The note of a bin file, or `BinFileError`."""
    try:
        with zipfile.ZipFile(file) as archive:
            note = json.loads(archive.read(NOTE))
            n_rows, width = note["shape"]
            fits = note["format"] == FORMAT and min(info.header_offset for info in archive.filelist) == n_rows * width
    except UNREADABLE as error:
        raise BinFileError(f"{error}" or type(error).__name__) from error
    if not fits:
        raise BinFileError("it is of another version, or its size is wrong")
    return note


def read_arrays(file: BinFile) -> dict[str, np.ndarray]:
    """The arrays of the archive; zipfile checks their checksums."""
    arrays = {}
    try:
        with zipfile.ZipFile(file._file) as archive:
            for name in archive.namelist():
                if name != NOTE:
                    with archive.open(name) as member:
                        arrays[name.removesuffix(".npy")] = np.lib.format.read_array(member, allow_pickle=False)
                        member.read()  # the checksum is compared at the end
    except UNREADABLE as error:
        raise BinFileError(f"{error}" or type(error).__name__) from error
    return arrays


def verify(file: BinFile, checksums: np.ndarray, report: Callable[[float], None]) -> None:
    """Compare the bins with their checksums; `report` gets the share that is done."""
    n_blocks = -(-file.n_rows // block_rows(file.width))
    if len(checksums) != n_blocks:
        raise BinFileError("it has no checksum for each of its blocks")
    for number, (first, block) in enumerate(file.blocks()):
        if zlib.crc32(block.data) != checksums[number]:
            raise BinFileError(f"the rows from {first:,} on are not what was written; {file_size(file.n_bytes)} in all")
        report((number + 1) / n_blocks)

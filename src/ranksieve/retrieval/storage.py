"""An index on disk: a folder of plain arrays that are mapped into memory, and a header that describes them.

Kernels do not check bounds, so no damaged byte may reach them. The header has a checksum of itself and one of every
block of every array. Offsets are checked when an index is opened. So are all blocks of a small index; those of a large
one are checked before they are first read.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from ranksieve.errors import DataError
from ranksieve.retrieval.index_header import ARRAYS, IndexHeader

BLOCK_BYTES = 1 << 20
CHECKED_AT_ONCE = 1 << 28  # bytes of the largest index that is checked when it is opened: a tenth of a second
OFFSETS = {  # arrays of offsets, and the size that their last one equals
    "term_ends": "term_bytes",
    "id_ends": "id_bytes",
    "entry_starts": "entries",
    "byte_starts": "position_bytes",
    "forward_starts": "forward",
    "text_ends": "text_bytes",
}


class Postings(NamedTuple):
    """What the kernels read of an index."""

    entry_starts: np.ndarray
    docs: np.ndarray
    fields: np.ndarray
    tfs: np.ndarray
    position_starts: np.ndarray
    byte_starts: np.ndarray
    positions: np.ndarray


class IndexWriter:
    """Writes the arrays of an index piece by piece, and computes the checksums of their blocks."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._files = {name: open(folder / f"{name}.bin", "wb") for name in ARRAYS}  # noqa: SIM115
        self._sizes = dict.fromkeys(ARRAYS, 0)
        self.checksums: dict[str, list[int]] = {name: [] for name in ARRAYS}

    def append(self, name: str, values: Any) -> None:
        written = np.ascontiguousarray(values, dtype=ARRAYS[name][0])
        self._files[name].write(written.data)  # tofile would not report a full disk
        if written.size:
            self._add_checksums(name, written.data.cast("B"))

    def _add_checksums(self, name: str, content: memoryview) -> None:
        start, checksums = 0, self.checksums[name]
        while start < len(content):
            filled = self._sizes[name] % BLOCK_BYTES
            piece = content[start : start + BLOCK_BYTES - filled]
            if filled:
                checksums[-1] = crc32(piece, checksums[-1])
            else:
                checksums.append(crc32(piece))
            start += len(piece)
            self._sizes[name] += len(piece)

    def read_back(self, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """What was appended so far, or some of it."""
        self._files[name].flush()
        dtype, count = np.dtype(ARRAYS[name][0]), -1 if stop is None else stop - start
        return np.fromfile(self._folder / f"{name}.bin", dtype, count, offset=start * dtype.itemsize)

    def close(self) -> None:
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
            file.close()


def open_folder(folder: Path) -> tuple[IndexHeader, StoredArrays]:
    """The header and arrays of an index; they are read again if another program replaces the folder meanwhile."""
    while True:
        before = _identity(folder)
        try:
            header = IndexHeader.read(folder)
            arrays = StoredArrays(folder, header)
        except DataError:
            if _identity(folder) == before:
                raise
        else:
            if _identity(folder) == before:
                return header, arrays
            arrays.close()


def _identity(folder: Path) -> tuple[int, ...] | None:
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_ctime_ns  # numbers of removed folders are used again


class StoredArrays:
    """The arrays of an index, mapped into memory; each block is compared with its checksum before it is first used."""

    def __init__(self, folder: Path, header: IndexHeader):
        self._folder = folder
        self._maps: dict[str, mmap.mmap] = {}
        self._checksums = header.checksums
        sizes = header.sizes | {f"{axis} + 1": size + 1 for axis, size in header.sizes.items()}
        self._arrays = {
            name: self._map(name, dtype, tuple(sizes[axis] for axis in axes)) for name, (dtype, axes) in ARRAYS.items()
        }
        self.n_bytes = sum(array.nbytes for array in self._arrays.values())
        self._unchecked = {
            name: np.ones(-(-array.nbytes // BLOCK_BYTES), bool) for name, array in self._arrays.items() if array.size
        }
        if self.n_bytes <= CHECKED_AT_ONCE:
            self.check_all()
        for name, axis in OFFSETS.items():
            self._check_offsets(name, header.sizes[axis])

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.bin"

    def _map(self, name: str, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        path, expected = self._path(name), np.dtype(dtype).itemsize
        for size in shape:
            expected *= size  # as Python's integers, which do not overflow
        try:
            with open(path, "rb") as file:
                found = os.fstat(file.fileno()).st_size
                if found == expected > 0:
                    self._maps[name] = mmap.mmap(file.fileno(), expected, access=mmap.ACCESS_READ)
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror or error}); index the corpus again") from error
        if found != expected or len(self._checksums[name]) != -(-expected // BLOCK_BYTES):
            raise DataError(f"{path}: has {found} bytes where {expected} were written; index the corpus again")
        content = self._maps.get(name, b"")  # read-only in any case: the kernels are compiled for such arrays
        return np.frombuffer(content, dtype).reshape(shape)

    def _check_offsets(self, name: str, last: int) -> None:
        """Offsets must not fall, and must stay within what they point into."""
        offsets = self.whole(name)
        if name.endswith("_ends"):
            offsets = np.concatenate([[0], offsets])
        if offsets[0] != 0 or offsets[-1] != last or (offsets[1:] < offsets[:-1]).any():
            raise DataError(f"{self._path(name)}: holds offsets out of order or range; index the corpus again")

    def whole(self, name: str) -> np.ndarray:
        """An array, all of its blocks checked."""
        unchecked = self._unchecked.get(name)
        if unchecked is not None:
            self._check_blocks(name, unchecked, np.flatnonzero(unchecked))
        return self.unchecked(name)

    def check_parts(self, names: Sequence[str], starts: np.ndarray, stops: np.ndarray) -> None:
        """Check what some arrays hold in the ranges `starts[i]:stops[i]`."""
        for name in names:
            unchecked = self._unchecked.get(name)
            if unchecked is not None:
                size = self.unchecked(name).itemsize
                changes = np.zeros(len(unchecked) + 1, np.int64)
                filled = stops > starts
                np.add.at(changes, starts[filled] * size // BLOCK_BYTES, 1)
                np.add.at(changes, (stops[filled] * size - 1) // BLOCK_BYTES + 1, -1)
                self._check_blocks(name, unchecked, np.flatnonzero((np.cumsum(changes)[:-1] > 0) & unchecked))

    def unchecked(self, name: str) -> np.ndarray:
        """An array of which only parts are checked."""
        if not self._arrays:
            raise DataError(f"{self._folder}: the index was closed; open it again")
        return self._arrays[name]

    def check_all(self) -> None:
        for name in list(self._unchecked):
            self.whole(name)

    def _check_blocks(self, name: str, unchecked: np.ndarray, blocks: np.ndarray) -> None:
        for block in blocks.tolist():
            start, stop = block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES
            with memoryview(self._maps[name]) as content, content[start:stop] as piece:
                checksum, n_bytes = crc32(piece), len(piece)
            if start % mmap.PAGESIZE == 0 and hasattr(mmap, "MADV_DONTNEED"):
                self._maps[name].madvise(mmap.MADV_DONTNEED, start, n_bytes)  # does not count as memory of the process
            if checksum != self._checksums[name][block]:
                raise DataError(f"{self._path(name)}: has changed since it was written; index the corpus again")
            unchecked[block] = False
        if not unchecked.any():
            self._unchecked.pop(name, None)

    def close(self) -> None:
        """Unmap the files; where an array is still in use, its file is unmapped with it."""
        self._arrays, maps, self._maps = {}, self._maps, {}
        for mapped in maps.values():
            try:
                mapped.close()
            except BufferError:
                continue

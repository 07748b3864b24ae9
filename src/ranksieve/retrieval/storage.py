"""An index on disk: a folder of plain arrays that are mapped into memory, and a header that says what they are."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from ranksieve.errors import DataError, RanksieveError
from ranksieve.retrieval.fields import Field

FORMAT = 3
HEADER = "header.json"
PIECE_BYTES = 1 << 20
SUMMED_BYTES = 1 << 28  # of the largest index whose bytes are summed when it is opened: a tenth of a second

# Every array of an index: its type, and its shape in terms of the header's sizes (one size per axis).
ARRAYS: dict[str, tuple[str, tuple[str, ...]]] = {
    "term_bytes": ("u1", ("term_bytes",)),  # the terms, sorted, one behind the other
    "term_ends": ("i8", ("terms",)),
    "id_bytes": ("u1", ("id_bytes",)),  # the documents' ids
    "id_ends": ("i8", ("docs",)),
    "entry_starts": ("i8", ("terms + 1",)),
    "docs": ("i4", ("entries",)),
    "fields": ("u1", ("entries",)),
    "tfs": ("i4", ("entries",)),
    "position_starts": ("u4", ("entries",)),  # bytes from the term's first one
    "positions": ("u1", ("position_bytes",)),
    "byte_starts": ("i8", ("terms + 1",)),
    "forward_starts": ("i8", ("docs + 1",)),
    "forward_terms": ("i4", ("forward",)),  # the terms of every document, in order
    "forward_tfs": ("i4", ("forward",)),  # over all fields
    "forward_firsts": ("u1", ("forward",)),  # the earliest place in a field, at most 255
    "document_frequency": ("i4", ("terms", "columns")),  # columns: the fields, then all of them together
    "collection_frequency": ("i8", ("terms", "columns")),
    "lengths": ("i4", ("columns", "docs")),
    "distinct": ("i4", ("columns", "docs")),
    "norms": ("f4", ("columns", "docs")),  # of the tf·idf vectors
    "numbers": ("f4", ("numbers", "docs")),
}


SIZES = tuple(dict.fromkeys(axis.removesuffix(" + 1") for _, axes in ARRAYS.values() for axis in axes))


class Header(NamedTuple):
    """What an index says of itself."""

    fields: tuple[Field, ...]
    numbers: tuple[str, ...]
    sizes: dict[str, int]
    notes: tuple[str, ...]
    checksums: dict[str, int]  # of arrays; none in indexes of earlier versions

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Header:
        return cls(
            tuple(map(Field.from_dict, values["fields"])),
            tuple(values["numbers"]),
            {axis: int(values["sizes"][axis]) for axis in SIZES},
            tuple(values["notes"]),
            {name: int(values["checksums"][name]) for name in ARRAYS if "checksums" in values},
        )


class Postings(NamedTuple):
    """What the kernels read of an index."""

    entry_starts: np.ndarray
    docs: np.ndarray
    fields: np.ndarray
    tfs: np.ndarray
    position_starts: np.ndarray
    byte_starts: np.ndarray
    positions: np.ndarray


class Writer:
    """The arrays of an index, written a piece at a time."""

    def __init__(self, folder: Path):
        self._folder = folder
        self.checksums = dict.fromkeys(ARRAYS, 0)
        self._files = {name: open(folder / f"{name}.bin", "wb") for name in ARRAYS}  # noqa: SIM115

    def append(self, name: str, values: Any) -> None:
        written = np.ascontiguousarray(values, dtype=ARRAYS[name][0])
        self._files[name].write(written.data)  # tofile would not report a full disk
        self.checksums[name] = _checksum(written, self.checksums[name])

    def read_back(self, name: str) -> np.ndarray:
        """What was appended so far."""
        self._files[name].flush()
        return np.fromfile(self._folder / f"{name}.bin", dtype=ARRAYS[name][0])

    def close(self) -> None:
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
            file.close()


def _checksum(values: np.ndarray, before: int = 0) -> int:
    return crc32(values.data.cast("B"), before) if values.size else before


def _checksum_of_file(path: Path) -> int:
    """Read in pieces: pages of a map would count as memory of the process."""
    checksum = 0
    with open(path, "rb") as file:
        while piece := file.read(PIECE_BYTES):
            checksum = crc32(piece, checksum)
    return checksum


def write_header(folder: Path, header: dict[str, Any]) -> None:
    (folder / HEADER).write_text(
        json.dumps({"format": FORMAT, **header}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def read_header(folder: Path) -> Header:
    """The header of an index, or an error that says why this is none."""
    path = folder / HEADER
    if folder.is_file():
        raise DataError(f"{folder}: is a file, not an index; make one with: ranksieve index {folder} --out INDEX")
    if not path.is_file():
        what = "there is no such folder" if not folder.exists() else f"it holds no {HEADER}"
        raise DataError(f"{folder}: is not an index ({what}); make one with: ranksieve index CORPUS --out {folder}")
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        version = int(values["format"])
        if version == FORMAT:
            return Header.from_dict(values)
    except RanksieveError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(
            f"{path}: the header is damaged ({type(error).__name__}: {error}); index the corpus again"
        ) from error
    raise DataError(
        f"{folder}: is an index of format {version}, this version of ranksieve reads format {FORMAT}; "
        "index the corpus again"
    )


def map_arrays(folder: Path, header: Header) -> dict[str, np.ndarray]:
    """The arrays of an index, mapped into memory.

    Kernels trust what they read, so a damaged array must not reach them. Sums of all bytes are compared where an index
    is small enough to read at once; of larger ones the sizes are.
    """
    sizes = header.sizes | {f"{axis} + 1": size + 1 for axis, size in header.sizes.items()}
    arrays = {}
    for name, (dtype, axes) in ARRAYS.items():
        shape = tuple(sizes[axis] for axis in axes)
        path = folder / f"{name}.bin"
        expected = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        found = path.stat().st_size if path.is_file() else -1
        if found != expected:
            raise DataError(
                f"{path}: is missing or has {max(found, 0)} bytes where {expected} were written; index the corpus again"
            )
        arrays[name] = (
            np.memmap(path, dtype=dtype, mode="r", shape=shape).view(np.ndarray) if expected else np.empty(shape, dtype)
        )
    for array in arrays.values():
        array.flags.writeable = False  # the kernels are compiled for arrays that nobody writes to
    if sum(array.nbytes for array in arrays.values()) <= SUMMED_BYTES:
        for name, expected in header.checksums.items():
            if _checksum_of_file(folder / f"{name}.bin") != expected:
                raise DataError(f"{folder / name}.bin: has changed since it was written; index the corpus again")
    return arrays

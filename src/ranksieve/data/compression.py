"""Plain and compressed files as streams of text; the compression is detected by the first bytes, not the name."""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from ranksieve.errors import DataError, import_extra

DATA_FORMATS = "LETOR lines like '2 qid:10 1:0.5 3:1', CSV or Parquet"
HEAD_BYTES = 256  # enough to tell formats apart
PARQUET_MAGIC = b"PAR1"
INPUT_BYTES = 1 << 15  # compressed bytes that zstd gets at a time: what they decompress to has to fit into memory


class CutShortError(OSError):
    """Compressed data that ends before its end mark."""


def zstandard_module() -> Any:
    return import_extra("zstandard", "zstandard files need the package 'zstandard'", "ranksieve[zst]")


class _ZstdFile(io.RawIOBase):
    """Decompressed bytes of a zstd file; unlike zstandard's reader it detects a last frame that is cut short."""

    def __init__(self, raw: BinaryIO):
        self._module = zstandard_module()
        self._raw = raw
        self._ready = memoryview(b"")
        self._frame: Any = None

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        while not self._ready:
            if not self._advance():
                return 0
        size = min(len(target), len(self._ready))
        target[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def _advance(self) -> bool:
        rest = self._frame.unused_data if self._frame is not None and self._frame.eof else b""
        piece = rest or self._raw.read(INPUT_BYTES)
        if not piece:
            if self._frame is not None and not self._frame.eof:
                raise CutShortError("the last frame is not complete")
            return False
        if self._frame is None or self._frame.eof:
            self._frame = self._module.ZstdDecompressor().decompressobj()
        try:
            self._ready = memoryview(self._frame.decompress(piece))
        except self._module.ZstdError as error:
            raise CutShortError(str(error)) from error
        return True


# Formats by name: the first bytes of a file, and how to read it.
FORMATS: dict[str, tuple[bytes, Callable[[BinaryIO], Any]]] = {
    "gzip": (b"\x1f\x8b", lambda raw: gzip.GzipFile(fileobj=raw, mode="rb")),
    "xz": (b"\xfd7zXZ\x00", lzma.LZMAFile),
    "zstd": (b"\x28\xb5\x2f\xfd", _ZstdFile),
}
DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError)

WRITERS: dict[str, Callable[[Path], Any]] = {
    ".gz": lambda path: gzip.GzipFile(path, "wb", compresslevel=6, mtime=0),
    ".xz": partial(lzma.LZMAFile, mode="wb", preset=2),
    ".zst": lambda path: zstandard_module().open(path, "wb"),
}


def first_bytes(path: str, expected: str = DATA_FORMATS) -> bytes:
    """The first bytes of a file, or a `DataError` with the reason why it cannot be read and what was expected."""
    if os.path.isdir(path):
        raise DataError(f"{path}: is a folder; give the path of one file, {expected}")
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD_BYTES)
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file; check the path") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read ({error}); check the path and its permissions") from error
    if not head:
        raise DataError(f"{path}: the file is empty; expected {expected}")
    return head


class TextStream(io.RawIOBase):
    """The decompressed bytes of a file, and the fraction of the file that was read."""

    def __init__(self, path: str, raw: BinaryIO, size: int):
        self.path = path
        self._raw = raw
        self._size = max(size, 1)
        self._format = ""
        self._file: Any = raw
        head = raw.read(8)
        raw.seek(0)
        for name, (magic, opener) in FORMATS.items():
            if head.startswith(magic):
                self._format, self._file = name, opener(raw)

    @property
    def fraction_read(self) -> float:
        return min(self._raw.tell() / self._size, 1.0)

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        """Fill the target; only at the end of the file the number of bytes read is less than its length."""
        filled = 0
        target = memoryview(target).cast("B")
        try:
            while filled < len(target):
                got = self._file.readinto(target[filled:])
                if not got:
                    break
                filled += got
        except DAMAGE as error:
            if not self._format:
                raise DataError(f"{self.path}: reading failed ({error}); check the disk and try again") from error
            raise DataError(
                f"{self.path}: the {self._format} data is damaged or cut short ({error}); "
                "fetch or compress the file again"
            ) from error
        return filled


@contextlib.contextmanager
def open_text(path: str, expected: str = DATA_FORMATS) -> Iterator[TextStream]:
    """The text of a file, which may be compressed."""
    first_bytes(path, expected)
    with open(path, "rb", buffering=0) as raw:
        yield TextStream(path, raw, os.path.getsize(path))


def create_text(path: Path, suffix: str) -> Any:
    """Open a file for writing text; `suffix`, that of its final name, decides on the compression."""
    return WRITERS.get(suffix, lambda plain: open(plain, "wb"))(path)

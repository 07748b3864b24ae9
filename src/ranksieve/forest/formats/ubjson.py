"""Universal Binary JSON (draft 12), as XGBoost writes it: text, numbers, lists, objects, and typed arrays."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

NUMBERS = {b"i": ">b", b"U": ">B", b"I": ">h", b"l": ">i", b"L": ">q", b"d": ">f", b"D": ">d"}
CONSTANTS = {b"Z": None, b"T": True, b"F": False}
DEEPEST = 200  # lists inside lists; XGBoost has about ten


def decode(content: bytes) -> Any:
    """The value in some bytes, typed arrays as NumPy arrays; raises ValueError where they are not UBJSON.

    Examples
    --------
    >>> decode(b"{U\\x01a[$U#U\\x02\\x07\\x08}")["a"].tolist()
    [7, 8]
    """
    decoder = _Decoder(content)
    value = decoder.value(decoder.mark(), 0)
    if content[decoder.at :].strip():
        raise ValueError(f"something follows the end at byte {decoder.at}")
    return value


class _Decoder:
    """Decodes value after value; `at` is the next byte."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0
        self.most_constants = len(content)  # values without bytes; a limit for small files

    def take(self, size: int) -> bytes:
        piece = self.content[self.at : self.at + size]
        if size < 0 or len(piece) < size:
            raise ValueError(f"ends too early, at byte {self.at}")
        self.at += size
        return piece

    def mark(self) -> bytes:
        """The letter of the next value's type; N is skipped."""
        while (letter := self.take(1)) == b"N":
            pass
        return letter

    def count(self) -> int:
        number = self.value(self.mark(), DEEPEST)
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise ValueError(f"a length is not an integer at byte {self.at}")
        return number

    def text(self) -> str:
        return self.take(self.count()).decode()

    def value(self, mark: bytes, depth: int) -> Any:
        if mark in NUMBERS:
            kind = NUMBERS[mark]
            return struct.unpack(kind, self.take(struct.calcsize(kind)))[0]
        if mark in CONSTANTS:
            return CONSTANTS[mark]
        if mark == b"S":
            return self.text()
        if mark == b"C":
            return self.take(1).decode("ascii")
        if mark in (b"[", b"{") and depth < DEEPEST:
            return self.array(depth + 1) if mark == b"[" else self.object(depth + 1)
        raise ValueError(f"unknown or misplaced mark {mark!r} at byte {self.at - 1}")

    def header(self) -> tuple[bytes | None, int | None]:
        """The type and the number of a container's values, where they are declared."""
        kind = size = None
        if self.content[self.at : self.at + 1] == b"$":
            kind = self.take(2)[1:]
        if self.content[self.at : self.at + 1] == b"#":
            self.take(1)
            size = self.count()
        if kind is not None and size is None:
            raise ValueError(f"a type without a length at byte {self.at}")
        return kind, size

    def array(self, depth: int) -> Any:
        kind, size = self.header()
        if kind in NUMBERS:
            dtype = np.dtype(NUMBERS[kind])
            return np.frombuffer(self.take(dtype.itemsize * (size or 0)), dtype).astype(dtype.newbyteorder("="))
        values = []
        if size is not None:
            if kind in CONSTANTS:
                self.most_constants -= size
                if self.most_constants < 0:
                    raise ValueError(f"{size} values without content at byte {self.at}")
            for _ in range(size):
                values.append(self.value(kind or self.mark(), depth))
            return values
        while (mark := self.mark()) != b"]":
            values.append(self.value(mark, depth))
        return values

    def object(self, depth: int) -> dict[str, Any]:
        kind, size = self.header()
        values: dict[str, Any] = {}
        while size is None or len(values) < size:
            mark = self.mark()
            if size is None and mark == b"}":
                break
            self.at -= 1  # the letter belongs to the key's length
            key = self.text()
            if size is not None and key in values:
                raise ValueError(f"{key!r} occurs twice in one object")
            values[key] = self.value(kind or self.mark(), depth)
        return values

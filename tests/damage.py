"""Random damage to files, for fuzz tests: the same seed gives the same damage."""

from __future__ import annotations

import re

import numpy as np

# a run of digits, with sign, point and exponent: what a reader takes for a number
NUMBER = re.compile(rb"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
NUMBERS = (
    b"0", b"-1", b"1", b"2", b"7", b"255", b"65536", b"999999999", b"1000000000", b"2147483647", b"-2147483648",
    b"9223372036854775808", b"99999999999999999999", b"0.5", b"-0.0", b"1e-320", b"1e38", b"1e39", b"1e308", b"-1e308",
    b"1e999", b"NaN", b"nan", b"inf", b"-inf", b"Infinity", b"1_0", b"0x10", b"1.5.5", b"", b"null", b"true", b"[]",
    b"{}", b'"a"', "²".encode(), "٣".encode(),
)  # fmt: skip
PIECES = (
    b"\n", b"\r\n", b"\r", b"\x00", b"\xff", b"\xff\xfe", b"\xef\xbb\xbf", "\u2028".encode(), "\u00a0".encode(), b" ",
    b"\t", b"=", b"<", b">", b'"', b'""', b"[", b"]", b"{", b"}", b",", b";", b":", b"\\", b"#", b"-", b"9" * 400,
    b"NA", b"qid:", b"qid:1", b"0:1", b"70000:1", b"# docid = ", b"label", b"tree\n", b"PAR1",
)  # fmt: skip


def damaged(content: bytes, seed: int | np.random.Generator) -> bytes:
    """The content with one to three random changes."""
    rng = np.random.default_rng(seed)
    for _ in range(rng.integers(1, 4)):
        content = CHANGES[rng.integers(len(CHANGES))](content, rng)
    return content


def _other_number(content: bytes, rng: np.random.Generator) -> bytes:
    found = list(NUMBER.finditer(content))
    if not found:
        return content
    at = found[rng.integers(len(found))]
    return content[: at.start()] + NUMBERS[rng.integers(len(NUMBERS))] + content[at.end() :]


def _other_byte(content: bytes, rng: np.random.Generator) -> bytes:
    at = int(rng.integers(len(content) + 1))
    return content[:at] + bytes([rng.integers(256)]) + content[at + 1 :]


def _flipped_bit(content: bytes, rng: np.random.Generator) -> bytes:
    at = int(rng.integers(len(content) or 1))
    return content[:at] + bytes(byte ^ (1 << int(rng.integers(8))) for byte in content[at : at + 1]) + content[at + 1 :]


def _piece(content: bytes, rng: np.random.Generator) -> bytes:
    at = int(rng.integers(len(content) + 1))
    return content[:at] + PIECES[rng.integers(len(PIECES))] + content[at + int(rng.integers(3)) :]


def _cut_out(content: bytes, rng: np.random.Generator) -> bytes:
    at, length = int(rng.integers(len(content) + 1)), int(rng.integers(1, 200))
    return content[:at] + content[at + length :]


def _copied(content: bytes, rng: np.random.Generator) -> bytes:
    start, to = (int(rng.integers(len(content) + 1)) for _ in range(2))
    return content[:to] + content[start : start + int(rng.integers(1, 200))] + content[to:]


def _cut_off(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: int(rng.integers(len(content) + 1))]


def _zeroed(content: bytes, rng: np.random.Generator) -> bytes:
    start, stop = sorted(rng.integers(0, len(content) + 1, 2).tolist())
    return content[:start] + bytes(stop - start) + content[stop:]


CHANGES = (
    _other_number,
    _other_number,
    _other_number,
    _other_byte,
    _flipped_bit,
    _piece,
    _cut_out,
    _copied,
    _cut_off,
    _zeroed,
)

"""Chunks of LETOR lines, and the arrays parsed from them."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

import numba
import numpy as np

from ranksieve.data.compression import TextStream
from ranksieve.dtypes import FEATURE, LABEL, OFFSET
from ranksieve.errors import DataError
from ranksieve.kernels import letor as kernel
from ranksieve.kernels.decimals import LARGEST, LINE_FEED

FIRST_BYTES = 1 << 18  # a small first chunk gives the number of features before much is parsed
CHUNK_BYTES = 1 << 23  # enough lines to keep every thread busy, small beside any data set
LINE_BYTES = 1 << 27  # a longer line is not LETOR text
PART_BYTES = 1 << 28  # bytes of features that are parsed at once; larger blocks are parsed in parts
MAX_FEATURES = 65_536  # features are held densely, so one mistyped number must not cost all memory
SERIAL_BYTES = 1 << 16  # waking threads costs more than parsing so little
SEGMENTS_PER_THREAD = 4  # so that others wait little for a slow thread
POWERS = np.array([float(f"1e{power}") for power in range(80)])
BOM = b"\xef\xbb\xbf"
EXAMPLE = "'2 qid:10 1:0.5 3:1'"

# Error messages by the kernel's code; {} is the token in question.
MESSAGES = {
    kernel.BAD_LABEL: f"label {{}} is not a number; LETOR lines look like {EXAMPLE}",
    kernel.LABEL_NOT_FINITE: "label {} is not finite; labels are grades from 0 (not relevant) upwards",
    kernel.LABEL_NEGATIVE: "label {} is negative; labels are grades from 0 (not relevant) upwards",
    kernel.QID_EMPTY: f"the query id in {{}} is empty; LETOR lines look like {EXAMPLE}",
    kernel.BAD_FEATURE: f"{{}} is not a feature; expected 'number:value' as in {EXAMPLE}",
    kernel.FEATURE_ZERO: "feature number 0 in {}; LETOR counts features from 1, so add 1 to every feature number",
    kernel.FEATURE_ORDER: "{} comes twice or out of order; feature numbers must ascend along a line",
    kernel.FEATURE_LARGE: f"the feature number in {{}} is above {MAX_FEATURES}; features are held densely, "
    "so number them without gaps",
    kernel.BAD_VALUE: "the value in {} is not a number; expected a decimal number or nan",
    kernel.VALUE_INFINITE: "the value in {} is infinite; write nan for an unknown value or a large finite number",
}


@dataclass
class Lines:
    """Arrays of the rows of one piece of text, and the text itself for what is not a number."""

    text: bytearray
    start: int
    first_line: int
    features: np.ndarray
    labels: np.ndarray
    spans: np.ndarray
    run_starts: np.ndarray
    n_named: int = 0  # values written in the text

    @property
    def n_docs(self) -> int:
        return len(self.labels)

    def line_of(self, row: int) -> int:
        """The number of a row's line in the file, counted from 1."""
        return self.first_line + self.text.count(b"\n", self.start, int(self.spans[row, kernel.LINE]))

    def token(self, row: int, start: int, stop: int) -> bytes:
        """The text between two of the row's spans."""
        return bytes(self.text[self.spans[row, start] : self.spans[row, stop]])


def chunks(stream: TextStream) -> Iterator[tuple[bytearray, int, int]]:
    """Whole lines of text: a buffer, and the start and stop of its new lines; the last line gets a line feed."""
    text, filled, start = bytearray(FIRST_BYTES), 0, 0
    first = True
    while True:
        room = len(text) - 1  # the last byte is kept for the line feed of the last line
        filled += stream.readinto(memoryview(text)[filled:room])
        ended = filled < room
        if first and text.startswith(BOM):
            start = len(BOM)
        if ended and filled and text[filled - 1] != LINE_FEED:
            text[filled] = LINE_FEED
            filled += 1
        stop = text.rfind(b"\n", 0, filled) + 1
        if stop:
            yield text, start, stop
            first, start = False, 0
        if ended:
            return
        if filled - stop > LINE_BYTES:
            raise DataError(
                f"{stream.path}: a line is longer than {LINE_BYTES >> 20} MiB, so this is not LETOR text; "
                f"expected lines like {EXAMPLE} or a Parquet file"
            )
        rest = text[stop:filled]
        text = bytearray(max(CHUNK_BYTES, 2 * len(rest))) if len(text) < max(CHUNK_BYTES, 2 * len(rest)) else text
        text[: len(rest)] = rest
        filled = len(rest)


def parse(
    path: str, text: bytearray, start: int, stop: int, *, first_line: int, width: int, absent: float
) -> Generator[Lines, None, tuple[int, int]]:
    """The lines of start:stop as arrays at least `width` wide, in halves if their dense rows need too much memory.

    Returns the number of lines and the width in the end.
    """
    buffer = np.frombuffer(text, dtype=np.uint8)
    bounds = _even_bounds(start, stop)
    counts = np.zeros((len(bounds) - 1, 2), dtype=np.int64)
    if len(counts) == 1:
        counts[0] = kernel.count_segment(buffer, start, stop)
    else:
        kernel.count_lines(buffer, bounds, counts)
    n_lines, n_rows = (int(count) for count in counts.sum(axis=0))
    half = len(counts) // 2
    middle = int(bounds[half])
    if n_rows * width * 4 > PART_BYTES and start < middle < stop:
        pieces = ((start, middle, first_line), (middle, stop, first_line + int(counts[:half, 0].sum())))
        for lower, upper, line in pieces:
            _, width = yield from parse(path, text, lower, upper, first_line=line, width=width, absent=absent)
        return n_lines, width
    lines = Lines(
        text,
        start,
        first_line,
        features=np.empty((n_rows, width), dtype=FEATURE),
        labels=np.empty(n_rows, dtype=LABEL),
        spans=np.zeros((n_rows, 5), dtype=np.int64),  # rows after a bad line are not parsed, but their spans are read
        run_starts=np.empty(n_rows, dtype=np.uint8),
    )
    highest = _fill(path, buffer, bounds, counts[:, 1], absent, lines)
    if highest > width:
        del lines
        return (yield from parse(path, text, start, stop, first_line=first_line, width=highest, absent=absent))
    if n_rows:
        yield lines
    return n_lines, width


def _even_bounds(start: int, stop: int) -> np.ndarray:
    n_segments = 1 if stop - start < SERIAL_BYTES else SEGMENTS_PER_THREAD * numba.get_num_threads()
    return np.array([start + (stop - start) * s // n_segments for s in range(n_segments + 1)], dtype=OFFSET)


def _fill(path: str, buffer: np.ndarray, bounds: np.ndarray, sizes: np.ndarray, absent: float, lines: Lines) -> int:
    """Parse into the arrays of `lines`; the highest feature number, or an error about the first bad line."""
    first_rows = np.cumsum(sizes) - sizes
    doubtful = np.zeros(lines.n_docs, dtype=np.uint8)
    reports = np.zeros((len(sizes), 4), dtype=np.int64)
    outputs = (lines.features, lines.labels, lines.spans, doubtful)
    if len(sizes) == 1:
        absent32 = FEATURE(absent)
        kernel.parse_segment(buffer, bounds[0], bounds[1], 0, MAX_FEATURES, absent32, POWERS, *outputs, reports[0])
        kernel.mark_runs(buffer, lines.spans, lines.run_starts)
    else:
        kernel.parse_lines(
            buffer, bounds, first_rows, MAX_FEATURES, FEATURE(absent), POWERS, *outputs, lines.run_starts, reports
        )
    bad = np.flatnonzero(reports[:, 1])
    if len(bad):
        code, place = (int(number) for number in reports[bad[0], 1:3])
        line = lines.first_line + lines.text.count(b"\n", lines.start, place)
        raise DataError(f"{path}:{line}: {_message(lines.text, code, place)}")
    for row in np.flatnonzero(doubtful).tolist():
        _repair(lines, row)
    lines.n_named = int(reports[:, 3].sum())
    return int(reports[:, 0].max())


def _message(text: bytearray, code: int, place: int) -> str:
    end = text.find(b"\n", place, place + 200)
    words = bytes(text[place : end if end >= 0 else place + 200]).split(maxsplit=1)
    token = words[0] if words else b""
    try:
        binary = not token.decode().isprintable()
    except UnicodeDecodeError:
        binary = True
    if binary:
        return (
            f"this is not text (it holds {token[:12]!r}); expected LETOR lines like {EXAMPLE}, "
            "plain or compressed with gzip, xz or zstd, or a Parquet file"
        )
    return MESSAGES[code].format(repr(token[:40].decode(errors="replace")))


def _repair(lines: Lines, row: int) -> None:
    """Parse a row's numbers again with Python's own `float`, exact for any number of digits."""
    start = int(lines.spans[row, kernel.LINE])
    label, *tokens = lines.text[start : lines.text.index(b"\n", start)].split(b"#", 1)[0].split()
    lines.labels[row] = _float32(label)
    for token in tokens:
        number, _, value = token.partition(b":")
        if number != b"qid" and int(number) <= lines.features.shape[1]:
            lines.features[row, int(number) - 1] = _float32(value)


def _float32(text: bytearray) -> float:
    value = float(text)
    return min(max(value, -LARGEST), LARGEST) if value == value else value

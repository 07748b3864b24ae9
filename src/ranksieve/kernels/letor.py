"""LETOR text to arrays: one line, one segment of lines, and the parallel drivers over segments.

The buffer always ends with a line feed, so a scan that stops at one needs no other bound.
"""

from __future__ import annotations

import numpy as np

from ranksieve.kernels.decimals import (
    CARRIAGE_RETURN,
    COLON,
    HASH,
    INFINITE,
    LINE_FEED,
    NINE,
    NOT_A_NUMBER,
    SPACE,
    TAB,
    ZERO,
    parse_number,
)
from ranksieve.kernels.jit import njit
from ranksieve.kernels.parallel import run_parts

# Outcomes of a line; `data.letor_lines` has the message for each.
OK, BAD_LABEL, LABEL_NOT_FINITE, LABEL_NEGATIVE, BAD_FEATURE, FEATURE_ZERO, FEATURE_ORDER, FEATURE_LARGE = range(8)
BAD_VALUE, VALUE_INFINITE, QID_EMPTY = range(8, 11)

# Columns of `spans`: where in the buffer the parts of a row's line lie; -1 where there is none.
LINE, QID, QID_STOP, COMMENT, COMMENT_STOP = range(5)


@njit(cache=True, nogil=True, _nrt=False)
def skip_blanks(buffer, i):
    """The first place from i on that is not a blank."""
    while buffer[i] == SPACE or buffer[i] == TAB or buffer[i] == CARRIAGE_RETURN:
        i += 1
    return i


@njit(cache=True, nogil=True, _nrt=False)
def skip_line(buffer, i):
    """The start of the next line."""
    while buffer[i] != LINE_FEED:
        i += 1
    return i + 1


@njit(cache=True, nogil=True, _nrt=False)
def ends_token(byte):
    """Whether a byte ends a token: white space, `#`, or another control byte, which is refused as the next token."""
    return byte <= SPACE or byte == HASH


@njit(cache=True, nogil=True, _nrt=False)
def parse_label_and_qid(buffer, i, row, powers, labels, span, doubtful):
    """Parse label and query id of a line: where the features begin, the outcome, and where an error is."""
    start = i
    label, i, kind, doubt = parse_number(buffer, i, powers)
    if kind == NOT_A_NUMBER or (kind == 0 and not ends_token(buffer[i])):
        return i, BAD_LABEL, start
    if kind == INFINITE or np.isnan(label):
        return i, LABEL_NOT_FINITE, start
    if label < 0:
        return i, LABEL_NEGATIVE, start
    labels[row] = np.float32(label)
    if doubt:
        doubtful[row] = 1
    i = skip_blanks(buffer, i)
    if buffer[i] == 113 and buffer[i + 1] == 105 and buffer[i + 2] == 100 and buffer[i + 3] == COLON:  # qid:
        i += 4
        span[QID] = i
        while buffer[i] > SPACE:
            i += 1
        span[QID_STOP] = i
        if span[QID] == i:
            return i, QID_EMPTY, i - 4
    return i, OK, i


@njit(cache=True, nogil=True, _nrt=False)
def parse_features(buffer, i, row, limit, absent, powers, features, span, doubtful):
    """Parse `f:v f:v # comment` into a row: end of the line, highest feature, how many, outcome, where an error is."""
    width = features.shape[1]
    highest, named = np.int64(0), np.int64(0)
    while True:
        i = skip_blanks(buffer, i)
        if buffer[i] == LINE_FEED:
            break
        if buffer[i] == HASH:
            span[COMMENT] = i + 1
            i = skip_line(buffer, i) - 1
            span[COMMENT_STOP] = i
            break
        token = i
        number = np.int64(0)
        while buffer[i] >= ZERO and buffer[i] <= NINE:
            number = min(number * 10 + np.int64(buffer[i]) - ZERO, limit + 1)
            i += 1
        if i == token or buffer[i] != COLON:
            return i, highest, named, BAD_FEATURE, token
        if number == 0:
            return i, highest, named, FEATURE_ZERO, token
        if number <= highest:
            return i, highest, named, FEATURE_ORDER, token
        if number > limit:
            return i, highest, named, FEATURE_LARGE, token
        value, i, kind, doubt = parse_number(buffer, i + 1, powers)
        if kind == INFINITE:
            return i, highest, named, VALUE_INFINITE, token
        if kind == NOT_A_NUMBER or not ends_token(buffer[i]):
            return i, highest, named, BAD_VALUE, token
        if doubt:
            doubtful[row] = 1
        # Features ascend, so the gaps are filled on the way and the row needs no clearing first.
        for column in range(highest, min(number - 1, width)):
            features[row, column] = absent
        if number <= width:
            features[row, number - 1] = np.float32(value)
        highest = number
        named += 1
    for column in range(highest, width):
        features[row, column] = absent
    return i + 1, highest, named, OK, i


@njit(cache=True, nogil=True, _nrt=False)
def parse_segment(buffer, start, stop, row, limit, absent, powers, features, labels, spans, doubtful, report):
    """All lines of start:stop into the rows from `row` on; `report`: highest feature, outcome, its place, values."""
    i = start
    while i < stop:
        line = i
        i = skip_blanks(buffer, i)
        if buffer[i] == LINE_FEED or buffer[i] == HASH:
            i = skip_line(buffer, i)
            continue
        span = spans[row]
        span[LINE], span[QID], span[QID_STOP], span[COMMENT], span[COMMENT_STOP] = line, -1, -1, -1, -1
        doubtful[row] = 0
        i, outcome, place = parse_label_and_qid(buffer, i, row, powers, labels, span, doubtful)
        if outcome == OK:
            i, highest, named, outcome, place = parse_features(
                buffer, i, row, limit, absent, powers, features, span, doubtful
            )
            report[0] = max(report[0], highest)
            report[3] += named
        if outcome != OK:
            report[1], report[2] = outcome, place
            return
        row += 1


@njit(cache=True, nogil=True, _nrt=False)
def count_segment(buffer, start, stop):
    """Lines and rows (lines that are neither blank nor a comment) of start:stop."""
    if start == stop:
        return 0, 0
    # One pass without branches, which is vectorised. It is enough unless a line begins with a blank or a comment.
    lines, n_special = 1, 1 if buffer[start] <= SPACE or buffer[start] == HASH else 0
    here, after = buffer[start : stop - 1], buffer[start + 1 : stop]
    for k in range(len(here)):
        ends = here[k] == LINE_FEED
        lines += ends
        n_special += ends & ((after[k] <= SPACE) | (after[k] == HASH))
    if n_special == 0:
        return lines, lines
    lines, rows, i = 0, 0, start
    while i < stop:
        i = skip_blanks(buffer, i)
        rows += buffer[i] != LINE_FEED and buffer[i] != HASH
        lines += 1
        i = skip_line(buffer, i)
    return lines, rows


@njit(cache=True, nogil=True, _nrt=False)
def mark_runs(buffer, spans, starts):
    """starts[r] = 1 where row r has another query id than the row before it."""
    for row in range(len(spans)):
        a, b, size = spans[row - 1, QID], spans[row, QID], spans[row, QID_STOP] - spans[row, QID]
        same = row > 0 and spans[row - 1, QID_STOP] - a == size
        k = 0
        while same and k < size:
            same = buffer[a + k] == buffer[b + k]
            k += 1
        starts[row] = not same


@njit(cache=True, nogil=True)
def count_segments(first, last, buffer, bounds, counts):
    """`count_segment` of the segments first:last."""
    for s in range(first, last):
        counts[s, 0], counts[s, 1] = count_segment(buffer, bounds[s], bounds[s + 1])


@njit(cache=True, nogil=True)
def count_lines(buffer, bounds, counts):
    """counts[s] = lines and rows of segment bounds[s]:bounds[s + 1]; bounds[1:-1] are first moved to line starts."""
    for s in range(1, len(bounds) - 1):
        at = max(bounds[s], bounds[s - 1])
        bounds[s] = at if at == bounds[0] or buffer[at - 1] == LINE_FEED else skip_line(buffer, at)
    run_parts(count_segments, len(bounds) - 1, (buffer, bounds, counts))


@njit(cache=True, nogil=True)
def parse_segments(first, last, buffer, bounds, first_rows, limit, absent, powers, into, reports):
    """`parse_segment` of the segments first:last."""
    features, labels, spans, doubtful = into
    for s in range(first, last):
        parse_segment(buffer, bounds[s], bounds[s + 1], first_rows[s], limit, absent, powers, features, labels, spans,
                      doubtful, reports[s])  # fmt: skip


@njit(cache=True, nogil=True)
def parse_lines(
    buffer, bounds, first_rows, limit, absent, powers, features, labels, spans, doubtful, run_starts, reports
):
    """Every segment's lines into its rows; writes are disjoint, so any number of threads gives the same arrays."""
    into = features, labels, spans, doubtful
    given = buffer, bounds, first_rows, limit, absent, powers, into, reports
    run_parts(parse_segments, len(bounds) - 1, given)
    mark_runs(buffer, spans, run_starts)

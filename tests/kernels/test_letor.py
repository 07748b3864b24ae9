"""Segments of LETOR text, against splitting lines and tokens."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from naive_formats import letor_rows
from ranksieve.kernels import decimals, letor

pytestmark = pytest.mark.skipif(np.__version__ < "2", reason="older versions make floats of uint64 and int")
POWERS = np.array([10.0**power for power in range(309)])
LINES = ["2 qid:10 1:0.5 3:-1.25 # doc7", "0 qid:10 2:1e3", "# a comment", "", "  \t", "1 qid:b", "3.5 1:7 2:8\r",
         "0 qid:b 3:nan #", "\t1 qid:10 1:2"]  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(LINES), max_size=9), st.integers(1, 3))
def test_lines_become_rows(interpreted, lines, width):
    module, front = interpreted(letor, decimals), "5 qid:x\n"
    text = front + "".join(line + "\n" for line in lines)
    buffer = np.frombuffer(text.encode(), np.uint8)
    rows = letor_rows(lines)
    assert module.count_segment(buffer, len(front), len(buffer)) == (len(lines), len(rows))
    n = len(rows)
    features, labels = np.full((n + 1, width), -9, np.float32), np.zeros(n + 1, np.float32)
    spans, doubtful, report = np.zeros((n + 1, 5), int), np.ones(n + 1, np.uint8), np.zeros(4, int)
    with np.errstate(over="ignore"):
        module.parse_segment(
            buffer, len(front), len(buffer), 1, 10, 0.0, POWERS, features, labels, spans, doubtful, report
        )
    assert report.tolist() == [
        max([number for *_, named, _ in rows for number in named], default=0), module.OK, 0,
        sum(len(named) for *_, named, _ in rows),
    ]  # fmt: skip
    for row, (label, id, named, comment) in enumerate(rows, start=1):
        line, start, stop, first, last = spans[row]
        assert labels[row] == label
        np.testing.assert_array_equal(features[row], [named.get(number, 0.0) for number in range(1, width + 1)])
        assert (text[start:stop] if start >= 0 else None) == id
        assert (text[first:last] if first >= 0 else None) == comment
        assert line == 0 or text[line - 1] == "\n"
    starts = np.zeros(n, np.uint8)
    module.mark_runs(buffer, spans[1:], starts)
    ids = [id for _, id, *_ in rows]
    assert starts.tolist() == [row == 0 or ids[row] != ids[row - 1] for row in range(n)]


@pytest.mark.parametrize(
    ("line", "outcome"),
    [("x 1:2", "BAD_LABEL"), ("1x 1:2", "BAD_LABEL"), ("inf 1:2", "LABEL_NOT_FINITE"), ("nan", "LABEL_NOT_FINITE"),
     ("-1 1:2", "LABEL_NEGATIVE"), ("1 qid: 1:2", "QID_EMPTY"), ("1 a:2", "BAD_FEATURE"), ("1 1", "BAD_FEATURE"),
     ("1 0:2", "FEATURE_ZERO"), ("1 2:2 2:3", "FEATURE_ORDER"), ("1 3:2 2:3", "FEATURE_ORDER"),
     ("1 11:2", "FEATURE_LARGE"), ("1 1:x", "BAD_VALUE"), ("1 1:", "BAD_VALUE"), ("1 1:inf", "VALUE_INFINITE")],
)  # fmt: skip
def test_what_is_wrong_with_a_line(interpreted, line, outcome):
    module = interpreted(letor, decimals)
    buffer, report = np.frombuffer(f"0 1:1\n{line}\n2 2:2\n".encode(), np.uint8), np.zeros(4, int)
    into = np.zeros((3, 2), np.float32), np.zeros(3, np.float32), np.zeros((3, 5), int), np.zeros(3, np.uint8)
    with np.errstate(over="ignore"):
        module.parse_segment(buffer, 0, len(buffer), 0, 10, 0.0, POWERS, *into, report)
    assert report[1] == getattr(module, outcome)
    assert 6 <= report[2] < 6 + len(line)


@pytest.mark.parametrize("n_segments", [1, 2, 5])
def test_segments_begin_at_lines_and_count_together(interpreted, n_segments):
    module, text = interpreted(letor), "".join(f"{line}\n" for line in LINES)
    buffer = np.frombuffer(text.encode(), np.uint8)
    bounds, counts = np.linspace(0, len(buffer), n_segments + 1).astype(int), np.zeros((n_segments, 2), int)
    module.count_lines(buffer, bounds, counts)
    assert all(bound == 0 or text[bound - 1] == "\n" for bound in bounds)
    assert counts.sum(axis=0).tolist() == [len(LINES), len(letor_rows(LINES))]

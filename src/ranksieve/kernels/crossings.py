"""How a metric changes while every score moves along a line.

The score of document i is `intercepts[i] + t * slopes[i]`. The metric of a query can only change where two lines
cross. A metric cut at rank k can only change where one of the k best lines is crossed. The sweep keeps the k best in
order. The next crossing is between two neighbours in this order, or between the last one and the first line that
reaches it from below. Equal lines are treated as one line of several documents; these count by the mean over their
orders.

Crossings are computed in rounded arithmetic, so crossings that nearly coincide may be processed in a wrong order. This
is harmless: a line passes another only if it is steeper, so every pair is exchanged at most once, and an exchange that
is overdue is made immediately.
"""

import numpy as np

from ranksieve.kernels.jit import njit
from ranksieve.kernels.metric_kinds import WEIGHTED
from ranksieve.kernels.metrics import expected_sum


@njit(cache=True, nogil=True)
def metric_value(kind, gains, ends, k, weights):
    """A metric of gains in rank order, cut at k; `ends` are the ends of tied groups, as in `kernels.metrics`."""
    if kind != WEIGHTED:
        return expected_sum(kind, gains, ends, k)
    total = 0.0
    depth = min(k, len(gains))
    i = 0
    while i < depth:
        end = ends[i]
        mean = gains[i:end].sum() / (end - i)
        if mean != 0.0:
            for j in range(i, min(end, depth)):
                total += mean * weights[j]
        i = end
    return total


@njit(cache=True, nogil=True)
def candidates(intercepts, slopes, low, high, k):
    """Rows that can be among the k best somewhere in the range.

    At least k lines are never below the k-th largest of the lines' minima, so a line whose maximum is smaller is never
    among the k best.
    """
    n = len(intercepts)
    if n <= k:
        return np.arange(n)
    at_low, at_high = intercepts + low * slopes, intercepts + high * slopes
    floor = np.partition(np.minimum(at_low, at_high), n - k)[n - k]
    floor -= 1e-9 * (1.0 + abs(floor))  # the ends of lines are rounded numbers
    return np.flatnonzero(np.maximum(at_low, at_high) >= floor)


@njit(cache=True, nogil=True)
def sorted_lines(intercepts, slopes, rows, low):
    """Rows sorted by score just after `low`, and where each line of equal rows begins among them."""
    rows = rows[np.argsort(-slopes[rows], kind="mergesort")]
    at_low = intercepts[rows] + low * slopes[rows]
    order = np.argsort(-at_low, kind="mergesort")
    rows, at_low = rows[order], at_low[order]
    starts = np.empty(len(rows) + 1, np.int64)
    n_lines = 0
    for i in range(len(rows)):
        if i == 0 or at_low[i] != at_low[i - 1] or slopes[rows[i]] != slopes[rows[i - 1]]:
            starts[n_lines] = i
            n_lines += 1
    starts[n_lines] = len(rows)
    return rows, starts[: n_lines + 1]


@njit(cache=True, nogil=True)
def crossing(intercepts, slopes, upper, lower):
    """Where the lower of two lines passes the upper one; infinity if it is not steeper."""
    if slopes[lower] <= slopes[upper]:
        return np.inf
    return (intercepts[upper] - intercepts[lower]) / (slopes[lower] - slopes[upper])


@njit(cache=True, nogil=True)
def first_from_below(intercepts, slopes, inside, last):
    """Which line outside the ranking passes its last one first, and where; -1 if none does."""
    best, when = -1, np.inf
    height, slope = intercepts[last], slopes[last]
    for line in range(len(slopes)):
        if slopes[line] > slope and not inside[line]:
            at = (height - intercepts[line]) / (slopes[line] - slope)
            if at < when:
                best, when = line, at
    return best, when


@njit(cache=True, nogil=True)
def ranked_gains(ranking, starts, gains, out_gains, out_ends):
    """The gains of the documents of ranked lines, and the ends of their tied groups; returns how many they are."""
    n = 0
    for line in ranking:
        end = n + starts[line + 1] - starts[line]
        for place in range(starts[line], starts[line + 1]):
            out_gains[n] = gains[place]
            out_ends[n] = end
            n += 1
    return n


@njit(cache=True, nogil=True)
def common_gains(starts, gains, out):
    """The gain that all documents of a line have in common; NaN where their gains differ."""
    for line in range(len(out)):
        out[line] = gains[starts[line]]
        for place in range(starts[line] + 1, starts[line + 1]):
            if gains[place] != gains[starts[line]]:
                out[line] = np.nan


@njit(cache=True, nogil=True)
def sweep_query(intercepts, slopes, gains, low, high, k, kind, weights, times, deltas, n_events):
    """Append where the metric of one query changes between low and high, and by how much.

    Returns its value just after low, and the lists of events, which may have moved to larger arrays.
    """
    rows, starts = sorted_lines(intercepts, slopes, candidates(intercepts, slopes, low, high, k), low)
    n_lines = len(starts) - 1
    intercepts, slopes, gains = intercepts[rows[starts[:-1]]], slopes[rows[starts[:-1]]], gains[rows]
    common = np.empty(n_lines)
    common_gains(starts, gains, common)
    depth = 1
    while depth < n_lines and starts[depth] < k:
        depth += 1
    n_docs = starts[depth]  # documents of the ranked lines; the last line begins above rank k
    ranking = np.empty(min(k, n_lines) + 2, np.int64)
    ranking[:depth] = np.arange(depth)
    inside = np.zeros(n_lines, np.bool_)
    inside[:depth] = True
    when = np.full(len(ranking), np.inf)  # when[i]: where the line of rank i + 1 passes that of rank i
    for i in range(depth - 1):
        when[i] = crossing(intercepts, slopes, i, i + 1)
    entering, entry = first_from_below(intercepts, slopes, inside, depth - 1)
    ranked, ends = np.empty(len(gains)), np.empty(len(gains), np.int64)
    n = ranked_gains(ranking[:depth], starts, gains, ranked, ends)
    first = value = metric_value(kind, ranked[:n], ends[:n], k, weights)
    now = low
    while True:
        i = int(np.argmin(when[:depth]))
        enters = entry < when[i]
        now = max(now, entry if enters else when[i])
        if not now < high:
            return first, times, deltas, n_events
        last = ranking[depth - 1]
        if enters:  # the line passes the last one: it is appended and then exchanged with it
            i = depth - 1
            ranking[depth] = entering
            inside[entering] = True
            n_docs += starts[entering + 1] - starts[entering]
            depth += 1
        upper, lower = ranking[i], ranking[i + 1]
        ranking[i], ranking[i + 1] = lower, upper
        end = ranking[depth - 1]
        if n_docs - (starts[end + 1] - starts[end]) >= k:
            inside[end] = False
            n_docs -= starts[end + 1] - starts[end]
            depth -= 1
        for j in range(max(i - 1, 0), min(i + 2, depth - 1)):
            when[j] = crossing(intercepts, slopes, ranking[j], ranking[j + 1])
        when[depth - 1] = np.inf
        if ranking[depth - 1] != last or enters:
            entering, entry = first_from_below(intercepts, slopes, inside, ranking[depth - 1])
        if common[lower] == common[upper]:
            continue
        n = ranked_gains(ranking[:depth], starts, gains, ranked, ends)
        changed = metric_value(kind, ranked[:n], ends[:n], k, weights)
        if changed != value:
            if n_events == len(times):
                times = np.concatenate((times, np.empty_like(times)))
                deltas = np.concatenate((deltas, np.empty_like(deltas)))
            times[n_events], deltas[n_events] = now, changed - value
            n_events += 1
            value = changed


@njit(cache=True, nogil=True)
def sweep_queries(intercepts, slopes, gains, offsets, scales, low, high, k, kind, weights, out_first):
    """Where the summed metric of some queries changes between low and high, and by how much.

    `scales[q]` multiplies a query's metric; queries with scale 0 are left out. Each query's value just after low goes
    to `out_first`. Returns where the metric changes, query by query, and the changes.
    """
    times, deltas, n_events = np.empty(1024), np.empty(1024), 0
    for q in range(len(offsets) - 1):
        start, stop = offsets[q], offsets[q + 1]
        out_first[q] = 0.0
        if scales[q] == 0.0 or stop == start:
            continue
        before = n_events
        first, times, deltas, n_events = sweep_query(
            intercepts[start:stop], slopes[start:stop], gains[start:stop], low, high, min(k, stop - start), kind,
            weights, times, deltas, n_events,
        )  # fmt: skip
        out_first[q] = first * scales[q]
        for i in range(before, n_events):
            deltas[i] *= scales[q]
    return times[:n_events], deltas[:n_events]

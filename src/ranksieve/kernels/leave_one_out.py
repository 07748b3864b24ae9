"""What a metric becomes when one tree leaves a forest or changes its weight, for all trees at once.

A tree moves two documents against each other by at most the difference of its largest and its smallest leaf, its
*reach*. Documents further apart than that keep their order, and a document further than that below the k-th cannot
enter the first k: all the loops here look only at what can move. Scores and `terms` are as in `kernels.pruning`.

Eight variants of a list are ranked side by side, one in each lane: variant l of document j is `x[8 * j + l]`.
"""

import numpy as np
from numba import uintp

from ranksieve.kernels.jit import njit
from ranksieve.kernels.lanes import add_words, count_larger, load_words, no_words, store
from ranksieve.kernels.offsets import longest_piece
from ranksieve.kernels.parallel import run_parts
from ranksieve.kernels.pruning import FAR, value_of

LANES = 8


@njit(cache=True, nogil=True)
def sort_again(rows, scores):
    """Best first; cheap where little has moved."""
    for i in range(1, len(scores)):
        score, row, j = scores[i], rows[i], i
        while j > 0 and scores[j - 1] < score:
            scores[j], rows[j] = scores[j - 1], rows[j - 1]
            j -= 1
        scores[j], rows[j] = score, row


@njit(cache=True, nogil=True)
def current_total(grades, terms, width, among):
    """The sum of terms of a list whose documents stand best first."""
    total, gaining = np.int64(0), 0
    for rank in range(min(len(grades), width - 1)):
        if grades[rank] >= 0:
            total += terms[(gaining if among else grades[rank]) * width + rank]
            gaining += 1
    return total


@njit(cache=True, nogil=True)
def smallest_gap(scores, grades, k):
    """The smallest distance from one of the first k documents to one of another grade below it.

    The grades of the first k change only if two such documents change places.
    """
    gap, place = FAR, len(grades)
    for i in range(len(grades) - 2, -1, -1):
        if grades[i + 1] != grades[i]:
            place = i + 1
        if i < k and place < len(grades):
            gap = min(gap, scores[i] - scores[place])
    return gap


@njit(cache=True, nogil=True)
def within(scores, k, reach):
    """How many documents, best first, may stand among the first k after a change of that reach."""
    n = len(scores)
    if n <= k:
        return n
    low, high, floor = k, n, scores[k - 1] - reach
    while low < high:
        middle = (low + high) // 2
        if scores[middle] >= floor:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def lane_totals(x, scores, grades, n, reach, terms, width, among, counts, totals):
    """The sum of terms of eight variants of a list; scores before the change stand best first."""
    k, low, high, gaining = width - 1, 0, 0, 0
    totals[:LANES] = 0
    for i in range(n):
        grade = grades[i]
        if grade < 0:
            continue
        while scores[low] - scores[i] > reach:  # surely above
            gaining += grades[low] >= 0
            low += 1
        if low >= k:
            break
        while high < n and scores[i] - scores[high] <= reach:
            high += 1
        mine, above = load_words(x, LANES * i), no_words()
        for j in range(low, i):
            above = count_larger(above, load_words(x, LANES * j), mine)
        for j in range(i + 1, high):
            above = count_larger(above, load_words(x, LANES * j), mine)
        store(counts, 0, above)
        if among:
            above = no_words()
            for j in range(low, high):
                if j != i and grades[j] >= 0:
                    above = count_larger(above, load_words(x, LANES * j), mine)
            store(counts, LANES, above)
            for lane in range(LANES):
                rank, row = low + counts[lane], gaining + counts[LANES + lane]
                if rank < k:  # else there may be more documents above than rows
                    totals[lane] += terms[uintp(row * width + rank)]
        else:
            first = grade * width
            for lane in range(LANES):
                totals[lane] += terms[uintp(first + min(low + counts[lane], k))]


@njit(cache=True, nogil=True)
def some_changes_without(first, last, leaves, trees, reaches, table, starts, gone, pools, metric, out):
    """`changes_without` of the parts first:last: part p takes every n-th list from p on, n = len(out)."""
    pool_offsets, pool_rows, pool_scores = pools
    grades, terms, width, among, scales = metric
    k, n_lists = width - 1, len(pool_offsets) - 1
    flat, n_columns = leaves.reshape(leaves.size), leaves.shape[1]
    most = longest_piece(pool_offsets)
    for part in range(first, last):
        x, mine = np.empty(LANES * most, np.int64), np.empty(most, np.int64)
        counts, totals = np.empty(2 * LANES, np.int64), np.empty(LANES, np.int64)
        first_leaf, columns = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
        for q in range(part, n_lists, len(out)):
            start, stop = pool_offsets[q], pool_offsets[q + 1]
            rows, scores = pool_rows[start:stop], pool_scores[start:stop]
            if gone >= 0:
                for j in range(len(rows)):
                    scores[j] -= table[starts[gone] + leaves[rows[j], gone]]
                sort_again(rows, scores)
            n_seen = within(scores, k, reaches[0])
            for j in range(n_seen):
                mine[j] = grades[rows[j]]
            gap = smallest_gap(scores[:n_seen], mine[:n_seen], k)
            now = value_of(current_total(mine[:n_seen], terms, width, among), scales[q])
            for group in range(0, len(trees), LANES):
                reach = reaches[group]
                if gap > reach:
                    break
                for lane in range(LANES):
                    columns[lane] = trees[min(group + lane, len(trees) - 1)]
                    first_leaf[lane] = starts[columns[lane]]
                n = within(scores[:n_seen], k, reach)
                for j in range(n):
                    row, score = uintp(rows[j]) * uintp(n_columns), scores[j]
                    for lane in range(LANES):
                        leaf = uintp(flat[row + uintp(columns[lane])])
                        x[uintp(LANES * j + lane)] = score - table[uintp(first_leaf[lane]) + leaf]
                lane_totals(x, scores, mine, n, reach, terms, width, among, counts, totals)
                for lane in range(min(LANES, len(trees) - group)):
                    out[part, group + lane] += value_of(totals[lane], scales[q]) - now


@njit(cache=True, nogil=True)
def changes_without(leaves, trees, reaches, table, starts, gone, pool_offsets, pool_rows, pool_scores, metric, out):
    """What the metric gains, in whole steps, when each one of `trees` leaves; reaches must not rise along them.

    First tree `gone` (unless -1) leaves the pools. `out[part]` holds the sums of every n-th list, n = len(out).
    The pools are the documents that can matter, best first. `metric` is (grades, terms, width, among, scales).
    """
    pools = pool_offsets, pool_rows, pool_scores
    run_parts(some_changes_without, len(out), (leaves, trees, reaches, table, starts, gone, pools, metric, out))


@njit(cache=True, nogil=True)
def some_changes_with(first, last, leaves, trees, reaches, tables, starts, pools, metric, out):
    """`changes_with` of the parts first:last: part p takes every n-th list from p on, n = len(out)."""
    pool_offsets, pool_rows, pool_scores = pools
    grades, terms, width, among, scales = metric
    k, n_lists, n_weights = width - 1, len(pool_offsets) - 1, out.shape[2]
    flat, n_columns = leaves.reshape(leaves.size), leaves.shape[1]
    furthest = reaches.max() if reaches.size else 0
    most = longest_piece(pool_offsets)
    for part in range(first, last):
        x, mine = np.empty(LANES * most, np.int64), np.empty(most, np.int64)
        counts, totals = np.empty(2 * LANES, np.int64), np.empty(LANES, np.int64)
        for q in range(part, n_lists, len(out)):
            start, stop = pool_offsets[q], pool_offsets[q + 1]
            rows, scores = pool_rows[start:stop], pool_scores[start:stop]
            n_seen = within(scores, k, furthest)
            for j in range(n_seen):
                mine[j] = grades[rows[j]]
            gap = smallest_gap(scores[:n_seen], mine[:n_seen], k)
            now = value_of(current_total(mine[:n_seen], terms, width, among), scales[q])
            for i in range(len(trees)):
                t = trees[i]
                for group in range(reaches.shape[1]):
                    reach = reaches[i, group]
                    if gap > reach:
                        continue
                    n = within(scores[:n_seen], k, reach)
                    for j in range(n):
                        leaf = np.int64(flat[uintp(rows[j]) * uintp(n_columns) + uintp(t)])
                        place = (starts[t] + leaf) * n_weights + LANES * group
                        for lane in range(LANES):
                            x[uintp(LANES * j + lane)] = scores[j] + tables[uintp(place + lane)]
                    lane_totals(x, scores, mine, n, reach, terms, width, among, counts, totals)
                    for lane in range(LANES):
                        out[part, i, LANES * group + lane] += value_of(totals[lane], scales[q]) - now


@njit(cache=True, nogil=True)
def changes_with(leaves, trees, reaches, tables, starts, pool_offsets, pool_rows, pool_scores, metric, out):
    """What the metric gains, in whole steps, when each tree alone takes each of its other weights.

    `tables[(starts[t] + leaf) * n_weights + w]` is the change of an output under weight w, `reaches[i, group]` the
    largest reach of eight weights of `trees[i]`. `out[part, i, w]` holds the sums of every n-th list, n = len(out).
    """
    pools = pool_offsets, pool_rows, pool_scores
    run_parts(some_changes_with, len(out), (leaves, trees, reaches, tables, starts, pools, metric, out))


@njit(cache=True, nogil=True)
def some_values_along(first, last, leaves, trees, tables, starts, base, pools, metric, out):
    """`values_along` of the parts first:last: part p takes every n-th list from p on, n = len(out)."""
    pool_offsets, pool_rows, pool_scores = pools
    grades, terms, width, among, scales = metric
    n_lists, n_weights = len(pool_offsets) - 1, out.shape[1]
    flat, n_columns = leaves.reshape(leaves.size), leaves.shape[1]
    most = longest_piece(pool_offsets)
    for part in range(first, last):
        x, mine = np.empty(LANES * most, np.int64), np.empty(most, np.int64)
        counts, totals = np.empty(2 * LANES, np.int64), np.empty(LANES, np.int64)
        for q in range(part, n_lists, len(out)):
            start, n = pool_offsets[q], pool_offsets[q + 1] - pool_offsets[q]
            scores = pool_scores[start : start + n]
            for j in range(n):
                mine[j] = grades[pool_rows[start + j]]
            for group in range(n_weights // LANES):
                for j in range(n):
                    row = pool_rows[start + j]
                    for lane in range(LANES):
                        counts[lane] = base[row]
                    total = load_words(counts, 0)
                    for i in range(len(trees)):
                        t = trees[i]
                        leaf = np.int64(flat[uintp(row) * uintp(n_columns) + uintp(t)])
                        total = add_words(total, load_words(tables, (starts[t] + leaf) * n_weights + LANES * group))
                    store(x, LANES * j, total)
                lane_totals(x, scores, mine, n, FAR, terms, width, among, counts, totals)
                for lane in range(LANES):
                    out[part, LANES * group + lane] += value_of(totals[lane], scales[q])


@njit(cache=True, nogil=True)
def values_along(leaves, trees, tables, starts, base, pool_offsets, pool_rows, pool_scores, metric, out):
    """The metric, in whole steps, of eight forests of the same trees at a time, the lists cut to pools.

    `tables[(starts[t] + leaf) * n_weights + w]` is an output in forest w. `out[part, w]` holds the sums of every n-th
    list, n = len(out).
    """
    pools = pool_offsets, pool_rows, pool_scores
    run_parts(some_values_along, len(out), (leaves, trees, tables, starts, base, pools, metric, out))

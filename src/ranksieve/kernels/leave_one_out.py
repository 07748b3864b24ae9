"""What a metric becomes when one tree is removed from a forest or changes its weight, for all trees at once.

The *reach* of a tree is the difference of its largest and its smallest leaf. Removing it changes the difference of two
scores by at most the reach. Documents further apart keep their order, and a document further below the k-th one cannot
enter the first k. The loops here look only at documents that can move, those of the pools. Scores are as in
`kernels.pruning`.

Eight variants of a list are ranked side by side, one in each lane: variant l of document j is `x[8 * j + l]`.

Arrays are taken out of tuples before loops, as each access counts references. Work space is allocated in the functions
whose loops use it: so the compiler knows that it overlaps nothing.
"""

import numpy as np
from numba import uintp

from ranksieve.kernels.jit import njit
from ranksieve.kernels.lanes import add_words, count_larger, load_words, no_words, store
from ranksieve.kernels.offsets import longest_piece
from ranksieve.kernels.parallel import run_parts
from ranksieve.kernels.pruning import FAR, sum_of_terms, value_of

LANES = 8


@njit(cache=True, nogil=True)
def sort_again(rows, scores):
    """Sort by insertion, best first; fast where little has moved."""
    for i in range(1, len(scores)):
        score, row, j = scores[i], rows[i], i
        while j > 0 and scores[j - 1] < score:
            scores[j], rows[j] = scores[j - 1], rows[j - 1]
            j -= 1
        scores[j], rows[j] = score, row


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
    """How many of the documents, best first, may be among the first k after a change of this reach."""
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
def lane_totals(x, scores, grades, n, reach, terms, counts, totals):
    """The sum of terms of eight variants of a list; `scores` are those before the change, best first."""
    values, width, low, high, gaining = terms.values, terms.width, 0, 0, 0
    k = width - 1
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
        if terms.among:
            above = no_words()
            for j in range(low, high):
                if j != i and grades[j] >= 0:
                    above = count_larger(above, load_words(x, LANES * j), mine)
            store(counts, LANES, above)
            for lane in range(LANES):
                rank, row = low + counts[lane], gaining + counts[LANES + lane]
                if rank < k:  # else there may be more documents above than rows
                    totals[lane] += values[uintp(row * width + rank)]
        else:
            first = grade * width
            for lane in range(LANES):
                totals[lane] += values[uintp(first + min(low + counts[lane], k))]


@njit(cache=True, nogil=True)
def seen_of(rows, scores, q, reach, terms, mine):
    """What a change of this reach can move in the pool of list q: how many documents, and their grades into `mine`.

    Returns also the smallest gap between documents of different grades, and the metric of the list as it is.
    """
    grades, k = terms.grades, terms.width - 1
    n = within(scores, k, reach)
    for j in range(n):
        mine[j] = grades[rows[j]]
    now = value_of(sum_of_terms(mine[:n], terms), terms.scales[q])
    return n, smallest_gap(scores[:n], mine[:n], k), now


@njit(cache=True, nogil=True)
def some_changes_without(first, last, leaves, trees, reaches, table, starts, gone, pools, terms, out):
    """`changes_without` of the parts first:last: part p takes every n-th list from p on, n = len(out)."""
    k, scales, n_lists = terms.width - 1, terms.scales, len(pools.offsets) - 1
    flat, n_columns = leaves.reshape(leaves.size), leaves.shape[1]
    most = longest_piece(pools.offsets)
    for part in range(first, last):
        x, mine = np.empty(LANES * most, np.int64), np.empty(most, np.int64)
        counts, totals = np.empty(2 * LANES, np.int64), np.empty(LANES, np.int64)
        first_leaf, columns = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
        for q in range(part, n_lists, len(out)):
            start, stop = pools.offsets[q], pools.offsets[q + 1]
            rows, scores = pools.rows[start:stop], pools.scores[start:stop]
            for t in gone:
                for j in range(len(rows)):
                    scores[j] -= table[starts[t] + leaves[rows[j], t]]
            if len(gone):
                sort_again(rows, scores)
            n_seen, gap, now = seen_of(rows, scores, q, reaches[0], terms, mine)
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
                lane_totals(x, scores, mine, n, reach, terms, counts, totals)
                for lane in range(min(LANES, len(trees) - group)):
                    out[part, group + lane] += value_of(totals[lane], scales[q]) - now


@njit(cache=True, nogil=True)
def changes_without(leaves, trees, reaches, table, starts, gone, pools, terms, out):
    """What the metric gains, in whole steps, by removing each one of `trees`; `reaches` must not rise along them.

    First, the trees `gone` are removed from the scores of the pools. `out[part]` holds the sums of every n-th list,
    n = len(out).
    """
    run_parts(some_changes_without, len(out), (leaves, trees, reaches, table, starts, gone, pools, terms, out))


@njit(cache=True, nogil=True)
def some_changes_with(first, last, leaves, trees, reaches, tables, starts, pools, terms, out):
    """`changes_with` of the parts first:last: part p takes every n-th list from p on, n = len(out)."""
    k, scales, n_lists, n_weights = terms.width - 1, terms.scales, len(pools.offsets) - 1, out.shape[2]
    flat, n_columns = leaves.reshape(leaves.size), leaves.shape[1]
    furthest = reaches.max() if reaches.size else 0
    most = longest_piece(pools.offsets)
    for part in range(first, last):
        x, mine = np.empty(LANES * most, np.int64), np.empty(most, np.int64)
        counts, totals = np.empty(2 * LANES, np.int64), np.empty(LANES, np.int64)
        for q in range(part, n_lists, len(out)):
            start, stop = pools.offsets[q], pools.offsets[q + 1]
            rows, scores = pools.rows[start:stop], pools.scores[start:stop]
            n_seen, gap, now = seen_of(rows, scores, q, furthest, terms, mine)
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
                    lane_totals(x, scores, mine, n, reach, terms, counts, totals)
                    for lane in range(LANES):
                        out[part, i, LANES * group + lane] += value_of(totals[lane], scales[q]) - now


@njit(cache=True, nogil=True)
def changes_with(leaves, trees, reaches, tables, starts, pools, terms, out):
    """What the metric gains, in whole steps, when each tree alone takes each of its other weights.

    `tables[(starts[t] + leaf) * n_weights + w]` is the change of an output under weight w, `reaches[i, group]` the
    largest reach of eight weights of `trees[i]`. `out[part, i, w]` holds the sums of every n-th list, n = len(out).
    """
    run_parts(some_changes_with, len(out), (leaves, trees, reaches, tables, starts, pools, terms, out))


@njit(cache=True, nogil=True)
def some_values_along(first, last, leaves, trees, tables, starts, base, pools, terms, out):
    """`values_along` of the parts first:last: part p takes every n-th list from p on, n = len(out)."""
    grades, scales, n_lists, n_weights = terms.grades, terms.scales, len(pools.offsets) - 1, out.shape[1]
    flat, n_columns = leaves.reshape(leaves.size), leaves.shape[1]
    most = longest_piece(pools.offsets)
    for part in range(first, last):
        x, mine = np.empty(LANES * most, np.int64), np.empty(most, np.int64)
        counts, totals = np.empty(2 * LANES, np.int64), np.empty(LANES, np.int64)
        for q in range(part, n_lists, len(out)):
            start, stop = pools.offsets[q], pools.offsets[q + 1]
            rows, scores, n = pools.rows[start:stop], pools.scores[start:stop], stop - start
            for j in range(n):
                mine[j] = grades[rows[j]]
            for group in range(n_weights // LANES):
                for j in range(n):
                    row = rows[j]
                    for lane in range(LANES):
                        counts[lane] = base[row]
                    total = load_words(counts, 0)
                    for i in range(len(trees)):
                        t = trees[i]
                        leaf = np.int64(flat[uintp(row) * uintp(n_columns) + uintp(t)])
                        total = add_words(total, load_words(tables, (starts[t] + leaf) * n_weights + LANES * group))
                    store(x, LANES * j, total)
                lane_totals(x, scores, mine, n, FAR, terms, counts, totals)
                for lane in range(LANES):
                    out[part, LANES * group + lane] += value_of(totals[lane], scales[q])


@njit(cache=True, nogil=True)
def values_along(leaves, trees, tables, starts, base, pools, terms, out):
    """The metric, in whole steps, of eight forests of the same trees at a time, the lists cut to pools.

    `tables[(starts[t] + leaf) * n_weights + w]` is an output in forest w. `out[part, w]` holds the sums of every n-th
    list, n = len(out).
    """
    run_parts(some_values_along, len(out), (leaves, trees, tables, starts, base, pools, terms, out))

"""Features of a candidate that need positions: windows, phrases, and query terms near each other."""

import numpy as np

from ranksieve.kernels.jit import njit

# The features; `data/index_features.py` says what each is.
WINDOW, SPAN, FIRST, BIGRAMS, RUN, PHRASE, ORDERED, UNORDERED, NEARNESS = range(9)
N_PROXIMITY = 9
NEAR = 8  # positions between matches that count as ordered or unordered pairs

DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)  # its 64 windows of six bits are all different, see `_bit_numbers`


def _bit_numbers():
    """`numbers[(2^bit * DE_BRUIJN mod 2^64) >> 58] = bit`: the number of a single set bit by one multiplication."""
    numbers = np.zeros(64, np.int64)
    for bit in range(64):
        numbers[((1 << bit) * int(DE_BRUIJN) & (1 << 64) - 1) >> 58] = bit
    return numbers


BIT_NUMBERS = _bit_numbers()


@njit(cache=True, nogil=True)
def mark_positions(positions, start, tf, slot, bits, marks):
    """Unpack the positions of an entry: set their bits and store the term at each; returns the last position."""
    place = np.int64(0)
    k = start
    for _ in range(tf):
        gap, shift = np.int64(0), 0
        while positions[k] >= 128:
            gap |= np.int64(positions[k] & 127) << shift
            shift += 7
            k += 1
        place += gap | (np.int64(positions[k]) << shift)
        k += 1
        bits[place >> 6] |= np.uint64(1) << np.uint64(place & 63)
        marks[place] = slot
    return place


@njit(cache=True, nogil=True)
def collect(bits, marks, last, bit_numbers, places, slots):
    """Marked positions in ascending order, and their terms; the bits are cleared. Returns how many."""
    n = 0
    for word in range((last >> 6) + 1):
        rest = bits[word]
        bits[word] = 0
        while rest:
            lowest = rest & (~rest + np.uint64(1))
            place = (word << 6) + bit_numbers[(lowest * DE_BRUIJN) >> np.uint64(58)]
            places[n], slots[n] = place, marks[place]
            n += 1
            rest ^= lowest
    return n


@njit(cache=True, nogil=True)
def shortest_window(places, slots, n_terms, counts):
    """Length of the shortest stretch that holds all n_terms terms; `counts` is zero before and after."""
    shortest = places[-1] - places[0] + 1
    have, left = 0, 0
    for right in range(len(places)):
        if counts[slots[right]] == 0:
            have += 1
        counts[slots[right]] += 1
        while have == n_terms and counts[slots[left]] > 1:
            counts[slots[left]] -= 1
            left += 1
        if have == n_terms:
            shortest = min(shortest, places[right] - places[left] + 1)
    for k in range(left, len(places)):
        counts[slots[k]] = 0
    return shortest


@njit(cache=True, nogil=True)
def add_runs(places, slots, place_starts, query_places, span, query_slots, runs, paired, row):
    """Stretches of the query that the text repeats word by word.

    The query has the term `query_slots[i]` at its place i of `span`; `paired` gets which of its places were found
    right behind the one before. `runs[i]` is how long the stretch is that ends at place i of the query and at the
    match before; a match that follows none has stretches of one.
    """
    paired[:span] = False
    fresh, longest, phrases, bigrams = True, 1, 0, 0
    for k in range(len(places)):
        if k == 0 or places[k] != places[k - 1] + 1:
            fresh = True
            phrases += span == 1
            continue
        slot = slots[k]
        # from the last place to the first: place i reads what the match before left at place i - 1
        for j in range(place_starts[slot + 1] - 1, place_starts[slot] - 1, -1):
            i = query_places[j]
            run = 1
            if i > 0 and query_slots[i - 1] == slots[k - 1]:
                run = 2 if fresh else runs[i - 1] + 1
                if not paired[i]:
                    paired[i] = True
                    bigrams += 1
            runs[i] = run
            longest = max(longest, run)
            phrases += run == span
        fresh = False
    row[RUN], row[PHRASE], row[BIGRAMS] = longest, phrases, bigrams


@njit(cache=True, nogil=True)
def add_neighbours(places, slots, place_starts, query_places, idf, row):
    """Pairs of neighbouring matches of different terms."""
    nearness, unordered, ordered = 0.0, 0, 0
    for k in range(1, len(places)):
        a, b = slots[k - 1], slots[k]
        if a != b:
            distance = places[k] - places[k - 1]
            nearness += idf[a] * idf[b] / (distance * distance)
            if distance <= NEAR:
                unordered += 1
                ordered += query_places[place_starts[a]] < query_places[place_starts[b]]
    row[NEARNESS], row[UNORDERED], row[ORDERED] = nearness, unordered, ordered


@njit(cache=True, nogil=True)
def proximity_features(places, slots, n_terms, place_starts, query_places, span, query_slots, idf, counts, runs,
                       paired, row):  # fmt: skip
    """Features of one candidate in one field, from its matches sorted by position.

    WINDOW, SPAN and FIRST are NaN where there is no match.
    """
    if len(places) == 0:
        row[WINDOW] = row[SPAN] = row[FIRST] = np.nan
        return
    row[WINDOW] = shortest_window(places, slots, n_terms, counts)
    row[SPAN] = places[-1] - places[0] + 1
    row[FIRST] = places[0]
    add_runs(places, slots, place_starts, query_places, span, query_slots, runs, paired, row)
    add_neighbours(places, slots, place_starts, query_places, idf, row)

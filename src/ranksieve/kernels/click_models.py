"""Compiled loops of click models: what users examined, given their clicks. NumPy adds the results, in one order."""

import numpy as np
from numba import prange

from ranksieve.kernels.jit import njit

SMALLEST = 1e-6  # probabilities keep this distance from 0 and 1


@njit(cache=True, nogil=True)
def clipped(p):
    """A probability, kept away from 0 and 1, so that it and 1 minus it have logarithms."""
    return min(max(p, SMALLEST), 1.0 - SMALLEST)


@njit(cache=True, nogil=True, parallel=True, error_model="numpy")
def expected_examinations(pairs, places, shown, clicked, attraction, examination, out, logs):
    """Position-based model: expected examinations of each cell, and its log-likelihood.

    A clicked document was examined. One that was not clicked was examined with probability θ(1 - α) / (1 - αθ).
    """
    for i in prange(len(pairs)):
        a, e = attraction[pairs[i]], examination[places[i]]
        p = clipped(a * e)
        out[i] = clicked[i] + (shown[i] - clicked[i]) * e * (1.0 - a) / (1.0 - p)
        logs[i] = clicked[i] * np.log(p) + (shown[i] - clicked[i]) * np.log(1.0 - p)


@njit(cache=True, nogil=True, parallel=True)
def until_click(offsets, clicks, last, out):
    """Which rows were examined if a user reads from the top to the first (`last` is False) or the last click.

    Pages without clicks were examined to the end.
    """
    for page in prange(len(offsets) - 1):
        start, stop = offsets[page], offsets[page + 1]
        end = stop
        for row in range(start, stop):
            if clicks[row] and (last or end == stop):
                end = row + 1
        for row in range(start, stop):
            out[row] = row < end


@njit(cache=True, nogil=True)
def no_more_clicks(attraction, continuation):
    """For each row of a page: the chance of no click from it on, if it is examined."""
    chances = np.empty(len(attraction))
    goes_on = 1.0
    for row in range(len(attraction) - 1, -1, -1):
        chances[row] = (1.0 - attraction[row]) * goes_on
        goes_on = continuation * chances[row] + 1.0 - continuation
    return chances


@njit(cache=True, nogil=True, parallel=True, error_model="numpy")
def browsing_posteriors(offsets, clicks, attraction, satisfaction, continuation, examined, satisfied, chains):
    """Dynamic Bayesian network: the chance that each row was examined, and that it satisfied, given the page's clicks.

    All rows up to the last click were examined. Only the last click may have satisfied. `chains` has for each page the
    expected number of decisions whether to go on, how many of them were to go on, and the log-likelihood of the clicks.
    """
    for page in prange(len(offsets) - 1):
        start, stop = offsets[page], offsets[page + 1]
        last = start - 1
        for row in range(start, stop):
            if clicks[row]:
                last = row
        quiet = no_more_clicks(attraction[start:stop], continuation)
        decisions = went_on = log = 0.0
        for row in range(start, stop):
            examined[row] = 1.0 if row <= last else 0.0
            satisfied[row] = 0.0
        for row in range(start, last):
            decisions += 1.0
            went_on += 1.0
            log += np.log(clipped(attraction[row])) if clicks[row] else np.log(clipped(1.0 - attraction[row]))
            log += np.log(clipped(continuation)) + (np.log(clipped(1.0 - satisfaction[row])) if clicks[row] else 0.0)
        reach = 1.0  # the chance that the next row was examined
        if last >= start:
            s = satisfaction[last]
            log += np.log(clipped(attraction[last]))
            if last + 1 < stop:
                silent = continuation * quiet[last + 1 - start] + 1.0 - continuation
                total = max(s + (1.0 - s) * silent, SMALLEST)
                satisfied[last] = s / total
                reach = (1.0 - s) * continuation * quiet[last + 1 - start] / total
                decisions += 1.0 - satisfied[last]
                went_on += reach
                log += np.log(total)
            else:
                satisfied[last] = s
        else:
            log += np.log(clipped(quiet[0]))
        for row in range(last + 1, stop):
            examined[row] = reach
            if row + 1 < stop:
                going = continuation * quiet[row + 1 - start]
                decisions += reach
                reach *= going / max(going + 1.0 - continuation, SMALLEST)
                went_on += reach
        chains[page, 0], chains[page, 1], chains[page, 2] = decisions, went_on, log


@njit(cache=True, nogil=True, parallel=True, error_model="numpy")
def browsing_clicks(offsets, clicks, attraction, satisfaction, continuation, full, conditional):
    """The chance of a click on each row if users read from the top: `full` is the chance before the page is shown,
    `conditional` the chance given the clicks above the row."""
    for page in prange(len(offsets) - 1):
        ahead = seen = 1.0
        for row in range(offsets[page], offsets[page + 1]):
            a, s = attraction[row], satisfaction[row]
            full[row] = clipped(a * ahead)
            ahead *= continuation * (1.0 - a * s)
            conditional[row] = clipped(a * seen)
            if clicks[row]:
                seen = continuation * (1.0 - s)
            else:
                seen *= continuation * (1.0 - a) / (1.0 - conditional[row])


@njit(cache=True, nogil=True)
def harvest(starts, places, shown, clicked, out):
    """Intervention harvesting (Agarwal et al. 2019): clicks of the same pairs at two different places.

    `out[k, l]` are (shown, clicked) at place k, of pairs that were also shown at place l.

    A pair that was shown n times at k and m times at l counts n·m / (n + m) at both places, with its share of clicks.
    """
    for pair in range(len(starts)):
        stop = starts[pair + 1] if pair + 1 < len(starts) else len(places)
        for i in range(starts[pair], stop):
            for j in range(starts[pair], stop):
                if i != j:
                    weight = shown[i] * shown[j] / (shown[i] + shown[j])
                    out[places[i], places[j], 0] += weight
                    out[places[i], places[j], 1] += weight * clicked[i] / shown[i]

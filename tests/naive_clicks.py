"""Slow twins of click models, propensities and interleaving, in plain Python; and simulated logs."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import numpy as np

from ranksieve.clicks import ClickLog

TINY = 1e-6


def pages_of(log):
    """Each page as (query, documents, clicks)."""
    for page in range(log.n_pages):
        rows = slice(log.offsets[page], log.offsets[page + 1])
        yield log.queries[page], log.documents[rows].tolist(), log.clicks[rows].tolist()


def make_log(n_pages, *, n_queries=6, n_docs=8, depth=5, click=None, spread=0.5, seed=0):
    """Pages of noisy rankings; `click(relevances, rng)` returns the clicks of a page. Also the true relevances."""
    rng = np.random.default_rng(seed)
    relevance = rng.beta(1.2, 2.5, size=(n_queries, n_docs))
    queries, documents, clicks, sizes = [], [], [], []
    for _ in range(n_pages):
        query = int(rng.integers(n_queries))
        order = np.argsort(-(relevance[query] + rng.normal(0, spread, n_docs)))[: int(rng.integers(2, depth + 1))]
        queries.append(query)
        documents.extend((query * n_docs + order).tolist())
        clicks.extend(click(relevance[query][order], rng))
        sizes.append(len(order))
    log = ClickLog.from_arrays(queries, [f"{number:03d}" for number in documents], clicks, sizes)
    return log, {(query, int(log_doc)): relevance[divmod(int(log_doc), n_docs)] for query, log_doc in pair_texts(log)}


def pair_texts(log):
    """Query number and document id of every pair, in the order of the log's pairs."""
    return [(int(q), log.doc_ids[d]) for q, d in zip(log.pairs.queries, log.pairs.documents, strict=True)]


def true_relevance(data, log):
    """What simulated users find relevant, for each row of a log: the gain as a share of the largest."""
    gains = 2.0 ** data.labels.astype(float) - 1
    first = np.array([data.offsets[q] for q in np.repeat(log.queries, log.sizes)])
    return gains[first + log.doc_ids[log.documents].astype(int)] / gains.max()


def position_clicks(eta):
    return lambda relevance, rng: rng.random(len(relevance)) < relevance / np.arange(1, len(relevance) + 1) ** eta


def browsing_clicks(satisfaction, continuation):
    def click(relevance, rng):
        clicks, reads = [], True
        for one in relevance:
            clicked = bool(reads and rng.random() < one)
            clicks.append(clicked)
            reads = reads and not (clicked and rng.random() < satisfaction) and rng.random() < continuation
        return clicks

    return click


def position_likelihood(log, attraction, examination):
    """Log-likelihood of a log under the position-based model; attraction by (query, document)."""
    total = 0.0
    for query, documents, clicks in pages_of(log):
        for place, (document, clicked) in enumerate(zip(documents, clicks, strict=True)):
            chance = min(max(attraction[query, document] * examination[place], TINY), 1 - TINY)
            total += math.log(chance if clicked else 1 - chance)
    return total


def position_em(log, steps):
    """Expectation maximisation of the position-based model, attraction and examination both hidden."""
    attraction = defaultdict(lambda: 0.5)
    examination = [0.5] * log.n_places
    for _ in range(steps):
        attracted, examined = defaultdict(list), defaultdict(list)
        for query, documents, clicks in pages_of(log):
            for place, (document, clicked) in enumerate(zip(documents, clicks, strict=True)):
                a, e = attraction[query, document], examination[place]
                attracted[query, document].append(1.0 if clicked else a * (1 - e) / (1 - a * e))
                examined[place].append(1.0 if clicked else e * (1 - a) / (1 - a * e))
        attraction = {pair: sum(some) / len(some) for pair, some in attracted.items()}
        examination = [sum(examined[place]) / len(examined[place]) for place in range(log.n_places)]
    return attraction, examination


def examined_rows(clicks, *, last):
    """How many documents of a page a cascade of reading takes in."""
    places = [place for place, clicked in enumerate(clicks) if clicked]
    return len(clicks) if not places else 1 + (places[-1] if last else places[0])


def counting_models(log):
    """Attraction of each pair by CTR, the cascade model and SDBN, and satisfaction by SDBN: shares of counts."""
    shown, clicked, cascade, sdbn = {}, {}, {}, {}
    for query, documents, clicks in pages_of(log):
        last = max((place for place, one in enumerate(clicks) if one), default=-1)
        for place, (document, one) in enumerate(zip(documents, clicks, strict=True)):
            pair = query, document
            shown[pair] = shown.get(pair, 0) + 1
            clicked[pair] = clicked.get(pair, 0) + one
            for counts, to_last in ((cascade, False), (sdbn, True)):
                if place < examined_rows(clicks, last=to_last):
                    n, c, s = counts.get(pair, (0, 0, 0))
                    counts[pair] = n + 1, c + one, s + (place == last)
    attractions = {"ctr": {pair: clicked[pair] / shown[pair] for pair in shown}}
    for name, counts in (("cascade", cascade), ("sdbn", sdbn)):
        attractions[name] = dict.fromkeys(shown, 0.0) | {pair: c / n for pair, (n, c, _) in counts.items()}
    return attractions, {pair: s / c if c else 0.0 for pair, (_, c, s) in sdbn.items()}


def clicks_over_expected(log, shares):
    """Clicks of each pair, divided by the clicks that an average document gets at its places."""
    clicked, expected = defaultdict(int), defaultdict(float)
    for query, documents, clicks in pages_of(log):
        for place, (document, one) in enumerate(zip(documents, clicks, strict=True)):
            clicked[query, document] += one
            expected[query, document] += shares[place]
    return {pair: clicked[pair] / expected[pair] for pair in expected}


def browsing_worlds(attraction, satisfaction, continuation, clicks):
    """All hidden courses of a page that show these clicks: (chance, examined, satisfied, decisions, went on)."""
    n = len(clicks)
    for examined in range(1, n + 1):  # rows that are read
        for hidden in itertools.product((0, 1), repeat=examined):  # satisfied or not, where clicked
            if any(clicks[examined:]) or any(s and not clicks[row] for row, s in enumerate(hidden)):
                continue
            if any(hidden[:-1]):
                continue
            chance, decisions, went_on = 1.0, 0, 0
            for row in range(examined):
                a = attraction[row]
                chance *= a if clicks[row] else 1 - a
                if clicks[row]:
                    chance *= satisfaction[row] if hidden[row] else 1 - satisfaction[row]
                if row + 1 < n and not hidden[row]:
                    decisions += 1
                    went_on += row + 1 < examined
                    chance *= continuation if row + 1 < examined else 1 - continuation
            yield chance, [row < examined for row in range(n)], [*hidden, *[0] * (n - examined)], decisions, went_on


def browsing_posteriors(attraction, satisfaction, continuation, clicks):
    """Expected examination and satisfaction of each row, decisions, goings on, and the chance of the clicks."""
    n = len(clicks)
    examined, satisfied, decisions, went_on, total = np.zeros(n), np.zeros(n), 0.0, 0.0, 0.0
    for chance, seen, happy, decided, on in browsing_worlds(attraction, satisfaction, continuation, clicks):
        total += chance
        examined += chance * np.array(seen)
        satisfied += chance * np.array(happy)
        decisions += chance * decided
        went_on += chance * on
    return examined / total, satisfied / total, decisions / total, went_on / total, total


def browsing_click_chances(attraction, satisfaction, continuation, clicks):
    """Chance of a click on each row: without knowing any, and given the clicks above."""
    n, full, conditional = len(clicks), [], []

    def worlds(shown):
        parts = attraction[: len(shown)], satisfaction[: len(shown)], continuation, list(shown)
        return sum(one[0] for one in browsing_worlds(*parts))

    for row in range(n):
        full.append(sum(worlds((*above, 1)) for above in itertools.product((0, 1), repeat=row)))
        above = clicks[:row]
        conditional.append(worlds((*above, 1)) / max(worlds((*above, 1)) + worlds((*above, 0)), 1e-300))
    return full, conditional


def harvested(log, n_places):
    """Weighted impressions and clicks of the same pairs at two places."""
    cells = defaultdict(lambda: [0, 0])
    for query, documents, clicks in pages_of(log):
        for place, (document, clicked) in enumerate(zip(documents, clicks, strict=True)):
            cells[query, document, place][0] += 1
            cells[query, document, place][1] += clicked
    sums = np.zeros((n_places, n_places, 2))
    for (query, document, k), (n, c) in cells.items():
        for other in range(n_places):
            m = cells.get((query, document, other), (0, 0))[0]
            if other != k and m:
                weight = n * m / (n + m)
                sums[k, other] += weight, weight * c / n
    return sums


def team_drafts(a, b, depth):
    """All lists that team-draft interleaving can make, with their chances."""
    found = defaultdict(float)

    def pick(shown, coins, chance):
        if len(shown) >= depth or all(one in dict(shown) for one in (*a, *b)):
            found[tuple(shown)] += chance
            return
        for first in (0, 1):
            more = list(shown)
            for team in (first, 1 - first):
                left = [one for one in (a, b)[team] if one not in dict(more)]
                if left and len(more) < depth:
                    more.append((left[0], team))
            pick(more, coins + 1, chance / 2)

    pick([], 0, 1.0)
    return found


def posterior_means(successes, trials, n_points, steps):
    """Plain expectation maximisation of a prior on an even grid of points; the mean of each pair's posterior."""
    grid = (np.arange(n_points) + 0.5) / n_points
    chances = [grid**s * (1 - grid) ** (t - s) for s, t in zip(successes, trials, strict=True)]
    prior = np.full(n_points, 1 / n_points)
    for _ in range(steps):
        shares = [row * prior / np.dot(row, prior) for row in chances]
        prior = np.mean(shares, axis=0)
    return [float(np.dot(share, grid)) for share in shares]


def rated(log, propensities):
    """Clicks per exposure, at most 1, and the exposure, by texts of query and document."""
    clicked, exposure = defaultdict(int), defaultdict(float)
    for query, documents, clicks in pages_of(log):
        for place, (document, click) in enumerate(zip(documents, clicks, strict=True)):
            pair = log.query_ids[query], log.doc_ids[document]
            clicked[pair] += click
            exposure[pair] += propensities[min(place, len(propensities) - 1)]
    return {pair: (min(clicked[pair] / exposure[pair], 1.0), exposure[pair]) for pair in exposure}


def rate_lambdas(rates, weights, scores, truncation):
    """λ and w of one list, times the weight of each document: every pair in both orders."""
    order = sorted(range(len(rates)), key=lambda one: -scores[one])
    discounts = {row: 1 / math.log2(2 + rank) for rank, row in enumerate(order[:truncation])}
    grad, hess, total = [0.0] * len(rates), [0.0] * len(rates), 0.0
    for i, j in itertools.permutations(range(len(rates)), 2):
        change = abs(discounts.get(i, 0.0) - discounts.get(j, 0.0)) * weights[i] * weights[j]
        if max(scores) != min(scores):
            change /= 0.01 + abs(scores[i] - scores[j])
        above = change * rates[i] * (1 - rates[j])  # the chance that i is better
        chance = 1 / (1 + math.exp(scores[i] - scores[j]))
        for row, sign in ((i, 1), (j, -1)):
            grad[row] += sign * above * chance
            hess[row] += above * chance * (1 - chance)
        total += 2 * above * chance
    factor = math.log2(1 + total) / total if total else 1.0
    return [one * factor for one in grad], [one * factor for one in hess]

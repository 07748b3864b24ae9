"""Interleaving: two rankings in one list, and which of them users prefer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

from ranksieve.clicks.log import NO_TEAM, ClickLog
from ranksieve.errors import DataError, check_whole

A, B = 0, 1
SIGNIFICANT = 0.05
POWER = 0.8  # chance to find a preference of the size that was observed
CHUNK = 1 << 22  # numbers drawn at once


@dataclass(frozen=True)
class Interleaved:
    """One list made of two, and which ranking each document is credited to: 0 for A, 1 for B, -1 for neither.

    Examples
    --------
    >>> Interleaved(["d1", "d2"], [0, 1]).documents
    ['d1', 'd2']
    """

    documents: list[Any]
    teams: list[int]


def team_draft(a: Sequence[Any], b: Sequence[Any], *, depth: int = 10, seed: int = 0) -> Interleaved:
    """Team-draft interleaving (Radlinski et al. 2008).

    In each round a coin decides who picks first; both rankings then add their best document that is not in the list
    yet. A document is credited to the ranking that added it.

    Parameters
    ----------
    a, b
        Documents of the two rankings, best first.
    depth
        Length of the list.
    seed
        Random seed, a new one for each page; the same seed gives the same list.

    Examples
    --------
    >>> team_draft(["d1", "d2", "d3"], ["d2", "d4", "d1"], depth=3, seed=1)
    Interleaved(documents=['d1', 'd2', 'd4'], teams=[0, 1, 1])
    """
    rng = np.random.default_rng(seed)
    rankings, places = (_ranking(a, "a"), _ranking(b, "b")), [0, 0]
    shown: dict[Any, int] = {}
    while len(shown) < depth:
        before = len(shown)
        first = int(rng.integers(0, 2))
        for team in (first, 1 - first):
            ranking = rankings[team]
            while places[team] < len(ranking) and ranking[places[team]] in shown:
                places[team] += 1
            if places[team] < len(ranking) and len(shown) < depth:
                shown[ranking[places[team]]] = team
        if len(shown) == before:
            break
    return Interleaved(list(shown), list(shown.values()))


def balanced(a: Sequence[Any], b: Sequence[Any], *, depth: int = 10, seed: int = 0) -> Interleaved:
    """Balanced interleaving (Joachims 2002).

    A coin decides which ranking leads; after that the ranking that has contributed fewer ranks adds its next document.
    A document is credited to the ranking that has it higher, to neither if both have it at the same rank. To analyse
    clicks, use `balanced_outcome`, which needs both rankings.

    Parameters
    ----------
    a, b, depth, seed
        As for `team_draft`.

    Examples
    --------
    >>> balanced(["d1", "d2", "d3"], ["d2", "d4", "d1"], depth=4, seed=1).documents
    ['d1', 'd2', 'd4', 'd3']
    """
    rankings = (_ranking(a, "a"), _ranking(b, "b"))
    leader = int(np.random.default_rng(seed).integers(0, 2))
    places = [0, 0]
    shown: dict[Any, None] = {}
    while len(shown) < depth and any(place < len(own) for place, own in zip(places, rankings, strict=True)):
        team = leader if places[A] == places[B] else int(places[B] < places[A])
        if places[team] >= len(rankings[team]):
            team = 1 - team
        shown[rankings[team][places[team]]] = None
        places[team] += 1
    ranks = [{document: rank for rank, document in enumerate(own)} for own in rankings]
    return Interleaved(list(shown), [_higher(document, ranks) for document in shown])


def _higher(document: Any, ranks: Sequence[dict[Any, int]]) -> int:
    of_a, of_b = (own.get(document, len(own)) for own in ranks)
    return NO_TEAM if of_a == of_b else int(of_b < of_a)


def balanced_outcome(a: Sequence[Any], b: Sequence[Any], documents: Sequence[Any], clicked: Sequence[Any]) -> int:
    """Who wins a page of balanced interleaving: 1 for A, -1 for B, 0 for a tie.

    The rankings are cut at the smallest k at which the two together hold the lowest clicked document; the one whose top
    k holds more of the clicked documents wins (Joachims 2002).

    Parameters
    ----------
    a, b
        The two rankings.
    documents
        The list that was shown.
    clicked
        Clicked documents.

    Examples
    --------
    >>> balanced_outcome(["d1", "d2"], ["d3", "d1"], ["d1", "d3", "d2"], ["d3"])
    -1
    """
    with_click = set(clicked)
    of_page = [document for document in documents if document in with_click]
    if not of_page:
        return 0
    lowest = of_page[-1]
    k = 1 + min(list(own).index(lowest) if lowest in own else len(own) for own in (a, b))
    wins = [len(set(own[:k]) & set(of_page)) for own in (a, b)]
    return int(np.sign(wins[A] - wins[B]))


def _ranking(documents: Sequence[Any], name: str) -> list[Any]:
    ranking = list(documents)
    if len(set(ranking)) < len(ranking):
        raise DataError(f"ranking {name} has a document twice; rankings hold each document once")
    return ranking


@dataclass(frozen=True)
class Preference:
    """Which of two rankings users prefer.

    Attributes
    ----------
    wins_a, wins_b, ties
        Pages; a tie has clicks, as many for A as for B.
    without_clicks
        Pages without clicks; they do not count.
    preference
        Share of pages that A wins, ties counted half, minus one half: above 0 A is preferred (Chapelle et al. 2012).
    interval
        95% interval of the preference (bootstrap over pages, or over sessions where the log has them).
    sign_p_value
        Two-sided sign test on the pages that are not ties.
    bootstrap_p_value
        Two-sided: twice the share of bootstrap samples on the other side of 0.
    needed_pages
        Pages with clicks that show a preference of this size with a chance of 80% at p < 0.05 (sign test); None without
        a preference.

    Examples
    --------
    >>> preference([1] * 60 + [-1] * 40).wins_a
    60
    """

    wins_a: int
    wins_b: int
    ties: int
    without_clicks: int
    preference: float
    interval: tuple[float, float]
    sign_p_value: float
    bootstrap_p_value: float
    needed_pages: int | None

    def __str__(self) -> str:
        better = "neither" if self.preference == 0 else "A" if self.preference > 0 else "B"
        return (
            f"{better} is preferred: {self.preference:+.4f} in [{self.interval[0]:+.4f}, {self.interval[1]:+.4f}], "
            f"p = {self.sign_p_value:.4f} (sign test), {self.bootstrap_p_value:.4f} (bootstrap)"
        )


def outcomes(log: ClickLog) -> np.ndarray:
    """Who wins each page of an interleaved log: 1 for A, -1 for B, 0 for a tie, NaN without clicks."""
    if log.teams is None:
        raise DataError("the log has no teams; pages of interleaving need a field 'teams' with 'a', 'b' or null")
    credits = [np.add.reduceat(log.clicks & (log.teams == team), log.offsets[:-1], dtype=float) for team in (A, B)]
    found: np.ndarray = np.sign(credits[A] - credits[B])
    found[np.add.reduceat(log.clicks, log.offsets[:-1], dtype=int) == 0] = np.nan
    return found


def preference(log: Any, *, samples: int = 10_000, seed: int = 0) -> Preference:
    """Which of two interleaved rankings users prefer.

    Parameters
    ----------
    log
        A `ClickLog` with teams, or one outcome per page: 1 for A, -1 for B, 0 for a tie, NaN without clicks.
    samples
        Bootstrap samples.
    seed
        Random seed of the samples.

    Examples
    --------
    >>> print(preference([1] * 60 + [-1] * 40 + [0] * 20))
    A is preferred: +0.0833 in [+0.0042, +0.1625], p = 0.0569 (sign test), 0.0424 (bootstrap)
    """
    check_whole("samples", samples, 100)
    found = outcomes(log) if isinstance(log, ClickLog) else np.asarray(log, dtype=float)
    clicked = ~np.isnan(found)
    if not clicked.any():
        raise DataError("no page has a click, so there is no preference")
    values = found[clicked]
    sessions = log.sessions[clicked] if isinstance(log, ClickLog) and log.sessions is not None else None
    if sessions is not None and sessions.min() < 0:
        sessions = None
    means = _bootstrap(values, sessions, samples, seed) / 2
    wins_a, wins_b = int((values > 0).sum()), int((values < 0).sum())
    center = float(values.mean()) / 2
    low, high = np.quantile(means, [SIGNIFICANT / 2, 1 - SIGNIFICANT / 2])
    other = min((means <= 0).mean(), (means >= 0).mean())
    return Preference(
        wins_a,
        wins_b,
        int((values == 0).sum()),
        int((~clicked).sum()),
        center,
        (float(low), float(high)),
        sign_test(wins_a, wins_b),
        float(min(1.0, 2 * other)),
        needed_pages(wins_a, wins_b, len(values)),
    )


def sign_test(wins: int, losses: int) -> float:
    """The two-sided p-value of a sign test.

    Examples
    --------
    >>> round(sign_test(8, 2), 4)
    0.1094
    """
    n = wins + losses
    return 1.0 if n == 0 else float(min(1.0, 2.0 * scipy.special.bdtr(min(wins, losses), n, 0.5)))


def needed_pages(wins_a: int, wins_b: int, n_pages: int, *, power: float = POWER) -> int | None:
    """Pages that show a preference of the observed size in a two-sided sign test at 0.05 with this chance.

    Parameters
    ----------
    wins_a, wins_b
        Pages that each side won.
    n_pages
        Pages with clicks, ties too.
    power
        Chance to find the preference.

    Examples
    --------
    >>> needed_pages(55, 45, 200)
    1566
    """
    decided = wins_a + wins_b
    if wins_a == wins_b:
        return None
    share = wins_a / decided
    width = 0.5 * scipy.special.ndtri(1 - SIGNIFICANT / 2) + scipy.special.ndtri(power) * np.sqrt(share * (1 - share))
    return int(np.ceil((width / (share - 0.5)) ** 2 * n_pages / decided))


def _bootstrap(values: np.ndarray, sessions: np.ndarray | None, samples: int, seed: int) -> np.ndarray:
    """Means of samples with replacement, of pages or of whole sessions."""
    numbers = np.arange(len(values)) if sessions is None else np.unique(sessions, return_inverse=True)[1].ravel()
    sums, sizes = np.bincount(numbers, weights=values), np.bincount(numbers)
    rng = np.random.default_rng(seed)
    if (sizes == 1).all() and len(np.unique(values)) <= 3:  # counts of wins, ties and losses are multinomial
        kinds, counts = np.unique(values, return_counts=True)
        return np.asarray(rng.multinomial(len(values), counts / len(values), samples) @ kinds / len(values))
    means: list[np.ndarray] = []
    per_chunk = max(1, CHUNK // len(sums))
    for start in range(0, samples, per_chunk):
        chosen = rng.integers(0, len(sums), (min(per_chunk, samples - start), len(sums)))
        means.append(sums[chosen].sum(axis=1) / sizes[chosen].sum(axis=1))
    return np.concatenate(means)

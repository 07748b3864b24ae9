"""Is one system better than another beyond chance? Paired tests on per-query values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

from ranksieve.dtypes import SCORE
from ranksieve.errors import DataError, check_whole
from ranksieve.html_tables import html_facts
from ranksieve.text_formats import counted

CHUNK = 1 << 22  # signs held at once: 32 MB as float64
ROUNDING = 1e-12  # sums of the same numbers in another order differ by less than this share of their size


@dataclass(frozen=True)
class TestResult:
    """Outcome of a paired test of a against b.

    Attributes
    ----------
    difference
        Mean of a minus mean of b, over the queries both have.
    relative
        The difference in percent of the mean of b; NaN where that mean is 0.
    p_value
        How often chance alone gives a difference at least as large, in either direction.
    interval
        95% interval of the difference (t-test only).
    n
        Number of queries compared.
    method
        What was done, in words.

    Examples
    --------
    >>> import ranksieve as rs
    >>> found = rs.significance.paired_t_test([0.5, 0.6, 0.7, 0.4], [0.4, 0.5, 0.5, 0.3])
    >>> round(found.difference, 3), found.n, found.p_value < 0.05
    (0.125, 4, True)
    """

    __test__ = False  # keeps pytest from collecting a class named Test…

    difference: float
    relative: float
    p_value: float
    n: int
    method: str
    interval: tuple[float, float] | None = None

    def __str__(self) -> str:
        between = "" if self.interval is None else f" in [{self.interval[0]:+.4f}, {self.interval[1]:+.4f}]"
        return (
            f"{self.difference:+.4f} ({self.relative:+.1f}%){between}, p = {self.p_value:.4f} "
            f"({self.method}, {counted(query=self.n)})"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        between = [] if self.interval is None else [("95% interval", "[{:+.4f}, {:+.4f}]".format(*self.interval))]
        facts = [("difference", f"{self.difference:+.4f} ({self.relative:+.1f}%)"), *between]
        return html_facts(
            self.method, [*facts, ("p-value", f"{self.p_value:.4f}"), ("queries", f"{self.n:,}")]
        )  # fmt: skip


def randomization_test(a: Any, b: Any, *, permutations: int = 10_000, seed: int = 0) -> TestResult:
    """Fisher's two-sided randomization test on paired per-query values.

    If the two systems were equally good, either value of a query could have come from either system. The p-value is the
    share of such permutations with a mean difference at least as large as the observed one, which is counted, too. All
    permutations are tried if there are at most `permutations`, otherwise this many random ones.

    Parameters
    ----------
    a, b
        One value per query, in the same order; queries that are NaN in either are left out.
    permutations
        How many random permutations to try.
    seed
        Seed of the random permutations.

    Examples
    --------
    >>> randomization_test([0.5, 0.6, 0.7, 0.4], [0.4, 0.5, 0.5, 0.3]).p_value
    0.125
    """
    check_whole("permutations", permutations)
    a, b = _paired(a, b)
    # Exchanging equal values changes nothing, so only the others are exchanged.
    differences = (a - b)[a != b]
    n_exchanges = 2 ** len(differences)
    exact = n_exchanges <= permutations
    chunks = _all_flips(len(differences)) if exact else _random_flips(len(differences), permutations, seed)
    total = differences.sum()
    bar = abs(total) - ROUNDING * np.abs(differences).sum()
    as_large = sum(int((np.abs(total - 2 * (flips @ differences)) >= bar).sum()) for flips in chunks)
    p_value = as_large / n_exchanges if exact else (1 + as_large) / (1 + permutations)
    tried = f"all {n_exchanges}" if exact else f"{permutations}"
    return _result(a, b, p_value, f"randomization test, {tried} permutations")


def paired_t_test(a: Any, b: Any) -> TestResult:
    """Two-sided paired t-test on per-query values, with the 95% interval of the mean difference.

    Parameters
    ----------
    a, b
        One value per query, in the same order; queries that are NaN in either are left out.

    Examples
    --------
    >>> print(paired_t_test([0.5, 0.6, 0.7, 0.4], [0.4, 0.5, 0.5, 0.3]))
    +0.1250 (+29.4%) in [+0.0454, +0.2046], p = 0.0154 (paired t-test, 4 queries)
    """
    a, b = _paired(a, b)
    n = len(a)
    if n < 2:
        raise DataError("got one common query; a t-test needs at least two")
    differences = a - b
    center = float(differences.mean())
    error = float(differences.std(ddof=1)) / math.sqrt(n)
    # Where all differences are equal there is no spread to doubt them by.
    t = abs(center) / error if error > 0 else np.inf if center else 0.0
    p_value = 2 * float(scipy.special.stdtr(n - 1, -t))
    reach = float(scipy.special.stdtrit(n - 1, 0.975)) * error
    return _result(a, b, p_value, "paired t-test", (center - reach, center + reach))


TESTS = {"randomization": randomization_test, "t": paired_t_test}


def _paired(a: Any, b: Any) -> tuple[np.ndarray, np.ndarray]:
    """The values of the queries that both sides have."""
    a, b = np.asarray(a, dtype=SCORE), np.asarray(b, dtype=SCORE)
    if a.ndim != 1 or a.shape != b.shape:
        raise DataError(f"got values of shapes {a.shape} and {b.shape}; expected one per query, for the same queries")
    both = ~(np.isnan(a) | np.isnan(b))
    if not both.any():
        raise DataError(f"none of the {len(a)} queries has a value on both sides; there is nothing to compare")
    return a[both], b[both]


def _all_flips(n: int) -> Iterator[np.ndarray]:
    """Every choice of queries to exchange, as rows of 0 and 1."""
    numbers = np.arange(2**n)
    step = max(1, CHUNK // max(1, n))
    for start in range(0, len(numbers), step):
        yield (numbers[start : start + step, None] >> np.arange(n) & 1).astype(SCORE)


def _random_flips(n: int, permutations: int, seed: int) -> Iterator[np.ndarray]:
    """Random choices of queries to exchange, as rows of 0 and 1."""
    rng = np.random.default_rng(seed)
    step = max(1, CHUNK // n)
    for start in range(0, permutations, step):
        # Whole words: narrower draws would throw bits away at the end of a chunk, and chunks would show in the result.
        words = rng.integers(0, 2**64, (min(step, permutations - start), (n + 63) // 64), dtype=np.uint64)
        yield np.unpackbits(words.view(np.uint8), axis=1, count=n).astype(SCORE)


def _result(
    a: np.ndarray, b: np.ndarray, p_value: float, method: str, interval: tuple[float, float] | None = None
) -> TestResult:
    difference, base = float((a - b).mean()), float(b.mean())
    relative = 100 * difference / base if base else float("nan")
    return TestResult(difference, relative, p_value, len(a), method, interval)

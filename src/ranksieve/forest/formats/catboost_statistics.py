"""Statistics of categories and of combinations of features (ctrs) in CatBoost's models.

CatBoost computes them in float32 from counts of the training data, which the model stores by the hash of a combination:
of its categories first, then of whether numbers are above borders and categories are certain ones, each 0 or 1.

The file only stores the names of the categories of all features together. Which categories a feature has follows from
the hashes: the hash of a combination is the sum of its elements times powers of an odd number, modulo 2^64. All
elements but one and the sum give that one, and it is a category only if it has 32 bits: among the possible sums of the
others, sorted, hardly ever more than one leaves so little. What the others can be is in the table of a combination with
one category less, from which CatBoost made the longer one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ranksieve.errors import ModelError
from ranksieve.forest.ctr_statistics import MULTIPLIER, NO_HASH, combined_hash, find
from ranksieve.forest.float32 import to_single
from ranksieve.forest.formats.nodes import REMEDY

KINDS = ("Borders", "Buckets", "BinarizedTargetMeanValue", "FloatTargetMeanValue", "Counter", "FeatureFreq")
HALF = 1 << 31  # half the range of the hashes of categories, which have 32 bits and a sign
MOST_TESTS = 16  # in a combination; CatBoost's trees are not deeper
MODULUS = 1 << 64


class Statistic:
    """One statistic, and the borders that trees compare it with.

    Attributes
    ----------
    features : tuple of int
        The categorical features of the combination, in the order of the hash.
    above : tuple of (int, float)
        Numerical features and the borders that they are compared with.
    equal : tuple of (int, int)
        Categorical features and the hashes of the categories that they are compared with.
    keys : uint64 array
        The hashes of the combinations in the training data, ascending, and last NO_HASH.
    values : float32 array
        The statistic of each, and last of combinations that the training data did not have.
    """

    def __init__(self, stored: dict[str, Any], tables: dict[str, Any], source: str) -> None:
        parts: dict[str, list[dict[str, Any]]] = {"cat_feature_value": [], "float_feature": [],
                                                  "cat_feature_exact_value": []}  # fmt: skip
        for element in stored["elements"]:
            parts[element["combination_element"]].append(element)
        categories, numbers, exact = parts.values()
        self.features = tuple(int(one["cat_feature_index"]) for one in categories)
        self.above = tuple((int(one["float_feature_index"]), float(to_single(one["border"]))) for one in numbers)
        self.equal = tuple((int(one["cat_feature_index"]), int(one["value"])) for one in exact)
        if not 0 < len(set(self.features)) == len(self.features) or len(self.above) + len(self.equal) > MOST_TESTS:
            raise ModelError(f"{source}: has a statistic of an impossible combination of features; {REMEDY}")
        self.borders = np.asarray(stored["borders"], np.float32)
        table = tables[stored["identifier"]]
        flat, width = table["hash_map"], int(table["hash_stride"])
        if width < 2 or len(flat) % width:
            raise ModelError(f"{source}: a table of statistics does not have rows of {width} numbers; {REMEDY}")
        keys, rows = np.unique(np.array([*map(int, flat[::width]), int(NO_HASH)], np.uint64), return_index=True)
        counts = np.array([[*flat[column::width], 0.0] for column in range(1, width)], np.float64)[:, rows]
        counts[:, -1] = 0.0  # empty places of the table have NO_HASH, and counts of another row
        self.keys = keys
        self.values = _values(stored, counts, float(table["counter_denominator"]), source)

    @property
    def elements(self) -> tuple[Any, ...]:
        """What the hash is made of: the same for statistics of the same combinations."""
        return self.features, self.above, self.equal

    @property
    def is_combined(self) -> bool:
        """Whether it depends on more than the category of one feature."""
        return len(self.features) + len(self.above) + len(self.equal) > 1

    def of(self, hashes: np.ndarray) -> np.ndarray:
        """The statistic of combinations, given by their hashes."""
        return np.asarray(self.values[find(self.keys, hashes)])

    def of_categories(self, categories: Sequence[int]) -> np.ndarray:
        """The statistic of categories of the only feature, given by the hashes of their texts."""
        hashes = signed(categories).astype(np.uint64)
        return self.of(combined_hash(np.zeros_like(hashes), hashes))


def _values(stored: dict[str, Any], counts: np.ndarray, denominator: float, source: str) -> np.ndarray:
    """The statistic of each combination, from the counts of the training data, a column for each."""
    kind, target = stored["ctr_type"], int(stored["target_border_idx"])
    if kind not in KINDS:
        raise ModelError(
            f"{source}: uses statistics of type {kind!r}; train with simple_ctr='Borders' and "
            "combinations_ctr='Borders', which can be read"
        )
    if not 0 <= target < len(counts):
        raise ModelError(f"{source}: a statistic is of class {target} of {len(counts)}; {REMEDY}")
    part, total = counts[0], np.full(counts.shape[1], denominator)
    if kind in ("BinarizedTargetMeanValue", "FloatTargetMeanValue"):
        part, total = counts  # a sum and a number
    elif kind in ("Borders", "Buckets"):
        part = counts[target + 1 :].sum(axis=0) if kind == "Borders" else counts[target]
        total = counts.sum(axis=0)
    names = ("prior_numerator", "prior_denomerator", "shift", "scale")  # CatBoost's spelling
    prior, prior_total, shift, scale = (np.float32(stored[name]) for name in names)
    with np.errstate(all="ignore"):
        mean = (part.astype(np.float32) + prior) / (total.astype(np.float32) + prior_total)
        values = np.asarray((mean + shift) * scale, np.float32)
    if not np.isfinite(values).all():
        raise ModelError(f"{source}: a statistic is not a finite number; {REMEDY}")
    return values


def signed(hashes: Sequence[int]) -> np.ndarray:
    """Hashes of texts as numbers with a sign, as they enter hashes of combinations."""
    return np.array([one & (2 * HALF - 1) for one in hashes], np.uint32).view(np.int32).astype(np.int64)


def categories_in(statistics: Sequence[Statistic], known: Sequence[int]) -> dict[int, set[int]] | None:
    """The categories of each feature in tables of statistics, by the hash of their texts; None if not all are known."""
    categories = np.unique(signed(known))
    found: dict[tuple[int, ...], np.ndarray] = {}
    different = {(one.elements, one.keys.tobytes()): one for one in statistics}  # many have the same combinations
    for one in sorted(different.values(), key=lambda one: len(one.features)):
        rows = _elements_of(one, categories, found)
        if rows is None:
            return None
        features = tuple(sorted(one.features))
        rows = np.concatenate([rows[:, np.argsort(one.features)], found.get(features, rows[:0])])
        _, first = np.unique(_sums(rows, _factors(len(features))), return_index=True)
        found[features] = rows[first]
    result: dict[int, set[int]] = {}
    for features, rows in found.items():
        for feature, column in zip(features, rows.T, strict=True):
            result.setdefault(feature, set()).update((np.unique(column) & (2 * HALF - 1)).tolist())
    return result


def _elements_of(one: Statistic, categories: np.ndarray, found: dict[tuple[int, ...], np.ndarray]) -> np.ndarray | None:
    """The categories that each hash of a statistic is made of, a column for each feature; None if not all are found."""
    for last in range(len(one.features)):
        others = [feature for number, feature in enumerate(one.features) if number != last]
        if not others:
            rows: np.ndarray | None = np.empty((1, 0), np.int64)
        elif len(others) == 1:
            rows = categories[:, None]
        elif (rows := found.get(tuple(sorted(others)))) is not None:
            rows = rows[:, np.argsort(np.argsort(others))]
        if rows is not None and len(rows):
            return _solved(one, last, rows, categories)
    return None


def _solved(one: Statistic, last: int, rows: np.ndarray, categories: np.ndarray) -> np.ndarray | None:
    """The same, where `rows` are the possible categories of all features but number `last`."""
    n_categories, n_tests = len(one.features), len(one.above) + len(one.equal)
    n_elements = n_categories + n_tests
    factors = _factors(n_elements)
    inverse = np.uint64(pow(int(factors[last]), -1, MODULUS))
    outcomes = np.arange(1 << n_tests)[:, None] >> np.arange(n_tests) & 1
    of_tests = _sums(outcomes, factors[n_categories:])
    of_rows = _sums(rows, np.delete(factors[:n_categories], last))
    sums = (of_rows[:, None] + of_tests).reshape(-1) * inverse
    order = np.argsort(sums)
    wanted = one.keys[:-1] * inverse
    start = np.searchsorted(sums[order], wanted - np.uint64(HALF - 1))
    result = np.zeros((len(wanted), n_categories), np.int64)
    missing = np.ones(len(wanted), np.bool_)
    for step in range(len(sums)):
        places = order[(start + step) % len(sums)]
        rest = (wanted - sums[places]).view(np.int64)
        if not (near := missing & (rest >= -HALF) & (rest < HALF)).any():
            break
        hits = near & np.isin(rest, categories)
        result[hits] = np.insert(rows[places[hits] // len(of_tests)], last, rest[hits], axis=1)
        missing &= ~hits
    return None if missing.any() else result


def _factors(n_elements: int) -> np.ndarray:
    """What the elements of a combination are multiplied by in its hash."""
    return np.array([pow(int(MULTIPLIER), n_elements - i + 1, MODULUS) for i in range(n_elements)], np.uint64)


def _sums(rows: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """The sum of each row's numbers times their factors, modulo 2^64."""
    return np.asarray((rows.astype(np.uint64) * factors).sum(axis=1, dtype=np.uint64))

"""Statistics of categories (ctrs) in CatBoost's models: which categories a split on one sends right.

A statistic of one feature depends on its category alone, so a split on it is a split by a set of categories. CatBoost
computes it in float32 from counts of the training data, which the model stores by a hash of the category. Statistics of
combinations of features are not sets of one feature's categories; they are refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksieve.errors import ModelError
from ranksieve.forest.formats.nodes import REMEDY

MULTIPLIER = 0x4906BA494954CB65  # of CatBoost's hash
MASK = (1 << 64) - 1
NO_HASH = MASK  # of an empty place in a table


def table_hash(category: int) -> int:
    """The hash of one category in tables of statistics; `category` is the hash of its text."""
    signed = category - (1 << 32) if category >> 31 else category
    return MULTIPLIER * (MULTIPLIER * signed) & MASK


class Statistic:
    """One statistic of a categorical feature, and the borders that trees compare it with."""

    def __init__(self, stored: dict[str, Any], tables: dict[str, Any], source: str) -> None:
        elements = stored["elements"]
        if len(elements) != 1 or elements[0]["combination_element"] != "cat_feature_value":
            raise ModelError(
                f"{source}: uses statistics of combinations of categories (ctrs of several features), only those of "
                "one feature are read; train with max_ctr_complexity=1"
            )
        self.feature = int(elements[0]["cat_feature_index"])
        self.borders = np.asarray(stored["borders"], np.float32)
        self._kind, self._target = stored["ctr_type"], int(stored["target_border_idx"])
        if self._kind not in ("Borders", "Buckets", "BinarizedTargetMeanValue", "Counter", "FeatureFreq"):
            raise ModelError(
                f"{source}: uses statistics of type {self._kind!r}; train with simple_ctr='Borders', which can be read"
            )
        numbers = ("prior_numerator", "prior_denomerator", "shift", "scale")  # CatBoost's spelling
        self._prior, self._prior_total, self._shift, self._scale = (np.float32(stored[name]) for name in numbers)
        table = tables[stored["identifier"]]
        self._denominator, width = np.float32(table["counter_denominator"]), int(table["hash_stride"])
        flat = table["hash_map"]
        if width < 2 or len(flat) % width:
            raise ModelError(f"{source}: a table of statistics does not have rows of {width} numbers; {REMEDY}")
        self._counts = {
            int(flat[at]): np.array(flat[at + 1 : at + width], np.float32)
            for at in range(0, len(flat), width)
            if int(flat[at]) != NO_HASH
        }

    @property
    def hashes(self) -> set[int]:
        """The `table_hash` of each category of the training data."""
        return set(self._counts)

    def value(self, category: int | None) -> np.float32:
        """The statistic of a category, given by the hash of its text, or of one that the training data did not have."""
        counts = None if category is None else self._counts.get(table_hash(category))
        part = total = np.float32(0)
        if self._kind in ("Counter", "FeatureFreq"):
            part, total = part if counts is None else counts[0], self._denominator
        elif counts is not None and self._kind == "BinarizedTargetMeanValue":
            part, total = counts
        elif counts is not None:
            rest = counts[self._target + 1 :] if self._kind == "Borders" else counts[self._target : self._target + 1]
            part, total = rest.sum(), counts.sum()
        mean = (part + self._prior) / (total + self._prior_total)
        return np.float32((mean + self._shift) * self._scale)

"""Parameters that several selections share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranksieve.rules import Traits, integer, number, share


@dataclass(frozen=True, kw_only=True)
class Periodic:
    """A selection that is made again every `every` trees."""

    every: int = integer(1, "Number of trees between two selections", 1)

    traits: ClassVar[Traits] = Traits(needs_last_selection=False)


@dataclass(frozen=True, kw_only=True)
class Share(Periodic):
    """A selection of a share of the negatives."""

    negatives: float = share(0.05, "Share of a query's negatives (selections rows and goss: of all rows) to train on")


@dataclass(frozen=True, kw_only=True)
class Minimum(Periodic):
    """A selection of at least some negatives of each query."""

    min_negatives: int = integer(100, "Train on at least this many negatives of a query, or on all if it has fewer")


@dataclass(frozen=True, kw_only=True)
class Margin(Minimum):
    """A selection by how far negatives score below the lowest positive of their query."""

    margin: float = number(
        1.5, "Select negatives that score at most this much below the lowest-scored positive", -np.inf
    )
    max_negatives: float = share(0.5, "Largest share of a query's negatives to select")


@dataclass(frozen=True, kw_only=True)
class Rest(Periodic):
    """A selection of two shares."""

    rest: float = share(
        0.01, "Share of the negatives to add to the selected ones: random ones for top+random, the lowest-scored for "
        "top+bottom; for goss a random share of all rows", zero=True,
    )  # fmt: skip


def union_rows(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Two sorted sets of rows as one."""
    both = np.concatenate([a, b])
    both.sort(kind="stable")
    return both

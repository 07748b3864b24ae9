"""Propensities: how likely each place of a page is examined, relative to the first one."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve.errors import DataError
from ranksieve.files import atomic_text


@dataclass(frozen=True, eq=False)
class Propensities:
    """How likely each place is examined, relative to the first one.

    Attributes
    ----------
    values
        One per place from the top; later places have the last one.
    method
        How they were estimated.
    irrelevant_clicks
        Chance of a click on a document that is not relevant, on the same scale (trust bias); None without.

    Examples
    --------
    >>> Propensities.power(1.0, 4).values.tolist()
    [1.0, 0.5, 0.3333333333333333, 0.25]
    """

    values: np.ndarray
    method: str = "given"
    irrelevant_clicks: np.ndarray | None = None

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=np.float64)
        if values.ndim != 1 or not len(values) or not (np.isfinite(values).all() and (values > 0).all()):
            raise DataError(f"propensities are {self.values!r}; expected one number above 0 per place")
        object.__setattr__(self, "values", values)

    @classmethod
    def power(cls, eta: float, n_places: int) -> Propensities:
        """(1 / rank)^η, the usual form in simulations."""
        return cls(1.0 / np.arange(1.0, n_places + 1) ** eta, f"power {eta:g}")

    def at(self, places: Any) -> np.ndarray:
        """The propensities of places, from 0."""
        return np.asarray(self.values[np.minimum(places, len(self.values) - 1)])

    @property
    def biases(self) -> np.ndarray:
        """Their logarithms: `train(..., position_biases=propensities.biases, position_rate=0)` removes them."""
        return np.asarray(np.log(self.values))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write them as JSON."""
        facts: dict[str, Any] = {"method": self.method, "propensities": self.values.tolist()}
        if self.irrelevant_clicks is not None:
            facts["irrelevant_clicks"] = self.irrelevant_clicks.tolist()
        with atomic_text(path) as file:
            file.write(json.dumps(facts, indent=1) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Propensities:
        """Read what `save` has written, or a JSON list of numbers.

        Examples
        --------
        >>> Propensities([1, 0.5]).save("propensities.json")
        >>> Propensities.load("propensities.json").values.tolist()
        [1.0, 0.5]
        """
        try:
            facts = json.loads(Path(path).read_text(encoding="utf-8"))
            if isinstance(facts, list):
                return cls(np.array(facts, dtype=float))
            irrelevant = facts.get("irrelevant_clicks")
            return cls(
                np.array(facts["propensities"], dtype=float),
                str(facts.get("method", "given")),
                None if irrelevant is None else np.array(irrelevant, dtype=float),
            )
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror}); check the path") from error
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise DataError(
                f'{path}: holds no propensities ({error}); expected JSON like {{"propensities": [1, 0.6, 0.4]}}'
            ) from error

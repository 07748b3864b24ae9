"""`WeightSearch`: the parameters of the search for tree weights."""

from __future__ import annotations

from dataclasses import dataclass

from ranksieve.rules import integer, parameter, share


@dataclass(frozen=True, kw_only=True)
class WeightSearch:
    """The parameters of the search; `reweight` describes them."""

    samples: int = integer(20, "Weights tried per tree and round (σ)", 2)
    window: float = parameter(
        2.0, "Width of the range of these weights, relative to the mean weight (ω)", "a number above 0",
        lambda value: 0 < value < float("inf"),
    )  # fmt: skip
    shrink: float = share(0.95, "Factor of the width after each round (η)")
    patience: int = integer(10, "Stop after this many rounds without improvement", 1)
    rounds: int = integer(100, "Largest number of rounds", 1)

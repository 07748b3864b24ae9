"""Which keys of a run count: the others are refused where they were meant for that run alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ranksieve.boosting.registry import named_selection
from ranksieve.experiments.grids import choices
from ranksieve.heeding import EVERYWHERE, PRUNING
from ranksieve.params import RANKERS, Params, flag

CHOOSING = ("algo", "base", "selection", "step")  # what the other parameters that count depend on


def check_selection(params: Params) -> None:
    """Refuse a rule for who teaches that nobody knows."""
    if params.algo == "xcleaver" or params.algo not in RANKERS:
        named_selection(params)


def heeded_keys(params: Mapping[str, Any], *, prunes: bool = False) -> set[str]:
    """What some choice of a run's grid heeds, or what pruning does, spelled as in TOML."""
    if prunes:
        return {flag(name)[2:] for name in (*EVERYWHERE, *PRUNING)}
    heeded: set[str] = set()
    for _, (one,) in choices({key: params[key] for key in CHOOSING if key in params}):
        chosen = Params.from_mapping(one)
        check_selection(chosen)
        heeded.update(flag(name)[2:] for name in chosen.heeded)
    return heeded

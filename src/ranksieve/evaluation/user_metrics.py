"""Metrics by name, and metrics that are functions of the user."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ranksieve.dtypes import SCORE
from ranksieve.errors import DataError, ParameterError, did_you_mean
from ranksieve.evaluation.metric_table import BUILT_IN, METRICS, Definition

UserMetric = Callable[[np.ndarray, np.ndarray, np.ndarray, "int | None"], Any]

# ir-measures and common spellings, in lower case. Only the spelling is theirs: our nDCG@10 has gains 2^label - 1.
ALIASES = {"ap": "map", "rr": "mrr", "r": "recall", "precision": "p"}
OWN_NAME = r"[a-z][a-z0-9-]*"


def known_metric(name: str) -> Definition:
    """The definition of a metric, or an error that lists the names."""
    if name not in METRICS:
        spellings = ", ".join(f"{alias} (= {name})" for alias, name in ALIASES.items())
        hint = _hint(name)
        raise ParameterError(f"unknown metric {name!r}; {hint}known: {', '.join(METRICS)}, {spellings}")
    return METRICS[name]


def _hint(name: str) -> str:
    """What was probably meant: a cut-off without its `@`, as in ndcg10, or the nearest name."""
    bare = name.rstrip("0123456789")
    base = bare.rstrip("-")
    if bare != name and (base in METRICS or base in ALIASES):
        return f"did you mean '{base}@{name[len(bare) :]}'? "
    return did_you_mean(name, [*METRICS, *ALIASES])


def register_metric(name: str, function: UserMetric) -> None:
    """Make a function known as a metric, for `parse_metric`, `evaluate` and everything that takes metric names.

    Parameters
    ----------
    name
        Lower-case letters, digits and hyphens. Registering a name again replaces it; built-in names are refused.
    function
        `function(labels, scores, offsets, k)` → one number per query, NaN where it is undefined; k is None without a
        cut-off.

    Examples
    --------
    >>> import numpy as np
    >>> def best_label(labels, scores, offsets, k):
    ...     return np.maximum.reduceat(labels, offsets[:-1])
    >>> register_metric("best-label", best_label)
    >>> from ranksieve.metrics import parse_metric
    >>> parse_metric("best-label").per_query([0, 2, 1], [0.1, 0.2, 0.3], [0, 2, 3]).tolist()
    [2.0, 1.0]
    """
    if re.fullmatch(OWN_NAME, name) is None:
        raise ParameterError(f"metric name {name!r} has other characters than lower-case letters, digits, hyphens")
    if name in BUILT_IN or name in ALIASES:
        raise ParameterError(f"{name!r} is a built-in metric; choose another name")

    def measure(metric: Any, labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        values = np.array(function(labels, scores, offsets, metric.k), dtype=SCORE)  # a copy: we write into it
        if values.shape != (len(offsets) - 1,):
            raise DataError(
                f"metric {name!r} returned an array of shape {values.shape}; "
                f"expected one number for each of the {len(offsets) - 1} queries"
            )
        return values

    METRICS[name] = Definition(measure=measure, function=function)


def own_name(function: UserMetric) -> str:
    """The name of a function given in place of one, known from now on."""
    name = getattr(function, "__name__", type(function).__name__).lower().replace("_", "-")
    if re.fullmatch(OWN_NAME, name) is None:
        raise ParameterError(
            f"a function given as a metric goes by its name, and {name!r} cannot be one; "
            "give it a name with register_metric"
        )
    before = METRICS.get(name)
    if before is not None and before.function is not None and _home(before.function) != _home(function):
        raise ParameterError(
            f"two metric functions are named {name!r}; give each a name of its own with register_metric"
        )
    if before is None or before.function is not function:
        register_metric(name, function)
    return name


def _home(function: Any) -> Any:
    """What a function defined anew, as in a notebook, has in common with the old one; itself if it is a local one."""
    name = getattr(function, "__qualname__", "<locals>")
    return function if "<locals>" in name else (function.__module__, name)

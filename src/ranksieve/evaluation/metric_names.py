"""Names of metrics: ours, those of ir-measures, and those that users give to functions of their own."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ranksieve.dtypes import SCORE
from ranksieve.errors import DataError, ParameterError, did_you_mean
from ranksieve.evaluation.metric_table import BUILT_IN, METRICS, Definition, positive

UserMetric = Callable[[np.ndarray, np.ndarray, np.ndarray, "int | None"], Any]

ALIASES = {"ap": "map", "rr": "mrr", "r": "recall", "precision": "p"}
_SPELLING = re.compile(r"\s*(?P<name>[\w-]+)\s*(\((?P<options>[^)]*)\))?\s*(@\s*(?P<k>\w+))?\s*")

GAIN_OF_DCG = {"log2": "linear", "exp-log2": "exp"}  # the dcg= option of ir-measures
# The names of ir-measures, our names, and what its definitions set; queries without positives count 0 in all of them.
IR_MEASURES: dict[str, tuple[str, dict[str, Any]]] = {
    "nDCG": ("ndcg", {"gain": "linear"}),
    "AP": ("map", {"rel": 1}),
    "RR": ("mrr", {"rel": 1}),
    "P": ("p", {"rel": 1}),
    "R": ("recall", {"rel": 1}),
    "RBP": ("rbp", {"rel": 1}),
    "ERR": ("err", {"highest": 4}),
}
IR_NAMES = {ours: theirs for theirs, (ours, _) in IR_MEASURES.items()}
# How our metric differs from that of ir-measures most, by our name; others differ in queries without positives.
DIFFERENCES = {"ndcg": ("gain 2^label-1", "gain = label")}
EMPTY_DIFFERS = ("queries without positives are left out", "they count 0")
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


def read_name(text: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The metric that a text names, the options that its definition in ir-measures sets, and those that are written."""
    match = _SPELLING.fullmatch(text)
    if match is None:
        raise ParameterError(f"metric {text!r} cannot be read; metrics look like 'ndcg@10', 'map' or 'rbp(p=0.8)'")
    name, defaults = _definition(text, match["name"])
    written = _written_options(text, name, match["options"] or "", bool(defaults))
    if match["k"] is not None:
        if not match["k"].isdecimal() or int(match["k"]) == 0:
            raise ParameterError(
                f"the cut-off of {text!r} is {match['k']!r}; expected an integer from 1, or {name} for whole lists"
            )
        written["k"] = int(match["k"])
    return name, defaults, written


def _definition(text: str, written: str) -> tuple[str, dict[str, Any]]:
    """Our name of a metric, and the options that the definition of ir-measures sets; none for a name of ours."""
    if written in IR_MEASURES:
        name, options = IR_MEASURES[written]
        return name, {**options, "empty": 0, "spelling": "ir-measures"}
    name = written.lower().replace("_", "-")
    name = ALIASES.get(name, name)
    known_metric(name)
    if written.lower() != written and name in IR_NAMES:  # such as NDCG, which papers mean either by
        ours, theirs = (text.strip().replace(written, one, 1) for one in (name, IR_NAMES[name]))
        our_way, their_way = DIFFERENCES.get(name, EMPTY_DIFFERS)
        raise ParameterError(
            f"metric {text!r} can mean {ours} ({our_way}) or, as in ir-measures, {theirs} ({their_way}); write one of "
            "them"
        )
    return name, {}


def _written_options(text: str, name: str, written: str, as_ir_measures: bool) -> dict[str, Any]:
    """Options in the brackets of a name: `ties=`, `p=` of RBP, and the `dcg=`, `gains=` and `rel=` of ir-measures."""
    options: dict[str, Any] = {}
    for option, value in _keywords(text, written).items():
        if name == "rbp" and option == "p":
            options["p"] = value
        elif METRICS[name].is_graded and option == "dcg" and value in GAIN_OF_DCG:
            options["gain"] = GAIN_OF_DCG[value]
        elif METRICS[name].gain is positive and option == "rel":
            options["rel"] = value
        elif option == "ties":
            options["ties"] = value
        elif as_ir_measures and option == "cutoff":
            options["k"] = value
        elif as_ir_measures and METRICS[name].is_graded and option == "gains" and _is_gain_map(value):
            options["gain"] = tuple(float(value.get(label, label)) for label in range(max(value) + 1))
        elif not (as_ir_measures and option == "judged_only" and value is False):
            raise ParameterError(
                f"option {option}={value!r} of metric {text!r} is unknown; names may have ties=…, p=… (rbp), rel=… "
                f"(map, mrr, p, recall, rbp) and dcg={' or '.join(GAIN_OF_DCG)} (ndcg, dcg); other options are given "
                "as parse_metric(name, option=value)"
            )
    return options


def _keywords(text: str, written: str) -> dict[str, Any]:
    """The options in brackets as Python reads them; a word without quotation marks is text."""
    try:
        call = ast.parse(f"metric({written})", mode="eval").body
        assert isinstance(call, ast.Call) and not call.args
        return {
            str(part.arg): part.value.id if isinstance(part.value, ast.Name) else ast.literal_eval(part.value)
            for part in call.keywords
        }
    except (SyntaxError, ValueError, AssertionError):
        raise ParameterError(
            f"the options of metric {text!r} cannot be read; they look like 'rbp(p=0.8)' or 'AP(rel=2)'"
        ) from None


def with_ties(name: str, ties: str) -> str:
    """The name of a metric with an order for equal scores, as `read_name` reads it.

    Examples
    --------
    >>> with_ties("ndcg@10", "mean"), with_ties("rbp(p=0.5)", "worst")
    ('ndcg(ties=mean)@10', 'rbp(p=0.5,ties=worst)')
    """
    match = _SPELLING.fullmatch(name)
    assert match is not None
    options = ",".join(part for part in (match["options"], f"ties={ties}") if part)
    return f"{match['name']}({options})" + ("" if match["k"] is None else f"@{match['k']}")


def _is_gain_map(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and all(isinstance(key, int) and key >= 0 for key in value)


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
    """The name of a function that is given as a metric; the function is registered."""
    name = getattr(function, "__name__", type(function).__name__).lower().replace("_", "-")
    if re.fullmatch(OWN_NAME, name) is None:
        raise ParameterError(
            f"the function {name!r} has no name that a metric can have; give it one with register_metric"
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
    """Module and name of a function, which stay the same when it is defined again; a local function itself."""
    name = getattr(function, "__qualname__", "<locals>")
    return function if "<locals>" in name else (function.__module__, name)

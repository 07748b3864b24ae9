"""The table of training parameters, and the algorithms that use them.

The table joins the parameters in `CoreParameters` and `RunParameters` with the fields of all registered rules and
rankers (see `rules`). An `Algorithm` lists which of them it uses.
"""

from __future__ import annotations

import inspect
import keyword
import os
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ranksieve.dtypes import MAX_BINS
from ranksieve.errors import ParameterError, ParamName, did_you_mean, param
from ranksieve.other_names import ADVICE, ALIASES, ALL_PARAMETERS, NEAREST
from ranksieve.rules import (
    AUTO,
    OBJECTIVE,
    PRUNING_GROUP,
    RANKERS,
    SLOTS,
    Parameter,
    Registry,
    choice,
    integer,
    number,
    parameter,
    parameters_of,
    share,
    switch,
)
from ranksieve.text_formats import (
    are_gains,
    are_numbers,
    are_signs,
    features_text,
    is_size,
    numbers_text,
    signs_text,
    size_text,
)

MAX_LEAVES = 65_536  # leaf numbers have two bytes where trees are scored

# groups of parameters besides those of the rules, see `Parameter.group`
TREES, VALIDATION, SAMPLING = "Algorithm and trees", "Metric and early stopping", "Sampling and bagging"
FEATURES, CATEGORIES = "Features, constraints and positions", "Categorical features"
LARGE = "Threads, memory and devices"

MOST_NAMED = 3  # rules that the help of a parameter names

RESOURCES = ("threads", "memory", "bin_folder", "keep_bins")  # models do not depend on them
COMMON = ("algo", "metric", "gains", "threads", "seed")
GROWING = ("trees", "leaves", "early_stopping", "valid_fraction", "gain", "min_docs", "min_hessian", "l2", "max_depth",
           "collapse", "feature_fraction", "max_bins", "max_cat_bins", "max_cat_threshold", "max_cat_to_onehot",
           "cat_smooth", "cat_l2", "min_docs_per_group")  # fmt: skip
BOOSTING = (*GROWING, "step", "selection", "objective", "features", "monotone", "row_fraction", "device",
            "position_rate", "position_l2", "position_biases", "bag", "bag_fraction", "size",
            *RESOURCES[1:])  # fmt: skip


@dataclass(frozen=True)
class Algorithm:
    """What an algorithm uses: parameters by name and, for a boosted forest, its default rules and its grower."""

    parameters: tuple[str, ...]
    selection: str = ""
    objective: str = ""
    grower: str = ""

    @property
    def is_forest(self) -> bool:
        """Whether the boosting loop trains it."""
        return bool(self.grower)


def _boosted(selection: str, objective: str, grower: str = "best-first") -> Algorithm:
    return Algorithm(BOOSTING, selection, objective, grower)


FORESTS = {
    "lambdamart": _boosted("everything", "ndcg"),
    "selgb": _boosted("top", "ndcg"),
    "sieve": _boosted("adaptive", "ndcg"),
    "negsgb": _boosted("random", "ndcg"),
    "sgb": _boosted("rows", "ndcg"),
    "mart": _boosted("everything", "squared"),
    "gbrt": _boosted("everything", "squared"),  # another name of MART
    "oblivious-lambdamart": _boosted("everything", "ndcg", "oblivious"),
    "oblivious-mart": _boosted("everything", "squared", "oblivious"),
}


@dataclass(frozen=True, kw_only=True)
class CoreParameters:
    """The parameters of trees and of metrics."""

    trees: int = integer(1000, "Largest number of trees (mcrank: rounds)", 1, group=TREES)
    leaves: int = integer(16, "Largest number of leaves per tree", 2, MAX_LEAVES, group=TREES)
    metric: str = parameter(
        "ndcg@10", "Metric of validation and early stopping", "a metric name", bool, group=VALIDATION
    )
    early_stopping: int = integer(
        100, "Stop after this many trees or epochs without improvement (0: never)", group=VALIDATION
    )
    valid_fraction: float = parameter(
        0.2,
        "Share of the queries held out in each fold of the cross-validation that chooses the number of trees or epochs "
        "if there is no validation data, rounded to a whole number of folds (0: none; also if that number is set and "
        "early_stopping is not)",
        "a number in [0, 0.5]",
        lambda value: 0 <= value <= 0.5,
        group=VALIDATION,
    )
    gain: str = choice(
        "newton", "Split gain: newton uses second derivatives, as LightGBM; variance is the papers' squared error of λ",
        ("newton", "variance"), group=TREES,
    )  # fmt: skip
    min_docs: int = integer(50, "Smallest number of documents in a leaf", 1, group=TREES)
    min_hessian: float = number(0.0, "Smallest sum of second derivatives in a leaf", group=TREES)
    l2: float = number(1.0, "L2 regularisation of leaf values", group=TREES)
    max_depth: int = integer(0, "Largest depth of a tree (0: no limit)", group=TREES)
    collapse: float = number(
        0.0,
        "Merge the deepest leaves of a tree until its depth is at most (1 + this) times that of a balanced tree, "
        "log2(leaves) (0: never)",
        group=TREES,
    )
    feature_fraction: float = share(1.0, "Share of the features each tree may use", group=SAMPLING)
    row_fraction: float = share(
        1.0, "Share of the training rows that each tree is grown on; gradients are computed on all rows", group=SAMPLING
    )
    bag: int = integer(
        1, "Number of forests that are trained on samples of the queries and averaged", 1, group=SAMPLING
    )
    bag_fraction: float = share(0.8, "Share of the queries that each forest of a bag is trained on", group=SAMPLING)
    size: int = integer(0, "Prune the finished forest to this many trees (0: keep all)", group=PRUNING_GROUP)
    features: str = parameter(
        "*", "Features to train on, separated by commas: names, globs, numbers from 1 or ranges; ! excludes",
        "names as in 'bm25_*,7,!length'", lambda value: bool(value.strip(" ,")), convert=features_text, group=FEATURES,
    )  # fmt: skip
    position_rate: float = number(
        1.0,
        "Learning rate of position biases, as a multiple of the learning rate of trees (0: biases stay as given)",
        group=FEATURES,
    )
    position_l2: float = number(0.0, "L2 regularisation of position biases, for each document", group=FEATURES)
    position_biases: str = parameter(
        AUTO, "Position biases to start from, one per rank, such as logarithms of propensities (auto: those of init, "
        "or 0)",
        "finite numbers as in '0,-0.7,-1.1'", are_numbers, convert=numbers_text, group=FEATURES,
    )  # fmt: skip
    monotone: str = parameter(
        "none", "Monotone constraints: as the feature rises, scores never fall (+1) or never rise (-1)",
        "names with signs as in 'bm25_*:+1,spam:-1', or one sign per feature as in '1,0,-1'; not both", are_signs,
        convert=signs_text, group=FEATURES,
    )  # fmt: skip
    gains: str = parameter(
        AUTO, "Gain of each label, beginning with label 0, in λ of ndcg and in metrics ndcg, dcg and avg-ndcg (auto: "
        "2^label - 1, or as the metric defines it)",
        "numbers as in '0,1,3,7' that begin with 0 and never decrease", are_gains, convert=numbers_text,
        group=OBJECTIVE,
    )  # fmt: skip
    max_bins: int = integer(MAX_BINS, "Largest number of bins per feature", 2, MAX_BINS, group=TREES)
    max_cat_bins: int = integer(
        MAX_BINS, "Largest number of categories per feature; rarer ones are treated as missing", 2,
        MAX_BINS, group=CATEGORIES,
    )  # fmt: skip
    max_cat_threshold: int = integer(32, "Largest number of categories in the set of a split", 1, group=CATEGORIES)
    max_cat_to_onehot: int = integer(
        4, "Up to this many categories, a split is one category against the rest", group=CATEGORIES
    )
    cat_smooth: float = number(
        10.0,
        "Smoothing of the values that categories are sorted by; categories with fewer documents than this in a leaf "
        "are not used",
        group=CATEGORIES,
    )
    cat_l2: float = number(
        10.0, "L2 regularisation of splits by a set of several categories, added to l2", group=CATEGORIES,
    )  # fmt: skip
    min_docs_per_group: int = integer(
        100,
        "Smallest number of documents in a group of categories, as min_data_per_group of LightGBM",
        1,
        group=CATEGORIES,
    )


@dataclass(frozen=True, kw_only=True)
class RunParameters:
    """The parameters of a run: where it trains, with what, and its seed."""

    device: str = choice("cpu", "Where to train: cpu, cuda (an NVIDIA GPU), or auto (cuda where there is one)",
                         ("cpu", "cuda", AUTO), group=LARGE)  # fmt: skip
    memory: str = parameter(
        AUTO, "Memory that training may use; bins that do not fit are read from a file (auto: bins may take 70% of "
        "what is free); "
        "with device cuda, memory of the GPU (auto: what is free)",
        "a size such as 4G or 800M, or auto", is_size, convert=size_text, group=LARGE,
    )  # fmt: skip
    bin_folder: str = parameter(AUTO, "Folder for bin files (auto: next to the data)", "a folder, or auto", bool,
                                convert=os.fspath, group=LARGE)  # fmt: skip
    keep_bins: bool = switch(True, "Keep bin files for later runs on the same data", group=LARGE)
    threads: int = integer(0, "Number of threads (0: all cores); the model is the same for any number", group=LARGE)
    seed: int = integer(0, "Random seed", group=SAMPLING)


def algorithms() -> dict[str, Algorithm]:
    """All algorithms: the boosted forests, and the rankers that are registered."""
    return FORESTS | {name: Algorithm((*parameters_of(one), *one.shared)) for name, one in RANKERS.items()}


def without_rules() -> dict[str, Parameter]:
    """The parameters of no rule: `algo`, those in `CoreParameters`, of the rankers and in `RunParameters`."""
    names = (*FORESTS, *RANKERS)
    algo = Parameter("algo", str, "selgb", RANKERS.help, f"one of {', '.join(names)}", names.__contains__, names=names,
                     group=TREES)  # fmt: skip
    own = {name: grouped(one, RANKERS) for _, ranker in RANKERS.items() for name, one in parameters_of(ranker).items()}
    return {"algo": algo, **parameters_of(CoreParameters), **own, **parameters_of(RunParameters)}


def grouped(one: Parameter, registry: Registry) -> Parameter:
    """A parameter of a rule in the group of the rules of its kind, unless it has a group of its own."""
    return one if one.group else replace(one, group=registry.group)


def users(name: str) -> dict[str, list[str]]:
    """The rules and algorithms that have a parameter, by the parameter that chooses them.

    Examples
    --------
    >>> users("margin"), users("c")
    ({'selection': ['adaptive', 'progress']}, {'algo': ['ranksvm']})
    """
    found = {
        one.kind: [key for key, rule in one.items() if isinstance(rule, type) and name in parameters_of(rule)]
        for one in SLOTS
    }  # the fields of an instance are set
    found["algo"] = [algo for algo, one in algorithms().items() if name in one.parameters]
    return {kind: names for kind, names in found.items() if names}


def help_of(one: Parameter) -> str:
    """The help text of a parameter, with the rule or algorithm that has to be chosen where these are few.

    Examples
    --------
    >>> help_of(table()["margin"])
    'Select negatives that score at most this much below the lowest-scored positive (selection adaptive, progress)'
    """
    using, help = users(one.name), one.help or "A parameter of the rule"
    if len(using) != 1:
        return help
    ((kind, names),) = using.items()
    return f"{help} ({kind} {', '.join(names)})" if len(names) <= MOST_NAMED else help


def with_parameters(doc: str | None, title: str, before: str) -> str:
    """A docstring in numpydoc's format with a section of all training parameters before another section."""
    lines = [title, "-" * len(title)]
    for one in table().values():
        kind = "str or rule" if one.type is object else getattr(one.type, "__name__", str(one.type))
        text = f"{help_of(one)}; {one.expected}." if one.expected != "true or false" else f"{help_of(one)}."
        lines += [f"{one.name} : {kind}, default {one.default!r}", textwrap.indent(textwrap.fill(text, 112), "    ")]
    start, section, end = inspect.cleandoc(doc or "").partition(f"{before}\n---")
    return f"{start}{chr(10).join(lines)}\n\n{section}{end}"


class ParametersDoc:
    """The docstring of a class, with all training parameters; made when it is read, as rules are registered later."""

    def __init__(self, doc: str | None, title: str, before: str) -> None:
        self._arguments = doc, title, before

    def __get__(self, instance: Any, owner: type) -> str:
        return with_parameters(*self._arguments)


def table() -> dict[str, Parameter]:
    """Every parameter by name: those that belong to no rule, the rules to choose, and the rules' own."""
    core = without_rules()
    found = {name: core[name] for name in ("algo", "trees", "leaves")}
    for registry in SLOTS:
        found[registry.kind] = slot(registry)
        for name in registry:
            rule = registry[name]
            for own in parameters_of(rule).values() if isinstance(rule, type) else ():
                known = core.get(own.name) or found.setdefault(own.name, grouped(own, registry))
                if not alike(known, own) or own.name in (kind.kind for kind in SLOTS):
                    raise ParameterError(
                        f"the {registry.kind} {name!r} has a parameter {own.name!r} that exists with default "
                        f"{known.default!r}; give it another name"
                    )
    return {**found, **core}


def file_parameters(chosen: Mapping[str, Any]) -> dict[str, Parameter]:
    """The parameters of rules that are chosen as file.py:Class, by their kinds; the files are imported.

    A kind may have several rules, in a list.
    """
    found: dict[str, Parameter] = {}
    for registry in SLOTS:
        given = chosen.get(registry.kind)
        for name in given if isinstance(given, list) else [given]:
            if isinstance(name, str) and ":" in name and name not in registry:
                rule = registry.find(name)
                own = parameters_of(rule) if isinstance(rule, type) else {}
                found |= {name: grouped(one, registry) for name, one in own.items()}
    return found


def slot(registry: Registry) -> Parameter:
    """The parameter that chooses a rule of a kind."""
    names = tuple(registry)
    is_auto = registry.default == AUTO
    text = registry.help + (f": {', '.join(names)} (auto: by algorithm)" if is_auto else "")
    expected = "a name" if is_auto else f"one of {', '.join(names)}"
    expected += ", or file.py:function" if registry.signature else ""
    return Parameter(
        registry.kind, object, registry.default, text, expected, convert=registry.checked, names=names,
        group=registry.group,
    )  # fmt: skip


def canonical(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values under the parameters' own names, which may be spelled with dashes or be aliases.

    Examples
    --------
    >>> canonical({"n_estimators": 7, "min-docs": 3, "global": True, "n_jobs": -2})
    {'trees': 7, 'min_docs': 3, 'global_': True, 'threads': 0}
    """
    found: dict[str, Any] = {}
    spelled: dict[str, str] = {}
    for given, value in values.items():
        alias = given.replace("-", "_")
        name = f"{alias}_" if keyword.iskeyword(alias) else ALIASES.get(alias, alias)
        if name in found:
            raise ParameterError(param(name), f" is given twice, as {spelled[name]} and as {given}; give one of them")
        if name == "threads" and (value is None or (isinstance(value, int | np.integer) and value < 0)):
            value = 0  # all cores
        if name == "max_depth" and value == -1:
            value = 0  # no limit, as in LightGBM
        if name == "seed" and alias != name and value is None:
            value = 0  # scikit-learn's random_state, CatBoost's random_seed
        found[name], spelled[name] = value, given
    return found


def alike(one: Parameter, other: Parameter) -> bool:
    """Whether two parameters of one name have one type and default."""
    return (one.type, one.default) == (other.type, other.default)


class _Quoted(ParamName):
    """A name that is not a parameter, as the user wrote it."""

    @property
    def flag(self) -> str:
        return repr(self.name)

    def __str__(self) -> str:
        return repr(self.name)


def unknown_parameter(name: str, known: Iterable[str]) -> list[str | ParamName]:
    """A message about a name that is not a parameter."""
    if name in ADVICE:
        return ["unknown parameter ", _Quoted(name), "; ", *ADVICE[name]]
    names = [*known, *ALIASES]
    others = [one for one in (*names, "valid", "categorical") if one != name]
    hint = did_you_mean(NEAREST.get(name, name), others).strip() or ALL_PARAMETERS
    return ["unknown parameter ", _Quoted(name), f"; {hint}"]


def flag(name: str) -> str:
    """The parameter's spelling on the command line: `min_docs` → `--min-docs`, `global_` → `--global`."""
    return param(name).flag

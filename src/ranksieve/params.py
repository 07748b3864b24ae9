"""`Params`, the checked parameters of a run; functions to define and register your own rules."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from ranksieve.errors import ParameterError, ParamName, param
from ranksieve.other_names import OTHER_ALGORITHMS
from ranksieve.parameter_table import (
    COMMON,
    FORESTS,
    Algorithm,
    ParametersDoc,
    algorithms,
    alike,
    canonical,
    table,
    unknown_parameter,
    users,
    without_rules,
)
from ranksieve.registration import register_objective, register_selection
from ranksieve.rules import (
    AUTO,
    OBJECTIVES,
    RANKERS,
    SELECTIONS,
    SLOTS,
    STEPS,
    STRATEGIES,
    Parameter,
    Registry,
    Selected,
    Traits,
    choice,
    fields_of,
    integer,
    number,
    parameter,
    parameters_of,
    share,
    switch,
    traits_of,
)
from ranksieve.text_formats import is_monotone
from ranksieve.user_functions import keep_sources, read_source

__all__ = [
    "Params",
    "Selected",
    "Traits",
    "choice",
    "integer",
    "number",
    "parameter",
    "register_objective",
    "register_selection",
    "share",
    "switch",
]


class Params:
    """The checked parameters of a run, by name as attributes.

    Names are the same in Python, in TOML files and on the command line (there with dashes).

    Parameters
    ----------
    **values
        Any of the parameters below; the others have their defaults. `selection` and `objective` may be rules or
        functions.

    Examples
    --------
    >>> params = Params(algo="selgb", negatives=0.05)
    >>> params.negatives, params.leaves, params.selection_rule
    (0.05, 16, TopNegatives(every=1, negatives=0.05, min_negatives=100))
    >>> params.unused(["margin", "leaves"])
    []
    >>> Params(algo="lambdamart", margin=2.0).unused()
    ['margin']
    """

    def __init__(self, **values: Any) -> None:
        known, given = table(), canonical(values)
        known |= self._own_parameters(given, known)
        for name in given:
            if name not in known:
                raise ParameterError(*unknown_parameter(name, known))
        self._given = {name: one.checked(given[name]) for name, one in known.items() if name in given}
        self._values = {name: one.default for name, one in known.items()} | self._given
        self._has_files = False  # whether rules of files count as they are, see `load_files`
        self._check_conflicts()
        low = self._values["step_range"][0]
        if low < 0 and is_monotone({"params": {"monotone": self.monotone}}):
            raise ParameterError(
                param("step_range"), f" begins at {low:g}, and a negative step would break ", param("monotone"),
                "; begin at 0 or above",
            )  # fmt: skip

    @staticmethod
    def _own_parameters(given: Mapping[str, Any], known: Mapping[str, Parameter]) -> dict[str, Parameter]:
        """The parameters of rules that are passed or named as file.py:Class.

        A file is imported only where an unknown name may be a parameter of its rule.
        """
        found: dict[str, Parameter] = {}
        for registry in SLOTS:
            rule = given.get(registry.kind)
            if isinstance(rule, str):
                if rule in registry or ":" not in rule or not set(given) - set(known):
                    continue
                rule = registry.find(rule)
            found |= _fitting(registry, rule)
        return found

    def _check_conflicts(self) -> None:
        """Refuse a parameter beside a finished rule that has another value of it."""
        for registry in SLOTS:
            rule = self._values[registry.kind]
            for name, value in {} if isinstance(rule, str | type) else fields_of(rule).items():
                if name in self._given and not _same(self._given[name], value):
                    raise ParameterError(
                        param(name), f" is {self._given[name]!r}, but {value!r} in the {registry.kind} that is passed; "
                        "give it in one place",
                    )  # fmt: skip

    def load_files(self) -> Params:
        """Import the files of rules, so that `used` and `as_dict` have their parameters; for the start of training."""
        self._has_files = True
        if self.forest_algorithm.is_forest:
            for registry, rule in ((SELECTIONS, self.selection_rule), (OBJECTIVES, self.objective_rule)):
                for name, value in fields_of(rule).items():
                    _check_storable(registry.kind, name, value)
        return self

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any], *, source: str = "parameters") -> Params:
        """Parameters from names with underscores or dashes; errors begin with the source."""
        try:
            return cls(**values)
        except ParameterError as error:
            raise error.with_prefix(f"{source}: ") from None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._values:
            raise AttributeError(f"no parameter {name!r}")
        return self._values[name]

    def __getstate__(self) -> dict[str, Any]:
        """Pickled parameters carry their rules, which may be registered under other names, or not at all, elsewhere.

        A rule of a file is imported there again, from a copy of the file's text if the file is missing.
        """
        state = dict(self.__dict__)
        sources: dict[str, str] = {}
        for registry in SLOTS:
            chosen = self._values[registry.kind]
            if isinstance(chosen, str) and ":" in chosen and chosen not in registry:
                state.pop(f"{registry.kind}_rule", None)
                sources |= read_source(chosen)
            elif self.forest_algorithm.is_forest and registry is not STRATEGIES:
                state[f"{registry.kind}_rule"] = getattr(self, f"{registry.kind}_rule")
        return {**state, "_sources": sources}

    def __setstate__(self, state: dict[str, Any]) -> None:
        keep_sources(state.pop("_sources"))
        self.__dict__.update(state)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Params) and self.as_dict() == other.as_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Params({', '.join(f'{name}={value!r}' for name, value in self.as_dict().items())})"

    def replace(self, **changes: Any) -> Params:
        """The same parameters with others in some places."""
        return Params(**{**self._given, **canonical(changes)})

    @property
    def algorithm(self) -> Algorithm:
        return FORESTS.get(self.algo) or algorithms()[self.algo]

    @property
    def forest_algorithm(self) -> Algorithm:
        """The algorithm that grows the trees: that of the base, where the algorithm has one."""
        return FORESTS[self.base] if self._traits.has_base else self.algorithm

    @property
    def _traits(self) -> Traits:
        """The traits of the ranker; those of a boosted forest are the defaults."""
        return traits_of(RANKERS.get(self.algo))

    @cached_property
    def selection_rule(self) -> Any:
        """The selection: a rule with its parameters, or the user's function."""
        return self._rule(SELECTIONS, self.forest_algorithm.selection)

    @cached_property
    def objective_rule(self) -> Any:
        """The objective: a rule with its parameters, or the user's function."""
        return self._rule(OBJECTIVES, self.forest_algorithm.objective or "ndcg")

    @cached_property
    def ranker_rule(self) -> Any:
        """The ranker, where the algorithm is not a boosted forest."""
        return self._rule(RANKERS, "")

    @cached_property
    def step_rule(self) -> Any:
        return self._rule(STEPS, STEPS.default)

    @cached_property
    def strategy_rule(self) -> Any:
        return self._rule(STRATEGIES, STRATEGIES.default)

    def _rule(self, registry: Registry, default: str) -> Any:
        chosen = self._values[registry.kind]
        if isinstance(chosen, str):
            chosen = registry.find(default if chosen == AUTO else chosen)
        return registry.build(chosen, self._given)

    @property
    def all_trees(self) -> int:
        """Largest number of trees, over all forests of a bag."""
        return int(self.trees * self.bag)

    @property
    def trees_to_wait(self) -> int:
        """Trees without improvement after which training stops (0: never), over all forests of a bag."""
        return int(self.early_stopping * self.bag)

    @property
    def held_out(self) -> float:
        """Share of the queries that is held out at a time for early stopping, if there is no validation data.

        It is 0 if the number of trees or epochs is given, unless `early_stopping` or `valid_fraction` is given, too.
        """
        rounds = {"trees", "epochs"} & set(self.used)
        is_wanted = rounds.isdisjoint(self._given) or not {"early_stopping", "valid_fraction"}.isdisjoint(self._given)
        stops = bool(rounds) and "early_stopping" in self.used and self.early_stopping > 0
        return float(self.valid_fraction) if is_wanted and stops else 0.0

    @property
    def needs_validation(self) -> bool:
        """Whether training uses validation lists for more than early stopping."""
        on_valid = "step_on" in self.used and self.step_on == "valid"
        return self.size > 0 or self._traits.has_base or on_valid

    @property
    def grows_trees(self) -> bool:
        """Whether trees are grown here, on bins, and not by another library."""
        return "gain" in self.used

    @property
    def bin_limits(self) -> dict[str, Any]:
        """The most bins of a feature, as arguments of `bin_data`."""
        return {"max_bins": self.max_bins, "max_cat_bins": self.max_cat_bins}

    @property
    def newton_gain(self) -> bool:
        """Whether splits are chosen by the gain with second derivatives."""
        return bool(self.gain == "newton")

    @property
    def uses_gains(self) -> bool:
        """Whether the gradients depend on `gains`."""
        traits = traits_of(self.objective_rule) if self.forest_algorithm.is_forest else self._traits
        return traits.uses_gains

    @property
    def used(self) -> tuple[str, ...]:
        """The parameters that have an effect, in the order of the table."""
        forest = self.forest_algorithm
        names = {*COMMON, *self.algorithm.parameters, *forest.parameters}
        if "strategy" in names:
            names |= self._rule_parameters(STRATEGIES, "")
        if forest.is_forest:
            names |= self._rule_parameters(SELECTIONS, forest.selection)
            names |= self._rule_parameters(OBJECTIVES, forest.objective) | self._rule_parameters(STEPS, "")
        if self._traits.has_base:
            names.discard("step_on")  # its rounds are grown without validation data
        return tuple(name for name in self._values if name in names)

    def _rule_parameters(self, registry: Registry, default: str) -> set[str]:
        """The parameters of the chosen rule of a kind.

        A file is not imported for this before `load_files`: until then, its rule may have any of those that are given.
        """
        rule = self._values[registry.kind]
        if isinstance(rule, str):
            name = default if rule == AUTO else rule
            if f"{registry.kind}_rule" in self.__dict__ and (name in registry or self._has_files):
                rule = self.__dict__[f"{registry.kind}_rule"]
            elif ":" in name and name not in registry:
                others = set(table()) - {one for known in registry for one in parameters_of(registry[known])}
                return set(self._given) - others | ({"every"} if registry is SELECTIONS else set())
            else:
                rule = registry.find(name)
        own = set(parameters_of(rule if isinstance(rule, type) else type(rule)))
        return own | ({"every"} if registry is SELECTIONS and traits_of(rule).is_periodic else set())

    def unused(self, names: Iterable[str] | None = None) -> list[str]:
        """Those of the names (default: all) that differ from their default and have no effect."""
        defaults = {name: one.default for name, one in table().items()}
        wanted, used = set(self._given if names is None else names), set(self.used)
        return [
            name for name, value in self._given.items()
            if name in wanted and name not in used and (name not in defaults or value != defaults[name])
        ]  # fmt: skip

    def check_used(self, names: Iterable[str] | None = None) -> None:
        """Refuse parameters that have no effect."""
        message = self.unused_message(names)
        if message:
            kinds = {kind: None for name in self.unused(names) for kind in self._users(name)}
            others = [f"another {'algorithm' if kind == RANKERS.kind else kind}" for kind in kinds]
            raise ParameterError(*message, "; leave it out", f", or choose {' and '.join(others)}" if others else "")

    def drop_unused(self) -> Params:
        """The parameters without those that have no effect, such as a file's for several algorithms."""
        used = set(self.used)
        return Params(**{name: value for name, value in self._given.items() if name in used}).load_files()

    def unused_message(self, names: Iterable[str] | None = None) -> list[str | ParamName]:
        """A sentence about each parameter without effect: what does not use it, and what does."""
        message: list[str | ParamName] = []
        for name in self.unused(names):
            message += ["; " if message else "", param(name), " is not used by ", param("algo", self.algo)]
            if self._values["selection"] != AUTO and self.forest_algorithm.is_forest:
                message += [" with ", param("selection", label(self._values["selection"]))]
            for kind, using in self._users(name).items():
                message += [", only by ", param(kind), f" {', '.join(using)}"]
        if self.algo in OTHER_ALGORITHMS and set(FORESTS["lambdamart"].parameters).intersection(self.unused(names)):
            message += ["; ", *OTHER_ALGORITHMS[self.algo]]
        return message

    def _users(self, name: str) -> dict[str, list[str]]:
        """What has to be chosen for a parameter to have an effect, and by which parameter; empty if not known."""
        for kind, names in users(name).items():
            if kind != STEPS.kind or self.forest_algorithm.is_forest:
                return {kind: names}
        return {}

    def as_dict(self) -> dict[str, Any]:
        """The parameters that have an effect; rules and functions as their names."""
        values = {name: self._values[name] for name in self.used if name in self._values}
        for registry in SLOTS:
            rule = values.get(registry.kind)
            if rule is None:
                continue
            values[registry.kind] = label(rule)
            if isinstance(rule, str) and ":" in rule and rule not in registry and self._has_files:
                rule = getattr(self, f"{registry.kind}_rule")
            values |= {} if isinstance(rule, str | type) else fields_of(rule)
        return values


Params.__doc__ = ParametersDoc(Params.__doc__, "Other Parameters", "Examples")  # type: ignore[assignment]


def _same(one: Any, other: Any) -> bool:
    """Whether two values are equal; arrays are where they are the same array."""
    return one is other or (type(one) is type(other) and bool(np.all(one == other)))


def _fitting(registry: Registry, rule: Any) -> dict[str, Parameter]:
    """The parameters of a rule that is passed; those that belong to no rule must be the same as there."""
    core, own = without_rules(), parameters_of(rule if isinstance(rule, type) else type(rule))
    for name, one in own.items():
        if name in (kind.kind for kind in SLOTS) or (name in core and not alike(one, core[name])):
            raise ParameterError(
                f"the {registry.kind} {label(rule)!r} has a field {name!r}, the name of another parameter; rename it"
            )
    return own


def _check_storable(kind: str, name: str, value: Any) -> None:
    """Refuse a value of a rule's field that model files and checkpoints cannot hold."""
    try:
        json.dumps(value)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"the field {name!r} of the {kind} is of type {type(value).__name__}, which a model file cannot hold "
            f"({error}); use numbers, texts, lists or mappings of them, or an attribute that is not a field"
        ) from None


def label(rule: Any) -> str:
    """A rule's name in model files and messages: its registered name, or where its code is."""
    if isinstance(rule, str):
        return rule
    kind = rule if isinstance(rule, type) or inspect.isroutine(rule) else type(rule)
    for registry in SLOTS:
        for name in registry:
            if registry[name] is kind or registry[name] is rule:
                return name
    return f"{kind.__module__}:{kind.__qualname__}"

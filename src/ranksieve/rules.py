"""Rules and their parameters.

A rule, such as a selection or an objective, is a frozen dataclass: its fields are its parameters, `__call__` is the
rule. A `Registry` holds the rules of one kind by name. Checks, command-line flags, TOML keys, the estimator's signature
and the tables of the documentation are derived from the registries (see `params`).
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ranksieve.errors import ParameterError, did_you_mean, param
from ranksieve.user_functions import import_function

AUTO = "auto"


@dataclass(frozen=True)
class Parameter:
    """One parameter: its name, type, default and help, and which values it takes."""

    name: str
    type: Any
    default: Any
    help: str = ""
    expected: str = ""
    check: Callable[[Any], bool] = lambda value: True
    convert: Callable[[Any], Any] | None = None
    names: tuple[str, ...] = ()  # the values, where there is a list of them

    def checked(self, value: Any) -> Any:
        """The value in the parameter's type; an error where it is out of range."""
        if isinstance(value, np.generic):
            value = value.item()
        try:
            if self.convert is not None:
                value = self.convert(value)
            if self.type is float and type(value) is int:
                value = float(value)
            good = self._has_type(value) and bool(self.check(value))
        except (TypeError, ValueError, AttributeError):
            good = False
        if not good:
            hint = did_you_mean(value, self.names)
            raise ParameterError(param(self.name), f" is {value!r}; {hint}expected {self.expected}")
        return value

    def _has_type(self, value: Any) -> bool:
        if self.type in (int, float, bool, str):
            return type(value) is self.type
        return True


_EXPECTED = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


@cache
def parameters_of(rule: Any) -> dict[str, Parameter]:
    """The parameters of a rule, one per field."""
    if not dataclasses.is_dataclass(rule):
        return {}
    types = typing.get_type_hints(rule)
    found = {}
    for item in dataclasses.fields(rule):
        about = dict(item.metadata) or {"expected": _EXPECTED.get(types[item.name], "a value")}
        found[item.name] = Parameter(item.name, types[item.name], item.default, **about)
    return found


def parameter(default: Any, help: str, expected: str, check: Callable[[Any], bool], **more: Any) -> Any:
    """A field of a rule, with its help text and the values it takes."""
    return dataclasses.field(default=default, metadata={"help": help, "expected": expected, "check": check, **more})


def integer(default: int, help: str, low: int = 0, high: int | None = None) -> Any:
    """A whole number from `low` to `high`."""
    expected = f"a whole number from {low}" + ("" if high is None else f" to {high}")
    return parameter(default, help, expected, lambda value: low <= value and (high is None or value <= high))


def number(default: float, help: str, low: float = 0.0) -> Any:
    """A finite number from `low`."""
    expected = "a number" if low == -np.inf else f"a number from {low:g}"
    return parameter(default, help, expected, lambda value: low <= value < np.inf and value > -np.inf)


def share(default: float, help: str, *, zero: bool = False) -> Any:
    """A number up to 1, above 0 or from 0."""
    expected = "a number in [0, 1]" if zero else "a number in (0, 1]"
    return parameter(default, help, expected, lambda value: (value >= 0 if zero else value > 0) and value <= 1)


def choice(default: str, help: str, names: tuple[str, ...]) -> Any:
    """One of some names."""
    return parameter(default, help, "one of " + ", ".join(names), lambda value: value in names, names=names)


def switch(default: bool, help: str) -> Any:
    """True or false."""
    return parameter(default, help, "true or false", lambda value: True)


class Registry:
    """The rules of one kind by name, for example all selections."""

    def __init__(self, kind: str, signature: str) -> None:
        self.kind = kind  # also the name of the parameter that chooses the rule
        self.signature = signature  # of a plain function in the place of a rule
        self._rules: dict[str, Any] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._rules

    def __iter__(self) -> Iterator[str]:
        return iter(self._rules)

    def __getitem__(self, name: str) -> Any:
        return self._rules[name]

    def add(self, name: str, rule: Any) -> None:
        """Register a rule; one that is there already under that name is replaced."""
        if not isinstance(name, str) or not name or ":" in name or name == AUTO:
            raise ParameterError(
                f"{name!r} cannot name a {self.kind}; give a word without a colon, other than {AUTO!r}"
            )
        if not callable(rule):
            raise ParameterError(f"the {self.kind} {name!r} is {type(rule).__name__}; expected {self.signature}")
        self._check_parameters(name, rule)
        self._rules[name] = rule

    def remove(self, name: str) -> None:
        del self._rules[name]

    def items(self) -> list[tuple[str, Any]]:
        return list(self._rules.items())

    def restore(self, rules: Mapping[str, Any]) -> None:
        """Hold these rules and no others."""
        self._rules = dict(rules)

    def register(self, name: str) -> Callable[[Any], Any]:
        """Register the class or function below."""

        def add(rule: Any) -> Any:
            self.add(name, rule)
            return rule

        return add

    def _check_parameters(self, name: str, rule: Any) -> None:
        """Parameters of one name have one default and one type in all rules of a kind."""
        own = parameters_of(rule) if isinstance(rule, type) else {}
        for parameter in own.values():
            if parameter.default is dataclasses.MISSING:
                raise ParameterError(
                    f"the {self.kind} {name!r} has no default for its field {parameter.name!r}; add one"
                )
            for other, known in self._rules.items():
                there = parameters_of(known).get(parameter.name) if isinstance(known, type) else None
                if there is not None and (there.default, there.type) != (parameter.default, parameter.type):
                    raise ParameterError(
                        f"the {self.kind} {name!r} has {parameter.name}={parameter.default!r} and {other!r} has "
                        f"{there.default!r}; give it that default, or another name"
                    )

    def find(self, name: str) -> Any:
        """The rule of a name: a registered one, or the user's own as `file.py:function`."""
        if name in self._rules:
            return self._rules[name]
        if ":" in name:
            return import_function(name, parameter=self.kind, signature=self.signature)
        known = f"known: {', '.join([AUTO, *self._rules])}, what register_{self.kind} added, and file.py:function"
        raise ParameterError(param(self.kind), f" is {name!r}; {did_you_mean(name, self._rules)}{known}")

    def build(self, rule: Any, values: Mapping[str, Any]) -> Any:
        """The rule with those of the values that are its parameters; functions and finished rules stay as they are."""
        if not isinstance(rule, type):
            return rule
        return rule(**{name: values[name] for name in parameters_of(rule) if name in values})


SELECTIONS = Registry("selection", "a function of a view, or a dataclass with a __call__(view)")
OBJECTIVES = Registry("objective", "a function of (labels, scores, offsets), or a dataclass with a __call__(view)")
STEPS = Registry("step", "a rule for the step size")
STRATEGIES = Registry("strategy", "a pruning strategy")

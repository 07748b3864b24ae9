"""Rules and their parameters.

A rule, such as a selection or an objective, is a frozen dataclass: its fields are its parameters, `__call__` is the
rule. A `Registry` holds the rules of one kind by name. Checks, command-line flags, TOML keys, the estimator's signature
and the tables of the documentation are derived from the registries (see `params`).
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import keyword
import pkgutil
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ranksieve.errors import ParameterError, ParamName, did_you_mean, param
from ranksieve.field_types import fitted, words
from ranksieve.other_names import ALIASES, NEAREST, VALUE_ADVICE
from ranksieve.user_functions import import_function

AUTO = "auto"
OBJECTIVE, PRUNING_GROUP = "Objective", "Pruning"  # groups of parameters, see `Parameter.group`
# Where the rules and rankers are: modules, and packages all of whose modules are loaded. Help texts need them, so they
# import kernels and libraries only where a rule is called.
RULES = (
    "ranksieve.boosting.selections",
    "ranksieve.boosting.objectives",
    "ranksieve.boosting.steps",
    "ranksieve.pruning.strategies",
    "ranksieve.rankers.algorithms",
)


@cache
def load_rules() -> None:
    """Import the modules that register rules."""
    for name in RULES:
        module = importlib.import_module(name)
        for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
            importlib.import_module(f"{name}.{found.name}")


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
    group: str = ""  # what it is about: its title in the help of commands

    def takes(self, value: Any) -> bool:
        """Whether a value has the type and is in range."""
        try:
            return self.check(fitted(value, self.type))
        except TypeError:
            return False

    def checked(self, value: Any) -> Any:
        """The value in the parameter's type; an error where it is out of range."""
        value = value.item() if isinstance(value, np.generic) else value
        try:
            given = fitted(value if self.convert is None else self.convert(value), self.type)
        except ParameterError:
            raise
        except (TypeError, ValueError):
            raise self._error(value) from None
        if not self.check(given):
            raise self._error(given)
        return given

    def _error(self, value: Any) -> ParameterError:
        advice = VALUE_ADVICE.get((self.name, value.lower())) if isinstance(value, str) else None
        expected = f"expected {self.expected}"
        if advice is not None:
            return ParameterError(param(self.name), f" is {value!r}; ", *advice, "; ", expected)
        return ParameterError(param(self.name), f" is {value!r}; {did_you_mean(value, self.names)}{expected}")


@dataclass(frozen=True)
class Traits:
    """What training has to know about a rule besides its parameters: the class attribute `traits` of a rule.

    A function, or a class without that attribute, has the defaults.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Pairs:
    ...     traits: typing.ClassVar = Traits(needs_pairs=True)
    >>> traits_of(Pairs).needs_pairs
    True
    """

    # of objectives
    needs_pairs: bool = False  # some query must have documents of two grades
    starts_at_mean: bool = False  # scores start at the mean label, the best constant of a regression
    uses_gains: bool = False  # the gradients depend on the gain table; also of rankers
    # of selections
    is_periodic: bool = True  # it is made again every `every` trees
    needs_last_selection: bool = True  # it depends on earlier selections
    needs_all_queries: bool = False  # it compares documents of all queries, so workers cannot run it
    # of steps
    one_machine_only: bool = False
    varies: bool = False  # it differs from tree to tree, so models store it
    # of rankers
    uses_categories: bool = False
    learns_biases: bool = False  # of positions
    library: str = ""  # the optional dependency that it needs; its module and extra have the name in lower case
    has_base: bool = False  # it grows the trees of the algorithm `base` in rounds, and prunes them after each


@dataclass(frozen=True)
class Selected:
    """What a selection may return instead of plain rows: rows with weights, or a sample of the full lists.

    A tree is normally trained on lists that consist of the selected rows alone: those give the ranks and gradients.
    With `full_lists` the gradients are those of the full lists, and the rows are a sample of them.

    Examples
    --------
    Every third document, with gradients of the full lists:

    >>> def every_third(view):
    ...     return Selected(np.arange(0, view.lists.n_docs, 3), full_lists=True)
    """

    rows: np.ndarray
    weights: np.ndarray | None = None
    full_lists: bool = False


def traits_of(rule: Any) -> Traits:
    """The traits of a rule, of its class, or of a function."""
    return getattr(rule, "traits", Traits())


OWN = "ranksieve"  # the key of the metadata of a field that `parameter` makes; other libraries have theirs


@cache
def parameters_of(rule: Any) -> dict[str, Parameter]:
    """The parameters of a rule, one per field."""
    if not dataclasses.is_dataclass(rule):
        return {}
    kind = rule if isinstance(rule, type) else type(rule)
    try:
        hints = typing.get_type_hints(kind)
    except Exception as error:  # the annotations are the user's
        raise ParameterError(
            f"the types of the fields of {kind.__qualname__} cannot be read ({type(error).__name__}: {error}); use "
            "types that the module of the class has as global names"
        ) from error
    found = {}
    for item in dataclasses.fields(kind):
        if item.init:
            about = item.metadata.get(OWN) or {"expected": words(hints[item.name])}
            found[item.name] = Parameter(item.name, hints[item.name], item.default, **about)
    return found


def parameter(default: Any, help: str, expected: str, check: Callable[[Any], bool], **more: Any) -> Any:
    """A field of a rule, with its help text and the values it takes.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Even:
    ...     n_docs: int = parameter(2, "Documents of each list", "an even number", lambda value: value % 2 == 0)
    >>> parameters_of(Even)["n_docs"].checked(4)
    4
    """
    about = {"help": help, "expected": expected, "check": check, **more}
    return dataclasses.field(default=default, metadata={OWN: about})


def integer(default: int, help: str, low: int = 0, high: int | None = None, *, group: str = "") -> Any:
    """A field of a rule: an integer from `low` to `high`.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class First:
    ...     first_docs: int = integer(10, "Documents from the top of each list", 1)
    >>> parameters_of(First)["first_docs"].expected
    'an integer from 1'
    """
    expected = f"an integer from {low}" + ("" if high is None else f" to {high}")
    check = lambda value: low <= value and (high is None or value <= high)  # noqa: E731
    return parameter(default, help, expected, check, group=group)


def number(default: float, help: str, low: float = 0.0, *, group: str = "") -> Any:
    """A field of a rule: a finite number from `low`.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Margin:
    ...     distance: float = number(1.5, "Distance to the lowest positive")
    >>> parameters_of(Margin)["distance"].expected
    'a number from 0'
    """
    expected = "a number" if low == -np.inf else f"a number from {low:g}"
    return parameter(default, help, expected, lambda value: low <= value < np.inf and value > -np.inf, group=group)


def share(default: float, help: str, *, zero: bool = False, group: str = "") -> Any:
    """A field of a rule: a number up to 1, above 0 or, with `zero`, from 0.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Parts:
    ...     kept: float = share(0.5, "Share of the documents")
    ...     left: float = share(0.0, "Share of the others", zero=True)
    >>> [one.expected for one in parameters_of(Parts).values()]
    ['a number in (0, 1]', 'a number in [0, 1]']
    """
    if zero:
        return parameter(default, help, "a number in [0, 1]", lambda value: 0 <= value <= 1, group=group)
    return parameter(default, help, "a number in (0, 1]", lambda value: 0 < value <= 1, group=group)


def choice(default: str, help: str, names: tuple[str, ...], *, group: str = "") -> Any:
    """A field of a rule: one of some names.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Ordered:
    ...     order: str = choice("score", "Order of the documents", ("score", "input"))
    >>> parameters_of(Ordered)["order"].expected
    'one of score, input'
    """
    expected = "one of " + ", ".join(names)
    return parameter(default, help, expected, lambda value: value in names, names=names, group=group)


def switch(default: bool, help: str, *, group: str = "") -> Any:
    """A field of a rule: true or false.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Whole:
    ...     all_lists: bool = switch(False, "Use all lists")
    >>> parameters_of(Whole)["all_lists"].default
    False
    """
    return parameter(default, help, "true or false", lambda value: True, group=group)


# Functions that take parameters as keyword arguments beside their own arguments; pruning: of strategies.
TRAINING = ("ranksieve.rankers.train:train", "ranksieve.cluster.training:train")
PRUNING = ("ranksieve.pruning.prune:prune", "ranksieve.pruning.prune:PruningOptions",
           "ranksieve.pruning.weight_search:WeightSearch")  # fmt: skip
# Names of the estimator: those that scikit-learn gives to every one, and an argument of `fit`.
ESTIMATOR = ("fit", "predict", "score", "get_params", "set_params", "get_metadata_routing", "set_fit_request",
             "set_predict_request", "set_score_request", "positions")  # fmt: skip


def reserved_names(kind: str) -> frozenset[str]:
    """Names that a field of a rule of a kind cannot have, since they have another meaning where parameters are given.

    What has these names is imported here, as it is built on rules. The command line checks names of options by itself.
    """
    of_training, of_pruning = _reserved_names()
    return of_training | of_pruning if kind == "strategy" else of_training


@cache
def _reserved_names() -> tuple[frozenset[str], frozenset[str]]:
    """Names in training and in pruning; both are found before the first rule of a user is in the table."""
    names = {*ALIASES, *ESTIMATOR, "traits", *dir(pkgutil.resolve_name("ranksieve.params:Params"))}
    names.update(pkgutil.resolve_name("ranksieve.data.data_file:COLUMN_PARAMETERS"))
    own = set(pkgutil.resolve_name("ranksieve.parameter_table:table")())
    return frozenset((names | _arguments(TRAINING)) - own), frozenset(_arguments(PRUNING) - own)


def _arguments(places: tuple[str, ...]) -> set[str]:
    """Names that can be given as keyword arguments of some functions."""
    given = (one for place in places for one in inspect.signature(pkgutil.resolve_name(place)).parameters.values())
    return {one.name for one in given if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}


class Registry(Mapping[str, Any]):
    """The rules of one kind by name, for example all selections; those of this package are loaded when they are used.

    Parameters
    ----------
    kind : str
        Also the name of the parameter that chooses the rule.
    signature : str
        What a plain function in the place of a rule is, for messages; empty where rules are registered ones.
    default : str
        The name of the default rule, or "auto".
    help : str
        Help text of the parameter that chooses the rule.
    n_arguments : int
        Of a plain function in the place of a rule; 0: not checked.
    group : str
        The group of the parameter that chooses the rule, and of the rules' own.
    """

    def __init__(
        self, kind: str, signature: str, default: str, help: str, n_arguments: int = 0, group: str = ""
    ) -> None:
        self.kind, self.signature, self.default, self.help = kind, signature, default, help
        self.n_arguments, self.group = n_arguments, group
        self._rules: dict[str, Any] = {}
        self._own: dict[str, Any] = {}  # rules of this package

    def __getitem__(self, name: str) -> Any:
        load_rules()
        return self._rules[name]

    def __iter__(self) -> Iterator[str]:
        load_rules()
        return iter(sorted(self._rules))  # not by import order, which differs between processes

    def __len__(self) -> int:
        load_rules()
        return len(self._rules)

    def add(self, name: str, rule: Any, *, replace: bool = False) -> None:
        """Register a rule; with `replace`, in the place of the one that has the name."""
        if not isinstance(name, str) or not name or ":" in name or name == AUTO:
            raise ParameterError(
                f"{name!r} cannot name a {self.kind}; give a word without a colon, other than {AUTO!r}"
            )
        if name in self and not replace:
            raise ParameterError(
                f"there is a {self.kind} {name!r} already; choose another name, or replace it with replace=True"
            )
        if not callable(rule):
            raise ParameterError(f"the {self.kind} {name!r} is {type(rule).__name__}; expected {self._expected_rule}")
        self._check_rule(rule, f"the {self.kind} {name!r}")
        self._check_parameters(name, rule)
        self._rules[name] = rule

    def restore(self, rules: Mapping[str, Any]) -> None:
        """Hold these rules and no others."""
        self._rules = dict(rules)

    def register(self, name: str) -> Callable[[Any], Any]:
        """Register a rule of this package, the class below."""

        def add(rule: Any) -> Any:
            self._check_parameters(name, rule)
            self._rules[name] = self._own[name] = rule
            return rule

        return add

    def is_added(self, name: str) -> bool:
        """Whether the rule of a name is the user's."""
        return self[name] is not self._own.get(name)

    def is_own(self, rule: Any) -> bool:
        """Whether a rule is one of this package; a subclass of one is not."""
        return type(rule) in self._own.values()

    def checked(self, rule: Any) -> Any:
        """A rule that is passed, or the name of one; its fields are checked."""
        if isinstance(rule, str):
            if not rule or (self.default != AUTO and rule not in self and ":" not in rule):
                raise ParameterError(param(self.kind), f" is {rule!r}; ", *self._known(rule))
            return rule
        if not callable(rule) or not (self.signature or dataclasses.is_dataclass(rule)):
            raise ParameterError(param(self.kind), f" is {rule!r}; expected a name or {self._expected_rule}")
        self._check_rule(rule, f"the {self.kind} {getattr(rule, '__name__', type(rule).__name__)!r}")
        return rule if isinstance(rule, type) else checked_fields(rule)

    @property
    def _expected_rule(self) -> str:
        return self.signature or "a dataclass as those of the registered ones"

    def _check_rule(self, rule: Any, title: str) -> None:
        """Refuse functions that take other arguments, classes without fields, and fields that cannot be parameters."""
        if inspect.isfunction(rule) and self.n_arguments:
            found = inspect.signature(rule)
            try:
                found.bind(*range(self.n_arguments))
            except TypeError:
                raise ParameterError(
                    f"{title} is the function {rule.__name__}{found}; expected {self.signature}"
                ) from None
        if isinstance(rule, type) and not dataclasses.is_dataclass(rule):
            raise ParameterError(
                f"{title} is the class {rule.__qualname__}, which is not a dataclass; expected {self._expected_rule}; "
                "decorate the class with @dataclass(frozen=True)"
            )
        for name, one in parameters_of(rule if isinstance(rule, type) else type(rule)).items():
            if name.strip("_") != name or keyword.iskeyword(name) or name in reserved_names(self.kind):
                raise ParameterError(f"{title} has a field {name!r}, a name that has another meaning; rename the field")
            if isinstance(rule, type) and one.default is dataclasses.MISSING:
                raise ParameterError(f"{title} has no default for its field {name!r}; add one, not a default_factory")

    def _check_parameters(self, name: str, rule: Any) -> None:
        """Parameters of one name have one default and one type in all rules of a kind."""
        own = parameters_of(rule) if isinstance(rule, type) else {}
        for parameter in own.values():
            for other, known in sorted(self._rules.items()):
                there = parameters_of(known).get(parameter.name) if isinstance(known, type) and other != name else None
                if there is not None and (there.default, there.type) != (parameter.default, parameter.type):
                    raise ParameterError(
                        f"the {self.kind} {name!r} has {parameter.name}={parameter.default!r} and {other!r} has "
                        f"{there.default!r}; give it that default, or another name"
                    )

    def find(self, name: str) -> Any:
        """The rule of a name: a registered one, or the user's own as `file.py:function`."""
        if name in self:
            return self[name]
        is_others = name.lower() in NEAREST or (self.kind, name.lower()) in VALUE_ADVICE  # XGBoost has 'rank:ndcg'
        if ":" in name and self.signature and not is_others:
            rule = import_function(name, parameter=self.kind, signature=self.signature)
            self._check_rule(rule, f"the {self.kind} {name!r}")
            return rule
        raise ParameterError(param(self.kind), f" is {name!r}; ", *self._known(name))

    def _known(self, name: str) -> Sequence[str | ParamName]:
        """Advice on a name that is not known."""
        known = ", ".join([AUTO, *self] if self.default == AUTO else self)
        near = NEAREST.get(name.lower(), name)
        advice = VALUE_ADVICE.get((self.kind, name.lower()))
        hint = (did_you_mean(near, self),) if advice is None else (*advice, "; ")
        return (*hint, f"known: {known}{', and file.py:function' if self.signature else ''}")

    def build(self, rule: Any, values: Mapping[str, Any]) -> Any:
        """The rule with those of the values that are its parameters; functions and finished rules stay as they are."""
        if not isinstance(rule, type):
            return checked_fields(rule)
        own = parameters_of(rule)
        return checked_fields(rule(**{name: one.checked(values[name]) for name, one in own.items() if name in values}))


def checked_fields(rule: Any) -> Any:
    """A finished rule whose fields are checked, and in the types of its parameters."""
    kind: Any = type(rule)
    own = parameters_of(kind)
    values = {name: one.checked(getattr(rule, name)) for name, one in own.items()}
    changed = {name: value for name, value in values.items() if type(value) is not type(getattr(rule, name))}
    return dataclasses.replace(rule, **changed) if changed else rule


def fields_of(rule: Any) -> dict[str, Any]:
    """The parameters of a finished rule and their values."""
    kind: Any = type(rule)
    return {name: getattr(rule, name) for name in parameters_of(kind)}


SELECTIONS = Registry(
    "selection", "a function of a view, or a dataclass with a __call__(view)", AUTO, "Rows that a tree is trained on",
    1, "Selection",
)  # fmt: skip
OBJECTIVES = Registry(
    "objective", "a function of (labels, scores, offsets), or a dataclass with a __call__(view)", AUTO,
    "What the trees fit", 3, OBJECTIVE,
)  # fmt: skip
STEPS = Registry(
    "step", "", "shrinkage", "Step size of each tree: a constant shrinkage, or the optimal step for the metric",
    group="Learning rate",
)  # fmt: skip
STRATEGIES = Registry(
    "strategy", "a function of (outputs, n, rng), or a dataclass with such a __call__", "quality-loss",
    "Which trees are removed", 3, PRUNING_GROUP,
)  # fmt: skip
RANKERS = Registry("algo", "", "", "Algorithm", group="Other algorithms")  # those that are not one boosted forest
SLOTS = (SELECTIONS, OBJECTIVES, STEPS, STRATEGIES)  # rules that a parameter of their kind chooses

"""Errors a user can act on: each names what was given, what was expected, and what to do."""

from __future__ import annotations

import difflib
import importlib
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "ClusterError",
    "DataError",
    "DeviceError",
    "InterruptedTraining",
    "InterruptedTuning",
    "MissingExtraError",
    "MissingQueriesError",
    "ModelError",
    "ParameterError",
    "RanksieveError",
    "RanksieveWarning",
    "TiedScoresWarning",
    "UnusedParameterWarning",
]


@dataclass(frozen=True)
class ParamName:
    """A parameter in a message, with a value where the message is about that value."""

    name: str
    value: Any = None

    @property
    def flag(self) -> str:
        """`min_docs` → `--min-docs`, `global_` → `--global`; with a value, `--algo mart`."""
        flag = "--" + self.name.rstrip("_").replace("_", "-")
        return flag if self.value is None else f"{flag} {shlex.quote(str(self.value))}"

    def __str__(self) -> str:
        return self.name if self.value is None else f"{self.name}={self.value!r}"


class Remedy(ParamName):
    """Advice in a message: in Python the `name`, on the command line the `value`."""

    @property
    def flag(self) -> str:
        return str(self.value)

    def __str__(self) -> str:
        return self.name


def param(name: str, value: Any = None) -> ParamName:
    """A parameter as part of an error, a warning or a note: each place where it is shown has its own spelling.

    Examples
    --------
    >>> error = ParameterError(param("min_docs"), " is 0; expected an integer from 1")
    >>> str(error)
    'min_docs is 0; expected an integer from 1'
    >>> error.for_command_line()
    '--min-docs is 0; expected an integer from 1'
    """
    return ParamName(name, value)


def joined_parts(parts: Iterable[str | ParamName], *, flags: bool = False) -> str:
    """A message made of text and parameters, which are spelled as flags or as in Python."""
    return "".join(part.flag if flags and isinstance(part, ParamName) else str(part) for part in parts)


class _Message(Exception):
    """A message made of parts: text, and parameters by name."""

    def __init__(self, *parts: str | ParamName) -> None:
        super().__init__(*parts)

    @property
    def parts(self) -> tuple[str | ParamName, ...]:
        return self.args

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters that the message is about."""
        return tuple(part.name for part in self.parts if isinstance(part, ParamName) and not isinstance(part, Remedy))

    def for_command_line(self) -> str:
        """The message with parameters spelled as flags."""
        return joined_parts(self.parts, flags=True)

    def __str__(self) -> str:
        return joined_parts(self.parts)

    def with_prefix(self, text: str) -> Self:
        """The same error with a text before its message, for example the file and line it is about."""
        return type(self)(text, *self.parts)

    def with_suffix(self, *parts: str | ParamName) -> Self:
        """The same error with more at its end."""
        return type(self)(*self.parts, *parts)


class RanksieveError(_Message, ValueError):
    """Base of every error raised on bad input; the command line prints it without a traceback and exits with 2."""


class RanksieveWarning(_Message, UserWarning):
    """Something that was done but may not be intended; the command line prints it as one line."""


class DataError(RanksieveError):
    """A data file or array that cannot be used; names file and line where there is one."""


class MissingQueriesError(DataError):
    """Arrays of documents without their queries, or with two descriptions of these."""


class ParameterError(RanksieveError):
    """A parameter with an unknown name or a value out of range."""


class ModelError(RanksieveError):
    """A model file that cannot be read, or a model that does not fit the data."""


class MissingExtraError(RanksieveError, ImportError):
    """An optional dependency is needed for this and is not installed."""


class ClusterError(RanksieveError):
    """A cluster lost its scheduler or all its workers, or its workers have too little memory."""


class DeviceError(RanksieveError):
    """A GPU that is missing, or that has too little memory."""


class UnusedParameterWarning(RanksieveWarning):
    """A parameter that the chosen algorithm does not use."""


class TiedScoresWarning(RanksieveWarning):
    """A validation metric that depends on the input order of documents with equal scores."""


class InterruptedTraining(KeyboardInterrupt):
    """Ctrl-C in the middle of training; `model` is the model of the finished trees."""

    def __init__(self, model: Any) -> None:
        super().__init__("training was interrupted")
        self.model = model


class InterruptedTuning(InterruptedTraining):
    """Ctrl-C in the middle of `tune`; `found` is the result of the finished trials."""

    def __init__(self, found: Any) -> None:
        super().__init__(found.model)
        self.found = found


OTHER_WORDS = {"gpu": "cuda", "search": "retrieve"}  # for the same thing, elsewhere


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """The beginning of advice on a name that is not known: the nearest one, ignoring case; empty if none is near.

    Examples
    --------
    >>> did_you_mean("SelGBB", ["lambdamart", "selgb"])
    "did you mean 'selgb'? "
    >>> did_you_mean("gpu", ["cpu", "cuda", "auto"])
    "did you mean 'cuda'? "
    >>> did_you_mean("x", ["lambdamart", "selgb"])
    ''
    """
    spellings = {one.lower(): one for one in known}
    word = str(name).lower()
    near = (
        [OTHER_WORDS[word]] if OTHER_WORDS.get(word) in spellings else difflib.get_close_matches(word, spellings, n=1)
    )
    return f"did you mean {spellings[near[0]]!r}? " if near else ""


def check_key(key: str, known: Sequence[str]) -> None:
    """Refuse a key of a table, spelled with dashes or underscores, that is none of the known ones."""
    if key.replace("_", "-") not in known:
        hint = did_you_mean(key, known).strip() or f"known: {', '.join(known)}"
        raise ParameterError(f"unknown key {key!r}; {hint}")


def check_choice(name: str, value: object, known: Iterable[str]) -> None:
    """Refuse a value of a parameter that is none of the known ones."""
    names = tuple(known)
    if value not in names:
        hint = did_you_mean(value, names)
        raise ParameterError(param(name), f" is {value!r}; {hint}expected one of {', '.join(names)}")


def check_once(names: Iterable[object], remedy: str) -> None:
    """Refuse what is given twice.

    Examples
    --------
    >>> check_once(["ndcg@10", "map", "ndcg@10"], "name each metric once")
    Traceback (most recent call last):
    ranksieve.errors.ParameterError: ndcg@10 is given twice; name each metric once
    """
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ParameterError(f"{twice[0]} is given twice; {remedy}")


def check_whole(name: str, value: object, low: int = 1) -> None:
    """Refuse a value of a parameter that is not an integer from `low`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < low:
        raise ParameterError(param(name), f" is {value!r}; expected an integer from {low}")


def check_number(name: str, value: object, low: float = 0, high: float = inf) -> None:
    """Refuse a value of a parameter that is not a number from `low` to `high`."""
    if not isinstance(value, Real) or isinstance(value, bool) or not low <= float(value) <= high:
        limit = "" if high == inf else f" to {high:g}"
        raise ParameterError(param(name), f" is {value!r}; expected a number from {low:g}{limit}")


def import_extra(module: str, need: str, install: str) -> Any:
    """The module of an optional dependency, or an error that says what needs it and what to install.

    Examples
    --------
    >>> import_extra("no_such_module", "drawing needs 'some-package'", "ranksieve[plots]")
    Traceback (most recent call last):
    ranksieve.errors.MissingExtraError: drawing needs 'some-package'; install it with: pip install 'ranksieve[plots]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(f"{need}; install it with: pip install '{install}'") from error


def caller_level() -> int:
    """The `stacklevel` of `warnings.warn` for the line that called this package."""
    frame, level = sys._getframe(1), 1
    inside = ("ranksieve", "contextlib")  # which enters and leaves our context managers
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in inside:
        frame, level = frame.f_back, level + 1
    return level

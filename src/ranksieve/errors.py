"""Errors a user can act on: each says what was got, what was expected, and what to do."""

from __future__ import annotations

import difflib
import keyword
import re
from collections.abc import Iterable, Sequence
from typing import Any

FLAG = re.compile(r"(?<![\w./\\-])--([a-z][a-z0-9-]*)(?:=([^\s;,()]+))?")
COMMAND = re.compile(r"ranksieve [a-z]+[^;]*")  # within which flags are meant


class _Told:
    """Messages are written with flags, `--min-docs is 0` or `use --algo=mart`; `str` tells them as Python spells them,
    and the command line `by_flags`.
    """

    @property
    def by_flags(self) -> str:
        return super().__str__()

    def __str__(self) -> str:
        return in_python(self.by_flags)


class RanksieveError(_Told, ValueError):
    """Base of every error raised on bad input; the command line prints it without a traceback and exits with 2."""


class RanksieveWarning(_Told, UserWarning):
    """What is done but may not be meant; the command line prints it as one line."""


class DataError(RanksieveError):
    """A data file or array that cannot be used; names file and line where there is one."""


class ParameterError(RanksieveError):
    """A parameter with an unknown name or a value out of range."""


class ModelError(RanksieveError):
    """A model file that cannot be read, or a model that does not fit the data."""


class MissingExtraError(RanksieveError, ImportError):
    """An optional dependency is needed for this and is not installed."""


class ClusterError(RanksieveError):
    """A cluster that lost its scheduler, all its workers, or workers too small for their lists."""


class IdleParameterWarning(UserWarning):
    """A parameter that the chosen algorithm does not heed; of options for several algorithms it may be silenced."""


class InterruptedTraining(KeyboardInterrupt):
    """Ctrl-C in the middle of training; `model` is what the finished trees make."""

    def __init__(self, model: Any) -> None:
        super().__init__("training was interrupted")
        self.model = model


def in_python(message: str) -> str:
    """A message with Python's names for what it has flags for; commands in it stay as they are.

    Examples
    --------
    >>> in_python("--min-docs is 0; use --algo=mart, or see ranksieve train --help")
    "min_docs is 0; use algo='mart', or see ranksieve train --help"
    >>> in_python("runs--old/dev.txt: --metric is missing")
    'runs--old/dev.txt: metric is missing'
    """
    commands = COMMAND.findall(message)
    told = [FLAG.sub(_spelled, part) for part in COMMAND.split(message)]
    return "".join(part + command for part, command in zip(told, [*commands, ""], strict=True))


def _spelled(found: re.Match[str]) -> str:
    name, value = found[1].replace("-", "_"), found[2]
    name += "_" * keyword.iskeyword(name)
    return name if value is None else f"{name}={value if value[0].isdigit() else repr(value)}"


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """The beginning of advice on a name that is not known: the nearest one, whatever its case; empty if none is near.

    Examples
    --------
    >>> did_you_mean("SelGBB", ["lambdamart", "selgb"])
    "did you mean 'selgb'? "
    >>> did_you_mean("x", ["lambdamart", "selgb"])
    ''
    """
    spellings = {one.lower(): one for one in known}
    near = difflib.get_close_matches(str(name).lower(), spellings, n=1)
    return f"did you mean {spellings[near[0]]!r}? " if near else ""


def check_key(key: str, known: Sequence[str]) -> None:
    """Refuse a key of a table, spelled with dashes or underscores, that is none of the known ones."""
    if key.replace("_", "-") not in known:
        hint = did_you_mean(key, known).strip() or f"known: {', '.join(known)}"
        raise ParameterError(f"unknown key {key!r}; {hint}")

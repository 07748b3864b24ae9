"""TOML files: tables read into dataclasses, and errors with the line of a key, which the parser does not keep."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from ranksieve.errors import ParameterError, ParamName, RanksieveError, did_you_mean
from ranksieve.other_names import ALL_PARAMETERS
from ranksieve.rules import parameters_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Place = tuple[str | int, ...]  # `("runs", 0)` is the first `[[runs]]`, `("runs", 0, "algo")` its key
T = TypeVar("T")
MOST_NAMES = 40  # that an error lists; there are more parameters of training

HEADER = re.compile(r"\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(#.*)?$")
KEY = re.compile(r"""\s*([\w-]+|"[^"]*"|'[^']*')(\s*\.\s*[\w-]+)*\s*=""")
PART = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


class TomlFile:
    """The values of a TOML file; errors name file and line.

    Parameters
    ----------
    path : path
    like : str
        Lines that the file should have, for the errors.
    """

    def __init__(self, path: str | Path, *, like: str) -> None:
        self.path = str(path)
        try:
            self.text = Path(path).read_text(encoding="utf-8")
            self.values = tomllib.loads(self.text)
        except OSError as error:
            raise ParameterError(f"{path}: cannot be read ({error.strerror}); give a TOML file with {like}") from error
        except ValueError as error:  # not TOML, not UTF-8, or a number of thousands of digits
            raise ParameterError(f"{path}: not a TOML file ({error}); expected {like}") from error
        except RecursionError:
            raise ParameterError(f"{path}: nested too deeply; expected {like}") from None
        self._lines = {_plain(place): line for place, line in key_lines(self.text).items()}

    def error(self, place: Place, *message: str | ParamName) -> ParameterError:
        """An error about a key, or the table nearest to it."""
        return ParameterError(f"{self.position(place)}: ", *message)

    def check(self, place: Place, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function; its errors get the position of a key."""
        try:
            return function(*arguments)
        except RanksieveError as error:
            raise self.error(place, *error.parts) from None

    def read(
        self,
        kind: type[T],
        values: Mapping[str, Any],
        place: Place = (),
        *,
        more: Sequence[str] = (),
        without: Sequence[str] = (),
    ) -> T:
        """A table as a dataclass: its fields are the known keys, and their types and ranges are checked.

        Keys are spelled with dashes or underscores. Those named in `more` are known, too, and left out of the
        dataclass; fields named in `without` are not keys.
        """
        parameters = parameters_of(cast(Any, kind))
        known = [name for name in parameters if name not in without]
        self.check_keys(values, [*known, *more], place)
        given = {}
        for key, value in values.items():
            name = key.replace("-", "_")
            if name in known:
                if not parameters[name].takes(value):
                    raise self.error((*place, key), f"{key} is {value!r}; expected {parameters[name].expected}")
                given[name] = tuple(value) if isinstance(value, list) else value
        return kind(**given)

    def check_keys(self, values: Mapping[str, Any], known: Sequence[str], place: Place) -> None:
        """Refuse unknown keys; known ones are spelled with underscores."""
        for key in values:
            if key.replace("-", "_") not in known:
                names = [name.replace("_", "-") for name in known]
                listed = f"known: {', '.join(names)}" if len(names) <= MOST_NAMES else ALL_PARAMETERS
                hint = did_you_mean(key, names).strip() or listed
                raise self.error((*place, key), f"unknown key {key!r}; {hint}")

    def position(self, place: Place) -> str:
        """`file.toml:12`, the line of a key or of the table nearest to it."""
        return f"{self.path}:{line_of(self._lines, _plain(place))}"


def _plain(place: Place) -> Place:
    """The same for keys with dashes and with underscores."""
    return tuple(part.replace("_", "-") if isinstance(part, str) else part for part in place)


def key_lines(text: str) -> dict[Place, int]:
    """Line numbers, from 1, of tables and keys. Keys inside inline tables and arrays have none of their own.

    Examples
    --------
    >>> key_lines("title = 'x'\\n[data.web]\\nseed = 1\\n[[runs]]\\nalgo = 'mart'\\n")[("runs", 0, "algo")]
    5
    """
    lines: dict[Place, int] = {}
    counts: dict[Place, int] = {}
    table: Place = ()
    quotes = None  # the delimiter of a string that goes on over lines
    for number, line in enumerate(text.splitlines(), 1):
        if quotes is not None:
            quotes = None if quotes in line else quotes
            continue
        header = HEADER.match(line)
        if header:
            table = tuple(part.strip("\"'") for part in PART.findall(header[2]))
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            lines.setdefault(table, number)
            continue
        key = KEY.match(line)
        if key:
            place = table
            for part in PART.findall(line[: key.end() - 1]):
                place = (*place, part.strip("\"'"))
                lines.setdefault(place, number)
        for mark in ('"""', "'''"):
            if line.count(mark) % 2:
                quotes = mark
    return lines


def line_of(lines: dict[Place, int], place: Place) -> int:
    """The line of a key, or of the nearest table around it."""
    while place and place not in lines:
        place = place[:-1]
    return lines.get(place, 1)

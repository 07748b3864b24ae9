"""`Field`: one searchable field of an index, where its text comes from and how it is analysed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ranksieve.errors import ParameterError
from ranksieve.retrieval.analysis import Analyzer

ALL = "all"  # the name under which features over all fields go
MISSING = ("NAType", "NaTType")  # how pandas, which need not be installed, calls its own missing values
SPELLING = re.compile(r"(?P<name>[^:=~]+)(:(?P<options>[^=~]*))?(=(?P<source>[^~]+))?(~(?P<pattern>.+))?", re.DOTALL)
OPTIONS = {
    "lower": ("lower", True), "nolower": ("lower", False),
    "split": ("split", True), "nosplit": ("split", False),
    "stop": ("stop", "english"), "nostop": ("stop", "none"),
    "stem": ("stem", "english"), "nostem": ("stem", "none"),
    "positions": ("positions", True), "nopositions": ("positions", False),
}  # fmt: skip


@dataclass(frozen=True)
class Field:
    """A field of an index.

    Parameters
    ----------
    name
        What it is called in weights and features.
    source
        The field of the corpus it is made from; its own name if empty.
    pattern
        A regular expression: only what it matches is text of the field; everything if empty.
    analyzer
        How its text becomes terms.
    positions
        Whether positions are kept, which phrases, windows and proximity need.

    Examples
    --------
    >>> field = parse_field("file:nostem=path~[^/]+$")
    >>> field.name, field.source, field.analyzer.stem, field.text({"path": "java/el/MapResolver.java"})
    ('file', 'path', 'none', 'MapResolver.java')
    """

    name: str
    source: str = ""
    pattern: str = ""
    analyzer: Analyzer = field(default_factory=Analyzer)
    positions: bool = True

    def __post_init__(self) -> None:
        if not self.name or self.name == ALL or set(self.name) & set(":=~*?[,") or self.name != self.name.strip():
            raise ParameterError(
                f"a field cannot be named {self.name!r}; use a name other than {ALL!r} without spaces around it "
                "and without : = ~ * ? [ ,"
            )
        if not self.source:
            object.__setattr__(self, "source", self.name)
        try:
            _ = self._pattern
        except re.error as error:
            raise ParameterError(
                f"the pattern {self.pattern!r} of field {self.name!r} is no regular expression ({error}); correct it"
            ) from error

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        return re.compile(self.pattern, re.DOTALL) if self.pattern else None

    def text(self, document: dict[str, Any]) -> str | None:
        """The field's text in a document of the corpus; None where the document has no such field."""
        text = plain_text(document.get(self.source))
        if text is None or self._pattern is None:
            return text
        return "\n".join(match.group() for match in self._pattern.finditer(text))

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "source": self.source,
            "pattern": self.pattern,
            "analyzer": self.analyzer.as_dict(),
            "positions": self.positions,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Field:
        return cls(**{**values, "analyzer": Analyzer(**values["analyzer"])})


def parse_field(text: str, analyzer: Analyzer | None = None, *, positions: bool = True) -> Field:
    """A field from `NAME[:option,…][=SOURCE][~PATTERN]`; the options override the given analyzer."""
    match = SPELLING.fullmatch(text)
    if match is None:
        raise ParameterError(
            f"field {text!r} cannot be read; fields look like 'title', 'title:nostem', 'file=path~[^/]+$'"
        )
    changes: dict[str, Any] = {"positions": positions}
    for option in filter(None, map(str.strip, (match["options"] or "").split(","))):
        if option not in OPTIONS:
            raise ParameterError(f"field {text!r} has the option {option!r}; expected one of {', '.join(OPTIONS)}")
        name, value = OPTIONS[option]
        changes[name] = value
    keep = changes.pop("positions")
    return Field(
        match["name"].strip(),
        (match["source"] or "").strip(),
        match["pattern"] or "",
        replace(analyzer or Analyzer(), **changes),
        keep,
    )


def is_missing(value: Any) -> bool:
    """Whether a value stands for none: null, NaN, or what pandas has in their place."""
    if isinstance(value, float | np.floating):
        return bool(value != value)
    return value is None or type(value).__name__ in MISSING


def plain_text(value: Any) -> str | None:
    """Text of a corpus value: texts, numbers, and lists of them one a line; None for null, NaN and objects."""
    if is_missing(value) or isinstance(value, dict):
        return None
    if isinstance(value, list | tuple | np.ndarray):
        parts = [text for text in map(plain_text, value) if text is not None]
        return "\n".join(parts) if parts else None
    return value if isinstance(value, str) else str(value)

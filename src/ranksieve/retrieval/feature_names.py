"""The features of an index in the order of their columns, and those that patterns choose."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ranksieve.data.features import RELATIVE
from ranksieve.data.index_features import (
    CENTROID,
    DENSE,
    DENSE_TOP,
    EXPANSION,
    FEEDBACK,
    FIRST,
    LEXICAL,
    NEIGHBOURS,
    PROXIMITY,
    QUERY,
)
from ranksieve.errors import ParameterError, Remedy, did_you_mean
from ranksieve.text_formats import comma_hint, some_of, split_commas

if TYPE_CHECKING:
    from ranksieve.retrieval.index import Index

LIST_ALL = Remedy("ranksieve.retrieval.feature_names.layout_of(index).names", "ranksieve features INDEX --list")


class Feature(NamedTuple):
    """A feature: its name, `family.field`, and what it is."""

    name: str
    meaning: str


def depends_on_candidates(name: str) -> bool:
    """Whether a feature depends on the candidates and scores of the first stage, not on query and document alone."""
    kinds = (FIRST, FEEDBACK, NEIGHBOURS, DENSE_TOP)
    return name.startswith((RELATIVE, "expanded.")) or name == CENTROID or any(name in kind for kind in kinds)


def depends_on_list(name: str) -> bool:
    """Whether a feature depends on all other candidates of the list, and so on its depth."""
    return name.startswith(RELATIVE) or name in NEIGHBOURS or name == CENTROID


class Layout(NamedTuple):
    """Which features an index has, in the order of their columns."""

    columns: tuple[str, ...]  # fields and, where there are several, `all`
    positional: tuple[int, ...]  # numbers of the fields with positions
    features: tuple[Feature, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.features)


class ChosenFeatures(NamedTuple):
    """Features to make: some as they are, some relative to the query's list."""

    plain: tuple[str, ...]
    relative: tuple[str, ...]  # without the prefix

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.plain, *(RELATIVE + name for name in self.relative))


def choose(names: Sequence[str], patterns: str | Sequence[str]) -> ChosenFeatures:
    """The features that match any of the patterns (`bm25*`, `*.title`, `relative.*`), as they are without patterns.

    A pattern with `!` in front leaves features out, in both kinds; without another pattern, of all. Patterns are
    separated by commas, or in a list.

    Examples
    --------
    >>> choose(["bm25.title", "bm25.text", "length.text"], ["length*", "relative.bm25.*"]).names
    ('length.text', 'relative.bm25.title', 'relative.bm25.text')
    >>> choose(["bm25.title", "bm25.text", "length.text"], "bm25*,!*.text").names
    ('bm25.title',)
    """
    patterns = split_commas(patterns) if isinstance(patterns, str) else patterns
    left_out = {name for pattern in patterns if pattern[:1] == "!" for name in _matches(names, pattern[1:], pattern)}
    names, patterns = [name for name in names if name not in left_out], [p for p in patterns if p[:1] != "!"]
    if not patterns:
        return ChosenFeatures(tuple(names), ())
    kinds: tuple[set[str], set[str]] = set(), set()
    for pattern in patterns:
        relative = pattern.startswith(RELATIVE)
        known = [name for name in names if not (relative and name in QUERY)]  # the same in a whole list
        kinds[relative].update(_matches(known, pattern.removeprefix(RELATIVE), pattern))
    plain_ones, relative_ones = (tuple(name for name in names if name in kind) for kind in kinds)
    return ChosenFeatures(plain_ones, relative_ones)


def _matches(names: Sequence[str], plain: str, pattern: str) -> list[str]:
    found = [name for name in names if name == plain or fnmatch.fnmatchcase(name, plain)]
    if not found:
        raise ParameterError(
            f"no feature matches {pattern!r}; {did_you_mean(plain, names)}known: {some_of(names)}{comma_hint(names)}; "
            "list all with ",
            LIST_ALL,
        )
    return found


def layout_of(index: Index) -> Layout:
    """The features of an index; `all` is left out where there is one field only."""
    columns = index.columns if len(index.fields) > 1 else index.field_names
    positional = tuple(number for number, field in enumerate(index.fields) if field.positions)
    dense = DENSE if index.vectors is not None else {}
    features = _features(columns, [index.fields[number].name for number in positional], index.numbers, dense)
    return Layout(columns, positional, features)


def any_features() -> tuple[Feature, ...]:
    """The features of any index, with FIELD for a field's name and NAME for a number's."""
    return _features(["FIELD"], ["FIELD"], ["NAME"], DENSE)


def _features(
    columns: Sequence[str], positional: Sequence[str], numbers: Sequence[str], dense: Mapping[str, str]
) -> tuple[Feature, ...]:
    return (
        *(Feature(f"{family}.{column}", what) for column in columns for family, what in LEXICAL.items()),
        *(Feature(f"{family}.{field}", what) for field in positional for family, what in PROXIMITY.items()),
        *(Feature(name, what) for name, what in (QUERY | FIRST | FEEDBACK | EXPANSION | NEIGHBOURS).items()),
        *(Feature(name, what) for name, what in dense.items()),
        *(Feature(f"number.{name}", f"the document's {name}") for name in numbers),
    )

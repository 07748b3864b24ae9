"""Features: `FeatureInfo`, which travels with data from the reader to the model, and features chosen by text."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from ranksieve.dtypes import FEATURE
from ranksieve.errors import DataError, ParameterError, RanksieveWarning, caller_level, did_you_mean, param
from ranksieve.text_formats import comma_hint, counted, read_signs, some_of, split_commas

NUMBERED = re.compile(r"(\D*)(\d{1,9})", re.ASCII)  # letters, or none, and a number
RELATIVE = "relative."  # in front of the name of a feature that is scaled within every list


@dataclass(frozen=True)
class FeatureInfo:
    """What is known of the features besides their values."""

    feature_names: tuple[str, ...] = ()  # empty while LETOR text is read: its features have numbers
    first_stage: int | None = None  # the feature with the first stage's score
    source: str = "arrays"  # the name of the data in messages
    absent: float = 0.0  # the value of a feature that a LETOR line leaves out
    candidates: Mapping[str, Any] | None = None  # how the documents were retrieved; see retrieval's `Provenance`
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)  # by number of a categorical feature
    left_out: Mapping[str, str] = field(default_factory=dict)  # columns of a table that are not features, and why

    def with_names(self, n_features: int) -> FeatureInfo:
        """The same with the names f1, f2, … where there are none; all features must be known."""
        if self.feature_names:
            return self
        names = default_names(n_features)
        for name in sorted(self.categories.keys() - set(names)):
            raise DataError(
                f"{self.source}: no feature is named {name!r}, which is given as categorical; there are "
                f"{counted(feature=n_features)}, f1 to f{n_features}"
            )
        return replace(self, feature_names=names)

    def name_of(self, feature: int) -> str:
        """The name of a feature, by its number from 0."""
        return self.feature_names[feature] if self.feature_names else f"f{feature + 1}"

    @property
    def missing(self) -> str:
        """How absent features were read, "zero" or "nan"."""
        return "nan" if np.isnan(self.absent) else "zero"

    def for_model(self) -> dict[str, Any]:
        """The entries of a model's `info` that describe its training data."""
        candidates = {"candidates": self.candidates} if self.candidates else {}
        categories = {name: list(self.categories[name]) for name in self.feature_names if name in self.categories}
        named = {"categories": categories} if categories else {}
        return {"first_stage": self.first_stage, **candidates, "missing": self.missing, **named}

    @property
    def categorical(self) -> np.ndarray:
        """The numbers of the categorical features, ascending."""
        return np.array([n for n, name in enumerate(self.feature_names) if name in self.categories], np.int64)


class Described:
    """Data that has a `FeatureInfo`: a `Dataset`, a `Binned`, or a `Source`."""

    info: FeatureInfo

    @property
    def source(self) -> str:
        return self.info.source

    @property
    def first_stage(self) -> int | None:
        return self.info.first_stage

    @property
    def absent(self) -> float:
        return self.info.absent

    @property
    def candidates(self) -> Mapping[str, Any] | None:
        return self.info.candidates

    @property
    def categories(self) -> Mapping[str, Sequence[str]]:
        """The categorical features, and the names of their categories by number; none where they have numbers only."""
        return self.info.categories


def default_names(n_features: int) -> tuple[str, ...]:
    """`f1`, `f2`, …: LETOR counts features from 1."""
    return tuple(f"f{number}" for number in range(1, n_features + 1))


def is_dense(name: str) -> bool:
    """Whether a feature is one of vectors, which retrieval makes."""
    return name.removeprefix(RELATIVE).startswith("dense.")


def same_features(given: Sequence[str], expected: Sequence[str]) -> bool:
    """Whether features are those of the training data in the same order.

    Features without names are called `f1`, `f2`, … (LETOR), `Column_0`, … (LightGBM) or 0, 1, … (pandas). They match by
    place, unless a name has another place in the other list, or the numbers in its names are not ascending.

    Examples
    --------
    >>> same_features(["bm25", "length"], ["f1", "f2"]), same_features(["f2", "length"], ["f1", "f2"])
    (True, False)
    """
    given, expected = tuple(given), tuple(expected)
    if len(given) != len(expected) or given == expected:
        return given == expected
    if not (_is_unnamed(given) or _is_unnamed(expected)):
        return False
    ours, theirs = numbers_of(given), numbers_of(expected)
    in_order = [numbers is None or (np.diff(numbers) > 0).all() for numbers in (ours, theirs)]
    if ours is not None and theirs is not None:
        return all(in_order)
    places = {name: place for place, name in enumerate(expected)}
    return all(in_order) and all(places.get(name, place) == place for place, name in enumerate(given))


def _is_unnamed(names: tuple[str, ...]) -> bool:
    numbers = range(len(names))
    return names == default_names(len(names)) or any(
        names == tuple(f"{start}{n}" for n in numbers) for start in ("Column_", "")
    )


def numbers_of(names: Sequence[str]) -> np.ndarray | None:
    """The numbers in names that are one prefix and a number, as `f3`.

    None unless they are all numbers from 0, or from 1, each once.

    Examples
    --------
    >>> numbers_of(["f3", "f1", "f2"]).tolist(), numbers_of(["1", "0"]).tolist(), numbers_of(["f2", "bm25"])
    ([3, 1, 2], [1, 0], None)
    """
    parts = [NUMBERED.fullmatch(name) for name in names]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts) or len({part[1] for part in found}) > 1:
        return None
    numbers = np.array([int(part[2]) for part in found], np.int64)
    first = min(numbers.min(initial=1), 1)
    return numbers if np.array_equal(np.sort(numbers), np.arange(first, first + len(numbers))) else None


def order_by_number(given: Sequence[str], expected: Sequence[str]) -> np.ndarray | None:
    """The columns in the order of their numbers, where both have numbers; None where they are in that order, or named.

    Examples
    --------
    >>> order_by_number(["2", "1", "3"], ["f1", "f2", "f3"]).tolist()
    [1, 0, 2]
    """
    numbers = numbers_of(given) if len(given) == len(expected) and _is_unnamed(tuple(expected)) else None
    return None if numbers is None or (np.diff(numbers) > 0).all() else np.argsort(numbers)


def infinite_feature(source: str, name: str, row: int) -> DataError:
    """The error for a value that is infinite; rows count from 1."""
    return DataError(
        f"{source}: feature {name!r} of row {row} is infinite; features must be finite, or NaN where missing"
    )


def check_all_given(given: Sequence[str], expected: Sequence[str], source: str) -> None:
    """Raise `DataError` where features of the training data are missing and both have names."""
    lacking = [name for name in expected if name not in given]
    if lacking and not _is_unnamed(tuple(given)) and not _is_unnamed(tuple(expected)):
        near = did_you_mean(lacking[0], [name for name in given if name not in expected])
        raise DataError(
            f"{source}: lacks {len(lacking):,} of the {counted(feature=len(expected))} of the training data "
            f"({some_of(lacking, 3)}); the columns are {some_of(given)}; {near}give the features of the training data"
        )


def check_feature_names(given: Sequence[str], expected: Sequence[str], source: str) -> None:
    """Raise `DataError` unless the features are those of the training data in the same order.

    Features without names are matched by number; names that were numbers in training are warned of.
    """
    given, expected = tuple(given), tuple(expected)
    lacking = [name for name in expected if name not in given]
    missing = f"; {lacking[0]!r} is missing" if lacking else ""
    if len(given) != len(expected):
        check_all_given(given, expected, source)
        named = "" if _is_unnamed(given) else f" ({some_of(given)})"
        found = f"{counted(feature=len(given))}{named}; expected {len(expected)}, as in training{missing}"
        raise DataError(f"{source}: {found}; give the features of the training data")
    if same_features(given, expected):
        if _is_unnamed(expected) and not _is_unnamed(given) and numbers_of(given) is None:
            text = (
                f"{source}: columns are taken by position, since the features of the training data have numbers and no "
                f"names: {given[0]!r} as {expected[0]!r} to {given[-1]!r} as {expected[-1]!r}; check their order"
            )
            warnings.warn(RanksieveWarning(text), stacklevel=caller_level())
        return
    place = next(i for i, (a, b) in enumerate(zip(given, expected, strict=True)) if a != b)
    raise DataError(
        f"{source}: feature {place + 1} is {given[place]!r}, but was {expected[place]!r} in training{missing}; "
        "give the same features in the same order"
    )


def match_features(given: Sequence[str], expected: Sequence[str], source: str) -> np.ndarray | None:
    """The columns that hold the expected features, by name or number; None if all are in the expected order already.

    Examples
    --------
    >>> match_features(["b", "a"], ["a", "b"], "test.parquet").tolist()
    [1, 0]
    """
    columns = {name: number for number, name in enumerate(given)}
    if columns.keys() == set(expected) and list(given) != list(expected):
        return np.array([columns[name] for name in expected])
    by_number = order_by_number(given, expected)
    if by_number is None:
        check_feature_names(given, expected, source)
    return by_number


def feature_number(feature: int | str | None, names: Sequence[str]) -> int | None:
    """The number, from 0, of a feature given by number or name."""
    if feature is None:
        return None
    if isinstance(feature, str):
        if feature not in names:
            raise DataError(f"no feature is named {feature!r}; {did_you_mean(feature, names)}known: {some_of(names)}")
        return list(names).index(feature)
    if not 0 <= feature < len(names):
        raise DataError(f"feature {feature} does not exist; there are {len(names)}, counted from 0")
    return int(feature)


def to_float(values: np.ndarray, dtype: Any = FEATURE) -> np.ndarray:
    """Numbers as float32: finite values beyond its range become its largest or smallest number."""
    if values.dtype == dtype:
        return values
    with np.errstate(over="ignore"):
        numbers = values.astype(dtype)
    if values.dtype.kind == "f" and values.dtype.itemsize > numbers.dtype.itemsize:
        over = np.isinf(numbers) & np.isfinite(values)
        if over.any():
            numbers[over] = np.copysign(np.finfo(dtype).max, values[over])
    return numbers


def choose_features(text: str, names: Sequence[str]) -> np.ndarray:
    """Numbers, from 0 and ascending, of the features that a text selects.

    Parameters
    ----------
    text
        Names (`bm25_title`), globs (`bm25_*`), numbers and ranges counted from 1 as LETOR does (`7`, `1-46`), separated
        by commas. `!` before one excludes it; a text that begins with `!` selects all others.
    names
        The features' names.

    Examples
    --------
    >>> names = ["bm25_title", "bm25_body", "pagerank", "length"]
    >>> choose_features("bm25_*,4", names).tolist(), choose_features("!pagerank", names).tolist()
    ([0, 1, 3], [0, 1, 3])
    """
    parts = split_commas(text)
    chosen = np.full(len(names), bool(parts) and parts[0].startswith("!"))
    for part in parts:
        chosen[_select(part.removeprefix("!"), names)] = not part.startswith("!")
    if not chosen.any():
        raise ParameterError(param("features"), f" {text!r} selects no feature; choose at least one")
    return np.flatnonzero(chosen)


def monotone_signs(text: str, names: Sequence[str]) -> np.ndarray | None:
    """Per feature 1 (scores increase with it), -1 (scores decrease) or 0 (no constraint); None without constraints.

    Parameters
    ----------
    text
        `bm25_*:+1,spam:-1`, with features as for `choose_features`, or one sign per feature (`1,0,-1`).

    Examples
    --------
    >>> monotone_signs("bm25_*:+1, length:-1", ["bm25_title", "bm25_body", "pagerank", "length"]).tolist()
    [1, 1, 0, -1]
    """
    pairs = read_signs(text)
    signs = np.zeros(len(names), np.int8)
    if any(feature for feature, _ in pairs):
        for feature, sign in pairs:
            signs[_select(feature, names)] = sign
    elif pairs:
        if len(pairs) != len(names):
            raise ParameterError(
                param("monotone"),
                f" has {len(pairs)} signs for {len(names)} features; give one for each, or names with signs as in "
                "'bm25:+1'",
            )
        signs[:] = [sign for _, sign in pairs]
    return signs if signs.any() else None


def _select(part: str, names: Sequence[str]) -> list[int]:
    """The numbers, from 0, of the features that a name, glob, number or range selects."""
    if part in names:
        return [list(names).index(part)]
    if match := re.fullmatch(r"(\d+)(?:-(\d+))?", part, re.ASCII):
        first, last = int(match[1]), int(match[2] or match[1])
        if 1 <= first <= last <= len(names):
            return list(range(first - 1, last))
        raise ParameterError(f"feature {part} does not exist; there are {len(names)}, counted from 1")
    found = [number for number, name in enumerate(names) if fnmatchcase(name, part)]
    if not found:
        near = did_you_mean(part, names)
        raise ParameterError(f"no feature is named {part!r}; {near}known: {some_of(names)}{comma_hint(names)}")
    return found

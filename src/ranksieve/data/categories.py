"""Categories of features: which features have them, and the codes (numbers from 0) that stand for them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from ranksieve.dtypes import FEATURE
from ranksieve.errors import DataError, ParameterError, RanksieveWarning, caller_level, did_you_mean, param
from ranksieve.text_formats import comma_hint, features_text, some_of, split_commas

T = TypeVar("T", str, int)

MAX_CATEGORIES = 1 << 24  # most categories of a feature: codes up to this are exact in float32
SHOWN = 3  # unknown categories in a warning


class Encoder:
    """The categories of one feature. Their codes are numbers from 0, in the order of first occurrence.

    Null and empty text are missing (NaN). With the `fixed` names of a model, all other categories are missing too.
    CatBoost's models may have the empty text as a category; null belongs to it then.

    Examples
    --------
    >>> import pyarrow as pa
    >>> encoder = Encoder()
    >>> encoder.encode(pa.array(["drama", None, "war", "drama"])).tolist(), encoder.names
    ([0.0, nan, 1.0, 0.0], ['drama', 'war'])
    >>> Encoder(["war"], fixed=True).encode(pa.array(["drama", "war"])).tolist()
    [nan, 0.0]
    """

    def __init__(self, names: Sequence[str] = (), *, fixed: bool = False, feature: str = "a feature") -> None:
        self.names = list(names)
        self._feature = feature  # in messages
        self._numbers = {name: number for number, name in enumerate(self.names)}
        self._fixed = fixed
        self._missing = self._numbers.get("", np.nan)
        self._counts_unknown = fixed  # until `warn_of_unknown` is called
        self._n_given = self._n_unknown = 0
        self._unknown: list[str] = []  # the first of them

    def encode(self, column: Any) -> np.ndarray:
        """The codes of the categories in an Arrow column."""
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        return np.concatenate([np.empty(0, FEATURE), *map(self._encode_chunk, chunks)])

    def _encode_chunk(self, chunk: pa.Array) -> np.ndarray:
        if not pa.types.is_dictionary(chunk.type):
            chunk = chunk.cast(pa.string()).dictionary_encode()
        texts = chunk.dictionary.cast(pa.string()).to_pylist()
        table = np.array([*map(self._code, texts), self._missing], FEATURE)
        places = chunk.indices.cast(pa.int64()).fill_null(len(texts)).to_numpy(zero_copy_only=False)
        if self._counts_unknown:
            self._count(texts, places)
        return table[places]

    def _count(self, texts: Sequence[str | None], places: np.ndarray) -> None:
        """Count the values, and those of them that are not among the fixed names."""
        if all(text and text in self._numbers for text in texts):  # nothing to look for in the rows
            self._n_given += int(np.count_nonzero(places < len(texts)))
            return
        counts = np.bincount(places, minlength=len(texts) + 1).tolist()
        given = [(text, count) for text, count in zip(texts, counts[:-1], strict=True) if text and count]
        unknown = [(text, count) for text, count in given if text not in self._numbers]
        self._n_given += sum(count for _, count in given)
        self._n_unknown += sum(count for _, count in unknown)
        names = dict.fromkeys((*self._unknown, *(text for text, _ in unknown[: SHOWN + 1])))
        self._unknown = list(names)[: SHOWN + 1]

    def warn_of_unknown(self, name: str, place: str) -> None:
        """Warn, once, where most of the values so far are not among the fixed names."""
        if self._counts_unknown and any(self.names):  # the empty text alone: no tree of the model uses the feature
            warn_of_unknown(name, place, self._unknown, (self._n_unknown, self._n_given))
        self._counts_unknown = False

    def _code(self, name: str | None) -> float:
        if not name:
            return self._missing
        if name not in self._numbers and not self._fixed:
            if len(self.names) == MAX_CATEGORIES:
                raise DataError(f"{self._feature} has more than {MAX_CATEGORIES:,} categories; leave it out")
            self._numbers[name] = len(self.names)
            self.names.append(name)
        return self._numbers.get(name, np.nan)


@dataclass(frozen=True)
class Categorical:
    """Which columns of a table are categorical.

    Parameters
    ----------
    chosen
        Names or globs, separated by commas. Columns of a categorical type are categorical without being named.
    known
        Where a model or a training set is given: its categorical features and the names of their categories, empty for
        a feature whose categories have numbers and no names. No other column is categorical then.
    """

    chosen: str = ""
    known: Mapping[str, Sequence[str]] | None = None
    encoders: dict[str, Encoder] = field(default_factory=dict)  # encoders of parts that are read as one data set

    def matches(self, column: str) -> bool:
        """Whether a column is named."""
        return matches_any(column, split_commas(self.chosen))

    def names(self, columns: Iterable[str], place: str) -> list[str]:
        """The columns that are named. Not `genres=war`, a number made of a column of lists `genres`."""
        columns = list(columns)
        of_lists = {column.partition("=")[0] for column in columns}
        for glob in split_commas(self.chosen):
            if not any(matches_any(column, [glob]) for column in (*columns, *of_lists)):
                raise DataError(
                    f"{place}: no feature is named {glob!r}, which is given as categorical; "
                    f"{did_you_mean(glob, columns)}it has: {some_of(columns)}{comma_hint(columns)}"
                )
        return [
            column for column in columns
            if self.matches(column) and not ("=" in column and self.matches(column.partition("=")[0]))
        ]  # fmt: skip

    def encoders_of(self, columns: Mapping[str, pa.DataType], place: str) -> dict[str, Encoder | None]:
        """The encoders of the categorical columns of a table; None where the column holds codes."""
        if self.known is not None:
            known = {name: names for name, names in self.known.items() if name in columns}
            return {name: self._known_encoder(name, columns[name], names, place) for name, names in known.items()}
        named = self.names(columns, place)
        found = [name for name, kind in columns.items() if name in named or pa.types.is_dictionary(kind)]
        texts = [name for name in found if not is_number(columns[name])]
        for name in texts:
            self.encoders.setdefault(name, Encoder(feature=f"{place}: feature {name!r}"))
        return {name: self.encoders[name] if name in texts else None for name in found}

    @staticmethod
    def _known_encoder(name: str, kind: pa.DataType, names: Sequence[str], place: str) -> Encoder | None:
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not names and is_number(plain):
            return None
        if not names or pa.types.is_floating(plain):
            raise other_categories(f"{place}: column {name!r} holds {kind_text(kind)}", names)
        return Encoder(names, fixed=True)


def other_categories(given: str, names: Sequence[str]) -> DataError:
    """The error for a feature whose categories are given in another way than a model has them.

    Parameters
    ----------
    given
        What was given, as the beginning of the message.
    names
        The names of the categories in the model; empty where they have numbers and no names.
    """
    if names:
        return DataError(
            f"{given}, but is categorical in the model, with categories such as {some_of(names, 3)}; give a table with "
            "texts or integers"
        )
    return DataError(
        f"{given}, but the model has numbers for its categories; give the numbers that it was trained with"
    )


def warn_of_unknown(name: str, place: str, unknown: Sequence[str], counts: tuple[int, int]) -> None:
    """Warn where more than half of the values of a feature are not categories of the model.

    Parameters
    ----------
    name, place
        The feature, and where its values are from.
    unknown
        Categories that the model does not have.
    counts
        How many values are of these, and how many values there are, without missing ones.
    """
    n_unknown, n_given = counts
    if 2 * n_unknown > n_given:
        warnings.warn(
            RanksieveWarning(
                f"{place}: {name}: {n_unknown:,} of {n_given:,} values are not categories of the model "
                f"({some_of(unknown, SHOWN)}); they are treated as missing"
            ),
            stacklevel=caller_level(),
        )


def named(categories: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """The features whose categories have names."""
    return {name: names for name, names in categories.items() if names}


def is_number(kind: pa.DataType) -> bool:
    """Whether a column holds numbers; booleans are numbers, and a column of nulls has numbers that are all missing."""
    checks = (
        pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_null
    )  # fmt: skip
    return any(check(kind) for check in checks)


KINDS: dict[str, Callable[[pa.DataType], bool]] = {
    "text": lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind),
    "integers": pa.types.is_integer,
    "numbers": is_number,
    "dates or times": pa.types.is_temporal,
    "records": pa.types.is_struct,
    "lists": pa.types.is_nested,
}


def kind_text(kind: pa.DataType) -> str:
    """What a column holds, in words.

    Examples
    --------
    >>> kind_text(pa.string()), kind_text(pa.dictionary(pa.int32(), pa.string()))
    ('text', 'categories of text')
    """
    if pa.types.is_dictionary(kind):
        return f"categories of {kind_text(kind.value_type)}"
    return next((words for words, check in KINDS.items() if check(kind)), f"{kind} values")


def most_frequent(counts: Mapping[T, int], n: int) -> list[T]:
    """The n values that occur most often, the most frequent first; ties in the order of the values.

    Examples
    --------
    >>> most_frequent({"war": 2, "drama": 2, "crime": 5}, 2)
    ['crime', 'drama']
    """
    return sorted(counts, key=lambda value: (-counts[value], value))[:n]


def matches_any(column: str, globs: Iterable[str]) -> bool:
    """Whether the name of a column is one of these names or matches one of these globs."""
    return any(column == glob or fnmatchcase(column, glob) for glob in globs)


def columns_text(given: str | Sequence[str] | None, parameter: str = "categorical") -> str:
    """Names and globs of columns as one text; names in a list may have commas.

    Examples
    --------
    >>> columns_text(["genre", "brand, short"]), columns_text("genre,brand"), columns_text(None)
    ('genre,brand[,] short', 'genre,brand', '')
    """
    if given is None or isinstance(given, str):
        return given or ""
    names = list(given) if isinstance(given, Iterable) else [given]
    if isinstance(given, bool | int) or not all(isinstance(name, str | int) for name in names):
        raise ParameterError(param(parameter), f" is {given!r}; expected names of columns, such as 'brand,genre'")
    text: str = features_text(names)
    return text


def recoding(given: Sequence[str], expected: Sequence[str]) -> np.ndarray | None:
    """The code in `expected` of each category of `given`, and last of a missing one; NaN where it has none.

    None where all codes are the same.

    Examples
    --------
    >>> recoding(["war", "drama"], ["drama"]).tolist()
    [nan, 0.0, nan]
    """
    numbers = {name: number for number, name in enumerate(expected)}
    if not given or ("" not in numbers and list(given) == list(expected)[: len(given)]):
        return None
    return np.array([numbers.get(name, np.nan) for name in (*given, "")], FEATURE)


def check_same_codes(given: Any, train: Any) -> None:
    """Raise `DataError` where a category has another code than in the training data; both are a `FeatureInfo`.

    Data that is binned or opened already cannot be encoded again.
    """
    for name, expected in zip(given.feature_names, train.feature_names, strict=True):
        ours, theirs = list(given.categories.get(name, ())), list(train.categories.get(expected, ()))
        common = min(len(ours), len(theirs))
        if ours[:common] != theirs[:common]:
            raise DataError(
                f"{given.source}: the categories of {name!r} have other codes than in training; give a file name, a "
                "table or a Dataset, which are encoded as in training"
            )


def check_no_categories(info: Any, what: str, *, instead: str = "") -> None:
    """Refuse data with categories where they cannot be used; `instead` is another remedy than to ignore them."""
    if info.categories:
        raise DataError(
            f"{info.source}: {some_of(list(info.categories))} {'are' if len(info.categories) > 1 else 'is'} "
            f"categorical, and {what} cannot use categories; {instead}leave them out, ",
            param("ignore", features_text(info.categories)),
        )

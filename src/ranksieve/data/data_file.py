"""`DataFile`: a data file or a table with the names of its columns. `ReadOptions`: which columns are read as what."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ranksieve.data.categories import Categorical, columns_text, matches_any
from ranksieve.data.features import check_all_given, order_by_number
from ranksieve.errors import DataError, did_you_mean, param
from ranksieve.text_formats import comma_hint, some_of, split_commas

# Columns of a table that are not features, by role, and the names that such columns usually have.
USUAL_NAMES = {
    "label": ("label",),
    "qid": ("qid",),
    "docid": ("docid", "doc_id"),
    "weight": ("weight",),
    "position": ("position",),
}
ROLE_TEXTS = {  # what such a column holds, in words
    "label": "labels",
    "qid": "query ids",
    "docid": "document ids",
    "weight": "weights",
    "position": "positions",
}
RESERVED = frozenset(name for names in USUAL_NAMES.values() for name in names)  # never features
COLUMN_PARAMETERS = (*USUAL_NAMES, "ignore", "categorical")  # parameters of `DataFile` that name columns
NEEDED = ("label", "qid")
OTHER_NAMES = {  # other frequent names, which messages suggest
    "label": ("relevance", "rel", "grade", "rating", "target", "y"),
    "qid": ("query_id", "queryid", "q_id", "query", "group"),
    "docid": ("document_id", "documentid", "docno", "document", "doc"),
}


@dataclass(frozen=True)
class DataFile(os.PathLike[str]):
    """A file, or a table, with the names of its columns. It is accepted wherever a file name is.

    Parameters
    ----------
    path
        A Parquet or CSV file, or a pandas, polars or Arrow table.
    label, qid, docid, weight, position
        Names of the columns with labels, query ids, document ids, weights, and ranks at which documents were shown;
        None is the usual name.
    ignore
        Columns that are not features, such as texts: names or globs, separated by commas or in a list. In a text, `[,]`
        stands for a comma in a name.
    categorical
        Columns that hold categories, such as brands, given as for `ignore`. Columns of a categorical type need not be
        named. Of LETOR text, numbers from 1.

    Examples
    --------
    >>> import pathlib, tempfile, ranksieve as rs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "clicks.csv")
    ...     _ = file.write_text("query,clicked,bm25\\n" + "7,1,2.5\\n7,0,0.5\\n" * 9)
    ...     rs.train(rs.DataFile(file, label="clicked", qid="query"), trees=2, leaves=2, min_docs=1).n_trees
    2
    """

    path: Any
    label: str | None = None
    qid: str | None = None
    docid: str | None = None
    weight: str | None = None
    position: str | None = None
    ignore: str | Sequence[str] | None = None
    categorical: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        for name in ("ignore", "categorical"):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, columns_text(given, name))
        inner = self.path
        if isinstance(inner, DataFile):  # what is given here replaces what is given there
            object.__setattr__(self, "path", inner.path)
            for name in COLUMN_PARAMETERS:
                if getattr(self, name) is None:
                    object.__setattr__(self, name, getattr(inner, name))

    def __fspath__(self) -> str:
        path: str = os.fspath(self.path)
        return path

    def __str__(self) -> str:
        return str(self.path) if isinstance(self.path, str | os.PathLike) else f"the {type(self.path).__name__}"

    def absolute(self) -> DataFile:
        """The same file for a process with another working folder."""
        return replace(self, path=os.path.abspath(self.path)) if isinstance(self.path, str | os.PathLike) else self

    @property
    def given(self) -> dict[str, str]:
        """The names that were given, by parameter."""
        return {name: getattr(self, name) for name in COLUMN_PARAMETERS if getattr(self, name) is not None}

    @property
    def columns(self) -> dict[str, str]:
        """The columns with other than the usual names, by role."""
        return {role: name for role, name in self.given.items() if role in USUAL_NAMES}


@dataclass(frozen=True)
class ReadOptions:
    """How a file or a table is read.

    Parameters
    ----------
    columns
        Names of the columns that hold `label`, `qid`, `docid`, `weight` and `position`, where these are not the usual
        ones.
    ignore
        Columns that are not features: names or globs, separated by commas.
    categorical
        Which columns are categorical.
    first_stage
        The feature with the first stage's score, by number from 0 or name.
    needed
        Columns that must exist. Without labels all are 0; without query ids all documents are of one query.
    wanted
        The features of a model. If a table has all of them, others are left out, and the order is the model's. Columns
        that have numbers are put in the order of these for a model whose features have numbers.
    absent
        The value of features that a line of LETOR text does not name.
    features_only
        Whether every column but the query ids is a feature, as in the table `X` of `fit` and `predict`.
    """

    columns: dict[str, str] = field(default_factory=dict)
    ignore: str = ""
    categorical: Categorical = field(default_factory=Categorical)
    first_stage: int | str | None = None
    needed: Sequence[str] = NEEDED
    wanted: Sequence[str] = ()
    absent: float = 0.0
    features_only: bool = False

    @property
    def _roles(self) -> dict[str, tuple[str, ...]]:
        """What columns may hold besides features, and the usual names of such columns."""
        return {"qid": USUAL_NAMES["qid"]} if self.features_only else USUAL_NAMES

    def find_columns(self, names: Sequence[str], place: str) -> dict[str, str]:
        """The columns of a table that are not features, by role: those given, else those with usual names.

        Examples
        --------
        >>> ReadOptions({"label": "relevance"}).find_columns(["relevance", "qid", "doc_id", "bm25"], "a.parquet")
        {'label': 'relevance', 'qid': 'qid', 'docid': 'doc_id'}
        """
        found = {}
        for role, usual in self._roles.items():
            expected = (self.columns[role],) if role in self.columns else usual
            name = next((name for name in expected if name in names), None)
            if name is not None:
                found[role] = name
            elif role in self.columns or role in self.needed:
                near = next((name for name in names if name.lower() in (*usual, *OTHER_NAMES.get(role, ()))), "NAME")
                raise DataError(
                    f"{place}: there is no column {expected[0]!r}; it has: {some_of(names)}; name the one to use: ",
                    param(role, near),
                )
        return found

    def find_features(self, names: Sequence[str], found: dict[str, str], place: str) -> tuple[str, ...]:
        """The columns of a table that are features; `found` are the others."""
        ignored = split_commas(self.ignore)
        has_wanted = bool(self.wanted) and set(self.wanted) <= set(names)
        for glob in ignored:
            near = did_you_mean(glob, names)
            if not any(matches_any(name, [glob]) for name in names) and (near or not has_wanted):
                # a file with all features may lack a column of the training file, but not have one of a similar name
                raise DataError(
                    f"{place}: no column is named {glob!r}, which is to be ignored; {near}it has: "
                    f"{some_of(names)}{comma_hint(names)}"
                )
        if has_wanted:
            return tuple(self.wanted)
        reserved = (name for usual in self._roles.values() for name in usual)
        others = {*found.values(), *reserved}  # a second column `label` would leak the target
        features = tuple(name for name in names if name not in others and not matches_any(name, ignored))
        check_all_given(features, self.wanted, place)  # before columns that hold text are refused
        by_number = order_by_number(features, self.wanted)
        return features if by_number is None else tuple(features[number] for number in by_number)

    def reasons(self, left_out: Sequence[str], found: dict[str, str]) -> dict[str, str]:
        """Why columns are not features, in words; `found` are the columns with a role, by role."""
        held = {name: ROLE_TEXTS[role] for role, name in found.items()}
        others = dict.fromkeys(RESERVED, "a reserved name")
        default = "not a feature of the model" if self.wanted else "ignored"
        return {name: held.get(name) or others.get(name) or default for name in left_out}

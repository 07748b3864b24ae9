"""`DataFile`: a data file, or a table in memory, with the names of its columns; and pipes, which are read only once."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ranksieve.data.categories import Categorical, categorical_text, comma_hint
from ranksieve.data.features import check_all_given, order_by_number
from ranksieve.errors import DataError, did_you_mean, param
from ranksieve.text_formats import some_of

USUAL = {
    "label": ("label",),
    "qid": ("qid",),
    "docid": ("docid", "doc_id"),
    "weight": ("weight",),
    "position": ("position",),
}
ROLES = {"label": "labels", "qid": "query ids", "docid": "document ids", "weight": "weights", "position": "positions"}
RESERVED = frozenset(name for names in USUAL.values() for name in names)  # never features
NAMED = (*USUAL, "ignore", "categorical")  # parameters of `DataFile` besides the path
NEEDED = ("label", "qid")
STANDARD_INPUT = ("-", "/dev/stdin")
OTHERS = {  # other frequent names, for advice
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
        Columns that are not features, such as texts: names or globs, separated by commas.
    categorical
        Columns that hold categories, such as brands: names or globs, separated by commas or in a list. Columns of a
        categorical type need not be named. Of LETOR text, numbers from 1.

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
    ignore: str | None = None
    categorical: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.categorical is not None:
            object.__setattr__(self, "categorical", categorical_text(self.categorical))
        inner = self.path
        if isinstance(inner, DataFile):  # what is given here replaces what is given there
            object.__setattr__(self, "path", inner.path)
            for name in NAMED:
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
        return {name: getattr(self, name) for name in NAMED if getattr(self, name) is not None}

    @property
    def columns(self) -> dict[str, str]:
        """The columns with other than the usual names, by role."""
        return {role: name for role, name in self.given.items() if role in USUAL}


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
        return {"qid": USUAL["qid"]} if self.features_only else USUAL

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
                near = next((name for name in names if name.lower() in (*usual, *OTHERS.get(role, ()))), "NAME")
                raise DataError(
                    f"{place}: there is no column {expected[0]!r}; it has: {some_of(names)}; name the one to use, ",
                    param(role, near),
                )
        return found

    def find_features(self, names: Sequence[str], found: dict[str, str], place: str) -> tuple[str, ...]:
        """The columns of a table that are features; `found` are the others."""
        ignored = [part.strip() for part in self.ignore.split(",") if part.strip()]
        for part in ignored:
            if not any(fnmatchcase(name, part) for name in names):
                raise DataError(
                    f"{place}: no column is named {part!r}, which is to be ignored; {did_you_mean(part, names)}it has: "
                    f"{some_of(names)}{comma_hint(names)}"
                )
        if self.wanted and set(self.wanted) <= set(names):
            return tuple(self.wanted)
        reserved = (name for usual in self._roles.values() for name in usual)
        others = {*found.values(), *reserved}  # a second column `label` would leak the target
        features = tuple(
            name for name in names if name not in others and not any(fnmatchcase(name, part) for part in ignored)
        )
        check_all_given(features, self.wanted, place)  # before columns that hold text are refused
        by_number = order_by_number(features, self.wanted)
        return features if by_number is None else tuple(features[number] for number in by_number)

    def reasons(self, left_out: Sequence[str], found: dict[str, str]) -> dict[str, str]:
        """Why columns are not features; `found` are those that hold something else, by role."""
        held = {name: ROLES[role] for role, name in found.items()}
        others = dict.fromkeys(RESERVED, "a reserved name")
        default = "not a feature of the model" if self.wanted else "ignored"
        return {name: held.get(name) or others.get(name) or default for name in left_out}


class SpooledPath(str):
    """The path of a temporary file with what came through a pipe; messages show the name of the pipe."""

    name: str

    def __new__(cls, path: str | os.PathLike[str], name: str) -> SpooledPath:
        made = super().__new__(cls, os.fspath(path))
        made.name = name
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return super().__str__(), self.name

    def __str__(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        return format(self.name, spec)


def spool_pipe(path: str | os.PathLike[str]) -> str:
    """A path that can be read more than once: the one given, or a temporary file with what comes through a pipe.

    `-` is standard input. The temporary file is removed when the program ends.
    """
    name = os.fspath(path)
    if name != "-" and not _is_pipe(name):
        return name
    shown = "standard input" if name in STANDARD_INPUT else name
    if name == "-" and sys.stdin is None:
        raise DataError("standard input is closed; send data to it, or give the name of a file")
    if name in STANDARD_INPUT and sys.stdin is not None and sys.stdin.isatty():
        raise DataError("standard input is a terminal; send data to it, as in: zcat data.txt.gz | ranksieve …")
    folder = Path(tempfile.mkdtemp(prefix="ranksieve-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    kept = folder / ("stdin" if name in STANDARD_INPUT else Path(name).name)
    try:
        with contextlib.ExitStack() as stack, open(kept, "wb") as file:
            pipe = sys.stdin.buffer if name == "-" else stack.enter_context(open(name, "rb"))
            shutil.copyfileobj(pipe, file, 1 << 20)
    except OSError as error:
        kept.unlink(missing_ok=True)
        raise DataError(
            f"{shown}: its data cannot be stored in {folder} ({error.strerror}); free some space there, "
            "name another folder in TMPDIR, or give the name of a file"
        ) from error
    if not kept.stat().st_size:
        raise DataError(f"{shown}: no data arrived; check the command that writes it")
    return SpooledPath(kept, shown)


def permanent_paths(path: str) -> tuple[str, ...]:
    """The path, unless it is a temporary file."""
    return () if isinstance(path, SpooledPath) else (os.fspath(path),)


def _is_pipe(name: str) -> bool:
    """Whether a name is that of a pipe or a device. False where it cannot be examined: the reader reports that."""
    try:
        mode = os.stat(name).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)

"""`DataFile`: a file name that says what the file's columns are called; and pipes, which are read but once."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ranksieve.errors import DataError
from ranksieve.text_formats import some_of

USUAL = {"label": ("label",), "qid": ("qid",), "docid": ("docid", "doc_id"), "weight": ("weight",)}
NEEDED = ("label", "qid")
STANDARD_INPUT = ("-", "/dev/stdin")
OTHERS = {  # what else they are often called, for advice
    "label": ("relevance", "rel", "grade", "rating", "target", "y"),
    "qid": ("query_id", "queryid", "q_id", "query", "group"),
}


@dataclass(frozen=True)
class DataFile(os.PathLike[str]):
    """A file and the names of its columns, which goes wherever a file name goes.

    Parameters
    ----------
    path
        The file, Parquet or CSV.
    label, qid, docid, weight
        Names of the columns with labels, query ids, document ids and weights; None is the usual name.

    Examples
    --------
    >>> import pathlib, tempfile, ranksieve as rs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "clicks.csv")
    ...     _ = file.write_text("query,clicked,bm25\\n" + "7,1,2.5\\n7,0,0.5\\n" * 9)
    ...     rs.train(rs.DataFile(file, label="clicked", qid="query"), trees=2, leaves=2, min_docs=1).n_trees
    2
    """

    path: str | os.PathLike[str]
    label: str | None = None
    qid: str | None = None
    docid: str | None = None
    weight: str | None = None

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __str__(self) -> str:
        return os.fspath(self.path)

    def absolute(self) -> DataFile:
        """The same file, whatever the working folder is."""
        return replace(self, path=os.path.abspath(self.path))

    @property
    def columns(self) -> dict[str, str]:
        """The columns that have other names, by what they hold."""
        given = {role: getattr(self, role) for role in USUAL}
        return {role: name for role, name in given.items() if name is not None}


def columns_of(path: Any) -> dict[str, str]:
    """The columns with other names of a file that is said to have some."""
    return path.columns if isinstance(path, DataFile) else {}


def find_columns(
    names: Sequence[str], given: Mapping[str, str], place: str, needed: Sequence[str] = NEEDED
) -> dict[str, str]:
    """The columns of a table that are no features, by what they hold: those given, else those with usual names.

    Examples
    --------
    >>> find_columns(["relevance", "qid", "doc_id", "bm25"], {"label": "relevance"}, "a.parquet")
    {'label': 'relevance', 'qid': 'qid', 'docid': 'doc_id'}
    """
    found = {}
    for role, usual in USUAL.items():
        wanted = (given[role],) if role in given else usual
        name = next((name for name in wanted if name in names), None)
        if name is not None:
            found[role] = name
        elif role in given or role in needed:
            near = next((name for name in names if name.lower() in (*usual, *OTHERS.get(role, ()))), "NAME")
            raise DataError(
                f"{place}: there is no column {wanted[0]!r}; it has: {some_of(names)}; "
                f"say which one to use, --{role}={near}"
            )
    return found


def spool_pipe(path: str | os.PathLike[str]) -> str:
    """A file that may be read more than once: the one given, or what comes through a pipe, kept until the program ends.

    `-` is standard input.
    """
    name = os.fspath(path)
    if name != "-" and not _is_pipe(name):
        return name
    if name == "-" and sys.stdin is None:
        raise DataError(f"{path}: standard input is closed; send data to it, or give the name of a file")
    if name in STANDARD_INPUT and sys.stdin is not None and sys.stdin.isatty():
        raise DataError(f"{path}: standard input is a terminal; send data to it, as in: zcat data.txt.gz | ranksieve …")
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
            f"{path}: what comes through it cannot be kept in {folder} ({error.strerror}); make room there, "
            "name another place in TMPDIR, or give the name of a file"
        ) from error
    if not kept.stat().st_size:
        raise DataError(f"{path}: nothing came through it; check the command that writes it")
    return str(kept)


def _is_pipe(name: str) -> bool:
    """Whether a name is that of a pipe or a device; of one that cannot be looked at, whoever reads it complains."""
    try:
        mode = os.stat(name).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)

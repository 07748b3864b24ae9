"""Pipes and standard input: their data is stored in a temporary file, because it is read more than once."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path

from ranksieve.errors import DataError

STANDARD_INPUT = ("-", "/dev/stdin")


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

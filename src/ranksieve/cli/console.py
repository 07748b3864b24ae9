"""Where the command line writes: results to standard output, progress and errors to standard error."""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ranksieve.errors import DataError
from ranksieve.kernels.numba_cache import is_first_use


def output() -> Console:
    """Standard output; made anew so that a redirected stream is seen. Never wraps: a table may go to a file."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=1000)


def progress_output() -> Console:
    return Console(stderr=True, highlight=False)


def waiting(doing: str = "reading the data", *, kernels: str = "growing") -> str:
    """Why nothing may be seen for a while; kernels, named by their file, that an earlier run compiled are at hand."""
    return f"{doing}; compiling kernels (first use only)…" if is_first_use(kernels) else f"{doing}…"


def show_waiting(kernels: str, doing: str = "reading the data") -> None:
    """The same on standard error."""
    progress_output().print(waiting(doing, kernels=kernels), markup=False)


def show_error(message: str) -> None:
    """One red line on standard error."""
    line = " ".join(message.split())
    Console(stderr=True, highlight=False).print(Text(f"error: {line}", style="bold red"), soft_wrap=True)


@contextlib.contextmanager
def shown_warnings() -> Iterator[None]:
    """Warnings as yellow lines on standard error, when they come up."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = getattr(message, "by_flags", message)
        Console(stderr=True, highlight=False).print(Text(f"warning: {text}", style="yellow"), soft_wrap=True)

    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = show
        yield


def show_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Names and values, one pair a line."""
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        output().print(Text.assemble((name.ljust(width), "bold"), "  ", value), soft_wrap=True)


def show_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    numbers: Sequence[str] | None = None,
) -> None:
    """A table whose first column is text and whose others are numbers, unless `numbers` names those that are."""
    table = Table(title=title, title_justify="left")
    for column in columns:
        is_number = column != columns[0] if numbers is None else column in numbers
        table.add_column(Text(column), justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    output().print(table)


def check_writable(path: Path, *read: Path | str | None) -> None:
    """Refuse a file that could not be written in the end, before hours are spent on its content; or that is `read`."""
    for one in read:
        if one is not None and path.exists() and Path(one).exists() and path.samefile(one):
            raise DataError(f"{path}: is read by this command, and would be overwritten; choose another file to write")
    if str(path) == "-":
        raise DataError("-: this command does not write to standard output; give the name of a file")
    if path.is_dir():
        raise DataError(f"{path}: is a folder; expected the name of a file to write")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise DataError(
            f"{path}: cannot write there ({error.strerror}); choose a folder that exists and is writable"
        ) from error


def duration(seconds: float) -> str:
    """A time span as people say it: `0.84 s`, `12 s`, `3 min 05 s`, `2 h 10 min`."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def file_size(n_bytes: int) -> str:
    """A number of bytes as people say it: `512 B`, `3.4 MB`."""
    size, unit = float(n_bytes), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.3g} {unit}"

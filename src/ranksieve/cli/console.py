"""Where the command line writes: results to standard output, progress and errors to standard error."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ranksieve.errors import DataError, RanksieveWarning

LOGGERS = ("ranksieve.retrieval", "ranksieve.models")  # messages of these loggers are shown as notes


def output() -> Console:
    """Standard output. Lines are not wrapped unless it is a terminal; made at each call, so that redirections count."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=1000)


def progress_output() -> Console:
    """Standard error."""
    return Console(stderr=True, highlight=False)


def show_line(text: str) -> None:
    """A line of text on standard output."""
    output().print(text, markup=False)


def show_note(text: str) -> None:
    """A line of text on standard error."""
    progress_output().print(text, markup=False)


def show_waiting(kernels: str, doing: str = "reading the data") -> None:
    """Show on standard error what happens before the first result; kernels are named by their file."""
    from ranksieve.progress import waiting

    show_note(waiting(doing, kernels=kernels))


def show_error(message: str) -> None:
    """One red line on standard error."""
    line = " ".join(message.split())
    progress_output().print(Text(f"error: {line}", style="bold red"), soft_wrap=True)


def exit_if_interrupted(phase: str | None) -> None:
    """Exit with 130 if Ctrl-C ended the work in a phase; the model of that moment is saved already."""
    if phase is not None:
        show_error(f"interrupted in the phase {phase!r}; the best model so far is saved")
        raise typer.Exit(130)


@contextlib.contextmanager
def shown_warnings() -> Iterator[None]:
    """Show warnings, and what `LOGGERS` log, as yellow lines on standard error."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = message.for_command_line() if isinstance(message, RanksieveWarning) else message
        show_remark(f"warning: {text}")

    loggers, notes = [logging.getLogger(name) for name in LOGGERS], NoteHandler()
    for logger in loggers:
        logger.addHandler(notes)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = show
            yield
    finally:
        for logger in loggers:
            logger.removeHandler(notes)


class NoteHandler(logging.Handler):
    """Shows what is logged as notes."""

    def emit(self, record: logging.LogRecord) -> None:
        show_remark(f"note: {record.getMessage()}")


def show_remark(text: str) -> None:
    """One yellow line on standard error."""
    progress_output().print(Text(text, style="yellow"), soft_wrap=True)


def show_facts(facts: Sequence[tuple[str, str]], width: int = 0) -> None:
    """Names and values, one pair per line; values begin after the longest name, and after `width` at least."""
    width = max(width, *(len(name) for name, _ in facts))
    for name, value in facts:
        output().print(Text.assemble((name.ljust(width), "bold"), "  ", value), soft_wrap=True)


def show_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    numbers: Sequence[str] | None = None,
) -> None:
    """A table. Columns of numbers are right-justified: those in `numbers`, or all but the first.

    On a terminal that is too narrow, cells take several lines and nothing is cut.
    """
    table = Table(title=title, title_justify="left")
    for column in columns:
        is_number = column != columns[0] if numbers is None else column in numbers
        table.add_column(Text(column), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    output().print(table)


def check_not_read(path: Path, *read: Path | str | None) -> None:
    """Refuse an output file that the command also reads."""
    for one in read:
        if one is not None and path.exists() and Path(one).exists() and path.samefile(one):
            raise DataError(f"{path}: is read by this command and would be overwritten; choose another file to write")


def check_writable(path: Path, *read: Path | str | None) -> None:
    """Refuse an output file that cannot be written, or that the command also reads; called before any work."""
    from ranksieve import files

    check_not_read(path, *read)
    if str(path) == "-":
        raise DataError("-: this command does not write to standard output; give the name of a file")
    files.check_writable(path)

"""Progress of pruning on the screen: the phase, the best metric so far, the time left."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

from ranksieve.cli.console import duration, progress_output, show_error

if TYPE_CHECKING:
    from ranksieve.pruning.progress import PruningRecord

SECONDS_BETWEEN_LINES = 10.0
SECONDS_BEFORE_GUESS = 2.0  # until then the time left would be a wild one
PHASES = {
    "grow": "growing",
    "leaves": "finding leaves (first use: compiling)",
    "prune": "pruning",
    "reweight": "re-weighting",
}


class PruningProgress:
    """A pruning callback, used as a context: a bar on a terminal, elsewhere a line a phase and every ten seconds."""

    def __init__(self, *, quiet: bool = False, console: Console | None = None) -> None:
        self._console = console or progress_output()
        self._quiet = quiet
        self._printed_at = time.monotonic()
        self._last: PruningRecord | None = None
        self._bar: Progress | None = None

    def __enter__(self) -> PruningProgress:
        if not self._quiet and self._console.is_terminal:
            self._bar = Progress(
                SpinnerColumn(),
                TextColumn("{task.fields[title]}"),
                BarColumn(bar_width=24),
                TaskProgressColumn(),
                TextColumn("{task.description}"),
                console=self._console,
            )
            self._task = self._bar.add_task("", total=1.0, title="")
            self._bar.start()
        return self

    def __call__(self, record: PruningRecord) -> None:
        if self._quiet:
            return
        if self._bar is not None:
            title = _title(record)
            self._bar.update(
                self._task, completed=1.0 if record.ended else record.done, description=_describe(record), title=title
            )
        else:
            if self._last is not None and self._last.phase != record.phase and self._last.phase != "leaves":
                self._print(self._last)
            if self._last is None or time.monotonic() - self._printed_at >= SECONDS_BETWEEN_LINES:
                self._print(record)
        self._last = record

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._last is not None and not self._quiet:
            self._print(self._last)

    def _print(self, record: PruningRecord) -> None:
        self._printed_at = time.monotonic()
        state = f" {record.done:.0%} " if record.ended is None else ":"
        text = f"{_title(record)}{state} {_describe(record)}"
        self._console.print(text.rstrip(), markup=False, soft_wrap=True)


def exit_if_interrupted(phase: str | None) -> None:
    """Say that a saved model is what there was when Ctrl-C ended the phase."""
    if phase is not None:
        show_error(f"interrupted in the phase {phase!r}; the best model so far is kept")
        raise typer.Exit(130)


def _title(record: PruningRecord) -> str:
    rounds = f"round {record.round}: " if record.round > 1 or record.phase == "grow" else ""
    return rounds + PHASES.get(record.phase, record.phase)


def _describe(record: PruningRecord) -> str:
    parts = [] if record.ended is None else [record.ended]
    if record.value is not None:
        parts.append(f"training {record.metric} {record.value:.4f}")
    if record.best_valid is not None:
        parts.append(f"best validation {record.best_valid:.4f}")
    if record.phase == "reweight" and record.ended is None:
        parts.append("ends when nothing more is gained")  # mostly long before all rounds
    elif record.seconds_left and record.seconds > SECONDS_BEFORE_GUESS:
        parts.append(f"about {duration(record.seconds_left)} left")
    return "  ".join(parts)

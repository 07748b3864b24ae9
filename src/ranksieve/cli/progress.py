"""Progress of training on the screen: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from ranksieve.cli.console import duration, progress_output, waiting

if TYPE_CHECKING:
    from ranksieve.boosting.callbacks import Record

SECONDS_BETWEEN_LINES = 10.0
RECENT = 50  # trees whose time stands for those to come


class TrainingProgress:
    """A training callback, used as a context around `train`.

    On a terminal it keeps one bar up to date; otherwise it prints a line every tenth of the trees, every ten seconds,
    and at the last tree.
    """

    def __init__(
        self, title: str, *, doing: str = "reading the data", quiet: bool = False, console: Console | None = None
    ) -> None:
        self._title = title
        self._doing = doing  # before the first tree
        self._console = console or progress_output()
        self._quiet = quiet
        self._last: Record | None = None
        self._printed_step = 0
        self._printed_at = time.monotonic()
        self._seconds: deque[float] = deque(maxlen=RECENT)
        self._first_step: int | None = None
        self._bar: Progress | None = None

    def __enter__(self) -> TrainingProgress:
        if self._quiet:
            return self
        if not self._console.is_terminal:
            self._line(waiting(self._doing))
            return self
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.fields[title]}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            console=self._console,
        )
        self._task = self._bar.add_task(waiting(self._doing), total=None, title=self._title)
        self._bar.start()
        return self

    def __call__(self, record: Record) -> None:
        if self._quiet:
            return
        self._last = record
        if len(self._seconds) == 1 and record.step - 1 == self._first_step:
            self._seconds.clear()  # the first tree also compiled
        if self._first_step is None:
            self._first_step = record.step
        self._seconds.append(record.seconds)
        if self._bar is not None:
            self._bar.update(
                self._task, completed=record.step, total=record.n_trees, description=self._describe(record)
            )
        elif self._is_due(record):
            self._print(record)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._last is not None and self._last.step != self._printed_step:
            self._print(self._last)

    def _is_due(self, record: Record) -> bool:
        tenth = max(1, record.n_trees // 10)
        return (
            record.step - self._printed_step >= tenth
            or record.step >= record.n_trees
            or time.monotonic() - self._printed_at >= SECONDS_BETWEEN_LINES
        )

    def _print(self, record: Record) -> None:
        self._printed_step, self._printed_at = record.step, time.monotonic()
        self._line(f"{record.step}/{record.n_trees} {record.round}s  {self._describe(record)}")

    def _line(self, text: str) -> None:
        self._console.print(f"{self._title}: {text}", markup=False, soft_wrap=True)

    def _describe(self, record: Record) -> str:
        parts = record.measured()
        if record.step == self._first_step:  # it also compiled, and says nothing of the trees to come
            return "  ".join(parts)
        per_tree = sum(self._seconds) / len(self._seconds)
        parts.append(f"{per_tree:.3g} s/{record.round}")
        if record.step < record.n_trees:
            parts.append(f"at most {duration(per_tree * (record.n_trees - record.step))} left")
        return "  ".join(parts)

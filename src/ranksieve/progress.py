"""How far a long task is: a bar on a terminal or in a notebook, a line now and then elsewhere."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn
from rich.table import Column
from rich.text import Text

from ranksieve.errors import ParamName, joined_parts
from ranksieve.rules import RANKERS, traits_of
from ranksieve.text_formats import counted, duration, plural

if TYPE_CHECKING:
    from ranksieve.boosting.callbacks import Record
    from ranksieve.pruning.records import PruningRecord

SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_UPDATES = 0.25  # least time between two updates of a line in a notebook
SECONDS_BEFORE_ESTIMATE = 2.0
RECENT = 50  # steps from which the time left is estimated
BAR_WIDTH = 16
PHASES = {
    "grow": "growing trees",
    "leaves": "computing leaves",
    "check": "cross-fitting",
    "prune": "pruning",
    "reweight": "re-weighting",
}


def waiting(doing: str = "reading the data", *, kernels: str = "growing") -> str:
    """What happens before the first step; `kernels` names the file whose kernels a first use compiles."""
    from ranksieve.kernels.numba_cache import is_compiled

    compiles = bool(kernels) and not is_compiled(kernels)
    return f"{doing}; compiling kernels (first use only)…" if compiles else f"{doing}…"


class ProgressDisplay:
    """A context that shows how far a task is.

    On a terminal and in a notebook with ipywidgets one bar is updated, in other notebooks one line. Elsewhere a line
    is printed whenever the title changes, a tenth of the work is done, or ten seconds have passed. Parameters in notes
    are spelled as in Python, or as on the command line with `flags`; without `notes`, none are shown.
    """

    def __init__(
        self,
        title: str = "",
        *,
        doing: str = "reading the data",
        kernels: str = "growing",
        quiet: bool = False,
        console: Console | None = None,
        flags: bool = False,
        notes: bool = True,
    ) -> None:
        self._title = title
        self._flags, self._notes = flags, notes
        self._before = waiting(doing, kernels=kernels)  # the first step
        self._quiet = quiet
        self._console = console or Console(stderr=True, highlight=False)
        self._bar: Progress | None = None
        self._times: deque[tuple[float, float]] = deque(maxlen=RECENT)  # when how much was done
        self._printed = (time.monotonic(), 0.0)  # when a line was printed, and how much was done
        self._line = ""  # the newest state, where it is not printed yet
        self._shown: Any = None  # the line of a notebook

    def __enter__(self) -> Any:
        if self._quiet:
            return self
        if not _takes_bar(self._console):
            self._print(self._with_title(self._before))
            return self
        self._bar = Progress(
            SpinnerColumn(table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[title]}", table_column=Column(no_wrap=True)),
            BarColumn(bar_width=BAR_WIDTH, table_column=Column(no_wrap=True, min_width=BAR_WIDTH)),
            TextColumn("{task.fields[amount]}", table_column=Column(no_wrap=True)),
            _DetailsColumn(),
            console=self._console,
        )
        self._task = self._bar.add_task(
            "", total=None, title=self._title, amount="", details=[self._before]
        )  # fmt: skip
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._line:
            self._print(self._line)
        elif self._shown is not None and not self._times and kind is None:
            self._print(self._with_title("done"))

    def update(
        self,
        done: float,
        total: float | None = None,
        *,
        unit: str = "",
        details: Sequence[str] = (),
        title: str | None = None,
        estimate: str = "about {} left",
    ) -> None:
        """Show that `done` of `total` is done: steps of a `unit`, or a share without one.

        `details` that do not fit on a line are left out, the last ones first. `estimate` is the text for the time left;
        an empty one shows none.
        """
        if self._quiet:
            return
        if title is not None and title != self._title:
            if self._bar is None and self._line:
                self._print(self._line)
            self._title = title
            self._times.clear()
            self._printed = (self._printed[0], 0.0)
        left, speed = self._speed(done, total, unit)
        left = [estimate.format(one) for one in left if estimate]
        shown = [*details[:1], *left, *details[1:], *speed]
        amount = _amount(done, total, unit)
        if self._bar is not None:
            self._bar.update(
                self._task, completed=done, total=total, title=self._title, amount=amount, details=shown
            )  # fmt: skip
            return
        self._line = self._with_title("  ".join((f"{amount} {plural(unit)}" if unit and total else amount, *shown)))
        at, before = self._printed
        is_tenth = total is not None and bool(unit) and (done - before >= max(1, total // 10) or done >= total)
        if is_tenth or time.monotonic() - at >= self._seconds_between_lines:
            self._printed = (at, done)
            self._print(self._line)

    def line(self, text: str) -> None:
        """A line that stays."""
        if not self._quiet:
            if self._bar is None and self._line:  # of what was done before
                self._print(self._line)
            self._console.print(text, markup=False, soft_wrap=True)

    def _speed(self, done: float, total: float | None, unit: str) -> tuple[list[str], list[str]]:
        """Time left, and time per unit, once known. The first step is not counted: it may have compiled kernels."""
        self._times.append((time.monotonic(), done))
        (start, first), (now, _) = self._times[0], self._times[-1]
        if done <= first:
            return [], []
        seconds = (now - start) / (done - first)
        left = seconds * (total - done) if total is not None else 0.0
        is_known = left > 0 and (bool(unit) or now - start > SECONDS_BEFORE_ESTIMATE)
        speed = f"{seconds:.3g} s/{unit}" if seconds > 1e-3 else f"{1 / max(seconds, 1e-9):,.0f} {plural(unit)}/s"
        return [duration(left)] * is_known, [speed] * bool(unit)

    def _with_title(self, text: str) -> str:
        return f"{self._title}: {text}" if self._title else text

    @property
    def _seconds_between_lines(self) -> float:
        return SECONDS_BETWEEN_UPDATES if self._console.is_jupyter else SECONDS_BETWEEN_LINES

    def _print(self, line: str) -> None:
        self._printed, self._line = (time.monotonic(), self._printed[1]), ""
        if self._console.is_jupyter:
            self._show_in_notebook({"text/plain": line.rstrip()})
            return
        self._console.print(line.rstrip(), markup=False, soft_wrap=True)

    def _show_in_notebook(self, content: dict[str, str]) -> None:
        """Replace the line that is shown below a cell."""
        if self._shown is None:
            from IPython.display import display  # a notebook has it

            self._shown = display(content, raw=True, display_id=True)
        else:
            self._shown.update(content, raw=True)


class TrainingProgress(ProgressDisplay):
    """Progress of training; a callback of `train`."""

    def __init__(self, title: str = "", **options: Any) -> None:
        super().__init__(title, **options)
        self._algo, self._began = title, time.monotonic()

    def prepare(self, doing: str, share: float) -> None:
        """Show how far reading and binning is, if it takes a while."""
        if time.monotonic() - self._began > SECONDS_BEFORE_ESTIMATE:
            self.update(share, 1.0, title=doing)

    def note(self, *parts: str | ParamName) -> None:
        """A line that stays, also without progress: text, and parameters by name."""
        if self._notes:
            self._console.print(joined_parts(parts, flags=self._flags), markup=False, soft_wrap=True)

    def __call__(self, record: Record) -> None:
        self.update(
            record.step, record.n_trees, unit=record.round, details=record.measured(), title=self._algo,
            estimate="at most {} left",
        )  # fmt: skip


class PruningProgress(ProgressDisplay):
    """Progress of pruning and of X-CLEaVER; a callback of `prune` and `train`."""

    def __call__(self, record: PruningRecord) -> None:
        rounds = f"round {record.round}: " if record.round > 1 or record.phase == "grow" else ""
        details = [] if record.ended is None else [record.ended]
        if record.value is not None:
            lists = "training" if record.judge_on == "train" else "validation"
            details.append(f"{lists} {record.metric} {record.value:.4f}, in-sample")  # trees are judged on these lists
        if record.best_valid is not None:
            details.append(f"best validation {record.best_valid:.4f}")
        is_open = record.phase == "reweight" and record.ended is None
        if is_open:
            details.append("stops when the metric stops improving")  # mostly long before all rounds
        self.update(
            1.0 if record.ended else record.done,
            1.0,
            details=details,
            title=rounds + PHASES.get(record.phase, record.phase),
            estimate="" if is_open else "about {} left",
        )


def shown_in_python(*, verbose: int) -> Console | None:
    """Where functions of the library show progress: on a terminal and in notebooks; None elsewhere.

    `verbose` may be negative: -1 is what silences LightGBM.
    """
    console = Console(stderr=True, highlight=False)
    is_shown = (verbose or 0) > 0 and (console.is_jupyter or (console.is_terminal and sys.stderr.isatty()))
    return console if is_shown else None


def training_display(algo: str, title: str = "", **options: Any) -> ProgressDisplay:
    """The display of an algorithm's training; a callback of `train`."""
    in_rounds = traits_of(RANKERS.get(algo)).has_base
    return (PruningProgress if in_rounds else TrainingProgress)(title or algo, **options)


@contextmanager
def training_progress(algo: str, *, verbose: int = True) -> Iterator[tuple[Callable[[Any], None], ...]]:
    """Callbacks that show the progress of `train` in Python: on a terminal and in notebooks, never elsewhere."""
    console = shown_in_python(verbose=verbose)
    if console is None:
        yield ()
        return
    with training_display(algo, console=console) as progress:
        yield (progress,)


def _takes_bar(console: Console) -> bool:
    return console.is_terminal or (console.is_jupyter and importlib.util.find_spec("ipywidgets") is not None)


def _amount(done: float, total: float | None, unit: str) -> str:
    if not unit:
        return f"{done / (total or 1.0):.0%}"
    return counted(**{unit: int(done)}) if total is None else f"{done:,}/{total:,}"


class _DetailsColumn(ProgressColumn):
    """The last column: as many details as the line has room for."""

    def render(self, task: Any) -> Any:
        return _Details(task.fields["details"])


class _Details:
    def __init__(self, details: Sequence[str]) -> None:
        self._details = list(details)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(0, len("  ".join(self._details)))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        details = self._details
        while details and len("  ".join(details)) > options.max_width:
            details = details[:-1]
        yield Text("  ".join(details), no_wrap=True, overflow="ellipsis")

"""Progress on a terminal, in lines, and in Python."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys

import pytest
from rich.console import Console

from ranksieve.boosting.callbacks import Record
from ranksieve.errors import param
from ranksieve.progress import ProgressDisplay, PruningProgress, TrainingProgress, training_progress
from ranksieve.pruning.records import PruningRecord

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def record(step: int, n_trees: int = 1000) -> Record:
    return Record(step, n_trees, {"valid": {"ndcg@10": 0.4312}}, 0.1, "ndcg@10", 17, 0.44)


@pytest.mark.parametrize("width", [80, 100, 150])
def test_the_bar_and_the_counter_are_shown_at_any_width(width: int) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=width)
    with TrainingProgress("oblivious-lambdamart", console=console) as progress:
        for step in range(1, 124):
            progress(record(step))
    last = [line for line in ESCAPES.sub("", screen.getvalue()).replace("\r", "\n").splitlines() if line.strip()][-1]
    assert len(last) <= width
    assert "oblivious-lambdamart ━" in last and "123/1,000" in last
    assert "valid ndcg@10 0.4312" in last
    assert ("trees/s" in last) == (width == 150)
    assert "…" not in last  # what does not fit is left out as a whole


def test_lines_are_printed_each_tenth_and_at_the_end() -> None:
    screen = io.StringIO()
    with TrainingProgress("selgb", console=Console(file=screen, width=200)) as progress:
        for step in range(1, 26):
            progress(record(step, 50))
    lines = screen.getvalue().splitlines()
    assert lines[0].startswith("selgb: reading the data")
    assert [line.split()[1] for line in lines[1:]] == [f"{step}/50" for step in (5, 10, 15, 20, 25)]
    assert all("trees  valid ndcg@10 0.4312  " in line and "best 0.4400 at 17" in line for line in lines[1:])


def test_one_of_something_is_singular() -> None:
    screen = io.StringIO()
    with ProgressDisplay("compiling", console=Console(file=screen, width=200)) as display:
        display.update(1, unit="kernel")
    assert screen.getvalue().splitlines()[-1] == "compiling: 1 kernel"


def test_a_new_title_prints_the_state_of_the_old_one() -> None:
    screen = io.StringIO()
    with ProgressDisplay(console=Console(file=screen, width=200)) as display:
        display.update(0.5, 1.0, title="pruning")
        display.update(1.0, 1.0, title="pruning", details=["done"])
        display.update(0.2, 1.0, title="re-weighting")
    assert screen.getvalue().splitlines()[1:] == ["pruning: 100%  done", "re-weighting: 20%"]


def test_quiet_shows_nothing() -> None:
    screen = io.StringIO()
    with TrainingProgress("selgb", quiet=True, console=Console(file=screen, force_terminal=True)) as progress:
        progress(record(1))
    assert screen.getvalue() == ""


def test_nothing_is_shown_in_python_where_standard_error_is_no_terminal(capfd, monkeypatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich would take it for a terminal
    with training_progress("selgb") as callbacks:
        assert callbacks == ()
    assert capfd.readouterr().err == ""


SCRIPT = """
import sys
import ranksieve as rs
for verbose in (False, 0, -1, None, True):
    rs.train(rs.synth.cubic(4), algo="lambdamart", trees=3, leaves=3, threads=1, verbose=verbose)
    print("trained", file=sys.stderr)
"""


def test_a_bar_is_shown_in_python_on_a_terminal_unless_silenced() -> None:
    ours, theirs = pytest.importorskip("pty").openpty()
    subprocess.run([sys.executable, "-c", SCRIPT], stderr=theirs, check=True)
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 1 << 16):
            shown += part
    except OSError:  # Linux: nothing is left, and the other end is closed
        pass
    os.close(ours)
    *silent, verbose, _ = shown.split(b"trained")
    assert b"3/3" in verbose and len(silent) == 4 and not any(b"3/3" in one for one in silent)


def test_a_notebook_without_widgets_shows_one_line_that_is_updated(monkeypatch) -> None:
    display = pytest.importorskip("IPython.display")
    shown: list[tuple[str, str]] = []

    class Handle:
        def update(self, content: dict[str, str], raw: bool) -> None:
            shown.append(("update", content["text/plain"]))

    def show(content: dict[str, str], raw: bool, display_id: bool) -> Handle:
        shown.append(("new", content["text/plain"]))
        return Handle()

    monkeypatch.setattr(display, "display", show)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with TrainingProgress("selgb", console=Console(force_jupyter=True)) as progress:
        for step in range(1, 26):
            progress(record(step, 50))
    assert [kind for kind, _ in shown] == ["new"] + ["update"] * (len(shown) - 1) and len(shown) > 5
    assert shown[-1][1].startswith("selgb: 25/50 trees  valid ndcg@10 0.4312")


@pytest.mark.parametrize(("flags", "shown"), [(False, "lower min_docs"), (True, "lower --min-docs")])
def test_parameters_in_notes_are_spelled_as_the_user_writes_them(flags: bool, shown: str) -> None:
    screen = io.StringIO()
    TrainingProgress("selgb", console=Console(file=screen, width=200), flags=flags).note("lower ", param("min_docs"))
    assert screen.getvalue() == f"{shown}\n"


@pytest.mark.parametrize(("judge_on", "lists"), [("valid", "validation"), ("train", "training")])
def test_the_metric_on_the_lists_that_trees_are_judged_on_is_in_sample(judge_on: str, lists: str) -> None:
    screen = io.StringIO()
    with PruningProgress(console=Console(file=screen, width=200)) as progress:
        progress(PruningRecord(1, "prune", 0.5, "ndcg@10", 0.6672, 0.65, 1.0, "early", None, judge_on))
    shown = screen.getvalue().splitlines()[-1]
    assert shown == f"pruning: 100%  early  {lists} ndcg@10 0.6672, in-sample  best validation 0.6500"

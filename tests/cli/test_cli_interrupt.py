"""Ctrl-C: exit code 130, no traceback, and what was learned is kept."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from ranksieve.boosting.job import TrainingJob
from ranksieve.cli import Signals, _ignore_interrupts, _send, main
from ranksieve.errors import InterruptedTraining
from ranksieve.models.load import load


def test_ctrl_c_is_130_without_traceback(files, run, tmp_path, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ranksieve.rankers.train.run", interrupted)
    outcome = run("train", files / "train.txt", "--out", tmp_path / "model.txt")
    assert outcome.code == 130
    assert "error: interrupted; no incomplete file is left" in outcome.output
    assert "--resume" not in outcome.output
    assert "Traceback" not in outcome.output
    assert os.listdir(tmp_path) == []


def test_ctrl_c_tells_of_a_checkpoint_where_there_is_one(files, run, tmp_path, monkeypatch):
    def interrupted(job: TrainingJob) -> None:
        folder = Path(job.checkpoint.folder)
        folder.mkdir()
        (folder / "checkpoint.npz").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr("ranksieve.rankers.train.run", interrupted)
    state = tmp_path / "state"
    outcome = run("train", files / "train.txt", "--out", tmp_path / "model.txt", "--checkpoint", state)
    assert outcome.code == 130
    assert f"a checkpoint is in {state}; continue with --resume" in " ".join(outcome.output.split())


@pytest.mark.parametrize("options", [(), ("--checkpoint", "state")])
def test_ctrl_c_keeps_the_finished_trees(files, run, model, tmp_path, monkeypatch, options):
    def interrupted(*_: object, **__: object) -> None:
        found = load(model)
        raise InterruptedTraining(replace(found, info={**found.info, "seconds": [0.1] * 12}))

    monkeypatch.setattr("ranksieve.rankers.train.run", interrupted)
    out = tmp_path / "model.txt"
    for kept in (out, tmp_path / "model.interrupted.txt", tmp_path / "model.interrupted-2.txt"):  # no model is replaced
        outcome = run("train", files / "train.txt", "--out", out, "--trees", "1000", *options)
        shown = " ".join(outcome.output.split())
        assert outcome.code == 130 and "Traceback" not in shown
        assert "error: interrupted after 12 of 1,000 trees; the model is saved in" in shown
        assert ("continue with --resume" in shown) == bool(options)
        assert load(kept).n_trees == load(model).n_trees


PROGRAM = """
import os, signal, sys

module = sys.argv.pop()

class Interrupt:
    def find_spec(self, name, *_):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
from ranksieve.cli import main
main()
"""


@pytest.mark.skipif(os.name == "nt", reason="sends signals")
@pytest.mark.parametrize("module", ["ranksieve.cli.app", "rich.console", "numba", "ranksieve.progress"])
def test_ctrl_c_while_modules_are_imported(files, model, tmp_path, module):
    command = ["predict", model, files / "test.txt", "--out", tmp_path / "scores.txt", module]
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, command)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 130, ended.stderr
    assert ended.stderr.split("error: ")[-1].strip() == "interrupted; no incomplete file is left"
    assert "Traceback" not in ended.stderr and not list(tmp_path.iterdir())


SWALLOWED = """
import os, signal, threading, time

BEFORE

# not ignored, as after nohup or in the background
signal.signal(signal.NAME, signal.default_int_handler if signal.NAME == signal.SIGINT else signal.SIG_DFL)

class Document:
    def __del__(self):
        os.kill(os.getpid(), signal.NAME)
        time.sleep(0.01)  # the handler runs here, and Python ignores what it raises

def command():
    document = Document()
    del document
    time.sleep(60)

import ranksieve.cli.app
ranksieve.cli.app.app = command
from ranksieve.cli import main
main()
"""


SLOW_START = """
start = threading.Thread.start

def start_slowly(thread):
    start(thread)
    time.sleep(0.2)

threading.Thread.start = start_slowly
"""


@pytest.mark.skipif(os.name == "nt", reason="sends signals")
@pytest.mark.parametrize("before", ["", SLOW_START], ids=["", "also within the hook"])
@pytest.mark.parametrize(
    ("name", "code", "shown"),
    [("SIGINT", 130, "error: interrupted; no incomplete file is left\n"), ("SIGTERM", 143, ""), ("SIGHUP", 129, "")],
)
def test_a_signal_that_a_destructor_swallows_is_sent_again(name, code, shown, before):
    program = SWALLOWED.replace("NAME", name).replace("BEFORE", before)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=50)
    assert (ended.returncode, ended.stderr) == (code, shown)


@pytest.mark.skipif(os.name == "nt", reason="sends signals")
@pytest.mark.parametrize("lost", [ValueError, KeyboardInterrupt])
def test_a_signal_within_the_hook_is_sent_again(lost):
    """Also if the hook reports another exception, and a request to end is none of Ctrl-C."""
    signals = Signals(lambda unraisable: os.kill(os.getpid(), signal.SIGTERM))
    outside = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signals.interrupt)
    signal.signal(signal.SIGTERM, signals.end)
    try:
        with pytest.raises(SystemExit) as ended:
            signals.send_again(SimpleNamespace(exc_type=ValueError))
            if lost is KeyboardInterrupt:
                signals.send_again(SimpleNamespace(exc_type=lost))
            time.sleep(20)
        assert ended.value.code == 128 + signal.SIGTERM
    finally:
        signals.stop_sending()
        for number, handler in outside.items():
            signal.signal(number, handler)


def test_signals_are_handled_as_before_where_the_process_goes_on(monkeypatch, capsys):
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    handlers = [signal.default_int_handler, *[signal.SIG_DFL] * (len(numbers) - 1)]
    outside = [signal.signal(*pair) for pair in zip(numbers, handlers, strict=True)]
    inside = []
    monkeypatch.setattr("ranksieve.cli.app.app", lambda: inside.extend(map(signal.getsignal, numbers)))
    try:
        for _ in range(2):
            main()
            assert [signal.getsignal(number) for number in numbers] == handlers
            thread = threading.Thread(target=main)  # where signals cannot be handled
            thread.start()
            thread.join()
    finally:
        for pair in zip(numbers, outside, strict=True):
            signal.signal(*pair)
        atexit.unregister(_ignore_interrupts)
    n = len(numbers)
    assert len(inside) == 4 * n
    assert all(isinstance(handler.__self__, Signals) for first in (0, 2 * n) for handler in inside[first : first + n])
    assert inside[n : 2 * n] == inside[3 * n :] == handlers


def test_windows_sends_signals_without_ending_the_process(monkeypatch):
    raised = []
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("on Windows, os.kill ends the process"))
    monkeypatch.setattr(signal, "raise_signal", raised.append)
    monkeypatch.setattr(os, "name", "nt")
    _send(signal.SIGINT)
    monkeypatch.undo()
    assert raised == [signal.SIGINT]

"""Kernels are compiled before commands begin, once."""

import os
import re
import subprocess
import sys
from queue import SimpleQueue
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from ranksieve.cli import compiling, warm_up
from ranksieve.cli.app import app
from ranksieve.kernels import numba_cache
from ranksieve.progress import ProgressDisplay


class RecordingQueue(SimpleQueue):
    def __init__(self, lines):
        self._lines = lines

    def put(self, line):
        self._lines.append(line)
        super().put(line)


def test_every_task_has_a_function():
    assert set(warm_up.FUNCTIONS) == set(compiling.TASKS)


@pytest.mark.parametrize("task", compiling.TASKS)
def test_a_task_compiles_the_kernel_that_marks_its_end(task):
    warm_up.FUNCTIONS[task]()
    assert compiling.is_done(task)


def test_an_unknown_task_is_refused():
    result = CliRunner().invoke(app, ["warm-up", "flying"])
    assert result.exit_code == 2
    assert "unknown task 'flying'; expected some of growing, scores" in result.output


def test_nothing_is_compiled_twice(monkeypatch):
    monkeypatch.setattr(numba_cache, "is_compiled", lambda *_: True)
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a process was started"))
    assert compiling.compile_tasks(["growing", "scoring"]) == (0, 0.0)


def test_kernels_are_counted_and_failures_ignored(monkeypatch, capsys):
    script = "import sys; print('one'); print('two'); sys.exit(3)"
    start = subprocess.Popen
    monkeypatch.setattr(numba_cache, "is_compiled", lambda *_: False)
    monkeypatch.setattr(
        subprocess, "Popen", lambda command, **options: start([sys.executable, "-c", script], **options)
    )
    assert compiling.compile_tasks(["growing", "scoring"])[0] == 4
    last = capsys.readouterr().err.splitlines()[-1]
    assert re.fullmatch(r"compiling kernels: [012]/2 tasks  4 kernels.*", last)


def test_a_process_compiles_tasks_in_turn(monkeypatch):
    script = "import os, sys\nfor line in sys.stdin: print(os.getpid(), line, end=''); print('.', flush=True)"
    monkeypatch.setattr(compiling, "COMMAND", [sys.executable, "-c", script])
    monkeypatch.setattr(compiling, "is_done", lambda task: False)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    lines = []
    monkeypatch.setattr(compiling, "SimpleQueue", lambda: RecordingQueue(lines))
    assert compiling.compile_tasks(["growing", "scoring", "reading"], quiet=True)[0] == 3
    processes, tasks = zip(*(line.split() for line in lines if line != "."), strict=True)
    assert tasks == ("growing", "scoring", "reading") and len(set(processes)) == 1
    assert lines.count(".") == 3


def test_a_task_that_ends_its_process_does_not_take_others_away(monkeypatch):
    script = "import sys\nfor line in sys.stdin:\n if 'growing' in line: sys.exit(3)\n print(line, end='')"
    monkeypatch.setattr(compiling, "COMMAND", [sys.executable, "-c", script + "; print('.', flush=True)"])
    monkeypatch.setattr(compiling, "is_done", lambda task: False)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    for _ in range(5):
        lines = []
        monkeypatch.setattr(compiling, "SimpleQueue", lambda lines=lines: RecordingQueue(lines))
        compiling.compile_tasks(["growing", "scoring", "reading"], quiet=True)
        assert lines == [".", "scoring", ".", "reading", "."]


def test_kernels_that_a_command_compiles_are_counted(capsys):
    from numba.core import event

    from ranksieve.kernels.letor import parse_lines

    def compiled(dispatcher):
        with event.trigger_event("numba:compile", data={"dispatcher": dispatcher}):
            pass

    other = SimpleNamespace(py_func=SimpleNamespace(__module__="numpy.linalg", __name__="dot"))
    ours = SimpleNamespace(py_func=getattr(parse_lines, "py_func", parse_lines))
    with ProgressDisplay("indexing", kernels="") as display, compiling.counting_kernels(display):
        for dispatcher in (ours, ours, other):
            compiled(dispatcher)
        display.update(5, unit="document", title="indexing")
    compiled(ours)  # nobody listens any more
    lines = capsys.readouterr().err.splitlines()
    assert lines[1].startswith("compiling kernels: 2 kernels") and lines[2].startswith("indexing: 5 documents")


def test_the_first_use_of_a_command_counts_kernels(tmp_path):
    (tmp_path / "documents.jsonl").write_text(warm_up.DOCUMENTS)
    command = [sys.executable, "-m", "ranksieve", "index", "documents.jsonl", "--out", "index"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kernels"), "NUMBA_DISABLE_JIT": "0"}
    shown = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stderr
    assert "indexing: reading documents; compiling kernels (first use only)…" in shown
    assert re.search(r"^compiling kernels: \d+ kernels", shown, re.MULTILINE)


def test_a_task_that_fails_is_reported(monkeypatch):
    monkeypatch.setattr(numba_cache, "is_compiled", lambda *_: False)
    monkeypatch.setattr(compiling, "COMMAND", [sys.executable, "-c", "raise SystemExit(3)"])
    result = CliRunner().invoke(app, ["warm-up", "growing", "--quiet"])
    assert result.exit_code != 0 and "the kernels of growing were not compiled" in result.output

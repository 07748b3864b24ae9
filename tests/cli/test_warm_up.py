"""Kernels are compiled before commands begin, once."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from ranksieve.cli import compiling, warm_up
from ranksieve.cli.app import app
from ranksieve.kernels import numba_cache


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
    assert "compiling kernels" in capsys.readouterr().err


def test_a_task_that_fails_is_reported(monkeypatch):
    monkeypatch.setattr(numba_cache, "is_compiled", lambda *_: False)
    monkeypatch.setattr(compiling, "_command", lambda task: [sys.executable, "-c", "raise SystemExit(3)"])
    result = CliRunner().invoke(app, ["warm-up", "growing", "--quiet"])
    assert result.exit_code != 0 and "the kernels of growing were not compiled" in result.output

"""Compiled kernels are dropped when any source has changed, and only then."""

import os

import pytest

from ranksieve.kernels import numba_cache
from ranksieve.kernels.numba_cache import drop_stale, tell_first_use


@pytest.fixture
def folder(tmp_path):
    cache = tmp_path / "__pycache__"
    for source in ("caller.py", "callee.py"):
        (tmp_path / source).write_text("x = 1\n")
    drop_stale(cache, tmp_path.glob("*.py"))
    for name in ("caller.nbi", "caller.1.nbc", "caller.cpython-310.pyc"):
        (cache / name).write_text("compiled")
    return tmp_path


def kept(folder):
    drop_stale(folder / "__pycache__", folder.glob("*.py"))
    return sorted(file.name for file in (folder / "__pycache__").iterdir())


def test_nothing_is_dropped_while_no_source_changes(folder):
    assert kept(folder) == ["caller.1.nbc", "caller.cpython-310.pyc", "caller.nbi", "kernels.stamp"]


@pytest.mark.parametrize("change", ["size", "time", "new file"])
def test_a_change_of_any_source_drops_what_numba_compiled(folder, change):
    callee = folder / "callee.py"
    if change == "size":
        callee.write_text("x = 22\n")
    elif change == "time":
        os.utime(callee, ns=(1, 1))
    else:
        (folder / "another.py").write_text("")
    assert kept(folder) == ["caller.cpython-310.pyc", "kernels.stamp"]


def test_a_cache_that_cannot_be_written_is_left_to_numba(tmp_path):
    (tmp_path / "__pycache__").write_text("a file where the folder would be")
    drop_stale(tmp_path / "__pycache__", [])
    assert (tmp_path / "__pycache__").read_text() == "a file where the folder would be"


def test_compiling_is_logged_where_nothing_is_kept(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(numba_cache, "CACHE", tmp_path)
    for name in ("NUMBA_DISABLE_JIT", "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    tell_first_use("growing")
    assert [(one.name, one.levelname, one.message[:17]) for one in caplog.records] == [
        ("ranksieve", "WARNING", "compiling kernels")
    ]
    (tmp_path / "growing.grow_tree-1.py311.nbi").touch()
    tell_first_use("growing")
    assert len(caplog.records) == 1

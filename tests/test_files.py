"""Files and folders are written completely or not at all, even if the process is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ranksieve.errors import DataError
from ranksieve.files import atomic_folder, atomic_path, check_folder, check_writable

KILLED = """
import os, signal, sys
from ranksieve.files import atomic_folder, atomic_path
with {how}(sys.argv[1]) as path:
    (path if {how} is atomic_path else path / "part").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
@pytest.mark.parametrize("how", ["atomic_path", "atomic_folder"])
def test_the_next_writer_removes_what_a_killed_one_left(tmp_path: Path, how: str) -> None:
    target = tmp_path / "target"
    done = subprocess.run([sys.executable, "-c", KILLED.format(how=how), target], check=False)
    assert done.returncode == -signal.SIGKILL
    (left,) = os.listdir(tmp_path)
    assert left != "target"
    (tmp_path / ".target.swp").write_text("an editor's")
    write(how, target)
    assert sorted(os.listdir(tmp_path)) == [".target.swp", "target"]


@pytest.mark.parametrize("how", ["atomic_path", "atomic_folder"])
def test_a_writer_leaves_another_that_is_at_work_alone(tmp_path: Path, how: str) -> None:
    target = tmp_path / "target"
    with {"atomic_path": atomic_path, "atomic_folder": atomic_folder}[how](target) as first:
        if how == "atomic_path":
            write(how, target)
        else:
            check_folder(target)
            with pytest.raises(ZeroDivisionError), atomic_folder(target):
                raise ZeroDivisionError
        assert first.exists()
        (first if how == "atomic_path" else first / "part").write_text("the last one")
    assert (target if how == "atomic_path" else target / "part").read_text() == "the last one"
    assert os.listdir(tmp_path) == ["target"]


def test_a_folder_is_replaced_without_a_moment_in_which_none_is_there(tmp_path: Path) -> None:
    target = tmp_path / "index"
    write("atomic_folder", target)
    missing, stop = [], threading.Event()

    def read() -> None:
        while not stop.is_set():
            if not target.is_dir():
                missing.append(target)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(200):
        with atomic_folder(target, replace=True) as folder:
            (folder / "part").write_text(str(number))
    stop.set()
    reader.join()
    assert (target / "part").read_text() == "199" and os.listdir(tmp_path) == ["index"]
    assert not missing or sys.platform != "linux"


def test_a_folder_that_another_process_made_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "index"
    with pytest.raises(DataError, match="exists"), atomic_folder(target):
        target.mkdir()
    assert os.listdir(tmp_path) == ["index"] and not os.listdir(target)


def test_a_folder_gets_its_name_back_where_a_process_was_killed_between_two_renames(tmp_path: Path) -> None:
    target = tmp_path / "index"
    write("atomic_folder", target)
    target.rename(tmp_path / ".index.abcd1234.ranksieve-tmp.old")
    with pytest.raises(DataError, match="exists already"), atomic_folder(target):
        pass
    assert (target / "part").exists() and os.listdir(tmp_path) == ["index"]


def test_replacing_works_where_folders_cannot_be_exchanged(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda *_, **__: object())
    for text in ("one", "two"):
        with atomic_folder(tmp_path / "index", replace=True) as folder:
            (folder / "part").write_text(text)
    assert (tmp_path / "index" / "part").read_text() == "two" and os.listdir(tmp_path) == ["index"]


def test_what_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    for path, words in {
        tmp_path: "is a folder",
        tmp_path / "gone" / "x": "cannot write there",
        Path("/dev/null"): "not a regular file",
    }.items():
        if path.exists() or path.name == "x":
            with pytest.raises(DataError, match=words):
                check_writable(path)
    check_writable(tmp_path / "x")
    assert os.listdir(tmp_path) == []


def test_names_may_be_as_long_as_the_file_system_allows(tmp_path: Path) -> None:
    target = tmp_path / ("x" * 250)
    write("atomic_path", target)
    assert os.listdir(tmp_path) == [target.name]


def test_folders_that_cannot_be_made_are_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "folder"):
        with pytest.raises(DataError, match=r"not a folder|cannot write there"):
            check_folder(path)
    check_folder(tmp_path)
    check_folder(tmp_path / "new" / "folder")
    assert os.listdir(tmp_path) == ["file"]


def write(how: str, target: Path) -> None:
    if how == "atomic_path":
        with atomic_path(target) as path:
            path.write_text("whole")
    else:
        with atomic_folder(target) as folder:
            (folder / "part").write_text("whole")

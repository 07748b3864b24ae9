"""Copies on disks: complete or absent, of this user only, and removed by their owner."""

from __future__ import annotations

import os
import pickle
import stat
import time
from types import SimpleNamespace

import numpy as np
import pytest

from ranksieve.cluster import copies
from ranksieve.cluster.copies import (
    MAX_AGE,
    PREFIX,
    LocalCopy,
    NoCopy,
    ShardData,
    list_copies,
    remove_copies,
    remove_old,
)
from ranksieve.data.binned import bin_data
from samples import small_dataset


@pytest.fixture(scope="module")
def held() -> ShardData:
    return ShardData({"train": bin_data(small_dataset(n_queries=30))}, {}, {"train": np.arange(3.0)})


@pytest.fixture
def path(tmp_path):
    return tmp_path / f"{PREFIX}run-0"


@pytest.fixture
def written(held, path):
    """A copy on the disk."""
    copy = LocalCopy(path.parent, "run-0")
    with pytest.raises(NoCopy):
        copy.read()
    copy.write(held)
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return [copy]


def test_a_copy_holds_the_data_and_is_removed_with_its_shard(held, path, written):
    os.utime(path, (0, 0))
    written[0].touch()
    remove_old(path.parent)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600, "other users cannot read labels"
    successor = LocalCopy(path.parent, "run-0")
    found = successor.read()
    np.testing.assert_array_equal(found.sets["train"].bins, held.sets["train"].bins)
    assert found.sets["train"].bins.flags.writeable and found.initial_scores["train"].tolist() == [0, 1, 2]
    del successor
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize("damage", ["hole", "cut", "first", "last"])
def test_any_damage_is_detected(path, written, damage):
    content = bytearray(path.read_bytes())
    if damage == "cut":
        del content[-1000:]
    elif damage == "hole":
        middle = len(content) // 2
        content[middle : middle + 64] = bytes(64)
    else:
        content[0 if damage == "first" else -1] ^= 255
    path.write_bytes(content)
    with pytest.raises(NoCopy):
        LocalCopy(path.parent, "run-0").read()
    assert not path.exists(), "the next worker does not try it again"


def test_lack_of_memory_does_not_count_as_damage(path, written, monkeypatch):
    def greedy(file):
        raise MemoryError

    monkeypatch.setattr(copies, "_load", greedy)
    with pytest.raises(MemoryError):
        LocalCopy(path.parent, "run-0").read()
    assert path.exists()


def test_files_of_other_users_are_not_unpickled(path, written, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: path.stat().st_uid + 1)
    monkeypatch.setattr(pickle, "loads", None)
    with pytest.raises(NoCopy):
        LocalCopy(path.parent, "run-0").read()
    worker = SimpleNamespace(local_directory=str(path.parent / "worker"))
    assert list_copies(["run-0"], worker) == [] and path.exists()


def test_a_disconnected_worker_keeps_the_copy_of_its_successor(held, path, written, monkeypatch):
    first = path.stat().st_ino
    other = LocalCopy(path.parent, "run-0")
    monkeypatch.setattr(copies.threading, "Thread", ImmediateThread)
    other.write(held)
    assert path.stat().st_ino != first
    written.clear()  # removes the first
    assert [kept.name for kept in path.parent.iterdir()] == [path.name]
    monkeypatch.setattr(copies, "_write", lambda unfinished, path, file, held: file.close())
    other.write(held)  # never finished
    assert len(list(path.parent.iterdir())) == 2
    del other
    assert not list(path.parent.iterdir())


class ImmediateThread:
    """A thread whose work is done when it is started."""

    def __init__(self, target, args, daemon) -> None:
        self.start = lambda: target(*args)


def test_old_copies_are_removed_and_what_cannot_be_removed_is_ignored(tmp_path):
    (tmp_path / f"{PREFIX}x").mkdir()
    os.utime(tmp_path / f"{PREFIX}x", (0, 0))
    for name, age in (("run-1", 0), ("run-2", 2 * MAX_AGE)):
        (tmp_path / f"{PREFIX}{name}").touch()
        os.utime(tmp_path / f"{PREFIX}{name}", (time.time() - age,) * 2)
    remove_old(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{PREFIX}run-1", f"{PREFIX}x"]
    (tmp_path / f"{PREFIX}run-3").mkdir()
    remove_copies("run", SimpleNamespace(local_directory=str(tmp_path / "worker")))
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{PREFIX}run-3", f"{PREFIX}x"]

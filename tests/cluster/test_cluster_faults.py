"""Workers and schedulers that die, as real processes do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from distributed import Client, KilledWorker, LocalCluster
from distributed.comm import CommClosedError

import ranksieve as rs
from ranksieve.cluster import worker_pool
from ranksieve.cluster.connect import PauseTimer, run_on_workers
from ranksieve.cluster.copies import PREFIX, folder_of
from ranksieve.cluster.partitions import Partition, gather_results
from ranksieve.cluster.worker_pool import WorkerPool
from ranksieve.data.joined import JoinedSource, Piece
from ranksieve.errors import ClusterError
from ranksieve.forest.formats.lightgbm_writer import to_text
from samples import small_dataset

SMALL = {"trees": 9, "leaves": 6, "min_docs": 3, "learning_rate": 0.2, "negatives": 0.2, "early_stopping": 0}


@pytest.fixture(scope="module")
def data() -> rs.Dataset:
    return small_dataset(n_queries=30)


@pytest.fixture(scope="module")
def files(data, tmp_path_factory) -> list[str]:
    folder = tmp_path_factory.mktemp("parts")
    names = [str(folder / f"part-{i}.parquet") for i in range(3)]
    for name, queries in zip(names, np.split(np.arange(30), [8, 20]), strict=True):
        rs.io.write_parquet(data.take_queries(queries), name)
    return names


def alone(files: list[str], **options) -> str:
    """The model file of one process."""
    return to_text(rs.train(JoinedSource([Piece(file) for file in files]), **options))


@pytest.fixture(scope="module")
def cluster(client, tmp_path_factory) -> Iterator[LocalCluster]:
    """Workers to be killed; `client` only so that everything is compiled."""
    place = str(tmp_path_factory.mktemp("workers"))  # where copies of those that died stay
    options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "memory_limit": 0, "local_directory": place}
    with LocalCluster(n_workers=2, **options) as cluster:
        yield cluster


@pytest.fixture
def mortals(cluster) -> Iterator[Client]:
    """Two workers, however many were killed before."""
    with Client(cluster) as client:
        wait_until(lambda: len(client.run(os.getpid, on_error="ignore")) == 2)
        yield client


def wait_until(true: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def killer(client: Client, at: int, n_copies: int = 2) -> Callable[[rs.callbacks.Record], None]:
    """A callback that kills a worker after so many trees, when so many copies are written."""
    before = copies_of(client)

    def kill(record) -> None:
        if record.step == at:
            wait_until(lambda: sum("part" not in name for name in copies_of(client) - before) == n_copies)
            os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)

    return kill


@pytest.fixture
def copied(monkeypatch) -> list[list[int]]:
    """The shards that were made from copies, for each time that some were lost."""
    found = []
    ask = WorkerPool._with_copies

    def noted(self, homes, holders):
        found.append(ask(self, homes, holders))
        return found[-1]

    monkeypatch.setattr(WorkerPool, "_with_copies", noted)
    return found


def copies_of(client: Client) -> set[str]:
    """The names of all copies on the machine."""

    def names(dask_worker) -> list[str]:
        return [path.name for path in folder_of(dask_worker).glob(f"{PREFIX}*")]

    return {name for here in client.run(names).values() for name in here}


@pytest.mark.parametrize(
    ("algo", "watched", "copies"), [("selgb", False, True), ("selgb", False, False), ("lambdamart", True, True)]
)
def test_a_killed_worker_changes_no_bit(mortals, files, copied, algo, watched, copies):
    """With a set to watch, the lesson is there already and the worker is missed while the tree grows."""
    options = {**SMALL, "algo": algo, "every": 2, **({"valid": files[1:2]} if watched else {})}
    before = copies_of(mortals)
    survived = rs.cluster.train(mortals, files, callbacks=[killer(mortals, 4, 2 * copies)], copies=copies, **options)
    assert to_text(survived) == alone(files, **{**options, "valid": files[1] if watched else None})
    assert copied and len(copied[-1]) == copies, "one of two, from the copy if there was to be one"
    assert copies_of(mortals) <= before, "they go with the run"


def test_scores_to_start_from_are_in_the_copy_too(mortals, data, files, copied):
    base = rs.train(data, trees=2, leaves=4, min_docs=3)
    survived = rs.cluster.train(mortals, files, init=base, callbacks=[killer(mortals, at=4)], **SMALL)
    assert to_text(survived) == alone(files, init=base, **SMALL)
    assert len(copied[-1]) == 1


def test_a_damaged_copy_is_no_harm(mortals, files, copied, monkeypatch):
    def damage(dask_worker) -> None:
        for path in folder_of(dask_worker).glob(f"{PREFIX}*"):
            os.truncate(path, 1000)

    def damage_and_kill(record) -> None:
        if record.step == 4:
            wait_until(lambda: sum("part" not in name for name in copies_of(mortals)) == 2)
            mortals.run(damage)
        kill(record)

    monkeypatch.setattr(worker_pool, "MAX_LOSSES", 2)
    kill = killer(mortals, at=4)
    survived = rs.cluster.train(mortals, files, callbacks=[damage_and_kill], **SMALL)
    assert to_text(survived) == alone(files, **SMALL)
    assert [len(found) for found in copied] == [1], "tried, and then the same worker read the source: one was lost"


def test_a_source_that_changed_meanwhile_is_refused(mortals, data, tmp_path):
    path = tmp_path / "part.parquet"
    rs.io.write_parquet(data, path)

    def change_and_kill(record) -> None:
        if record.step == 4:
            other = data.features.copy()
            other[0], other[-1] = -other[0], -other[-1]
            rs.io.write_parquet(replace(data, features=other), path)
        kill(record)

    kill = killer(mortals, at=4, n_copies=0)
    with pytest.raises(ClusterError, match=r"part.parquet: changed during the run"):
        rs.cluster.train(mortals, path, callbacks=[change_and_kill], copies=False, **SMALL)


def test_a_worker_that_dies_of_its_lists_is_named_with_their_sizes(mortals, files, monkeypatch):
    monkeypatch.setattr(worker_pool, "MAX_LOSSES", 2)

    def deadly(labels, scores, offsets):
        os._exit(1)

    with pytest.raises(ClusterError, match=r"documents of .*part-0.parquet.*GB as bins and scores.*more memory"):
        rs.cluster.train(mortals, files, objective=deadly, **SMALL)


def test_lost_connections_and_files_end_the_run_at_once_and_keep_its_trees(client, files, tmp_path, monkeypatch):
    def unreadable(labels, scores, offsets):
        raise PermissionError(13, "Permission denied", "notes.txt")

    started = time.monotonic()
    with pytest.raises(ClusterError, match=r"worker tcp://.*Permission denied.*notes.txt"):
        rs.cluster.train(client, files, objective=unreadable, **SMALL)
    assert time.monotonic() - started < worker_pool.LOSS_TIMEOUT, (
        "the worker is there, so nobody waits until it is gone"
    )

    def cut(record) -> None:
        if record.step == 3:
            monkeypatch.setattr(WorkerPool, "_call", closed)

    def closed(*_):
        raise CommClosedError("in <TCP>: Stream is closed")

    with pytest.raises(ClusterError, match=r"does not answer \(CommClosedError: in <TCP>.*from the checkpoint"):
        rs.cluster.train(client, files, callbacks=[cut], checkpoint=tmp_path / "kept", **SMALL)
    steps = []
    monkeypatch.undo()
    rs.cluster.train(
        client, files, checkpoint=tmp_path / "kept", resume=True, callbacks=[lambda r: steps.append(r.step)], **SMALL
    )
    assert steps[0] == 4


def test_a_worker_that_does_not_answer_is_not_waited_for(client, monkeypatch):
    workers = list(client.nthreads())
    assert set(run_on_workers(client, workers[:2], os.getpid)) == set(workers[:2])
    monkeypatch.setattr("ranksieve.cluster.connect.RUN_TIMEOUT", 0.2)
    assert run_on_workers(client, workers, time.sleep, 1.0) == {}


def test_lists_that_cannot_fit_are_refused_before_they_are_loaded(client, files, monkeypatch):
    limits = {worker: {"memory_limit": 10_000} for worker in client.nthreads()}
    monkeypatch.setattr("ranksieve.cluster.layout.worker_states", lambda client: limits)
    with pytest.raises(
        ClusterError, match=r"1e-05 GB of memory would hold .* largest partition, .*part-1.parquet, has"
    ):
        rs.cluster.train(client, files, **SMALL)


def test_workers_that_dask_pauses_or_kills_over_a_part_are_not_waited_for(client, monkeypatch):
    parts = [Partition("a.parquet", "a.parquet"), Partition("b.parquet", "b.parquet")]
    paused = {worker: {"status": "paused"} for worker in client.nthreads()}
    monkeypatch.setattr("ranksieve.cluster.connect.MAX_PAUSE", -1)
    monkeypatch.setattr("ranksieve.cluster.partitions.POLL_SECONDS", 0.05)
    busy = {worker: {"status": "paused", "metrics": {"task_counts": {"executing": 1}}} for worker in paused}
    idle = {worker: {"status": "paused", "metrics": {"task_counts": {"memory": 1}}} for worker in paused}
    for known, is_too_long in (
        (paused, True),
        (busy, False),
        (paused | dict([*busy.items()][:1]), False),
        (idle, True),
    ):
        monkeypatch.setattr("ranksieve.cluster.connect.worker_states", lambda client, known=known: known)
        assert PauseTimer(client).is_too_long() == is_too_long, "what is under way goes on though a worker is paused"
    never = [client.submit(time.sleep, 1, pure=False) for _ in parts]
    with pytest.raises(
        ClusterError, match=r"paused.*2 partitions of 1,005 documents \(the largest, b.parquet, has 1,000"
    ):
        gather_results(client, never, parts, [5, 1000])

    def killed(tasks):
        raise KilledWorker("task", None, 4)

    killing = SimpleNamespace(gather=killed)
    with pytest.raises(ClusterError, match=r"several workers were lost while they read 2 partitions"):
        gather_results(killing, [SimpleNamespace(status="error", release=lambda: None)], parts)


@contextmanager
def processes(tmp_path: Path, n_workers: int) -> Iterator[tuple[Client, list[subprocess.Popen]]]:
    """A scheduler and workers that nobody starts again, each a process of its own, and a client."""
    place = str(tmp_path / "scheduler.json")
    run = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
    work = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard",
            "--local-directory", str(tmp_path)]  # fmt: skip
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [
        subprocess.Popen([*command, "--scheduler-file", place], **quiet) for command in (run, *[work] * n_workers)
    ]
    try:
        with Client(scheduler_file=place, timeout=20) as client:
            client.wait_for_workers(n_workers)
            yield client, started
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_those_that_are_left_take_over_where_no_new_worker_comes(client, files, tmp_path, monkeypatch):
    monkeypatch.setattr(worker_pool, "REPLACEMENT_TIMEOUT", 0.5)
    with processes(tmp_path, n_workers=3) as (few, (_, first, second, _)):

        def kill(record) -> None:
            if record.step in (2, 5):
                (first if record.step == 2 else second).kill()

        survived = rs.cluster.train(few, files, callbacks=[kill], copies=False, **SMALL)
        assert len(few.nthreads()) == 1
    assert to_text(survived) == alone(files, **SMALL)


def test_a_lost_scheduler_leaves_a_checkpoint_to_go_on_from(client, files, tmp_path):
    options = {**SMALL, "valid": files[1:2], "checkpoint": tmp_path / "kept"}
    with processes(tmp_path, n_workers=1) as (lonely, (scheduler, _)):

        def kill(record) -> None:
            if record.step == 5:
                scheduler.kill()

        with pytest.raises(ClusterError, match=r"scheduler is lost .* after [56] trees.*the checkpoint with resume"):
            rs.cluster.train(lonely, files, callbacks=[kill], **options)
    steps = []
    resumed = rs.cluster.train(
        client, files, resume=True, callbacks=[lambda record: steps.append(record.step)], **options
    )
    assert steps == [6, 7, 8, 9], "what was learned is kept, though no checkpoint was due"
    assert to_text(resumed) == alone(files, **{**SMALL, "valid": files[1]})

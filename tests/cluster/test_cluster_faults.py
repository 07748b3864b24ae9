"""Workers and schedulers that are killed, as real processes."""

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

SMALL = {
    "trees": 9,
    "leaves": 6,
    "min_docs": 3,
    "learning_rate": 0.2,
    "negatives": 0.2,
    "min_negatives": 1,
    "early_stopping": 0,
}


@pytest.fixture(scope="module")
def data() -> rs.Dataset:
    """Lists with positions, whose biases replaced workers need, too."""
    plain = small_dataset(n_queries=30)
    ranks = np.concatenate([np.minimum(np.arange(1, size + 1), 15) for size in plain.lists.sizes])
    return rs.Dataset.from_arrays(plain.features, plain.labels, group=plain.lists.sizes, positions=ranks)


@pytest.fixture(scope="module")
def files(data, tmp_path_factory) -> list[str]:
    folder = tmp_path_factory.mktemp("parts")
    names = [str(folder / f"part-{i}.parquet") for i in range(3)]
    for name, queries in zip(names, np.split(np.arange(30), [8, 20]), strict=True):
        rs.io.write_parquet(data.take_queries(queries), name)
    return names


def alone(files: list[str], **options) -> str:
    """The model file of training in one process."""
    return to_text(rs.train(JoinedSource([Piece(file) for file in files]), **options))


@pytest.fixture(scope="module")
def cluster(compiled, tmp_path_factory) -> Iterator[LocalCluster]:
    """Workers to be killed."""
    place = str(tmp_path_factory.mktemp("workers"))  # where the copies of killed workers stay
    options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "memory_limit": 0, "local_directory": place}
    with LocalCluster(n_workers=2, **options) as cluster:
        yield cluster


@pytest.fixture
def killable(cluster) -> Iterator[Client]:
    """A client with two workers, which tests may kill."""
    with Client(cluster) as client:
        wait_until(lambda: len(client.run(os.getpid, on_error="ignore")) == 2)
        yield client


@pytest.fixture
def client(killable) -> Client:
    """The same workers: no others are started for tests that kill none."""
    return killable


def wait_until(true: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def killer(client: Client, at: int, n_copies: int = 2) -> Callable[[rs.callbacks.Record], None]:
    """A callback that kills a worker after `at` trees, when `n_copies` copies are written."""
    before = copies_of(client)

    def kill(record) -> None:
        if record.step == at:
            wait_until(lambda: sum("part" not in name for name in copies_of(client) - before) == n_copies)
            os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)

    return kill


@pytest.fixture
def copied(monkeypatch) -> list[list[int]]:
    """The shards that were loaded from copies, for each loss."""
    found = []
    with_copies = WorkerPool._with_copies

    def recorded(self, assigned, copies):
        found.append(with_copies(self, assigned, copies))
        return found[-1]

    monkeypatch.setattr(WorkerPool, "_with_copies", recorded)
    return found


def copies_of(client: Client) -> set[str]:
    """The names of all copies on the machine."""

    def names(dask_worker) -> list[str]:
        return [path.name for path in folder_of(dask_worker).glob(f"{PREFIX}*")]

    return {name for here in client.run(names).values() for name in here}


@pytest.mark.parametrize(
    ("algo", "with_valid", "copies"), [("selgb", False, True), ("selgb", False, False), ("lambdamart", True, True)]
)
def test_a_killed_worker_does_not_change_the_model(killable, files, copied, algo, with_valid, copies):
    """With a validation set the gradients are computed before the loss, which is noticed while the tree grows."""
    options = {**SMALL, "algo": algo, "every": 2, **({"valid": files[1:2]} if with_valid else {})}
    before = copies_of(killable)
    survived = rs.cluster.train(killable, files, callbacks=[killer(killable, 4, 2 * copies)], copies=copies, **options)
    assert to_text(survived) == alone(files, **{**options, "valid": files[1] if with_valid else None})
    assert copied and len(copied[-1]) == copies, "one of two shards, from its copy if there is one"
    assert copies_of(killable) <= before, "copies are removed after the run"


def test_initial_scores_are_in_the_copy(killable, data, files, copied):
    base = rs.train(data, trees=2, leaves=4, min_docs=3)
    survived = rs.cluster.train(killable, files, init=base, callbacks=[killer(killable, at=4)], **SMALL)
    assert to_text(survived) == alone(files, init=base, **SMALL)
    assert len(copied[-1]) == 1


def test_a_damaged_copy_is_not_used(killable, files, copied, monkeypatch):
    def damage(dask_worker) -> None:
        for path in folder_of(dask_worker).glob(f"{PREFIX}*"):
            os.truncate(path, 1000)

    def damage_and_kill(record) -> None:
        if record.step == 4:
            wait_until(lambda: sum("part" not in name for name in copies_of(killable)) == 2)
            killable.run(damage)
        kill(record)

    monkeypatch.setattr(worker_pool, "MAX_LOSSES", 2)
    kill = killer(killable, at=4)
    survived = rs.cluster.train(killable, files, callbacks=[damage_and_kill], **SMALL)
    assert to_text(survived) == alone(files, **SMALL)
    assert [len(found) for found in copied] == [1], "the copy was tried, then the same worker read the source"


def test_a_source_that_changed_during_the_run_is_refused(killable, data, tmp_path):
    path = tmp_path / "part.parquet"
    rs.io.write_parquet(data, path)

    def change_and_kill(record) -> None:
        if record.step == 4:
            other = data.features.copy()
            other[0], other[-1] = -other[0], -other[-1]
            rs.io.write_parquet(replace(data, features=other), path)
        kill(record)

    kill = killer(killable, at=4, n_copies=0)
    with pytest.raises(ClusterError, match=r"part.parquet: changed during the run"):
        rs.cluster.train(killable, path, callbacks=[change_and_kill], copies=False, **SMALL)


def test_lost_connections_and_files_end_the_run_at_once_and_the_trees_are_kept(client, files, tmp_path, monkeypatch):
    def unreadable(labels, scores, offsets):
        raise PermissionError(13, "Permission denied", "notes.txt")

    started = time.monotonic()
    with pytest.raises(ClusterError, match=r"worker tcp://.*Permission denied.*notes.txt"):
        rs.cluster.train(client, files, objective=unreadable, **SMALL)
    assert time.monotonic() - started < worker_pool.LOSS_TIMEOUT, (
        "the worker still exists, so its loss is not waited for"
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
    assert run_on_workers(client, workers, time.sleep, 2.0) == {}


def test_data_that_cannot_fit_is_refused_before_it_is_loaded(client, files, monkeypatch):
    limits = {worker: {"memory_limit": 10_000} for worker in client.nthreads()}
    monkeypatch.setattr("ranksieve.cluster.layout.worker_states", lambda client: limits)
    with pytest.raises(
        ClusterError, match=r"1e-05 GB of memory would hold .* largest partition, .*part-1.parquet, has"
    ):
        rs.cluster.train(client, files, **SMALL)


def test_workers_that_dask_pauses_or_kills_are_not_waited_for(client, monkeypatch):
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
        assert PauseTimer(client).is_too_long() == is_too_long, "running tasks continue on a paused worker"
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
    """A scheduler and workers without nannies, each a process, and a client."""
    place = str(tmp_path / "scheduler.json")
    local = ["--host", "127.0.0.1", "--no-dashboard"]
    scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", *local]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", *local,
              "--local-directory", str(tmp_path)]  # fmt: skip
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [
        subprocess.Popen([*command, "--scheduler-file", place], **quiet)
        for command in (scheduler, *[worker] * n_workers)
    ]
    try:
        with Client(scheduler_file=place, timeout=20) as client:
            client.wait_for_workers(n_workers)
            yield client, started
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_other_workers_take_over_if_no_new_worker_starts(compiled, files, tmp_path, monkeypatch):
    monkeypatch.setattr(worker_pool, "REPLACEMENT_TIMEOUT", 0.5)
    with processes(tmp_path, n_workers=3) as (few, (_, first, second, _)):

        def kill(record) -> None:
            if record.step in (2, 5):
                (first if record.step == 2 else second).kill()

        survived = rs.cluster.train(few, files, callbacks=[kill], copies=False, **SMALL)
        assert len(few.nthreads()) == 1
    assert to_text(survived) == alone(files, **SMALL)


def test_a_lost_scheduler_leaves_a_checkpoint(client, files, tmp_path):
    options = {**SMALL, "valid": files[1:2], "checkpoint": tmp_path / "kept"}
    with processes(tmp_path, n_workers=1) as (small, (scheduler, _)):

        def kill(record) -> None:
            if record.step == 5:
                scheduler.kill()

        with pytest.raises(
            ClusterError, match=r"scheduler is lost .* after [56] trees.*continue from the checkpoint with resume"
        ):
            rs.cluster.train(small, files, callbacks=[kill], **options)
    steps = []
    resumed = rs.cluster.train(
        client, files, resume=True, callbacks=[lambda record: steps.append(record.step)], **options
    )
    assert steps == [6, 7, 8, 9], "all trees are kept, though no checkpoint was due"
    assert to_text(resumed) == alone(files, **{**SMALL, "valid": files[1]})


def test_partitions_that_kill_workers_are_named_with_their_sizes(killable, files, monkeypatch):
    """The last test: the workers do not come back for a while."""
    monkeypatch.setattr(worker_pool, "MAX_LOSSES", 2)

    def deadly(labels, scores, offsets):
        os._exit(1)

    with pytest.raises(ClusterError, match=r"documents of .*part-\d.parquet.*GB as bins and scores.*more memory"):
        rs.cluster.train(killable, files, objective=deadly, **SMALL)

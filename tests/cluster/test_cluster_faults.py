"""Workers and schedulers that die, as real processes do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np
import pytest
from distributed import Client, LocalCluster

import ranksieve as rs
from ranksieve.cluster import crew
from ranksieve.errors import ClusterError
from ranksieve.forest.lightgbm_text import to_text
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
        rs.write_parquet(data.take_queries(queries), name)
    return names


@pytest.fixture(scope="module")
def mortals(client) -> Iterator[Client]:
    """Workers to be killed; `client` only so that everything is compiled."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=0) as cluster,
        Client(cluster) as client,
    ):
        yield client


def killer(client: Client, at: int):
    """A callback that kills a worker after so many trees."""

    def kill(record) -> None:
        if record.step == at:
            os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)

    return kill


@pytest.mark.parametrize(("algo", "watched"), [("selgb", False), ("lambdamart", True)])
def test_a_killed_worker_changes_no_bit(mortals, data, files, algo, watched):
    """With a set to watch, the lesson is there already and the worker is missed while the tree grows."""
    options = {**SMALL, "algo": algo, "every": 2, **({"valid": files[1:2]} if watched else {})}
    expected = rs.cluster.train(mortals, files, **options)
    survived = rs.cluster.train(mortals, files, callbacks=[killer(mortals, at=4)], **options)
    assert to_text(survived) == to_text(expected)


def test_a_worker_that_dies_of_its_lists_is_named_with_their_sizes(mortals, files, monkeypatch):
    monkeypatch.setattr(crew, "TRIES", 2)

    def deadly(labels, scores, offsets):
        os._exit(1)

    with pytest.raises(ClusterError, match=r"documents of .*part-0.parquet.*GB as bins and scores.*more memory"):
        rs.cluster.train(mortals, files, objective=deadly, **SMALL)


def test_lists_that_cannot_fit_are_refused_before_they_are_loaded(client, files, monkeypatch):
    limits = {worker: {"memory_limit": 10_000} for worker in client.nthreads()}
    monkeypatch.setattr("ranksieve.cluster.training._known_workers", lambda client: limits)
    with pytest.raises(
        ClusterError, match=r"1e-05 GB of memory would hold .* largest partition, .*part-1.parquet, has"
    ):
        rs.cluster.train(client, files, **SMALL)


@pytest.fixture
def scheduler(tmp_path) -> Iterator[tuple[str, int]]:
    """The address and the process of a scheduler with one worker, each a process of its own."""
    place = tmp_path / "scheduler.json"
    run = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
    work = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    processes = [subprocess.Popen([*command, "--scheduler-file", str(place)], **quiet) for command in (run, work)]
    try:
        yield str(place), processes[0].pid
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_a_lost_scheduler_leaves_a_checkpoint_to_go_on_from(client, scheduler, files, tmp_path):
    place, pid = scheduler
    while not os.path.exists(place):
        time.sleep(0.05)
    options = {**SMALL, "checkpoint": tmp_path / "kept", "checkpoint_every": 3}

    def kill(record) -> None:
        if record.step == 5:
            os.kill(pid, signal.SIGKILL)

    with Client(scheduler_file=place, timeout=2) as lonely:
        lonely.wait_for_workers(1)
        with pytest.raises(ClusterError, match=r"scheduler is lost .* after 5 trees.*goes on from the checkpoint"):
            rs.cluster.train(lonely, files, callbacks=[kill], **options)
    resumed = rs.cluster.train(client, files, resume=True, **options)
    assert to_text(resumed) == to_text(rs.cluster.train(client, files, **SMALL))

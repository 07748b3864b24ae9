"""Seconds and bytes per tree on a Dask cluster beside one process, and what a killed worker costs.

Run `python benchmarks/cluster.py [--queries 1000] [--trees 200] [--data FOLDER] [--only PART]`. The cluster is a
`LocalCluster` of two worker processes with one thread each, the peer one process with two threads; both learn from the
same Parquet parts with the same bins, and the models must be equal, byte for byte, before a number counts. Times are
medians over the trees after the tenth, from callback to callback, so loading does not count; runs of the two sides
alternate. Bytes are those of the pickled messages, counted in a run of their own. Runs with a killed worker, from files
to model, alternate with undisturbed ones; the cost is that of their medians. `--data` keeps the generated parts for the
next time; `--only` runs the rows whose names hold a word, and saves nothing unless there is another `--name`. Rows with
bins in files come first, in fresh workers, whose memory is limited to `--memory`. `--only gain --name cluster_gain`
compares the bytes of the two split gains.
"""

from __future__ import annotations

import argparse
import os
import pickle
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from distributed import Client, LocalCluster

import ranksieve as rs
from paper_settings import TREES, share
from ranksieve.cluster.worker_pool import WorkerPool
from ranksieve.data.binned import Binned, bin_data
from ranksieve.data.joined import JoinedSource, Piece
from ranksieve.forest.formats.lightgbm_writer import to_text
from results import save

PARTS = 8
WARM = 10  # trees that do not count
ONE_PERCENT = {"algo": "selgb", **TREES, **share(0.01)}
THREADS = 2  # of one process, and of the coordinator, which computes while the workers wait


def parts(folder: Path, n_queries: int) -> list[str]:
    """The Parquet parts of the data, written once."""
    size, names = n_queries // PARTS, []
    for i in range(PARTS):
        path = folder / f"two-stage-{size}-{i}.parquet"
        if not path.exists():
            rs.io.write_parquet(rs.synth.two_stage(size, start=i * size), path)
        names.append(str(path))
    return names


def bytes_read(dask_worker) -> int:
    """How many bytes of bins a worker has read from files."""
    shards = dask_worker.state.actors.values()
    return sum(one.disk.file.bytes_read for shard in shards for one in shard._data.sets.values() if one.disk)


class PerTree(NamedTuple):
    """Of a tree after the warm-up: the median seconds; the mean CPU seconds and bytes."""

    seconds: float
    coordinator: float  # CPU seconds; of the one process where there is no cluster
    workers: float  # CPU seconds of all
    n_read: float  # bytes of bin files that all workers have read

    @property
    def cpu(self) -> float:
        return self.coordinator + self.workers


class Clock:
    """A callback that notes when each tree was done, and what all processes had used by then."""

    def __init__(self, client: Client | None = None) -> None:
        self._client = client
        self.ticks: list[float] = []
        self.used: list[tuple[float, ...]] = []  # at the end of the warm-up and of the run

    def __call__(self, record) -> None:
        if record.step in (min(WARM, record.n_trees // 2), record.n_trees):
            asked = (time.process_time, bytes_read)
            workers = [0.0, 0.0] if self._client is None else [sum(self._client.run(one).values()) for one in asked]
            self.used.append((record.step, time.process_time(), *workers))
        self.ticks.append(time.perf_counter())

    def per_tree(self) -> PerTree:
        before, after = np.array(self.used)
        first, last = int(before[0]), int(after[0])
        return PerTree(float(np.median(np.diff(self.ticks)[first:])), *((after - before)[1:] / (last - first)))


@contextmanager
def counted() -> Iterator[list[int]]:
    """The bytes of every call and its results."""
    sizes, call = [], WorkerPool._call

    def counting(self, shards, method, arguments):
        answers, lost = call(self, shards, method, arguments)
        n_shards = len(answers)
        sent = n_shards * len(pickle.dumps(arguments)) if method != "begin" else 0
        sizes.append(sent + sum(len(pickle.dumps(answer)) for answer in answers.values()))
        return answers, lost

    WorkerPool._call = counting
    try:
        yield sizes
    finally:
        WorkerPool._call = call


def sent_per_tree(train: Callable[..., object], sizes: list[int]) -> np.ndarray:
    """The calls between each tree and the one before, and their bytes."""
    marks: list[tuple[int, int]] = []
    train(callbacks=[lambda record: marks.append((len(sizes), sum(sizes)))])
    return np.diff(marks, axis=0).T


@contextmanager
def two_workers() -> Iterator[Client]:
    """New worker processes: memory that earlier runs have left in a worker would count as that of the next one."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster, direct_to_workers=True) as client,
    ):
        yield client


def compare(client: Client, files: list[str], binned: Binned, what: str, options: dict, rounds: int) -> dict:
    """Seconds per tree of both sides, and the bytes of the cluster's."""
    sides = {"one": [], "cluster": []}
    models = {}
    for _ in range(rounds):
        clock = Clock()
        here = {name: value for name, value in options.items() if name not in ("exchange", "memory")}
        models["one"] = rs.train(binned, callbacks=[clock], threads=THREADS, early_stopping=0, **here)
        sides["one"].append(clock.per_tree())
        clock = Clock(client)
        models["cluster"] = rs.cluster.train(
            client, files, binning=binned.binning, callbacks=[clock], threads=THREADS, early_stopping=0, **options
        )
        sides["cluster"].append(clock.per_tree())
    assert to_text(models["one"]) == to_text(models["cluster"])
    with two_workers() as others, counted() as sizes:
        n_messages, n_bytes = sent_per_tree(
            lambda callbacks: rs.cluster.train(
                others, files, binning=binned.binning, callbacks=callbacks, early_stopping=0, **options
            ),
            sizes,
        )
    tenth = max(len(n_bytes) // 10, 1)
    one, many = min(sides["one"]), min(sides["cluster"])
    rounds = zip(sides["one"], sides["cluster"], strict=True)
    row = {
        "what": what,
        "one process, ms per tree": round(1e3 * one.seconds, 1),
        "cluster, ms per tree": round(1e3 * many.seconds, 1),
        "times": round(many.seconds / one.seconds, 2),
        "times, CPU": round(many.cpu / one.cpu, 2),
        "all rounds, times": [round(b.seconds / a.seconds, 2) for a, b in rounds],
        "one process, CPU ms per tree": round(1e3 * one.cpu, 1),
        "coordinator, CPU ms per tree": round(1e3 * many.coordinator, 1),
        "workers, CPU ms per tree": round(1e3 * many.workers, 1),
        "MB of bin files read per tree": round(many.n_read / 1e6, 1),
        "messages per tree": round(float(n_messages.mean()), 1),
        "MB per tree, first tenth": round(float(n_bytes[:tenth].mean()) / 1e6, 3),
        "MB per tree, last tenth": round(float(n_bytes[-tenth:].mean()) / 1e6, 3),
        "% of the bins per tree, mean": round(100 * float(n_bytes.mean()) / binned.bins.nbytes, 4),
    }
    print(row, flush=True)
    return row


def killed(client: Client, files: list[str], what: str, trees: int, rounds: int, *, copies: bool) -> dict:
    """Runs of so many trees from files to model, with and without a worker killed in the middle."""
    options = {"trees": trees, "early_stopping": 0, "threads": THREADS, "copies": copies}
    seconds: dict[str, list[float]] = {"undisturbed": [], "disturbed": [], "gap": []}
    ticks: list[float] = []

    def kill(record) -> None:
        ticks.append(time.perf_counter())
        if record.step == trees // 2:
            os.kill(max(client.run(os.getpid).values()), signal.SIGKILL)

    def timed(side: str, callbacks) -> str:
        client.wait_for_workers(2)
        started = time.perf_counter()
        model = rs.cluster.train(client, files, callbacks=callbacks, **options)
        seconds[side].append(time.perf_counter() - started)
        return to_text(model)

    rs.cluster.train(client, files, **{**options, "trees": 2})  # loads the kernels
    for _ in range(rounds):
        whole = timed("undisturbed", [])
        ticks.clear()
        assert timed("disturbed", [kill]) == whole
        seconds["gap"].append(float(np.diff(ticks).max()))
    undisturbed, disturbed = (float(np.median(seconds[side])) for side in ("undisturbed", "disturbed"))
    row = {
        "what": f"{what}, {trees} trees, a worker killed after {trees // 2}",
        "undisturbed, s": round(undisturbed, 1),
        "with the loss, s": round(disturbed, 1),
        "cost, %": round(100 * (disturbed / undisturbed - 1), 1),
        "longest pause between trees, s": round(float(np.median(seconds["gap"])), 1),
        "all rounds": {side: [round(value, 1) for value in found] for side, found in seconds.items()},
    }
    print(row, flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--trees", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", default="", help="a word in the names of the rows to run")
    parser.add_argument("--memory", default="650M", help="of a worker, where bins are in files")
    parser.add_argument("--name", default="cluster", help="of the results")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = arguments.data or Path(folder)
        place.mkdir(exist_ok=True)
        files = parts(place, arguments.queries)
        binned = bin_data(JoinedSource([Piece(file) for file in files]))
        lists = binned.lists
        size = {"what": "data", "queries": lists.n_queries, "documents": lists.n_docs,
                "features": binned.binning.n_features, "MB of bins": round(binned.bins.nbytes / 1e6)}  # fmt: skip
        print(size, flush=True)
        trees, few, rounds = arguments.trees, max(arguments.trees // 8, 4), arguments.rounds
        compared = {
            "selgb 1%": ({**ONE_PERCENT, "trees": trees}, rounds),
            "selgb 1%, sums of histograms": ({**ONE_PERCENT, "trees": few, "exchange": "histograms"}, 1),
            "negsgb 1%": ({**ONE_PERCENT, "algo": "negsgb", "trees": few}, 1),
            "lambdamart": ({"algo": "lambdamart", **TREES, "trees": few}, rounds),
        }
        for what in ("selgb 1%", "lambdamart") if arguments.only == "gain" else ():
            options = {**compared[what][0], "trees": few}
            compared |= {f"{what}, gain {gain}": ({**options, "gain": gain}, 1) for gain in ("variance", "newton")}
        rows = []
        for what in ("selgb 1%", "lambdamart"):
            name, options = f"{what}, bins in files", {**compared[what][0], "memory": arguments.memory}
            if arguments.only in name:
                with two_workers() as client:
                    rows.append(compare(client, files, binned, name, options, 1))
        with two_workers() as client:
            losses = {"selgb, loss": (rounds + 1, True), "selgb, loss, no copies": (rounds, False)}
            rows += [
                compare(client, files, binned, what, *how) for what, how in compared.items() if arguments.only in what
            ] + [
                killed(client, files, what, trees, n, copies=copies)
                for what, (n, copies) in losses.items()
                if arguments.only in what
            ]
    if not arguments.only or arguments.name != "cluster":
        save(arguments.name, [size, *rows])


if __name__ == "__main__":
    main()

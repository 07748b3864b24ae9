"""Partitions as the user gave them, and what a first look at each of them tells."""

from __future__ import annotations

import glob
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.cluster.connect import POLL_SECONDS, TIMEOUTS, PauseTimer, workers_of
from ranksieve.data.binned import Binned
from ranksieve.data.binning import Binning, BinningSketch
from ranksieve.data.blocks import blocks_of
from ranksieve.data.data_file import DataFile
from ranksieve.data.dataset import Dataset
from ranksieve.data.features import FeatureInfo
from ranksieve.data.lists import Lists
from ranksieve.data.read import open_values
from ranksieve.dtypes import BIN, LABEL
from ranksieve.errors import ClusterError, DataError
from ranksieve.kernels.histograms import LANES
from ranksieve.threads import using_threads

if TYPE_CHECKING:
    from distributed import Client, Future

NUMBA_LOCK = threading.Lock()  # tasks share a worker's process, and Numba's threads


@dataclass(frozen=True)
class Partition:
    """One partition: the name of a file that every worker can read, a data set, or a delayed DataFrame."""

    name: str
    given: Any

    def sent(self, client: Client, worker: str | None = None) -> Any:
        """What to hand to a task in its place: itself, or a future of what it stands for."""
        workers = None if worker is None else [worker]
        if isinstance(self.given, str | DataFile):
            return self.given
        if hasattr(self.given, "dask") or hasattr(self.given, "__dask_graph__"):
            return client.compute(self.given, workers=workers)
        return client.scatter(self.given, workers=workers, hash=False)


def list_partitions(partitions: Any) -> list[Partition]:
    """The partitions in order: a file, a folder or pattern of Parquet files, a Dask DataFrame, or a list."""
    if hasattr(partitions, "to_delayed"):
        return [Partition(f"partition {i}", given) for i, given in enumerate(partitions.to_delayed())]
    if isinstance(partitions, str | os.PathLike):
        partitions = _files(os.fspath(partitions))
    elif isinstance(partitions, Dataset) or not isinstance(partitions, Sequence):
        partitions = [partitions]
    if not partitions:
        raise DataError("there are no partitions; give at least one file, Dataset or DataFrame")
    parts = []
    for i, given in enumerate(partitions):
        is_file = isinstance(given, str | os.PathLike)
        name = (
            os.fspath(given) if is_file else f"partition {i} ({getattr(given, 'source', None) or type(given).__name__})"
        )
        if is_file and "://" not in name:  # workers have working folders of their own
            given = given.absolute() if isinstance(given, DataFile) else os.path.abspath(given)
        parts.append(Partition(name, given))
    return parts


def _files(path: str) -> list[str]:
    if Path(path).is_dir():
        path = os.path.join(path, "*.parquet")
    if not glob.has_magic(path):
        return [path]
    found = sorted(glob.glob(path))
    if not found:
        raise DataError(f"{path}: matches no file; expected a file, a pattern, or a folder with .parquet files")
    return found


@dataclass(frozen=True)
class PartitionScan:
    """What one pass over a part tells."""

    n_docs: int
    query_ids: list[str]
    query_sizes: np.ndarray
    info: FeatureInfo
    n_features: int
    highest: float  # label, at least 1
    sketch: BinningSketch | None

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """None for text, whose features have numbers."""
        return self.info.feature_names or None


def count_docs(given: Any, missing: str) -> int:
    """The number of documents of a part; a text file is read for it."""
    if hasattr(given, "iloc") and not len(given):
        return 0  # DataFrames have empty partitions now and then
    data = open_values(given, missing=missing)
    return data.n_docs if data.n_docs is not None else sum(block.n_docs for block in blocks_of(data))


def scan(given: Any, name: str, missing: str, max_bins: int, first_row: int, n_all: int, threads: int) -> PartitionScan:
    """Read a part: its queries, and a sketch of its features where thresholds are to be learned (`max_bins` > 0)."""
    data = open_values(given, missing=missing)
    sketch = BinningSketch(max_bins=max_bins, fill=data.absent, first_row=first_row, n_all=n_all) if max_bins else None
    sizes: dict[str, int] = {}
    width = n_docs = 0
    highest = 1.0
    with NUMBA_LOCK, using_threads(threads):
        for block in blocks_of(data):
            if sketch is not None:
                sketch.add(block.features, source=name)
            width, n_docs = max(width, block.features.shape[1]), n_docs + block.n_docs
            highest = max(highest, float(block.labels.max()))
            for query, size in zip(block.run_ids, block.run_lengths.tolist(), strict=True):
                sizes[str(query)] = sizes.get(str(query), 0) + size
    return PartitionScan(
        n_docs=n_docs,
        query_ids=list(sizes),
        query_sizes=np.array(list(sizes.values()), np.int64),
        info=data.info,
        n_features=width,
        highest=highest,
        sketch=sketch,
    )


def scan_all(
    client: Client, parts: Sequence[Partition], missing: str, max_bins: int
) -> tuple[list[Partition], list[PartitionScan]]:
    """The parts that hold documents, and what the workers found in them; `max_bins=0` sketches nothing."""
    threads = min(workers_of(client).values())
    given = [part.sent(client) for part in parts]
    counts: list[Future] = client.map(count_docs, given, missing=missing, key=keys("count", parts), pure=False)
    kept = [(part, n) for part, n in zip(parts, gather_results(client, counts, parts), strict=True) if n]
    if not kept:
        raise DataError(f"{parts[0].name}: no documents in any of {len(parts)} partitions")
    starts = np.concatenate([[0], np.cumsum([n for _, n in kept])]).tolist()
    parts = [part for part, _ in kept]
    scans = [
        client.submit(scan, part.sent(client), part.name, missing, max_bins, start, starts[-1], threads,
                      key=key, pure=False)
        for part, start, key in zip(parts, starts[:-1], keys("scan", parts), strict=True)
    ]  # fmt: skip
    return parts, gather_results(client, scans, parts, [n for _, n in kept])


def gather_results(
    client: Client, tasks: Sequence[Future], parts: Sequence[Partition], documents: Sequence[int] | None = None
) -> list[Any]:
    """What the tasks made of the parts, one of each; complains of workers that lack the memory for it.

    The tasks are let go: those that linger would be computed again when the worker that keeps their results is lost.
    """
    from distributed import KilledWorker, wait

    what = f"{len(parts)} partitions"
    if documents is not None:
        largest = parts[int(np.argmax(documents))].name
        what += f" of {sum(documents):,} documents (the largest, {largest}, has {max(documents):,})"
    remedy = "give workers more memory, or fewer threads"
    pause_timer = PauseTimer(client)
    try:
        while not any(task.status == "error" for task in tasks):
            try:
                wait(tasks, timeout=POLL_SECONDS)
                break
            except TIMEOUTS:
                if pause_timer.is_too_long():
                    raise ClusterError(
                        f"all workers are paused, their memory nearly full, over {what}; {remedy}"
                    ) from None
        return client.gather(tasks)
    except KilledWorker as error:
        raise ClusterError(f"workers were lost one after the other while they read {what}; {remedy}") from error
    finally:
        for task in tasks:
            task.release()


class PartitionedData:
    """A data set in parts, as the coordinator knows it."""

    def __init__(self, parts: list[Partition], scans: list[PartitionScan]) -> None:
        self.parts, self.scans = parts, scans
        self.names = next((scan.feature_names for scan in scans if scan.feature_names is not None), None)

    @classmethod
    def scan(cls, client: Client, partitions: Any, missing: str, max_bins: int) -> PartitionedData:
        """What the workers find in the partitions; `max_bins=0` sketches nothing."""
        return cls(*scan_all(client, list_partitions(partitions), missing, max_bins))

    @property
    def highest(self) -> float:
        """The highest label."""
        return max(scan.highest for scan in self.scans)

    def learned_binning(self) -> Binning:
        """The thresholds of all parts together."""
        sketches = [scan.sketch for scan in self.scans if scan.sketch is not None]
        for sketch in sketches[1:]:
            sketches[0].merge(sketch)
        return sketches[0].finish()

    def without_documents(self, binning: Binning, names: tuple[str, ...]) -> Binned:
        """The set in the form that training takes, all but its documents."""
        empty = Lists(np.empty(0, LABEL), np.zeros(1, np.int64), np.empty(0, np.int64))
        width = -(-binning.n_features // LANES) * LANES
        source = self.parts[0].name + (f" and {len(self.parts) - 1} more" if len(self.parts) > 1 else "")
        info = replace(self.scans[0].info, feature_names=names, source=source)
        return Binned(np.empty((0, width), BIN), empty, binning, info)


def keys(what: str, parts: Sequence[Partition]) -> list[str]:
    """Names of tasks as the dashboard shows them."""
    run = os.urandom(4).hex()
    return [f"ranksieve-{what}-{Path(part.name).stem}-{i}-{run}" for i, part in enumerate(parts)]

"""Partitions of a data set as the user gave them, and the first pass over them on the workers."""

from __future__ import annotations

import glob
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.cluster.connect import POLL_SECONDS, TIMEOUTS, PauseTimer, workers_of
from ranksieve.data.binned import Binned
from ranksieve.data.binning import Binning, BinningSketch
from ranksieve.data.blocks import blocks_of, reading_ahead
from ranksieve.data.categories import recoding
from ranksieve.data.data_file import DataFile
from ranksieve.data.dataset import Dataset
from ranksieve.data.features import FeatureInfo
from ranksieve.data.joined import check_alike
from ranksieve.data.lists import Lists, starts_of
from ranksieve.data.read import open_values
from ranksieve.dtypes import BIN, LABEL
from ranksieve.errors import ClusterError, DataError
from ranksieve.kernels.histograms import LANES
from ranksieve.threads import using_threads

if TYPE_CHECKING:
    from distributed import Client, Future

NUMBA_LOCK = threading.Lock()  # the tasks of a worker share its process and Numba's threads


@contextmanager
def numba_threads(threads: int) -> Iterator[None]:
    """Compute with so many of Numba's threads, while no other task of this worker does."""
    with NUMBA_LOCK, using_threads(threads):
        yield


def category_options(names: Sequence[str] | None, categories: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The arguments of `open_data` that apply the training set's categories; none if it has no categories."""
    return {"wanted": names or (), "categories": categories} if categories else {}


@dataclass(frozen=True)
class Partition:
    """One partition: the name of a file that every worker can read, a data set, or a delayed DataFrame."""

    name: str
    data: Any

    def argument(self, client: Client, worker: str | None = None) -> Any:
        """What to pass to a task: the file's name, or a future of the data."""
        from dask import is_dask_collection

        if isinstance(self.data, str | DataFile):
            return self.data
        workers = None if worker is None else [worker]
        if is_dask_collection(self.data):
            return client.compute(self.data, workers=workers)
        return client.scatter(self.data, workers=workers, hash=False)


def list_partitions(partitions: Any) -> list[Partition]:
    """The partitions of a file, a folder or pattern of Parquet files, a Dask DataFrame, or a list, in order."""
    if hasattr(partitions, "to_delayed"):
        return [Partition(f"partition {i}", data) for i, data in enumerate(partitions.to_delayed())]
    if isinstance(partitions, str | os.PathLike):
        partitions = _list_files(os.fspath(partitions))
    elif isinstance(partitions, Dataset) or not isinstance(partitions, Sequence):
        partitions = [partitions]
    if not partitions:
        raise DataError("there are no partitions; give at least one file, Dataset or DataFrame")
    return [_make_partition(i, data) for i, data in enumerate(partitions)]


def _make_partition(number: int, data: Any) -> Partition:
    content = data.path if isinstance(data, DataFile) else data
    if not isinstance(content, str | os.PathLike):
        return Partition(f"partition {number} ({getattr(data, 'source', None) or type(content).__name__})", data)
    name = os.fspath(data)
    if "://" not in name:  # workers may have another working directory
        data = data.absolute() if isinstance(data, DataFile) else os.path.abspath(data)
    return Partition(name, data)


def _list_files(path: str) -> list[str]:
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
    """The result of one pass over a partition."""

    query_ids: list[str]
    query_sizes: np.ndarray
    info: FeatureInfo
    highest_label: float  # at least 1
    sketch: BinningSketch | None

    @property
    def n_docs(self) -> int:
        return int(self.query_sizes.sum())


def count_docs(data: Any, options: Mapping[str, Any]) -> int:
    """The number of documents of a partition; a text file is read for it. `options` are those of `open_data`."""
    if hasattr(data, "iloc") and not len(data):
        return 0  # Dask DataFrames may have empty partitions
    opened = open_values(data, **options)
    return opened.n_docs if opened.n_docs is not None else sum(block.n_docs for block in blocks_of(opened))


def scan(
    data: Any,
    name: str,
    options: Mapping[str, Any],
    bin_limits: Mapping[str, int],
    first_row: int,
    n_all: int,
    threads: int,
) -> PartitionScan:
    """Read the queries of a partition, and a sketch of its features if `bin_limits` are given.

    `first_row` is the number of its first row among the `n_all` rows of all partitions. `options` are those of
    `open_data`.
    """
    opened = open_values(data, **options)
    sketch = BinningSketch(opened.info, **bin_limits, first_row=first_row, n_all=n_all) if bin_limits else None
    sizes: dict[str, int] = {}
    highest = 1.0
    sampled_from = first_row if bin_limits else None
    with numba_threads(threads), reading_ahead(opened, sampled_from=sampled_from) as blocks:
        for block in blocks:
            if sketch is not None:
                sketch.add(block.rows, source=name)
            highest = max(highest, float(block.labels.max()))
            for query, size in zip(block.run_ids, block.run_lengths.tolist(), strict=True):
                sizes[str(query)] = sizes.get(str(query), 0) + size
    return PartitionScan(list(sizes), np.array(list(sizes.values()), np.int64), opened.info, highest, sketch)


@dataclass(frozen=True)
class PartitionedData:
    """A data set in partitions, each with its scan; partitions without documents are left out."""

    partitions: list[Partition]
    scans: list[PartitionScan]

    @classmethod
    def scan(
        cls, client: Client, given: Any, options: Mapping[str, Any], bin_limits: Mapping[str, int]
    ) -> PartitionedData:
        """Scan partitions on the workers; features are sketched if `bin_limits` are given."""
        partitions = list_partitions(given)
        threads = min(workers_of(client).values())
        arguments = [partition.argument(client) for partition in partitions]
        keys = task_keys("count", partitions)
        tasks: list[Future] = client.map(count_docs, arguments, options=options, key=keys, pure=False)
        counts = gather_results(client, tasks, partitions)
        kept = [partition for partition, n in zip(partitions, counts, strict=True) if n]
        if not kept:
            raise DataError(f"{partitions[0].name}: no documents in any of {len(partitions)} partitions")
        counts = [n for n in counts if n]
        starts = starts_of(counts).tolist()
        scans = [
            client.submit(scan, partition.argument(client), partition.name, options, bin_limits, start, starts[-1],
                          threads, key=key, pure=False)
            for partition, start, key in zip(kept, starts[:-1], task_keys("scan", kept), strict=True)
        ]  # fmt: skip
        found = cls(kept, gather_results(client, scans, kept, counts))
        check_alike([partition.name for partition in kept], [_names(scan) for scan in found.scans])
        for partition, one in zip(kept, found.scans, strict=True):
            if one.info.categories.keys() != found.categories.keys():
                raise DataError(f"{partition.name}: has other categorical features than {kept[0].name}")
        return found

    @property
    def categories(self) -> dict[str, list[str]]:
        """The names of each categorical feature's categories, in the order of their first rows."""
        infos = [scan.info.categories for scan in self.scans]
        return {name: list(dict.fromkeys(one for info in infos for one in info.get(name, ()))) for name in infos[0]}

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the features; None for LETOR text, whose features have no names."""
        return next((names for names in map(_names, self.scans) if names is not None), None)

    @property
    def highest_label(self) -> float:
        """The highest label."""
        return max(scan.highest_label for scan in self.scans)

    @property
    def largest_partition(self) -> tuple[str, int]:
        """The name and the number of documents of the largest partition."""
        sizes = [scan.n_docs for scan in self.scans]
        return self.partitions[int(np.argmax(sizes))].name, max(sizes)

    def learn_binning(self) -> Binning:
        """Merge the sketches of all partitions, and compute the thresholds of bins."""
        sketches = [scan.sketch for scan in self.scans if scan.sketch is not None]
        for scan in self.scans if self.categories else ():
            assert scan.sketch is not None
            own, names = scan.info.categories, scan.info.feature_names
            scan.sketch.recode(
                {n: recoding(own[one], self.categories[one]) for n, one in enumerate(names) if one in own}
            )
        for sketch in sketches[1:]:
            sketches[0].merge(sketch)
        return sketches[0].finish()

    def without_documents(self, binning: Binning, names: tuple[str, ...]) -> Binned:
        """The data set that the boosting loop gets on the client: features and bins, but no documents."""
        empty = Lists(np.empty(0, LABEL), np.zeros(1, np.int64), np.empty(0, np.int64))
        width = -(-binning.n_features // LANES) * LANES
        more = len(self.partitions) - 1
        source = self.partitions[0].name + (f" and {more} more" if more else "")
        info = replace(self.scans[0].info, source=source, categories=self.categories).with_names(binning.n_features)
        return Binned(np.empty((0, width), BIN), empty, binning, replace(info, feature_names=names))


def _names(scan: PartitionScan) -> tuple[str, ...] | None:
    return scan.info.feature_names or None


def gather_results(
    client: Client, tasks: Sequence[Future], partitions: Sequence[Partition], n_docs: Sequence[int] | None = None
) -> list[Any]:
    """The results of the tasks, one for each partition; `ClusterError` if workers lack memory for them.

    The tasks are released. Otherwise Dask would run them again after the loss of a worker that holds their results.
    """
    from distributed import KilledWorker, wait

    what = f"{len(partitions)} partitions"
    if n_docs is not None:
        largest = partitions[int(np.argmax(n_docs))].name
        what += f" of {sum(n_docs):,} documents (the largest, {largest}, has {max(n_docs):,})"
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
                        f"Dask has paused all workers because their memory is nearly full; they read {what}; {remedy}"
                    ) from None
        return client.gather(tasks)
    except KilledWorker as error:
        raise ClusterError(f"several workers were lost while they read {what}; {remedy}") from error
    finally:
        for task in tasks:
            task.release()


def task_keys(kind: str, partitions: Sequence[Partition]) -> list[str]:
    """The names of tasks on Dask's dashboard."""
    run = os.urandom(4).hex()
    return [f"ranksieve-{kind}-{Path(partition.name).stem}-{i}-{run}" for i, partition in enumerate(partitions)]

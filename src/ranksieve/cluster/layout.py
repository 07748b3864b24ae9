"""The assignment of queries to workers."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ranksieve.boosting.initial_scores import TRAIN
from ranksieve.boosting.training_rows import Portion
from ranksieve.cluster.connect import worker_states
from ranksieve.cluster.messages import RunConfig
from ranksieve.cluster.partitions import Partition, PartitionedData, PartitionScan
from ranksieve.errors import ClusterError, DataError, param
from ranksieve.text_formats import AUTO, read_size

if TYPE_CHECKING:
    from distributed import Client

TOLERANCE = 0.05  # the part of a share by which a boundary may move to that of a partition
MAX_NAMED = 4  # partitions that a message names


@dataclass(frozen=True)
class WorkerShare:
    """The queries of a data set that one worker holds. They are consecutive in the order of all queries."""

    pieces: tuple[tuple[int, range | None], ...]  # the number of a partition, and its queries (None: all)
    portion: Portion
    n_docs: int


Shares = dict[str, WorkerShare]  # by data set: the share of one worker


def assign(
    client: Client, threads: Mapping[str, int], sets: Mapping[str, PartitionedData], config: RunConfig
) -> dict[str, Shares]:
    """The shares of each worker, in proportion to the workers' threads; workers without training queries are left out.

    Raises `ClusterError` before anything is loaded if a share cannot fit into its worker's memory.
    """
    train_shares = zip(threads, make_shares(sets[TRAIN], list(threads.values())), strict=True)
    assigned: dict[str, Shares] = {worker: {TRAIN: share} for worker, share in train_shares if share.n_docs}
    for name, data in sets.items():
        if name != TRAIN:
            shares = make_shares(data, [threads[worker] for worker in assigned])
            for worker, share in zip(assigned, shares, strict=True):
                assigned[worker][name] = share
    limits = {worker: state.get("memory_limit") for worker, state in worker_states(client).items()}
    for worker, held in assigned.items():
        _check_memory(held, limits.get(worker), sets[TRAIN], config)
    return assigned


def _check_memory(shares: Shares, limit: int | None, train_set: PartitionedData, config: RunConfig) -> None:
    n_docs, given = sum(share.n_docs for share in shares.values()), config.params.memory
    if limit and given != AUTO and read_size(given) > limit:
        raise ClusterError(
            param("memory", given), f" is more than the {limit / 1e9:.2g} GB of a worker; give workers more memory, or "
            "set a lower limit",
        )  # fmt: skip
    needed = n_docs * config.bytes_per_doc if given == AUTO else 0
    if limit and needed > limit:
        largest, size = train_set.largest_partition
        raise ClusterError(
            f"a worker with {limit / 1e9:.2g} GB of memory would hold {needed / 1e9:.2g} GB of bins and scores "
            f"({n_docs:,} documents × {config.binning.n_features} features; the largest partition, {largest}, has "
            f"{size:,}); give workers more memory, start more of them, or keep bins in files with ",
            param("memory", f"{limit * 7 // 10 >> 20}M"),
        )


def reassign(copies: Mapping[int, Sequence[str]], workers: Sequence[str], busy: Sequence[str]) -> dict[int, str]:
    """Choose a worker for each lost shard: one with the fewest shards, preferably one that can read its copy.

    `copies` are the workers on whose machines the copy of each lost shard is; `busy` are the workers of the other
    shards. Shards with copies on few machines are assigned first, those without copies last.
    """
    taken, assigned = list(busy), {}
    for shard in sorted(copies, key=lambda shard: len(copies[shard]) or len(workers) + 1):
        assigned[shard] = min(workers, key=lambda worker: (taken.count(worker), worker not in copies[shard]))
        taken.append(assigned[shard])
    return assigned


def memory_message(shares: Shares, partitions: Mapping[str, Sequence[Partition]], bytes_per_doc: int) -> str:
    """The message about workers that ran out of memory with these shares."""
    held = []
    for name, share in shares.items():
        if share.n_docs:
            names = ", ".join(partitions[name][number].name for number, _ in share.pieces[:MAX_NAMED])
            more = f" and {len(share.pieces) - MAX_NAMED} more" if len(share.pieces) > MAX_NAMED else ""
            held.append(f"{share.n_docs:,} documents of {names}{more}")
    n_bytes = sum(share.n_docs for share in shares.values()) * bytes_per_doc
    return (
        f"workers were lost or paused while they held {'; '.join(held)}: {n_bytes / 1e9:.2g} GB as bins and scores, "
        "plus a block of features while they load; give workers more memory, or start more of them"
    )


def make_shares(data: PartitionedData, weights: Sequence[int]) -> list[WorkerShare]:
    """Split the queries, in their order, into shares whose numbers of documents are proportional to the weights.

    No query is split. A query at the end of one partition and the beginning of the next is joined. If there are few
    queries, some shares are empty.
    """
    firsts, sizes = _join_queries(data)
    ends = np.cumsum(sizes)
    wanted = ends[-1] * np.cumsum(weights[:-1]) / np.sum(weights)
    boundaries = np.searchsorted(ends, wanted, side="left") + 1
    boundaries = _move_boundaries(boundaries, wanted, firsts, ends, TOLERANCE * ends[-1] / len(weights))
    row_starts = np.concatenate([[0], ends])
    shares = []
    for start, stop in itertools.pairwise([0, *boundaries, len(sizes)]):
        portion = Portion(int(start), int(row_starts[start]), int(ends[-1]))
        pieces = tuple(_pieces(firsts, data.scans, int(start), int(stop)))
        shares.append(WorkerShare(pieces, portion, int(row_starts[stop] - row_starts[start])))
    return shares


def _join_queries(data: PartitionedData) -> tuple[list[int], np.ndarray]:
    """The number of each partition's first query among all queries, and the size of every query."""
    partition_of: dict[str, int] = {}
    sizes: list[int] = []
    firsts = []
    last = None
    for number, scan in enumerate(data.scans):
        continues = bool(scan.query_ids) and scan.query_ids[0] == last
        firsts.append(len(sizes) - continues)
        for i, (query, size) in enumerate(zip(scan.query_ids, scan.query_sizes.tolist(), strict=True)):
            if i == 0 and continues:
                sizes[-1] += size
                continue
            if query in partition_of:
                raise DataError(
                    f"query {query} is in {data.partitions[partition_of[query]].name} and again in "
                    f"{data.partitions[number].name}; the rows of a query must be in one partition, or at the end of "
                    "one and the beginning of the next; partition by query, or give queries of different files "
                    "different ids"
                )
            partition_of[query] = number
            sizes.append(size)
        last = scan.query_ids[-1] if scan.query_ids else last
    return firsts, np.array(sizes, np.int64)


def _move_boundaries(
    boundaries: np.ndarray, wanted: np.ndarray, firsts: Sequence[int], ends: np.ndarray, max_docs: float
) -> list[int]:
    """Move boundaries of shares by at most `max_docs` documents to boundaries of partitions.

    A partition that two workers share is read by both.
    """
    candidates = np.array(firsts[1:], np.int64)
    candidates = candidates[candidates > 0]
    moved, lowest = [], 0
    for boundary, target in zip(boundaries.tolist(), wanted.tolist(), strict=True):
        if len(candidates):
            distance = np.abs(ends[candidates - 1] - target)
            if distance.min() <= max_docs:
                boundary = int(candidates[np.argmin(distance)])
        lowest = min(max(boundary, lowest), len(ends))
        moved.append(lowest)
    return moved


def _pieces(
    firsts: Sequence[int], scans: Sequence[PartitionScan], start: int, stop: int
) -> list[tuple[int, range | None]]:
    """The partitions, and the queries in them, that hold the queries from `start` to `stop`."""
    pieces: list[tuple[int, range | None]] = []
    for number, (first, scan) in enumerate(zip(firsts, scans, strict=True)):
        n = len(scan.query_ids)
        low, high = max(start - first, 0), min(stop - first, n)
        if low < high:
            pieces.append((number, None if (low, high) == (0, n) else range(low, high)))
    return pieces

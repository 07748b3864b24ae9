"""Which worker holds which queries."""

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
from ranksieve.data.joined import check_alike
from ranksieve.errors import ClusterError, DataError

if TYPE_CHECKING:
    from distributed import Client

SNAP = 0.05  # of a share: so far from equal shares a cut may lie if it then falls between two parts


@dataclass(frozen=True)
class Share:
    """What one worker holds of a data set: queries of some parts, which follow each other in the whole."""

    pieces: tuple[tuple[int, range | None], ...]  # number of the part, its queries (None: all)
    portion: Portion
    n_docs: int


def assign(
    client: Client, threads: Mapping[str, int], sets: Mapping[str, PartitionedData], config: RunConfig
) -> tuple[list[str], list[dict[str, Share]]]:
    """The workers that get lists of the sets, and which: as many as their threads say."""
    train_set = sets[TRAIN]
    shares = make_shares(train_set.parts, train_set.scans, list(threads.values()))
    used = [(worker, share) for worker, share in zip(threads, shares, strict=True) if share.n_docs]
    workers = [worker for worker, _ in used]
    all_shares = [{TRAIN: share} for _, share in used]
    for name, found in sets.items():
        if name != TRAIN:
            dealt = make_shares(found.parts, found.scans, [threads[worker] for worker in workers])
            for mine, share in zip(all_shares, dealt, strict=True):
                mine[name] = share
    _check_memory(client, workers, all_shares, train_set, config)
    return workers, all_shares


def _check_memory(
    client: Client, workers: list[str], shares: list[dict[str, Share]], train_set: PartitionedData, config: RunConfig
) -> None:
    """Refuse before anything is loaded what cannot fit."""
    limits = {address: worker.get("memory_limit") for address, worker in worker_states(client).items()}
    for worker, share in zip(workers, shares, strict=True):
        needed, limit = sum(s.n_docs for s in share.values()) * config.bytes_per_doc, limits.get(worker)
        if limit and needed > limit:
            largest = max(zip(train_set.parts, train_set.scans, strict=True), key=lambda pair: pair[1].n_docs)
            raise ClusterError(
                f"a worker with {limit / 1e9:.2g} GB of memory would hold {needed / 1e9:.2g} GB of bins and scores "
                f"({sum(s.n_docs for s in share.values()):,} documents × {config.binning.n_features} features; the "
                f"largest partition, {largest[0].name}, has {largest[1].n_docs:,}); give workers more memory, or start "
                "more of them"
            )


def reassign(holders: Mapping[int, Sequence[str]], workers: Sequence[str], busy: Sequence[str]) -> dict[int, str]:
    """A worker for each lost share: of those that hold the fewest, one where its copy is (`holders`), if there is one.

    `busy` are the homes of the others. Shares with copies in few places choose first, those without at last.
    """
    taken, homes = list(busy), {}
    for i in sorted(holders, key=lambda i: len(holders[i]) or len(workers) + 1):
        homes[i] = min(workers, key=lambda worker: (taken.count(worker), worker not in holders[i]))
        taken.append(homes[i])
    return homes


def memory_message(shares: dict[str, Share], parts: dict[str, Sequence[Partition]], bytes_per_doc: int) -> str:
    """What to say of workers that ran out of memory over their shares of some sets."""
    held = [
        f"{share.n_docs:,} documents of "
        + ", ".join(parts[name][number].name for number, _ in share.pieces[:4])
        + (f" and {len(share.pieces) - 4} more" if len(share.pieces) > 4 else "")
        for name, share in shares.items()
        if share.n_docs
    ]
    n_bytes = sum(share.n_docs for share in shares.values()) * bytes_per_doc
    return (
        f"workers were lost or paused while they held {'; '.join(held)}: {n_bytes / 1e9:.2g} GB as bins and scores, "
        "and a block of features more while they load; give workers more memory, or start more of them"
    )


def make_shares(parts: Sequence[Partition], scans: Sequence[PartitionScan], weights: Sequence[int]) -> list[Share]:
    """Split the queries, in their order, into shares whose numbers of documents are proportional to the weights.

    A query that ends one part and begins the next is whole in one share. A share may be empty where there are few
    queries.
    """
    check_alike([part.name for part in parts], [scan.feature_names for scan in scans])
    firsts, sizes = _queries(parts, scans)
    ends = np.cumsum(sizes)
    wanted = ends[-1] * np.cumsum(weights[:-1]) / np.sum(weights)
    cuts = np.searchsorted(ends, wanted, side="left") + 1
    cuts = [0, *_snapped(cuts, wanted, firsts, ends, ends[-1] / len(weights)), len(sizes)]
    row_starts = np.concatenate([[0], ends])
    shares = []
    for start, stop in itertools.pairwise(cuts):
        portion = Portion(int(start), int(row_starts[start]), int(ends[-1]))
        pieces = tuple(_pieces(firsts, scans, int(start), int(stop)))
        shares.append(Share(pieces, portion, int(row_starts[stop] - row_starts[start])))
    return shares


def _queries(parts: Sequence[Partition], scans: Sequence[PartitionScan]) -> tuple[list[int], np.ndarray]:
    """The number of each part's first query in the whole, and the size of every query; a query lies in one place."""
    homes: dict[str, int] = {}
    sizes: list[int] = []
    firsts = []
    last = None
    for number, found in enumerate(scans):
        is_cut = bool(found.query_ids) and found.query_ids[0] == last
        firsts.append(len(sizes) - is_cut)
        for i, (query, size) in enumerate(zip(found.query_ids, found.query_sizes.tolist(), strict=True)):
            if i == 0 and is_cut:
                sizes[-1] += size
                continue
            if query in homes:
                raise DataError(
                    f"query {query} is in {parts[homes[query]].name} and again in {parts[number].name}; a query must "
                    "lie in one partition, or at the end of one and the beginning of the next; partition by query, or "
                    "give queries of different files different ids"
                )
            homes[query] = number
            sizes.append(size)
        last = found.query_ids[-1] if found.query_ids else last
    return firsts, np.array(sizes, np.int64)


def _snapped(cuts: np.ndarray, wanted: np.ndarray, firsts: Sequence[int], ends: np.ndarray, share: float) -> list[int]:
    """The cuts, moved to the border of a part where one is near: a part of two shares is read twice."""
    borders = np.array(firsts[1:], np.int64)
    borders = borders[borders > 0]
    moved, least = [], 0
    for cut, target in zip(cuts.tolist(), wanted.tolist(), strict=True):
        if len(borders):
            distance = np.abs(ends[borders - 1] - target)
            if distance.min() <= SNAP * share:
                cut = int(borders[np.argmin(distance)])
        least = min(max(cut, least), len(ends))
        moved.append(least)
    return moved


def _pieces(
    firsts: Sequence[int], scans: Sequence[PartitionScan], start: int, stop: int
) -> list[tuple[int, range | None]]:
    pieces: list[tuple[int, range | None]] = []
    for number, (first, found) in enumerate(zip(firsts, scans, strict=True)):
        n = len(found.query_ids)
        low, high = max(start - first, 0), min(stop - first, n)
        if low < high:
            pieces.append((number, None if (low, high) == (0, n) else range(low, high)))
    return pieces

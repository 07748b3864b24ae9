"""`Crew`: the shards of a run, and what happens when a worker is lost."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.boosting.base import Base
from ranksieve.boosting.tree import Tree
from ranksieve.cluster.layout import Share
from ranksieve.cluster.messages import Facts, Report, Setup
from ranksieve.cluster.parts import Part
from ranksieve.cluster.shard import Shard
from ranksieve.errors import ClusterError

if TYPE_CHECKING:
    from distributed import Client, Future

PATIENCE = 2.0  # seconds without an answer after which to ask whether the worker is still there
REPLACEMENT = 5.0  # seconds to wait for a new worker before a lost one's lists go to one that has its own already
TRIES = 3  # workers lost over one shard from one tree to the next, before its lists are called too large


class Restart(Exception):
    """A worker was lost while a tree grew, and its shard was made anew: the tree begins again."""


class _Lost(Exception):
    """A worker did not answer because it is gone."""


class Crew:
    """Shards on workers. Their answers come in the order of the shards, which is that of the queries.

    A shard whose worker is lost is loaded by another, goes through the trees that all have, and is asked again.
    """

    def __init__(
        self, client: Client, setup: Setup, parts: dict[str, Sequence[Part]], shares: Sequence[dict[str, Share]]
    ) -> None:
        self._client, self._setup, self._parts, self._shares = client, setup, parts, shares
        self._run = os.urandom(4).hex()
        self._futures: dict[int, Future] = {}
        self._actors: dict[int, Any] = {}
        self._homes: dict[int, str] = {}
        self._base: Base | None = None
        self._n_told = 0  # trees that every shard has
        self._reports: list[Report] | None = None  # what they said to them
        self.trees: list[Tree] = []
        self.n_losses = 0
        self._tries: dict[int, int] = {}  # workers that each shard lost since the last tree

    def load(self, workers: Sequence[str]) -> list[dict[str, Facts]]:
        """Let the workers load their lists."""
        lost = self._make(dict(enumerate(workers)))
        while lost:
            lost = self._make(self._new_homes(lost))
        return self._everyone("facts")

    def begin(self, base: Base) -> np.ndarray:
        """Tell all shards where boosting starts; returns a checksum of each query's start."""
        marks = self._everyone("begin", base, [])
        self._base = base
        return np.concatenate(marks)

    def reports(self, *, teach: bool) -> list[Report]:
        """What the shards say to the trees so far; they are asked once, after a tree was added."""
        if self._reports is None or self._n_told < len(self.trees):
            self._reports = self._everyone("advance", self.trees[self._n_told :], teach)
            self._n_told = len(self.trees)
            self._tries.clear()
        return self._reports

    def together(self, method: str, *arguments: Any) -> list[Any]:
        """One step of growing a tree together; `Restart` where a worker was lost on the way."""
        answers, lost = self._ask(self._all(), method, arguments)
        if not lost:
            return [answers[i] for i in sorted(answers)]
        self._revive(lost)
        assert self._reports is not None
        for i, report in self._ask_until(lost, "advance", ([], True)).items():
            self._reports[i] = report
        raise Restart

    def close(self) -> None:
        """Let the workers forget everything."""
        self._actors.clear()
        for future in self._futures.values():
            future.release()
        self._futures.clear()

    def _all(self) -> range:
        return range(len(self._shares))

    def _everyone(self, method: str, *arguments: Any) -> list[Any]:
        answers = self._ask_until(self._all(), method, arguments)
        return [answers[i] for i in sorted(answers)]

    def _ask_until(self, shards: Iterable[int], method: str, arguments: Sequence[Any]) -> dict[int, Any]:
        """The answers of some shards, whatever is lost meanwhile."""
        answers, lost = self._ask(shards, method, arguments)
        while lost:
            self._revive(lost)
            found, lost = self._ask(lost, method, arguments)
            answers.update(found)
        return answers

    def _ask(self, shards: Iterable[int], method: str, arguments: Sequence[Any]) -> tuple[dict[int, Any], list[int]]:
        """The answers of those that are there, and the numbers of the lost ones."""
        asked, answers, lost = {}, {}, []
        for i in shards:
            try:
                asked[i] = getattr(self._actors[i], method)(*arguments)
            except RuntimeError:  # Dask knows already
                lost.append(i)
        for i, future in asked.items():
            try:
                answers[i] = self._wait(future, i)
            except _Lost:
                lost.append(i)
        if lost:
            self._workers()  # complains if it is the scheduler that is gone
        return answers, lost

    def _wait(self, future: Any, shard: int) -> Any:
        while True:
            try:
                return future.result(timeout=PATIENCE)
            except (TimeoutError, asyncio.TimeoutError):  # two classes before Python 3.11
                if self._homes[shard] not in self._workers():
                    raise _Lost from None
            except MemoryError as error:
                raise ClusterError(self._too_large(shard)) from error
            except OSError as error:
                if self._is_gone(self._homes[shard]):
                    raise _Lost from error
                raise

    def _is_gone(self, worker: str) -> bool:
        """Whether a worker that cannot be reached is lost, which the scheduler may hear of a moment later."""
        for _ in range(20):
            if worker not in self._workers():
                return True
            time.sleep(0.1)
        return False

    def _workers(self) -> dict[str, int]:
        """The workers there are, with their threads."""
        try:
            if self._client.status != "running":
                raise OSError(f"the client is {self._client.status}")
            return self._client.nthreads()
        except OSError as error:
            raise ClusterError(
                f"the scheduler is lost ({error}) after {len(self.trees)} trees; start it and its workers again"
            ) from error

    def _revive(self, lost: Sequence[int]) -> None:
        """Make lost shards anew elsewhere, with all they knew before the last question."""
        self.n_losses += len(lost)
        while lost:
            failed = self._make(self._new_homes(lost))
            if self._base is not None:
                made = [i for i in lost if i not in failed]
                failed += self._ask(made, "begin", (self._base, self.trees[: self._n_told]))[1]
            lost = failed

    def _make(self, homes: dict[int, str]) -> list[int]:
        """Load shards on workers; return those whose workers were lost meanwhile."""
        threads = self._workers()
        for i, worker in homes.items():
            givens = {
                name: [self._parts[name][number].sent(self._client, worker) for number, _ in share.pieces]
                for name, share in self._shares[i].items()
            }
            key = f"ranksieve-shard-{i}-{self._run}-{os.urandom(2).hex()}"
            self._homes[i] = worker
            self._futures[i] = self._client.submit(
                Shard, self._setup, self._shares[i], givens, threads.get(worker, 1),
                key=key, workers=[worker], actor=True, pure=False,
            )  # fmt: skip
        lost = []
        for i in homes:
            try:
                self._actors[i] = self._wait(self._futures[i], i)
            except _Lost:
                self._futures[i].release()
                lost.append(i)
        return lost

    def _new_homes(self, lost: Sequence[int]) -> dict[int, str]:
        """A worker for each lost shard: one without a shard, if one comes soon, or those that hold the fewest."""
        for i in lost:
            self._tries[i] = self._tries.get(i, 0) + 1
            if self._tries[i] == TRIES:
                raise ClusterError(self._too_large(i))
        busy = [home for i, home in self._homes.items() if i not in lost]
        deadline = time.monotonic() + REPLACEMENT
        while True:
            workers = self._workers()
            late = time.monotonic() > deadline
            if late and not workers:
                raise ClusterError(f"all workers are lost after {len(self.trees)} trees; start new ones and resume")
            free = [worker for worker in workers if worker not in busy]
            if len(free) >= len(lost) or (late and workers):
                break
            time.sleep(0.1)
        homes = {}
        for i in lost:
            homes[i] = min(workers, key=busy.count)
            busy.append(homes[i])
        return homes

    def _too_large(self, shard: int) -> str:
        """What to say of a worker that ran out of memory."""
        held = [
            f"{share.n_docs:,} documents of "
            + ", ".join(self._parts[name][number].name for number, _ in share.pieces[:4])
            + (f" and {len(share.pieces) - 4} more" if len(share.pieces) > 4 else "")
            for name, share in self._shares[shard].items()
            if share.n_docs
        ]
        n_bytes = sum(share.n_docs for share in self._shares[shard].values()) * bytes_per_doc(self._setup)
        return (
            f"workers were lost while they held {'; '.join(held)}: {n_bytes / 1e9:.2g} GB as bins and scores, and a "
            "block of features more while they load; give workers more memory, or start more of them"
        )


def bytes_per_doc(setup: Setup) -> int:
    """What a document costs a worker: a byte a feature, its label, two scores, and places in work arrays."""
    return setup.binning.n_features + 60

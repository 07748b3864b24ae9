"""`WorkerPool`: the shards of a run, and what happens when a worker is lost."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.boosting.initial_scores import Base
from ranksieve.boosting.tree import Tree
from ranksieve.cluster.connect import POLL_SECONDS, TIMEOUTS, PauseTimer, as_cluster_errors, run_on_workers
from ranksieve.cluster.copies import NoCopy, list_copies, remove_copies
from ranksieve.cluster.layout import Share, memory_message, reassign
from ranksieve.cluster.messages import RunConfig, SetSummary, ShardReport
from ranksieve.cluster.partitions import Partition
from ranksieve.cluster.shard import Shard
from ranksieve.errors import ClusterError

if TYPE_CHECKING:
    from distributed import Client, Future

NOTICE = 30.0  # seconds for the scheduler to notice that a worker which cannot be reached is gone
REPLACEMENT = 5.0  # seconds to wait for a new worker before a lost one's lists go to one that has its own already
RETURN = 60.0  # seconds to wait for a worker where none is left
TRIES = 3  # workers lost over one shard from one tree to the next, before its lists are called too large


class Restart(Exception):
    """A worker was lost while a tree grew, and its shard was made anew: the tree begins again."""


class _Lost(Exception):
    """A worker did not answer because it is gone."""


class WorkerPool:
    """Shards on workers. Their answers come in the order of the shards, which is that of the queries.

    A shard whose worker is lost is loaded by another, from the copy of the lost one where that is on its disk; it goes
    through the trees that all have, and is asked again.
    """

    def __init__(
        self,
        client: Client,
        config: RunConfig,
        parts: dict[str, Sequence[Partition]],
        shares: Sequence[dict[str, Share]],
    ) -> None:
        self._client, self._config, self._parts, self._shares = client, config, parts, shares
        self._run = os.urandom(4).hex()
        self._futures: dict[int, Future] = {}
        self._actors: dict[int, Any] = {}
        self._workers_of: dict[int, str] = {}
        self._former: set[str] = set()  # all homes there ever were
        self._summaries: list[dict[str, SetSummary]] = []
        self._base: Base | None = None
        self._n_sent = 0  # trees that every shard has
        self._reports: list[ShardReport] | None = None  # what they said to them
        self.trees: list[Tree] = []
        self._tries: dict[int, int] = {}  # workers that each shard lost since the last tree

    @as_cluster_errors()
    def load(self, workers: Sequence[str]) -> list[dict[str, SetSummary]]:
        """Let the workers load their lists."""
        lost = self._load_shards(dict(enumerate(workers)))
        while lost:
            homes, _ = self._reassign(lost)
            lost = self._load_shards(homes)
        self._summaries = self._call_all("summaries")
        return self._summaries

    def begin(self, base: Base) -> np.ndarray:
        """Tell all shards where boosting starts; returns a checksum of each query's start."""
        marks = self._call_all("begin", base, [])
        self._base = base
        return np.concatenate(marks)

    def reports(self, *, with_gradients: bool) -> list[ShardReport]:
        """What the shards say to the trees so far; they are asked once, after a tree was added."""
        if self._reports is None or self._n_sent < len(self.trees):
            self._reports = self._call_all("advance", self.trees[self._n_sent :], with_gradients)
            self._n_sent = len(self.trees)
            self._tries.clear()
        return self._reports

    @as_cluster_errors()
    def call_or_restart(self, method: str, *arguments: Any) -> list[Any]:
        """One step of growing a tree together; `Restart` where a worker was lost on the way."""
        answers, lost = self._call(self._all(), method, arguments)
        if not lost:
            return [answers[i] for i in sorted(answers)]
        self._replace_lost(lost)
        assert self._reports is not None
        for i, report in self._call_until_answered(lost, "advance", ([], True)).items():
            self._reports[i] = report
        raise Restart

    def close(self) -> None:
        """Let the workers forget everything."""
        self._actors.clear()
        for future in self._futures.values():
            future.release()
        self._futures.clear()
        if self._config.copies and self._client.status == "running":
            with suppress(Exception):  # whatever it is, the model is there
                run_on_workers(self._client, self._neighbours(), remove_copies, self._run)

    def _neighbours(self) -> list[str]:
        """The workers on machines that held a shard at some time."""
        from distributed.comm import get_address_host

        hosts = {get_address_host(worker) for worker in self._former}
        return [worker for worker in self._client.nthreads() if get_address_host(worker) in hosts]

    def _all(self) -> range:
        return range(len(self._shares))

    @as_cluster_errors()
    def _call_all(self, method: str, *arguments: Any) -> list[Any]:
        answers = self._call_until_answered(self._all(), method, arguments)
        return [answers[i] for i in sorted(answers)]

    def _call_until_answered(self, shards: Iterable[int], method: str, arguments: Sequence[Any]) -> dict[int, Any]:
        """The answers of some shards, whatever is lost meanwhile."""
        answers, lost = self._call(shards, method, arguments)
        while lost:
            self._replace_lost(lost)
            found, lost = self._call(lost, method, arguments)
            answers.update(found)
        return answers

    def _call(self, shards: Iterable[int], method: str, arguments: Sequence[Any]) -> tuple[dict[int, Any], list[int]]:
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
        pause_timer = PauseTimer(self._client)
        while True:
            try:
                return future.result(timeout=POLL_SECONDS)
            except TIMEOUTS:
                if self._workers_of[shard] not in self._workers():
                    raise _Lost from None
                if future is self._futures[shard] and pause_timer.is_too_long(
                    [self._workers_of[shard]]
                ):  # it would never load
                    raise self._memory_error(shard) from None
            except MemoryError as error:
                raise self._memory_error(shard) from error
            except CancelledError as error:  # with the scheduler
                raise _Lost from error
            except OSError as error:
                is_its_own = future is self._futures[shard] or error.errno is not None  # Dask's has no number
                if not is_its_own and self._is_gone(self._workers_of[shard]):
                    raise _Lost from error
                raise ClusterError(f"worker {self._workers_of[shard]}: {error}") from error

    def _is_gone(self, worker: str) -> bool:
        """Whether a worker that cannot be reached is lost, which the scheduler may hear of a moment later."""
        deadline = time.monotonic() + NOTICE
        while worker in self._workers():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True

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

    def _replace_lost(self, lost: Sequence[int]) -> None:
        """Make lost shards anew elsewhere, with all they knew before the last question."""
        self._update_other_scores(lost)
        while lost:
            homes, holders = self._reassign(lost)
            failed = self._load_shards(homes, self._with_copies(homes, holders))
            made = [i for i in lost if i not in failed]
            if self._summaries:
                failed += self._check_unchanged(made)
            if self._base is not None:
                made = [i for i in lost if i not in failed]
                failed += self._call(made, "begin", (self._base, self.trees[: self._n_sent]))[1]
            lost = failed

    def _update_other_scores(self, lost: Sequence[int]) -> None:
        """Let the others score all their documents meanwhile, as shards made anew will.

        From then on that falls due at about the same trees for all. Where it does not, they wait for each other.
        """
        if self._base is not None:
            for i in set(self._all()).difference(lost):
                with suppress(RuntimeError):  # it is lost, too: that shows when it is next asked
                    self._actors[i].update_scores()

    def _load_shards(self, homes: dict[int, str], with_copies: Collection[int] = ()) -> list[int]:
        """Load shards on workers; return those whose workers were lost meanwhile."""
        threads = self._workers()
        for i, worker in homes.items():
            givens = None if i in with_copies else {
                name: [self._parts[name][number].sent(self._client, worker) for number, _ in share.pieces]
                for name, share in self._shares[i].items()
            }  # fmt: skip
            key = f"ranksieve-shard-{i}-{self._run}-{os.urandom(2).hex()}"
            self._workers_of[i] = worker
            self._former.add(worker)
            self._futures[i] = self._client.submit(
                Shard, self._config, self._shares[i], givens, threads.get(worker, 1), self._copy(i),
                key=key, workers=[worker], actor=True, pure=False,
            )  # fmt: skip
        lost, damaged = [], {}
        for i, worker in homes.items():
            try:
                self._actors[i] = self._wait(self._futures[i], i)
            except _Lost:
                self._futures[i].release()
                lost.append(i)
            except NoCopy:
                self._futures[i].release()
                damaged[i] = worker
        return lost + self._load_shards(damaged) if damaged else lost

    def _copy(self, shard: int) -> str:
        """The name of a shard's copy."""
        return f"{self._run}-{shard}"

    def _with_copies(self, homes: dict[int, str], holders: dict[int, list[str]]) -> list[int]:
        """The shards whose copies lie on the machines of their new homes."""
        return [i for i, home in homes.items() if home in holders[i]]

    def _holders(self, shards: Sequence[int], workers: Collection[str]) -> dict[int, list[str]]:
        """The workers on whose machines each shard's copy lies."""
        names = [self._copy(i) for i in shards]
        found = run_on_workers(self._client, workers, list_copies, names) if self._config.copies else {}
        return {i: [w for w, here in found.items() if name in here] for i, name in zip(shards, names, strict=True)}

    def _check_unchanged(self, shards: Sequence[int]) -> list[int]:
        """Complain if shards made anew hold other lists than before; return those lost meanwhile."""
        told, lost = self._call(shards, "summaries", ())
        for i, summaries in told.items():
            for name, found in summaries.items():
                if not np.array_equal(found.checksums, self._summaries[i][name].checksums):
                    parts = ", ".join(self._parts[name][number].name for number, _ in self._shares[i][name].pieces)
                    raise ClusterError(
                        f"{parts}: changed during the run, so a worker that was lost cannot be replaced; leave files "
                        "as they are until the model is there, and start again"
                    )
        return lost

    def _reassign(self, lost: Sequence[int]) -> tuple[dict[int, str], dict[int, list[str]]]:
        """A worker for each lost shard, one without a shard if one comes soon, and who can read its copy."""
        for i in lost:
            self._tries[i] = self._tries.get(i, 0) + 1
            if self._tries[i] == TRIES:
                raise self._memory_error(i)
        busy = [home for i, home in self._workers_of.items() if i not in lost]
        started = time.monotonic()
        while True:
            workers = self._workers()
            waited = time.monotonic() - started
            if waited > RETURN and not workers:
                raise ClusterError(f"all workers are lost after {len(self.trees)} trees; start new ones and resume")
            free = [worker for worker in workers if worker not in busy]
            if len(free) >= len(lost) or (waited > REPLACEMENT and workers):
                break
            time.sleep(0.1)
        holders = self._holders(lost, workers)
        return reassign(holders, list(workers), busy), holders

    def _memory_error(self, shard: int) -> ClusterError:
        return ClusterError(memory_message(self._shares[shard], self._parts, self._config.bytes_per_doc))

"""`WorkerPool`: the shards of a run on the workers, and how lost workers are replaced."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.boosting.initial_scores import Base
from ranksieve.boosting.tree import Tree
from ranksieve.cluster.connect import POLL_SECONDS, TIMEOUTS, PauseTimer, as_cluster_errors, run_on_workers
from ranksieve.cluster.copies import NoCopy, list_copies, remove_copies
from ranksieve.cluster.layout import Shares, memory_message, reassign
from ranksieve.cluster.messages import RunConfig, SetSummary, ShardReport
from ranksieve.cluster.partitions import PartitionedData
from ranksieve.cluster.shard import Shard
from ranksieve.errors import ClusterError
from ranksieve.evaluation.metrics import Metric

if TYPE_CHECKING:
    from distributed import Client, Future

LOSS_TIMEOUT = 30.0  # seconds for the scheduler to notice that a worker which cannot be reached is lost
REPLACEMENT_TIMEOUT = 5.0  # seconds to wait for a new worker before a lost shard goes to one that has a shard
RETURN_TIMEOUT = 60.0  # seconds to wait for a worker if none is left
MAX_LOSSES = 3  # after so many losses between two trees, the data of a shard is assumed to be too large for a worker


class Restart(Exception):
    """A worker was lost while a tree was grown. Its shard was loaded again, and the tree has to be started again."""


class _WorkerLost(Exception):
    """A worker did not answer because it is lost."""


class WorkerPool:
    """The shards of a run, each on a worker. Answers are in the order of the shards, which is that of the queries.

    If a worker is lost, another one loads its shard, from the copy on its disk if there is one. The new shard then
    applies all trees so far, and the call is repeated.
    """

    def __init__(
        self, client: Client, config: RunConfig, sets: Mapping[str, PartitionedData], assigned: Mapping[str, Shares]
    ) -> None:
        self._client, self._config = client, config
        self._partitions = {name: data.partitions for name, data in sets.items()}
        self._shares = list(assigned.values())
        self._all = range(len(self._shares))
        self._worker_of = dict(enumerate(assigned))
        self._former_workers: set[str] = set()  # every worker that has had a shard
        self._run = os.urandom(4).hex()
        self._futures: dict[int, Future] = {}
        self._actors: dict[int, Any] = {}
        self._summaries: list[dict[str, SetSummary]] = []
        self._base: Base | None = None
        self._n_sent = 0  # trees that every shard has
        self._reports: list[ShardReport] | None = None  # for those trees
        self.trees: list[Tree] = []
        self.biases: list[np.ndarray] = []  # biases of positions: before the first tree and after each
        self._n_biases = 0  # number of biases that every shard has
        self.kept_set: str | None = None  # the validation set whose scores are kept before the next tree
        self.keep_rows: Callable[[list[ShardReport]], None] = lambda reports: None  # called with new reports
        self._losses: dict[int, int] = {}  # workers that each shard has lost since the last tree

    @as_cluster_errors()
    def load(self) -> dict[str, SetSummary]:
        """Load the shards; returns a summary of each data set."""
        lost = self._load_shards(self._worker_of)
        while lost:
            assigned, _ = self._reassign(lost)
            lost = self._load_shards(assigned)
        self._summaries = self._call_all("summaries")
        return {
            name: SetSummary.joined([found[name] for found in self._summaries if name in found])
            for name in self._partitions
        }

    def begin(self, base: Base) -> np.ndarray:
        """Send the start of boosting to all shards; returns a checksum of each query's initial scores."""
        checksums = self._call_all("begin", base, [], [])
        self._base = base
        return np.concatenate(checksums)

    def reports(self, *, with_gradients: bool) -> list[ShardReport]:
        """The shards' reports for the trees so far; the shards are called once for each new tree."""
        if self._reports is None or self._n_sent < len(self.trees):
            new = self.trees[self._n_sent :], self.biases[self._n_biases :]
            self._reports = self._call_all("advance", *new, with_gradients, self.kept_set)
            self.kept_set = None
            self._n_sent, self._n_biases = len(self.trees), len(self.biases)
            self.keep_rows(self._reports)
            self._losses.clear()
        return self._reports

    def measure_again(self, name: str, n_trees: int, metrics: Sequence[Metric]) -> list[list[np.ndarray] | None]:
        """Each shard's metrics with the first trees only; None if it has no query of the validation set."""
        self.reports(with_gradients=False)  # a resumed run that has ended already has not sent its trees
        return self._call_all("measure_again", name, n_trees, metrics)

    @as_cluster_errors()
    def call_or_restart(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of all shards while a tree grows; raises `Restart` if a worker was lost."""
        answers, lost = self._call(self._all, method, arguments)
        if not lost:
            return [answers[i] for i in sorted(answers)]
        self._replace(lost)
        assert self._reports is not None
        for i, report in self._call_until_answered(lost, "advance", ([], [], True)).items():
            self._reports[i] = report
        self.keep_rows(self._reports)  # the new shards have sent their rows again
        raise Restart

    def close(self) -> None:
        """Release the shards, and remove their copies."""
        self._actors.clear()
        for future in self._futures.values():
            future.release()
        self._futures.clear()
        if self._config.copies and self._client.status == "running":
            with suppress(Exception):  # no error may replace the model
                run_on_workers(self._client, self._workers_with_copies(), remove_copies, self._run)

    def _workers_with_copies(self) -> list[str]:
        """The workers on machines that have had a shard."""
        from distributed.comm import get_address_host

        hosts = {get_address_host(worker) for worker in self._former_workers}
        return [worker for worker in self._client.nthreads() if get_address_host(worker) in hosts]

    @as_cluster_errors()
    def _call_all(self, method: str, *arguments: Any) -> list[Any]:
        answers = self._call_until_answered(self._all, method, arguments)
        return [answers[i] for i in sorted(answers)]

    def _call_until_answered(self, shards: Iterable[int], method: str, arguments: Sequence[Any]) -> dict[int, Any]:
        """The answers of some shards. Lost shards are replaced and called again."""
        answers, lost = self._call(shards, method, arguments)
        while lost:
            self._replace(lost)
            found, lost = self._call(lost, method, arguments)
            answers.update(found)
        return answers

    def _call(self, shards: Iterable[int], method: str, arguments: Sequence[Any]) -> tuple[dict[int, Any], list[int]]:
        """The answers of some shards, and the numbers of those that are lost."""
        called, answers, lost = {}, {}, []
        for i in shards:
            try:
                called[i] = getattr(self._actors[i], method)(*arguments)
            except RuntimeError:  # Dask has noticed the loss
                lost.append(i)
        for i, future in called.items():
            try:
                answers[i] = self._wait(future, i)
            except _WorkerLost:
                lost.append(i)
        if lost:
            self._workers()  # raises an error if the scheduler is lost
        return answers, lost

    def _wait(self, future: Any, shard: int) -> Any:
        """The result of a call of a shard, or its actor; raises `_WorkerLost` if its worker is lost."""
        worker = self._worker_of[shard]
        is_loading = future is self._futures[shard]
        pause_timer = PauseTimer(self._client)
        while True:
            try:
                return future.result(timeout=POLL_SECONDS)
            except TIMEOUTS:
                if worker not in self._workers():
                    raise _WorkerLost from None
                if is_loading and pause_timer.is_too_long([worker]):  # it would never load
                    raise self._memory_error(shard) from None
            except MemoryError as error:
                raise self._memory_error(shard) from error
            except CancelledError as error:  # the scheduler is lost
                raise _WorkerLost from error
            except OSError as error:
                from_shard = is_loading or error.errno is not None  # Dask's own errors have no errno
                if not from_shard and self._is_lost(worker):
                    raise _WorkerLost from error
                raise ClusterError(f"worker {worker}: {error}") from error

    def _is_lost(self, worker: str) -> bool:
        """Wait until the scheduler removes a worker that cannot be reached; False if it does not in `LOSS_TIMEOUT`."""
        deadline = time.monotonic() + LOSS_TIMEOUT
        while worker in self._workers():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True

    def _workers(self) -> dict[str, int]:
        """The present workers with their numbers of threads."""
        try:
            if self._client.status != "running":
                raise OSError(f"the client is {self._client.status}")
            return self._client.nthreads()
        except OSError as error:
            raise ClusterError(
                f"the scheduler is lost ({error}) after {len(self.trees)} trees; start it and its workers again"
            ) from error

    def _replace(self, lost: Sequence[int]) -> None:
        """Load lost shards on other workers, and bring them to the state before the call that failed."""
        self._update_other_scores(lost)
        while lost:
            assigned, copies = self._reassign(lost)
            failed = self._load_shards(assigned, self._with_copies(assigned, copies))
            if self._summaries:
                failed += self._check_unchanged([i for i in lost if i not in failed])
            if self._base is not None:
                loaded = [i for i in lost if i not in failed]
                known = self._base, self.trees[: self._n_sent], self.biases[: self._n_biases]
                failed += self._call(loaded, "begin", known)[1]
            lost = failed

    def _update_other_scores(self, lost: Sequence[int]) -> None:
        """Let the other shards update the scores of all their documents while the lost ones are loaded.

        New shards do this, too. All shards then need the next update after about the same tree, and do not wait for
        each other at different trees.
        """
        if self._base is not None:
            for i in set(self._all).difference(lost):
                with suppress(RuntimeError):  # the worker is lost, too; the next call finds that
                    self._actors[i].update_scores()

    def _load_shards(self, assigned: Mapping[int, str], with_copies: Collection[int] = ()) -> list[int]:
        """Load shards on workers; returns those whose workers were lost meanwhile."""
        threads = self._workers()
        for i, worker in assigned.items():
            partitions = None if i in with_copies else {
                name: [self._partitions[name][number].argument(self._client, worker) for number, _ in share.pieces]
                for name, share in self._shares[i].items()
            }  # fmt: skip
            self._worker_of[i] = worker
            self._former_workers.add(worker)
            self._futures[i] = self._client.submit(
                Shard, self._config, self._shares[i], partitions, threads.get(worker, 1), self._copy_name(i),
                key=f"ranksieve-shard-{i}-{self._run}-{os.urandom(2).hex()}", workers=[worker], actor=True, pure=False,
            )  # fmt: skip
        lost, without_copy = [], {}
        for i, worker in assigned.items():
            try:
                self._actors[i] = self._wait(self._futures[i], i)
            except _WorkerLost:
                self._futures[i].release()
                lost.append(i)
            except NoCopy:
                self._futures[i].release()
                without_copy[i] = worker
        return lost + self._load_shards(without_copy) if without_copy else lost

    def _copy_name(self, shard: int) -> str:
        return f"{self._run}-{shard}"

    def _with_copies(self, assigned: Mapping[int, str], copies: Mapping[int, Sequence[str]]) -> list[int]:
        """The shards that their new workers can load from copies."""
        return [i for i, worker in assigned.items() if worker in copies[i]]

    def _find_copies(self, shards: Sequence[int], workers: Collection[str]) -> dict[int, list[str]]:
        """The workers on whose machines the copy of each shard is."""
        names = {i: self._copy_name(i) for i in shards}
        found: dict[str, list[str]] = {}
        if self._config.copies:
            found = run_on_workers(self._client, workers, list_copies, list(names.values()))
        return {i: [worker for worker, here in found.items() if name in here] for i, name in names.items()}

    def _check_unchanged(self, shards: Sequence[int]) -> list[int]:
        """Raise an error if shards hold other data than before the loss; returns those that were lost meanwhile."""
        answers, lost = self._call(shards, "summaries", ())
        for i, summaries in answers.items():
            for name, summary in summaries.items():
                if not np.array_equal(summary.checksums, self._summaries[i][name].checksums):
                    numbers = [number for number, _ in self._shares[i][name].pieces]
                    raise ClusterError(
                        f"{', '.join(self._partitions[name][number].name for number in numbers)}: changed during the "
                        "run, so a lost worker cannot be replaced; do not change files while a model is trained on "
                        "them, and start again"
                    )
        return lost

    def _reassign(self, lost: Sequence[int]) -> tuple[dict[int, str], dict[int, list[str]]]:
        """A worker for each lost shard, preferably one without a shard; and the workers that can read its copy."""
        for i in lost:
            self._losses[i] = self._losses.get(i, 0) + 1
            if self._losses[i] == MAX_LOSSES:
                raise self._memory_error(i)
        busy = [worker for i, worker in self._worker_of.items() if i not in lost]
        started = time.monotonic()
        while True:
            workers = self._workers()
            waited = time.monotonic() - started
            if waited > RETURN_TIMEOUT and not workers:
                raise ClusterError(f"all workers are lost after {len(self.trees)} trees; start new ones and resume")
            free = [worker for worker in workers if worker not in busy]
            if len(free) >= len(lost) or (waited > REPLACEMENT_TIMEOUT and workers):
                break
            time.sleep(0.1)
        copies = self._find_copies(lost, workers)
        return reassign(copies, list(workers), busy), copies

    def _memory_error(self, shard: int) -> ClusterError:
        return ClusterError(memory_message(self._shares[shard], self._partitions, self._config.bytes_per_doc))

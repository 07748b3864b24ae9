"""The cluster: a client for the command line, and the workers there are."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from ranksieve.errors import ClusterError, MissingExtraError

if TYPE_CHECKING:
    from distributed import Client

SECONDS = 20  # to wait for a scheduler to answer
PATIENCE = 2.0  # seconds without an answer after which to ask whether the worker is still there
PAUSE = 30.0  # seconds in which paused workers may find memory again
ANSWER = 10.0  # seconds for workers to look for files
TIMEOUTS = (TimeoutError, asyncio.TimeoutError)  # two classes before Python 3.11


def check_dask() -> None:
    """Refuse to go on without Dask."""
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "training on a cluster needs Dask; install it with: pip install 'ranksieve[dask]'"
        ) from error


@contextmanager
def connected(address: str | None, local_workers: int, threads: int = 0) -> Iterator[Client]:
    """A client of the scheduler at `address`, or of so many worker processes that share the threads."""
    check_dask()
    from distributed import Client, LocalCluster

    with ExitStack() as stack:
        stack.enter_context(_quiet(logging.getLogger("distributed.client")))
        if address is None:
            each = max(1, (threads or os.cpu_count() or 1) // local_workers)
            cluster = LocalCluster(n_workers=local_workers, threads_per_worker=each, dashboard_address=":0")
            yield stack.enter_context(Client(stack.enter_context(cluster), direct_to_workers=True))
            return
        try:
            client = Client(address, timeout=SECONDS)
        except (OSError, ValueError, *TIMEOUTS) as error:
            raise ClusterError(
                f"{address}: no scheduler answers there ({error}); expected an address like tcp://host:8786"
            ) from error
        yield stack.enter_context(client)


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """We say ourselves if the scheduler is lost."""
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def as_cluster_errors() -> Iterator[None]:
    """What Dask raises where a connection is lost becomes an error of ours, after which a checkpoint is written."""
    try:
        yield
    except (OSError, *TIMEOUTS) as error:
        raise ClusterError(
            f"the cluster does not answer ({type(error).__name__}: {error}); see to its scheduler and workers"
        ) from error


def workers_of(client: Client, chosen: Sequence[str] | None = None) -> dict[str, int]:
    """The chosen workers, or all, with their threads; complains where there are none."""
    threads = client.nthreads()
    if not threads:
        raise ClusterError("the cluster has no workers; start some, and wait for them with client.wait_for_workers(n)")
    if chosen is None:
        return threads
    unknown = [worker for worker in chosen if worker not in threads]
    if unknown or not chosen:
        raise ClusterError(f"no worker has the address {', '.join(unknown)}; there are {', '.join(threads)}")
    return {worker: threads[worker] for worker in chosen}


def known_workers(client: Client) -> dict[str, Any]:
    """What the scheduler knows of each worker."""
    try:
        return client.scheduler_info(n_workers=-1)["workers"]
    except TypeError:  # before 2025.4 it told of all without being asked
        return client.scheduler_info()["workers"]


def run_on_workers(
    client: Client, workers: Collection[str], function: Callable[..., Any], *arguments: Any
) -> dict[str, Any]:
    """What a function says on workers; nothing where one of them does not answer soon, as a frozen one."""

    async def ask() -> dict[str, Any]:
        return await client.run(function, *arguments, workers=list(workers), on_error="ignore")

    try:
        return client.sync(ask, callback_timeout=ANSWER)
    except (OSError, *TIMEOUTS):
        return {}


class Pauses:
    """Notes how long workers have been paused with nothing under way.

    Dask gives no new tasks to those whose memory is nearly full; what they compute already goes on.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._since: float | None = None

    def too_long(self, workers: Collection[str] = ()) -> bool:
        """Whether these workers, or all there are, have been paused whenever this was asked for a while."""
        known = known_workers(self._client)
        asked = [known[worker] for worker in workers or known if worker in known]
        if not asked or not all(_is_idle(worker) for worker in asked):
            self._since = None
            return False
        self._since = self._since or time.monotonic()
        return time.monotonic() - self._since > PAUSE


def _is_idle(worker: dict[str, Any]) -> bool:
    """Whether a worker is paused and computes nothing."""
    counts = worker.get("metrics", {}).get("task_counts", {})
    return worker.get("status") == "paused" and not counts.get("executing") and not counts.get("long-running")

"""Connections to a Dask cluster: a client for the command line, and the state of the workers."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from ranksieve.errors import ClusterError, ParameterError, import_extra, param

if TYPE_CHECKING:
    from distributed import Client

CONNECT_TIMEOUT = 20  # seconds to wait for the scheduler
POLL_SECONDS = 2.0  # seconds between two checks whether a worker that computes still exists
MAX_PAUSE = 30.0  # seconds for which paused workers may wait for free memory
RUN_TIMEOUT = 10.0  # seconds for a function that runs on all workers
TIMEOUTS = (TimeoutError, asyncio.TimeoutError)  # two classes before Python 3.11
LOOPBACK = "127.0.0.1"


def check_dask() -> None:
    """Raise an error if Dask is not installed."""
    import_extra("distributed", "training on a cluster needs Dask", "ranksieve[dask]")


@contextmanager
def connect(address: str | None, local_workers: int, threads: int = 0) -> Iterator[Client]:
    """Connect to the scheduler at `address`; without one, start worker processes on this machine.

    The new workers divide `threads` between them. They listen on the loopback interface only, because anyone who can
    connect to a Dask scheduler or worker can run code in it.
    """
    check_dask()
    from distributed import Client, LocalCluster

    with ExitStack() as stack:
        stack.enter_context(_silenced(logging.getLogger("distributed.client")))
        if address is None:
            cluster = LocalCluster(
                n_workers=local_workers,
                threads_per_worker=max(1, (threads or os.cpu_count() or 1) // local_workers),
                host=LOOPBACK,
                dashboard_address=f"{LOOPBACK}:0",
                worker_dashboard_address=f"{LOOPBACK}:0",
            )
            yield stack.enter_context(Client(stack.enter_context(cluster), direct_to_workers=True))
            return
        try:
            client = Client(address, timeout=CONNECT_TIMEOUT)
        except (OSError, ValueError, *TIMEOUTS) as error:
            raise ClusterError(
                f"{address}: no scheduler answers there ({error}); expected an address like tcp://host:8786"
            ) from error
        yield stack.enter_context(client)


@contextmanager
def _silenced(logger: logging.Logger) -> Iterator[None]:
    """Silence Dask's log messages about a lost scheduler, which is reported as a `ClusterError`."""
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def as_cluster_errors() -> Iterator[None]:
    """Turn Dask's errors about lost connections into `ClusterError`, on which training writes a checkpoint."""
    try:
        yield
    except (OSError, *TIMEOUTS) as error:
        raise ClusterError(
            f"the cluster does not answer ({type(error).__name__}: {error}); check its scheduler and workers"
        ) from error


def workers_of(client: Client, chosen: Sequence[str] | None = None) -> dict[str, int]:
    """The number of threads of each chosen worker, by its address; the default is all workers."""
    threads = client.nthreads()
    if not threads:
        raise ClusterError("the cluster has no workers; start some, and wait for them with client.wait_for_workers(n)")
    if chosen is None:
        return threads
    if not chosen:
        raise ParameterError(param("workers"), f" is empty; give addresses from {', '.join(threads)}")
    unknown = [worker for worker in chosen if worker not in threads]
    if unknown:
        raise ClusterError(f"no worker has the address {', '.join(unknown)}; there are {', '.join(threads)}")
    return {worker: threads[worker] for worker in chosen}


def worker_states(client: Client) -> dict[str, Any]:
    """The scheduler's record of each worker."""
    try:
        return client.scheduler_info(n_workers=-1)["workers"]
    except TypeError:  # Dask before 2025.4 has no such parameter and returns all
        return client.scheduler_info()["workers"]


def run_on_workers(
    client: Client, workers: Collection[str], function: Callable[..., Any], *arguments: Any
) -> dict[str, Any]:
    """Run a function on each worker; returns no results at all if one worker does not answer in `RUN_TIMEOUT`."""

    async def run() -> dict[str, Any]:
        return await client.run(function, *arguments, workers=list(workers), on_error="ignore")

    try:
        return client.sync(run, callback_timeout=RUN_TIMEOUT)
    except (OSError, *TIMEOUTS):
        return {}


class PauseTimer:
    """Measures for how long workers have been paused without a running task.

    Dask sends no new tasks to a worker whose memory is nearly full; its running tasks continue.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._since: float | None = None

    def is_too_long(self, workers: Collection[str] = ()) -> bool:
        """Whether these workers, or all, were paused at every call of the last `MAX_PAUSE` seconds."""
        states = worker_states(self._client)
        checked = [states[worker] for worker in workers or states if worker in states]
        if not checked or not all(_is_paused_and_idle(worker) for worker in checked):
            self._since = None
            return False
        self._since = self._since or time.monotonic()
        return time.monotonic() - self._since > MAX_PAUSE


def _is_paused_and_idle(worker: dict[str, Any]) -> bool:
    """Whether a worker is paused and runs no task."""
    counts = worker.get("metrics", {}).get("task_counts", {})
    return worker.get("status") == "paused" and not counts.get("executing") and not counts.get("long-running")

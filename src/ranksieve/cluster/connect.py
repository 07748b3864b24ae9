"""The cluster: a client for the command line, and the workers there are."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ranksieve.errors import ClusterError, MissingExtraError

if TYPE_CHECKING:
    from distributed import Client

SECONDS = 20  # to wait for a scheduler to answer


@contextmanager
def connected(address: str | None, local_workers: int, threads: int = 0) -> Iterator[Client]:
    """A client of the scheduler at `address`, or of so many worker processes that share the threads."""
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise MissingExtraError(
            "training on a cluster needs Dask; install it with: pip install 'ranksieve[dask]'"
        ) from error
    if address is None:
        each = max(1, (threads or os.cpu_count() or 1) // local_workers)
        with (
            LocalCluster(n_workers=local_workers, threads_per_worker=each, dashboard_address=":0") as cluster,
            Client(cluster, direct_to_workers=True) as client,
        ):
            yield client
        return
    try:
        client = Client(address, timeout=SECONDS)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"{address}: no scheduler answers there ({error}); expected an address like tcp://host:8786"
        ) from error
    with client:
        yield client


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

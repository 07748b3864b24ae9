"""One cluster of worker processes for all tests here, and data in four parts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from distributed import Client, LocalCluster

import ranksieve as rs
from samples import small_dataset


@pytest.fixture(scope="package")
def compiled() -> None:
    """All kernels are compiled once, so that workers load them from the cache."""
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as alone:
        for gain in ("variance", "newton"):
            rs.cluster.train(alone, rs.synth.cubic(4), valid=rs.synth.cubic(4), trees=2, leaves=4, gain=gain)


@pytest.fixture(scope="package")
def client(compiled: None) -> Iterator[Client]:
    with (
        LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address="127.0.0.1:0", memory_limit=0) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def data() -> rs.Dataset:
    return small_dataset(n_queries=30)


@pytest.fixture(scope="module")
def parts(data) -> list[rs.Dataset]:
    """The queries in four parts, one of them with a single query."""
    return [data.take_queries(queries) for queries in np.split(np.arange(30), [5, 6, 20])]

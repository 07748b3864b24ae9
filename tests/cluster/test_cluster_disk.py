"""Workers with bins in files: the model of one machine with bins in memory, bit for bit."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator

import numpy as np
import pytest
from distributed import Client, LocalCluster, WorkerPlugin

import ranksieve as rs
from ranksieve.cluster.layout import assign
from ranksieve.data.joined import JoinedSource, Piece
from ranksieve.errors import ClusterError, ParameterError
from ranksieve.forest.formats.lightgbm_writer import to_text
from samples import small_dataset

SMALL = {"trees": 6, "leaves": 6, "min_docs": 3, "learning_rate": 0.2, "negatives": 0.2, "min_negatives": 1}
SIZES = {
    "WORK_BYTES": 0,
    "FEATURE_BYTES": 0,
    "LEAST_ROWS": 8,
    "DOC_BYTES": 0,
    "LABEL_BYTES": 4,
    "WHOLE_BYTES": 0,
    "TOP_BYTES": 0,
    "WORKER_BYTES": 0,
    "FOREST_BYTES": 0,
    "MEMORY_BYTES": 4,
}


def set_sizes(sizes: dict[str, int], block: int, near: int, *, alone: bool) -> dict[str, int]:
    """On a worker: the program itself counts as nothing; returns what was there."""
    from ranksieve.data import bin_file, bin_store, free_memory

    before = {name: getattr(bin_store, name) for name in sizes}
    bin_store.resident_memory = (lambda: 0) if alone else free_memory.resident_memory
    vars(bin_store).update(sizes)
    bin_file.BLOCK_BYTES, bin_file.NEAR_BYTES = block, near
    return before


@pytest.fixture(scope="module")
def limited(client: Client) -> Iterator[Client]:
    """Workers on which limits of some kilobytes work."""
    before = client.run(set_sizes, SIZES, 1_024, 64, alone=True)
    yield client
    client.run(set_sizes, next(iter(before.values())), 1 << 24, 1 << 16, alone=False)


def bytes_read(dask_worker) -> dict[str, int]:
    """How many bytes of bins each shard of a worker has read from files."""
    return {
        key: sum(one.disk.file.bytes_read for one in shard._data.sets.values() if one.disk)
        for key, shard in dask_worker.state.actors.items()
    }


def trained(client: Client, parts, **options) -> tuple[rs.Forest, int]:
    """A model, and how many bytes of bins its workers have read."""
    others = {key for found in client.run(bytes_read).values() for key in found}  # shards of runs before
    read: list[int] = []

    def add_bytes(record) -> None:
        shards = {key: n for found in client.run(bytes_read).values() for key, n in found.items() if key not in others}
        read.append(sum(shards.values()))

    workers = sorted(client.nthreads())[:2]
    model = rs.cluster.train(client, parts, workers=workers, callbacks=[add_bytes], **{**SMALL, **options})
    return model, read[-1]


@pytest.mark.parametrize(
    "options",
    [
        {"exchange": "rows"},
        {"exchange": "histograms", "gain": "newton"},
        {"exchange": "rows", "negatives": 0.9},  # more rows than fit into memory
        {"algo": "lambdamart"},
        {"algo": "lambdamart", "features": "1-3,7", "feature_fraction": 0.5, "row_fraction": 0.9},
        {"bag": 2, "trees": 3, "metric": "err@5"},
    ],
    ids=str,
)
def test_bins_in_files_give_the_model_of_one_machine(limited, data, parts, options):
    valid = small_dataset(n_queries=7, seed=3)
    here = {name: value for name, value in options.items() if name != "exchange"}
    one = rs.train(data, valid=valid, **{**SMALL, **here})
    model, n_read = trained(limited, parts, valid=valid, memory="6K", **options)
    assert to_text(model) == to_text(one) and model.evals_result_ == one.evals_result_
    assert n_read > 0


def test_bin_files_in_a_folder_are_used_again(limited, data, tmp_path):
    bins = tmp_path / "bins"
    bins.mkdir()
    files = []
    for number, queries in enumerate(np.split(np.arange(30), [25])):  # a worker has some of the queries of the first
        files.append(tmp_path / f"{number}.parquet")
        rs.io.write_parquet(data.take_queries(queries), files[-1])
    options = {"memory": "6K", "bin_folder": str(bins)}
    first, _ = trained(limited, files, **options)
    kept = {path.name: path.stat().st_ino for path in bins.iterdir()}
    assert sorted(re.sub(r"\.[0-9a-f]{8}\.", ".", name) for name in kept) == [
        "0.parquet-0-16.bins", "0.parquet-16-25+1.bins",
    ]  # fmt: skip
    again, _ = trained(limited, files, **options)
    assert {path.name: path.stat().st_ino for path in bins.iterdir()} == kept
    assert to_text(first) == to_text(again)
    assert to_text(first) == to_text(rs.train(JoinedSource([Piece(file) for file in files]), **SMALL))


class SmallMemory(WorkerPlugin):
    """`set_sizes` on all workers, also on those that replace others."""

    def setup(self, worker) -> None:
        set_sizes(SIZES, 1_024, 64, alone=True)


def test_a_killed_worker_does_not_change_the_model(limited, data, parts):
    def kill(record) -> None:
        if record.step == 3:
            os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)

    options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "memory_limit": 0}
    with LocalCluster(n_workers=2, **options) as cluster, Client(cluster) as client:
        client.register_plugin(SmallMemory())
        model = rs.cluster.train(client, parts, memory="6K", callbacks=[kill], **SMALL)
    assert to_text(model) == to_text(rs.train(data, **SMALL))


def test_bins_that_fit_stay_in_memory(limited, data, parts):
    model, n_read = trained(limited, parts, memory="1G")
    assert n_read == 0 and to_text(model) == to_text(rs.train(data, **SMALL))


def test_too_little_memory_is_refused_in_one_line(limited, parts, capfd):
    with pytest.raises(ParameterError, match=r"memory='1K' is too little.* give at least 1M"):
        rs.cluster.train(limited, parts, memory="1K", **SMALL)
    assert "Traceback" not in capfd.readouterr().err


def test_more_memory_than_a_worker_has_is_refused(client, parts, monkeypatch):
    limits = {worker: {"memory_limit": 10_000_000} for worker in client.nthreads()}
    monkeypatch.setitem(assign.__globals__, "worker_states", lambda client: limits)
    with pytest.raises(ClusterError, match=r"memory='1G' is more than the 0.01 GB of a worker"):
        rs.cluster.train(client, parts, memory="1G", **SMALL)

"""`predict`: scores of partitioned data, computed on the workers of a cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ranksieve.cluster.connect import workers_of
from ranksieve.cluster.partitions import NUMBA_LOCK, category_options, gather_results, list_partitions, task_keys
from ranksieve.data.joined import JoinedSource, Piece
from ranksieve.files import atomic_path
from ranksieve.forest.model import Model
from ranksieve.forest.score_file import score_blocks
from ranksieve.models.load import load

if TYPE_CHECKING:
    from distributed import Client


def predict(
    client: Client,
    model: Any,
    partitions: Any,
    *,
    out: str | os.PathLike[str] | None = None,
    missing: str | None = None,
) -> list[Any]:
    """Score partitioned data on the workers.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    model : model or its file
        The model.
    partitions
        As for `train`.
    out : folder, optional
        A folder that all workers can write to. Each partition's scores become a Parquet file with the column `score`.
    missing : "zero" or "nan", optional
        The value of a feature that a LETOR line does not name. The default is that of training.

    Returns
    -------
    list
        An array of scores for each partition, in the order of its rows; with `out`, the names of the files.

    Examples
    --------
    >>> import ranksieve as rs
    >>> from dask.distributed import Client
    >>> model = rs.train(rs.synth.cubic(20), trees=3, leaves=4)
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client:
    ...     scores = rs.cluster.predict(client, model, [rs.synth.cubic(2, start=20), rs.synth.cubic(3, start=22)])
    >>> [len(part) for part in scores]
    [100, 150]
    """
    loaded: Model = load(model) if isinstance(model, str | os.PathLike) else model
    parts = list_partitions(partitions)
    names: list[str | None] = [None] * len(parts)
    if out is not None:
        folder = Path(out).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        names = [str(folder / f"scores-{i:05d}.parquet") for i in range(len(parts))]
    threads = min(workers_of(client).values())
    shared = client.scatter(loaded, broadcast=True, hash=False)
    missing = missing or str(loaded.info.get("missing", "zero"))
    scored = [
        client.submit(_score, part.argument(client), shared, missing, threads, name, key=key, pure=False)
        for part, name, key in zip(parts, names, task_keys("score", parts), strict=True)
    ]
    return gather_results(client, scored, parts)


def _score(given: Any, model: Model, missing: str, threads: int, out: str | None) -> Any:
    """The scores of one partition, or the file they were written to."""
    wanted = category_options(model.feature_names, model.categories)
    source = JoinedSource([Piece(given)], missing=missing, wanted=wanted)
    with NUMBA_LOCK:
        scores = np.concatenate([found["model"] for _, found in score_blocks({"model": model}, source, threads)])
    if out is None:
        return scores
    with atomic_path(out) as temporary:
        pq.write_table(pa.table({"score": scores}), temporary)
    return out

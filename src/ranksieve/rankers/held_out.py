"""Queries that are held out for early stopping, if there is no validation data."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ranksieve.boosting.disk_training import display_of
from ranksieve.boosting.job import TrainingJob
from ranksieve.data.binned import Binned
from ranksieve.data.dataset import Dataset
from ranksieve.data.joined import JoinedSource, Piece, query_ids_of
from ranksieve.data.read import open_data
from ranksieve.data.sampling import split_queries
from ranksieve.errors import ParameterError, ParamName, joined_parts, param
from ranksieve.params import Params
from ranksieve.text_formats import counted

LOG = logging.getLogger("ranksieve")
FEWEST_QUERIES = 5  # fewer are not divided


def hold_out(job: TrainingJob) -> TrainingJob:
    """The job with a share of its queries as validation data, if it has none and `trees` is not given.

    See `Params.held_out`. Nothing is held out if scores or a counter are given for each training document, nor on a
    cluster, which asks for validation data.
    """
    share = 0.0 if job.valid is not None else job.params.held_out
    has_values = job.counter is not None or isinstance(job.init, np.ndarray | list | Mapping)
    if share == 0.0 or has_values or job.cluster is not None:
        return job
    data = open_data(job.data, missing=job.missing)
    ids = data.lists.query_ids if isinstance(data, Dataset | Binned) else query_ids_of(data)
    if len(ids) < FEWEST_QUERIES:
        _note(job, f"{counted(query=len(ids))} are too few to hold out some for early stopping; give ", param("valid"))
        return job
    n_held_out = min(max(1, round(share * len(ids))), len(ids) - 1)
    shares = (1 - n_held_out / len(ids), n_held_out / len(ids))
    train, valid = split_queries(len(ids), shares, seed=job.params.seed)
    _note(
        job, f"{len(valid):,} of {counted(query=len(ids))} are held out for early stopping; give ", param("valid"),
        " for other lists, or ", param("valid_fraction", 0), " to train on all queries",
    )  # fmt: skip
    return replace(job, data=_part(data, ids, train, "training"), valid=_part(data, ids, valid, "held out"))


def check_cluster_has_valid(params: Params, valid: Any) -> None:
    """Refuse to train on a cluster without validation data, if queries would be held out on one machine."""
    if params.held_out and not valid:
        raise ParameterError(
            "no queries are held out on a cluster; give ", param("valid"), " for early stopping, or ", param("trees")
        )


def _part(data: Any, ids: Any, queries: np.ndarray, name: str) -> Any:
    """Some queries of the data."""
    if isinstance(data, Binned):
        return data.take_rows(data.lists.take_queries(queries)[1])
    piece = Piece(data, frozenset(ids[number] for number in queries))
    return JoinedSource([piece], name=f"{data.source} ({name})")


def _note(job: TrainingJob, *parts: str | ParamName) -> None:
    """Tell the user who watches; else log it."""
    display = display_of(job.callbacks)
    if display is None:
        LOG.info(joined_parts(parts))
    else:
        display.note(*parts)

"""Messages between the coordinator and the workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from ranksieve.boosting.fixed_point import Extent
from ranksieve.boosting.query_labels import QueryLabels
from ranksieve.data.binning import Binning
from ranksieve.errors import DataError
from ranksieve.evaluation.metric_table import Definition
from ranksieve.evaluation.metrics import Metric
from ranksieve.params import Params


@dataclass(frozen=True)
class RunConfig:
    """The settings of a run, for all workers."""

    params: Params
    metric: Metric
    user_metric: Definition | None  # the definition of a metric that is not built in
    binning: Binning
    feature_names: tuple[str, ...]
    categories: Mapping[str, Sequence[str]]
    missing: str
    highest_labels: dict[str, float]  # by data set: its highest label
    max_sent_rows: int  # a worker with more training rows sends histograms in place of rows
    copies: bool  # whether workers write copies of their bins to disk

    @property
    def bytes_per_doc(self) -> int:
        """Memory of a document on a worker: one byte per feature, the label, two scores, and places in work arrays."""
        return self.binning.n_features + 60


@dataclass(frozen=True)
class SetSummary(QueryLabels):
    """The coordinator's summary of a data set on the workers; arrays have one value per query."""

    n_docs: int
    query_weights: np.ndarray  # empty if documents have no weights
    last_positions: np.ndarray  # the highest position in each query; empty if documents have no positions
    checksums: np.ndarray

    @classmethod
    def joined(cls, parts: list[SetSummary]) -> SetSummary:
        """The summary of all shards together."""
        arrays = {
            item.name: np.concatenate([getattr(part, item.name) for part in parts])
            for item in fields(cls)
            if item.name != "n_docs"
        }
        for name, what in (("query_weights", "weights"), ("last_positions", "positions")):
            if len(arrays[name]) not in (0, len(arrays["checksums"])):
                raise DataError(f"some partitions have {what} and some have none; give all of them {what}, or none")
        return cls(n_docs=sum(part.n_docs for part in parts), **arrays)


@dataclass(frozen=True)
class SelectedRows:
    """Training rows: their places in the coordinator's cache, and the bins of rows that are not in it yet.

    `new_bins` are stored from place `first` on; `first=0` empties the cache. If `places` is None, the rows are the same
    as in the last report.
    """

    first: int
    new_bins: np.ndarray
    new_row_numbers: np.ndarray  # in the whole training set
    places: np.ndarray | None
    grad: np.ndarray
    hess: np.ndarray


@dataclass(frozen=True)
class ShardReport:
    """A shard's answer to new trees: the metric on its validation queries, and its training rows for the next tree."""

    values: dict[str, np.ndarray] = field(default_factory=dict)  # by the name of the validation set
    extent: Extent | None = None
    rows: SelectedRows | None = None
    position_sums: np.ndarray | None = None  # of the gradients, where positions have biases

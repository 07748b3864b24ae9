"""What travels between the coordinator and the workers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ranksieve.boosting.fixed_point import Extent
from ranksieve.data.binning import Binning
from ranksieve.errors import DataError
from ranksieve.evaluation.metric_table import Definition
from ranksieve.evaluation.metrics import Metric
from ranksieve.params import Params


@dataclass(frozen=True)
class RunConfig:
    """What all workers of a run must know."""

    params: Params
    metric: Metric
    own_metric: Definition | None
    binning: Binning
    feature_names: tuple[str, ...]
    missing: str
    highest: dict[str, float]  # label of each set
    most_rows: int  # a worker with more training rows does not send them: then trees grow on sums of histograms
    copies: bool  # whether workers keep what they hold on their disks, too

    @property
    def needs_last_selection(self) -> bool:
        """Whether a selection depends on those before it; functions of the user's own may."""
        return getattr(self.params.selection_rule, "needs_last_selection", True)

    @property
    def bytes_per_doc(self) -> int:
        """What a document costs a worker: a byte a feature, its label, two scores, and places in work arrays."""
        return self.binning.n_features + 60


@dataclass(frozen=True)
class SetSummary:
    """What the coordinator must know of a set that lies on workers; arrays are per query."""

    n_docs: int
    lowest: np.ndarray
    highest: np.ndarray
    sums: np.ndarray
    weights: np.ndarray
    query_weights: np.ndarray  # empty where documents have no weights
    checksums: np.ndarray

    @classmethod
    def joined(cls, parts: list[SetSummary]) -> SetSummary:
        arrays = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("lowest", "highest", "sums", "weights", "query_weights", "checksums")
        }
        if len(arrays["query_weights"]) not in (0, len(arrays["checksums"])):
            raise DataError("some partitions have weights and some have none; give all of them weights, or none")
        return cls(sum(part.n_docs for part in parts), **arrays)


@dataclass(frozen=True)
class SelectedRows:
    """Training rows: their places in the coordinator's cache, and the bins of those that are not in it yet.

    `new` go to places `first` and following; `first=0` empties the cache. Without `places` the rows are those of the
    last time.
    """

    first: int
    new: np.ndarray
    places: np.ndarray | None
    grad: np.ndarray
    hess: np.ndarray


@dataclass(frozen=True)
class ShardReport:
    """A worker's answer to new trees: its validation lists measured, and its part of the next training rows."""

    values: dict[str, np.ndarray] = field(default_factory=dict)
    extent: Extent | None = None
    rows: SelectedRows | None = None


@dataclass(frozen=True)
class SplitPoint:
    """Where a leaf is divided."""

    column: int
    split_bin: int
    missing_left: bool


@dataclass(frozen=True)
class LeafSplit:
    """Leaf `leaf` is divided; its right side becomes leaf `new`."""

    leaf: int
    new: int
    cut: SplitPoint


@dataclass(frozen=True)
class HistogramRequest:
    """A histogram that is wanted: of a leaf, or of one side of it where it will probably be divided."""

    leaf: int
    cut: SplitPoint | None = None
    left: bool = False


@dataclass(frozen=True)
class RootHistogram:
    """Fixed-point sums of the training rows, and their histogram: the bins that exist, one after the other."""

    total: int
    hess_total: int
    bins: np.ndarray

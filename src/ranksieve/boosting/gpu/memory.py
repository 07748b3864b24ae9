"""`GpuMemory`: the parts of the boosting loop for data on a GPU."""

from __future__ import annotations

import numpy as np

from ranksieve.boosting.gpu.grower import GpuGrower
from ranksieve.boosting.gpu.rows import GpuLists
from ranksieve.boosting.gpu.scores import GpuScores
from ranksieve.boosting.gpu.validation import GpuValidationSet
from ranksieve.boosting.job import TrainingJob
from ranksieve.boosting.selections.random import Everything
from ranksieve.cuda.bins import DeviceBins, bytes_needed, n_groups_of, send_bins
from ranksieve.cuda.device import check_memory
from ranksieve.cuda.gradients import SPACE_BYTES
from ranksieve.cuda.histograms import CELLS
from ranksieve.cuda.tree_tables import MOST_AHEAD
from ranksieve.data.binned import Binned
from ranksieve.errors import ParameterError, param
from ranksieve.evaluation.metrics import Metric
from ranksieve.params import Params

DOCUMENT_BYTES = 64  # scores, gains, gradients, and the numbers of rows
TRAINED_SHARE = 0.25  # of the rows, that room is left for where a selection copies bins


def needed_bytes(data: Binned, params: Params, *, is_trained_on: bool) -> int:
    """Memory on the GPU that a data set takes."""
    n_docs, width = data.bins.shape
    needed = bytes_needed(n_docs, width, layouts=2 if is_trained_on else 1) + 16 * n_docs
    if is_trained_on:
        if type(params.selection_rule) is not Everything or params.row_fraction < 1.0:
            needed += int(TRAINED_SHARE * bytes_needed(n_docs, width, layouts=1))
        slots = params.leaves + MOST_AHEAD
        needed += n_docs * (DOCUMENT_BYTES + SPACE_BYTES) + 8 * CELLS * slots * n_groups_of(width)
    return needed


class GpuMemory:
    """Trains on a GPU: bins are sent once, and per tree only the tree and the metric come back."""

    def __init__(self, job: TrainingJob) -> None:
        self._params = params = job.params
        if params.forest_algorithm.grower != "best-first":
            raise ParameterError(
                param("algo", params.algo), " does not run on a GPU: its trees are oblivious; use ",
                param("device", "cpu"),
            )  # fmt: skip
        self._trained: DeviceBins | None = None

    def scores(self, data: Binned, start: float | np.ndarray, *, is_trained_on: bool = False) -> GpuScores:
        """The scores of a data set, whose bins are sent to the GPU."""
        what = f"{data.source}: training" if is_trained_on else f"{data.source}: validation"
        check_memory(needed_bytes(data, self._params, is_trained_on=is_trained_on), what)
        bins = send_bins(data.bins, words=is_trained_on, columns=True)
        if is_trained_on:
            self._trained = bins
        return GpuScores(bins, np.full(data.lists.n_docs, start, np.float64), self._params.leaves)

    def validation_set(self, name: str, data: Binned, scores: GpuScores) -> GpuValidationSet:
        return GpuValidationSet(name, data, scores)

    def lists(self, data: Binned, metric: Metric, first_selection: int) -> GpuLists:
        assert self._trained is not None
        return GpuLists(data.lists, self._params, metric, first_selection, bins=self._trained)

    def grower(self, data: Binned) -> GpuGrower:
        return GpuGrower(data, self._params)

"""`GpuBackend`: the parts of the boosting loop for data on a GPU."""

from __future__ import annotations

import logging

import numpy as np

from ranksieve.boosting.backend import Backend
from ranksieve.boosting.gpu.grower import GpuGrower
from ranksieve.boosting.gpu.rows import GpuLists, GpuSelected, GpuTarget
from ranksieve.boosting.gpu.scores import GpuScores
from ranksieve.boosting.gpu.validation import GpuValidationSet
from ranksieve.boosting.job import TrainingJob
from ranksieve.boosting.selections.random import Everything
from ranksieve.cuda.bins import DeviceBins, StreamedBins, bytes_needed, n_groups_of, part_rows, send_bins
from ranksieve.cuda.device import free_memory
from ranksieve.cuda.gradients import SPACE_BYTES
from ranksieve.cuda.histograms import CELLS
from ranksieve.cuda.tree_tables import MOST_AHEAD
from ranksieve.data.binned import Binned
from ranksieve.errors import DeviceError, ParameterError, param
from ranksieve.evaluation.metrics import Metric
from ranksieve.params import Params
from ranksieve.rules import AUTO, fields_of
from ranksieve.text_formats import file_size, read_size

LOG = logging.getLogger("ranksieve")

# bytes of a document
DOCUMENT_BYTES = 88  # scores, gains, weights, gradients, marks, and the numbers of rows
SCORE_BYTES = 16  # its score and its label
KEPT_BYTES = 8  # of a validation set: its score under the trees that the model keeps

UNKNOWN_SHARE = 0.25  # assumed share of rows that a rule of the user selects


def copied_rows(data: Binned, params: Params) -> int:
    """About how many rows are copied for a tree at most; 0 where trees are grown on all rows, without a copy."""
    rule, lists = params.selection_rule, data.lists
    if type(rule) is Everything:
        return int(params.row_fraction * lists.n_docs) if params.row_fraction < 1.0 else 0
    given = fields_of(rule)
    share = given.get("max_negatives", given.get("negatives", UNKNOWN_SHARE)) + given.get("rest", 0.0)
    least = np.minimum(lists.sizes, given.get("min_negatives", 0)).sum()
    return int(min(np.count_nonzero(lists.labels) + max(share * lists.n_docs, least), lists.n_docs))


def needed_bytes(data: Binned, params: Params, *, is_trained_on: bool, in_place: bool = True) -> int:
    """Memory on the GPU that a data set takes; with `in_place`, all of its bins are on the GPU."""
    n_docs, width = data.bins.shape
    part = min(part_rows(width), n_docs)  # rows of a part, which needs memory while it is sent, and by columns
    needed = SCORE_BYTES * n_docs + part * width
    needed += bytes_needed(n_docs, width, layouts=1 + is_trained_on) if in_place else bytes_needed(part, width, 1)
    if not is_trained_on:
        needed += KEPT_BYTES * n_docs
    else:
        slots = params.leaves + MOST_AHEAD
        needed += n_docs * (DOCUMENT_BYTES + SPACE_BYTES) + 2 * 8 * CELLS * slots * n_groups_of(width)
        needed += bytes_needed(copied_rows(data, params), width, layouts=1)
    return needed


class GpuBackend(Backend[GpuSelected, GpuScores, GpuTarget]):
    """Trains on a GPU: bins are sent once. For each tree, only the tree and the metric are sent back.

    Bins that do not fit into the GPU's memory are sent again for each tree. Then trees are trained on a selection of
    the rows. The first tree, which is trained on all rows, is grown on the CPU.
    """

    def __init__(self, job: TrainingJob) -> None:
        self._params, self._threads = job.params, job.threads
        if job.params.forest_algorithm.grower != "best-first":
            raise ParameterError(
                param("algo", job.params.algo), " does not run on a GPU: its trees are oblivious; use ",
                param("device", "cpu"),
            )  # fmt: skip
        self._trained: DeviceBins | StreamedBins | None = None
        limit = job.params.memory
        self._free = free_memory() if limit == AUTO else min(read_size(limit), free_memory())

    def training_scores(self, data: Binned, start: float | np.ndarray) -> GpuScores:
        return self._scores(data, start, is_trained_on=True)

    def validation_set(
        self, name: str, data: Binned, start: float | np.ndarray, restart_scores: float | np.ndarray
    ) -> GpuValidationSet:
        return GpuValidationSet(name, data, self._scores(data, start, is_trained_on=False), restart_scores)

    def _scores(self, data: Binned, start: float | np.ndarray, *, is_trained_on: bool) -> GpuScores:
        """The scores of a data set, whose bins are sent to the GPU."""
        what = f"{data.source}: training" if is_trained_on else f"{data.source}: validation"
        whole = needed_bytes(data, self._params, is_trained_on=is_trained_on)
        bins: DeviceBins | StreamedBins
        if whole <= self._free:
            self._free -= whole
            bins = send_bins(data.bins, words=is_trained_on)
        else:
            bins = self._streamed(data, whole, what, is_trained_on=is_trained_on)
        if is_trained_on:
            self._trained = bins
        return GpuScores(bins, np.full(data.lists.n_docs, start, np.float64), data.lists.offsets, self._params.leaves)

    def _streamed(self, data: Binned, whole: int, what: str, *, is_trained_on: bool) -> StreamedBins:
        """Bins that do not fit into the GPU's memory, to be sent for each tree; an error where that is not possible."""
        least = needed_bytes(data, self._params, is_trained_on=is_trained_on, in_place=False)
        in_place = is_trained_on and not copied_rows(data, self._params)
        if in_place or least > self._free:
            remedy = "an algorithm that selects rows, such as selgb, " if in_place else "a smaller selection, "
            raise DeviceError(
                f"{what} needs about {file_size(whole if in_place else least)} on the GPU, and "
                f"{file_size(self._free)} are free; use fewer documents, {remedy if is_trained_on else ''}or ",
                param("device", "cpu"),
            )  # fmt: skip
        LOG.warning(
            "%s needs about %s on the GPU, and %s are free: bins are sent for each tree",
            what, file_size(whole), file_size(self._free),
        )  # fmt: skip
        self._free -= least
        return StreamedBins(data.bins)

    def lists(self, data: Binned, metric: Metric, first_selection: int) -> GpuLists:
        assert self._trained is not None
        if isinstance(self._trained, StreamedBins):  # validation sets have what they need; the rest is for these
            n_sent = self._trained.keep(self._free)
            LOG.info("the bins of %s of %s documents are sent for each tree", f"{n_sent:,}", f"{data.lists.n_docs:,}")
        return GpuLists(data.lists, self._params, metric, first_selection, bins=self._trained)

    def grower(self, data: Binned) -> GpuGrower:
        return GpuGrower(data, self._params, threads=self._threads)

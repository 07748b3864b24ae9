"""The rows that a tree is trained on, and their gradients, on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from ranksieve.boosting.gpu.scores import GpuScores
from ranksieve.boosting.gpu.selections import SELECTIONS, GpuRows, GpuSelected, GpuView
from ranksieve.boosting.objectives.lambdas import (
    ALL_RANKS,
    LambdaObjective,
    all_ideals,
    discounts_by_rank,
    sparse_gains,
)
from ranksieve.boosting.objectives.squared import SquaredError
from ranksieve.boosting.objectives.xendcg import XeNdcg
from ranksieve.boosting.objectives.yetiloss import YetiLoss
from ranksieve.boosting.selections.random import Everything
from ranksieve.boosting.training_rows import TrainingLists, TreeTarget
from ranksieve.boosting.views import Gradients, ObjectiveView
from ranksieve.cuda import marking
from ranksieve.cuda.bins import GROUP, DeviceBins, StreamedBins
from ranksieve.cuda.device import (
    THREADS,
    CudaGraphs,
    download,
    empty,
    join_side_stream,
    n_blocks,
    overwrite,
    side_stream,
    upload,
)
from ranksieve.cuda.gradients import (
    CrossEntropy,
    Lambdas,
    ListGradients,
    NoisyLambdas,
    Residuals,
    Sample,
    take_gradients,
    threads_of,
)
from ranksieve.cuda.growth import TreeSpace
from ranksieve.cuda.largest import CHOSEN
from ranksieve.cuda.losses import Documents
from ranksieve.data.lists import share_of, starts_of
from ranksieve.dtypes import ROW, SCORE
from ranksieve.kernels.metric_kinds import WEIGHTED

GpuTarget = TreeSpace | TreeTarget  # on the device; on the host where a tree is grown on the CPU


@dataclass(frozen=True)
class GpuObjective:
    """An objective on a GPU: its gradients, the gains of documents, and the ideal values of lists."""

    gradients: Any  # a `ListGradients` with `run`
    gains: np.ndarray  # gains of all documents
    ideals: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda gains, offsets: np.ones(1)


def objective_of(lists: TrainingLists) -> GpuObjective | None:
    """The objective on a GPU; None for an objective of the user."""
    rule, metric, seed = lists.params.objective_rule, lists.metric, lists.params.seed
    labels, offsets, weights = lists.lists.labels, lists.lists.offsets, lists.lists.weights
    if isinstance(rule, LambdaObjective) and type(rule).__call__ is LambdaObjective.__call__:
        nothing = np.empty(0)
        gains = rule.gains(ObjectiveView(labels, nothing, offsets, None, 1, 0, metric, lists.highest_grade, {}))
        return GpuObjective(
            Lambdas(rule.kind, rule.normalize, rule.discounts(offsets, metric), gains, weights), gains,
            lambda gains, offsets: rule.ideals(gains, offsets, metric),
        )  # fmt: skip
    if type(rule) is SquaredError:
        return GpuObjective(Residuals(True, labels, weights), labels)
    if type(rule) is XeNdcg:
        gains = sparse_gains(labels, metric)
        return GpuObjective(CrossEntropy(seed, gains, weights), gains)
    if type(rule) is YetiLoss:
        gains, depth = sparse_gains(labels, metric), min(rule.depth(metric), lists.lists.n_docs)
        shape, by_rank = (depth, rule.neighbors, rule.permutations), discounts_by_rank(offsets, ALL_RANKS)
        return GpuObjective(
            NoisyLambdas(seed, shape, by_rank, gains, weights), gains,
            lambda gains, offsets: all_ideals(WEIGHTED, gains, offsets, by_rank),
        )  # fmt: skip
    return None


@dataclass
class GpuLists(TrainingLists):
    """Training lists on a GPU.

    Selections and gradients are computed there. Rules and functions of the user get arrays on the host, and what they
    return is sent to the GPU.
    """

    bins: DeviceBins | StreamedBins = field(kw_only=True)
    _spaces: dict[Any, Any] = field(default_factory=dict, kw_only=True)
    _sent: tuple[Any, GpuRows] | None = field(default=None, kw_only=True)
    _full_step: int = field(default=-1, kw_only=True)  # the step whose gradients of the full lists are on the device

    def select_rows(  # type: ignore[override]  # rows may be on the device, and scores are
        self, last: GpuSelected, scores: GpuScores, step: int, rng: np.random.Generator
    ) -> GpuSelected:
        if not self.selects_at(step):
            return last
        if type(self.params.selection_rule) is Everything:
            return self.all_rows
        if self._selection is None:
            return self.new_rows(last.rows, scores, step, rng)
        return self._selection.select(GpuView(last, scores, step, rng))

    def gradients(  # type: ignore[override]
        self, rows: GpuSelected, scores: GpuScores, step: int, rng: np.random.Generator
    ) -> GpuTarget:
        """The target of the tree of this step, see `TrainingLists.gradients`."""
        sent = self.send(rows)
        if (sent is not None and sent.full_lists) or self.params.row_fraction < 1.0:
            return self._sample(sent, scores, step, rng)
        if sent is None and isinstance(self.bins, StreamedBins):
            (grad, hess), weights = self.full_gradients(scores, step), self.lists.weights
            self._full = None  # the next tree has other gradients
            return TreeTarget(None, grad, hess) if weights is None else TreeTarget(None, grad * weights, hess * weights)
        if sent is None or isinstance(self.bins, StreamedBins):
            space = self._full_space if sent is None else self._compact(sent)
            self._fill(sent, scores, step, (space.grad, space.hess), weighted=True, graphs=space.graphs)
            return space
        with side_stream():  # while gradients are computed: the copy waits for memory, gradients mostly for threads
            space = self._compact(sent)
        self._fill(sent, scores, step, (space.grad, space.hess), weighted=True, graphs=space.graphs)
        join_side_stream()
        return space

    def full_gradients(self, scores: GpuScores, step: int) -> Gradients:  # type: ignore[override]
        """Gradients of the full lists on the host, for rules of the user and for trees that are grown on the CPU."""
        if self._full is None or self._full[0] != step:
            grad, hess = self.device_gradients(scores, step)
            self._full = step, (download(grad), download(hess))
        return self._full[1]

    def device_gradients(self, scores: GpuScores, step: int) -> tuple[Any, Any]:
        """Gradients of the full lists on the device; a selection and the tree that follows share them."""
        out = self._buffers("full gradients", self.lists.n_docs, SCORE, SCORE)
        if self._full_step != step:
            self._fill(None, scores, step, out, weighted=False)
            self._full_step = step
        return out

    def send(self, rows: GpuSelected) -> GpuRows | None:
        """Rows on the device; None for all rows."""
        if isinstance(rows, GpuRows):
            return rows
        if rows.rows is None:
            return None
        if self._sent is None or self._sent[0] is not rows:
            ideals, own = None, None if rows.selected is None else rows.selected.weights
            if self._objective is not None:
                ideals = upload(self._objective.ideals(self._objective.gains[rows.rows], rows.offsets))
            self._sent = rows, GpuRows(
                upload(rows.rows), rows.offsets, upload(rows.offsets), lambda: rows, rows.full_lists, ideals,
                None if own is None else upload(own),
            )  # fmt: skip
        return self._sent[1]

    def _sample(self, rows: GpuRows | None, scores: GpuScores, step: int, rng: np.random.Generator) -> TreeSpace:
        """The target for some of the rows; their gradients are multiplied by their weights."""
        by_place = rows is not None and not rows.full_lists
        if by_place:
            assert rows is not None
            out = self._buffers("gradients", rows.n_rows, SCORE, SCORE)
            self._fill(rows, scores, step, out, weighted=False)
        else:
            out = self.device_gradients(scores, step)
        places, n = self._draw(rows, rng)
        weights = self._nothing if rows is None or rows.weights is None else rows.weights
        sample = Sample(places, n, weights, rows is not None and rows.weights is not None)
        (numbers,) = self._buffers("numbers", n, ROW)
        space = self._room_for(n)
        documents = self._documents(self._labels, rows, scores, weighted=True)
        take_gradients[n_blocks(2), THREADS](documents, sample, by_place, *out, numbers, space.grad, space.hess)
        self.bins.gather(numbers, space)
        return space

    def _draw(self, rows: GpuRows | None, rng: np.random.Generator) -> tuple[Any, int]:
        """Random places of each list's rows, and how many."""
        offsets = self.lists.offsets if rows is None else rows.offsets
        device_offsets, n = self.device_offsets if rows is None else rows.device_offsets, int(offsets[-1])
        if self.params.row_fraction == 1.0:
            if ("all places", n) not in self._spaces:
                self._spaces["all places", n] = upload(np.arange(n, dtype=ROW))
            return self._spaces["all places", n], n
        sizes = np.diff(offsets)
        counts = share_of(sizes, self.params.row_fraction)
        starts = starts_of(counts)
        (flags,) = self._buffers("marks", n, np.uint8)
        (places,) = self._buffers("places", int(starts[-1]), ROW)
        marking.restart[n_blocks(2), THREADS](self._nothing, 0, flags)
        marking.draw_rows[len(sizes), marking.DRAW_THREADS](
            int(rng.integers(2**63)), device_offsets, upload(sizes), upload(counts), flags
        )
        marking.list_marked[len(sizes), threads_of(int(sizes.max()))](
            flags, CHOSEN, device_offsets, upload(starts), places
        )
        return places, int(starts[-1])

    def _fill(
        self, rows: GpuRows | None, scores: GpuScores, step: int, out: Any, *, weighted: bool,
        graphs: CudaGraphs | None = None,
    ) -> None:  # fmt: skip
        """Write gradients of the lists of these rows (None: all rows) to two arrays on the device.

        With `graphs`, launches are recorded as CUDA graphs, which need the same arrays each time. Rows without a name
        are in other arrays each time, so nothing is recorded for them.
        """
        gradients = self._gradients_at(step)
        if gradients is None:
            self._fill_from_host(rows, scores, step, out, weighted=weighted)
            return
        longest = int(np.diff(self.lists.offsets if rows is None else rows.offsets).max())
        ideals = self._ideals if rows is None or rows.ideals is None else rows.ideals
        documents = self._documents(gradients, rows, scores, weighted=weighted)
        run = partial(gradients.run, documents, longest, ideals, out, step)
        if graphs is None or gradients.is_random or (rows is not None and not rows.name):
            run()
        else:  # lists of similar length are launched alike
            graphs.run(("gradients", rows and rows.name, gradients, threads_of(longest), -(-longest // 64)), run)

    def _fill_from_host(self, rows: GpuRows | None, scores: GpuScores, step: int, out: Any, *, weighted: bool) -> None:
        host = self.all_rows if rows is None else rows.host
        now = scores.all() if host.rows is None else scores.at(host.rows)
        for array, values in zip(out, self._derivatives(host, now, step), strict=True):
            values = values * host.weights if weighted and host.weights is not None else values
            overwrite(array[: len(values)], values)

    def _gradients_at(self, step: int) -> Any:
        """The `ListGradients` of a step; None for an objective of the user."""
        if self._objective is None:
            return None
        fits_labels = getattr(self.params.objective_rule, "fits_labels", None)
        return self._labels if fits_labels is not None and fits_labels(step) else self._objective.gradients

    def _documents(
        self, gradients: ListGradients, rows: GpuRows | None, scores: GpuScores, *, weighted: bool
    ) -> Documents:
        listed, offsets = (None, self.device_offsets) if rows is None else (rows.device_rows, rows.device_offsets)
        return gradients.documents(scores.values, listed, offsets, weighted=weighted)

    def _compact(self, rows: GpuRows) -> TreeSpace:
        """A `TreeSpace` with a copy of the bins of some rows."""
        space = self._room_for(rows.n_rows)
        run = partial(self.bins.gather, rows.device_rows, space)
        space.graphs.run(("gather", rows.name), run) if rows.name and isinstance(self.bins, DeviceBins) else run()
        return space

    def _room_for(self, n_rows: int) -> TreeSpace:
        """A `TreeSpace` for a copy of so many rows."""
        space = self._spaces.get("compact")
        if space is None or space.room < n_rows:
            room = n_rows if space is None else n_rows + n_rows // 8
            grouped = empty(room * self.bins.n_groups * GROUP, np.uint8)
            space = TreeSpace(room, grouped.view(np.uint32), grouped, by_column=False, numbered=True)
            self._spaces["compact"] = space
        space.take(n_rows)
        return space

    def _buffers(self, name: str, n: int, *types: Any) -> tuple[Any, ...]:
        """Arrays of at least so many numbers, kept for the next call."""
        if name not in self._spaces or len(self._spaces[name][0]) < n:
            self._spaces[name] = tuple(empty(n, dtype) for dtype in types)
        return self._spaces[name]

    @cached_property
    def _nothing(self) -> Any:
        return empty(1, SCORE)

    @cached_property
    def _full_space(self) -> TreeSpace:
        assert isinstance(self.bins, DeviceBins)
        space = TreeSpace(self.lists.n_docs, self.bins.words, self.bins.columns, by_column=True)
        space.take(self.lists.n_docs)
        return space

    @cached_property
    def device_offsets(self) -> Any:
        return upload(self.lists.offsets)

    @cached_property
    def _labels(self) -> ListGradients:
        """The gradients of the first tree with `first_tree="labels"`: the labels."""
        return Residuals(False, self.lists.labels, self.lists.weights)

    _objective = cached_property(objective_of)

    @cached_property
    def _ideals(self) -> Any:
        assert self._objective is not None
        return upload(self._objective.ideals(self._objective.gains, self.lists.offsets))

    @cached_property
    def _selection(self) -> Any:
        """The selection on the device; None for a rule of the user, and for random rows, which NumPy draws."""
        selection = SELECTIONS.get(type(self.params.selection_rule))
        return None if selection is None else selection(self)

"""The rows that a tree is trained on, and their gradients, on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from ranksieve.boosting.gpu.scores import GpuScores
from ranksieve.boosting.objectives.lambdas import LambdaObjective
from ranksieve.boosting.selections.random import Everything
from ranksieve.boosting.selections.top import TopNegatives
from ranksieve.boosting.training_rows import Gradients, ObjectiveView, TrainingLists, TrainingRows
from ranksieve.cuda import ranking
from ranksieve.cuda.bins import GROUP, DeviceBins, gather_rows
from ranksieve.cuda.device import SIMULATED, THREADS, Replays, download, empty, n_multiprocessors, overwrite, upload
from ranksieve.cuda.gradients import Lambdas, take_gradients
from ranksieve.cuda.growth import TreeSpace
from ranksieve.data.negatives import draw_places, share_of, starts_of
from ranksieve.dtypes import ROW, SCORE
from ranksieve.kernels.lambdas import discounts_by_rank

LIST_THREADS = 32 if SIMULATED else 512  # of a block that has a list


@dataclass(frozen=True)
class GpuRows:
    """Selected rows on the device, as lists. The fields of `TrainingRows` are read when they are asked for."""

    there: Any  # int32
    offsets: np.ndarray
    offsets_there: Any
    read: Callable[[], TrainingRows]
    full_lists: bool = False
    ideals: Any = None  # on the device; None: those of the full lists, as all positives are here
    by_rank: Any = None  # discounts, on the device
    name: str = ""  # where the same arrays are used again, for replays

    @property
    def n_rows(self) -> int:
        return int(self.offsets[-1])

    @cached_property
    def host(self) -> TrainingRows:
        return self.read()

    @property
    def rows(self) -> np.ndarray | None:
        return self.host.rows

    @property
    def selected(self) -> Any:
        return self.host.selected


@dataclass
class GpuLists(TrainingLists):
    """Training lists on a GPU.

    SelGB's selection and the λ-gradients are computed there. Other rules and functions get arrays on the host, and what
    they return is sent to the GPU.
    """

    bins: DeviceBins = field(kw_only=True)
    _spaces: dict[str, Any] = field(default_factory=dict, kw_only=True)
    _sent: tuple[Any, GpuRows] | None = field(default=None, kw_only=True)

    def select_rows(self, last: Any, scores: Any, step: int, rng: np.random.Generator) -> Any:
        rule = self.params.selection_rule
        if not self.selects_at(step):
            return last
        if type(rule) is Everything:
            return self.all_rows
        if type(rule) is TopNegatives:
            return self._top.select(scores)
        return super().select_rows(last, scores, step, rng)

    def gradients(self, rows: Any, scores: Any, step: int, rng: np.random.Generator) -> Any:
        """What the tree of this step is fitted to, see `TrainingLists.gradients`."""
        there = self._send(rows)
        sampled = (there is not None and there.full_lists) or self.params.row_fraction < 1.0
        if sampled:
            return self._sample(there, scores, step, rng)
        space = self._full_space if there is None else self._compact(there.there, there.n_rows, there.name)
        self._fill(there, scores, step, (space.grad, space.hess), weighted=True, replays=space.replays)
        return space

    def full_gradients(self, scores: Any, step: int) -> Gradients:
        """Gradients of the full lists on the host, for selections by gradient."""
        if self._full is None or self._full[0] != step:
            out = self._list_gradients(self.lists.n_docs)
            self._fill(None, scores, step, out, weighted=False)
            self._full = step, (download(out[0]), download(out[1]))
        return self._full[1]

    def _sample(self, rows: GpuRows | None, scores: Any, step: int, rng: np.random.Generator) -> TreeSpace:
        """A target of some of the rows, with their weights."""
        host = self.all_rows if rows is None else rows.host
        lists = None if host.full_lists else rows
        out = self._list_gradients(self.lists.n_docs if lists is None else lists.n_rows)
        self._fill(lists, scores, step, out, weighted=False)
        kept = np.arange(len(host.labels))
        if self.params.row_fraction < 1.0:
            sizes = np.diff(host.offsets)
            counts = share_of(sizes, self.params.row_fraction)
            kept = draw_places(sizes, counts, rng) + np.repeat(host.offsets[:-1], counts)
        numbers = (kept if host.rows is None else host.rows[kept]).astype(ROW)
        places = numbers if lists is None else kept.astype(ROW)
        weights = None if host.weights is None else host.weights[kept]
        space = self._compact(upload(numbers), len(numbers))
        take_gradients[self._blocks, THREADS](
            *out, upload(places), len(places), upload(np.ones(1) if weights is None else weights), weights is not None,
            space.grad, space.hess,
        )  # fmt: skip
        return space

    def _fill(
        self, rows: GpuRows | None, scores: GpuScores, step: int, out: Any, *, weighted: bool,
        replays: Replays | None = None,
    ) -> None:  # fmt: skip
        """Gradients of the lists of these rows (None: of all) into two arrays on the device.

        With `replays`, the arrays are the same each time, and so are the rows if they have a name.
        """
        objective = self.params.objective_rule
        if self._lambdas is not None and not objective.fits_labels(step):
            offsets, there = (self._offsets, None) if rows is None else (rows.offsets_there, rows.there)
            longest = int(np.diff(self.lists.offsets if rows is None else rows.offsets).max())
            ideals = self._ideals if rows is None or rows.ideals is None else rows.ideals
            by_rank = self._by_rank if rows is None else rows.by_rank
            run = partial(self._lambdas.run, scores.values, there, offsets, longest, ideals, by_rank, out, weighted)
            if replays is None or (rows is not None and not rows.name):
                run()
            else:
                replays.run(("lambdas", rows and rows.name), run)
            return
        host = self.all_rows if rows is None else rows.host
        now = scores.all() if host.rows is None else scores.at(host.rows)
        derivatives = self._derivatives(host, now, step)
        for array, values in zip(out, derivatives, strict=True):
            values = values * host.weights if weighted and host.weights is not None else values
            overwrite(array[: len(values)], values)

    def _send(self, rows: Any) -> GpuRows | None:
        """The rows on the device; None: all."""
        if isinstance(rows, GpuRows):
            return rows
        if rows.rows is None:
            return None
        if self._sent is None or self._sent[0] is not rows:
            ideals = None
            if self._lambdas is not None:
                gains = self._gains[rows.rows]
                ideals = upload(self.params.objective_rule.ideals(gains, rows.offsets, self.metric))
            there = GpuRows(
                upload(rows.rows), rows.offsets, upload(rows.offsets), lambda: rows, rows.full_lists, ideals,
                upload(self._discounts(rows.offsets)),
            )  # fmt: skip
            self._sent = rows, there
        return self._sent[1]

    def _discounts(self, offsets: np.ndarray) -> np.ndarray:
        """Discounts of the ranks that count in λ; ones where there is no λ."""
        if self._lambdas is None:
            return np.ones(1)
        return discounts_by_rank(offsets, self.params.objective_rule.depth(self.metric))

    def _compact(self, rows: Any, n_rows: int, name: str = "") -> TreeSpace:
        """Space with a copy of the bins of some rows."""
        space = self._spaces.get("compact")
        if space is None or space.room < n_rows:
            room = n_rows if space is None else n_rows + n_rows // 8
            grouped = empty(room * self.bins.n_groups * GROUP, np.uint8)
            space = TreeSpace(room, grouped.view(np.uint32), grouped, by_column=False, numbered=True)
            self._spaces["compact"] = space
        space.take(n_rows)
        run = partial(self._gather, rows, space)
        space.replays.run(("gather", name), run) if name else run()
        return space

    def _gather(self, rows: Any, space: TreeSpace) -> None:
        gather_rows[(self._blocks, self.bins.n_groups), 32 if SIMULATED else 256](
            self.bins.words.view(np.uint64), self.bins.n_rows, rows, space.n_rows_there,
            space.rows.words.view(np.uint64), space.room, space.numbers,
        )  # fmt: skip

    def _list_gradients(self, n_docs: int) -> tuple[Any, Any]:
        """Two arrays for gradients that no tree is fitted to as they are."""
        found = self._spaces.get("gradients")
        if found is None or len(found[0]) < n_docs:
            found = self._spaces["gradients"] = empty(n_docs, SCORE), empty(n_docs, SCORE)
        return found

    @property
    def _blocks(self) -> int:
        return 1 if SIMULATED else 2 * n_multiprocessors()

    @cached_property
    def _full_space(self) -> TreeSpace:
        space = TreeSpace(self.lists.n_docs, self.bins.words, self.bins.columns, by_column=True)
        space.take(self.lists.n_docs)
        return space

    @cached_property
    def _offsets(self) -> Any:
        return upload(self.lists.offsets)

    @cached_property
    def _gains(self) -> np.ndarray:
        """What each document contributes to the metric."""
        nothing = np.empty(0)
        view = ObjectiveView(
            self.lists.labels, nothing, self.lists.offsets, None, 1, 0, self.metric, self.highest_grade, {}
        )
        return self.params.objective_rule.gains(view)

    @cached_property
    def _lambdas(self) -> Lambdas | None:
        """λ on the device; None where the objective is another one."""
        rule = self.params.objective_rule
        if not isinstance(rule, LambdaObjective) or type(rule).__call__ is not LambdaObjective.__call__:
            return None
        return Lambdas(rule.kind, rule.normalize, self._gains, self.lists.weights)

    @cached_property
    def _ideals(self) -> Any:
        return upload(self.params.objective_rule.ideals(self._gains, self.lists.offsets, self.metric))

    @cached_property
    def _by_rank(self) -> Any:
        return upload(self._discounts(self.lists.offsets))

    @cached_property
    def _top(self) -> _TopSelection:
        rule = self.params.selection_rule
        counts = self.negatives.counts(rule.negatives, rule.min_negatives)
        sizes = counts + self.lists.sizes - np.diff(self.negatives.offsets)
        return _TopSelection(self, starts_of(sizes))


class _TopSelection:
    """SelGB's selection: as many rows of each query each time.

    Two selections take turns in two buffers, so that the one before the last can still be read.
    """

    def __init__(self, lists: GpuLists, starts: np.ndarray) -> None:
        self._lists, self._starts = lists.lists, starts
        self._offsets, self._starts_there = lists._offsets, upload(starts)
        self._positive = upload(lists.lists.labels > 0)
        self._values = empty(lists.lists.n_docs, SCORE)
        self._counts = upload(
            np.diff(starts) - np.diff(np.searchsorted(lists.negatives.positives, lists.lists.offsets))
        )
        self._buffers = [empty(int(starts[-1]), ROW) for _ in range(2)]
        self._by_rank = upload(lists._discounts(starts))
        self._turn = 0
        self._replays = Replays()

    def select(self, scores: GpuScores) -> GpuRows:
        self._turn = 1 - self._turn
        rows, name = self._buffers[self._turn], f"turn {self._turn}"
        self._replays.run(name, partial(self._choose, scores, rows))
        return GpuRows(
            rows, self._starts, self._starts_there, lambda: TrainingRows.of(self._lists, download(rows)),
            by_rank=self._by_rank, name=name,
        )  # fmt: skip

    def _choose(self, scores: GpuScores, rows: Any) -> None:
        ranking.choose_rows[self._lists.n_queries, LIST_THREADS](
            scores.values, self._positive, self._offsets, self._starts_there, self._counts, self._values, rows
        )

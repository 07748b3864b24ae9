"""The selections that are made on a GPU."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ranksieve.boosting.gpu.scores import GpuScores
from ranksieve.boosting.selections.adaptive import ByProgress, NearPositives, next_counts
from ranksieve.boosting.selections.gradient import Goss, LargestGradients
from ranksieve.boosting.selections.random import RandomNegatives
from ranksieve.boosting.selections.top import TopAndBottom, TopAndRandom, TopNegatives
from ranksieve.boosting.training_rows import NO_ROWS, TrainingRows
from ranksieve.cuda import marking, ranking
from ranksieve.cuda.device import SIMULATED, THREADS, CudaGraphs, download, empty, n_blocks, overwrite, upload
from ranksieve.cuda.largest import CHOSEN, Largest
from ranksieve.data.lists import share_of, starts_of
from ranksieve.dtypes import ROW, SCORE
from ranksieve.errors import ParameterError
from ranksieve.rules import Selected

if TYPE_CHECKING:
    from ranksieve.boosting.gpu.rows import GpuLists

LIST_THREADS = 32 if SIMULATED else 512  # threads of a block that works on a list


@dataclass(frozen=True)
class GpuRows:
    """Selected rows on the device, as lists. They are copied to the host when fields of `TrainingRows` are read."""

    device_rows: Any  # int32
    offsets: np.ndarray
    device_offsets: Any
    read: Callable[[], TrainingRows]
    full_lists: bool = False
    ideals: Any = None  # on the device; None: those of the full lists, whose positives are all selected
    weights: Any = None  # weights that the selection gives to the rows, on the device
    name: str = ""  # rows of the same name are in the same arrays, as CUDA graphs need

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


GpuSelected = GpuRows | TrainingRows  # what a rule of the user selects is on the host


class GpuView(NamedTuple):
    """The input of a selection on the device, as `View` is that of others."""

    last: GpuSelected
    scores: GpuScores
    step: int
    rng: np.random.Generator


class _GpuSelection:
    """Selects rows on the device. Selections take turns in two buffers, so that the one before the last can be read."""

    def __init__(self, lists: GpuLists, most_rows: int) -> None:
        self._lists, self._rule = lists, lists.params.selection_rule
        self._n_queries, self._offsets = lists.lists.n_queries, lists.device_offsets
        self._positive = upload(lists.lists.labels > 0)
        n_far = lists.lists.n_docs if int(lists.lists.sizes.max()) > ranking.ROOM else 1
        self._space = empty(n_far, SCORE)  # for lists that do not fit into shared memory
        self._buffers = [empty(most_rows, ROW) for _ in range(2)]
        self._turn = 0

    def _next(self) -> tuple[Any, str]:
        """The buffer for the next selection, and its name."""
        self._turn = 1 - self._turn
        return self._buffers[self._turn], f"turn {self._turn}"

    def _rows(self, rows: Any, starts: np.ndarray, device_starts: Any, name: str, **more: Any) -> GpuRows:
        def read() -> TrainingRows:
            selected: np.ndarray | Selected = download(rows)[: starts[-1]]
            if "weights" in more:
                selected = Selected(download(rows)[: starts[-1]], download(more["weights"])[: starts[-1]], True)
            return TrainingRows.of(self._lists.lists, selected)

        return GpuRows(rows, starts, device_starts, read, name=name, **more)


class TopSelection(_GpuSelection):
    """`TopNegatives`, which selects the same number of rows of a query each time."""

    def __init__(self, lists: GpuLists) -> None:
        rule = lists.params.selection_rule
        counts = lists.negatives.counts(rule.negatives, rule.min_negatives)
        self._starts = starts_of(counts + lists.lists.sizes - np.diff(lists.negatives.offsets))
        super().__init__(lists, int(self._starts[-1]))
        self._device_starts, self._counts = upload(self._starts), upload(counts)
        self._graphs = CudaGraphs()

    def select(self, view: GpuView) -> GpuRows:
        rows, name = self._next()
        self._graphs.run(name, partial(self._choose, view.scores, rows))
        return self._rows(rows, self._starts, self._device_starts, name)

    def _choose(self, scores: GpuScores, rows: Any) -> None:
        ranking.choose_rows[self._n_queries, LIST_THREADS](
            scores.values, self._positive, self._offsets, self._device_starts, self._counts, self._space, rows
        )


class ListedSelection(_GpuSelection):
    """A selection that marks documents, and then lists the marked ones. Their number is copied to the host.

    `most_negatives` are the most negatives of each query that may be marked.
    """

    def __init__(self, lists: GpuLists, most_negatives: np.ndarray) -> None:
        super().__init__(lists, int(most_negatives.sum()) + len(lists.negatives.positives))
        self._flags = empty(lists.lists.n_docs, np.uint8)
        self._device_starts = [empty(self._n_queries + 1, np.int64) for _ in range(2)]
        self._counts = empty(self._n_queries, np.int64)
        self._blocks = n_blocks(4)

    def _listed(self) -> GpuRows:
        """The rows that are marked."""
        marking.count_marked[self._n_queries, LIST_THREADS](self._flags, CHOSEN, self._offsets, self._counts)
        starts = starts_of(download(self._counts))
        if not starts[-1]:
            raise ParameterError(NO_ROWS)
        rows, name = self._next()
        device_starts = self._device_starts[self._turn]
        overwrite(device_starts, starts)
        marking.list_marked[self._n_queries, LIST_THREADS](self._flags, CHOSEN, self._offsets, device_starts, rows)
        return self._rows(rows, starts, device_starts, name)


class MarkedSelection(ListedSelection, ABC):
    """A selection of all positives and of negatives that `mark` marks."""

    def select(self, view: GpuView) -> GpuRows:
        marking.restart[self._blocks, THREADS](self._positive, len(self._positive), self._flags)
        self.mark(view)
        return self._listed()

    @abstractmethod
    def mark(self, view: GpuView) -> None:
        """Mark negatives; positives are marked already."""

    def _mark_best(self, values: Any, kind: int, counts: Any) -> None:
        marking.mark_best[self._n_queries, LIST_THREADS](
            values, kind, self._positive, self._offsets, counts, self._space, self._flags
        )

    def _draw(self, rng: np.random.Generator, sizes: Any, counts: Any) -> None:
        """Mark random documents of those that are not marked."""
        marking.draw_rows[self._n_queries, marking.DRAW_THREADS](
            int(rng.integers(2**63)), self._offsets, sizes, counts, self._flags
        )


class _ShareSelection(MarkedSelection):
    """Selects a share of the negatives of each query; for some rules, also the share `rest` of them."""

    def __init__(self, lists: GpuLists) -> None:
        rule, negatives = lists.params.selection_rule, lists.negatives
        counts, rest = negatives.counts(rule.negatives, rule.min_negatives), getattr(rule, "rest", 0.0)
        n_others = np.diff(negatives.offsets) - counts
        more = np.minimum(negatives.counts(rest, 0), n_others) if rest > 0 else np.zeros_like(counts)
        super().__init__(lists, counts + more)
        self._shares, self._more = upload(counts), upload(more)
        self._n_negatives, self._n_others = upload(np.diff(negatives.offsets)), upload(n_others)


class RandomSelection(_ShareSelection):
    """`RandomNegatives`."""

    def mark(self, view: GpuView) -> None:
        self._draw(view.rng, self._n_negatives, self._shares)


class GradientSelection(_ShareSelection):
    """`LargestGradients`."""

    def mark(self, view: GpuView) -> None:
        self._mark_best(self._lists.device_gradients(view.scores, view.step)[0], marking.LARGEST, self._shares)


class TopRandomSelection(_ShareSelection):
    """`TopAndRandom`."""

    def mark(self, view: GpuView) -> None:
        self._mark_best(view.scores.values, marking.HIGHEST, self._shares)
        self._draw(view.rng, self._n_others, self._more)


class TopBottomSelection(_ShareSelection):
    """`TopAndBottom`."""

    def __init__(self, lists: GpuLists) -> None:
        super().__init__(lists)
        self._lowest = upload(lists.negatives.counts(self._rule.rest, 0))

    def mark(self, view: GpuView) -> None:
        self._mark_best(view.scores.values, marking.HIGHEST, self._shares)
        self._mark_best(view.scores.values, marking.LOWEST, self._lowest)


class NearSelection(MarkedSelection):
    """`NearPositives`."""

    def __init__(self, lists: GpuLists) -> None:
        self._bounds = lists.params.selection_rule.bounds(lists.negatives)
        super().__init__(lists, self._bounds[1])
        self._lows, self._highs = map(upload, self._bounds)

    def mark(self, view: GpuView) -> None:
        marking.count_near[self._n_queries, LIST_THREADS](
            view.scores.values, self._positive, self._offsets, float(self._rule.margin), self._lows, self._highs,
            self._counts,
        )  # fmt: skip
        self._mark_best(view.scores.values, marking.HIGHEST, self._counts)


class ProgressSelection(NearSelection):
    """`ByProgress`."""

    def __init__(self, lists: GpuLists) -> None:
        super().__init__(lists)
        self._both = [empty(self._n_queries, np.int64) for _ in range(2)]

    def mark(self, view: GpuView) -> None:
        rows = self._lists.send(view.last)
        if rows is None:
            counts = self._lists.negatives.counts(self._rule.negatives, self._rule.min_negatives)
        else:
            marking.count_learned[self._n_queries, LIST_THREADS](
                view.scores.values, self._positive, self._offsets, rows.device_rows, rows.device_offsets,
                float(self._rule.margin), *self._both,
            )  # fmt: skip
            counts = next_counts(*map(download, self._both))
        overwrite(self._counts, np.clip(counts, *self._bounds))
        self._mark_best(view.scores.values, marking.HIGHEST, self._counts)


class GossSelection(ListedSelection):
    """`Goss`; NumPy draws the random rows on the host, the same ones as for training on the CPU."""

    def __init__(self, lists: GpuLists) -> None:
        rule, n = lists.params.selection_rule, lists.lists.n_docs
        self._n_top = share_of(n, rule.negatives)
        self._n_rest = min(share_of(n, rule.rest), n - self._n_top)
        super().__init__(lists, np.array([self._n_top + self._n_rest]))
        self._largest = Largest(self._flags)
        self._weights = [empty(self._n_top + self._n_rest, SCORE) for _ in range(2)]

    def select(self, view: GpuView) -> GpuRows:
        self._largest.mark(self._lists.device_gradients(view.scores, view.step)[0], self._n_top)
        n_others = self._lists.lists.n_docs - self._n_top
        self._largest.draw(view.rng.choice(n_others, self._n_rest, replace=False))
        listed = self._listed()
        weights = self._weights[self._turn]
        self._largest.weigh(listed.device_rows, listed.n_rows, n_others / max(self._n_rest, 1), weights)
        return self._rows(
            listed.device_rows, listed.offsets, listed.device_offsets, listed.name, weights=weights, full_lists=True
        )


SELECTIONS: dict[type, Callable[[GpuLists], Any]] = {
    TopNegatives: TopSelection, TopAndRandom: TopRandomSelection, TopAndBottom: TopBottomSelection,
    RandomNegatives: RandomSelection, LargestGradients: GradientSelection, NearPositives: NearSelection,
    ByProgress: ProgressSelection, Goss: GossSelection,
}  # fmt: skip

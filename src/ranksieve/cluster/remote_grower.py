"""The coordinator's part of growing a tree: it adds the workers' histograms and chooses the splits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksieve.boosting.fixed_point import Scales, to_fixed_point
from ranksieve.boosting.sum_grower import SumGrower
from ranksieve.boosting.tree import Tree
from ranksieve.cluster.worker_pool import Restart, WorkerPool
from ranksieve.data.binned import Binned
from ranksieve.kernels.histograms import TreeRows
from ranksieve.params import Params
from ranksieve.rules import AUTO


class RemoteGrower(SumGrower):
    """Grows a tree on rows that the workers have sent, or on sums of their histograms.

    Requests for the sides of more than one leaf ahead save hardly any message, because new leaves mostly have the
    largest gains. They save workers that read files some passes.
    """

    def __init__(self, data: Binned, params: Params, pool: WorkerPool, *, threads: int, n_docs: int) -> None:
        self._n_docs = n_docs
        super().__init__(data, params, threads=threads)
        self._pool = pool

    def _most_leaves(self) -> int:
        return max(1, min(self._params.leaves, self._n_docs // self._params.min_docs))

    def _call(self, request: str, *arguments: Any) -> list[Any]:
        return self._pool.call_or_restart(request, *arguments)

    def grow(self, target: Any, rng: np.random.Generator) -> tuple[Tree, None]:
        """The tree of one machine, fitted to a `RemoteTarget`."""
        if target.bins is not None:
            return super().grow(target, rng)[0], None
        columns, key = self._choose_columns(rng), self._draw_key(rng)
        reads_files = self._params.memory != AUTO and target.extent.n == self._n_docs
        self.ahead = self._params.leaves if reads_files else 1
        while True:
            try:
                return self._grow_on_sums(target.extent, columns, key), None
            except Restart:
                continue

    def _leaves(self, target: Any, placed: TreeRows, bounds: np.ndarray) -> None:
        """None: the workers score their own rows."""

    def _place(self, target: Any, scales: Scales) -> TreeRows:
        fixed = to_fixed_point(target.grad, target.hess, scales, target.row_numbers)
        return self._all_of(target.bins, fixed)

"""`Lambdas`: λ-gradients of lists on a GPU, with their work space; and gradients of a sample of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda

from ranksieve.cuda.device import SIMULATED, empty, kernel, upload
from ranksieve.cuda.lambdas import NEAR, NEAR_BYTES, Documents, Metric, Space, far_lambdas, near_lambdas
from ranksieve.kernels.lambdas import NDCG

SPACE_BYTES = 2 * 8 + 5 * 4  # of a document, without the sums that other metrics than NDCG need
EVERY, SOME = "all documents", "some"


@kernel
def take_gradients(grad, hess, places, n_places, weights, weighted, out_grad, out_hess):
    """The gradients at some places, times weights."""
    for i in range(cuda.grid(1), n_places, cuda.gridsize(1)):
        weight = weights[i] if weighted else 1.0
        out_grad[i], out_hess[i] = grad[places[i]] * weight, hess[places[i]] * weight


class Lambdas:
    """λ-gradients of lists of documents whose gains and weights stay the same."""

    def __init__(self, kind: int, normalize: bool, gains: np.ndarray, weights: np.ndarray | None) -> None:
        self._kind, self._normalize = kind, bool(normalize)
        self._gains = upload(gains)
        self._weights = upload(np.ones(1) if weights is None else weights)
        self._has_weights = weights is not None
        self._no_rows = empty(1, np.int32)
        self._spaces: dict[str, Space] = {}

    def _space(self, n_docs: int, n_lists: int, name: str) -> Space:
        """Work space for so many documents; kept for the next call of the same name."""
        n_sums = 1 if self._kind == NDCG else n_docs + n_lists
        found = self._spaces.get(name)
        if found is None or len(found.ranks) < n_docs or len(found.sums) < n_sums:
            n_listed = 1 if name == EVERY else n_docs
            scores, gains = empty(n_listed, np.float64), empty(n_listed, np.float64)
            powers, ranked = empty(n_docs, np.float64), empty(n_docs, np.float64)
            integers = [empty(n_docs, np.int32) for _ in range(5)]
            above, sums = empty(n_sums, np.float64), empty(n_sums, np.float64)
            found = Space(*(scores, gains, powers, *integers, ranked, above, sums))
            self._spaces[name] = found
        return found

    def run(
        self, scores: Any, rows: Any, offsets: Any, longest: int, ideals: Any, by_rank: Any, out: Any, weighted: bool
    ) -> None:  # fmt: skip
        """λ and w of lists of these rows (None: all documents) into the two arrays `out`."""
        n_lists = len(offsets) - 1
        n_docs = len(out[0])
        metric = Metric(self._kind, self._normalize, ideals, by_rank)
        documents = Documents(
            scores, self._gains, self._weights, weighted and self._has_weights,
            self._no_rows if rows is None else rows, rows is not None, offsets,
        )  # fmt: skip
        threads = 32 if SIMULATED else 64 if longest <= 256 else 128 if longest <= 1024 else 256
        space = self._space(n_docs, n_lists, EVERY if rows is None else SOME)
        room = -(-longest // 32) * 32
        if longest <= NEAR:
            near_lambdas[n_lists, threads, NEAR_BYTES * room](metric, documents, space, room, *out)
        else:
            far_lambdas[n_lists, threads](metric, documents, space, room, *out)

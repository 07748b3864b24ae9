"""Gradients of lists on a GPU, with their work space; and gradients of a sample of rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import cuda

from ranksieve.cuda.device import SIMULATED, THREADS, empty, kernel, n_blocks, upload
from ranksieve.cuda.lambdas import NEAR, NEAR_BYTES, Space, far_lambdas, near_lambdas
from ranksieve.cuda.losses import Documents, NoisyPairs, cross_entropies, document_at, noisy_lambdas, residuals
from ranksieve.cuda.pairs import ListMetric
from ranksieve.kernels.counter_random import step_key
from ranksieve.kernels.lambdas import NDCG

SPACE_BYTES = 2 * 8 + 5 * 4  # work space of a document, without the sums that metrics other than NDCG need


class Sample(NamedTuple):
    """Some places of lists; places may have weights."""

    places: Any
    n: int
    weights: Any  # one for each place of the lists
    has_weights: bool  # whether `weights` are used


@kernel
def take_gradients(documents, sample, by_place, grad, hess, numbers, out_grad, out_hess):
    """The numbers of the documents of a sample, and their gradients times their weights.

    Gradients are per place of the lists (`by_place`), or per document.
    """
    for i in range(cuda.grid(1), sample.n, cuda.gridsize(1)):
        place = sample.places[i]
        row = document_at(documents, place)
        weight = documents.weights[row] if documents.weighted else 1.0
        if sample.has_weights:
            weight *= sample.weights[place]
        source = place if by_place else row
        numbers[i], out_grad[i], out_hess[i] = row, grad[source] * weight, hess[source] * weight


def threads_of(longest: int) -> int:
    """Threads of a block that computes a list, chosen so that few are idle when the last documents are taken."""
    if SIMULATED:
        return 32
    return min((64, 96, 128), key=lambda n: (-(-longest // n) * n, -n)) if longest <= 1024 else 256


class ListGradients:
    """Gradients of lists of documents whose gains and weights stay the same.

    A subclass has `run(documents, longest, ideals, out, step)`. It writes gradients and second derivatives of lists to
    the two arrays `out`; `longest` is the number of documents of the longest list.
    """

    is_random = False  # True: gradients also depend on the step

    def __init__(self, gains: np.ndarray, weights: np.ndarray | None) -> None:
        self._gains = upload(np.asarray(gains, np.float64))
        self.weights = upload(np.ones(1) if weights is None else weights)
        self.has_weights = weights is not None
        self._no_rows = empty(1, np.int32)
        self._kept: dict[Any, Any] = {}

    def documents(self, scores: Any, rows: Any, offsets: Any, *, weighted: bool) -> Documents:
        """The lists of some rows (None: of all documents)."""
        return Documents(
            scores, self._gains, self.weights, weighted and self.has_weights,
            self._no_rows if rows is None else rows, rows is not None, offsets,
        )  # fmt: skip

    def _space(self, name: Any, n_docs: int, *types: Any) -> list[Any]:
        """Arrays for so many documents. A later call returns the same ones, as CUDA graphs need."""
        if (name, n_docs) not in self._kept:
            self._kept[name, n_docs] = [empty(n_docs, dtype) for dtype in types]
        return self._kept[name, n_docs]


class Lambdas(ListGradients):
    """λ of a metric; `by_rank` are the discounts of ranks up to the truncation."""

    def __init__(self, kind: int, normalize: bool, by_rank: np.ndarray, *given: Any) -> None:
        super().__init__(*given)
        self._kind, self._normalize, self._by_rank = kind, bool(normalize), upload(by_rank)

    def run(self, documents: Documents, longest: int, ideals: Any, out: Any, step: int) -> None:
        n_lists, n_docs, is_near = len(documents.offsets) - 1, len(out[0]), longest <= NEAR
        metric = ListMetric(self._kind, self._normalize, ideals, self._by_rank)
        room = -(-longest // 64) * 64
        space = self._work_space(1 if is_near else n_docs, n_docs, n_lists, documents.listed)
        if is_near:
            near_lambdas[n_lists, threads_of(longest), NEAR_BYTES * room](metric, documents, space, room, *out)
        else:
            far_lambdas[n_lists, threads_of(longest)](metric, documents, space, room, *out)

    def _work_space(self, n_far: int, n_docs: int, n_lists: int, listed: bool) -> Space:
        scores, gains = self._space("listed", n_far if listed else 1, np.float64, np.float64)
        powers, *integers = self._space("far", n_far, np.float64, *[np.int32] * 5)
        n_sums = 1 if self._kind == NDCG else n_docs + n_lists
        ranked, above, sums = self._space("sums", n_sums, np.float64, np.float64, np.float64)
        return Space(*(scores, gains, powers, *integers, ranked, above, sums))


class Residuals(ListGradients):
    """Labels minus scores, or labels alone; the labels are passed as gains."""

    def __init__(self, with_scores: bool, *given: Any) -> None:
        super().__init__(*given)
        self._with_scores = with_scores

    def run(self, documents: Documents, longest: int, ideals: Any, out: Any, step: int) -> None:
        blocks = n_blocks(4)
        residuals[blocks, THREADS](documents, self._with_scores, *out)


class CrossEntropy(ListGradients):
    """XE-NDCG."""

    is_random = True

    def __init__(self, seed: int, *given: Any) -> None:
        super().__init__(*given)
        self._seed = seed

    def run(self, documents: Documents, longest: int, ideals: Any, out: Any, step: int) -> None:
        (terms,), key = self._space("terms", len(out[0]), np.float64), np.uint64(step_key(self._seed, step))
        cross_entropies[len(documents.offsets) - 1, threads_of(longest)](documents, key, terms, *out)


class NoisyLambdas(ListGradients):
    """YetiLoss; `shape` is (truncation, number of neighbors, number of permutations), `by_rank` are discounts."""

    is_random = True

    def __init__(self, seed: int, shape: tuple[int, int, int], by_rank: np.ndarray, *given: Any) -> None:
        super().__init__(*given)
        self._seed, self._shape, self._by_rank = seed, shape, upload(by_rank)

    def run(self, documents: Documents, longest: int, ideals: Any, out: Any, step: int) -> None:
        space = self._space("noisy", len(out[0]), np.float64, np.int32, np.int32)
        key = np.uint64(step_key(self._seed, step))
        noisy_lambdas[len(documents.offsets) - 1, threads_of(longest)](
            documents, NoisyPairs(*self._shape, ideals, self._by_rank, *space), key, *out
        )

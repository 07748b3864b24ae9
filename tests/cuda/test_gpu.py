"""Training and scoring on a real GPU. `test_simulated.py` is for machines without one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import checks
import numpy as np
import pytest

import ranksieve as rs
from ranksieve.boosting import fixed_point
from ranksieve.boosting.gpu.grower import GpuGrower
from ranksieve.boosting.grower import Grower
from ranksieve.boosting.training_rows import TreeTarget
from ranksieve.cuda import bins, device, ranking
from ranksieve.cuda.bins import send_bins
from ranksieve.cuda.growth import TreeSpace
from ranksieve.data.binned import Binned, bin_data
from ranksieve.forest.formats.model_files import to_text
from ranksieve.params import Params

pytestmark = pytest.mark.skipif(device.SIMULATED or not device.is_available(), reason="there is no GPU")

OPTIONS: dict[str, Any] = {"trees": 6, "leaves": 16, "min_docs": 5, "gain": "newton", "device": "cuda"}


def lists(n_queries: int, size: int, seed: int, weights: bool = False) -> rs.Dataset:
    """Lists of different sizes, some documents in each positive, and missing values."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(size // 2, size, n_queries)
    features = np.round(rng.normal(size=(sizes.sum(), 40)), 2).astype(np.float32)
    labels = np.clip(np.round(features[:, 0] + 0.5 * features[:, 1] - 1.2), 0, 2)
    features[rng.random(features.shape) < 0.05] = np.nan
    given = {"weights": rng.random(len(labels))} if weights else {}
    return rs.Dataset.from_arrays(features, labels, np.repeat(np.arange(n_queries), sizes), **given)


@pytest.mark.parametrize(
    "options",
    [
        {"gain": "newton"},
        {"gain": "variance", "feature_fraction": 0.5},
        {"gain": "newton", "monotone": {"f1": 1, "f2": -1}, "min_hessian": 0.1},
        {"gain": "newton", "max_depth": 4, "features": ["f3", "f1", "f9"], "collapse": 0.5},
    ],
)
@pytest.mark.parametrize("most_noise", [-1, -40])  # packed sums, and two histograms
def test_a_tree_from_equal_gradients_is_the_cpus_bit_for_bit(
    options: dict, most_noise: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fixed_point, "MOST_NOISE", most_noise)
    data = bin_data(lists(20, 2000, 0), max_bins=255)
    rng, n = np.random.default_rng(1), data.lists.n_docs
    params = Params(algo="lambdamart", leaves=64, min_docs=3, **options)
    compare_trees(data, params, rng.normal(size=n), rng.random(n))


def compare_trees(data: Binned, params: Params, *gradients: np.ndarray) -> None:
    """Trees from these gradients, a pair after another, are the CPU's."""
    there, n = send_bins(data.bins, words=True), data.lists.n_docs
    space = TreeSpace(n, there.words, there.columns, by_column=True)
    space.take(n)
    grower = GpuGrower(data, params)
    for grad, hess in zip(gradients[::2], gradients[1::2], strict=True):
        want, _ = Grower(data, params, threads=1).grow(TreeTarget(None, grad, hess), np.random.default_rng(3))
        device.overwrite(space.grad, grad)
        device.overwrite(space.hess, hess)
        for _ in range(3):  # at first launched one by one, then recorded, then replayed
            got, _ = grower.grow(space, np.random.default_rng(3))
            for name in want.__dataclass_fields__:
                assert np.array_equal(getattr(want, name), getattr(got, name)), name


def test_second_derivatives_have_a_histogram_where_they_have_one_on_the_cpu() -> None:
    rng, n_queries = np.random.default_rng(2), 1000
    features = rng.integers(0, 50, (4000 * n_queries, 3)).astype(np.float32)
    data = bin_data(rs.Dataset.from_arrays(features, features[:, 0] > 48, np.repeat(np.arange(n_queries), 4000)))
    signs = np.where(rng.random(len(features)) < 0.5 + features[:, 0] / 200, 1.0, -1.0)  # rounding is noise to these
    few = np.where(rng.random(len(features)) < 0.001, signs, 1e-9)  # and not to these
    hess = np.ones(len(features))
    params = Params(algo="lambdamart", leaves=16, min_docs=3)
    compare_trees(data, params, signs, hess, few, np.abs(few), signs, hess)


@pytest.mark.parametrize("size", [40, 700, 9000])
@pytest.mark.parametrize("distinct", [3, 50, 10**9])
def test_the_best_documents_of_lists_are_those_of_a_stable_sort(size: int, distinct: int) -> None:
    rng = np.random.default_rng(size + distinct)
    sizes = np.array([size, 1, size // 2, 3])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    scores = np.round(rng.normal(size=offsets[-1]) * distinct)
    counts = np.minimum(sizes, [10, 1, size // 3, 2])
    starts = np.concatenate([[0], np.cumsum(counts)])
    places, order = device.empty(starts[-1], np.int32), device.empty(starts[-1], np.int32)
    ranking.best_of_lists[len(sizes), 512](*map(device.upload, (scores, offsets, starts)), places, order)
    got = device.download(order)
    for q in range(len(sizes)):
        want = np.argsort(-scores[offsets[q] : offsets[q + 1]], kind="stable")[: counts[q]]
        assert np.array_equal(got[starts[q] : starts[q + 1]], want)


@pytest.mark.parametrize("options", [
    {"algo": "selgb", "negatives": 0.02}, {"algo": "lambdamart"}, {"algo": "lambdamart", "objective": "map"},
    {"algo": "lambdamart", "objective": "mrr"}, {"algo": "sieve", "row_fraction": 0.7}, {"algo": "mart"},
])  # fmt: skip
def test_a_run_repeats_and_is_close_to_the_cpus(options: dict) -> None:
    train, valid = lists(12, 3000, 2, weights=True), lists(5, 2500, 3)
    options = {**OPTIONS, **options, "trees": 3, "leaves": 4, "min_docs": 50, "valid": valid}
    first, second, cpu = (rs.train(train, **{**options, "device": name}) for name in ("cuda", "cuda", "cpu"))
    assert to_text(first) == to_text(second)
    assert np.allclose(first.predict(train), cpu.predict(train), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"init": True}, {"step": "optimal"}, {"algo": "negsgb"}])
def test_a_run_is_resumed_as_if_it_had_never_stopped(options: dict, tmp_path: Path) -> None:
    data = lists(8, 600, 4)
    given = {**OPTIONS, "algo": "selgb", **options}
    if given.pop("init", False):
        given["init"] = rs.train(data, **{**OPTIONS, "trees": 2})
    whole = rs.train(data, **given)
    rs.train(data, checkpoint=tmp_path, **{**given, "trees": 3})
    resumed = rs.train(data, checkpoint=tmp_path, resume=True, **given)
    assert np.array_equal(whole.leaf_values, resumed.leaf_values)
    assert np.array_equal(whole.threshold, resumed.threshold)


@pytest.mark.parametrize("row_fraction", [1.0, 0.7])
@pytest.mark.parametrize("name", checks.SELECTIONS)
def test_rows_that_are_selected_are_the_cpus(name: str, row_fraction: float) -> None:
    data = bin_data(lists(12, 3000, 8, weights=True), max_bins=255)
    assert checks.same_selection(data, selection=name, row_fraction=row_fraction, **checks.SELECTIONS[name])


@pytest.mark.parametrize("size", [60, 900, 9000])
@pytest.mark.parametrize("name", checks.OBJECTIVES)
def test_gradients_are_the_cpus_up_to_rounding(name: str, size: int) -> None:
    data = bin_data(lists(9, size, 9, weights=True), max_bins=255)
    assert checks.same_gradients(data, **{"objective": name, **checks.OBJECTIVES[name]})


@pytest.mark.parametrize(
    "options", [{"algo": "selgb", "negatives": 0.1}, {"algo": "sieve", "selection": "goss"}, {"row_fraction": 0.3}]
)
def test_bins_that_do_not_fit_are_streamed(options: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bins, "STAGED", 40 * 1000)  # several parts
    train, valid = lists(20, 900, 10, weights=True), lists(8, 400, 11)
    given = {**OPTIONS, "algo": "lambdamart", **options, "valid": valid}
    whole = rs.train(train, **given)
    limit = checks.least_memory(train, Params(**{**OPTIONS, "algo": "lambdamart", **options}))
    assert to_text(rs.train(train, memory=str(limit + (1 << 19)), **given)) == to_text(whole)


def test_custom_rules_get_arrays_of_the_host() -> None:
    data = lists(8, 600, 5)

    def every_third(view: Any) -> np.ndarray:
        return np.arange(0, view.lists.n_docs, 3)

    def residuals(labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return labels - scores, np.ones(len(scores))

    options = {**OPTIONS, "selection": every_third, "objective": residuals}
    cuda, cpu = (rs.train(data, **{**options, "device": name}) for name in ("cuda", "cpu"))
    assert np.array_equal(cuda.threshold, cpu.threshold)
    assert np.array_equal(cuda.leaf_values, cpu.leaf_values)


class OnlyDlpack:
    """An array on the GPU that has DLPack alone."""

    def __init__(self, array: Any) -> None:
        self._array = array
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_documents_on_the_gpu_are_scored_without_a_copy(dtype: Any) -> None:
    data = lists(10, 900, 6)
    model = rs.train(data, **{**OPTIONS, "trees": 40, "leaves": 64, "min_docs": 1})
    model = replace(model, zero_missing=np.arange(len(model.feature)) % 3 == 0)
    documents = np.asarray(data.features, dtype)
    want = model.predict(documents)
    assert np.array_equal(model.predict(documents, device="cuda"), want)
    assert np.array_equal(model.predict(documents, trees=7, device="cuda"), model.predict(documents, trees=7))
    for n in (40, 2000):  # blocks of fewer documents, and of more again
        assert np.array_equal(model.predict(documents[:n], device="cuda"), want[:n])
    given = [device.upload(documents)]
    for name, convert in (("cupy", "asarray"), ("torch", "as_tensor")):
        library = pytest.importorskip(name)
        options = {"device": "cuda"} if name == "torch" else {}
        there = getattr(library, convert)(documents, **options)
        given += [
            there,
            OnlyDlpack(there),
            there.T.contiguous().T if name == "torch" else library.asfortranarray(there),
        ]
    for there in given:
        assert np.array_equal(device.download(model.predict(there, device="cuda")), want)


@pytest.mark.parametrize(
    "options", [{"algo": "lambdamart"}, {"algo": "sieve", "selection": "goss"}, {"algo": "mart", "leaves": 200}]
)
def test_memory_that_is_needed_was_announced(options: dict) -> None:
    """The estimate is above what a run takes, and not by much."""
    from numba import cuda

    from ranksieve.boosting.gpu.backend import needed_bytes

    data = bin_data(lists(300, 4000, 7), max_bins=255)
    options = {**OPTIONS, **options, "trees": 3}
    taken: list[int] = []
    before = device.free_memory()
    rs.train(data, callbacks=[lambda _: taken.append(before - cuda.current_context().get_memory_info()[0])], **options)
    announced = needed_bytes(data, Params(**options), is_trained_on=True)
    assert taken[-1] <= announced <= 1.5 * taken[-1] + (64 << 20)

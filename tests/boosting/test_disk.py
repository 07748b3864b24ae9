"""Training on bins in a file: the trees of training in memory, bit for bit."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numba import config, typeof

import ranksieve as rs
from ranksieve.boosting.disk_grower import DiskGrower
from ranksieve.boosting.disk_scores import DiskScores
from ranksieve.boosting.disk_training import passes_per_tree, store_of
from ranksieve.boosting.scores import NO_MARKS, NO_ROWS, Choice, ChoiceRequest, Scores, all_waiting
from ranksieve.boosting.selections.top import TopNegatives
from ranksieve.boosting.tree import to_trees
from ranksieve.data.bin_store import BinStore
from ranksieve.data.binned import Binned, bin_data
from ranksieve.data.disk_rows import SPARE_SHARE, DiskRows, _lowest_of_largest
from ranksieve.data.lists import starts_of
from ranksieve.data.negatives import Negatives
from ranksieve.errors import ParameterError
from ranksieve.forest.forest import LEAF_ARRAYS, SPLIT_ARRAYS
from ranksieve.kernels.lazy_scores import EligibleRows
from ranksieve.kernels.row_slots import N_USED, REQUESTED
from ranksieve.params import Params
from samples import small_dataset

MORE = {"max_bins": 32, "trees": 9, "leaves": 7, "min_docs": 3, "learning_rate": 0.3, "min_negatives": 2, "threads": 2}
PASSES = Path(__file__).parents[2] / "benchmarks" / "results" / "disk_passes.json"
MANY, FEW = 150, 40  # rows in memory, of the 500 below: those of a selection, and fewer


def in_file(data, room: int, memory: str = "5K") -> Binned:
    """Bins in a file with so many rows in memory."""
    store = BinStore(memory, keep=False)
    store.rows_in_memory = lambda file: room
    return bin_data(data, max_bins=32, store=store)


def same(a: rs.Forest, b: rs.Forest) -> None:
    for name in (*SPLIT_ARRAYS, *LEAF_ARRAYS, "split_offsets", "leaf_offsets", "weights"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert a.info["best_score"] == b.info["best_score"]


@pytest.mark.parametrize(
    "params",
    [
        {"negatives": 0.1},
        {"negatives": 0.3, "every": 3, "row_fraction": 0.6},
        {"algo": "lambdamart"},
        {"algo": "lambdamart", "collapse": 0.2, "features": "1-3,7", "feature_fraction": 0.5},
        {"algo": "mart", "gain": "variance", "max_depth": 3},
        {"algo": "negsgb", "negatives": 0.1},
        {"algo": "sieve"},
        {"selection": "top+bottom", "negatives": 0.1},
        {"selection": "goss", "negatives": 0.1},
        {"bag": 2, "negatives": 0.1},
        {"step": "optimal", "negatives": 0.1},
        {"negatives": 0.1, "monotone": "1:+1"},
    ],
    ids=str,
)
@pytest.mark.parametrize("room", [MANY, FEW], ids=["many", "few"])
def test_trees_are_those_of_bins_in_memory(small_memory, data, params, room):
    params = {"algo": "selgb", **MORE, **params}
    valid = small_dataset(9, seed=4)
    binned = in_file(data, room)
    assert binned.disk is not None
    same(rs.train(binned, valid=valid, **params), rs.train(data, valid=valid, **params))


@pytest.mark.parametrize("factor", [1.0, 0.5], ids=["grades", "fractions"])
def test_functions_of_the_user_see_the_same_labels(small_memory, data, factor):
    """Labels of bins in a file take one byte where they can; what computes with them gets numbers as usual."""
    lists = replace(data.lists, stored_labels=(factor * data.labels).astype(np.float32))
    data, seen = replace(data, lists=lists), []

    def selection(view):
        seen.append(view.lists.labels.dtype)
        return np.flatnonzero(-view.lists.labels - view.scores.all() < 0.05)

    def objective(labels, scores, offsets):
        seen.append(labels.dtype)
        return (labels - 1) - scores, np.ones(len(labels))

    params = {"selection": selection, "objective": objective, **MORE}
    del params["min_negatives"]
    same(rs.train(in_file(data, MANY), **params), rs.train(data, **params))
    assert set(seen) == {np.dtype(np.float32)}


def test_validation_bins_can_be_in_a_file(small_memory, data):
    binned, valid = in_file(data, MANY), small_dataset(9, seed=4)
    store = BinStore("5K", keep=False)
    store.rows_in_memory = lambda file: FEW
    valid_bins = bin_data(valid, binning=binned.binning, store=store)
    assert valid_bins.disk is not None
    same(rs.train(binned, valid=valid_bins, negatives=0.1, **MORE), rs.train(data, valid=valid, negatives=0.1, **MORE))


def test_a_limit_of_memory_is_a_parameter(small_memory, data, tmp_path, caplog):
    rs.io.write_parquet(data, tmp_path / "train.parquet")
    path = tmp_path / "train.parquet"
    model = rs.train(path, memory="5K", negatives=0.1, **MORE)
    assert (tmp_path / "train.parquet.bins").exists() and "are kept in" in caplog.text
    same(model, rs.train(path, negatives=0.1, **MORE))
    assert not {"memory", "bin_folder", "keep_bins"} & set(model.info["params"])
    rs.train(path, memory="5K", keep_bins=False, **MORE)
    assert [one.name for one in tmp_path.iterdir()] == ["train.parquet"]
    rs.train(path, memory="5K", bin_folder=str(tmp_path), **MORE)
    assert len(list(tmp_path.glob("train.parquet.*.bins"))) == 1


def test_the_estimator_has_the_parameter(small_memory, data, caplog):
    X, y, qid = np.asarray(data.features), data.labels, np.repeat(np.arange(data.n_queries), data.lists.sizes)
    ranker = rs.Ranker(memory="5K", negatives=0.1, **MORE).fit(X, y, qid=qid)
    assert "during the training they are in" in caplog.text
    same(ranker.model_, rs.train(data, negatives=0.1, **MORE))


def test_training_continues_from_a_checkpoint(small_memory, data, tmp_path):
    rs.io.write_parquet(data, tmp_path / "train.parquet")
    params = {**MORE, "negatives": 0.1, "checkpoint": tmp_path / "saved"}
    rs.train(tmp_path / "train.parquet", memory="5K", **{**params, "trees": 4})
    rs.train(tmp_path / "train.parquet", memory="6K", resume=True, **{**params, "trees": 6})
    resumed = rs.train(tmp_path / "train.parquet", resume=True, **params)  # with bins in memory
    same(resumed, rs.train(data, negatives=0.1, **MORE))


def test_a_start_from_a_model_selects_at_once(small_memory, data):
    base = rs.train(data, **{**MORE, "trees": 3})
    binned = in_file(data, MANY)
    same(
        rs.train(binned, init=base, negatives=0.1, **MORE),
        rs.train(bin_data(data, max_bins=32), init=base, negatives=0.1, **MORE),
    )


def test_what_needs_bins_in_memory_refuses_a_limit(data):
    with pytest.raises(ParameterError, match=r"memory='4G' does not work with .*, which needs all bins in memory"):
        rs.train(data, memory="4G", algo="oblivious-lambdamart")


def test_without_a_gpu_the_device_auto_takes_a_limit(data, monkeypatch):
    monkeypatch.setattr("ranksieve.cuda.device.missing", lambda: "no GPU")
    store = store_of(Params(device="auto", memory="4G", bag=3))
    assert store is not None and store.forests == 3


def test_other_rankers_do_not_use_the_limit(data):
    with pytest.raises(ParameterError, match="memory is not used by algo='mcrank'"):
        rs.train(data, memory="4G", algo="mcrank")


def test_wrong_sizes_are_refused(data):
    with pytest.raises(ParameterError, match=r"memory is 'much'; expected a size such as 4G or 800M, or auto"):
        rs.train(data, memory="much")


def test_lambdamart_says_how_long_a_tree_takes(small_memory, data, caplog):
    for room, times in ((MANY, 3), (FEW, 4)):  # levels of 7 leaves, and half of their number
        caplog.clear()
        rs.train(in_file(data, room), algo="lambdamart", **{**MORE, "trees": 1})
        assert re.search(
            rf"every tree reads the [\d.]+ kB of bins about {times} times, in about 0\.\d\d s; ", caplog.text
        )


def test_the_estimated_passes_are_about_those_measured():
    for row in json.loads(PASSES.read_text())["rows"]:
        passes = passes_per_tree(row["leaves"], (1.0 - SPARE_SHARE) * row["share of rows in memory"])
        assert passes == row["estimate"]
        assert 0.6 < passes / row["times the file is read per tree, mean"] < 1.5


def test_a_selection_that_does_not_fit_into_memory_is_reported_once(small_memory, data, caplog):
    rs.train(in_file(data, FEW), negatives=0.3, **MORE)
    assert (
        len(re.findall(r"the \d+ training rows of a tree do not fit into memory, which has room for 37;", caplog.text))
        == 1
    )


def test_the_file_is_read_less_than_once_for_each_tree(small_memory):
    data = small_dataset(12, seed=2, most=400)
    binned = in_file(data, 2 * len(data.labels) // 7, "20K")  # an eighth of these rows for the copies of training rows
    file, read = binned.disk.file, []
    params = {**MORE, "trees": 40, "negatives": 0.03, "learning_rate": 0.05}
    rs.train(binned, callbacks=[lambda record: read.append(file.bytes_read / file.n_bytes)], **params)
    assert read[-1] - read[0] < 0.6 * (len(read) - 1)


def test_scores_are_those_of_bins_in_memory(small_memory, data):
    """Scores of all, of some, and the best of each query, in any order, after any number of trees."""
    binned = bin_data(data, max_bins=32)
    trees = to_trees(rs.train(binned, algo="lambdamart", **{**MORE, "trees": 12}), binned.binning)
    on_disk = in_file(data, FEW)
    a, b = Scores(binned), DiskScores(on_disk)
    rng = np.random.default_rng(0)
    counts, last = np.minimum(data.lists.sizes, 3), [None, None]
    for tree in trees:
        a.add(tree)
        b.add(tree)
        rows = np.flatnonzero(rng.random(data.n_docs) < 0.05).astype(np.int32)
        if rng.random() < 0.5:
            np.testing.assert_array_equal(a.at(rows), b.at(rows))
        if rng.random() < 0.7:
            last = [s.choose(counts, counts, last=one) for s, one in zip((a, b), last, strict=True)]
            np.testing.assert_array_equal(*(one.rows for one in last))
    np.testing.assert_array_equal(a.all(), b.all())


def test_only_rows_that_may_be_chosen_are_requested(small_memory, data):
    """The best rows in memory, scored, say how high others would have to score; the last choice alone says less."""
    binned = bin_data(data, max_bins=32)
    trees = to_trees(rs.train(binned, algo="lambdamart", **{**MORE, "trees": 5}), binned.binning)
    exact, scores = Scores(binned), DiskScores(in_file(data, 250))
    counts, offsets, rng = np.minimum(data.lists.sizes, 3), data.lists.offsets, np.random.default_rng(3)
    for tree in trees[:4]:
        exact.add(tree), scores.add(tree)
    before = scores.all().copy()
    last = scores.choose(counts, counts).rows
    scores._rows.refill(np.union1d(last, np.flatnonzero(rng.random(data.n_docs) < 0.3)).astype(np.int32))
    in_memory = scores._rows.slots >= 0
    exact.add(trees[4]), scores.add(trees[4])
    choice, bound = Choice(last.copy(), starts_of(counts), counts.copy()), before + trees[4].leaf_values.max()
    lists = offsets, np.full(data.n_queries, np.inf), counts, counts, choice.starts
    scores._improve(choice, ChoiceRequest(EligibleRows(NO_ROWS, NO_MARKS), lists, False), all_waiting(data.n_queries))
    requested = scores._rows.slots == REQUESTED
    assert requested.any() and not (requested & in_memory).any()
    for q, count in enumerate(counts):
        part = slice(offsets[q], offsets[q + 1])
        floor = np.sort(exact.all()[part][in_memory[part]])[-count]
        away = bound[part][~in_memory[part]]
        assert (requested[part][~in_memory[part]] >= (away >= floor)).all()
        assert (requested[part][~in_memory[part]] <= (away >= floor - 1e-4)).all()


def test_copies_of_training_rows_take_slots(small_memory, data):
    """As many slots stay unused, up to an eighth; a selection of which fewer are left still fits."""
    for n_rows, n_unused in ((5, 5), (60, 12), (90, 10)):
        disk: DiskRows = in_file(data, 100).disk
        rows = np.arange(n_rows, dtype=np.int32)
        disk.take(rows)
        disk.refill(rows, None, lambda first, last: np.zeros(last - first))
        assert (disk.slots[rows] >= 0).all() and disk.slots.max() < 100 - n_unused


def test_gradients_of_training_rows_take_slots_before_memory_is_filled(small_memory, data, monkeypatch):
    """Two rows of 16 bytes with 24 bytes more each take five slots, which are never used."""
    monkeypatch.setattr("ranksieve.data.disk_rows.TAKEN_BYTES", 24)
    disk: DiskRows = in_file(data, 100).disk
    disk.refill(np.array([3, 300], np.int32), None, lambda first, last: np.zeros(last - first))
    assert disk.file.width == 16 and disk._slots.state[N_USED] <= int(0.9375 * 95) == disk.room
    disk.take(np.array([3, 300], np.int32))
    assert disk.room == int(0.9375 * 95)


def test_a_selection_fits_after_smaller_ones_were_copied(small_memory, data):
    disk: DiskRows = in_file(data, 100).disk
    for n_rows in (40, 84, 93, 88, 93):
        rows = np.arange(n_rows, 0, -1, dtype=np.int32)[::-1] + np.int32(n_rows % 7)
        assert disk.fits(n_rows)
        assert (disk.take(rows) == disk.file.take(rows)).all()
        disk.refill(rows, None, lambda first, last: np.zeros(last - first))
        assert (disk.slots[rows] >= 0).all() and len(np.unique(disk.slots[disk.slots >= 0])) == (disk.slots >= 0).sum()
        assert disk.slots.max() < 100
    assert not disk.fits(94)


def after(scores: Scores, n_trees: int) -> Scores:
    """Scores as if so many trees of one leaf, which add nothing, had been added to all documents."""
    sizes = {"_leaf_values": 1, "_split_offsets": 1, "_depths": 1, "_ceilings": 1, "_negated_ceilings": 1}
    for name, size in (sizes | {"_tests": 2, "_children": 4}).items():
        setattr(scores, name, np.zeros(size * 2 * n_trees, getattr(scores, name).dtype))
    scores._leaf_offsets = np.arange(2 * n_trees)
    scores._n_trees = scores._n_scored = n_trees
    return scores


def test_more_trees_than_16_bits_can_count(small_memory, data):
    binned = bin_data(data, max_bins=32)
    trees = to_trees(rs.train(binned, algo="lambdamart", **{**MORE, "trees": 12}), binned.binning)
    few = Scores(binned)
    systems = [after(Scores(binned), 65_530), after(DiskScores(in_file(data, FEW)), 65_530)]
    rng = np.random.default_rng(0)
    for number, tree in enumerate(trees, start=1):
        few.add(tree)
        rows = np.flatnonzero(rng.random(data.n_docs) < 0.05).astype(np.int32)
        for scores in systems:
            scores.add(tree)
            np.testing.assert_array_equal(scores.at(rows), few.at(rows))
            assert scores._done.dtype == (np.uint16 if number <= 5 else np.int32)
            assert (scores._done >= 65_530).all()
    for scores in systems:
        np.testing.assert_array_equal(scores.all(), few.all())


def test_negatives_are_candidates_by_their_labels(small_memory, data):
    """The negatives with the highest scores are chosen, or those with the lowest."""
    binned = bin_data(data, max_bins=32)
    trees = to_trees(rs.train(binned, algo="lambdamart", **{**MORE, "trees": 6}), binned.binning)
    negatives = Negatives(data.lists)
    counts = negatives.counts(0.2, 1)
    for lowest in (False, True):
        all_scores, systems = Scores(binned), [Scores(binned), DiskScores(in_file(data, FEW))]
        last = [None] * 2
        for tree in trees:
            all_scores.add(tree)
            best = negatives.largest(-all_scores.all() if lowest else all_scores.all(), counts)
            for number, scores in enumerate(systems):
                scores.add(tree)
                last[number] = scores.choose(counts, counts, last=last[number], labels=data.labels, lowest=lowest)
                np.testing.assert_array_equal(last[number].rows, best)


@pytest.mark.parametrize(("factor", "size"), [(1.0, 15), (0.5, 19)], ids=["grades", "fractions"])
def test_a_document_takes_so_many_bytes(small_memory, data, factor, size):
    """A label takes one byte; 4 where labels are fractions, and one more that says whether it is 0."""
    lists = replace(data.lists, stored_labels=(factor * data.labels).astype(np.float32))
    binned, kept = in_file(replace(data, lists=lists), MANY), []

    def selection(view):
        kept.append(view)
        return TopNegatives(negatives=0.1)(view)

    rs.train(binned, selection=selection, **{name: value for name, value in MORE.items() if name != "min_negatives"})
    view = kept[-1]
    scores = view.scores.source
    owners = scores, binned.disk, view.lists, view.negatives, view.training.all_rows
    arrays = {id(one): one for owner in owners for one in vars(owner).values()
              if isinstance(one, np.ndarray) and len(one) == data.n_docs}  # fmt: skip
    assert sum(one.nbytes for one in arrays.values()) == size * data.n_docs
    assert not scores._upper_bounds and "rows" not in vars(view.negatives)


def test_priority_is_the_distance_to_the_lowest_selected_score(small_memory, data):
    """Which is at least the given one, and that of the rows at hand; unknown floors are infinite."""
    scores = DiskScores(in_file(data, FEW))
    scores._all_scores[:] = np.random.default_rng(1).normal(size=data.n_docs)
    rows, n = np.flatnonzero(data.labels == 0).astype(np.int32), data.n_queries
    floors, counts = np.linspace(-1.0, 1.0, n), np.arange(n) % 4
    floors[::3] = np.inf
    more = np.full(n, np.inf), counts, counts, starts_of(counts)
    offsets = np.searchsorted(rows, data.lists.offsets)
    by_rows = scores._priority(ChoiceRequest(EligibleRows(rows, NO_MARKS), (offsets, *more), False), floors)
    marks = (data.labels > 0).view(np.uint8)
    by_marks = scores._priority(ChoiceRequest(EligibleRows(NO_ROWS, marks), (data.lists.offsets, *more), False), floors)
    for first, last in ((0, data.n_docs), (0, 5), (13, 200), (199, data.n_docs), (7, 8)):
        expected = np.full(data.n_docs, -np.inf)
        for q, (start, stop) in enumerate(zip(data.lists.offsets[:-1], data.lists.offsets[1:], strict=True)):
            inside = rows[(rows >= max(start, first)) & (rows < min(stop, last))]
            values, k = scores._all_scores[inside], counts[q]
            best = np.sort(values)[-k] if 0 < k <= len(values) else -np.inf if k else np.inf
            expected[inside] = np.minimum(values - max(best, floors[q] if q % 3 else -np.inf), np.finfo(float).max)
        np.testing.assert_array_equal(by_rows(first, last), expected[first:last])
        np.testing.assert_array_equal(by_marks(first, last), expected[first:last])


def test_memory_holds_the_rows_asked_for_and_the_nearest(small_memory, data):
    binned = in_file(data, 80)
    disk: DiskRows = binned.disk
    priority = np.random.default_rng(2).normal(size=data.n_docs)
    rows = np.array([3, 77, 300], np.int32)
    disk.refill(rows, None, lambda first, last: priority[first:last])
    kept = np.flatnonzero(disk.slots >= 0)
    assert set(rows) <= set(kept) and 65 <= len(kept) <= 75
    np.testing.assert_array_equal(disk.bins.bins[disk.slots[kept]], binned.bins[kept])
    others = np.setdiff1d(np.arange(data.n_docs), kept)
    assert priority[np.setdiff1d(kept, rows)].mean() > 1.0 > priority[others].mean()
    more = np.array([4, 78], np.int32)
    assert disk.load(more) and (disk.slots[more] >= 0).all()
    np.testing.assert_array_equal(disk.take(rows), binned.bins[rows])


@given(st.lists(st.tuples(st.sampled_from(["load", "take", "refill", "buffer"]), st.integers(0, 2**32)), max_size=12))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_in_memory_are_always_those_of_the_file(small_memory, data, steps):
    binned = in_file(data, 90)
    disk: DiskRows = binned.disk
    for name, seed in steps:
        rng = np.random.default_rng(seed)
        rows = np.flatnonzero(rng.random(data.n_docs) < 0.1 * rng.random()).astype(np.int32)
        priority = rng.normal(size=data.n_docs)
        if name == "load":
            assert not disk.load(rows) or (disk.slots[rows] >= 0).all()
        elif name == "take":
            np.testing.assert_array_equal(disk.take(rows), binned.bins[rows])
        elif name == "refill":
            disk.refill(rows, None, lambda first, last, priority=priority: priority[first:last])
            assert (disk.slots[rows] >= 0).all()
        else:
            disk.buffer()[:] = 7
        kept = np.flatnonzero(disk.slots >= 0)
        assert len(np.unique(disk.slots[kept])) == len(kept) <= 90
        np.testing.assert_array_equal(disk.bins.bins[disk.slots[kept]], binned.bins[kept])


def test_kernels_compiled_for_training_in_memory_are_used(small_memory, data):
    grower = DiskGrower(in_file(data, MANY), Params(**MORE), threads=1)
    assert typeof(grower._all_columns) == typeof(grower._choose_columns(np.random.default_rng(0)))


def test_the_number_of_threads_does_not_matter(small_memory, data):
    if config.NUMBA_NUM_THREADS < 7:  # a process cannot have more than it started with
        test = f"{__file__}::test_the_number_of_threads_does_not_matter"
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", test]
        environment = {**os.environ, "NUMBA_NUM_THREADS": "7"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
        return
    params = {**MORE, "negatives": 0.1, "gain": "variance"}
    first, *others = (rs.train(in_file(data, MANY), **{**params, "threads": n}) for n in (1, 2, 3, 7))
    for other in others:
        same(first, other)


def test_the_lowest_of_a_share_of_the_values():
    values = np.array([3.0, -np.inf, 5.0, 1.0])
    shares = (-0.1, 0.2, 0.25, 0.6, 0.75, 1.0)
    assert [_lowest_of_largest(values, share) for share in shares] == [np.inf, np.inf, 5.0, 3.0, 1.0, -np.inf]

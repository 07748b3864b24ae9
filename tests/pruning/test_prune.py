"""`prune` and `reweight`: what goes in, what comes out, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.data.binned import bin_data
from ranksieve.errors import DataError, ModelError, ParameterError
from ranksieve.pruning.leaves import find_leaves
from ranksieve.pruning.strategies import STRATEGIES
from ranksieve.pruning.tree_outputs import TreeOutputs
from samples import small_dataset

pytestmark = pytest.mark.filterwarnings("ignore:ndcg@10 on validation lists", "ignore:trees are judged on the training")


@pytest.fixture(scope="module")
def data():
    return small_dataset(12, most=60)


@pytest.fixture(scope="module")
def valid():
    return small_dataset(8, seed=1, most=60)


@pytest.fixture(scope="module")
def forest(data):
    return rs.train(data, algo="lambdamart", trees=12, leaves=6, min_docs=2, learning_rate=0.3)


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_every_strategy_prunes_and_reweights(forest, data, valid, strategy, tmp_path):
    pruned = rs.prune(forest, data, rate=0.5, strategy=strategy, valid=valid, rounds=3)
    facts = pruned.info["pruning"]
    assert pruned.n_trees == len(facts["kept"]) == 6
    assert facts["after"]["train"] == pytest.approx(rs.evaluate(pruned, data).mean(), abs=1e-11)
    assert facts["after"]["valid"] == pytest.approx(rs.evaluate(pruned, valid).mean(), abs=1e-11)
    assert facts["before"]["train"] == pytest.approx(rs.evaluate(forest, data).mean(), abs=1e-11)
    same = forest.take(facts["kept"]).reweighted(np.array(facts["weights"]))
    np.testing.assert_array_equal(same.predict(data), pruned.predict(data))
    pruned.save(tmp_path / "pruned.txt")
    again = rs.load(tmp_path / "pruned.txt")
    np.testing.assert_array_equal(again.predict(data), pruned.predict(data))
    assert again.info["pruning"]["kept"] == facts["kept"]


@pytest.mark.parametrize("strategy", ["quality-loss", "random"])
def test_the_same_pruning_gives_the_same_bytes(forest, data, valid, strategy, tmp_path):
    for name in ("a.txt", "b.txt"):
        pruned = rs.prune(forest, data, rate=0.5, strategy=strategy, valid=valid, rounds=3)
        assert {"leaves", "check"} <= set(pruned.info["phase_seconds"])  # times are not in the file
        pruned.save(tmp_path / name)
    assert (tmp_path / "a.txt").read_bytes() == (tmp_path / "b.txt").read_bytes()
    assert "phase_seconds" not in rs.load(tmp_path / "a.txt").info


def test_without_reweighting_the_weights_stay(forest, data):
    pruned = rs.prune(forest, data, judge_on="train", rate=0.25, reweight=False)
    assert pruned.n_trees == 9 and (pruned.weights == 1).all()


def test_an_own_strategy_is_a_function(forest, data, tmp_path):
    def every_other(outputs, n, rng):
        return np.arange(0, 2 * n, 2)

    pruned = rs.prune(forest, data, judge_on="train", rate=0.5, strategy=every_other, reweight=False)
    assert pruned.info["pruning"]["kept"] == [1, 3, 5, 7, 9, 11]
    (tmp_path / "own.py").write_text(
        "import numpy as np\ndef even(outputs, n, rng):\n    return np.arange(0, 2 * n, 2)\n"
    )
    named = rs.prune(forest, data, judge_on="train", rate=0.5, strategy=f"{tmp_path / 'own.py'}:even", reweight=False)
    assert named.info["pruning"]["kept"] == pruned.info["pruning"]["kept"]
    with pytest.raises(ParameterError, match="expected 6 different numbers from 0 to 11"):
        rs.prune(forest, data, judge_on="train", rate=0.5, strategy=lambda outputs, n, rng: np.zeros(n, int))


def test_any_kind_of_data_and_thread_count_gives_the_same_forest(forest, data, tmp_path):
    options = {"rate": 0.5, "rounds": 3}
    expected = rs.prune(forest, data, judge_on="train", threads=1, **options).info["pruning"]
    rs.io.write_letor(data, tmp_path / "train.txt")
    rs.io.write_parquet(data, tmp_path / "train.parquet")
    rng = np.random.default_rng(0)
    order = rng.permutation(data.n_docs)
    qid = np.repeat(data.query_ids, data.lists.sizes)
    mixed = rs.Dataset.from_arrays(data.features[order], data.labels[order], qid=qid[order])
    binned = bin_data(data)
    for given in (data, tmp_path / "train.parquet", binned):
        found = rs.prune(forest, given, judge_on="train", threads=2, **options).info["pruning"]
        assert (found["kept"], found["weights"], found["after"]) == (
            expected["kept"], expected["weights"], expected["after"],
        )  # fmt: skip
    text = tmp_path / "train.txt"
    np.testing.assert_array_equal(find_leaves(forest, text).numbers, find_leaves(forest, rs.read(text)).numbers)
    rs.io.write_parquet(mixed, tmp_path / "mixed.parquet")
    of_file, of_data = find_leaves(forest, tmp_path / "mixed.parquet"), find_leaves(forest, mixed)
    np.testing.assert_array_equal(of_file.numbers, of_data.numbers)
    np.testing.assert_array_equal(of_file.lists.labels, of_data.lists.labels)


def test_weights_count_in_files_too(forest, data, valid, tmp_path):
    rng = np.random.default_rng(1)
    heavy = rs.Dataset.from_arrays(
        np.nan_to_num(data.features), data.labels, group=data.lists.sizes, weights=rng.random(data.n_docs)
    )
    rs.io.write_letor(heavy, tmp_path / "train.txt")
    rs.io.write_parquet(heavy, tmp_path / "train.parquet")
    expected = rs.prune(forest, heavy, judge_on="train", rate=0.5, rounds=3)
    facts = expected.info["pruning"]
    assert facts["after"]["train"] == pytest.approx(rs.evaluate(expected, heavy, weighted=True).mean(), abs=1e-11)
    for name in ("train.txt", "train.parquet"):
        found = rs.prune(forest, tmp_path / name, judge_on="train", rate=0.5, rounds=3).info["pruning"]
        assert (found["kept"], found["weights"], found["after"]) == (facts["kept"], facts["weights"], facts["after"])


def test_leaf_numbers_take_a_byte_and_are_kept_in_place(forest, data):
    leaves = find_leaves(forest, data)
    assert leaves.numbers.nbytes == data.n_docs * forest.n_trees
    np.testing.assert_array_equal(data.lists.to_user_order(leaves.numbers), forest.predict_leaves(data))
    expected, place = leaves.numbers[:, [1, 4, 7]].copy(), leaves.numbers.ctypes.data
    kept = leaves.keep(np.array([1, 4, 7]))
    np.testing.assert_array_equal(kept.numbers, expected)
    assert kept.numbers.ctypes.data == place and kept.numbers.flags.c_contiguous


def test_trees_of_more_than_256_leaves():
    noise = np.random.default_rng(0).random((600, 3))
    data = rs.Dataset.from_arrays(noise, noise.sum(axis=1), group=[300, 300])
    forest = rs.train(data, algo="mart", trees=3, leaves=400, min_docs=1, l2=0.0)
    leaves = find_leaves(forest, data)
    assert forest.n_leaves.max() > 256 and leaves.numbers.dtype == np.uint16
    outputs = TreeOutputs(forest, leaves, rs.metrics.parse_metric("ndcg@10", gain="linear"))
    expected = rs.evaluate(forest, data, outputs.metric).mean()
    assert outputs.mean(outputs.total()) == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("phase", ["prune", "reweight"])
def test_ctrl_c_keeps_the_best_so_far(forest, data, phase):
    calls = []

    def stop(record):
        if record.phase == phase and record.done > 0:
            calls.append(record)
            if len(calls) == 3:
                raise KeyboardInterrupt

    pruned = rs.prune(forest, data, judge_on="train", rate=0.75, callbacks=[stop], rounds=10)
    facts = pruned.info["pruning"]
    assert facts["interrupted"] == phase
    assert pruned.n_trees == (12 - 3 if phase == "prune" else 3)
    assert facts["after"]["train"] == pytest.approx(rs.evaluate(pruned, data).mean(), abs=1e-11)


def test_callbacks_hear_of_every_phase(forest, data, valid):
    records = []
    rs.prune(forest, data, judge_on="train", rate=0.5, valid=valid, callbacks=[records.append], rounds=3)
    assert [r.phase for r in records if r.done == 0 and r.value is None] == ["leaves", "prune", "reweight"]
    pruning = [r for r in records if r.phase == "prune" and r.done]
    assert [r.done for r in pruning] == [i / 6 for i in range(1, 7)]
    assert pruning[-1].seconds_left == 0 and pruning[1].seconds_left > 0 and pruning[0].seconds_left is None
    assert all(r.best_valid is not None for r in records if r.phase == "reweight" and r.value is not None)


def test_pruning_a_lightgbm_model(data, tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    train = lightgbm.Dataset(np.asarray(data.features), data.labels, group=data.lists.sizes)
    params = {"objective": "lambdarank", "num_leaves": 5, "min_data_in_leaf": 2, "verbose": -1, "num_threads": 1}
    lightgbm.train(params, train, 8).save_model(tmp_path / "theirs.txt")
    pruned = rs.prune(tmp_path / "theirs.txt", data, judge_on="train", rate=0.5, rounds=2)
    assert pruned.n_trees == 4
    pruned.save(tmp_path / "pruned.txt")
    theirs = lightgbm.Booster(model_file=tmp_path / "pruned.txt").predict(np.asarray(data.features))
    np.testing.assert_array_equal(theirs, pruned.predict(data))
    named = rs.Dataset.from_arrays(data.features, data.labels, group=data.lists.sizes).with_features(
        [f"own {i}" for i in range(data.n_features)]
    )  # of a model without names features pass by number
    again = rs.prune(tmp_path / "theirs.txt", named, judge_on="train", rate=0.5, rounds=2)
    np.testing.assert_array_equal(again.weights, pruned.weights)


@pytest.mark.parametrize("size", [1, 4, 11])
def test_a_size_is_the_rate_that_keeps_as_many(forest, data, size):
    options = {"judge_on": "train", "strategy": "last", "reweight": False}
    by_size, by_rate = (
        rs.prune(forest, data, size=size, **options),
        rs.prune(forest, data, rate=1 - size / 12, **options),
    )
    assert by_size.n_trees == size and np.array_equal(by_size.weights, by_rate.weights)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "rate and size are not given"),
        ({"rate": 0.5, "size": 3}, "rate and size are both given"),
        ({"size": 0}, "size is 0; expected an integer from 1"),
        ({"size": 2.5}, "size is 2.5; expected an integer from 1"),
        ({"size": 12}, "size is 12, but the model has 12 trees; give a number from 1 to 11"),
    ],
)
def test_a_size_that_cannot_be_kept_is_refused(forest, data, given, message):
    with pytest.raises(ParameterError, match=message):
        rs.prune(forest, data, judge_on="train", **given)


@pytest.mark.parametrize("rate", [0, 1, -0.5, 2.0, "half", True, float("nan")])
def test_a_rate_outside_0_and_1_is_refused(forest, data, rate):
    with pytest.raises(ParameterError, match=r"expected the share of the trees to remove, between 0 and 1"):
        rs.prune(forest, data, judge_on="train", rate=rate)


def test_what_cannot_be_pruned_is_refused(forest, data, tmp_path):
    with pytest.raises(ModelError, match="the model has 1 tree; pruning needs at least two"):
        rs.prune(forest.first(1), data, judge_on="train", rate=0.5)
    with pytest.raises(ParameterError, match=r"rate 0.05 of 12 trees is less than one tree; use at least 0.0833"):
        rs.prune(forest, data, judge_on="train", rate=0.05)
    with pytest.raises(ParameterError, match=r"strategy is 'lsat'; did you mean 'last'\? known: last, low-weights"):
        rs.prune(forest, data, judge_on="train", rate=0.5, strategy="lsat")
    with pytest.raises(ParameterError, match="reweight has no option 'fallback'"):
        rs.pruning.reweight(forest, data, judge_on="train", fallback=False)
    with pytest.raises(ParameterError, match="prune has no option 'sample'"):
        rs.prune(forest, data, judge_on="train", rate=0.5, sample=3)
    with pytest.raises(ParameterError, match=r"window is 0.0; expected a number above 0"):
        rs.pruning.reweight(forest, data, window=0)
    negatives = rs.Dataset.from_arrays(data.features, np.zeros(data.n_docs), group=data.lists.sizes)
    with pytest.raises(DataError, match="ndcg@10 is undefined because no query has a positive document"):
        rs.prune(forest, valid=negatives, rate=0.5)
    narrow = rs.Dataset.from_arrays(data.features[:, :3], data.labels, group=data.lists.sizes)
    with pytest.raises(DataError, match="3 features; expected 7, as in training"):
        rs.prune(forest, valid=narrow, rate=0.5)
    rs.io.write_parquet(narrow, tmp_path / "narrow.parquet")
    with pytest.raises(DataError, match="3 features"):
        rs.prune(forest, valid=tmp_path / "narrow.parquet", rate=0.5)
    with pytest.raises(DataError, match="the data is int"):
        rs.prune(forest, valid=5, rate=0.5)


@pytest.mark.parametrize("format", ["xgboost", "ranklib", "quickrank"])
def test_models_of_other_libraries(format, tmp_path):
    data = small_dataset(12, most=60)
    plain = rs.Dataset.from_arrays(np.nan_to_num(data.features), data.labels, group=data.lists.sizes)
    forest = rs.train(plain, algo="lambdamart", trees=8, leaves=4, min_docs=2, learning_rate=0.3)
    path = tmp_path / "theirs"
    forest.save(path, format=format, missing="never", nearest=True)
    ours, theirs = (rs.prune(model, plain, judge_on="train", rate=0.5, reweight=False) for model in (forest, path))
    assert theirs.info["pruning"]["kept"] == ours.info["pruning"]["kept"]
    np.testing.assert_allclose(theirs.predict(plain), ours.predict(plain), rtol=1e-5, atol=1e-7)

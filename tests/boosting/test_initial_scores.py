"""Starting from a model, a feature, a ranker or scores."""

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.boosting.callbacks import Record
from ranksieve.boosting.job import TrainingJob
from ranksieve.boosting.train_forest import train_forest
from ranksieve.data.binned import bin_data
from ranksieve.errors import DataError, ModelError, ParameterError
from ranksieve.forest.formats.lightgbm_writer import to_text
from ranksieve.models.blend import Blend
from ranksieve.models.linear import one_feature
from samples import small_dataset

SMALL = {"algo": "lambdamart", "trees": 8, "leaves": 6, "min_docs": 3, "learning_rate": 0.2}


@pytest.fixture
def background():
    return rs.train(small_dataset(seed=8), **SMALL)


def named(data, names=None, order=slice(None)):
    names = names or [f"x{i}" for i in range(data.n_features)]
    features = np.nan_to_num(data.features)[:, order]
    return rs.Dataset.from_arrays(features, data.labels, group=data.lists.sizes).with_features(names[order])


def test_base_and_new_trees_are_one_model_file(tmp_path, data, background):
    background.save(tmp_path / "background.txt")
    model = rs.train(data, init=tmp_path / "background.txt", **SMALL)
    assert model.n_trees == 16
    assert model.info["init"] == {"model": str(tmp_path / "background.txt"), "trees": 8, "score": None}
    np.testing.assert_array_equal(model.predict(data, trees=8), background.predict(data))
    model.save(tmp_path / "adapted.txt")
    np.testing.assert_array_equal(rs.load(tmp_path / "adapted.txt").predict(data), model.predict(data))
    assert rs.evaluate(model, data).mean() > rs.evaluate(background, data).mean()


def test_every_way_of_naming_the_base_gives_the_same_trees(tmp_path, data, background):
    background.save(tmp_path / "background.txt")
    rs.io.write_parquet(data, tmp_path / "train.parquet")
    whole = rs.train(data, init=background, **SMALL)
    estimator = rs.Ranker(**SMALL).fit(data.features, data.labels, group=data.lists.sizes)
    estimator.model_ = background
    assert to_text(rs.train(data, init=estimator, **SMALL)) == to_text(whole)
    streamed = rs.train(tmp_path / "train.parquet", init=str(tmp_path / "background.txt"), **SMALL)
    alone = rs.train(data, init=background.predict(data), **SMALL)
    assert alone.n_trees == 8
    np.testing.assert_array_equal(streamed.leaf_values, whole.leaf_values)
    np.testing.assert_array_equal(whole.leaf_values[whole.leaf_offsets[8] :], alone.leaf_values)


def test_going_on_from_a_model_equals_never_having_stopped(data):
    """The scores of a base, and nothing else of it, decide the trees that follow."""
    binned = bin_data(data)
    whole = rs.train(binned, **dict(SMALL, trees=12))
    first = rs.train(binned, **dict(SMALL, trees=5))
    for given in (binned, data):
        both = rs.train(given, init=first, **dict(SMALL, trees=7))
        np.testing.assert_array_equal(both.leaf_values, whole.leaf_values)
        np.testing.assert_array_equal(both.threshold, whole.threshold)


def test_validation_starts_from_the_base_too(data, background):
    valid = small_dataset(seed=5)
    model = rs.train(data, valid=valid, init=background, early_stopping=0, **SMALL)
    assert model.info["init"]["score"] == pytest.approx(rs.evaluate(background, valid).mean(), abs=1e-12)
    assert model.evals_result_["valid"]["ndcg@10"][-1] == pytest.approx(rs.evaluate(model, valid).mean(), abs=1e-12)
    scores = {"train": background.predict(data), "valid": background.predict(valid)}
    same = rs.train(data, valid=valid, init=scores, early_stopping=0, **SMALL)
    assert same.evals_result_ == model.evals_result_


def test_trees_that_only_harm_the_base_are_not_kept(data, background):
    valid = small_dataset(seed=8)  # what the base was trained on
    scores = {"train": -1.0 * data.labels, "valid": 100.0 * valid.labels}
    model = rs.train(data, valid=valid, init=scores, early_stopping=3, **SMALL)
    assert (model.n_trees, model.info["best_iteration"], model.info["best_score"]) == (0, 0, 1.0)
    assert len(model.evals_result_["valid"]["ndcg@10"]) == 3


def test_a_feature_or_any_ranker_stays_beneath_the_trees(data):
    lists = named(data)
    model = train_forest(TrainingJob(lists, rs.params.Params(**SMALL), init="x2"))
    assert isinstance(model, Blend)
    expected = np.nan_to_num(data.features)[:, 2] + model.models[1].predict(lists)
    np.testing.assert_array_equal(model.predict(lists), expected)
    assert rs.evaluate(model, lists).mean() > rs.evaluate(one_feature(2, lists.feature_names), lists).mean()

    class Linear:
        def predict(self, X):
            return X[:, 2].astype(float)

    ranker = train_forest(TrainingJob(lists, rs.params.Params(**SMALL), init=Linear()))
    np.testing.assert_array_equal(ranker.models[1].leaf_values, model.models[1].leaf_values)


def test_rows_in_any_order_start_from_their_own_scores(data, background):
    mixed = np.random.default_rng(4).permutation(data.n_docs)
    qid = np.repeat(np.arange(data.n_queries), data.lists.sizes)
    shuffled = rs.Dataset.from_arrays(data.features[mixed], data.labels[mixed], qid=qid[mixed])
    by_scores = rs.train(shuffled, init=background.predict(shuffled), **SMALL)
    by_model = rs.train(shuffled, init=background, **SMALL)
    np.testing.assert_array_equal(by_model.leaf_values[by_model.leaf_offsets[8] :], by_scores.leaf_values)


def test_a_selection_uses_the_base_from_the_first_tree(data, background):
    calls = []

    def select(view):
        calls.append((view.step, view.scores.all().copy()))

    rs.train(data, selection=select, init=background, every=5, **SMALL)
    assert [step for step, _ in calls] == [0, 5]
    np.testing.assert_array_equal(calls[0][1], background.predict(data))


@pytest.mark.parametrize("algo", ["selgb", "sgb"])
def test_resuming_goes_on_from_base_and_trees(tmp_path, data, background, algo):
    options = dict(SMALL, algo=algo, negatives=0.3, min_negatives=1, valid=small_dataset(seed=4), init=background)
    whole = rs.train(data, **options)

    class Killed(Exception):
        pass

    def kill(record: Record) -> None:
        if record.step == 5:
            raise Killed

    with pytest.raises(Killed):
        rs.train(data, callbacks=[kill], checkpoint=tmp_path, checkpoint_every=2, **options)
    resumed = rs.train(data, checkpoint=tmp_path, resume=True, **options)
    assert to_text(resumed) == to_text(whole)
    with pytest.raises(ModelError, match="another init"):
        rs.train(data, checkpoint=tmp_path, resume=True, **dict(options, init=whole))


def test_mart_goes_on_with_the_residuals_of_the_base(data):
    model = rs.train(data, init=data.labels.astype(float), **dict(SMALL, algo="mart"))
    np.testing.assert_allclose(model.leaf_values, 0.0, atol=1e-12)


def test_bad_bases(tmp_path, data, background):
    with pytest.raises(DataError, match=r"shape \(3,\)"):
        rs.train(data, init=[1.0, 2.0, 3.0], **SMALL)
    with pytest.raises(DataError, match="document 0 of arrays is nan"):
        rs.train(data, init=np.full(data.n_docs, np.nan), **SMALL)
    with pytest.raises(ParameterError, match="no scores of the set 'valid'"):
        rs.train(data, init=np.zeros(data.n_docs), valid=data, **SMALL)
    with pytest.raises(ModelError, match="neither a model file nor a feature"):
        rs.train(data, init="bm25", **SMALL)
    with pytest.raises(ModelError, match=r"does not fit the training data: .* 7 features; expected 5"):
        rs.train(small_dataset(n_features=5), init=background, **SMALL)
    turned = [f"x{i}" for i in range(7)]
    base = rs.train(named(data), **SMALL)
    with pytest.raises(ModelError, match="does not fit"):
        rs.train(named(data, turned, slice(None, None, -1)), init=base, **SMALL)
    with pytest.raises(ParameterError, match="init is float"):
        rs.train(data, init=0.5, **SMALL)
    with pytest.raises(ParameterError, match="first_tree"):
        rs.train(data, init=background, first_tree="labels", **SMALL)
    with pytest.raises(ParameterError, match="only bins were given"):
        rs.train(bin_data(data), init="f2", **SMALL)
    with pytest.raises(ModelError, match="binned already"):
        rs.train(bin_data(data), init=background, **SMALL)


def test_base_and_run_must_read_absent_features_the_same_way(tmp_path, background):
    (tmp_path / "train.txt").write_text("1 qid:1 1:2 7:1\n0 qid:1 2:1 7:3\n")
    background.info["missing"] = "nan"
    with pytest.raises(ParameterError, match="missing='nan'"):
        rs.train(tmp_path / "train.txt", init=background, **SMALL)

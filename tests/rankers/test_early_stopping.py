import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ranksieve as rs
from ranksieve.data.binned import bin_data
from ranksieve.errors import ParameterError
from ranksieve.evaluation.metrics import parse_metric
from ranksieve.params import Params
from ranksieve.rankers import early_stopping
from ranksieve.rankers.early_stopping import best_length, measured_queries

SMALL = {"leaves": 4, "min_docs": 3, "early_stopping": 20, "learning_rate": 0.3}


@pytest.fixture(scope="module")
def lists():
    return rs.synth.cubic(30)


def predictions(model, data):
    return model.predict(data).tolist()


def expected_folds(lists, seed):
    order = np.random.default_rng(seed).permutation(lists.n_queries)
    for part in np.array_split(order, 5):
        rest = np.setdiff1d(order, part)
        yield lists.take_queries(rest), lists.take_queries(np.sort(part))


def naive_best_length(curves, weights, window, multiple):
    reach, length = window // 2, max(map(len, curves))
    best, found = -np.inf, 0
    for n in range(multiple, length + 1, multiple) if length >= multiple else [length]:
        means = []
        for curve in curves:
            place = min(n, len(curve)) - 1
            near = [curve[i] for i in range(place - reach, place + reach + 1) if 0 <= i < len(curve)]
            means.append(sum(near) / len(near))
        value = sum(w * mean for w, mean in zip(weights, means, strict=True)) / sum(weights)
        if value > best + 1e-12:
            best, found = value, n
    return found


@given(
    st.lists(st.lists(st.integers(0, 8), min_size=1, max_size=12), min_size=1, max_size=4),
    st.integers(0, 5),
    st.integers(1, 3),
)
def test_best_length_is_that_of_the_naive_one(curves, window, multiple):
    curves = [[value / 8 for value in curve] for curve in curves]
    weights = list(range(1, len(curves) + 1))
    assert best_length(curves, weights, window, multiple) == naive_best_length(curves, weights, window, multiple)


@pytest.mark.parametrize(("enough", "n_folds"), [(400, 5), (13, 3), (12, 2), (1, 1)])
def test_the_number_of_trees_is_cross_validated(lists, monkeypatch, enough, n_folds):
    monkeypatch.setattr(early_stopping, "ENOUGH", enough)
    curves, sizes = [], []
    for train, valid in list(expected_folds(lists, seed=7))[:n_folds]:
        model = rs.train(train, valid=valid, seed=7, binning=bin_data(lists).binning, **SMALL)
        curves.append(model.info["history"]["valid"]["ndcg@10"])
        sizes.append(valid.n_queries)
    n_trees = best_length(curves, sizes, SMALL["early_stopping"] // 5)
    model = rs.train(lists, seed=7, **SMALL)
    expected = rs.train(lists, seed=7, **SMALL | {"trees": n_trees, "early_stopping": 0})
    assert model.n_trees == n_trees and predictions(model, lists) == predictions(expected, lists)
    facts = model.info["cross_validation"]
    assert facts == facts | {"folds": n_folds, "queries": 6 * n_folds, "rounds": n_trees, "metric": "ndcg@10"}
    values = [curve[min(n_trees, len(curve)) - 1] for curve in curves]
    assert facts["value"] == pytest.approx(np.average(values, weights=sizes), abs=1e-12)
    assert model.info["params"]["trees"] == n_trees and model.info["data"]["queries"] == 30


def test_the_same_model_of_arrays_bins_files_and_tables(lists, tmp_path):
    rs.io.write_parquet(lists, tmp_path / "lists.parquet")
    rs.io.write_letor(lists, tmp_path / "lists.txt")
    table = rs.read(tmp_path / "lists.parquet")
    sources = [lists, tmp_path / "lists.parquet", tmp_path / "lists.txt", table, bin_data(lists)]
    models = [rs.train(data, seed=3, **SMALL) for data in sources]
    assert len({tuple(predictions(model, lists)) for model in models}) == 1
    one = rs.train(lists, seed=3, threads=1, **SMALL)
    assert predictions(one, lists) == predictions(models[0], lists)


@pytest.mark.parametrize("algo", ["mcrank", "lambdarank", "lightgbm", "mart"])
def test_other_algorithms_are_cross_validated_too(lists, algo):
    options = {name: value for name, value in SMALL.items() if algo != "lambdarank" or "l" not in name[:1]}
    if algo == "lambdarank":
        options = {"early_stopping": 5}
    model = rs.train(lists, algo=algo, **options)
    facts = model.info["cross_validation"]
    rounds = "epochs" if algo == "lambdarank" else "trees"
    fixed = {
        rounds: facts["rounds"],
        "early_stopping": 0,
        **{k: v for k, v in options.items() if k != "early_stopping"},
    }
    assert predictions(model, lists) == predictions(rs.train(lists, algo=algo, **fixed), lists)


def test_a_bag_has_as_many_trees_of_each_forest(lists):
    model = rs.train(lists, bag=3, feature_fraction=0.5, **SMALL)
    assert model.n_trees == model.info["cross_validation"]["rounds"] and model.n_trees % 3 == 0


def test_held_out_validation_data_is_a_fifth_of_the_queries(lists):
    order = np.random.default_rng(7).permutation(30)
    in_valid = np.repeat(np.isin(np.arange(30), order[:6]), 50)
    binned = bin_data(lists)
    train, valid = binned.take_rows(np.flatnonzero(~in_valid)), binned.take_rows(np.flatnonzero(in_valid))
    options = {"algo": "xcleaver", "grow": 5, "trees": 10, "early_stopping": 20, "seed": 7}
    expected = rs.train(train, valid=valid, **options)
    model = rs.train(lists, **options)
    assert predictions(model, lists) == predictions(expected, lists) and model.n_trees == expected.n_trees
    assert model.info["held_out_validation"] == {"queries": 6}


def test_bins_of_the_user_are_not_overwritten(lists):
    binned = bin_data(lists)
    before = binned.bins.copy()
    rs.train(binned, seed=7, **SMALL)
    np.testing.assert_array_equal(binned.bins, before)


@given(st.sets(st.integers(0, 29), min_size=1, max_size=29), st.integers(1, 2000))
def test_rows_that_were_kept_in_place_are_put_back(lists, queries, step):
    binned = bin_data(lists)
    rows = np.flatnonzero(np.isin(np.repeat(np.arange(30), 50), list(queries)))
    rest = np.setdiff1d(np.arange(1500), rows)
    before, expected = binned.bins.copy(), binned.take_rows(rest)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ranksieve.data.binned.MOVED_ROWS", step)
        part = binned.take_rows(rows)
        kept = binned.keep_rows(rest)
        np.testing.assert_array_equal(kept.bins, expected.bins)
        np.testing.assert_array_equal(kept.lists.labels, expected.lists.labels)
        binned.put_back(rest, rows, part)
    np.testing.assert_array_equal(binned.bins, before)


def test_only_queries_that_count_are_held_out():
    data = rs.synth.cubic(40)
    labels = data.labels.copy()
    for query in range(28):  # without positives; the other twelve have some
        labels[data.offsets[query] : data.offsets[query + 1]] = 0
    weights = np.ones(data.n_docs)
    weights[data.offsets[39] :] = 0
    sparse = rs.Dataset.from_arrays(data.features, labels, np.repeat(data.query_ids, 50), weights=weights)
    metric = parse_metric("ndcg@10")
    assert measured_queries(sparse.lists, metric).tolist() == list(range(28, 39))
    for seed in range(5):
        model = rs.train(sparse, seed=seed, **SMALL)
        assert model.info["cross_validation"]["queries"] == 11 and model.info["data"]["queries"] == 40


def test_which_parameters_choose_the_number_of_trees():
    assert Params().held_out == Params(leaves=4).held_out == 0.2
    assert Params(trees=10).held_out == Params(early_stopping=0).held_out == Params(valid_fraction=0).held_out == 0
    assert Params(trees=10, early_stopping=5).held_out == 0.2
    assert Params(trees=10, valid_fraction=0.5).held_out == 0.5
    assert Params(algo="lambdarank").held_out == 0.2 and Params(algo="lambdarank", epochs=5).held_out == 0
    assert Params(algo="mcrank").held_out == Params(algo="lightgbm").held_out == Params(algo="xcleaver").held_out == 0.2
    assert Params(algo="ranksvm").held_out == 0
    with pytest.raises(ParameterError, match=r"valid_fraction is 0.8; expected a number in \[0, 0.5\]"):
        Params(valid_fraction=0.8)


def test_models_that_need_lists_have_queries_held_out(lists):
    with pytest.warns(rs.errors.RanksieveWarning, match="first 3 trees are returned"):
        pruned = rs.train(lists, size=3, **SMALL)
    assert pruned.n_trees == 3 and pruned.info["held_out_validation"] == {"queries": 6}
    assert rs.train(lists, algo="xcleaver", grow=5, trees=10, valid_fraction=0.2).info["held_out_validation"] == {
        "queries": 6
    }
    base = rs.train(lists, trees=2, leaves=4, min_docs=3)
    started = rs.train(lists, init=base, **SMALL)
    assert started.info["held_out_validation"] == {"queries": 6} and started.info["init"]["score"] is not None
    with pytest.raises(ParameterError, match="size needs validation data"):
        rs.train(lists, size=3, trees=10, leaves=4)


@pytest.mark.parametrize(
    "given", [{"init": np.zeros(1500)}, {"init": (0.0,) * 1500}, {"init": {"train": [0.0] * 1500}}]
)
def test_scores_of_all_documents_leave_nothing_to_hold_out(lists, given, caplog):
    model = rs.train(lists, trees=2, valid_fraction=0.2, leaves=4, min_docs=3, **given)
    assert model.info["data"]["queries"] == 30 and model.n_trees == 2
    assert "init has a score for every training document, so training does not stop early; give valid" in caplog.text


def test_a_counter_counts_all_documents(lists, caplog):
    counter = rs.callbacks.SelectionCounter()
    options = {"trees": 4, "valid_fraction": 0.2, "leaves": 4, "min_docs": 3}
    model = rs.train(lists, counter=counter, init=rs.train(lists, **options | {"trees": 2}), **options)
    assert model.info["data"]["queries"] == 30 and len(counter.counts) == lists.n_docs
    assert "counter counts every training document, so training does not stop early" in caplog.text


def test_counts_are_those_of_the_model_and_not_of_the_folds(lists):
    counter, alone = rs.callbacks.SelectionCounter(), rs.callbacks.SelectionCounter()
    model = rs.train(lists, counter=counter, **SMALL)
    rs.train(lists, counter=alone, **SMALL | {"trees": model.n_trees, "early_stopping": 0})
    assert counter.n_trees == alone.n_trees
    np.testing.assert_array_equal(counter.counts, alone.counts)


def test_a_handful_of_queries_is_not_divided(caplog):
    model = rs.train(rs.synth.cubic(4), trees=2, valid_fraction=0.2, leaves=4, min_docs=3)
    assert model.info["data"]["queries"] == 4
    assert "only 4 queries can be measured, so training does not stop early; give valid" in caplog.text


def test_data_on_disk_is_not_divided(small_memory, lists, tmp_path, caplog):
    rs.io.write_parquet(lists, tmp_path / "lists.parquet")
    options = {"trees": 3, "leaves": 4, "min_docs": 3}
    model = rs.train(tmp_path / "lists.parquet", valid_fraction=0.2, memory="40K", keep_bins=False, **options)
    assert (
        "no queries are held out of data that does not fit into memory, so training does not stop early; give valid"
        in (caplog.text)
    )
    assert predictions(model, lists) == predictions(rs.train(lists, **options), lists)


def test_what_is_shown_and_logged(lists, caplog):
    options = {"valid_fraction": 0.2, "leaves": 4, "min_docs": 3}
    with caplog.at_level(logging.INFO, logger="ranksieve"):
        base = rs.train(lists, trees=2, **options)
        rs.train(lists, trees=2, init=base, **options)
    assert "the number of trees is chosen by cross-validation on 30 queries, 5 folds; give valid for" in caplog.text
    assert "6 of 30 queries are held out as validation data; give valid for other lists" in caplog.text


def test_callbacks_see_the_model_that_is_returned(lists):
    steps = []
    model = rs.train(lists, callbacks=[lambda record: steps.append(record.step)], **SMALL)
    assert steps == list(range(1, model.n_trees + 1))


def test_interrupted_folds_are_not_a_result(lists, monkeypatch):
    def interrupted(job):
        raise rs.errors.InterruptedTraining(None)

    monkeypatch.setattr("ranksieve.rankers.train.train_forest", interrupted)
    with pytest.raises(KeyboardInterrupt) as raised:
        rs.train(lists, **SMALL)
    assert not isinstance(raised.value, rs.errors.InterruptedTraining)


def test_checkpoints_of_a_cross_validated_model_continue(lists, tmp_path):
    def stop(record):
        if record.step == 5:
            raise KeyboardInterrupt

    whole = rs.train(lists, **SMALL)
    with pytest.raises(rs.errors.InterruptedTraining):
        rs.train(lists, checkpoint=tmp_path / "run", checkpoint_every=1, callbacks=[stop], **SMALL)
    again = rs.train(lists, checkpoint=tmp_path / "run", resume=True, **SMALL)
    assert predictions(again, lists) == predictions(whole, lists)


def test_checkpoints_with_held_out_queries_ask_for_them_again(lists, tmp_path):
    base = rs.train(lists, trees=2, leaves=4, min_docs=3)
    run = {"init": base, "checkpoint": tmp_path / "run"}
    rs.train(lists, **run, **SMALL)
    longer = {name: value for name, value in SMALL.items() if name != "early_stopping"} | {"trees": 1500}
    with pytest.raises(rs.errors.ModelError, match="if queries were held out for early stopping, with valid_fraction"):
        rs.train(lists, resume=True, **run, **longer)
    assert rs.train(lists, resume=True, valid_fraction=0.2, **run, **longer).n_trees > 1


def test_a_cluster_asks_for_validation_data(lists):
    with pytest.raises(ParameterError, match=r"no queries are held out on a cluster; give valid .*, or trees"):
        rs.cluster.train(None, [lists], leaves=4)


def test_the_estimator_is_cross_validated(lists):
    qid = np.repeat(np.arange(30), np.diff(lists.offsets))
    ranker = rs.Ranker(validation_fraction=0.25, **SMALL).fit(lists.features, lists.labels, qid=qid)
    facts = ranker.model_.info["cross_validation"]
    assert facts["folds"] == 4 and ranker.best_iteration_ == facts["rounds"] and ranker.best_score_ == facts["value"]


@pytest.mark.parametrize("algo", ["selgb", "mcrank", "lambdarank", "lightgbm"])
@pytest.mark.parametrize("early_stopping", [0, 3])
def test_the_validation_metric_is_that_of_the_model(lists, algo, early_stopping):
    train, valid = lists.take_queries(np.arange(20)), lists.take_queries(np.arange(20, 30))
    rounds = {"epochs": 12} if algo == "lambdarank" else {"trees": 40, "leaves": 8, "min_docs": 3}
    rate = {} if algo == "lambdarank" else {"learning_rate": 0.5}
    model = rs.train(train, valid=valid, algo=algo, early_stopping=early_stopping, **rounds, **rate)
    assert model.info["best_score"] == pytest.approx(rs.evaluate(model, valid).mean(), abs=1e-9)
    kept = model.info["best_iteration"]
    assert kept == len(model.info["seconds"]) if early_stopping == 0 else kept <= len(model.info["seconds"])


def test_a_pruned_model_has_no_best_tree(lists):
    train, valid = lists.take_queries(np.arange(20)), lists.take_queries(np.arange(20, 30))
    model = rs.train(train, valid=valid, bag=2, size=10, trees=30, leaves=8, min_docs=3)
    assert model.n_trees == 10 and "best_iteration" not in model.info and model.info["history"]


@pytest.mark.parametrize(("n_queries", "share"), [(12, 0.05), (15, 0.05), (60, 0.001)])
def test_folds_have_at_least_two_queries(n_queries, share):
    model = rs.train(rs.synth.cubic(n_queries), valid_fraction=share, **SMALL)
    facts = model.info["cross_validation"]
    assert facts["folds"] == min(20, n_queries // 2) and facts["queries"] == n_queries


def test_lightgbm_without_splits_has_no_curve():
    features = np.ones((120, 2), np.float32)
    data = rs.Dataset.from_arrays(features, np.tile([1.0, 0.0, 0.0, 2.0], 30), group=[10] * 12)
    model = rs.train(data, algo="lightgbm", early_stopping=3)
    assert "cross_validation" not in model.info and model.n_trees <= 1


def test_folds_count_by_the_weights_of_their_queries(lists):
    weights = np.where(np.arange(30) % 3 == 0, 20.0, 0.05)
    weighted = rs.Dataset.from_arrays(
        lists.features, lists.labels, group=lists.lists.sizes, weights=np.repeat(weights, 50)
    )
    curves, sums = [], []
    for train, valid in expected_folds(weighted, seed=1):
        model = rs.train(train, valid=valid, seed=1, binning=bin_data(weighted).binning, **SMALL)
        curves.append(model.info["history"]["valid"]["ndcg@10"])
        sums.append(valid.lists.query_weights.sum())
    facts = rs.train(weighted, seed=1, **SMALL).info["cross_validation"]
    assert facts["rounds"] == best_length(curves, sums, SMALL["early_stopping"] // 5)
    values = [curve[min(facts["rounds"], len(curve)) - 1] for curve in curves]
    assert facts["value"] == pytest.approx(np.average(values, weights=sums), abs=1e-12)


@pytest.mark.parametrize("valid", [[], ()])
def test_an_empty_list_of_validation_data_is_none(lists, valid):
    assert rs.train(lists, valid=valid, **SMALL).info["cross_validation"]["folds"] == 5


@pytest.mark.usefixtures("nothing_registered")
def test_metrics_of_the_user_see_all_labels():
    def of_high_labels(labels, scores, offsets, k):
        highest = np.maximum.reduceat(labels, offsets[:-1])
        return np.where(highest >= 50, 1.0 / (1.0 + np.abs(np.add.reduceat(scores, offsets[:-1]))), np.nan)

    data = rs.synth.cubic(20)
    high = rs.Dataset.from_arrays(data.features, 20.0 * data.labels, group=data.lists.sizes)
    model = rs.train(high, algo="mart", metric=of_high_labels, leaves=4, min_docs=3, early_stopping=5)
    highest = np.maximum.reduceat(high.labels, high.offsets[:-1])
    assert model.info["cross_validation"]["queries"] == (highest >= 50).sum() >= 10


def test_an_occupied_checkpoint_is_refused_before_the_folds(lists, tmp_path, monkeypatch):
    rs.train(lists, trees=2, leaves=4, min_docs=3, checkpoint=tmp_path / "run")
    monkeypatch.setattr("ranksieve.rankers.train.train_forest", lambda job: pytest.fail("a fold is trained"))
    with pytest.raises(ParameterError, match="holds a checkpoint; resume continues from it"):
        rs.train(lists, checkpoint=tmp_path / "run", **SMALL)
    with pytest.raises(ParameterError, match="resume needs a checkpoint folder; give checkpoint"):
        rs.train(lists, resume=True, **SMALL)

"""Training on a cluster gives the model of one machine, bit for bit."""

from __future__ import annotations

import gc
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from distributed import Client

import ranksieve as rs
from ranksieve.cluster.training import EXCHANGE
from ranksieve.cluster.worker_pool import WorkerPool
from ranksieve.errors import ClusterError, DataError, ModelError, ParameterError, TiedScoresWarning
from ranksieve.forest.formats.lightgbm_writer import to_text
from samples import coarse_lists, small_dataset

SMALL = {"trees": 8, "leaves": 6, "min_docs": 3, "learning_rate": 0.2, "negatives": 0.2, "min_negatives": 1}


@pytest.fixture(scope="module")
def valid() -> rs.Dataset:
    return small_dataset(n_queries=7, seed=3)


def some(client, n):
    return sorted(client.nthreads())[:n]


def alike(one, other) -> bool:
    assert one.evals_result_ == other.evals_result_
    return to_text(one) == to_text(other)


@pytest.mark.parametrize("n_workers", [1, 2, 3])
@pytest.mark.parametrize(("algo", "exchange"), [("selgb", "rows"), ("selgb", "histograms"), ("lambdamart", "auto")])
def test_any_number_of_workers_gives_the_model_of_one_machine(client, data, parts, valid, algo, exchange, n_workers):
    one = rs.train(data, valid=valid, algo=algo, **SMALL)
    workers = some(client, n_workers)
    assert alike(
        rs.cluster.train(client, parts, valid=valid, algo=algo, exchange=exchange, workers=workers, **SMALL), one
    )


@pytest.mark.parametrize(
    "options",
    [
        {"algo": "negsgb", "feature_fraction": 0.5},
        {"algo": "selgb", "bag": 3, "trees": 3},
        {"algo": "lambdamart", "bag": 2, "trees": 3, "bag_fraction": 0.6},
        {"algo": "sgb"},
        {"algo": "lambdamart", "row_fraction": 0.5, "objective": "err"},
        {"algo": "mart"},
        {"gain": "newton", "min_hessian": 0.01, "every": 3},
        {"monotone": {"f1": 1, "f2": -1}, "features": "f1,f2,f3", "algo": "lambdamart"},
        {"selection": "progress", "first_tree": "labels"},
        {"selection": "top+random", "metric": "err@5", "max_depth": 3},
    ],
    ids=lambda options: options.get("algo") or options.get("selection") or "newton",
)
def test_all_parameters_give_the_model_of_one_machine(client, data, parts, valid, options):
    options = {**SMALL, **options}
    one = rs.train(data, valid=valid, **options)
    assert alike(rs.cluster.train(client, parts, valid=valid, workers=some(client, 2), **options), one)
    together = rs.cluster.train(client, parts, valid=valid, workers=some(client, 2), exchange="histograms", **options)
    assert alike(together, one)


@pytest.mark.parametrize("options", [{"selection": "gradient", "position_l2": 0.1}, {"algo": "lambdamart"}])
def test_biases_of_positions_are_those_of_one_machine(client, data, valid, options, tmp_path):
    ranks = np.concatenate([np.minimum(np.arange(1, size + 1), 15) for size in data.lists.sizes])
    shown = rs.Dataset.from_arrays(data.features, data.labels, group=data.lists.sizes, positions=ranks)
    parts = [shown.take_queries(queries) for queries in np.split(np.arange(30), [5, 6, 20])]
    base = rs.train(valid, **{**SMALL, "trees": 2})
    options = {**SMALL, **options, "init": base}
    one = rs.train(shown, valid=valid, **options)
    assert len(one.info["position_biases"]) == 16
    assert alike(rs.cluster.train(client, parts, valid=valid, workers=some(client, 2), **options), one)
    rs.cluster.train(client, parts, valid=valid, checkpoint=tmp_path, **{**options, "trees": 3})
    assert alike(rs.cluster.train(client, parts, valid=valid, checkpoint=tmp_path, resume=True, **options), one)
    with pytest.raises(DataError, match="some partitions have positions"):
        rs.cluster.train(client, [parts[0], data.take_queries(range(5, 30))], workers=some(client, 2), **options)


def test_some_workers_send_rows_and_others_keep_them(client, data, monkeypatch):
    """A worker with too many rows sends none; the coordinator's cache of the other worker's rows stays valid."""
    kinds = set()
    reports = WorkerPool.reports

    def recorded(self, *, with_gradients):
        found = reports(self, with_gradients=with_gradients)
        kinds.add(tuple(report.rows is not None for report in found))
        return found

    monkeypatch.setattr(WorkerPool, "reports", recorded)
    monkeypatch.setitem(EXCHANGE, "auto", 148)
    options = {**SMALL, "selection": "adaptive", "margin": 0.05, "min_negatives": 2, "max_negatives": 0.25, "trees": 12}
    model = rs.cluster.train(client, [data], workers=some(client, 2), **options)
    assert alike(model, rs.train(data, **options))
    assert kinds == {(True, True), (False, True), (False, False)}


def test_histograms_of_likely_splits_save_messages(client, data, parts, monkeypatch):
    calls, call = [], WorkerPool.call_or_restart

    def recorded(self, method, *arguments):
        calls.append((method, arguments))
        return call(self, method, *arguments)

    monkeypatch.setattr(WorkerPool, "call_or_restart", recorded)
    options = {"algo": "lambdamart", "trees": 3, "leaves": 20, "min_docs": 2}
    there = rs.cluster.train(client, parts, **options)
    assert alike(rs.train(data, **options), there)
    splits = [arguments for method, arguments in calls if method == "split"]
    n_splits = int((there.n_leaves - 2).sum())  # the last split of a tree needs no histogram
    n_ahead = sum(len(requests) - 1 for _, requests in splits)
    assert 0 < n_splits - len(splits) <= n_ahead


def test_user_functions_weights_and_a_base_model_reach_the_workers(client, data):
    weights = np.random.default_rng(0).random(data.n_docs)
    weighted = rs.Dataset.from_arrays(data.features, data.labels, group=data.lists.sizes, weights=weights)

    def first_ten(view):
        rank = np.arange(view.lists.n_docs) - np.repeat(view.lists.offsets[:-1], view.lists.sizes)
        return np.flatnonzero((view.lists.labels > 0) | (rank < 10))

    def residuals(labels, scores, offsets):
        return labels - scores, np.ones(len(labels))

    base = rs.train(data, trees=3, leaves=4)
    options = {**SMALL, "selection": first_ten, "objective": residuals, "init": base, "every": 2}
    parts = [weighted.take_queries(np.arange(12)), weighted.take_queries(np.arange(12, 30))]
    one = rs.train(weighted, valid={"v": weighted}, **options)
    assert alike(rs.cluster.train(client, parts, valid={"v": parts}, **options), one)


def test_callbacks_early_stopping_and_given_bins(client, data, parts, valid):
    from ranksieve.data.binned import bin_data

    records = []
    options = {**SMALL, "trees": 40, "early_stopping": 4, "binning": bin_data(data, max_bins=16).binning}
    model = rs.cluster.train(client, parts, valid={"v": [valid]}, callbacks=[records.append], **options)
    one = rs.train(data, valid={"v": valid}, **options)
    assert alike(model, one) and len(records) < 40
    assert [record.step for record in records] == list(range(1, len(records) + 1))


@pytest.mark.parametrize("metric", ["ndcg@10", "err@10"])  # err depends on the highest label of all workers
def test_sorted_validation_lists_are_warned_of_as_on_one_machine(client, metric, tmp_path):
    train, valid = (coarse_lists(seed, by_label=True) for seed in (1, 2))
    options = {**SMALL, "trees": 12, "early_stopping": 4, "metric": metric}
    with pytest.warns(TiedScoresWarning, match="sorted by label") as found:
        rs.train(train, valid={"v": valid}, **options)
        parts = [valid.take_queries(queries) for queries in np.split(np.arange(30), [5, 6])]
        for resume in (False, True):  # a run that has ended already is not trained again
            saved = {"checkpoint": tmp_path / "run", "resume": resume}
            rs.cluster.train(client, [train], valid={"v": parts}, **saved, **options)
    assert len(found) == 3 and len({str(one.message) for one in found}) == 1


def test_only_shards_stay_on_workers_while_trees_grow(client, parts, valid):
    def tasks(dask_scheduler) -> set[str]:
        return {str(key) for key in dask_scheduler.tasks if "ranksieve" in str(key)}

    seen: list[set[str]] = []
    gc.disable()  # it would remove references in cycles now and then
    try:
        look = lambda record: seen.append(client.run_on_scheduler(tasks))  # noqa: E731
        rs.cluster.train(client, parts, valid=valid, callbacks=[look], trees=3, leaves=4)
    finally:
        gc.enable()
    assert len(seen) == 3
    assert all(name.startswith("ranksieve-shard-") for names in seen for name in names)


def test_resuming_with_another_number_of_workers(client, data, parts, valid, tmp_path):
    options = {**SMALL, "every": 3, "valid": valid}
    whole = rs.cluster.train(client, parts, **options)
    short = {**options, "trees": 5}
    rs.cluster.train(client, parts, checkpoint=tmp_path, workers=some(client, 3), **short)
    resumed = rs.cluster.train(client, parts, checkpoint=tmp_path, resume=True, workers=some(client, 2), **options)
    assert alike(resumed, whole)
    with pytest.raises(ModelError, match="another leaves"):
        rs.cluster.train(client, parts, checkpoint=tmp_path, resume=True, **{**options, "leaves": 5})
    with pytest.raises(ParameterError, match="holds a checkpoint"):
        rs.cluster.train(client, parts, checkpoint=tmp_path, **options)


def test_resuming_with_other_weights_features_or_start_is_refused(client, data, tmp_path):
    options = {**SMALL, "trees": 3, "checkpoint": tmp_path}
    weighted = replace(data, lists=replace(data.lists, weights=np.ones(data.n_docs, np.float32)))
    bases = [rs.train(data, trees=2, leaves=4, min_docs=3, learning_rate=rate) for rate in (0.1, 0.2)]
    rs.cluster.train(client, weighted, init=bases[0], **options)
    weights = weighted.lists.weights.copy()
    weights[-1] = 2
    heavier = replace(data, lists=replace(data.lists, weights=weights))
    features = data.features.copy()
    features[-1] = features[0]
    changed = replace(weighted, features=features)
    for other in (heavier, changed):
        with pytest.raises(ModelError, match="another training data"):
            rs.cluster.train(client, other, init=bases[0], resume=True, **options)
    with pytest.raises(ModelError, match="another init"):
        rs.cluster.train(client, weighted, init=bases[1], resume=True, **options)
    assert rs.cluster.train(client, weighted, init=bases[0], resume=True, **options).n_trees == 5


def test_predictions_of_partitions(client, data, parts, tmp_path):
    import pyarrow.parquet as pq

    model = rs.train(data, **SMALL)
    scores = rs.cluster.predict(client, model, parts)
    np.testing.assert_array_equal(np.concatenate(scores), model.predict(data))
    model.save(tmp_path / "model.txt")
    files = rs.cluster.predict(client, tmp_path / "model.txt", parts, out=tmp_path / "scores")
    written = [pq.read_table(file)["score"].to_numpy() for file in files]
    np.testing.assert_array_equal(np.concatenate(written), model.predict(data))


def test_what_works_on_one_machine_only_is_refused(client, parts):
    train = partial(rs.cluster.train, valid=parts)
    with pytest.raises(ParameterError, match="goss' compares documents"):
        train(client, parts, selection="goss")
    with pytest.raises(ParameterError, match="algo='ranksvm' trains on one machine only"):
        train(client, parts, algo="ranksvm")
    with pytest.raises(ParameterError, match="exchange is 'up'"):
        train(client, parts, exchange="up")
    with pytest.raises(ClusterError, match="no worker has the address"):
        train(client, parts, workers=["tcp://nowhere"])
    with pytest.raises(ParameterError, match="algo='oblivious-mart' trains on one machine only"):
        train(client, parts, algo="oblivious-mart")
    with pytest.raises(ParameterError, match="step='optimal' works on one machine"):
        train(client, parts, step="optimal")
    with pytest.raises(ParameterError, match="counter works on one machine only"):
        train(client, parts, counter=rs.callbacks.SelectionCounter())
    with pytest.raises(ParameterError, match="array of scores"):
        train(client, parts, init=np.zeros(3), **SMALL)
    with pytest.raises(DataError, match="matches no file"):
        train(client, "nowhere/*.parquet")
    with pytest.raises(DataError, match="no partitions"):
        train(client, [])
    with Client(processes=False, n_workers=0, dashboard_address="127.0.0.1:0") as empty:
        for call in (
            train,
            lambda *given: rs.cluster.predict(given[0], rs.train(rs.synth.cubic(4), **SMALL), given[1]),
        ):
            with pytest.raises(ClusterError, match="no workers; start some"):
                call(empty, parts)

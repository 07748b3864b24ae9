"""LambdaRank: updates follow the λ-gradients, and training keeps the best epoch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.errors import DataError, InterruptedTraining, ModelError, ParameterError
from ranksieve.rankers.lambdarank import NetValidSet, first_net, one_epoch
from rule_samples import lambda_gradients
from samples import small_dataset

PARTS = ("inner", "biases", "outer")


def formula(net, data: rs.Dataset) -> np.ndarray:
    features = net.standard.apply(data.features)
    return np.tanh(features @ net.inner + net.biases) @ net.outer


@pytest.fixture(scope="module")
def data() -> rs.Dataset:
    return small_dataset()


def test_an_update_goes_along_the_gradient_of_the_scores(data):
    """For given pulls g on the scores, weights move by rate · d(Σ g_i s_i)/d(weight), whichever query is in turn."""
    pulls = np.random.default_rng(3).normal(size=data.n_docs)
    for query in (0, 5):
        one = data.take_queries([query])
        start = data.offsets[query]
        pull = pulls[start : start + one.n_docs]
        net = first_net(data, 3, 0)
        net = replace(net, biases=np.array([0.1, -0.2, 0.3]))
        moved = one_epoch(net, one, lambda *_, pull=pull: (pull, pull), 0.5, np.random.default_rng(0))
        for name in PARTS:
            before = getattr(net, name)
            for place in np.ndindex(before.shape):
                step = np.zeros_like(before)
                step[place] = 1e-6
                values = [formula(replace(net, **{name: before + sign * step}), one) @ pull for sign in (1, -1)]
                slope = (values[0] - values[1]) / 2e-6
                assert getattr(moved, name)[place] - before[place] == pytest.approx(0.5 * slope, rel=1e-4, abs=1e-7)


def test_queries_are_visited_one_by_one_with_their_own_lists(data):
    seen = []

    def watch(labels, scores, offsets):
        seen.append(labels)
        return lambda_gradients(labels, scores, offsets)

    one_epoch(first_net(data, 10, 0), data, watch, 0.01, np.random.default_rng(0))
    lists = np.split(data.labels, data.offsets[1:-1])
    assert sorted(map(tuple, seen)) == sorted(map(tuple, lists))
    assert [len(labels) for labels in seen] != [len(labels) for labels in lists]


def test_scores_are_those_of_the_formula_in_any_batch(data):
    net = rs.train(data, algo="lambdarank", epochs=2, hidden=4)
    scores = net.predict(data)
    np.testing.assert_allclose(scores, formula(net, data), rtol=1e-9, atol=1e-12)
    assert np.array_equal(net.predict(data.features[5:9]), scores[5:9])
    assert np.array_equal(net.predict(data, threads=1), scores)
    with pytest.raises(ModelError, match="documents of 3 features"):
        net.predict(data.features[:, :3])


def test_it_learns_and_keeps_the_best_epoch(data):
    valid = small_dataset(seed=1, n_queries=20)
    records = []
    net = rs.train(data, valid=valid, algo="lambdarank", epochs=30, early_stopping=5, callbacks=[records.append])
    curve = net.info["history"]["valid"]["ndcg@10"]
    assert net.info["best_score"] == max(curve) == rs.evaluate(net, valid).mean()
    assert net.info["best_iteration"] == int(np.argmax(curve)) + 1
    assert len(curve) in (30, net.info["best_iteration"] + 5)
    assert [record.step for record in records] == list(range(1, len(curve) + 1))
    assert records[0].round == "epoch"
    first = first_net(data, 10, 0)
    assert (
        rs.evaluate(rs.train(data, algo="lambdarank", epochs=30), data).mean() > rs.evaluate(first, data).mean() + 0.2
    )


def test_seed_decides_and_threads_do_not(data, tmp_path):
    settings = {"algo": "lambdarank", "epochs": 3, "hidden": 5}
    one = rs.train(data, threads=1, **settings)
    assert all(
        np.array_equal(getattr(one, name), getattr(rs.train(data, threads=2, **settings), name)) for name in PARTS
    )
    assert not np.array_equal(one.inner, rs.train(data, seed=1, **settings).inner)
    one.save(tmp_path / "net.json")
    again = rs.load(tmp_path / "net.json")
    assert np.array_equal(again.predict(data), one.predict(data))
    assert repr(again) == "Net(7 features, 5 hidden units)"
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "net.json").read_bytes()


def test_weights_of_documents_scale_their_pull(data):
    doubled = rs.Dataset.from_arrays(
        data.features, data.labels, group=data.lists.sizes, weights=np.full(data.n_docs, 2.0)
    )
    one = rs.train(data, algo="lambdarank", epochs=1, learning_rate=0.02)
    two = rs.train(doubled, algo="lambdarank", epochs=1, learning_rate=0.01)
    np.testing.assert_allclose(one.inner, two.inner)


def test_bad_input_is_reported(data):
    with pytest.raises(ParameterError, match=r"^hidden is 0"):
        rs.train(data, algo="lambdarank", hidden=0)
    apart = rs.Dataset.from_arrays(data.features[:4], [0, 0, 1, 1], group=[2, 2])
    with pytest.raises(DataError, match="no pairs to train on"):
        rs.train(apart, algo="lambdarank")
    empty = rs.Dataset.from_arrays(data.features[:4], np.zeros(4), group=[2, 2])
    with pytest.raises(DataError, match="no query has a positive"):
        rs.train(data, valid=empty, algo="lambdarank", epochs=1)
    huge = rs.Dataset.from_arrays(
        data.features, data.labels, group=data.lists.sizes, weights=np.full(data.n_docs, 1e306)
    )
    with pytest.raises(ModelError, match="use a smaller one"), np.errstate(all="ignore"):
        rs.train(huge, algo="lambdarank", epochs=2)


def test_ctrl_c_keeps_the_finished_epochs(data):
    def stop(record):
        if record.step == 3:
            raise KeyboardInterrupt

    with pytest.raises(InterruptedTraining) as stopped:
        rs.train(data, algo="lambdarank", epochs=8, early_stopping=0, callbacks=[stop])
    kept = rs.train(data, algo="lambdarank", epochs=3, early_stopping=0)
    np.testing.assert_array_equal(stopped.value.model.predict(data), kept.predict(data))


def test_ctrl_c_while_measuring_keeps_the_epoch_before(data, monkeypatch):
    kept = rs.train(data, valid=data, algo="lambdarank", epochs=2, early_stopping=0)
    measure = NetValidSet.measure

    def stop(self, state, metric):
        if state.step == 2 and self.name != "valid":  # in the third epoch
            raise KeyboardInterrupt
        return measure(self, state, metric)

    monkeypatch.setattr(NetValidSet, "measure", stop)
    with pytest.raises(InterruptedTraining) as stopped:
        rs.train(data, valid={"valid": data, "other": data}, algo="lambdarank", epochs=8, early_stopping=0)
    model = stopped.value.model
    np.testing.assert_array_equal(model.predict(data), kept.predict(data))
    assert {len(values) for curves in model.info["history"].values() for values in curves.values()} == {2}

"""Cross-validation: the same as training and measuring each fold by hand, for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from typer.testing import CliRunner

import ranksieve as rs
from ranksieve.cli.app import app
from ranksieve.data.splits import fold_queries
from ranksieve.errors import DataError, ParameterError

QUICK = {"trees": 6, "leaves": 4, "min_docs": 2, "learning_rate": 0.2, "threads": 1}


@pytest.fixture(scope="module")
def data():
    """Lists of different lengths whose rows are interleaved; one query has no positive document."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(14), rng.integers(6, 16, 14))
    X = rng.random((len(qid), 5)).astype(np.float32)
    y = (3 * X[:, 0] * X[:, 1] + 0.4 * rng.random(len(qid))).astype(int)
    y[qid == 3] = 0
    shuffled = rng.permutation(len(qid))
    return rs.Dataset.from_arrays(X[shuffled], y[shuffled], qid=[f"q{number}" for number in qid[shuffled]])


@pytest.fixture(scope="module")
def result(data):
    return rs.cv(data, folds=4, metrics=["ndcg@5", "map"], **QUICK)


def test_every_fold_is_trained_and_measured_as_by_hand(data, result):
    seen = np.zeros(data.n_queries, int)
    for number, (train, valid, test) in enumerate(fold_queries(data.n_queries, 4), start=1):
        model = rs.train(data.take_queries(train), valid=data.take_queries(valid), **QUICK)
        np.testing.assert_array_equal(result.models[number - 1].predict(data), model.predict(data))
        for metric in ("ndcg@5", "map"):
            expected = rs.evaluate(model, data.take_queries(test), metric)
            assert expected.query_ids.tolist() == result.query_ids[test].tolist()
            np.testing.assert_array_equal(result.per_query(metric)[test], expected.per_query())
            assert result.fold_means(metric)[number - 1] == expected.mean()
        assert (result.folds[test] == number).all()
        seen[test] += 1
    assert (seen == 1).all() and len(result.models) == 4
    assert result.query_ids.tolist() == data.query_ids.tolist()


def test_mean_and_interval_are_over_queries(data, result):
    values = result.per_query("map")
    assert np.isnan(values).sum() == (np.maximum.reduceat(data.labels, data.offsets[:-1]) == 0).sum() == 1
    values = values[~np.isnan(values)]
    assert result.mean("map") == pytest.approx(values.mean())
    expected = scipy.stats.t.interval(0.95, len(values) - 1, values.mean(), scipy.stats.sem(values))
    assert result.interval("map") == pytest.approx(expected)


def test_the_number_of_threads_changes_nothing(data, result):
    again = rs.cv(data, folds=4, metrics=["ndcg@5", "map"], **QUICK | {"threads": 2})
    for metric in ("ndcg@5", "map"):
        np.testing.assert_array_equal(again.per_query(metric), result.per_query(metric))
    assert [model.n_trees for model in again.models] == [model.n_trees for model in result.models]


def test_the_seed_is_also_that_of_the_folds(data, result):
    other = rs.cv(data, folds=4, algo="feature", feature="f1", seed=3)
    expected = np.concatenate([test for _, _, test in fold_queries(data.n_queries, 4, seed=3)])
    assert np.argsort(other.folds, kind="stable").tolist() == expected.tolist()
    assert other.folds.tolist() != result.folds.tolist()
    assert [str(metric) for metric in other.evaluation.metrics] == ["ndcg@10"]


def test_the_table(result):
    rows = result.table()
    assert [row["fold"] for row in rows] == ["1", "2", "3", "4", "all"]
    assert sum(row["queries"] for row in rows[:-1]) == rows[-1]["queries"] == 14
    assert rows[-1]["map"] == result.mean("map") and rows[-1]["map interval"] == result.interval("map")
    low, high = result.interval("map")
    assert f"{result.mean('map'):.4f}  [{low:.4f}, {high:.4f}]" in str(result)
    assert "13 of 14 queries counted" in str(result) and "95%, Student's t over queries" in str(result)


def test_bad_folds(data):
    with pytest.raises(ParameterError, match="folds is 2; expected at least 3"):
        rs.cv(data, folds=2, **QUICK)
    with pytest.raises(DataError, match="14 queries cannot be split into 15 folds"):
        rs.cv(data, folds=15, **QUICK)


def test_the_command_computes_the_same(data, result, tmp_path):
    rs.io.write_parquet(data, tmp_path / "data.parquet")
    flags = [word for name, value in QUICK.items() for word in ("--" + name.replace("_", "-"), str(value))]
    arguments = ["cv", str(tmp_path / "data.parquet"), "--folds", "4", "--measure", "ndcg@5", "--measure", "map"]
    arguments += ["--out", str(tmp_path / "models"), "--per-query", str(tmp_path / "queries.tsv"), "--quiet", *flags]
    outcome = CliRunner().invoke(app, arguments)
    assert outcome.exit_code == 0, (outcome.output, outcome.exception)
    low, high = result.interval("map")
    assert f"{result.mean('map'):.4f}" in outcome.output and f"[{low:.4f}, {high:.4f}]" in outcome.output
    lines = [line.split("\t") for line in (tmp_path / "queries.tsv").read_text().splitlines()]
    assert lines[0] == ["query", "model", "ndcg@5", "map"]
    found = {query: float(value) for query, _, _, value in lines[1:]}
    expected = dict(zip(result.query_ids, result.per_query("map"), strict=True))
    assert found == pytest.approx(expected, rel=1e-5, nan_ok=True)
    for number, model in enumerate(result.models, start=1):
        np.testing.assert_array_equal(rs.load(tmp_path / f"models/fold{number}.txt").predict(data), model.predict(data))

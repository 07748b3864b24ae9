"""Cross-validation: the same as training and measuring each fold by hand, for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from typer.testing import CliRunner

import ranksieve as rs
from ranksieve.cli.app import app
from ranksieve.data.sampling import fold_queries
from ranksieve.errors import DataError, ParameterError
from ranksieve.params import Params
from ranksieve.rankers import fold_processes
from ranksieve.rankers.fold_processes import FoldTraining, fold_jobs

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


def first_six(view):
    """A selection of the user's: positives, and the first documents of each list."""
    ranks = np.arange(view.lists.n_docs) - np.repeat(view.lists.offsets[:-1], view.lists.sizes)
    return np.flatnonzero((view.lists.labels > 0) | (ranks < 6))


@pytest.mark.usefixtures("nothing_registered")
def test_folds_in_processes_are_the_same_with_own_rules_and_metrics(data, tmp_path):
    def best_score(labels, scores, offsets, k):
        return np.maximum.reduceat(scores, offsets[:-1])

    rs.params.register_selection("first-six", first_six)
    chosen = QUICK | {"selection": first_six, "metric": best_score, "folds": 3}
    here, elsewhere = (rs.cv(data, jobs=jobs, **chosen) for jobs in (1, 2))
    np.testing.assert_array_equal(elsewhere.per_query(), here.per_query())
    assert elsewhere.folds.tolist() == here.folds.tolist()
    assert elsewhere.models[0].info["params"]["selection"] == "first-six"
    for one, other in zip(here.models, elsewhere.models, strict=True):
        one.save(tmp_path / "one.txt")
        other.save(tmp_path / "other.txt")
        assert (tmp_path / "one.txt").read_bytes() == (tmp_path / "other.txt").read_bytes()


def test_threads_and_memory_are_divided(data):
    given = Params(**QUICK | {"threads": 8, "memory": "4G"})
    divided = FoldTraining.of(given, "zero", 3).params
    assert (divided.threads, divided.memory) == (2, str((4 << 30) // 3))
    assert FoldTraining.of(given, "zero", 16).params.threads == 1
    assert FoldTraining.of(Params(**QUICK), "zero", 2).params.memory == "auto"


def test_how_many_folds_are_trained_at_a_time(data, monkeypatch):
    params = Params(**QUICK | {"threads": 4})
    assert fold_jobs(9, 5, data, params) == 5 and fold_jobs(2, 5, data, params) == 2
    assert fold_jobs(0, 5, data, params) == 1  # small data
    monkeypatch.setattr(fold_processes, "SMALL", 0)
    monkeypatch.setattr(fold_processes, "available_memory", lambda: None)
    assert fold_jobs(0, 5, data, params) == 4 and fold_jobs(0, 3, data, params) == 3
    monkeypatch.setattr(fold_processes, "available_memory", lambda: 4 * fold_processes.USUAL_SIZE)
    assert fold_jobs(0, 5, data, params) == 2
    assert fold_jobs(0, 5, data, Params(**QUICK | {"device": "cuda"})) == 1
    with pytest.raises(ParameterError, match="jobs is -1; expected an integer from 1, or 0"):
        rs.cv(data, jobs=-1, **QUICK)
    with pytest.raises(ParameterError, match="callbacks run only in the calling process; use jobs=1"):
        rs.cv(data, jobs=2, callbacks=[print], **QUICK)


def test_the_command_computes_the_same_in_processes(data, result, tmp_path):
    rs.io.write_parquet(data, tmp_path / "data.parquet")
    flags = [word for name, value in QUICK.items() for word in ("--" + name.replace("_", "-"), str(value))]
    arguments = ["cv", str(tmp_path / "data.parquet"), "--folds", "4", "--measure", "ndcg@5", "--measure", "map"]
    arguments += [
        "--jobs",
        "2",
        "--out",
        str(tmp_path / "models"),
        "--per-query",
        str(tmp_path / "queries.tsv"),
        "--quiet",
        *flags,
    ]
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


def test_categorical_columns_of_the_toml_file_count(tmp_path):
    rows = "".join(f"{n % 3},{n // 6},{'ab'[n % 2]},{n % 5}\n" for n in range(72))
    (tmp_path / "data.csv").write_text("label,qid,brand,price\n" + rows)
    (tmp_path / "params.toml").write_text('trees = 1\nleaves = 2\nmin-docs = 1\nthreads = 1\ncategorical = "brand"\n')
    arguments = ["cv", f"{tmp_path}/data.csv", "--folds", "3", "--params", f"{tmp_path}/params.toml", "--quiet"]
    outcome = CliRunner().invoke(app, [*arguments, "--out", f"{tmp_path}/models"])
    assert outcome.exit_code == 0, outcome.output
    assert rs.load(tmp_path / "models" / "fold1.txt").info["categories"] == {"brand": ["a", "b"]}

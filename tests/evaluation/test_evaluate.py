"""`evaluate`: systems and metrics on one data set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ranksieve as rs
from ranksieve.data.dataset import Dataset
from ranksieve.data.features import FeatureInfo
from ranksieve.data.lists import Lists, lists_from_runs
from ranksieve.errors import DataError, ModelError, ParameterError
from ranksieve.evaluation.evaluate import evaluate
from ranksieve.evaluation.metrics import parse_metric


class TestEvaluate:
    labels = np.array([1.0, 0, 2, 0, 0])
    lists = lists_from_runs(labels, ["a", "b", "a", "c"], [1, 1, 2, 1])
    good, bad = [3.0, 1, 2, 1, 5], [1.0, 1, 2, 3, 5]

    def test_scores_are_in_the_users_order(self):
        assert isinstance(self.lists, Lists) and self.lists.order is not None
        result = evaluate({"good": self.good, "bad": np.array(self.bad)}, self.lists, ["mrr", "nDCG@1", "ndcg@1"])
        assert result.query_ids.tolist() == ["a", "b", "c"]
        np.testing.assert_array_equal(result.values["bad"]["mrr"], [0.5, np.nan, np.nan])
        assert result.mean("good", "mrr") == result.mean("good", "rr") == 1.0
        assert result.table()[1] == {
            "name": "bad", "mrr": 0.5, "mrr p-value": 1.0, "nDCG@1": 0.0, "nDCG@1 p-value": 1.0, "ndcg@1": 0.0,
            "ndcg@1 p-value": 1.0,
        }  # fmt: skip
        assert result.mean("good", "nDCG@1") == pytest.approx(1 / 6)  # queries without positives count 0
        assert result.conventions[0].startswith("mrr: ") and "1 of 3 queries counted" in result.conventions[0]
        assert result.compare("good", "bad").difference == 0.5
        assert result.compare("good", "bad", "ndcg@1", permutations=100).n == 1

    def test_models_predict(self):
        class Model:
            def predict(self, data):
                return data.features[:, 0]

        data = Dataset(np.array(self.good)[:, None], self.lists, FeatureInfo(("f1",)))
        result = evaluate(Model(), data)
        assert list(result.values) == ["model"]
        np.testing.assert_array_equal(result.per_query(), evaluate(self.good, data).per_query("scores"))
        with pytest.raises(ParameterError, match="give the Dataset"):
            evaluate(Model(), self.lists)

    def test_mistakes_are_named(self):
        with pytest.raises(DataError, match="'scores' has scores of shape"):
            evaluate([1.0], self.lists)
        with pytest.raises(ParameterError, match="given twice"):
            evaluate(self.good, self.lists, ["ndcg@10", parse_metric("ndcg@10", ties="mean")])
        with pytest.raises(ParameterError, match="no metrics"):
            evaluate(self.good, self.lists, [])
        with pytest.raises(ParameterError, match="no systems"):
            evaluate({}, self.lists)
        result = evaluate(self.good, self.lists, "map")
        with pytest.raises(ParameterError, match="no system is named 'x'; known: scores"):
            result.mean("x")
        with pytest.raises(ParameterError, match="mrr was not measured; known: map"):
            result.mean(metric="mrr")
        with pytest.raises(ParameterError, match="expected one of randomization, t"):
            result.compare("scores", "scores", test="sign")


def test_files_are_read_and_wrong_names_refused(tmp_path):
    data = rs.synth.cubic(4)
    model = rs.train(data, trees=2, leaves=4)
    rs.io.write_parquet(data, tmp_path / "test.parquet")
    assert rs.evaluate(model, tmp_path / "test.parquet").mean() == rs.evaluate(model, data).mean()
    with pytest.raises(DataError, match="is a folder"):
        rs.evaluate(model, tmp_path)
    with pytest.raises(DataError, match="none: no such file"):
        rs.evaluate(model, tmp_path / "none")
    with pytest.raises(DataError, match=r"rs\.read\("):
        model.predict("test.parquet")


def test_evaluate_takes_a_function():
    def first_label(labels, scores, offsets, k):
        return labels[offsets[:-1]]

    lists = rs.Dataset.from_arrays(np.zeros((4, 1)), [1, 0, 2, 0], qid=[7, 7, 8, 8])
    assert evaluate([1, 0, 1, 0], lists, first_label).values["scores"]["first-label"].tolist() == [1, 2]


def test_a_list_of_models_is_numbered():
    data = rs.synth.cubic(4)
    models = [rs.train(data, trees=n, leaves=4) for n in (1, 2)]
    result = rs.evaluate(models, data)
    assert list(result.values) == ["model 1", "model 2"]
    assert result.per_query("model 2").tolist() == rs.evaluate(models[1], data).per_query().tolist()
    assert repr(result) == str(result) and "model 2" in repr(result)


def test_the_table_has_p_values_and_conventions():
    data = rs.synth.cubic(30)
    models = {"one": data.features[:, 0], "two": data.features[:, 1]}
    result = rs.evaluate(models, data, ["ndcg@10", "nDCG@10", "AP(rel=2)"])
    names, meanings, one, two, *sentences = str(result).splitlines()
    assert names.split() == ["ndcg@10", "p-value", "nDCG@10", "p-value", "AP(rel=2)", "p-value"]
    assert meanings.split("  ")[-1].strip() == "label >= 2 is positive"
    assert "gain 2^label-1" in meanings and "gain = label" in meanings
    p_value = result.compare("two", "one", "nDCG@10").p_value
    assert f"{p_value:.4f}" in two and len(one.split()) == 4 and len(two.split()) == 7
    assert sentences[-1] == "p-values: two-sided randomization test against one"
    frame = pd.DataFrame(result.table())
    assert frame["nDCG@10 p-value"][1] == p_value and np.isnan(frame["nDCG@10 p-value"][0])
    lines = str(result.table()).splitlines()
    assert lines[0].startswith("name  ndcg@10") and lines[2].startswith("two   0.") and "{" not in repr(result.table())


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_models_of_other_libraries_are_read(library):
    peer = pytest.importorskip(library)
    data = rs.synth.cubic(20)
    X, y, group = np.asarray(data.features), data.labels.astype(int), data.lists.sizes
    if library == "lightgbm":
        model = peer.LGBMRanker(n_estimators=5, num_leaves=5, verbose=-1).fit(X, y, group=group)
        others = [model.booster_]
    else:
        model = peer.XGBRanker(n_estimators=5, max_depth=3).fit(X, y, group=group)
        others = [model.get_booster()]
    expected = rs.evaluate(rs.io.from_model(model), data).mean()
    for given in (model, *others):
        assert rs.evaluate(given, data).mean() == expected
    assert rs.evaluate({"theirs": model, "zero": np.zeros(data.n_docs)}, data).mean("theirs") == expected


def test_data_without_positives_is_reported():
    data = rs.Dataset.from_arrays(np.zeros((3, 1)), [0, 0, 0], ["a", "a", "b"])
    with pytest.warns(UserWarning, match="mrr is undefined because no query has a positive document"):
        assert np.isnan(evaluate([1, 2, 3], data, "mrr").mean())
    evaluate([1, 2, 3], data, parse_metric("mrr", empty=0))  # defined, and no warning


def test_data_before_the_model_is_refused():
    data = Dataset.from_arrays(np.zeros((4, 1)), [1, 0, 2, 0], qid=[7, 7, 8, 8])
    model = rs.train(data, trees=1, leaves=2, min_docs=1)
    for lists in (data, data.lists):
        with pytest.raises(DataError, match=r"rs.evaluate\(model, data\)"):
            evaluate(lists, model)


@pytest.mark.parametrize(
    "use",
    [
        lambda data: rs.evaluate("model.txt", data),
        lambda data: rs.evaluate({"a": Path("model.txt")}, data),
        lambda data: rs.evaluate(["model.txt", "model.txt"], data),
        lambda data: rs.explain("model.txt", data, 1),
    ],
)
def test_file_names_of_models_are_refused_before_the_data_is_read(use):
    with pytest.raises(ModelError, match=r"^'model\.txt' is a file name; give the model, as rs\.load returns it$"):
        use("no such file")

"""What notebooks show: the same numbers as the text, with every text escaped."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import ranksieve as rs

EVIL = '<img src=x onerror=alert(1)> & "co"'


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.random((60, 2))
    return rs.Dataset.from_arrays(X, (3 * X[:, 0]).astype(int), qid=np.repeat(np.arange(6), 10)).with_features(
        [EVIL, "b"]
    )


@pytest.fixture(scope="module")
def model(data):
    return rs.train(data, algo="ranksvm")


def cells(html: str) -> list[str]:
    """The texts of all cells; fails where the HTML is not well-formed."""
    page = ElementTree.fromstring(f"<div>{html.replace('<br>', '<br/>')}</div>")
    assert page.find(".//img") is None
    return ["".join(cell.itertext()) for cell in page.iter() if cell.tag in ("td", "th", "b", "small")]


def test_a_data_set(data):
    shown = cells(data._repr_html_())
    assert shown[:5] == [
        "Dataset",
        "documents",
        "60",
        "queries",
        f"6, {sum(data.labels.reshape(6, 10).max(1) == 0)} of them without positives",
    ]
    assert "10 to 10, mean 10.0" in shown


def test_categories_are_counted():
    frame = pd.DataFrame({"genre": pd.Categorical(["a", "b", "a", "c"]), "x": [1.0, 2.0, 0.0, 1.0]})
    data = rs.Dataset.from_arrays(frame, [1, 0, 0, 1], qid=[1, 1, 2, 2])
    assert "genre (3 categories)" in cells(data._repr_html_())
    model = rs.train(data, trees=2, leaves=2, min_docs=1, threads=1)
    assert "genre (3 categories)" in cells(model._repr_html_())
    assert "Categorical features: genre (3 categories)." in rs.io.model_card(model)


def test_an_empty_data_set():
    empty = rs.synth.cubic(2).take_rows(np.empty(0, int))
    assert cells(empty._repr_html_()) == ["Dataset", "documents", "0", "features", "50"]


def test_a_model(model):
    shown = cells(model._repr_html_())
    assert shown[0] == "Linear" and EVIL in shown and f"{model.weights[0]:+.4f}" in shown
    assert "6 queries, 60 documents" in shown


def test_an_evaluation_and_its_table(model, data):
    result = rs.evaluate({EVIL: model, "b": data.column("b")}, data, ["ndcg@10", "map"])
    shown = cells(result._repr_html_())
    assert EVIL in shown and f"{result.mean('b', 'map'):.4f}" in shown
    assert all(line in shown[-1] for line in result.conventions)
    assert f"{result.mean('b', 'map'):.4f}" in cells(result.table()._repr_html_())
    assert cells(type(result.table())()._repr_html_()) == [""]


def test_a_comparison(model, data):
    result = rs.evaluate({"a": model, "b": data.column("b")}, data).compare("a", "b", test="t")
    shown = cells(result._repr_html_())
    assert shown[0] == "paired t-test" and f"{result.p_value:.4f}" in shown
    assert "[{:+.4f}, {:+.4f}]".format(*result.interval) in shown


def test_a_cross_validation(data):
    result = rs.cv(data, folds=3, algo="feature", feature="b")
    shown = cells(result._repr_html_())
    assert f"{result.mean():.4f}" in shown and "[{:.4f}, {:.4f}]".format(*result.interval()) in shown
    assert "Student's t over queries" in shown[-1]

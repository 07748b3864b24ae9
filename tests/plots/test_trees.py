"""Pictures of trees."""

from __future__ import annotations

import dataclasses
import sys

import matplotlib

matplotlib.use("Agg")
import numpy as np
import pandas
import pytest
from matplotlib import pyplot

import ranksieve as rs
from naive_forest import random_forest
from ranksieve.errors import MissingExtraError, ModelError, ParameterError
from ranksieve.plots.trees import PATH


@pytest.fixture(autouse=True)
def _close():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def forest() -> rs.Forest:
    return random_forest(np.random.default_rng(4), n_trees=3, max_leaves=12)


def labels(ax) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_every_split_and_leaf_is_drawn(forest):
    ax = rs.plots.tree(forest, 1)
    ax.figure.canvas.draw()
    splits = slice(forest.split_offsets[1], forest.split_offsets[2])
    values = forest.take([1]).scaled_leaf_values()
    drawn = labels(ax)
    assert len(drawn) == 2 * len(values) - 1
    for feature, threshold in zip(forest.feature[splits], forest.threshold[splits], strict=True):
        assert f"f{feature + 1}\n≤ {threshold:.4g}" in drawn
    for value in values:
        assert any(text.startswith(f"{value:+.3g}\n") for text in drawn)


def test_given_axes_are_used_and_returned(forest):
    _, (left, right) = pyplot.subplots(1, 2)
    assert rs.plots.tree(forest, ax=right) is right
    assert right.texts and not left.texts


def test_a_document_s_way_is_highlighted(forest):
    row = np.zeros(4)
    ax = rs.plots.tree(forest, 1, document=row)
    reached = int(forest.predict_leaves(row)[0, 1])
    value = forest.take([1]).scaled_leaf_values()[reached]
    taken = [text for text in ax.texts if text.get_bbox_patch().get_edgecolor() == matplotlib.colors.to_rgba(PATH)]
    assert any(text.get_text().startswith(f"{value:+.3g}") for text in taken)
    assert sum("≤" not in text.get_text() for text in taken) == 1


def test_deep_trees_can_be_cut(forest):
    drawn = labels(rs.plots.tree(forest, 1, max_depth=1))
    assert len(drawn) <= 3
    assert any("leaves" in text for text in drawn)
    assert len(labels(rs.plots.tree(forest, 1, max_depth=0))) == 1


def test_a_model_without_counts_and_a_tree_without_splits_can_be_drawn(forest):
    bare = dataclasses.replace(
        forest, leaf_count=np.zeros_like(forest.leaf_count), leaf_weight=np.zeros_like(forest.leaf_weight)
    )
    assert not any("docs" in text for text in labels(rs.plots.tree(bare, max_depth=2)))
    stump = random_forest(np.random.default_rng(0), n_trees=1, max_leaves=1)
    assert len(labels(rs.plots.tree(stump))) == 1


def test_a_legend_explains_the_branches(forest):
    words = [text.get_text() for text in rs.plots.tree(forest, 1).get_legend().get_texts()]
    assert words == ["yes: to the left", "where missing values go"]
    stump = random_forest(np.random.default_rng(0), n_trees=1, max_leaves=1)
    assert rs.plots.tree(stump).get_legend() is None


def test_names_of_categories_are_quoted():
    brands = pandas.Categorical(["O'Neil, Inc", "war", "a", "b"] * 20)
    labels, queries = [1, 0, 0, 0] * 20, np.repeat(np.arange(20), 4)
    model = rs.Ranker(trees=1, leaves=2, algo="lambdamart", min_docs=1)
    model.fit(pandas.DataFrame({"brand": brands}), labels, qid=queries)
    (split,) = (text.get_text() for text in rs.plots.tree(model).texts if "in " in text.get_text())
    assert split == "brand\nin “O'Neil, Inc”"


def test_what_does_not_exist_is_refused(forest, monkeypatch):
    with pytest.raises(ModelError, match="tree 3 does not exist"):
        rs.plots.tree(forest, 3)
    with pytest.raises(ParameterError, match="document has 2 rows"):
        rs.plots.tree(forest, document=np.zeros((2, 4)))
    with pytest.raises(ParameterError, match="max_depth is -1"):
        rs.plots.tree(forest, max_depth=-1)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"ranksieve\[plots\]"):
        rs.plots.tree(forest)

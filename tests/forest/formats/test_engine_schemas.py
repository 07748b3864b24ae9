"""Models for Elasticsearch, OpenSearch and Solr are as the plugins document them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from pydantic import ValidationError

from engine_schemas import PluginModel, SolrModel
from naive_forest import random_forest
from ranksieve.forest.formats.solr import to_solr
from ranksieve.forest.formats.writing import Options
from ranksieve.forest.formats.xgboost import to_dump

NODE = {"nodeid": 0, "depth": 0, "split": "a", "split_condition": 1.5, "yes": 1, "no": 2, "missing": 1}
LEAVES = [{"nodeid": 1, "leaf": 0.5}, {"nodeid": 2, "leaf": -0.5}]


@pytest.mark.parametrize("missing", ["zero", "nan"])
@pytest.mark.parametrize("seed", range(3))
def test_models_are_as_documented(seed, missing):
    forest = random_forest(np.random.default_rng(seed), n_trees=5, n_features=4)
    options = Options(name="model", missing=missing, nearest=True)
    used = {forest.feature_names[number] for number in np.unique(forest.feature)}
    plugin = PluginModel.model_validate_json(to_dump(forest, options))
    assert len(plugin.root) == forest.n_trees and plugin.features() == used
    solr = SolrModel.model_validate_json(to_solr(forest, options))
    assert len(solr.params.trees) == forest.n_trees and {one.name for one in solr.features} == used
    assert solr.params.isNullSameAsZero == ("false" if missing == "nan" else "true")


@pytest.mark.parametrize(
    "tree",
    [
        {**NODE, "children": LEAVES[::-1]},
        {**NODE, "children": LEAVES[:1]},
        {**NODE, "children": LEAVES, "missing": 3},
        {**NODE, "children": LEAVES, "gain": 1.0},
        {**NODE, "children": LEAVES, "split_condition": "1.5"},
        {key: value for key, value in {**NODE, "children": LEAVES}.items() if key != "depth"},
    ],
)
def test_the_schema_refuses_what_the_plugins_refuse(tree):
    PluginModel.model_validate_json(json.dumps([{**NODE, "children": LEAVES}]))
    with pytest.raises(ValidationError):
        PluginModel.model_validate_json(json.dumps([tree]))
    with pytest.raises(ValidationError):
        PluginModel.model_validate_json("[]")


def test_the_schema_refuses_numbers_that_solr_reads_as_strings():
    leaf = {"weight": "1", "root": {"value": "-10"}}
    model = {
        "class": "org.apache.solr.ltr.model.MultipleAdditiveTreesModel", "name": "m", "features": [{"name": "a"}]
    }  # fmt: skip
    SolrModel.model_validate_json(json.dumps({**model, "params": {"trees": [leaf]}}))
    for tree in ({"weight": 1, "root": {"value": "-10"}}, {"weight": "1", "root": {"value": -10}}, {"root": {}}):
        with pytest.raises(ValidationError):
            SolrModel.model_validate_json(json.dumps({**model, "params": {"trees": [tree]}}))

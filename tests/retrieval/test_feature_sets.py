"""Feature sets for engines are as documented, and have our names."""

from __future__ import annotations

import json

import pytest

from engine_schemas import PluginFeatureSet, SolrFeatures
from ranksieve.errors import ParameterError
from ranksieve.retrieval.feature_names import layout_of
from ranksieve.retrieval.feature_sets import feature_set


@pytest.mark.parametrize("missing", ["nan", "zero"])
def test_sets_of_an_index_are_as_documented(index, missing):
    names = layout_of(index).names
    for engine in ("elasticsearch", "opensearch"):
        made = feature_set(names, engine, missing=missing, text="words")
        parsed = PluginFeatureSet.model_validate_json(json.dumps(made.definition))
        assert [one.name for one in parsed.featureset.features] == ["bm25.title", "bm25.body", "number.price"]
        assert [one.params for one in parsed.featureset.features] == [["words"], ["words"], []]
    made = feature_set(names, "solr", missing=missing, store="mine")
    parsed = SolrFeatures.model_validate_json(json.dumps(made.definition))
    expected = {"bm25.title", "length.title", "bm25.body", "length.body", "first.score", "number.price"}
    assert {one.name for one in parsed.root} == expected == set(made.names)
    assert {one.store for one in parsed.root} == {"mine"}
    assert set(made.left_out) == set(names) - expected
    params = {one.name: one.params for one in parsed.root}
    assert params["bm25.title"] == {"q": "{!dismax qf=title^2.2 mm=1}${text}"}
    assert params["number.price"] == {"field": "price", **({"defaultValue": "NaN"} if missing == "nan" else {})}


def test_a_document_without_a_number_has_no_value_or_0():
    def score(missing):
        made = feature_set(["number.price"], missing=missing).definition["featureset"]["features"][0]
        return made["template"]["function_score"]

    assert score("nan") == {"query": {"exists": {"field": "price"}}, "field_value_factor": {"field": "price"}}
    assert score("zero")["field_value_factor"] == {"field": "price", "missing": 0}


@pytest.mark.parametrize(
    ("names", "settings", "message"),
    [
        (["bm25.title"], {"engine": "solar"}, "engine is 'solar'; did you mean 'solr'?"),
        (["bm25.title"], {"missing": "none"}, "missing is 'none'; expected one of zero, nan"),
        (["bm25.title"], {"store": "mine"}, "store is for Solr"),
        (["bm25.all", "bm25_flat.title", "first.rank"], {"engine": "solr"}, "none of the 3 features has a counterpart"),
    ],
)
def test_bad_parameters(names, settings, message):
    with pytest.raises(ParameterError) as error:
        feature_set(names, **settings)
    assert message in str(error.value)

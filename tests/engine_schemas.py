"""The JSON that engines document for models and feature sets, as schemas that refuse whatever is not documented.

Elasticsearch and OpenSearch (learning-to-rank plugins):

- `model/xgboost+json`: https://elasticsearch-learning-to-rank.readthedocs.io/en/latest/training-models.html; what a
  node must have, that unknown keys are refused, and that `yes` and `no` are the two children in this order, is in
  `XGBoostJsonParser` of https://github.com/opensearch-project/opensearch-learning-to-rank-base (read November 2026)
- feature sets: https://elasticsearch-learning-to-rank.readthedocs.io/en/latest/building-features.html,
  `field_value_factor`: https://elasticsearch-learning-to-rank.readthedocs.io/en/latest/feature-engineering.html

Solr:

- `MultipleAdditiveTreesModel`: https://solr.apache.org/docs/8_5_1/solr-ltr/org/apache/solr/ltr/model/MultipleAdditiveTreesModel.html;
  numbers are strings (SOLR-10963); `missing` and `isNullSameAsZero`: "Managing features' null values" in
  https://solr.apache.org/guide/solr/9_8/query-guide/learning-to-rank.html
- features, the same page: "Uploading Features", "External Feature Information"
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, RootModel, model_validator


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class PluginLeaf(Strict):
    nodeid: int
    leaf: float = Field(allow_inf_nan=False)


class PluginSplit(Strict):
    nodeid: int
    depth: int
    split: str
    split_condition: float = Field(allow_inf_nan=False)
    yes: int
    no: int
    missing: int
    children: list[PluginLeaf | PluginSplit] = Field(min_length=2, max_length=2)

    @model_validator(mode="after")
    def branches_are_the_children(self) -> PluginSplit:
        assert [self.yes, self.no] == [child.nodeid for child in self.children]
        assert self.missing in (self.yes, self.no)
        return self


class PluginModel(RootModel[list[PluginLeaf | PluginSplit]]):
    """`definition` of a model of type model/xgboost+json: at least one tree."""

    root: list[PluginLeaf | PluginSplit] = Field(min_length=1)

    def features(self) -> set[str]:
        return {name for tree in self.root for name in _split_names(tree)}


def _split_names(node: PluginLeaf | PluginSplit) -> list[str]:
    if isinstance(node, PluginLeaf):
        return []
    return [node.split, *(name for child in node.children for name in _split_names(child))]


class PluginFeature(Strict):
    name: str = Field(min_length=1)
    params: list[str]
    template_language: Literal["mustache"]
    template: dict[str, Any]

    @model_validator(mode="after")
    def template_is_one_query_with_the_parameters(self) -> PluginFeature:
        assert len(self.template) == 1
        assert all(f"{{{{{name}}}}}" in str(self.template) for name in self.params)
        return self


class PluginFeatures(Strict):
    features: list[PluginFeature] = Field(min_length=1)

    @model_validator(mode="after")
    def names_are_unique(self) -> PluginFeatures:
        assert len({one.name for one in self.features}) == len(self.features)
        return self


class PluginFeatureSet(Strict):
    """Body of `POST _ltr/_featureset/NAME`."""

    featureset: PluginFeatures


def _java_float(text: Any) -> float:
    """What Float.parseFloat reads."""
    assert isinstance(text, str) and text.strip() == text and "_" not in text
    return float(text)


def _java_number(text: Any) -> float:
    value = _java_float(text)
    assert math.isfinite(value)
    return value


class SolrLeaf(Strict):
    value: Annotated[float, BeforeValidator(_java_number)]


class SolrSplit(Strict):
    feature: str
    threshold: Annotated[float, BeforeValidator(_java_float)]
    missing: Literal["left", "right"] | None = None
    left: SolrLeaf | SolrSplit
    right: SolrLeaf | SolrSplit


class SolrTree(Strict):
    weight: Annotated[float, BeforeValidator(_java_number)]
    root: SolrLeaf | SolrSplit


class SolrTrees(Strict):
    isNullSameAsZero: Literal["true", "false"] = "true"
    trees: list[SolrTree]


class SolrName(Strict):
    name: str = Field(min_length=1)


class SolrModel(Strict):
    """Body of `PUT …/schema/model-store`."""

    type: Literal["org.apache.solr.ltr.model.MultipleAdditiveTreesModel"] = Field(alias="class")
    name: str = Field(min_length=1)
    store: str | None = None
    features: list[SolrName]
    params: SolrTrees


class SolrQueryParams(Strict):
    q: str = Field(min_length=1)


class SolrFieldParams(Strict):
    field: str = Field(min_length=1)
    defaultValue: Literal["NaN"] | None = None


class SolrFeature(Strict):
    type: str = Field(alias="class")
    name: str = Field(min_length=1)
    store: str | None = None
    params: dict[str, Any]

    @model_validator(mode="after")
    def parameters_are_those_of_the_class(self) -> SolrFeature:
        kind = self.type.removeprefix("org.apache.solr.ltr.feature.")
        {"SolrFeature": SolrQueryParams, "FieldValueFeature": SolrFieldParams, "FieldLengthFeature": SolrFieldParams,
         "OriginalScoreFeature": Strict}[kind].model_validate(self.params)  # fmt: skip
        return self


class SolrFeatures(RootModel[list[SolrFeature]]):
    """Body of `PUT …/schema/feature-store`."""

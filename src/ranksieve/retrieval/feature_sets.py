"""`feature_set`: definitions for search engines of the features that they can compute as an index does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ranksieve.data.read import check_missing
from ranksieve.errors import ParameterError, check_choice, param
from ranksieve.forest.formats.engine_features import has_counterpart

SOLR = "org.apache.solr.ltr.feature."
BM25_BOOST = 2.2  # k1 + 1, which Lucene leaves out of BM25
Define = Callable[[str, str, bool], dict[str, Any]]  # field or number, query parameter, whether missing is NaN


class FeatureSet(NamedTuple):
    """Definitions of features for a search engine, as `feature_set` returns them.

    Attributes
    ----------
    definition
        What to upload to the engine, as `json.dump` takes it.
    names
        The features that it defines.
    left_out
        The features that the engine has no counterpart of.

    Examples
    --------
    >>> import ranksieve as rs
    >>> made = rs.retrieval.feature_set(["bm25.title", "window.title"], "solr", store="mine")
    >>> [feature["store"] for feature in made.definition], made.left_out
    (['mine'], ('window.title',))
    """

    definition: Any
    names: tuple[str, ...]
    left_out: tuple[str, ...]


def _field_value(name: str, _: str, has_missing: bool) -> dict[str, Any]:
    """A document that the query does not match has no value."""
    if has_missing:
        return {"function_score": {"query": {"exists": {"field": name}}, "field_value_factor": {"field": name}}}
    factor = {"field": name, "missing": 0}
    return {"function_score": {"query": {"match_all": {}}, "field_value_factor": factor}}


def _solr(kind: str, **params: Any) -> dict[str, Any]:
    return {"class": SOLR + kind, "params": params}


PLUGIN_FEATURES: dict[str, Define] = {
    "bm25": lambda field, text, _: {"match": {field: {"query": f"{{{{{text}}}}}", "boost": BM25_BOOST}}},
    "number": _field_value,
}
SOLR_FEATURES: dict[str, Define] = {
    "bm25": lambda field, text, _: _solr("SolrFeature", q=f"{{!dismax qf={field}^{BM25_BOOST:g} mm=1}}${{{text}}}"),
    "number": lambda name, _, has_missing: _solr(
        "FieldValueFeature", field=name, **({"defaultValue": "NaN"} if has_missing else {})
    ),
    "length": lambda field, *_: _solr("FieldLengthFeature", field=field),
    "first": lambda *_: _solr("OriginalScoreFeature"),
}


class _SearchEngine(NamedTuple):
    families: Mapping[str, Define]  # by what stands before the dot in a feature's name
    text: str  # usual name of the parameter with the query's text
    whole: Callable[[dict[str, dict[str, Any]], str, str | None], Any]


def _plugin_set(found: dict[str, dict[str, Any]], text: str, store: str | None) -> Any:
    if store is not None:
        raise ParameterError(param("store"), " is for Solr; the plugins have the store in the address of the request")
    features = [
        {
            "name": name,
            "params": [text] if "match" in template else [],
            "template_language": "mustache",
            "template": template,
        }
        for name, template in found.items()
    ]
    return {"featureset": {"features": features}}


def _solr_set(found: dict[str, dict[str, Any]], _: str, store: str | None) -> Any:
    named = {} if store is None else {"store": store}
    return [{**named, "name": name, **defined} for name, defined in found.items()]


_PLUGIN = _SearchEngine(PLUGIN_FEATURES, "keywords", _plugin_set)
ENGINES = {"elasticsearch": _PLUGIN, "opensearch": _PLUGIN, "solr": _SearchEngine(SOLR_FEATURES, "text", _solr_set)}


def feature_set(
    names: Sequence[str],
    engine: str = "elasticsearch",
    *,
    text: str | None = None,
    store: str | None = None,
    missing: str = "nan",
) -> FeatureSet:
    """Define features in a search engine under the names that they have in an index.

    They are `bm25.FIELD` and `number.NAME`; in Solr also `length.FIELD` and `first.score`. Fields must have the same
    names in the engine. Values are the engine's: words are analysed as it is set up, so train on its feature log.

    Parameters
    ----------
    names
        Features of an index, or of a model.
    engine
        "elasticsearch" or "opensearch" (their learning-to-rank plugins), or "solr".
    text
        The parameter of a request that has the query's text: `keywords` by default, for Solr `text` (`efi.text`).
    store
        Solr's feature store; its default store if None.
    missing
        What a document without a number gets: "nan", no value, or "zero".

    Examples
    --------
    >>> made = feature_set(["bm25.title", "window.title", "number.price"])
    >>> made.names, made.left_out
    (('bm25.title', 'number.price'), ('window.title',))
    >>> made.definition["featureset"]["features"][0]["template"]
    {'match': {'title': {'query': '{{keywords}}', 'boost': 2.2}}}
    """
    check_choice("engine", engine, ENGINES)
    check_missing(missing)
    families, usual, whole = ENGINES[engine]
    found = {}
    for name in names:
        family, _, what = name.partition(".")
        if has_counterpart(name, engine):
            found[name] = families[family](what, text or usual, missing == "nan")
    if not found:
        raise ParameterError(
            f"none of the {len(names)} features has a counterpart in {engine}; expected some of "
            f"{', '.join(f'{family}.*' for family in families)}"
        )
    return FeatureSet(whole(found, text or usual, store), tuple(found), tuple(n for n in names if n not in found))

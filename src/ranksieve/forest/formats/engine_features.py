"""Features of an index that search engines can compute, too, and a warning of a model that uses others."""

from __future__ import annotations

import warnings

import numpy as np

from ranksieve.errors import RanksieveWarning, caller_level
from ranksieve.forest.forest import Forest
from ranksieve.text_formats import counted, some_of

PLUGIN_FAMILIES = ("bm25", "number")
FAMILIES = {
    "elasticsearch": PLUGIN_FAMILIES,
    "opensearch": PLUGIN_FAMILIES,
    "solr": (*PLUGIN_FAMILIES, "length", "first"),
}  # by engine: what stands before the dot in a feature's name
ENGINE_OF = {"elasticsearch": "Elasticsearch and OpenSearch", "solr": "Solr"}  # by format
WRITTEN = {"bm25": "bm25.FIELD", "number": "number.NAME", "length": "length.FIELD", "first": "first.score"}
ONLY_SCORE = WRITTEN["first"]  # the only feature of its family that an engine has
MOST_NAMED = 5


def has_counterpart(name: str, engine: str) -> bool:
    """Whether an engine can compute a feature of an index.

    Examples
    --------
    >>> has_counterpart("bm25.title", "elasticsearch"), has_counterpart("window.title", "elasticsearch")
    (True, False)
    """
    family, _, what = name.partition(".")
    return family in FAMILIES[engine] and what not in ("", "all") and (family != "first" or name == ONLY_SCORE)


def warn_of_features(forest: Forest, engine: str, path: object) -> None:
    """Warn where trees use features of an index that the engine cannot compute.

    The names alone do not show this: a model knows whether its training data was made from an index. Features of users
    among them may be defined in the engine.
    """
    if not forest.info.get("candidates"):
        return
    from ranksieve.data.index_features import is_of_index  # imports kernels that a model needs for nothing else

    used = (forest.feature_names[number] for number in np.unique(forest.feature))
    lacking = [name for name in used if is_of_index(name) and not has_counterpart(name, engine)]
    if lacking:
        *others, last = (WRITTEN[family] for family in FAMILIES[engine])
        text = (
            f"{path}: the model uses {counted(feature=len(lacking))} that {ENGINE_OF[engine]} cannot compute "
            f"({some_of(lacking, MOST_NAMED)}), so it cannot run there; train on {', '.join(others)} and {last} alone, "
            "not on bm25.all (ranksieve train --features), define these in the engine with ranksieve feature-set, and "
            "train on its feature log"
        )
        warnings.warn(RanksieveWarning(text), stacklevel=caller_level())

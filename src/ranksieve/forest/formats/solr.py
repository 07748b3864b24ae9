"""A forest as Solr's `MultipleAdditiveTreesModel`.

Solr adds 1e-6 to every threshold in float32, then sends `x <= threshold` left. The threshold written is the float32
that becomes the right one; where there is none, the model is refused. Since version 9.2 a split may define where
missing values go; otherwise they count as 0.
"""

from __future__ import annotations

import json

import numpy as np

from ranksieve.errors import ModelError, param
from ranksieve.forest.float32 import above_single, below_single, floor_single, single_texts
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.writing import (
    DEFAULT,
    Options,
    check_directions,
    check_names,
    nested,
    place,
    single_values,
)
from ranksieve.forest.structure import checked_values

CLASS = "org.apache.solr.ltr.model.MultipleAdditiveTreesModel"
SLACK = np.float32(1e-6)  # NODE_SPLIT_SLACK of Solr


def to_solr(forest: Forest, options: Options = DEFAULT) -> str:
    """The JSON to upload to a model store; it lists the features that trees use, and is named as the file."""
    values = checked_values(forest, numerical_only="Solr")
    check_directions(forest, "Solr", None, options)
    check_names(forest, "Solr")
    leaves = single_texts(single_values(values, "Solr"))
    thresholds = single_texts(_before_slack(forest, options.nearest), infinity="Infinity")
    names = [json.dumps(feature, ensure_ascii=False) for feature in forest.feature_names]
    says_missing = options.missing == "nan"
    trees = []

    def before(at: int, depth: int) -> str:
        missing = f'"missing":"{"left" if forest.default_left[at] else "right"}",' if says_missing else ""
        return f'{{"feature":{names[forest.feature[at]]},"threshold":"{thresholds[at]}",{missing}"left":'

    def leaf(at: int, depth: int) -> str:
        return f'{{"value":"{leaves[at]}"}}'

    for tree in range(forest.n_trees):
        root = nested(forest, tree, before=before, between=lambda *_: ',"right":', after=lambda *_: "}", leaf=leaf)
        trees.append(f'{{"weight":"1","root":{root}}}')
    used = ",".join(f'{{"name":{names[number]}}}' for number in np.unique(forest.feature))
    nulls, separator = '"isNullSameAsZero":"false",' if says_missing else "", ",\n"
    return (
        f'{{"class":"{CLASS}","name":{json.dumps(options.name, ensure_ascii=False)},"features":[{used}],'
        f'"params":{{{nulls}"trees":[\n{separator.join(trees)}]}}}}\n'
    )


def _before_slack(forest: Forest, nearest: bool) -> np.ndarray:
    """Thresholds that Solr's addition turns into the true ones, or into the nearest possible ones below."""
    wanted = floor_single(forest.threshold)
    with np.errstate(over="ignore", invalid="ignore"):
        written = wanted - SLACK
        for _ in range(2):  # the rounded difference may be a step off to either side
            written = np.where(written + SLACK > wanted, below_single(written), written)
        higher = above_single(written)
        written = np.where(higher + SLACK <= wanted, higher, written)
    impossible = written + SLACK != wanted
    if impossible.any() and not nearest:
        raise ModelError(
            f"{place(forest, impossible)} has the threshold {wanted[np.argmax(impossible)]}, which Solr cannot "
            "express: it adds 1e-6 in float32, and no float32 sum is this threshold. Use the nearest one below with ",
            param("nearest"),
            ", or multiply the feature by 1,000 before training",
        )
    return written

"""Damaged files of every format that is read load, or are a ModelError that names the file; nothing else."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive_forest import random_forest
from ranksieve.errors import ModelError
from ranksieve.forest.formats.model_files import read
from ranksieve.forest.formats.xgboost import to_xgboost
from ranksieve.forest.formats.xml_models import to_quickrank, to_ranklib
from ranksieve.forest.matrix import encoded

FILES = Path(__file__).parent / "files"
FOREST = random_forest(np.random.default_rng(7), n_trees=3)
FOREST = dataclasses.replace(FOREST, default_left=np.zeros_like(FOREST.default_left))


def _binary() -> bytes:
    """A model of two trees in UBJSON, as XGBoost writes it."""
    return (FILES / "xgboost.ubj").read_bytes()


CONTENTS = {
    "xgboost": to_xgboost(FOREST).encode(),
    "binary": _binary(),
    "catboost": (FILES / "catboost_ranker.json").read_bytes(),
    "branching": (FILES / "catboost_depthwise.json").read_bytes(),
    "combinations": (FILES / "catboost_combinations.json").read_bytes(),
    "ranklib": to_ranklib(dataclasses.replace(FOREST, default_left=FOREST.threshold >= 0)).encode(),
    "quickrank": to_quickrank(FOREST).encode(),
}


def loads_or_says_why(content: bytes) -> None:
    try:
        forest = read(content, "the-file")
    except ModelError as error:
        assert str(error).startswith("the-file")
    else:
        assert np.isfinite(forest.predict(encoded(np.full((1, forest.n_features), np.nan), forest))).all()


@pytest.mark.parametrize("name", CONTENTS)
def test_every_way_of_being_cut_off(name):
    content = CONTENTS[name]
    step = max(1, len(content) // 400)
    for end in range(1, len(content) - 2, step):
        with pytest.raises(ModelError, match=r"^the-file"):
            read(content[:end], "the-file")


pieces = st.tuples(
    st.floats(0, 1), st.integers(0, 30), st.binary(max_size=8) | st.sampled_from([b"-1", b"1e999", b"NaN", b"{}"])
)


@pytest.mark.parametrize("name", CONTENTS)
@given(edits=st.lists(pieces, min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_garbled_content(name, edits):
    content = CONTENTS[name]
    for where, length, new in edits:
        at = int(where * len(content))
        content = content[:at] + new + content[at + length :]
    loads_or_says_why(content)


@pytest.mark.parametrize("name", CONTENTS)
@given(where=st.floats(0, 1), digit=st.sampled_from(b'0123456789-.eE"[]{}<>/,: \n\x00\xff'))
@settings(max_examples=60, deadline=None)
def test_one_wrong_byte(name, where, digit):
    content = CONTENTS[name]
    at = int(where * (len(content) - 1))
    loads_or_says_why(content[:at] + bytes([digit]) + content[at + 1 :])


@pytest.mark.parametrize(
    ("name", "old", "new", "what"),
    [
        ("xgboost", b'"num_trees": "3"', b'"num_trees": "4"', "holds 3 trees but num_trees is another number"),
        ("xgboost", b'"left_children":[1', b'"left_children":[0', "tree 0 is not a tree"),
        ("xgboost", b'"left_children":[1', b'"left_children":[99', "a child does not exist"),
        ("xgboost", b'"left_children":[1', b'"left_children":[1.5', "not integers"),
        ("xgboost", b'"split_indices":[', b'"split_indices":[7,', "split_indices for"),
        ("xgboost", b'"default_left"', b'"default"', "has no 'default_left'; expected an XGBoost model"),
        ("xgboost", b'"num_feature": "4"', b'"num_feature": "1"', r"uses feature number \d, expected 0 to 0"),
        ("xgboost", b'"base_score": "0E0"', b'"base_score": "[1, 2]"', "2 base scores"),
        ("xgboost", b'"base_score": "0E0"', b'"base_score": "1e99"', "not a finite number"),
        ("catboost", b"FloatFeature", b"OnlineCtr", "split on a statistic that the model does not have"),
        ("catboost", b"FloatFeature", b"TextFeature", "'TextFeature', only FloatFeature, OneHotFeature and OnlineCtr"),
        ("catboost", b'"scale_and_bias": [1, [0', b'"scale_and_bias": [1, [0, 0', "several scores"),
        ("catboost", b'"leaf_values": [', b'"leaf_values": [1, ', "leaf values for 3 splits"),
        ("ranklib", b"<feature>", b"<feature>x", r"the-file:\d+: feature is 'x\d', expected an integer from 1"),
        ("ranklib", b"<threshold>", b"<threshold>x", r"the-file:\d+: 'x.*' is not a number"),
        ("ranklib", b'pos="left"', b'pos="right"', r"the-file:\d+: a second right split"),
        ("ranklib", b"<output>", b"<feature>1</feature><output>", r"the-file:\d+: this split has neither"),
        ("ranklib", b"<ensemble>", b"<!DOCTYPE a [<!ENTITY b 'c'>]><ensemble>", "the-file"),
        ("quickrank", b"</tree>", b"</three>", r"the-file:\d+: is not well-formed XML \(mismatched tag"),
        ("quickrank", b"<output>", b"<output>inf", "is not a number"),
        ("quickrank", b"<features>4", b"<features>1", "uses feature 4, but 1 features were announced"),
    ],
)  # fmt: skip
def test_errors_name_the_cause(name, old, new, what):
    content = CONTENTS[name]
    assert old in content
    with pytest.raises(ModelError, match=what):
        read(content.replace(old, new), "the-file")

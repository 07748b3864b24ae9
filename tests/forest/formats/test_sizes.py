"""Small files that declare huge sizes, and numbers that only Python takes for numbers."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from naive_forest import random_forest
from ranksieve.errors import ModelError
from ranksieve.forest.forest import empty_forest
from ranksieve.forest.formats.lightgbm_writer import to_text
from ranksieve.forest.formats.model_files import read
from ranksieve.forest.formats.xgboost import to_xgboost
from ranksieve.models.load import read_model

TREE = "<tree id='1' weight='1'><split><output>0.5</output></split></tree>"
SPLIT = (
    "<tree id='1' weight='1'><split><feature>{feature}</feature><threshold>1</threshold>"
    "<split pos='left'><output>{left}</output></split><split pos='right'><output>2</output></split></split></tree>"
)


@contextmanager
def little_memory() -> Iterator[None]:
    """Refuse that more than some megabytes are allocated."""
    tracemalloc.start()
    try:
        yield
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 32 << 20


def xgboost(**changes: str) -> bytes:
    """A small XGBoost model with some numbers of its header replaced."""
    model = json.loads(to_xgboost(random_forest(np.random.default_rng(3), n_trees=2)))
    learner = model["learner"]
    for place in (learner["learner_model_param"], learner["gradient_booster"]["model"]["gbtree_model_param"]):
        place.update({key: value for key, value in changes.items() if key in place})
    if "num_nodes" in changes:
        learner["gradient_booster"]["model"]["trees"][0]["tree_param"]["num_nodes"] = changes["num_nodes"]
    return json.dumps(model).encode()


def quickrank(tree: str, info: str = "") -> bytes:
    return f"<ranker><info><type>MART</type>{info}</info><ensemble>{tree}</ensemble></ranker>".encode()


def catboost(index: int = 0, bias: float = 0.0, scale: float = 1.0, value: float = 1.0) -> bytes:
    features = [{"feature_index": 0, "flat_feature_index": index, "nan_value_treatment": "AsIs", "borders": []}]
    tree = {
        "splits": [{"split_type": "FloatFeature", "float_feature_index": 0, "border": 0.5}],
        "leaf_values": [value, 1],
    }
    model = {
        "features_info": {"float_features": features},
        "scale_and_bias": [scale, [bias]],
        "oblivious_trees": [tree],
    }
    return json.dumps(model).encode()


@pytest.mark.parametrize(
    "content",
    [
        xgboost(num_feature="999999999"),
        xgboost(num_feature="99999999999999999999"),
        xgboost(num_trees="999999999"),
        xgboost(num_nodes="999999999"),
        catboost(index=999_999_998),
        catboost(index=10**18),
        quickrank(TREE, "<features>999999999</features>"),
        quickrank(SPLIT.format(feature=999_999_999, left=1)),
        f"## LambdaMART\n## No. of features = 999999999\n\n<ensemble>{TREE}</ensemble>".encode(),
        f"## LambdaMART\n\n<ensemble>{SPLIT.format(feature=999_999_999, left=1)}</ensemble>".encode(),
        b"{U\x07learner[$Z#L\x00\x00\x00\x01\x00\x00\x00\x00}",
    ],
    ids=range(11),
)
def test_declared_sizes_are_checked_before_anything_is_allocated(content):
    with pytest.raises(ModelError, match=r"^m: "), little_memory():
        read(content, "m")


def test_arrays_of_constants_do_not_multiply():
    size = 60_000
    inner = b"[$Z#I" + (30_000).to_bytes(2, "big")
    content = b"{U\x07learner[" + inner * (size // len(inner)) + b"]}"
    with pytest.raises(ModelError, match="values without content"), little_memory():
        read(content, "m")


def test_classes_without_trees_are_limited():
    text = to_text(empty_forest(["a"])).replace("num_class=1\n", "num_class=999999999\n")
    text = text.replace("num_tree_per_iteration=1\n", "num_tree_per_iteration=999999999\n")
    text = text.replace("objective=lambdarank\n", "objective=multiclass num_class:999999999\n")
    with pytest.raises(ModelError, match=r"^m:\d+: 0 trees are not whole rounds of 999999999"):
        read_model(text.encode(), "m")


def test_a_sparse_feature_number_is_read():
    forest = read(quickrank(SPLIT.format(feature=70_000, left=1)), "m")
    assert forest.n_features == 70_000
    assert forest.predict(np.zeros((1, 70_000), np.float32)).tolist() == [1.0]


LIGHTGBM = "\n".join(
    line for line in to_text(random_forest(np.random.default_rng(7))).split("\n") if not line.startswith("tree_sizes=")
)


@pytest.mark.parametrize("key", ["leaf_value", "threshold", "split_feature", "left_child", "leaf_count", "split_gain"])
@pytest.mark.parametrize("number", ["1_0", "1٣"])
def test_lightgbm_numbers_are_plain(key, number):
    first, _, rest = LIGHTGBM.partition(f"\n{key}=")
    _, _, rest = rest.partition(" ")
    with pytest.raises(ModelError, match=rf"m:\d+: {key} holds '{number}', expected (a number|an integer)"):
        read(f"{first}\n{key}={number} {rest}".encode(), "m")


@pytest.mark.parametrize(
    "content",
    [
        xgboost(num_feature="1_0"),
        xgboost(num_trees="0_2"),
        xgboost(base_score="1_0"),
        quickrank(SPLIT.format(feature="1_0", left=1)),
        quickrank(SPLIT.format(feature="1", left="1_0")),
        quickrank(TREE.replace("weight='1'", "weight='1_0'")),
        quickrank(TREE, "<features>1_0</features>").replace(b"0.5", b"0_5"),
    ],
    ids=range(7),
)
def test_underscores_are_not_digits(content):
    with pytest.raises(ModelError, match=r"^m:"):
        read(content, "m")


def test_a_number_of_features_in_another_script_is_ignored():
    for features in ("²", "٣"):
        assert read(quickrank(TREE, f"<features>{features}</features>"), "m").n_features == 1
        content = f"## LambdaMART\n## No. of features = {features}\n\n<ensemble>{TREE}</ensemble>"
        assert read(content.encode(), "m").n_features == 1


@pytest.mark.parametrize(
    "content",
    [
        LIGHTGBM.replace("leaf_value=", "leaf_value=inf ", 1).encode(),
        xgboost(base_score="inf"),
        xgboost(base_score="1e39"),
        quickrank(SPLIT.format(feature=1, left="inf")),
        quickrank(SPLIT.format(feature=1, left="1e308")).replace(b"weight='1'", b"weight='1e30'"),
        catboost(bias=float("inf")),
        catboost(scale=1e300, value=1e300),
        catboost(value=float("inf")),
    ],
    ids=range(8),
)
def test_infinite_leaf_values_are_refused(content):
    with pytest.raises(ModelError, match=r"^m"):
        read(content, "m")

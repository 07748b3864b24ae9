"""Bad model files are refused with file, line and remedy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from naive_forest import naive_scores, random_forest
from ranksieve.errors import ModelError
from ranksieve.forest.formats.lightgbm_reader import from_text
from ranksieve.forest.formats.lightgbm_writer import to_text
from ranksieve.forest.formats.model_files import load_forest

MODEL = to_text(random_forest(np.random.default_rng(7), n_trees=3, zero_missing=True))


def changed(old: str, new: str) -> str:
    """A valid model with one text replaced; tree_sizes are left out, so that other checks are reached."""
    text = "\n".join(line for line in MODEL.split("\n") if not line.startswith("tree_sizes="))
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "m: is empty"),
        ("\n \n", "m: is empty"),
        ("1 qid:3 1:0.5\n", "m:1: starts with '1 qid:3 1:0.5'"),
        (MODEL[: len(MODEL) // 3], r"m:\d+: ends before 'end of trees'; the file is cut off"),
        (MODEL[: MODEL.index("ranksieve:")], r"m:\d+: ends before its line 'ranksieve:'"),
        (MODEL[: MODEL.index("ranksieve:") + 40], r"m:\d+: is not JSON"),
        (MODEL.replace("version=v4", "version=v9"), "m:2: version is 'v9', expected one of v2, v3, v4"),
        (MODEL.replace("version=v4\n", ""), "no line 'version='"),
        (MODEL.replace("num_leaves=", "num_leaves=0", 1), r"m:\d+: tree 0 has \d+ bytes but tree_sizes has"),
        (changed("Tree=1\n", "Tree=2\n"), r"m:\d+: expected Tree=1 here"),
        (changed("num_leaves=", "num_leaves=x"), r"m:13: num_leaves is 'x"),
        (changed("leaf_value=", "leaf_value=1 "), r"m:21: leaf_value of tree 0 has \d+ values, expected"),
        (changed("leaf_value=", "leaf_value=x"), r"m:21: leaf_value holds 'x.*expected a number"),
        (changed("leaf_value=", "leaf_value=\u2003"), r"m:21: leaf_value holds '\\u2003.*expected a number"),
        (
            changed("split_feature=", "split_feature=9"),
            r"split_feature of tree 0 holds 9\d+?; the model has features 0",
        ),
        (changed("split_feature=", "split_feature=1."), "split_feature holds '1..', expected an integer"),
        (changed("left_child=", "left_child=99999999999999999999"), "left_child holds '9999"),
        (changed("left_child=", "left_child=7"), r"m:19: tree 0 is not a tree: a child does not exist"),
        (changed("decision_type=", "decision_type=1"), "expected a number from 0 to 11"),
        (changed("max_feature_idx=3", "max_feature_idx=4"), "m:6: max_feature_idx is '4' but there are 4"),
        (changed('{"format": 1', '{"format": 2'), r"format 2, this ranksieve reads up to 1; upgrade"),
        (changed('"feature_names": ["f1", ', '"feature_names": ['), "needs a format, 4 feature names"),
    ],
    ids=range(22),
)
def test_bad_files_are_refused_with_their_place(text, what):
    with pytest.raises(ModelError, match=what):
        from_text(text, source="m")


def test_unreadable_files(tmp_path):
    with pytest.raises(ModelError, match=r"none\.txt: no such file"):
        load_forest(tmp_path / "none.txt")
    (tmp_path / "model.pickle").write_bytes(b"tree\n\x80\x04\x95")
    with pytest.raises(ModelError, match=r"model.pickle:2: is not UTF-8 text"):
        load_forest(tmp_path / "model.pickle")


edits = st.lists(
    st.tuples(
        st.integers(0, len(MODEL)), st.integers(0, 40), st.sampled_from([b"", b"\n", b"\xff", None]) | st.binary()
    ),
    min_size=1,
    max_size=4,
)


@given(edits, st.booleans())
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_damage_loads_or_is_a_model_error(tmp_path, edits, sized):
    content = (MODEL if sized else changed("Tree=0", "Tree=0")).encode()
    for at, length, new in edits:
        content = content[:at] if new is None else content[:at] + new + content[at + length :]
    path = tmp_path / "model.txt"
    path.write_bytes(content)
    try:
        forest = load_forest(path)
    except ModelError as error:
        assert str(path) in str(error)
    else:
        naive_scores(forest, np.full((1, max(forest.n_features, 1)), np.nan))


@given(st.integers(0, 2**32), st.sampled_from("0123456789- .\n=eni"))
@settings(max_examples=120, deadline=None)
def test_one_wrong_character_loads_or_is_a_model_error(seed, character):
    text = changed("Tree=0", "Tree=0")
    at = seed % len(text)
    try:
        forest = from_text(text[:at] + character + text[at + 1 :])
    except ModelError:
        return
    assert np.isfinite(naive_scores(forest, np.zeros((1, max(forest.n_features, 1))))).all()

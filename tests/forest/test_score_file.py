"""Scores of data files: whether the first stage can be compared, and why not."""

from __future__ import annotations

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.errors import joined_parts
from ranksieve.forest.score_file import score_each

NAMES = ("bm25", "length")


@pytest.fixture(scope="module")
def data():
    features = np.array([[3.0, 1], [1, 2], [5, 9], [4, 0], [2, 2]], np.float32)
    return rs.Dataset.from_arrays(features, [1, 0, 2, 0, 0], group=[2, 3]).with_features(NAMES)


def test_without_a_noted_first_stage_the_reason_names_the_parameter(data, tmp_path):
    model = rs.train(data, trees=1, leaves=2, min_docs=1, verbose=False)
    rs.io.write_parquet(data, tmp_path / "data.parquet")
    reason = score_each({"model": model}, tmp_path / "data.parquet", None).why_no_first_stage
    assert reason is not None
    assert joined_parts(reason).endswith("is its score; name its feature with first_stage='NAME'")
    assert joined_parts(reason, flags=True).endswith("is its score; name its feature with --first-stage NAME")
    named = score_each({"model": model}, tmp_path / "data.parquet", None, first_stage="bm25")
    assert named.why_no_first_stage is None and named.first_stage.tolist() == data.features[:, 0].tolist()

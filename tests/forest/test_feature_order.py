"""Columns of files and tables whose names contradict the numbers of a model's features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import ranksieve as rs
from ranksieve.data.features import match_features, same_features
from ranksieve.errors import DataError, RanksieveWarning
from ranksieve.forest.score_file import open_for, score_file
from samples import small_dataset

DATA = small_dataset(n_queries=4, n_features=4)
MODEL = rs.train(DATA, trees=5, leaves=6, min_docs=2)
WANT = MODEL.predict(DATA.features)


def frame(names: list[str], columns: list[int]) -> pd.DataFrame:
    qid = np.repeat(DATA.query_ids, DATA.lists.sizes)
    return pd.DataFrame(DATA.features[:, columns], columns=names).assign(label=DATA.labels, qid=qid)


def ways(table: pd.DataFrame, folder, model=MODEL):
    """Functions that score the same documents as CSV, Parquet, a data set and a table."""
    table.to_csv(folder / "data.csv", index=False)
    table.to_parquet(folder / "data.parquet")
    models = {"model": model}
    for name in ("data.csv", "data.parquet"):
        yield lambda path=folder / name: score_file(models, open_for(path, models, None)).scores["model"]
    yield lambda: model.predict(rs.read(folder / "data.csv"))
    yield lambda: model.predict(table.drop(columns=["label", "qid"]))


@pytest.mark.parametrize(
    "names", [["f3", "f1", "f4", "f2"], ["3", "1", "4", "2"], ["2", "0", "3", "1"], ["Column_2", "Column_0", "Column_3",
    "Column_1"], ["feature-3", "feature-1", "feature-4", "feature-2"]], ids=lambda names: names[0],
)  # fmt: skip
def test_columns_with_numbers_are_matched_by_number(names, tmp_path):
    for score in ways(frame(names, [2, 0, 3, 1]), tmp_path):
        np.testing.assert_array_equal(score(), WANT)
    params = {"trees": 3, "leaves": 4, "min_docs": 2}
    want, got = (rs.train(DATA, valid=valid, **params) for valid in (DATA, frame(names, [2, 0, 3, 1])))
    assert got.info["history"] == want.info["history"]


@pytest.mark.parametrize("names", [["f2", "f1", "x", "y"], ["f2", "f3", "f4", "f5"], ["1", "x", "f2", "f1"]])
def test_names_that_contradict_the_numbers_are_refused(names, tmp_path):
    for score in ways(frame(names, [0, 1, 2, 3]), tmp_path):
        with pytest.raises(DataError, match=r"in training.* is missing; give the same features in the same order"):
            score()


def test_names_that_say_nothing_about_the_order_are_matched_by_place_with_a_warning(tmp_path):
    for score in ways(frame(["bm25", "length", "spam", "links"], [0, 1, 2, 3]), tmp_path):
        with pytest.warns(RanksieveWarning, match="taken by position.*'bm25' as 'f1' to 'links' as 'f4'; check their"):
            np.testing.assert_array_equal(score(), WANT)


def test_numbers_of_text_contradict_columns_in_another_order(tmp_path):
    model = replace(MODEL, feature_names=("f2", "f1", "f3", "f4"))
    rs.io.write_letor(DATA, tmp_path / "data.txt")
    with pytest.raises(DataError, match="feature 1 is 'f1', but was 'f2' in training"):
        score_file({"model": model}, open_for(tmp_path / "data.txt", {"model": model}, None))


def test_features_are_the_same_by_number_from_0_and_from_1():
    assert same_features(["1", "2"], ["0", "1"]) and same_features(["Column_0", "Column_1"], ["f1", "f2"])
    assert not same_features(["f2", "f1"], ["Column_0", "Column_1"])
    assert match_features(["Column_1", "Column_0"], ["f1", "f2"], "data").tolist() == [1, 0]

"""`Dataset` and `Lists`: grouping, order, selection, and what is refused."""

import copy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from ranksieve.data.data_file import DataFile
from ranksieve.data.dataset import Dataset
from ranksieve.data.features import default_names
from ranksieve.data.lists import Lists, lists_from_runs, runs_of
from ranksieve.errors import DataError, MissingQueriesError, ParameterError, RanksieveError

X = np.arange(12.0).reshape(6, 2)
APART = ["b", "a", "b", "c", "a", "b"]  # in the order of their first rows: b 0 2 5, a 1 4, c 3


@pytest.fixture(params=["dense", "fortran", "sparse"])
def data(request):
    features = {"dense": X, "fortran": np.asfortranarray(X), "sparse": scipy.sparse.csr_array(X)}[request.param]
    return Dataset.from_arrays(
        features, [0, 1, 2, 3, 4, 0], qid=APART, doc_ids=list("uvwxyz"), weights=[1, 2, 3, 4, 5, 6]
    )


def test_queries_that_lie_apart_are_joined_in_the_order_of_their_first_rows(data):
    assert data.query_ids.tolist() == ["b", "a", "c"]
    assert data.offsets.tolist() == [0, 3, 5, 6]
    assert data.labels.tolist() == [0, 2, 0, 1, 4, 3]
    assert data.lists.doc_ids.tolist() == list("uwzvyx")
    assert data.lists.weights.tolist() == [1, 3, 6, 2, 5, 4]
    np.testing.assert_array_equal(data.rows(0, 6), X[[0, 2, 5, 1, 4, 3]])
    np.testing.assert_array_equal(data.column("f2"), X[[0, 2, 5, 1, 4, 3], 1])
    assert data.lists.to_user_order(data.labels).tolist() == [0, 1, 2, 3, 4, 0]


def test_blocks_are_float32_rows_in_list_order(data):
    blocks = list(data.blocks(4))
    assert [len(block) for block in blocks] == [4, 2]
    assert all(block.dtype == np.float32 and block.flags.c_contiguous for block in blocks)
    np.testing.assert_array_equal(np.concatenate(blocks), data.rows(0, 6))


def test_queries_and_rows_can_be_taken(data):
    taken = data.take_queries([2, 0])
    assert taken.query_ids.tolist() == ["c", "b"] and taken.offsets.tolist() == [0, 1, 4]
    np.testing.assert_array_equal(taken.rows(0, 4), X[[3, 0, 2, 5]])
    assert taken.lists.doc_ids.tolist() == list("xuwz")
    fewer = data.take_rows(np.array([5, 0, 2]))
    assert fewer.query_ids.tolist() == ["b", "c"] and fewer.offsets.tolist() == [0, 2, 3]
    np.testing.assert_array_equal(fewer.rows(0, 3), X[[0, 5, 3]])
    assert fewer.lists.weights.tolist() == [1, 6, 4]


def test_float32_arrays_are_handed_out_as_views():
    features = X.astype(np.float32)
    data = Dataset.from_arrays(features, np.zeros(6), group=[2, 4])
    assert np.shares_memory(data.rows(1, 3), features)
    assert data.query_ids.tolist() == [0, 1] and data.lists.order is None


def test_a_query_cut_into_neighbouring_runs_needs_no_new_order():
    lists = lists_from_runs(np.zeros(5), ["a", "a", "b", "b"], np.array([1, 1, 2, 1]))
    assert lists.offsets.tolist() == [0, 2, 5] and lists.order is None


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["7", "10"], [7, 10]),
        ([7.0, 10.0], [7, 10]),
        (["07", "10"], ["07", "10"]),
        (["7", "²"], ["7", "²"]),
        (["7", "x"], ["7", "x"]),
        (["7" * 30, "8"], ["7" * 30, "8"]),
        ([0.5, 1.5], ["0.5", "1.5"]),
        ([-3, 2], [-3, 2]),
    ],
)
def test_query_ids_are_whole_numbers_where_all_look_like_that(ids, expected):
    data = Dataset.from_arrays(np.ones((2, 1)), [0, 1], qid=ids)
    assert data.query_ids.tolist() == expected


@pytest.mark.parametrize("options", [{}, {"qid": [1, 2], "group": [1, 1]}])
def test_missing_queries_have_an_error_of_their_own(options):
    with pytest.raises(MissingQueriesError, match="exactly one of qid"):
        Dataset.from_arrays(np.ones((2, 1)), [0, 1], **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "exactly one of qid"),
        ({"qid": [1, 1], "group": [2]}, "exactly one of qid"),
        ({"qid": [1]}, "qid has 1 values for 2 rows"),
        ({"qid": [1.0, np.nan]}, "query id is missing"),
        ({"qid": np.array(["a", None], dtype=object)}, "query id is missing"),
        ({"qid": np.array(["a", np.nan], dtype=object)}, "query id is missing"),
        ({"qid": ["a", "a\0"]}, r"row 1: the query id 'a\\x00' has a NUL character"),
        ({"qid": np.array(["a\0b", "a"])}, r"row 0: the query id 'a\\x00b' has a NUL character"),
        ({"qid": ["a", "\ud800"]}, r"row 1: the query id '\\ud800' cannot be written as UTF-8"),
        ({"group": [2], "doc_ids": ["a\0", "a"]}, r"row 0: the document id 'a\\x00' has a NUL character"),
        ({"group": [1, 2]}, "add up to 3 but there are 2 rows"),
        ({"group": [2, 0]}, "query number 1 has no documents"),
        ({"group": [2], "y": [1, np.nan]}, "label of row 1 is nan"),
        ({"group": [2], "y": [1, -2]}, "label of row 1 is -2.0"),
        ({"group": [2], "y": ["x", "y"]}, "not numbers"),
        ({"group": [2], "y": [10**400, 0]}, "y holds values that are not numbers"),
        ({"group": [2], "y": [1, 2, 3]}, "y has 3 values for 2 rows"),
        ({"group": [2], "weights": [1, np.inf]}, "weights must be finite"),
        ({"group": [2], "weights": [0, 0]}, "not all zero"),
        ({"group": [2], "weights": [1, 2, 3]}, "3 weights for 2 documents of 1 queries"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(DataError, match=message):
        Dataset.from_arrays(np.ones((2, 2)), options.pop("y", [0, 1]), **options)


@pytest.mark.parametrize(
    ("described", "message"),
    [
        ({"names": ["a"]}, "1 feature names for 2 features"),
        ({"names": ["a", "a"]}, "must be unique"),
        ({"first_stage": "bm25"}, "no feature is named 'bm25'"),
        ({"first_stage": 2}, "feature 2 does not exist"),
        ({"categorical": "brand"}, "no feature is named 'brand'"),
    ],
)
def test_descriptions_of_features_that_are_refused(described, message):
    data = Dataset.from_arrays(np.ones((2, 2)), [0, 1], group=[2])
    with pytest.raises(RanksieveError, match=message):
        data.with_features(**described)


def test_features_are_described_again():
    data = Dataset.from_arrays(np.ones((2, 2)), [0, 1], group=[2]).with_features(categorical="f2", first_stage=0)
    named = data.with_features(["bm25", "brand"])
    assert (named.feature_names, named.first_stage, named.categories) == (("bm25", "brand"), 0, {"brand": []})


def test_columns_of_a_table_of_features_are_ignored():
    table = pd.DataFrame({"bm25": [1.0, 2.0], "url": ["a", "b"], "u2": ["a", "b"]})
    data = Dataset.from_arrays(DataFile(table, ignore="u*"), [0, 1], group=[2])
    assert data.feature_names == ("bm25",) and data.features.tolist() == [[1.0], [2.0]]
    with pytest.raises(ParameterError, match=r"ignore is 'x', but X is no table, .*; leave them out of X"):
        Dataset.from_arrays(DataFile(np.ones((2, 2)), ignore="x"), [0, 1], group=[2])


def test_a_table_of_features_names_no_other_columns():
    table = DataFile(pd.DataFrame({"bm25": [1.0, 2.0]}), weight="bm25")
    with pytest.raises(
        ParameterError,
        match="weight is not used here; give y, qid and the others as arguments, or read",
    ):
        Dataset.from_arrays(table, [0, 1], group=[2])


def test_default_names_count_from_one():
    assert default_names(3) == ("f1", "f2", "f3")


@settings(deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=40))
def test_grouping_is_a_stable_sort_by_first_row(ids):
    ids = np.array(ids)
    rows = np.arange(len(ids))
    data = Dataset.from_arrays(rows[:, None], rows, qid=ids)
    firsts = list(dict.fromkeys(ids.tolist()))
    expected = [row for first in firsts for row in rows[ids == first].tolist()]
    assert data.labels.tolist() == expected
    assert data.rows(0, len(ids)).ravel().tolist() == expected
    assert data.query_ids.tolist() == firsts
    assert data.lists.to_user_order(data.labels).tolist() == rows.tolist()
    run_ids, run_lengths = runs_of(ids)
    np.testing.assert_array_equal(np.repeat(run_ids, run_lengths), ids)


def test_arrays_in_place_of_lists_are_refused_with_advice():
    X, y, qid = np.zeros((2, 1)), [1, 0], ["a", "a"]
    for call in (
        lambda: Dataset(X, y, qid),
        lambda: Dataset(X, y),
        lambda: Dataset(X, y, qid=qid),
        lambda: Dataset(X),
    ):
        with pytest.raises(DataError, match=r"call Dataset\.from_arrays\(X, y, qid\)"):
            call()
    data = Dataset.from_arrays(X, y, qid)
    assert copy.deepcopy(data).query_ids.tolist() == ["a"]


def test_document_ids_are_one_per_row():
    with pytest.raises(DataError, match="doc_ids has 1 values for 2 rows"):
        Dataset.from_arrays(np.zeros((2, 1)), [1, 0], [1, 1], doc_ids=["a"])


@pytest.mark.parametrize(
    ("labels", "size"), [([0, 255, -0.0, 4], 1), ([0, 256, 3, 4], 4), ([0, 0.5, 3, 4], 4), ([0, 1e30, 3, 4], 4)]
)
def test_labels_that_are_small_whole_numbers_take_a_byte(labels, size):
    lists = Lists(np.array(labels, np.float32), np.array([0, 1, 4]), np.arange(2)).small()
    assert lists.stored_labels.itemsize == size and lists.n_docs == 4
    assert lists.labels.dtype == np.float32 and lists.labels.tolist() == np.array(labels, np.float32).tolist()
    taken = lists.take_rows(np.array([1, 3]))
    assert taken.stored_labels.itemsize == size and taken.labels.tolist() == lists.labels[[1, 3]].tolist()
    assert (-lists.labels <= 0).all()  # bytes would wrap around


def test_labels_among_the_features_of_a_table_are_refused():
    frame = pd.DataFrame({"bm25": [0.5, 0.1, 0.7], "label": [1, 0, 2], "qid": [1, 1, 2]})
    with pytest.raises(DataError, match="the column 'label' holds the labels y and would be a feature; drop it"):
        Dataset.from_arrays(frame, frame["label"])
    assert Dataset.from_arrays(frame, [0, 1, 0]).feature_names == ("bm25", "label")  # another thing of that name
    assert Dataset.from_arrays(frame.drop(columns="label"), frame["label"]).feature_names == ("bm25",)

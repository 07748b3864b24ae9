"""LETOR text that was written is read again as it was."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ranksieve.data.dataset import Dataset
from ranksieve.data.letor import write_letor
from ranksieve.data.read import open_data, read
from ranksieve.errors import DataError

QUICK = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_written_and_read_again(tmp_path, suffix):
    data = Dataset.from_arrays(
        np.float32([[0.1, np.nan, 0], [1e-45, -3.4e38, 0], [16777216, 1 / 3, 0]]),
        [0, 1.5, 2],
        qid=["a", "b", "a"],
        doc_ids=["x", None, "two words"],
        weights=[1, 0.1, 3],
    )
    path = tmp_path / f"data.txt{suffix}"
    write_letor(data, path)
    back = read(path)
    np.testing.assert_array_equal(back.features, data.features)
    np.testing.assert_array_equal(back.lists.order, data.lists.order)
    np.testing.assert_array_equal(back.labels, data.labels)
    np.testing.assert_array_equal(back.lists.weights, data.lists.weights)
    assert back.query_ids.tolist() == ["a", "b"]
    assert back.lists.doc_ids.tolist() == data.lists.doc_ids.tolist()
    write_letor(open_data(path), tmp_path / "again.txt")
    np.testing.assert_array_equal(read(tmp_path / "again.txt").features, data.features)


def test_what_text_cannot_hold_is_not_written(tmp_path):
    path = tmp_path / "data.txt"
    for options, message in (
        ({"qid": ["a b"]}, "white space"),
        ({"qid": [""]}, "white space"),
        ({"qid": [1], "doc_ids": ["a\nb"]}, "line breaks"),
    ):
        with pytest.raises(DataError, match=message):
            write_letor(Dataset.from_arrays([[1.0]], [1], **options), path)
    (tmp_path / "data.txt.weight").write_text("1\n")
    with pytest.raises(DataError, match="remove it first"):
        write_letor(Dataset.from_arrays([[1.0]], [1], qid=[1]), path)
    assert not path.exists()


@st.composite
def datasets(draw):
    n_docs, n_features = draw(st.integers(1, 12)), draw(st.integers(1, 5))
    value = st.one_of(st.just(0.0), st.floats(width=32, allow_infinity=False))
    rows = draw(st.lists(st.lists(value, min_size=n_features, max_size=n_features), min_size=n_docs, max_size=n_docs))
    column = {"min_size": n_docs, "max_size": n_docs}
    ids = st.text(
        st.characters(codec="utf-8", exclude_categories=("Cc", "Zs", "Zl", "Zp", "Cs")), min_size=1, max_size=4
    )
    return Dataset.from_arrays(
        np.array(rows, dtype=np.float32),
        np.float32(draw(st.lists(st.floats(0, 2.0**100, width=32), **column))),
        qid=np.array(draw(st.lists(st.one_of(st.sampled_from(["1", "2"]), ids), **column)), dtype=object),
    )


@QUICK
@given(datasets())
def test_any_data_set_survives_text(folder, data):
    path = folder / "any.txt"
    write_letor(data, path)
    back = read(path)
    np.testing.assert_array_equal(back.features, data.features)
    np.testing.assert_array_equal(back.labels, data.labels)
    np.testing.assert_array_equal(back.offsets, data.offsets)
    assert back.query_ids.tolist() == data.query_ids.tolist()

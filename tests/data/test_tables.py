"""Tables of other libraries, and Parquet files."""

import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse

from ranksieve.data import feature_columns, parquet
from ranksieve.data.binned import bin_data
from ranksieve.data.dataset import Dataset
from ranksieve.data.letor import write_letor
from ranksieve.data.parquet import write_parquet
from ranksieve.data.read import open_data, read
from ranksieve.data.tables import split_table
from ranksieve.errors import DataError

COLUMNS = {"bm25": [1.5, None, 3.0], "qid": ["a", "a", "b"], "clicks": [1, 2, 3], "fresh": [True, False, True]}
FRAMES = {
    "pandas": lambda columns: pd.DataFrame(columns),
    "pandas categories": lambda columns: pd.DataFrame(columns).astype({"qid": "category"}),
    "pandas nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "polars": lambda columns: pl.DataFrame(columns),
    "arrow table": lambda columns: pa.table(columns),
    "arrow chunks": lambda columns: pa.concat_tables([pa.table(columns).slice(0, 2), pa.table(columns).slice(2)]),
    "arrow batch": lambda columns: pa.RecordBatch.from_pydict(columns),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_become_float32(kind):
    features, names, qid, _ = split_table(FRAMES[kind](COLUMNS))
    np.testing.assert_array_equal(features, np.float32([[1.5, 1, 1], [np.nan, 2, 0], [3, 3, 1]]))
    assert features.dtype == np.float32 and features.flags.c_contiguous
    assert names == ("bm25", "clicks", "fresh")
    assert list(qid) == ["a", "a", "b"]
    data = Dataset.from_arrays(FRAMES[kind](COLUMNS), [1, 0, 2])
    assert data.query_ids.tolist() == ["a", "b"] and data.feature_names == names


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"title": ["x", "y"], "qid": ["1", "2"]}, "column 'title' holds .*expected numbers"),
        ({"qid": ["1", "2"]}, "0 feature columns"),
        ({"bm25": [1.0, 2.0], "qid": ["1", None]}, "row 1: column 'qid' is null"),
    ],
)
def test_frames_that_cannot_be_used(kind, columns, message):
    with pytest.raises(DataError, match=message):
        split_table(FRAMES[kind](columns))


def test_frames_with_columns_of_one_name():
    frame = pd.DataFrame([[1.0, 2.0]], columns=["a", "a"])
    for table in (frame, pa.table([pa.array([1.0]), pa.array([2.0])], names=["a", "a"])):
        with pytest.raises(DataError, match="two columns are named 'a'"):
            split_table(table)


def test_frame_columns_may_be_numbered():
    features, names, qid, _ = split_table(pd.DataFrame(np.arange(6.0).reshape(3, 2)))
    assert names == ("0", "1") and qid is None
    np.testing.assert_array_equal(features, np.arange(6).reshape(3, 2))


def test_large_frames_are_filled_slab_by_slab(monkeypatch):
    monkeypatch.setattr(feature_columns, "SLAB_ROWS", 7)
    values = np.random.default_rng(0).normal(size=(100, 3))
    np.testing.assert_array_equal(split_table(pl.DataFrame(values))[0], values.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8, bool])
@pytest.mark.parametrize("order", "CF")
def test_arrays_are_not_copied(dtype, order):
    array = np.ones((3, 2), dtype=dtype, order=order)
    features, names, qid, _ = split_table(array)
    assert features is array and names is None and qid is None


def test_lists_and_sparse_matrices():
    assert split_table([[1, 2], [3, 4]])[0].tolist() == [[1, 2], [3, 4]]
    for kind in (scipy.sparse.csc_matrix, scipy.sparse.coo_array):
        features, names, _, _ = split_table(kind(np.eye(3)))
        assert features.format == "csr" and names is None
        np.testing.assert_array_equal(features.toarray(), np.eye(3))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.ones(3), "expected 2"),
        (np.ones((2, 2, 2)), "expected 2"),
        (np.ones((0, 2)), r"shape \(0, 2\)"),
        (np.ones((2, 0)), r"shape \(2, 0\)"),
        (pl.DataFrame({"a": pl.Series([], dtype=pl.Float64)}), "0 rows"),
        ([["a", "b"]], "expected numbers"),
        ([[1, 2], [3]], "rows of equal length"),
        ([[1, None]], "expected numbers"),
        (np.ones((2, 2), dtype=complex), "expected numbers"),
        (scipy.sparse.csr_matrix((0, 3)), "shape"),
        (None, "expected 2"),
        (pl.LazyFrame({"a": [1]}), "expected 2"),
    ],
)
def test_what_is_no_table(table, message):
    with pytest.raises(DataError, match=message):
        split_table(table)


def random_data(n_docs=250, **options):
    rng = np.random.default_rng(3)
    features = rng.normal(size=(n_docs, 9))
    features[rng.random(features.shape) < 0.2] = np.nan
    return Dataset.from_arrays(features, rng.integers(0, 5, n_docs), qid=rng.integers(0, 20, n_docs), **options)


def assert_same(found, expected):
    np.testing.assert_array_equal(found.features, np.asarray(expected.features, dtype=np.float32))
    for name in ("labels", "offsets", "query_ids"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for name in ("order", "doc_ids", "weights"):
        np.testing.assert_array_equal(getattr(found.lists, name), getattr(expected.lists, name))
    assert found.query_ids.dtype == expected.query_ids.dtype
    assert found.feature_names == expected.feature_names
    assert found.first_stage == expected.first_stage


@pytest.mark.parametrize("group_rows", [64, 65_536])
def test_parquet_written_and_read_again(tmp_path, monkeypatch, group_rows):
    monkeypatch.setattr(parquet, "GROUP_ROWS", group_rows)
    path = tmp_path / "data.parquet"
    plain = random_data()
    full = random_data(
        doc_ids=[f"d{row}" for row in range(250)],
        weights=np.arange(250) / 7,
    ).with_features([f"s.{name}" for name in "abcdefghi"], first_stage="s.d")
    for data in (plain, full):
        write_parquet(data, path)
        assert pq.ParquetFile(path).metadata.row_group(0).num_rows == min(group_rows, 250)
        assert_same(read(path), data)
        for rows in (3, 1000):
            blocks = list(open_data(path).blocks(rows))
            assert max(block.n_docs for block in blocks) == min(rows, 250)
            np.testing.assert_array_equal(np.concatenate([b.features for b in blocks]), data.features.astype("f4"))
            assert sum(block.run_lengths.sum() for block in blocks) == 250
    assert read(path, first_stage=1).first_stage == 1


def test_parquet_of_sparse_data_and_text_ids(tmp_path):
    path = tmp_path / "data.parquet"
    data = Dataset.from_arrays(scipy.sparse.csr_array(np.eye(3)), [1, 0, 2], qid=["x", "y", "x"])
    write_parquet(data, path)
    back = read(path)
    np.testing.assert_array_equal(back.features, np.eye(3))
    assert back.query_ids.tolist() == ["x", "y"] and back.lists.order.tolist() == [0, 2, 1]


@pytest.mark.parametrize("missing", ["zero", "nan"])
@pytest.mark.parametrize("ids", [("1", "2"), ("01", "x")])
def test_text_is_packed_as_it_is_read(tmp_path, missing, ids):
    text, packed = tmp_path / "data.txt", tmp_path / "data.parquet"
    a, b = ids
    text.write_text(f"1 qid:{a} 1:5 # docid = x\n0 qid:{b} 3:0.1\n2 qid:{a} 2:nan 5:1 # y z\n")
    (tmp_path / "data.txt.weight").write_text("1\n2\n3\n")
    write_parquet(open_data(text, missing=missing, first_stage="f2"), packed)
    assert_same(read(packed), read(text, missing=missing, first_stage="f2"))
    # And once more from Parquet to Parquet and to text.
    write_parquet(open_data(packed), tmp_path / "again.parquet")
    assert_same(read(tmp_path / "again.parquet"), read(packed))
    write_letor(open_data(packed), tmp_path / "again.txt")
    np.testing.assert_array_equal(read(tmp_path / "again.txt").features, read(packed).features)


def foreign(path, **columns):
    table = {"label": [1.0, 0.0], "qid": [1, 1], "a": [1.0, None], **columns}
    pq.write_table(pa.table({name: values for name, values in table.items() if values is not None}), path)
    return path


def test_foreign_parquet(tmp_path):
    path = tmp_path / "data.parquet"
    data = read(
        foreign(
            path, b=pa.array([1, None], type=pa.int8()), c=[1e308, -1e308], qid=pa.array(["x", "y"]).dictionary_encode()
        )
    )
    largest = np.finfo(np.float32).max
    np.testing.assert_array_equal(data.features, np.float32([[1, 1, largest], [np.nan, np.nan, -largest]]))
    assert data.query_ids.tolist() == ["x", "y"]
    data = read(foreign(path, qid=None, query=[3, 4], label=None, y=[1, 2]), label="y", qid="query")
    assert data.query_ids.tolist() == [3, 4] and data.labels.tolist() == [1, 2] and data.feature_names == ("a",)
    assert read(foreign(path, docid=[5, 6])).lists.doc_ids.tolist() == ["5", "6"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"label": None}, "no column 'label'; it has: qid, a; name the one to use"),
        ({"qid": None}, "no column 'qid'"),
        ({"label": ["x", "y"]}, "column 'label' holds text"),
        ({"label": [1.0, None]}, "row 1: column 'label' is null"),
        ({"label": [1.0, np.nan]}, "row 1: column 'label' is nan"),
        ({"label": [-1, 1]}, "row 0: column 'label' is -1"),
        ({"qid": [None, 1]}, "row 0: column 'qid' is null"),
        ({"qid": [[1], [2]]}, "column 'qid' holds list"),
        ({"qid": [1.0, np.nan]}, "query id is missing"),
        ({"a": ["x", "y"]}, "column 'a' holds text"),
        ({"a": [1.0, np.inf]}, "row 1: feature 'a' is infinite"),
        ({"a": None}, "0 feature columns"),
        ({"weight": [1.0, -1.0]}, "row 1: column 'weight'"),
    ],
)
def test_complaints_about_parquet(tmp_path, columns, message):
    path = foreign(tmp_path / "data.parquet", **columns)
    with pytest.raises(DataError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))


def test_damaged_parquet(tmp_path):
    path = tmp_path / "data.parquet"
    write_parquet(random_data(), path)
    content = path.read_bytes()
    for damaged in (content[:-1], content[:200], b"PAR1", content[:4] + b"\xff" * 3_000 + content[3_004:]):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="damaged or cut short"):
            read(path)


def test_parquet_of_a_later_version(tmp_path, monkeypatch):
    path = tmp_path / "data.parquet"
    with monkeypatch.context() as later:
        later.setattr(parquet, "FORMAT_VERSION", 2)
        write_parquet(random_data(), path)
    with pytest.raises(DataError, match="format 2, this version reads up to 1; upgrade"):
        read(path)


def test_features_must_not_take_the_names_of_other_columns(tmp_path):
    with pytest.raises(DataError, match="a feature is named 'weight'"):
        write_parquet(Dataset.from_arrays([[1.0]], [1], qid=[1]).with_features(["weight"]), tmp_path / "x")
    with pytest.raises(DataError, match="choose a folder"):
        write_parquet(random_data(), tmp_path / "absent" / "x")
    assert not list(tmp_path.iterdir())


def test_ids_of_unusual_types(tmp_path):
    path = tmp_path / "data.parquet"
    ids = [uuid.UUID(int=7), uuid.UUID(int=8)]
    data = read(foreign(path, qid=pa.array([id.bytes for id in ids], pa.uuid()), docid=pa.array([b"x", None])))
    assert data.query_ids.tolist() == [str(id) for id in ids] and data.lists.doc_ids.tolist() == ["x", None]
    table = pa.table({"qid": pa.array([id.bytes for id in ids], pa.uuid()), "f": [1.0, 2.0]})
    assert Dataset.from_arrays(table, [0, 1]).query_ids.tolist() == [str(id) for id in ids]
    for columns, message in (
        ({"docid": [[1], [2]]}, "column 'docid' holds lists; expected integers or texts"),
        ({"qid": [{"a": 1}, {"a": 2}]}, "column 'qid' holds records; expected integers or texts"),
        ({"docid": pa.array([b"\xff", b"y"])}, "column 'docid' has text that is not UTF-8"),
    ):
        with pytest.raises(DataError, match=message):
            read(foreign(path, **columns))


def test_ids_that_are_damaged_texts(tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(
        pa.table({"label": [1, 0], "qid": ["abcdefgh", "ijklmnop"], "a": [1.0, 2.0]}), path, compression=None
    )
    path.write_bytes(path.read_bytes().replace(b"abcdefgh", b"abc\xff\xfefgh"))
    with pytest.raises(DataError, match="column 'qid' has text that is not UTF-8"):
        read(path)


def test_booleans_and_decimals_with_nulls_are_numbers(tmp_path):
    columns = {"b": pa.array([True, None]), "c": pa.array([Decimal("1.5"), None])}
    data = read(foreign(tmp_path / "data.parquet", **columns))
    np.testing.assert_array_equal(data.features, np.float32([[1, 1, 1.5], [np.nan] * 3]))


def test_out_of_memory_is_not_called_damage(tmp_path, monkeypatch):
    path = foreign(tmp_path / "data.parquet")

    def fail(*_, **__):
        raise pa.ArrowMemoryError("malloc of size 999 failed")

    source = open_data(path)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", fail)
    with pytest.raises(DataError, match=r"needs more memory than is free \(malloc of size 999 failed\)") as caught:
        list(source.blocks())
    assert "damaged" not in str(caught.value)


@pytest.mark.parametrize("kind", ["array", "list", "sparse", "pandas", "parquet", "csv", "text"])
def test_values_beyond_float32_become_its_largest(tmp_path, kind):
    values = np.array([[1e300, 1.0], [-1e300, 2.0]])
    columns = {"label": [1, 0], "qid": [1, 1], "a": values[:, 0], "b": values[:, 1]}
    if kind in ("array", "list", "sparse"):
        X = {"array": values, "list": values.tolist(), "sparse": scipy.sparse.csr_array(values)}[kind]
        data = Dataset.from_arrays(X, [1, 0], qid=[1, 1])
    elif kind == "pandas":
        data = read(pd.DataFrame(columns))
    else:
        path = tmp_path / "data"
        if kind == "parquet":
            pq.write_table(pa.table(columns), path)
        elif kind == "csv":
            pd.DataFrame(columns).to_csv(path, index=False)
        else:
            path.write_text("1 qid:1 1:1e300 2:1\n0 qid:1 1:-1e300 2:2\n")
        data = read(path)
    largest = np.finfo(np.float32).max
    np.testing.assert_array_equal(data.rows(0, 2), np.float32([[largest, 1], [-largest, 2]]))
    np.testing.assert_array_equal(data.column(0), np.float32([largest, -largest]))
    np.testing.assert_array_equal(bin_data(data).lists.labels, [1, 0])

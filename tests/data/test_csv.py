"""CSV is read like Parquet."""

from __future__ import annotations

import gzip
import pickle
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

import ranksieve as rs
from ranksieve.data import csv
from ranksieve.data.csv import CsvSource
from ranksieve.data.dataset import Dataset
from ranksieve.data.read import open_data, read
from ranksieve.errors import DataError

TABLE = 'label,qid,"doc id",bm25,age\n2,a,x,1.5,\n0,a,y,0.25,7\n1,"b, c",z,-1e3,1\n'


def written(tmp_path, text: str):
    path = tmp_path / "data.csv"
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_table(tmp_path, separator, end):
    text = "\ufeff" + TABLE.replace("b, c", "b c").replace(",", separator).replace("\n", end)
    data = read(written(tmp_path, text), docid="doc id")
    assert data.feature_names == ("bm25", "age")
    np.testing.assert_array_equal(data.features, np.float32([[1.5, np.nan], [0.25, 7], [-1e3, 1]]))
    assert data.labels.tolist() == [2, 0, 1] and data.query_ids.tolist() == ["a", "b c"]
    assert data.lists.doc_ids.tolist() == ["x", "y", "z"]


def test_compressed_and_in_small_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(csv, "READ_BYTES", 200)
    lines = [f"{row % 3},q{row // 7},{row / 8}" for row in range(100)]
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress("\n".join(["label,qid,bm25", *lines]).encode()))
    source = pickle.loads(pickle.dumps(open_data(path)))
    assert isinstance(source, CsvSource) and source.n_docs is None
    for _ in range(2):
        blocks = list(source.blocks(5))
        assert max(block.n_docs for block in blocks) == 5
        assert np.concatenate([block.features[:, 0] for block in blocks]).tolist() == [row / 8 for row in range(100)]
    assert source.n_docs == 100 and source.fraction_read == 1


def test_documents_to_score_need_features_alone(tmp_path):
    rs.io.write_parquet(
        Dataset.from_arrays([[1.0, 2.0], [3.0, 4.0]], [1, 0], [7, 7]).with_features(["a", "b"]), tmp_path / "x"
    )
    pq.write_table(pq.read_table(tmp_path / "x").select(["a", "b"]), tmp_path / "data.parquet")
    for path in (written(tmp_path, "a,b\n1,2\n3,4\n"), tmp_path / "data.parquet"):
        (block,) = open_data(path, needed=()).blocks()
        assert block.features.tolist() == [[1, 2], [3, 4]]
        assert block.labels.tolist() == [0, 0] and block.run_lengths.tolist() == [2]
        with pytest.raises(DataError, match="label"):
            read(path)
    letor = written(tmp_path, "1 qid:1 1:2,5\n")
    with pytest.raises(DataError, match=r"not a number"):
        list(open_data(letor, needed=()).blocks())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "label,qid,bm25\n1,a,high\n",
            ":2: column 'bm25' holds 'high'; expected numbers; .*ignore='bm25'",
        ),
        ("label,qid,bm25\ngood,a,1\n", "holds 'good'; expected numbers; write labels as numbers.* label='NAME'$"),
        ("label;qid;bm25\n1;a;0,5\n", r":2: column 'bm25' holds '0,5'; decimal commas are not read; write 0\.5$"),
        ('label,qid,bm25\n1,a,"-1,25"\n', r"decimal commas are not read; write -1\.25$"),
        ("label,qid,bm25\n1,a\n", ":2: is not a table .*got 2.*; every line needs all columns"),
        ("label,qid,bm25\n,a,1\n", ":2: column 'label' is null"),
        ("label,qid,bm25\n1,a,inf\n", ":2: feature 'bm25' is infinite"),
        ("label,qid,bm25\n", "has 0 rows"),
        ("label,qid\n1,a\n", "0 feature columns"),
        ("label,qid,label\n1,a,2\n", "two columns are named 'label'"),
        (",label,qid,bm25\n0,1,a,2\n", "column 1 has no name; .*index=False"),
        ("grade,qid,bm25\n1,a,2\n", "no column 'label'; .*label='grade'"),
        ("first,second\n1,2\n", "no column 'label'; it has: first, second; name the one"),
        ("1,0,0.63\n0,0,0.5\n", ":1: '1,0,0.63' looks like CSV without names of columns; write them in a first line"),
        ("1;q1;0.63\n0;q1;0.5\n", "looks like CSV without names of columns"),
        ("1\tq1\t0.63", "looks like CSV without names of columns"),
        ("1,2\n3\n", "'1,2' is not a number; LETOR lines"),
    ],
)
def test_complaints(tmp_path, text, message):
    path = written(tmp_path, text)
    with pytest.raises(DataError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)


def test_another_column_may_hold_the_labels(tmp_path):
    """What the complaint about labels that are texts advises."""
    path = written(tmp_path, "label,rating,qid,bm25\ngood,2,a,1\nbad,0,a,3\n")
    with pytest.raises(DataError, match=r"column 'label' holds 'good'; .*or name another column with label='NAME'"):
        read(path)
    data = read(path, label="rating")
    assert data.labels.tolist() == [2, 0] and data.feature_names == ("bm25",)
    assert data.info.left_out == {"label": "a reserved name", "rating": "labels", "qid": "query ids"}


def test_a_stray_quote_joins_no_lines(tmp_path):
    text = 'label\tqid\tdocid\tf\n1\ta\t"x\t1\n0\ta\ty\t2\n0\tb\tz"\t3\n1\tb\tw\t4\n'
    with pytest.raises(DataError, match=":2: column 'docid' has a line break; a quote that is not closed"):
        read(written(tmp_path, text))


@pytest.mark.parametrize("name", ["qid", "docid"])
def test_ids_are_not_empty(tmp_path, name):
    with pytest.raises(DataError, match=f":3: column {name!r} is empty"):
        read(written(tmp_path, f"label,{'docid' if name == 'qid' else 'qid'},{name},f\n1,a,NA,1\n0,a,,2\n"))
    assert read(written(tmp_path, "label,qid,f\n1,NA,NA\n")).query_ids.tolist() == ["NA"]


def test_text_that_is_not_utf_8(tmp_path):
    path = tmp_path / "data.csv"
    for text, place in (
        ("label,qid,größe\n1,a,2\n", "csv:1: the names"),
        ("label,qid,f\n1,a,2\n1,ä,2\n", "csv:3: column 'qid' has text"),
    ):
        path.write_bytes(text.encode("latin1"))
        with pytest.raises(DataError, match=f"{place}.* not UTF-8; write the file as UTF-8"):
            read(path)


def test_usual_names_that_are_not_in_use_are_left_out(tmp_path):
    data = read(written(tmp_path, "label,click,qid,docid,doc_id,f\ngood,1,a,x,y,2\n"), label="click")
    assert data.feature_names == ("f",) and data.labels.tolist() == [1] and data.lists.doc_ids.tolist() == ["x"]


def test_long_lines(tmp_path, monkeypatch):
    for name in ("HEADER_BYTES", "READ_BYTES"):
        monkeypatch.setattr(f"ranksieve.data.csv.{name}", 1 << 14)
    names = ",".join(f"f{number}" for number in range(1_000))
    cells = ",".join(["0.12345678901234567"] * 1_000)
    assert read(written(tmp_path, f"label,qid,{names}\n" + f"1,a,{cells}\n" * 2)).features.shape == (2, 1_000)


def test_commas_in_comments_of_letor_make_no_table(tmp_path):
    assert read(written(tmp_path, "2 qid:1 1:0.5 #x,y\n0 qid:1 1:1 #z,y\n")).labels.tolist() == [2, 0]


@pytest.mark.parametrize("line", ["1\t1:0.5\t2:1", "1 1:0.5 2:1 # a,b", "1 # a,b"])
def test_letor_without_query_ids_is_no_table(tmp_path, line):
    with pytest.raises(DataError, match="there is no 'qid:' after the label"):
        read(written(tmp_path, f"{line}\n{line}\n"))


def test_names_in_capitals_are_advised(tmp_path):
    with pytest.raises(DataError, match=r"no column 'label'.*label='Label'"):
        read(written(tmp_path, "Label,qid,f\n1,a,2\n"))


def test_odd_cells_below_the_names_do_not_make_letor(tmp_path):
    data = read(written(tmp_path, f"label,qid,docid,f\n1,a,{'x' * 200_000},2\n0,a,y,1\n"))
    assert data.feature_names == ("f",) and len(data.lists.doc_ids[0]) == 200_000


def test_labels_that_are_true_or_false(tmp_path):
    assert read(written(tmp_path, "label,qid,f\ntrue,a,2\nFalse,a,1\n")).labels.tolist() == [1, 0]


def test_a_program_that_ends_after_an_error_is_not_aborted(tmp_path):
    """A thread of Arrow that used a stream of Python aborted one in four."""
    (tmp_path / "bad.csv").write_text("label,qid,f1\n1,1,0.5\n0,1,red\n")
    program = "import sys, ranksieve as rs\ntry: rs.read(sys.argv[1])\nexcept rs.errors.DataError: sys.exit(3)"
    for _ in range(6):
        assert subprocess.run([sys.executable, "-c", program, str(tmp_path / "bad.csv")], check=False).returncode == 3


def test_lines_of_later_pieces_are_counted_on(tmp_path, monkeypatch):
    monkeypatch.setattr("ranksieve.data.csv.READ_BYTES", 64)
    monkeypatch.setattr("ranksieve.data.csv.CELL_BYTES", 1)
    lines = [f"{n % 3},{n // 40},{n / 8}" for n in range(400)]
    path = tmp_path / "data.csv"
    for end in ("\n", "\r\n"):
        path.write_text(end.join(["label,qid,f1", *lines]) + end, newline="")
        data = rs.read(path)
        np.testing.assert_array_equal(data.features[:, 0], np.arange(400) / 8)
        assert data.n_queries == 10
    path.write_text("\n".join(["label,qid,f1", *lines[:300], "1,8,red", *lines[300:]]))
    with pytest.raises(DataError, match=r"data.csv:302: column 'f1' holds 'red'"):
        rs.read(path)
    path.write_text("\n".join(["label,qid,f1", *lines[:300], "1,8", *lines[300:]]))
    with pytest.raises(DataError, match=r"data.csv:302: is not a table"):
        rs.read(path)


def test_messages_about_long_cells(tmp_path):
    long = "x" * 200_000
    with pytest.raises(DataError, match=r":3: column 'f' holds 'x{80}…'; expected numbers"):
        read(written(tmp_path, f"label,qid,f\n1,a,2\n1,a,{long}\n"))
    with pytest.raises(DataError, match=r":3: is not a table \(expected 3 columns, got 2\)"):
        read(written(tmp_path, f"label,qid,f\n1,a,2\n1,{long}\n"))

"""Bad LETOR text: errors name file and line, and any bytes give data or a `DataError`."""

import gzip
import lzma

import pytest
import zstandard
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ranksieve.data import letor_lines
from ranksieve.data.read import read
from ranksieve.errors import DataError, ParameterError

SIMPLE = b"2 qid:10 1:0.5 3:1\n0 qid:10 2:-4e-1\n1 qid:11 3:7.25\n"
MANY = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"\n\n# nothing\n", "no documents"),
        (b"1 qid:1\n", "no line has a feature"),
        (SIMPLE + b"1 1:2\n", r"data.txt:4: there is no 'qid:'"),
        (SIMPLE + b"1 qid: 1:2\n", r"data.txt:4: the query id in 'qid:' is empty"),
        (SIMPLE + b"\nx qid:1 1:2\n", r"data.txt:5: label 'x' is not a number; LETOR lines look like"),
        (SIMPLE + b"1x qid:1 1:2\n", r"data.txt:4: label '1x' is not a number"),
        (SIMPLE + b"qid:1 1:2\n", r"data.txt:4: label 'qid:1' is not a number"),
        (b"nan qid:1 1:2\n", r"data.txt:1: label 'nan' is not finite"),
        (b"inf qid:1 1:2\n", r"data.txt:1: label 'inf' is not finite"),
        (b"-1 qid:1 1:2\n", r"data.txt:1: label '-1' is negative"),
        (SIMPLE + b"1 qid:1 1:2 2:x\n", r"data.txt:4: the value in '2:x' is not a number"),
        (b"1 qid:1 1:\n", r"data.txt:1: the value in '1:' is not a number"),
        (b"1 qid:1 1:1e\n", r"'1:1e' is not a number"),
        (b"1 qid:1 1:1.2.3\n", r"'1:1.2.3' is not a number"),
        (b"1 qid:1 1:NA\n", r"'1:NA' is not a number"),
        (b"1 qid:1 1:-inf\n", r"data.txt:1: the value in '1:-inf' is infinite; write nan"),
        (b"1 qid:1 1:Infinity\n", r"is infinite"),
        (b"1 qid:1 0:1\n", r"data.txt:1: feature number 0 in '0:1'; LETOR counts features from 1"),
        (b"1 qid:1 2:1 2:1\n", r"data.txt:1: '2:1' comes twice or out of order"),
        (b"1 qid:1 2:1 1:1\n", r"data.txt:1: '1:1' comes twice or out of order"),
        (b"1 qid:1 99999999999999999999:1\n", r"data.txt:1: the feature number in .* is above 65536"),
        (b"1 qid:1 bm25:1\n", r"data.txt:1: 'bm25:1' is not a feature"),
        (b"1 qid:1 7\n", r"data.txt:1: '7' is not a feature"),
        (b"1 qid:1 1:1 qid:2\n", r"data.txt:1: 'qid:2' is not a feature"),
        (b"\x7fELF\x02\x01\x01\x00\x00garbage\n", r"data.txt:1: this is not text"),
        ("1 qid:1 1:1\n".encode("utf-16"), r"data.txt:1: this is not text"),
        (b"1 qid:\xff\xfe 1:1\n", r"data.txt:1: query id b'.*' is not UTF-8"),
        (b"1 qid:1 1:1 # docid = \xff1\n", r"data.txt:1: document id b'\\xff1' is not UTF-8; save the file as UTF-8"),
        (b"1 qid:1 1:1\n0 qid:2 1:1 # \xc3\xa9 \xfe1\n", r"data.txt:2: document id b'.* \\xfe1' is not UTF-8"),
        (b"1 qid:1 1:1 # docid = x\0 y\n", r"data.txt:1: the document id 'x\\x00' has a NUL character"),
    ],
)
def test_complaints_name_file_and_line(read_bytes, content, message):
    with pytest.raises(DataError, match=message):
        read_bytes(content)


def test_text_beside_document_ids_need_not_be_utf8(read_bytes):
    data = read_bytes("1 qid:1 1:1 # docid = é\n0 qid:1 1:2 # docid = b inc = ".encode() + b"\xff\0\n")
    assert data.lists.doc_ids.tolist() == ["é", "b"]


def test_complaints_about_paths(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read(tmp_path / "absent.txt")
    with pytest.raises(DataError, match="is a folder"):
        read(tmp_path)
    with pytest.raises(ParameterError, match="expected one of zero, nan"):
        (tmp_path / "data.txt").write_bytes(SIMPLE)
        read(tmp_path / "data.txt", missing="mean")


def test_line_numbers_far_into_a_file(read_bytes, monkeypatch):
    monkeypatch.setattr(letor_lines, "FIRST_BYTES", 100)
    monkeypatch.setattr(letor_lines, "CHUNK_BYTES", 300)
    with pytest.raises(DataError, match=r"data.txt:1202: the value in '1:oops'"):
        read_bytes(b"# head\n" + b"0 qid:1 1:1\n\n# x\n" * 400 + b"0 qid:1 1:oops\n")
    with pytest.raises(DataError, match=r"data.txt:1202: there is no 'qid:'"):
        read_bytes(b"# head\n" + b"0 qid:1 1:1\n\n# x\n" * 400 + b"0 1:1\n")


PIECES = st.lists(
    st.one_of(
        st.binary(max_size=6),
        st.sampled_from(
            [b"1", b" ", b"qid:", b"qid:1", b":", b"1:", b"2:0.5", b"1e9", b"nan", b"-", b"inf", b"\n", b"#", b"\r",
             b"\x00", b"PAR1", b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"1 qid:1 1:1\n", b"99999:1", b"i",
             b"n", b"q", b"."]
        ),
    ),
    max_size=20,
)  # fmt: skip


@MANY
@given(
    PIECES,
    st.sampled_from([bytes, gzip.compress, lzma.compress, zstandard.ZstdCompressor().compress]),
    st.integers(0, 3),
)
@example([b"1 qid:1 1:1"], bytes, 0)
def test_any_bytes_give_data_or_a_data_error(folder, pieces, compress, cut):
    content = compress(b"".join(pieces))
    path = folder / "fuzz.txt"
    path.write_bytes(content[: len(content) - cut])
    try:
        data = read(path)
    except DataError as error:
        assert str(error).startswith(str(path))
    else:
        assert data.n_docs == len(data.features) == data.offsets[-1]


@pytest.mark.parametrize("bad_line", [1, 6, 101, 479])
@pytest.mark.parametrize(
    "wrong", ["x qid:1 1:1", "1 1:1", "1 qid:1 0:3", "1 qid:1 2:1 2:1", "1 qid:1 1:zz", "-1 qid:1 1:1"]
)
def test_a_bad_line_among_many_is_named_every_time(tmp_path, wrong, bad_line):
    """Rows behind the bad line are never parsed; nothing may read what they would have held."""
    lines = [f"{i % 3} qid:{i // 8} 1:{i} 2:0.5 3:1 4:2 5:3 6:{i}" for i in range(480)]
    lines[bad_line - 1] = wrong
    path = tmp_path / "long.txt"
    path.write_text("\n".join(lines) + "\n")
    for _ in range(3):
        with pytest.raises(DataError, match=f"long.txt:{bad_line}: "):
            read(path)

"""LETOR text: what is read, what is written, and what is complained about."""

import gzip
import lzma

import numpy as np
import pytest
import zstandard
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from ranksieve.data import letor_lines
from ranksieve.data.dataset import Dataset
from ranksieve.data.letor import write_letor
from ranksieve.data.read import open_source, read
from ranksieve.errors import DataError, MissingExtraError, ParameterError
from ranksieve.kernels import letor as kernel

SIMPLE = b"2 qid:10 1:0.5 3:1\n0 qid:10 2:-4e-1\n1 qid:11 3:7.25\n"
QUICK = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def read_bytes(tmp_path):
    def go(content, **options):
        path = tmp_path / "data.txt"
        path.write_bytes(content)
        return read(path, **options)

    return go


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("letor")


def collect(source, rows):
    """All blocks put together by the plainest means."""
    blocks = list(source.blocks(rows))
    features = np.full((sum(b.n_docs for b in blocks), blocks[-1].features.shape[1]), source.absent, dtype=np.float32)
    start = 0
    for block in blocks:
        assert block.features.dtype == np.float32
        assert block.run_lengths.sum() == block.n_docs <= rows
        features[start : start + block.n_docs, : block.features.shape[1]] = block.features
        start += block.n_docs
    ids = [run_id for b in blocks for run_id, n in zip(b.run_ids, b.run_lengths, strict=True) for _ in range(n)]
    return features, np.concatenate([b.labels for b in blocks]), ids


def test_simple_file(read_bytes, tmp_path):
    data = read_bytes(SIMPLE)
    np.testing.assert_array_equal(data.features, np.float32([[0.5, 0, 1], [0, -0.4, 0], [0, 0, 7.25]]))
    assert data.features.dtype == np.float32 and data.features.flags.c_contiguous
    assert data.labels.tolist() == [2, 0, 1]
    assert data.offsets.tolist() == [0, 2, 3]
    assert data.query_ids.tolist() == [10, 11]
    assert data.feature_names == ("f1", "f2", "f3")
    assert data.lists.doc_ids is None and data.lists.weights is None
    assert data.source == str(tmp_path / "data.txt")


def test_absent_features_can_be_missing(read_bytes):
    data = read_bytes(SIMPLE, missing="nan")
    np.testing.assert_array_equal(
        data.features, np.float32([[0.5, np.nan, 1], [np.nan, -0.4, np.nan], [np.nan, np.nan, 7.25]])
    )


@pytest.mark.parametrize(
    "content",
    [
        SIMPLE.replace(b"\n", b"\r\n"),
        SIMPLE.rstrip(b"\n"),
        b"\n  \n# a comment\n" + SIMPLE.replace(b"\n", b"\n\n \t # more\n"),
        SIMPLE.replace(b" ", b" \t "),
        b"\xef\xbb\xbf" + SIMPLE,
        SIMPLE.replace(b"\n", b" \n"),
    ],
    ids=["crlf", "no last line feed", "blank and comment lines", "tabs", "byte order mark", "trailing space"],
)
def test_layouts_of_the_same_data(read_bytes, content):
    expected = read_bytes(SIMPLE)
    data = read_bytes(content)
    np.testing.assert_array_equal(data.features, expected.features)
    np.testing.assert_array_equal(data.labels, expected.labels)
    np.testing.assert_array_equal(data.query_ids, expected.query_ids)
    assert data.lists.doc_ids is None


def test_query_ids_of_any_kind_and_queries_that_lie_apart(read_bytes):
    data = read_bytes("1 qid:ä# 1:1\n0 qid:b 1:2\n2 qid:ä# 1:3\n".encode())
    assert data.query_ids.tolist() == ["ä#", "b"]
    assert data.labels.tolist() == [1, 2, 0]
    assert data.rows(0, 3).ravel().tolist() == [1, 3, 2]
    assert data.features.ravel().tolist() == [1, 2, 3]


def test_doc_ids_come_from_comments(read_bytes):
    data = read_bytes(
        b"0 qid:1 1:1 #docid = GX030-77 inc = 1 prob = 0.08\n0 qid:1 1:1 # page 7 \n0 qid:1 1:1\n0 qid:1 1:1#\n"
    )
    assert data.lists.doc_ids.tolist() == ["GX030-77", "page 7", None, None]


def test_first_stage_by_name_and_number(read_bytes):
    assert read_bytes(SIMPLE, first_stage="f3").first_stage == 2
    assert read_bytes(SIMPLE, first_stage=0).first_stage == 0
    for wrong in ("bm25", 3, -1, "f4"):
        with pytest.raises(DataError, match="feature"):
            read_bytes(SIMPLE, first_stage=wrong)


NUMBERS = [
    *(
        "0",
        "-0",
        "1",
        "+1.5",
        ".5",
        "5.",
        "1e5",
        "1E-5",
        "12345678901234567890",
        "0.1",
        "0.30000000000000004",
        "nan",
        "NaN",
    ),
    *(
        "16777217",
        "16777219.000000000000000000000001",
        "1e22",
        "1e23",
        "3.4028235e38",
        "1e-38",
        "1e-40",
        "1e-45",
        "7e-46",
    ),
    *(
        "1e-400",
        "0.000000000000000000000000000012345",
        "123456789012345678901234567890e-20",
        "00000000000000000000001.5",
    ),
    *(
        "9007199254740993",
        "8.5070591730234615e37",
        "1.00000005960464477539062500000000001",
        "1.000000059604644775390625",
    ),
]


def test_numbers_round_as_python_rounds_them(read_bytes):
    data = read_bytes("".join(f"0 qid:1 1:{number} 2:-{number.strip('+-')}\n" for number in NUMBERS).encode())
    expected = np.array([float(number) for number in NUMBERS]).astype(np.float32)
    np.testing.assert_array_equal(data.features[:, 0], expected)
    np.testing.assert_array_equal(data.features[:, 1], -np.abs(expected))


def test_numbers_beyond_float32_stop_at_its_largest(read_bytes):
    largest = np.finfo(np.float32).max
    data = read_bytes(
        b"0 qid:1 1:1.7976931348623157E308 2:-1e400 3:3.5e38 4:1e39 5:340282350000000000000000000000000000001\n"
    )
    np.testing.assert_array_equal(data.features, np.float32([[largest, -largest, largest, largest, largest]]))


@QUICK
@given(st.lists(st.one_of(st.floats(allow_infinity=False), st.floats(width=32, allow_infinity=False)), min_size=1))
def test_any_float_is_read_as_python_reads_it(folder, values):
    texts = [form.format(value) for value in values for form in ("{!r}", "{:.3f}", "{:.20e}", "{:.9g}", "{:.17g}")]
    path = folder / "floats.txt"
    path.write_text("".join(f"0 qid:1 1:{text}\n" for text in texts))
    limit = np.finfo(np.float32).max
    expected = np.clip([float(text) for text in texts], -float(limit), float(limit)).astype(np.float32)
    np.testing.assert_array_equal(read(path).features[:, 0], expected)


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
    ],
)
def test_complaints_name_file_and_line(read_bytes, content, message):
    with pytest.raises(DataError, match=message):
        read_bytes(content)


def test_complaints_about_paths(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read(tmp_path / "absent.txt")
    with pytest.raises(DataError, match="is a folder"):
        read(tmp_path)
    with pytest.raises(ParameterError, match="'zero', 'nan'"):
        (tmp_path / "data.txt").write_bytes(SIMPLE)
        read(tmp_path / "data.txt", missing="mean")


def test_line_numbers_far_into_a_file(read_bytes, monkeypatch):
    monkeypatch.setattr(letor_lines, "FIRST_BYTES", 100)
    monkeypatch.setattr(letor_lines, "CHUNK_BYTES", 300)
    with pytest.raises(DataError, match=r"data.txt:1202: the value in '1:oops'"):
        read_bytes(b"# head\n" + b"0 qid:1 1:1\n\n# x\n" * 400 + b"0 qid:1 1:oops\n")
    with pytest.raises(DataError, match=r"data.txt:1202: there is no 'qid:'"):
        read_bytes(b"# head\n" + b"0 qid:1 1:1\n\n# x\n" * 400 + b"0 1:1\n")


COMPRESSORS = {"gzip": gzip.compress, "xz": lzma.compress, "zstd": zstandard.ZstdCompressor().compress}


@pytest.mark.parametrize("name", COMPRESSORS)
def test_compressed_by_content_whatever_the_name(read_bytes, name):
    compress = COMPRESSORS[name]
    np.testing.assert_array_equal(read_bytes(compress(SIMPLE)).features, read_bytes(SIMPLE).features)
    # Files made of several compressed pieces are one text.
    twice = read_bytes(compress(SIMPLE) + compress(SIMPLE))
    assert twice.n_docs == 6
    whole = compress(np.random.default_rng(0).bytes(5_000).hex().encode())
    for content in (whole[:-1], whole[:-3], whole[: len(whole) // 2], whole[:10] + b"\x00" * 40):
        with pytest.raises(DataError, match=f"the {name} data is damaged or cut short"):
            read_bytes(content)


def test_zstd_without_its_package(read_bytes, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'ranksieve\[zst\]'"):
        read_bytes(COMPRESSORS["zstd"](SIMPLE))


def test_lightgbm_side_files(tmp_path):
    path = tmp_path / "rank.train"
    path.write_text("0 1:1\n1 2:2\n2 1:3\n")
    (tmp_path / "rank.train.query").write_text("1\n2\n")
    (tmp_path / "rank.train.weight").write_text("1\n0.5\n0.25\n")
    data = read(path)
    assert data.offsets.tolist() == [0, 1, 3]
    assert data.lists.weights.tolist() == [1, 0.5, 0.25]
    for rows in (1, 2, 3):
        blocks = list(open_source(path).blocks(rows))
        assert np.concatenate([block.weights for block in blocks]).tolist() == [1, 0.5, 0.25]
        assert collect(open_source(path), rows)[2] == [1, 2, 2]
    (tmp_path / "rank.train.weight").write_text("3\n0.5\n")  # one per query
    assert read(path).lists.weights.tolist() == [3, 0.5, 0.5]
    (tmp_path / "rank.train.weight").write_text("1\n0.5\n0.25\n")
    for sizes, message in (
        ("1\n1\n", "add up to 2 but"),
        ("1\n3\n", "add up to 4 but"),
        ("1\nx\n", "query:2: 'x'"),
        ("0\n3\n", "query:1: 0"),
    ):
        (tmp_path / "rank.train.query").write_text(sizes)
        with pytest.raises(DataError, match=message):
            read(path)
    # Ids on the lines are more than sizes beside them.
    path.write_text("0 qid:a 1:1\n1 qid:a 2:2\n2 qid:b 1:3\n")
    assert read(path).offsets.tolist() == [0, 2, 3]
    for weights, message in (
        ("1\n1\n", "2 weights but"),
        ("1\n" * 4, "4 weights but"),
        ("1\n-1\n1\n", "weight:2"),
        ("", "empty"),
        ("0\n" * 3, "not all zero"),
    ):
        (tmp_path / "rank.train.weight").write_text(weights)
        with pytest.raises(DataError, match=message):
            read(path)


def random_data(rng, n_docs=300, n_features=12):
    features = rng.normal(size=(n_docs, n_features)).astype(np.float32)
    features[rng.random(features.shape) < 0.3] = 0
    features[:200, 8:] = 0  # later lines are wider
    return Dataset.from_arrays(features, rng.integers(0, 5, n_docs), qid=np.sort(rng.integers(0, 30, n_docs)))


def test_blocks_of_any_size_and_chunks_of_any_size_equal_the_whole(tmp_path, monkeypatch):
    data = random_data(np.random.default_rng(1))
    path = tmp_path / "data.txt"
    write_letor(data, path)
    text = path.read_text().split("\n", 1)
    path.write_text(text[0].replace(" 12:0", "") + "\n" + text[1])
    ids = [str(query_id) for query_id in np.repeat(data.query_ids, data.lists.sizes)]
    big = 1 << 20
    for first, chunk, part, serial in (
        (big, big, big, 0),
        (64, 200, big, big),
        (1000, 5000, 600, 0),
        (70, big, 1, big),
    ):
        monkeypatch.setattr(letor_lines, "FIRST_BYTES", first)
        monkeypatch.setattr(letor_lines, "CHUNK_BYTES", chunk)
        monkeypatch.setattr(letor_lines, "PART_BYTES", part)
        monkeypatch.setattr(letor_lines, "SERIAL_BYTES", serial)
        np.testing.assert_array_equal(read(path).features, data.features)
        for rows in (1, 3, 1000):
            source = open_source(path)
            assert source.n_features is None and source.feature_names is None
            for _ in range(2):
                features, labels, found = collect(source, rows)
                np.testing.assert_array_equal(features, data.features)
                np.testing.assert_array_equal(labels, data.labels)
                assert found == ids
            assert (source.n_docs, source.n_features) == (300, 12)
            assert {block.features.shape[1] for block in source.blocks(rows)} == {12}


def test_same_as_sklearn(tmp_path, monkeypatch):
    rng = np.random.default_rng(2)
    lines = []
    for _ in range(500):
        columns = np.flatnonzero(rng.random(40) < 0.5) + 1
        values = rng.normal(size=len(columns)) * 10.0 ** rng.integers(-12, 12, len(columns))
        features = " ".join(f"{c}:{v:.{rng.integers(1, 18)}g}" for c, v in zip(columns, values, strict=True))
        lines.append(f"{rng.integers(0, 5)} qid:{rng.integers(0, 3)} {features} # {rng.random()}")
    monkeypatch.setattr(letor_lines, "SERIAL_BYTES", 0)
    path = tmp_path / "data.txt"
    path.write_text("\n".join(lines))
    features, labels, qid = load_svmlight_file(str(path), dtype=np.float32, query_id=True)
    found, found_labels, found_qid = collect(open_source(path), 100)
    np.testing.assert_array_equal(found, features.toarray())
    np.testing.assert_array_equal(found_labels, labels)
    np.testing.assert_array_equal(np.array(found_qid, dtype=int), qid)


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
    write_letor(open_source(path), tmp_path / "again.txt")
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


@settings(QUICK, max_examples=500)
@given(PIECES, st.sampled_from([bytes, gzip.compress, lzma.compress, COMPRESSORS["zstd"]]), st.integers(0, 3))
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


def test_kernels_compile_once():
    for function in (kernel.parse_lines, kernel.count_lines, kernel.parse_segment, kernel.mark_runs):
        assert len(function.signatures) <= 1


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

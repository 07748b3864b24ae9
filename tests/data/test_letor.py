"""LETOR text: what is read, what is written, and what is refused."""

import gzip
import lzma
import tracemalloc

import numpy as np
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from ranksieve.data import letor_lines
from ranksieve.data.dataset import Dataset
from ranksieve.data.letor import write_letor
from ranksieve.data.letor_side_files import SideFiles
from ranksieve.data.read import open_data, read
from ranksieve.errors import DataError, MissingExtraError
from ranksieve.kernels import letor as kernel

SIMPLE = b"2 qid:10 1:0.5 3:1\n0 qid:10 2:-4e-1\n1 qid:11 3:7.25\n"
QUICK = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


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


COMPRESSORS = {"gzip": gzip.compress, "xz": lzma.compress, "zstd": zstandard.ZstdCompressor().compress}


@pytest.mark.parametrize("name", COMPRESSORS)
def test_compression_is_detected_by_content(read_bytes, name):
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
        blocks = list(open_data(path).blocks(rows))
        assert np.concatenate([block.weights for block in blocks]).tolist() == [1, 0.5, 0.25]
        assert collect(open_data(path), rows)[2] == [1, 2, 2]
    (tmp_path / "rank.train.weight").write_text("3\n0.5\n")  # one per query
    assert read(path).lists.weights.tolist() == [3, 0.5, 0.5]
    assert np.concatenate([block.weights for block in open_data(path).blocks(1)]).tolist() == [3, 0.5, 0.5]
    (tmp_path / "rank.train.query").write_text("1\n2147483647\n")  # must not allocate so many weights
    with pytest.raises(DataError, match="add up to 2147483648 but"):
        read(path)
    (tmp_path / "rank.train.query").write_text("1\n2\n")
    (tmp_path / "rank.train.weight").write_text("1\n0.5\n0.25\n")
    for sizes, message in (
        ("1\n1\n", "add up to 2 but"),
        ("1\n3\n", "add up to 4 but"),
        ("1\n2147483647\n", "add up to 2147483648 but"),
        ("1\n1e15\n", "query:2: '1e15' is not valid"),
        ("1\nx\n", "query:2: 'x'"),
        ("0\n3\n", "query:1: '0' is not valid"),
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


def test_side_files_take_little_memory_besides_their_numbers(tmp_path):
    path, n = tmp_path / "rank.train", 20_000
    (tmp_path / "rank.train.weight").write_text("0.123456789\n" * n)
    SideFiles(str(path))  # what is loaded once does not count
    tracemalloc.start()
    sides = SideFiles(str(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sides.weights is not None and sides.weights.tolist() == [0.123456789] * n
    assert peak < 50 * n


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
            source = open_data(path)
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
    found, found_labels, found_qid = collect(open_data(path), 100)
    np.testing.assert_array_equal(found, features.toarray())
    np.testing.assert_array_equal(found_labels, labels)
    np.testing.assert_array_equal(np.array(found_qid, dtype=int), qid)


def test_kernels_compile_once():
    for function in (kernel.parse_lines, kernel.count_lines, kernel.parse_segment, kernel.mark_runs):
        assert len(function.signatures) <= 1

"""Files that are neither data nor models are recognised, and the message says what they are for."""

from __future__ import annotations

import gzip
import json

import pytest

import ranksieve as rs
from ranksieve.data.other_files import BY_ENDING, HEAD_BYTES, JSON_LINES, QRELS, QUERIES, RUN, TRIALS, other_file
from ranksieve.errors import DataError, ModelError

LONG = json.dumps({"id": "1", "text": "word " * HEAD_BYTES})
TEXTS = [
    ("1 Q0 d0 1 2.5 x\n", RUN),
    ("\ufeff\n1\tq0\thttp://d:0\t1\t2.5\tx\r\n", RUN),
    ("1 0 d0 2\n", QRELS),
    ("1 Q0 http://d:0 -1\n", QRELS),
    ("query-id\tcorpus-id\tscore\n1\td0\t1\n", QRELS),
    ("1\tred wine\n2\t2024\n3\twhite car\n", QUERIES),
    ("qid\tquery\nq1\tred wine\n", QUERIES),
    ('{"id": "1", "text": "a"}\n{"id": "2"}\n', JSON_LINES),
    ('{"op_code": 0, "worker_id": "a"}\n', TRIALS),
    (f"{LONG}\n{LONG}\n", None),  # the first line is cut: it may be a model
    ('{"learner": {}}\n', None),
    ('{\n "learner": {}\n}\n', None),
    ("qid\tbm25\nq1\t2.5\n", None),
    ("qid\tcolour\n1\tred\n2\tblue\n", None),
    ("label\tqid\tbm25\n1\tq1\t2.5\n", None),
    ("label\tqid\tbm25\t4\n1\t7\t2.5\t3\n", None),
    ("label,qid,bm25\n1,q1,2.5\n", None),
    ("2 qid:1 1:0.5\n", None),
    ("2 qid:1 1:0.5 2:1\n", None),
    ("tree\nversion=v4\n", None),
]


@pytest.mark.parametrize(("text", "expected"), TEXTS, ids=range(len(TEXTS)))
def test_kinds_of_text(tmp_path, text, expected):
    (tmp_path / "file").write_text(text)
    (tmp_path / "file.gz").write_bytes(gzip.compress(text.encode()))
    assert other_file(str(tmp_path / "file")) is other_file(str(tmp_path / "file.gz")) is expected
    if expected is not None:
        for name in ("file", "file.gz"):
            with pytest.raises(DataError) as refused:
                rs.read(tmp_path / name)
            assert f"{name}: is {expected.name}, not data; it is for {expected.used_by}" in str(refused.value)
        with pytest.raises(ModelError, match=r"file: is .*, not a model; it is for ranksieve"):
            rs.load(tmp_path / "file")


@pytest.mark.parametrize("name", ["docs.jsonl", "docs.ndjson.gz"])
def test_the_name_tells_one_line_of_json_from_a_model(tmp_path, name):
    content = LONG.encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert other_file(str(tmp_path / name)) is JSON_LINES


def test_files_that_their_endings_name(tmp_path):
    for ending, kind in BY_ENDING.items():
        (tmp_path / f"file{ending}").write_text("x = 1\n")
        with pytest.raises(DataError, match=f"is {kind.name}, not data; it is for {kind.used_by}"):
            rs.read(tmp_path / f"file{ending}")
    model = rs.train(rs.synth.cubic(4), trees=2, leaves=3)
    model.save(tmp_path / "model.onnx", format="lightgbm")
    assert rs.load(tmp_path / "model.onnx").n_trees == 2  # the content of a model decides

"""Vectors as users give them: order, ids, several files, and what is wrong with them."""

from __future__ import annotations

import numpy as np
import pytest

from corpus_samples import folder_bytes, random_documents
from ranksieve.errors import DataError, ParameterError
from ranksieve.retrieval.index import Index

N_DOCS = 9
DOCUMENTS = random_documents(N_DOCS)
IDS = [document["id"] for document in DOCUMENTS]


def vectors(dtype: str = "f4") -> np.ndarray:
    return np.random.default_rng(0).normal(size=(N_DOCS, 4)).astype(dtype)


def build(folder, **settings) -> Index:
    return Index.build(DOCUMENTS, folder / "index", fields=["body"], replace=True, **settings)


@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_arrays_files_and_parts_make_the_same_index(tmp_path, dtype):
    rows = vectors(dtype)
    expected = folder_bytes(build(tmp_path, vectors=rows).path)
    order = np.random.default_rng(1).permutation(N_DOCS)
    names = tmp_path / "all.npy", tmp_path / "first.npy", tmp_path / "rest.npy", tmp_path / "other.npy"
    for name, some in zip(names, (rows, rows[:5], rows[5:], rows[order]), strict=True):
        np.save(name, some)
    (tmp_path / "ids.txt").write_text("".join(f"{IDS[row]}\n" for row in order))
    for settings in (
        {"vectors": names[0]},
        {"vectors": list(names[1:3])},
        {"vectors": [rows[:2], rows[2:]]},
        {"vectors": names[3], "vector_ids": tmp_path / "ids.txt"},
        {"vectors": rows[order], "vector_ids": [IDS[row] for row in order]},
    ):
        assert folder_bytes(build(tmp_path, **settings).path) == expected
    index = build(tmp_path, vectors=names[0])
    np.testing.assert_array_equal(index.vectors.rows(np.array([7, 2])), rows[[7, 2]])
    assert index.describe()["vectors"] == {
        "dimension": 4,
        "dtype": {"f4": "float32", "f2": "float16"}[dtype],
        "similarity": "cosine",
        "encoder": "arrays or files",
        "encodes queries": False,
        "hnsw": False,
    }
    index.verify()


def test_double_precision_is_stored_as_single(tmp_path):
    rows = vectors("f8")
    np.testing.assert_array_equal(build(tmp_path, vectors=rows).vectors.rows(np.arange(N_DOCS)), rows.astype("f4"))


def test_a_function_gets_the_texts_in_their_order(tmp_path):
    seen = []

    def encode(texts):
        seen.extend(texts)
        return np.array([[len(text), 1.0] for text in texts])

    steps = []
    index = build(tmp_path, vectors=encode, vector_progress=lambda done, most: steps.append((done, most)))
    assert steps == [(N_DOCS, N_DOCS)]
    assert seen == [document["body"] for document in DOCUMENTS]
    assert index.vectors.rows(np.arange(N_DOCS))[:, 0].tolist() == [len(text) for text in seen]


@pytest.mark.parametrize("other", [np.ones((1, 4), "f2"), np.ones((1, 3), "f4")], ids=["type", "dimension"])
def test_an_encoder_that_changes_its_mind_is_refused(tmp_path, monkeypatch, other):
    monkeypatch.setattr("ranksieve.retrieval.vector_building.BLOCK_DOCS", 8)
    first = np.ones((8, 2), "f4")  # rows of as many bytes as the first of the others
    with pytest.raises(DataError, match=r"the encoder returned .* after float32 vectors of dimension 2"):
        build(tmp_path, vectors=lambda texts: first if len(texts) == 8 else other)


def test_what_is_odd_is_noted(tmp_path):
    rows = vectors()
    rows[3] = 0
    more = np.concatenate([rows, rows[:2]])
    notes = build(tmp_path, vectors=more, vector_ids=[*IDS, "x", "y"]).notes
    assert "vectors are of documents that the corpus does not have, and are left out: 2 (x, y)" in notes
    assert f"documents have a vector of zeros, so that their cosine is 0: 1 ({IDS[3]})" in notes


def damaged(row: int, column: int, value: float) -> np.ndarray:
    rows = vectors()
    rows[row, column] = value
    return rows


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vectors": vectors()[:-1]}, r"vectors: 8 vectors for 9 documents; expected one row for each"),
        ({"vectors": vectors()[0]}, r"vectors: has the shape \(4,\); expected one row per vector"),
        ({"vectors": vectors()[:, :0]}, r"has the shape \(9, 0\)"),
        ({"vectors": vectors().astype(int)}, r"vectors: holds int64; expected float32 or float16"),
        ({"vectors": damaged(5, 2, np.nan)}, r"vectors: row 5 has nan in column 2; expected finite numbers"),
        ({"vectors": damaged(1, 0, -np.inf)}, r"vectors: row 1 has -inf in column 0"),
        ({"vectors": damaged(1, 0, 1e30)}, r"vectors: row 1 has a vector of length 1e\+30"),
        ({"vectors": vectors("f8") * 1e300}, r"vectors: row 0 has -?inf in column 0"),
        ({"vectors": [vectors()[:4], vectors()[4:, :3]]}, r"has vectors of dimension 3, and vectors of 4"),
        ({"vectors": vectors(), "vector_ids": IDS[:-1]}, r"vectors: 9 vectors, but 8 ids"),
        ({"vectors": vectors(), "vector_ids": [*IDS[:-1], "x"]}, r"1 document of 9 without a vector \(d8\)"),
        ({"vectors": vectors(), "vector_ids": [*IDS[:-1], "d0"]}, r"id 8 of the vectors: the id 'd0' occurs twice"),
        ({"vectors": lambda texts: np.ones((2, 2))}, r"the encoder returned an array of shape \(2, 2\) for 9 texts"),
        ({"vectors": lambda texts: texts[99]}, r"the encoder failed on 9 texts: IndexError"),
        ({"vectors": "gone.npy"}, r"gone.npy: cannot be read \(No such file"),
    ],
)
def test_vectors_that_cannot_be_used_are_refused(tmp_path, settings, message):
    with pytest.raises(DataError, match=message):
        build(tmp_path, **settings)
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vectors": "svd:0"}, "vectors is 'svd:0'; expected a dimension from 1, as in 'svd:128'"),
        ({"vectors": "svd:x"}, "vectors is 'svd:x'"),
        ({"vectors": "svd"}, "vectors is 'svd'"),
        (
            {"vectors": "lsa:64"},
            "vectors is 'lsa:64', which is not a file; expected FILE.npy, svd:N as in svd:128, or a",
        ),
        ({"vectors": "svd:4", "texts": False}, "texts is off, but an encoder reads the stored texts"),
        ({"vectors": "svd:4", "vector_ids": IDS}, "vector_ids are for arrays and files"),
        ({"vector_ids": IDS}, "vector_ids needs vectors"),
        ({"vectors": vectors(), "vector_ids": 7}, "vector_ids are 7; expected a file with one id per line"),
        ({"vectors": vectors(), "similarity": "cosin"}, "similarity is 'cosin'; did you mean 'cosine'?"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(tmp_path, settings, message):
    with pytest.raises(ParameterError) as error:
        build(tmp_path, **settings)
    assert message in str(error.value)


def test_files_that_are_no_arrays_are_refused(tmp_path):
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "empty.npy").write_bytes(b"")
    np.savez(tmp_path / "several.npz", a=vectors(), b=vectors())
    np.save(tmp_path / "objects.npy", np.array([{}, {}]), allow_pickle=True)
    for name, message in (
        ("text.npy", "is not an array that numpy.save has written"),
        ("empty.npy", "is not an array that numpy.save has written"),
        ("several.npz", "holds several arrays"),
        ("objects.npy", "is not an array that numpy.save has written"),
    ):
        with pytest.raises(DataError, match=f"{name}: {message}"):
            build(tmp_path, vectors=tmp_path / name)


@pytest.mark.parametrize(
    "shape", ["(9, 4 ", "(9.5, 4)", "(1<<9, 4)", f"({1 << 70}, 4)", "(-9, 4)", "('9', 4)", "(99, 4)"]
)
def test_damaged_headers_are_refused(tmp_path, shape):
    np.save(tmp_path / "vectors.npy", vectors())
    content = (tmp_path / "vectors.npy").read_bytes()
    header = content[:128].replace(b"(9, 4)", shape.encode()).rstrip()
    (tmp_path / "vectors.npy").write_bytes(header.ljust(127) + b"\n" + content[128:])
    with pytest.raises(DataError, match=r"vectors\.npy"):
        build(tmp_path, vectors=tmp_path / "vectors.npy")

"""Damaged index folders are refused before a kernel reads them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpus_samples import QUERIES, random_documents
from ranksieve.errors import DataError
from ranksieve.retrieval import index_header, storage
from ranksieve.retrieval.index import Index
from ranksieve.retrieval.labelling import extract_features
from ranksieve.retrieval.searching import retrieve


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with all arrays."""
    return Index.build(
        random_documents(60), tmp_path_factory.mktemp("storage") / "index", fields=["title", "body"], numbers=["price"],
        vectors="svd:3", hnsw=True,
    ).path  # fmt: skip


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "index"))


def change_header(folder: Path, change: Callable[[dict[str, Any]], Any], *, sign: bool = True) -> None:
    """Edit the header and recompute its checksum, as an attacker could."""
    values = json.loads((folder / "header.json").read_text())
    checksum = values.pop("checksum")
    change(values)
    checksum = index_header._header_checksum(values) if sign else checksum
    (folder / "header.json").write_text(json.dumps({**values, "checksum": checksum}))


def flip(path: Path, place: int, bit: int = 6) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1 << bit
    path.write_bytes(content)


def test_what_is_no_index_is_refused(folder, tmp_path):
    with pytest.raises(DataError, match="no such folder"):
        Index(tmp_path / "nothing")
    with pytest.raises(DataError, match="it holds no header"):
        Index(tmp_path)
    (folder / "corpus.jsonl").write_text('{"id": "a"}\n')
    with pytest.raises(DataError, match="is a file, not an index; make one with: ranksieve index"):
        Index(folder / "corpus.jsonl")
    (tmp_path / "model.txt").write_text("tree\nversion=v4\n")
    with pytest.raises(DataError, match=r"is a model, not an index; .* ranksieve serve INDEX --model .*model.txt"):
        Index(tmp_path / "model.txt")
    (tmp_path / "queries.tsv").write_text("1\tred wine\n")
    with pytest.raises(DataError, match="is a file of queries, not an index; it is for ranksieve retrieve"):
        Index(tmp_path / "queries.tsv")
    change_header(folder, lambda values: values.update(format=99))
    with pytest.raises(
        DataError, match=f"index of format 99, this version of ranksieve reads format {index_header.FORMAT}"
    ):
        Index(folder)


@pytest.mark.parametrize(
    "text", ["{", "[]", "7", '{"format": 6}', '{"format": Infinity}', '{"format": "4"}', "[" * 100_000, "\udcff"]
)
def test_headers_that_are_none_are_refused(folder, text):
    (folder / "header.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(DataError, match="header is damaged"):
        Index(folder)


def test_edited_headers_are_refused(folder):
    for change in (
        lambda values: values.pop("checksums"),
        lambda values: values["notes"].append("x"),
        lambda values: values["sizes"].update(docs=61),
    ):
        content = (folder / "header.json").read_text()
        change_header(folder, change, sign=False)
        with pytest.raises(DataError, match=r"header is damaged .*changed since it was written"):
            Index(folder)
        (folder / "header.json").write_text(content)
    change_header(folder, lambda values: None)
    Index(folder)
    values = json.loads(content)
    del values["checksum"]
    (folder / "header.json").write_text(json.dumps(values))
    with pytest.raises(DataError, match="header is damaged"):
        Index(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda values: values.pop("checksums"),
        lambda values: values["checksums"].pop("docs"),
        lambda values: values["checksums"].update(docs=[]),
        lambda values: values["checksums"].update(docs=7),
        lambda values: values.update(sizes={}),
        lambda values: values["sizes"].update(docs=float("inf")),
        lambda values: values["sizes"].update(docs=60.0),
        lambda values: values["sizes"].update(docs=-1),
        lambda values: values["sizes"].update(docs=1 << 63),
        lambda values: values["sizes"].update(entries=1 << 80),
        lambda values: values["sizes"].update(numbers=2),
        lambda values: values.update(fields=[{"name": "t"}]),
        lambda values: values["fields"][0].update(name="title:x"),
        lambda values: values["fields"][0]["analyzer"].update(stem="klingon"),
        lambda values: values["fields"].pop(),
        lambda values: values.update(stage={"k1": []}),
        lambda values: values.update(stage=[7]),
        lambda values: values.update(vectors=None),
        lambda values: values.update(vectors={"dtype": "<f8", "similarity": "dot"}),
        lambda values: values["vectors"].update(similarity="near"),
        lambda values: values["sizes"].update(vector_bytes=13),
        lambda values: values["sizes"].update(vectors=0),
        lambda values: values["sizes"].update(encoder_dimension=4),
        lambda values: values.clear() or values.update(format=index_header.FORMAT),
    ],
)
def test_headers_that_make_no_sense_are_refused(folder, change):
    change_header(folder, change)
    with pytest.raises(DataError, match="index the corpus again"):
        Index(folder)


@pytest.mark.parametrize("name", [*index_header.ARRAYS])
def test_changed_and_cut_arrays_are_refused(folder, name):
    path = folder / f"{name}.bin"
    content = path.read_bytes()
    flip(path, len(content) // 2)
    with pytest.raises(DataError, match=rf"{name}\.bin: has changed since it was written"):
        Index(folder)
    path.write_bytes(content[:-1])
    with pytest.raises(
        DataError, match=rf"{name}\.bin: has {len(content) - 1} bytes where {len(content)} were written"
    ):
        Index(folder)
    path.unlink()
    with pytest.raises(DataError, match=rf"{name}\.bin: cannot be read \(No such file"):
        Index(folder)
    path.mkdir()
    with pytest.raises(DataError, match=rf"{name}\.bin: cannot be read \(Is a directory"):
        Index(folder)


@pytest.fixture
def large(monkeypatch) -> None:
    """Indexes count as large, and their blocks are small."""
    monkeypatch.setattr(storage, "CHECKED_AT_ONCE", 0)
    monkeypatch.setattr(storage, "BLOCK_BYTES", 64)


@pytest.mark.parametrize("name", [*storage.OFFSETS])
def test_offsets_of_large_indexes_are_checked_when_they_are_opened(large, tmp_path, name):
    folder = Index.build(random_documents(60), tmp_path / "index", fields=["title", "body"]).path
    path = folder / f"{name}.bin"
    for value in (1 << 40, -1):
        offsets = np.fromfile(path, np.int64)
        offsets[len(offsets) // 2] = value
        offsets.tofile(path)
        with pytest.raises(DataError, match=rf"{name}\.bin: has changed"):
            Index(folder)
        # with checksums that fit
        blocks = [path.read_bytes()[start : start + 64] for start in range(0, path.stat().st_size, 64)]
        fitting = list(map(storage.crc32, blocks))
        change_header(folder, lambda values, fitting=fitting: values["checksums"].update({name: fitting}))
        with pytest.raises(DataError, match=rf"{name}\.bin: holds offsets out of order or range"):
            Index(folder)


def test_blocks_of_large_indexes_are_checked_before_they_are_used(large, tmp_path):
    folder = Index.build(random_documents(200), tmp_path / "index", fields=["title", "body"], vectors="svd:3").path
    whole = extract_features(Index(folder), QUERIES, depth=50)
    np.testing.assert_array_equal(whole.features, extract_features(Index(folder), QUERIES, depth=50).features)
    for name in index_header.ARRAYS:
        path = folder / f"{name}.bin"
        if name in storage.OFFSETS or not path.stat().st_size:
            continue
        content = path.read_bytes()
        refused = 0
        for place in range(0, len(content), max(len(content) // 7, 1)):
            flip(path, place)
            index = Index(folder)  # opens, since only offsets are checked
            try:
                used = extract_features(index, QUERIES, depth=50)
                assert np.array_equal(used.features, whole.features, equal_nan=True)
                assert [index.document(number) for number in range(index.n_docs)]
            except DataError as error:
                assert "has changed since it was written" in str(error)
                refused += 1
            with pytest.raises(DataError, match=rf"{name}\.bin: has changed"):
                Index(folder).verify()
            path.write_bytes(content)
        assert refused
    index = Index(folder)
    index.verify()
    assert retrieve(index, QUERIES, 5).n_queries == 3


def test_a_flipped_bit_in_an_unsigned_index_ends_no_process(folder):
    """As it was found: without checksums in the header, a flipped bit in the offsets ended `features` with a signal."""
    values = json.loads((folder / "header.json").read_text())
    del values["checksums"]
    (folder / "header.json").write_text(json.dumps(values))
    flip(folder / "forward_starts.bin", 8 * 30 + 5)
    code = "import ranksieve as rs\n"
    code += f"rs.retrieval.extract_features(rs.Index({str(folder)!r}), {QUERIES!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1 and "DataError" in done.stderr

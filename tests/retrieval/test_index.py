"""Building, opening and refusing indexes."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus_samples import folder_bytes, random_documents
from naive_retrieval import NaiveIndex, unpacked
from ranksieve.errors import DataError, ParameterError
from ranksieve.retrieval import inverting, merging
from ranksieve.retrieval.first_stage import FirstStage
from ranksieve.retrieval.index import Index
from ranksieve.retrieval.searching import search


def postings_of(index: Index) -> dict[tuple[str, str, int], list[int]]:
    """Positions by term, document id and field number, unpacked slowly."""
    p, out = index.postings(np.arange(index.n_terms)), {}
    blob, ends = index._arrays.whole("term_bytes").tobytes(), index._arrays.whole("term_ends").tolist()
    for t, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        for e in range(p.entry_starts[t], p.entry_starts[t + 1]):
            places = unpacked(p.positions, int(p.byte_starts[t]) + int(p.position_starts[e]), p.tfs[e])
            out[blob[start:end].decode(), index.ids[p.docs[e]], int(p.fields[e])] = places
    return out


def test_postings_and_statistics_are_those_of_the_texts(index, documents):
    naive = NaiveIndex(documents, index.fields)
    assert postings_of(index) == naive.postings([doc["id"] for doc in documents])
    assert index.ids.tolist() == [doc["id"] for doc in documents]
    for f in range(2):
        assert index.lengths[f].tolist() == naive.lengths(f)
    for term in ("engin", "engine", "getfilename"):
        number = index.term_number(term)
        assert index.document_frequency[number].tolist() == [naive.df(term, 0), naive.df(term, 1), naive.df(term)]
        cf = [naive.cf(term, 0), naive.cf(term, 1)]
        assert index.collection_frequency[number].tolist() == [*cf, sum(cf)]
    assert index.term_number("unheard") == -1
    assert index.document_array("numbers")[0].tolist() == [doc["price"] for doc in documents]
    assert index.notes == ("documents without the field 'title': 1 (document 30)",)


def test_norms_and_distinct_terms(index, documents):
    naive = NaiveIndex(documents, index.fields)
    doc = 5
    for column, terms in enumerate([*naive.terms[doc], naive.terms[doc][0] + naive.terms[doc][1]]):
        weights = [
            (1 + np.log(terms.count(t))) * naive.idf(naive.df(t, column if column < 2 else None)) for t in set(terms)
        ]
        assert index.document_array("norms")[column, doc] == pytest.approx(np.linalg.norm(weights), rel=1e-6)
        assert index.document_array("distinct")[column, doc] == len(set(terms))


@settings(max_examples=8, deadline=None)
@given(n=st.integers(1, 80), seed=st.integers(0, 99), tokens=st.integers(5, 400))
def test_the_memory_budget_changes_no_byte(n, seed, tokens, tmp_path_factory):
    documents = random_documents(max(n, 3), seed)
    folder = tmp_path_factory.mktemp("budget")
    Index.build(documents, folder / "one")
    with pytest.MonkeyPatch.context() as patch:
        # runs of a few documents, merged a few terms at a time
        patch.setattr(inverting, "BYTES_PER_TOKEN", (1 << 19) // tokens)
        patch.setattr(merging, "BYTES_PER_ENTRY", (1 << 19) // 50)
        Index.build(documents, folder / "many", memory=1 << 20)
    assert folder_bytes(folder / "one") == folder_bytes(folder / "many")


def test_text_fields_are_found_with_any_memory(tmp_path):
    documents = [{"id": str(n), "text": "wine " * 40_000} for n in range(4)] + [{"id": "4", "text": "", "late": "red"}]
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(document) + "\n" for document in documents))
    Index.build(documents, tmp_path / "expected")
    for source in (corpus, iter(documents)):
        index = Index.build(source, tmp_path / "index", memory=1 << 20, replace=True)
        assert [field.name for field in index.fields] == ["text", "late"]
    assert folder_bytes(tmp_path / "index") == folder_bytes(tmp_path / "expected")


def test_long_texts_have_far_positions(tmp_path):
    text = "needle " + "hay " * 20_000 + "needle"
    index = Index.build([{"id": "1", "text": text}, {"id": "2", "text": "hay"}], tmp_path / "index")
    assert postings_of(index)["needl", "1", 0] == [0, 20_001]
    assert postings_of(index)["hay", "2", 0] == [0]


@pytest.fixture
def three() -> list[dict]:
    return [{"id": str(n), "title": f"title {n}", "text": "some text\nof two lines"} for n in range(3)]


def test_every_format_gives_the_same_index(three, tmp_path):
    for doc in three:
        doc["text"] = doc["text"].replace("\n", " ")
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, three)) + "\n\n")
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress((tmp_path / "a.jsonl").read_bytes()))
    (tmp_path / "a.tsv").write_text("\n".join("\t".join(row) for row in [list(three[0]), *(d.values() for d in three)]))
    pq.write_table(pa.Table.from_pylist(three), tmp_path / "a.parquet")
    Index.build(three, tmp_path / "expected")
    for name in ("a.jsonl", "a.jsonl.gz", "a.tsv", "a.parquet"):
        Index.build(tmp_path / name, tmp_path / "index", replace=True)
        assert folder_bytes(tmp_path / "index") == folder_bytes(tmp_path / "expected")


def test_a_folder_of_files_is_a_corpus(tmp_path):
    (tmp_path / "corpus" / "sub").mkdir(parents=True)
    (tmp_path / "corpus" / "b.txt").write_text("blue")
    (tmp_path / "corpus" / "sub" / "a.txt").write_text("red")
    (tmp_path / "corpus" / ".git").mkdir()
    (tmp_path / "corpus" / ".git" / "index").write_bytes(b"\xff")
    (tmp_path / "corpus" / "sub" / "two words.txt").write_text("blue")
    index = Index.build(tmp_path / "corpus", tmp_path / "index")
    assert index.ids.tolist() == ["b.txt", "sub/a.txt", "sub/two%20words.txt"]
    assert [hit.docno for hit in search(index, "red")] == ["sub/a.txt"]


@pytest.mark.parametrize("name", ["id", "_id", "docno", "doc_id", "docid"])
def test_ids_are_found_under_their_usual_names(name, tmp_path):
    documents = [{"title": "red", name: "a", "metadata": {}}, {"title": "blue", name: 7, "metadata": {}}]
    index = Index.build(documents, tmp_path / "index")
    assert index.ids.tolist() == ["a", "7"]
    assert [field.name for field in index.fields] == ["title"]


def test_tables_of_documents_are_corpora(tmp_path):
    frame = pd.DataFrame({"docno": [1, 2], "text": ["red", "blue"], "title": ["wine", np.nan]})
    index = Index.build(frame, tmp_path / "index")
    assert index.ids.tolist() == ["1", "2"] and search(index, "nan") == []
    assert index.notes == ("documents without the field 'title': 1 (document 1)",)


def test_the_encoding_is_utf_8_with_or_without_a_mark(three, tmp_path):
    lines = "\n".join(map(json.dumps, three)).encode()
    (tmp_path / "c.jsonl").write_bytes(b"\xef\xbb\xbf" + lines.replace(b"\n", b"\r\n"))
    assert Index.build(tmp_path / "c.jsonl", tmp_path / "index").n_docs == 3
    (tmp_path / "c.jsonl").write_bytes(lines + b'\n{"id": "x", "text": "caf\xe9"}')
    with pytest.raises(DataError, match=r"c\.jsonl:4: byte 25 of the line is not UTF-8"):
        Index.build(tmp_path / "c.jsonl", tmp_path / "index", replace=True)


def build(tmp_path, lines, **options):
    (tmp_path / "c.jsonl").write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return Index.build(tmp_path / "c.jsonl", tmp_path / "index", **options)


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        ([{"id": "a", "t": "x"}, '{"id": "b"'], {}, r"c\.jsonl:2: broken JSON"),
        ([{"id": "a", "t": "x"}, "[1]"], {}, r"c\.jsonl:2: holds list"),
        (
            [{"id": "a", "t": "x"}, {"id": "b", "t": "x"}, {"id": "a", "t": "y"}],
            {},
            r"c\.jsonl:3: has the id 'a' of an earlier document, .*c\.jsonl:1; ids must be unique",
        ),
        (
            [{"t": "x"}],
            {},
            r"c\.jsonl:1: has no id in the field 'id'; its fields are 't'; name .* call it one of id, _id",
        ),
        ([{"t": "x"}], {"id": "key"}, "no id in the field 'key'"),
        ([{"id": 1.5, "t": "x"}], {}, "the id is 1.5; expected text or an integer"),
        ([{"id": "a\ud800", "t": "x"}], {}, "cannot be written as UTF-8"),
        ([{"id": "a b", "t": "x"}], {}, "spaces"),
        ([{"id": "a\u00a0b", "t": "x"}], {}, "spaces"),
        ([{"id": "a", "t": "..."}], {}, r"c\.jsonl: no document has a word in 't'"),
        ([{"id": "a", "t": "x"}], {"numbers": "p"}, "no document has the number 'p'"),
        ([{"id": "a", "t": "x", "p": 1e39}], {"numbers": "p"}, "p is 1e.39; expected a number in single precision"),
        ([{"id": "a", "t": "x"}], {"positions": []}, r"positions is \[\]; expected True or False"),
        ([{"id": "a", "t": "x"}], {"memory": "1G"}, "memory is '1G'; expected bytes"),
        ([{"id": "a", "t": "x"}], {"analyzer": "english"}, "expected an Analyzer"),
        (["", " "], {}, r"c\.jsonl: holds no documents"),
        (['[{"id": "a", "t": "x"}]'], {}, "convert an array to lines"),
        ([{"id": "a", "t": "x"}], {"fields": ["u"]}, "no document has the field 'u'"),
        ([{"id": "a", "t": "x"}], {"fields": ["t", "t"]}, "given twice"),
        ([{"id": "a", "t": {"k": "v"}}], {"fields": "t"}, "'t' holds objects; expected text; name fields that hold"),
        ([{"id": "a", "t": 5, "b": True}], {}, r"no field of .* holds text; they hold t \(numbers\), b \(booleans\)"),
        (
            [{"id": "a", "t": "x", "p": "cheap"}],
            {"numbers": ["p"]},
            "p holds text, not numbers: 'cheap'; expected a number",
        ),
        ([{"id": "a", "t": "x"}], {"numbers": "t"}, "t holds text, not numbers: 'x'"),
        ([{"id": "a", "t": "x", "p": [1, 2]}], {"numbers": "p"}, "p holds lists of numbers, not numbers"),
        (["just text"], {}, r"c\.jsonl:1: neither a JSON object nor column names"),
        (["0\tThe presence of communication amid minds"], {}, r"c\.jsonl:1: holds text where names of columns"),
    ],
)
def test_bad_corpora_are_refused_and_leave_nothing(tmp_path, lines, options, message):
    with pytest.raises((DataError, ParameterError), match=message):
        build(tmp_path, lines, **options)
    assert [path.name for path in tmp_path.iterdir()] == ["c.jsonl"]


def test_too_many_fields_of_text_are_named_by_how_frequent_they_are(tmp_path):
    """Also of documents that can be read only once."""
    documents = ({"id": n, f"f{n}": "rare"} | ({"text": "red", "my title": "x"} if n % 2 else {}) for n in range(300))
    with pytest.raises(ParameterError, match="got 302 fields of text; an index has at most 255") as refused:
        Index.build(documents, tmp_path / "index")
    assert "as in fields=['text', 'my title']; most frequent in the first 300 documents: text (50%)" in str(
        refused.value
    )
    assert "as in --field text --field 'my title'; most" in refused.value.for_command_line()
    with pytest.raises(ParameterError, match="got 256 fields; an index has at most 255; name fewer"):
        Index.build([{"id": "a"}], tmp_path / "index", fields=[f"f{n}" for n in range(256)])


def test_fields_that_are_no_text_in_some_documents_are_noted(tmp_path):
    index = build(tmp_path, [{"id": "a", "t": "x"}, {"id": "b", "t": {"k": "v"}}, {"id": "c"}])
    assert [note.partition(":")[0] for note in index.notes] == [
        "documents whose field 't' holds objects",
        "documents without the field 't'",
    ]


def test_rows_of_a_table_must_have_all_cells(tmp_path):
    (tmp_path / "c.tsv").write_text("id\ttext\na\tred\nb\n")
    with pytest.raises(DataError, match=r"c\.tsv:3: has 1 cell but the header has 2"):
        Index.build(tmp_path / "c.tsv", tmp_path / "index")


def test_missing_numbers_are_missing(tmp_path):
    index = build(tmp_path, [{"id": "a", "t": "x", "p": None}, {"id": "b", "t": "y", "p": 2}], numbers=["p"])
    assert np.isnan(index.document_array("numbers")[0, 0])
    assert any("without the number 'p'" in note for note in index.notes)


def test_an_index_is_replaced_only_on_request(tmp_path, three):
    Index.build(three, tmp_path / "index")
    with pytest.raises(DataError, match="exists already"):
        Index.build(three, tmp_path / "index")
    assert Index.build(three[:2], tmp_path / "index", replace=True).n_docs == 2
    (tmp_path / "precious").mkdir()
    with pytest.raises(DataError, match="exists already"):
        Index.build(three, tmp_path / "precious", replace=True)
    assert (tmp_path / "precious").is_dir()


def test_several_files_are_one_corpus(three, tmp_path):
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, three[:2])))
    pq.write_table(pa.Table.from_pylist(three[2:]), tmp_path / "b.parquet")
    files = [str(tmp_path / "a.jsonl"), tmp_path / "b.parquet"]
    index = Index.build(files, tmp_path / "index")
    Index.build(three, tmp_path / "expected")
    assert folder_bytes(index.path) == folder_bytes(tmp_path / "expected")
    with pytest.raises(
        DataError, match=r"b\.parquet, row 0: has the id '2' of an earlier document, .*b\.parquet, row 0"
    ):
        Index.build([*files, tmp_path / "b.parquet"], tmp_path / "index", replace=True)


def test_an_index_can_hold_a_first_stage(three, tmp_path):
    stage = FirstStage("bm25", k1=0.5, weights={"title": 3.0})
    stage.save(tmp_path / "stage.json")
    index = Index.build(three, tmp_path / "index", stage=tmp_path / "stage.json")
    assert index.stage == Index(index.path).stage == stage
    plain = Index.build(three, tmp_path / "plain")
    assert plain.stage is None
    assert search(index, "title 1") == search(plain, "title 1", stage=stage) != search(plain, "title 1")
    assert search(index, "title 1", stage="bm25f") == search(plain, "title 1")
    with pytest.raises(ParameterError, match="weights has the field 'title', which the index does not have"):
        Index.build(three, tmp_path / "other", fields="text", stage=stage)


def test_an_index_describes_itself(three, tmp_path):
    facts = Index.build(three, tmp_path / "index").describe()
    assert (facts["documents"], facts["fields"]["title"], facts["stage"]) == (3, 2.0, None)
    assert facts["bytes"] == sum(path.stat().st_size for path in (tmp_path / "index").glob("*.bin"))

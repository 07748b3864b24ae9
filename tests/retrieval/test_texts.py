"""Texts that an index stores, and snippets of them."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus_samples import QUERIES, random_documents
from naive_retrieval import snippet_window
from ranksieve.errors import DataError, ParameterError
from ranksieve.retrieval.analysis import Analyzer, words_of
from ranksieve.retrieval.index import Index
from ranksieve.retrieval.queries import QueryAnalysis
from ranksieve.retrieval.texts import packed, snippet, unpacked

PLAIN = Analyzer(stem="none", stop="none", split=False)


@given(st.lists(st.sampled_from("abcdefgh"), max_size=60), st.sets(st.sampled_from("abcx"), min_size=1))
@settings(max_examples=60, deadline=None)
def test_a_snippet_is_the_stretch_with_most_of_the_query(words, query):
    pieces = snippet(", ".join(words), " ".join(query), PLAIN, n_words=8)
    marked = [piece.text for piece in pieces if piece.marked]
    assert (len(set(marked)), len(marked)) >= snippet_window(words, query, 8)
    assert set(marked) <= query
    shown = words_of("".join(piece.text for piece in pieces))
    assert len(shown) == min(8, len(words))
    assert " ".join(shown) in " ".join(words)


@given(st.text(max_size=200), st.text(max_size=20))
@settings(max_examples=60, deadline=None)
def test_any_text_has_a_snippet_and_is_stored(text, query):
    for piece in snippet(text, query, Analyzer(), n_words=5):
        assert piece.text
        assert not piece.marked or words_of(piece.text)
    assert unpacked(packed({"a": text, "b": None})) == ({"a": text} if text else {})


def test_inflected_and_split_words_are_marked():
    marked = [piece.text for piece in snippet("Running the getFileName", "runs file", Analyzer()) if piece.marked]
    assert marked == ["Running", "getFileName"]
    assert [p.text for p in snippet("Cafe\u0301 x", "Caf\u00e9", Analyzer()) if p.marked] == ["Caf\u00e9"]


def test_long_gaps_are_cut():
    assert sum(len(piece.text) for piece in snippet("red" + "-" * 10_000 + "wine", "wine", Analyzer())) < 200
    assert sum(len(piece.text) for piece in snippet("-" * 10_000, "wine", Analyzer())) < 200
    assert snippet(" \n", "wine", Analyzer()) == []


def test_an_index_returns_the_texts_it_was_given(tmp_path):
    documents = random_documents(30)
    with Index.build(documents, tmp_path / "index", fields=["title", "body", "short=body~^."]) as index:
        for number, document in enumerate(documents):
            expected = {name: document[name] for name in ("title", "body") if document.get(name)}
            assert index.document(number) == expected
        with pytest.raises(ParameterError, match="document 30 does not exist; expected a number from 0 to 29"):
            index.document(30)
    with Index.build(documents, tmp_path / "bare", texts=False) as index:
        assert not index.has_texts
        assert index.document(0) == {}


def test_half_a_surrogate_is_stored_as_a_question_mark():
    assert unpacked(packed({"a": "x\ud800"})) == {"a": "x?"}
    with pytest.raises(DataError, match="a stored text is damaged"):
        unpacked(b"nonsense")


def test_threads_analyse_queries_at_once(index):
    analysis, expected = QueryAnalysis(index), QueryAnalysis(index).prepare(QUERIES.values()).terms.tolist()
    failures: list[object] = []

    def work() -> None:
        for _ in range(100):
            found = analysis.prepare(QUERIES.values()).terms.tolist()
            failures.extend([found] if found != expected else [])
            for known in analysis._known:
                with analysis._lock:
                    known.clear()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures

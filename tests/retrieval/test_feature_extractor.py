"""Features of pairs against their definitions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numba
import numpy as np
import pytest

import ranksieve as rs
from corpus_samples import QUERIES
from naive_retrieval import (
    NaiveIndex,
    expansion_features,
    feedback_features,
    lexical_features,
    neighbour_features,
    proximity_features,
)
from ranksieve.errors import DataError, ParameterError
from ranksieve.kernels import matching
from ranksieve.retrieval.feature_extractor import FeatureExtractor
from ranksieve.retrieval.feature_names import layout_of
from ranksieve.retrieval.index import Index
from ranksieve.retrieval.labelling import QueryCandidates, extract_features, to_dataset, write_features
from ranksieve.retrieval.notes import Notes
from ranksieve.retrieval.queries import QueryAnalysis
from ranksieve.retrieval.runs import Run
from ranksieve.retrieval.searching import Retriever, retrieve


def features_of(index: Index, queries: dict[str, str], **options) -> rs.Dataset:
    pairs = QueryCandidates(queries, Retriever(index), depth=40, **options)
    return to_dataset(pairs, FeatureExtractor(index), Notes())


@pytest.fixture(scope="module")
def data(index) -> rs.Dataset:
    return features_of(index, QUERIES)


@pytest.mark.parametrize("field", [0, 1, None])
def test_frequency_features_are_as_defined(index, documents, data, field):
    naive = NaiveIndex(documents, index.fields)
    column = index.columns[-1 if field is None else field]
    for row in range(0, data.n_docs, 3):
        query = QUERIES[str(data.query_ids[np.searchsorted(data.offsets, row, side="right") - 1])]
        expected = lexical_features(naive, query, int(data.lists.doc_ids[row][1:]), field)
        for family, value in expected.items():
            got = data.features[row, data.feature_names.index(f"{family}.{column}")]
            assert got == pytest.approx(value, rel=1e-4, abs=1e-5), (family, query)


@pytest.mark.parametrize("field", [0, 1])
def test_position_features_are_as_defined(index, documents, data, field):
    naive = NaiveIndex(documents, index.fields)
    for row in range(0, data.n_docs, 2):
        query = QUERIES[str(data.query_ids[np.searchsorted(data.offsets, row, side="right") - 1])]
        expected = proximity_features(naive, query, int(data.lists.doc_ids[row][1:]), field)
        for family, value in expected.items():
            got = data.features[row, data.feature_names.index(f"{family}.{index.columns[field]}")]
            assert got == pytest.approx(value, rel=1e-4, abs=1e-6, nan_ok=True), (family, query)


def test_phrases_are_found(tmp_path):
    corpus = [
        {"id": "a", "t": "the red wine, red wine of Spain"},
        {"id": "b", "t": "wine red"},
        {"id": "c", "t": "red"},
    ]
    data = features_of(Index.build(corpus, tmp_path / "index"), {"1": "red wine", "2": "wine"})
    by_doc = dict(zip(data.lists.doc_ids[:3], data.column("phrase.t")[:3], strict=True))
    assert by_doc == {"a": 2, "b": 0, "c": 0}
    assert data.column("phrase.t")[3:].tolist() == [2, 1] or data.column("phrase.t")[3:].tolist() == [1, 2]
    assert "bm25.all" not in data.feature_names  # one field is all there is


def test_query_number_and_first_stage_features(index, documents, data):
    run = retrieve(index, QUERIES, 40)
    assert data.feature_names[data.first_stage] == "first.score"
    np.testing.assert_allclose(data.column("first.score"), run.scores, rtol=1e-6)
    assert data.column("first.rank")[:3].tolist() == [1, 2, 3]
    assert data.column("first.share")[data.offsets[1]] == 1
    assert data.column("query.words")[0] == 3
    prices = [documents[int(doc[1:])]["price"] for doc in data.lists.doc_ids]
    assert data.column("number.price").tolist() == prices


def test_names_are_documented_and_unique(index):
    features = layout_of(index).features
    assert len(features) == 3 * 28 + 2 * 9 + 7 + 3 + 5 + 7 + 2 + 1
    assert len({feature.name for feature in features}) == len(features)
    assert all(feature.meaning for feature in features)


def test_neither_threads_nor_other_queries_change_a_bit(index, data, monkeypatch):
    pairs = QueryCandidates(QUERIES, Retriever(index), 40)
    one = to_dataset(pairs, FeatureExtractor(index, threads=1), Notes())
    np.testing.assert_array_equal(one.features, data.features)
    alone = features_of(index, {"7": QUERIES["7"]})
    np.testing.assert_array_equal(alone.features, data.features[data.offsets[2] :])


def test_searching_long_lists_finds_what_scanning_finds(index, data):
    few = Run.from_lists([(id, docs[:1], scores[:1]) for id, docs, scores in retrieve(index, QUERIES, 40).lists()])
    assert index.document_frequency[:, -1].max() > matching.RARE * 1
    got = to_dataset(QueryCandidates(QUERIES, Retriever(index), 40, run=few), FeatureExtractor(index), Notes())
    for name in data.feature_names:
        if not name.startswith(("feedback.", "expanded.", "neighbours.")):  # which are about the other candidates
            np.testing.assert_array_equal(got.column(name), data.column(name)[data.offsets[:-1]])


def check_candidates(data, oracle) -> None:
    """Features of some candidates of every query are those of an oracle of query text, documents, scores and rank."""
    for q in range(data.n_queries):
        rows = slice(data.offsets[q], data.offsets[q + 1])
        docs = [int(doc[1:]) for doc in data.lists.doc_ids[rows]]
        scores, text = data.column("first.score")[rows].tolist(), QUERIES[str(data.query_ids[q])]
        for rank in (0, 4, 20):
            for name, value in oracle(text, docs, scores, rank).items():
                got = data.column(name)[rows][rank]
                assert got == pytest.approx(value, rel=1e-4, abs=1e-6), (name, q, rank)


def test_feedback_is_similarity_to_the_best_candidates(index, documents, data):
    naive = NaiveIndex(documents, index.fields)
    check_candidates(data, lambda text, *candidate: feedback_features(naive, *candidate))


def test_feedback_of_short_lists_and_scores_below_zero(index):
    run = Run.from_rows([("1", "d3", -1.0), ("1", "d4", -2.0), ("2", "d5", 0.5)])
    data = extract_features(index, QUERIES, run, select=["feedback.*"])
    assert np.isfinite(data.features).all()
    assert data.column("feedback.cosine_3")[2] == 0  # there is no other


def test_expanded_queries_have_the_terms_of_the_best_candidates(index, documents, data):
    check_candidates(data, partial(expansion_features, NaiveIndex(documents, index.fields)))


def test_expansion_leaves_out_what_weighs_least(tmp_path):
    random = np.random.default_rng(5)
    texts = [" ".join(f"w{n}" for n in random.zipf(1.2, 300) % 400) + " w0" for _ in range(12)]
    documents = [{"id": f"d{n}", "t": text} for n, text in enumerate(texts)]
    index = Index.build(documents, tmp_path / "index")
    assert index.document_array("distinct").min() > 50 and index.forward(np.arange(index.n_docs))[1].max() == 255
    data = features_of(index, {"1": "w0 w2", "2": "w3 w3 w7"})
    naive = NaiveIndex(documents, index.fields)
    for q, text in enumerate(("w0 w2", "w3 w3 w7")):
        rows = slice(data.offsets[q], data.offsets[q + 1])
        docs = [int(doc[1:]) for doc in data.lists.doc_ids[rows]]
        for rank in (1, len(docs) - 1):
            scores = data.column("first.score")[rows].tolist()
            for name, value in expansion_features(naive, text, docs, scores, rank).items():
                assert data.column(name)[rows][rank] == pytest.approx(value, rel=1e-4), (name, q, rank)


def test_expansion_weights_candidates_equally_where_scores_are_not_above_zero(index, documents):
    naive, scores = (
        NaiveIndex(documents, index.fields),
        [6.0 - k for k in range(11)],
    )  # above it for 3 and 5, not for 10
    query = next(iter(QUERIES))
    run = Run.from_rows([(query, f"d{k + 2}", score) for k, score in enumerate(scores)])
    data = extract_features(index, {query: QUERIES[query]}, run, select=["expanded.*"])
    docs = [int(doc[1:]) for doc in data.lists.doc_ids]
    for rank in range(11):
        values = expansion_features(naive, QUERIES[query], docs, scores, rank)
        for name in data.feature_names:
            assert data.column(name)[rank] == pytest.approx(values[name], rel=1e-4, abs=1e-6), (name, rank)


def test_expansion_of_short_lists_and_unknown_words(tmp_path):
    corpus = [{"id": "a", "t": "red"}, {"id": "b", "t": "red wine"}, {"id": "c", "t": "rose"}, {"id": "d", "t": "the"}]
    index = Index.build(corpus, tmp_path / "index")
    run = Run.from_rows([("1", "b", 3.0), ("1", "d", -1.0), ("2", "d", 1.0), ("2", "c", 0.5)])
    data = extract_features(index, {"1": "red", "2": "unknown"}, run, select=["opening.*", "expanded.*"])
    assert data.column("opening.bm25")[0] > 0 and (data.column("opening.bm25")[1:] == 0).all()
    assert (data.features[1] == 0).all() and (data.features[2] == 0).all()  # an empty document
    assert data.column("expanded.bm25_3")[3] > 0  # found by its own words alone


def test_neighbours_are_the_candidates_with_the_most_like_terms(index, documents, data):
    naive = NaiveIndex(documents, index.fields)
    for q in range(data.n_queries):
        docs = [int(doc[1:]) for doc in data.lists.doc_ids[data.offsets[q] : data.offsets[q + 1]]]
        scores = data.column("first.score")[data.offsets[q] : data.offsets[q + 1]]
        for rank in range(0, len(docs), 7):
            for name, value in neighbour_features(naive, docs, scores.tolist(), rank).items():
                got = data.column(name)[data.offsets[q] + rank]
                assert got == pytest.approx(value, rel=1e-4, abs=1e-5, nan_ok=True), (name, q, rank)


def test_neighbours_of_documents_with_many_terms(tmp_path):
    random = np.random.default_rng(4)
    texts = [" ".join(f"w{n}" for n in random.zipf(1.4, 150) % 200) + " w0" for _ in range(30)]
    documents = [{"id": f"d{n}", "t": text} for n, text in enumerate(texts)]
    index = Index.build(documents, tmp_path / "index")
    assert index.document_array("distinct").min() > 32
    data = features_of(index, {"1": "w0 w2"})
    naive, docs = NaiveIndex(documents, index.fields), [int(doc[1:]) for doc in data.lists.doc_ids]
    for rank in range(0, 30, 6):
        for name, value in neighbour_features(naive, docs, data.column("first.score").tolist(), rank).items():
            assert data.column(name)[rank] == pytest.approx(value, rel=1e-4), (name, rank)


def test_candidates_without_neighbours(tmp_path):
    corpus = [{"id": "a", "t": "red"}, {"id": "b", "t": "red wine"}, {"id": "c", "t": "rose"}, {"id": "d", "t": "the"}]
    index = Index.build(corpus, tmp_path / "index")
    run = Run.from_rows([("1", "b", 3.0), ("1", "c", 2.0), ("1", "a", 1.0), ("1", "d", 0.0), ("2", "b", -1.0)])
    data = extract_features(index, {"1": "red", "2": "wine"}, run, select=["neighbours.*"])
    # b and a have each other; c shares no term with another, d has none at all, and the last is alone
    np.testing.assert_allclose(data.column("neighbours.score_5"), [1 / 3, np.nan, 1, np.nan, np.nan], rtol=1e-6)


def test_several_threads_share_one_maker(index):
    extractor, analysis = FeatureExtractor(index, ["neighbours.*", "feedback.*", "expanded.*"]), QueryAnalysis(index)
    found = {id: Retriever(index, threads=1).candidates([text], 40) for id, text in QUERIES.items()}

    def make(id: str) -> np.ndarray:
        return extractor.extract([QUERIES[id]], analysis.prepare([QUERIES[id]]), found[id])

    expected = {id: make(id) for id in QUERIES}
    if numba.threading_layer() == "workqueue":
        pytest.skip("Numba ends the process where two threads use this layer at once")
    with ThreadPoolExecutor(4) as pool:
        for id, made in zip([*QUERIES] * 20, pool.map(make, [*QUERIES] * 20), strict=True):
            np.testing.assert_array_equal(made, expected[id])


def test_features_are_chosen_by_pattern(index, data):
    extractor = FeatureExtractor(index, ["bm25*.title", "nearness.body", "first.rank"])
    assert extractor.names == ("bm25.title", "bm25_flat.title", "bm25_steep.title", "nearness.body", "first.rank")
    some = to_dataset(QueryCandidates(QUERIES, Retriever(index), 40), extractor, Notes())
    for name in extractor.names:
        np.testing.assert_array_equal(some.column(name), data.column(name))
    with pytest.raises(
        ParameterError, match=r"no feature matches 'pagerank'; .*known: .*, …; list all with .*layout_of"
    ):
        FeatureExtractor(index, ["pagerank"])


def test_relative_features_run_from_0_to_1_within_every_list(index, data):
    extractor = FeatureExtractor(index, ["*.title", "relative.*.title", "relative.first.score", "relative.mine"],
                         {"mine": lambda query, documents: np.arange(len(documents))})  # fmt: skip
    some = to_dataset(QueryCandidates(QUERIES, Retriever(index), 40), extractor, Notes())
    assert "first.score" not in some.feature_names
    assert some.feature_names[some.first_stage] == "relative.first.score"
    names = [name for name in some.feature_names if name.startswith("relative.") and name != "relative.mine"]
    assert len(names) == 1 + sum(name.endswith(".title") for name in data.feature_names)
    for name in names:
        plain = data.column(name.removeprefix("relative."))
        for start, stop in zip(data.offsets[:-1], data.offsets[1:], strict=True):
            values = plain[start:stop]
            width = np.nanmax(values) - np.nanmin(values) if np.isfinite(values).any() else 0.0
            expected = (values - np.nanmin(values)) / width if width > 0 else values * 0
            np.testing.assert_allclose(some.column(name)[start:stop], expected, rtol=1e-5, atol=1e-6)
    assert some.column("relative.mine")[: some.offsets[1]][[0, -1]].tolist() == [0, 1]
    with pytest.raises(ParameterError, match=r"no feature matches 'relative\.query\.\*'"):
        FeatureExtractor(index, ["relative.query.*"])


def test_users_add_their_own(index):
    def id_number(query, documents):
        return [len(query) * 1000 + int(doc[1:]) for doc in documents]

    pairs = QueryCandidates(QUERIES, Retriever(index), 5)
    data = to_dataset(pairs, FeatureExtractor(index, ["bm25.all", "mine"], {"mine": id_number}), Notes())
    assert data.feature_names == ("bm25.all", "mine")
    assert data.column("mine")[6] == len(QUERIES["2"]) * 1000 + int(data.lists.doc_ids[6][1:])
    with pytest.raises(ParameterError, match=r"named 'bm25\.all' already"):
        FeatureExtractor(index, (), {"bm25.all": id_number})
    with pytest.raises(DataError, match="one number per document"):
        to_dataset(pairs, FeatureExtractor(index, (), {"mine": lambda query, documents: [1.0]}), Notes())
    for wrong, message in (
        (lambda query, documents: list(documents), "could not convert string"),
        (
            lambda query, documents: documents[10**6],
            r"feature 'mine' failed on the query 'engine .*test_feature_extractor\.py:\d",
        ),
        (lambda query, documents: [np.inf] * len(documents), "returned an infinite number"),
    ):
        with pytest.raises(DataError, match=message):
            to_dataset(pairs, FeatureExtractor(index, "mine", {"mine": wrong}), Notes())
    with pytest.raises(ParameterError, match="expected a function"):
        FeatureExtractor(index, (), {"mine": 7})


def test_labels_come_from_judgements_and_nothing_is_dropped_silently(index, caplog, tmp_path):
    found = {id: docs for id, docs, _ in retrieve(index, QUERIES, 3).lists()}
    judgements = {"1": {found["1"][1]: 2.0, "d999": 1.0}, "2": {"d1": 0.0, found["2"][0]: 1.0}, "8": {"d1": 1.0}}
    missed = next(f"d{n}" for n in range(60) if f"d{n}" not in found["1"])
    judgements["1"][missed] = 1.0
    path = tmp_path / "data.parquet"
    write_features(QueryCandidates(QUERIES, Retriever(index), 3, judgements=judgements), path)
    data = rs.read(path)
    assert data.labels.tolist() == [0, 2, 0, 1, 0, 0, 0, 0, 0]
    assert data.feature_names[data.first_stage] == "first.score"
    assert caplog.messages == [
        "judgements are of documents that are not in the index: 1 (d999)",
        "judged queries have no text and are left out: 1 (8)",
        "queries have no judgements; their documents get label 0: 1 (7)",
        f"relevant documents are not among the candidates: 1 ({missed})",
    ]


@pytest.mark.parametrize(
    ("judgements", "message"),
    [
        ({"q1": {"d1": 1.0}, "q2": {"d1": 1.0, "d2": 0.0}},
         "no judgement is for one of these queries: got 3 judgements with ids like 'q1', expected ids like '1'"),
        ({"1": {"doc-1": 1.0, "doc-2": 0.0}, "q9": {"d1": 1.0}},
         "no judgement is for a document of the index: got 2 judgements with ids like 'doc-1', expected ids like 'd0'"),
        ({"d1": {"1": 1.0}, "d2": {"1": 1.0, "2": 0.0}, "1": {"x": 1.0}},
         "are exchanged: 3 of 4 judgements have the id of a document in the place of the query"),
    ],
)  # fmt: skip
def test_judgements_of_other_queries_or_documents_are_refused(index, tmp_path, judgements, message):
    with pytest.raises(DataError, match=message):
        extract_features(index, QUERIES, judgements=judgements)
    with pytest.raises(DataError, match=message):
        write_features(QueryCandidates(QUERIES, Retriever(index), judgements=judgements), tmp_path / "data.parquet")
    assert not list(tmp_path.iterdir())


def test_what_was_left_out_is_logged(index, caplog, tmp_path):
    extract_features(
        index,
        {"1": QUERIES["1"], "0": "unheard"},
        judgements={"1": {"d999": 1.0, "d1": 0.0}, "0": {}},
        select="bm25.all",
    )
    assert [record.message for record in caplog.records] == [
        "judgements are of documents that are not in the index: 1 (d999)",
        "queries without a word of the index, which retrieve nothing: 1 (0)",
    ]
    with pytest.raises(DataError, match=r"no query has candidates; queries without a word.*: 1 \(0\); check"):
        extract_features(index, {"0": "unheard"}, select="bm25.all")
    with pytest.raises(DataError, match="no query has candidates"):
        write_features(QueryCandidates({"0": "unheard"}, Retriever(index)), tmp_path / "data.parquet")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ParameterError, match="depth is 0"):
        extract_features(index, QUERIES, depth=0)


def test_candidates_of_another_system(index):
    run = Run.from_rows([("2", "d3", 0.9), ("2", "nope", 0.8), ("2", "d1", 0.7), ("99", "d1", 0.5)])
    notes = Notes()
    data = to_dataset(QueryCandidates(QUERIES, Retriever(index), run=run), FeatureExtractor(index), notes)
    assert data.lists.doc_ids.tolist() == ["d3", "d1"]
    np.testing.assert_allclose(data.column("first.score"), [0.9, 0.7], rtol=1e-6)
    assert list(notes) == [
        "documents of the run are not in the index and are left out: 1 (nope)",
        "queries of the run have no text and are left out: 1 (99)",
        "queries are not in the run and are left out: 2 (1, 7)",
    ]
    with pytest.raises(DataError, match="no query of the run is among the queries"):
        to_dataset(
            QueryCandidates(QUERIES, Retriever(index), run=Run.from_rows([("99", "d1", 1.0)])),
            FeatureExtractor(index),
            notes,
        )

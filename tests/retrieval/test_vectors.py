"""Dense and hybrid first stages, and features of vectors, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ranksieve as rs
from corpus_samples import QUERIES, folder_bytes, random_documents
from naive_retrieval import dense_features, similarity
from ranksieve.errors import DataError, MissingExtraError, ModelError, ParameterError, RanksieveWarning
from ranksieve.retrieval import vectors as vectors_module
from ranksieve.retrieval.encoders import SvdEncoder
from ranksieve.retrieval.first_stage import FirstStage
from ranksieve.retrieval.fusion import fuse
from ranksieve.retrieval.index import Index
from ranksieve.retrieval.labelling import extract_features
from ranksieve.retrieval.searching import Retriever, retrieve, search
from ranksieve.retrieval.tuning import tune
from ranksieve.retrieval.vectors import exact_products

N_DOCS, DIMENSION = 60, 7
JUDGED = {"1": {"d3": 1.0, "d9": 2.0}, "2": {"d4": 1.0}, "7": {"d8": 1.0}}
TRAINING = {"trees": 3, "leaves": 4, "min_docs": 1, "threads": 1, "verbose": False}


def made(n: int, seed: int = 0, dtype: str = "f4") -> np.ndarray:
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n, DIMENSION)) * rng.uniform(0.5, 2, (n, 1))
    vectors[n // 2] = vectors[n // 3]  # two documents with equal scores
    return vectors.astype(dtype)


BY_ID = dict(zip(QUERIES, made(3, seed=1), strict=True))


@pytest.fixture(scope="module", params=[("cosine", "f4"), ("dot", "f2")], ids=lambda kind: "-".join(kind))
def dense(request, tmp_path_factory) -> Index:
    kind, dtype = request.param
    folder = tmp_path_factory.mktemp("dense") / "index"
    vectors = made(N_DOCS, dtype=dtype)
    return Index.build(
        random_documents(N_DOCS), folder, fields=["title", "body"], vectors=vectors, similarity=kind, hnsw=True
    )


@pytest.fixture(scope="module")
def svd(tmp_path_factory) -> Index:
    folder = tmp_path_factory.mktemp("svd") / "index"
    return Index.build(random_documents(N_DOCS), folder, fields=["title", "body"], vectors="svd:5")


def stored(index: Index) -> list[list[float]]:
    return index.vectors.rows(np.arange(index.n_docs)).astype(float).tolist()


@pytest.mark.parametrize("depth", [1, 7, N_DOCS, 1000])
def test_lists_are_those_of_the_definition(dense, depth):
    documents = stored(dense)
    run = retrieve(dense, QUERIES, depth, "dense", query_vectors=BY_ID)
    for id, docs, scores in run.lists():
        expected = [similarity(BY_ID[id].tolist(), some, dense.vectors.similarity) for some in documents]
        order = sorted(range(N_DOCS), key=lambda doc: (-round(expected[doc], 9), doc))[:depth]
        assert [int(doc[1:]) for doc in docs] == order
        np.testing.assert_allclose(scores, [expected[doc] for doc in order], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("stage", ["dense", "hybrid", FirstStage("dense", ef=N_DOCS)], ids=str)
def test_neither_other_queries_nor_blocks_change_a_bit(dense, stage, monkeypatch):
    whole = retrieve(dense, QUERIES, 9, stage, query_vectors=BY_ID)
    monkeypatch.setattr(vectors_module, "BLOCK_ROWS", 7)
    monkeypatch.setattr(vectors_module, "MOST_PRODUCTS", 1)
    for id, docs, scores in whole.lists():
        alone = retrieve(dense, {id: QUERIES[id]}, 9, stage, query_vectors=BY_ID)
        assert alone.doc_ids.tolist() == docs.tolist() and alone.scores.tolist() == scores.tolist()


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.lists(st.integers(-3, 3), min_size=3, max_size=3), min_size=1, max_size=40),
    query=st.lists(st.integers(-3, 3), min_size=3, max_size=3),
    k=st.integers(1, 45),
    noise=st.sampled_from([0.0, 1e-7]),
)
def test_the_best_are_exact_where_products_are_nearly_equal(rows, query, k, noise):
    """Products by BLAS are not: those of many documents differ by less than the rounding of single precision."""
    vectors = np.array(rows, np.float32) * (1 + noise * np.arange(len(rows))[:, None]).astype(np.float32)
    found = vectors_module.StoredVectors(Arrays(vectors), "<f4", "dot")
    docs, scores = next(iter(found.best(np.array([query], np.float32), k)))
    expected = [similarity([float(a) for a in query], row, "dot") for row in vectors.astype(float).tolist()]
    order = sorted(range(len(rows)), key=lambda doc: (-expected[doc], doc))[:k] if any(query) else []
    assert docs.tolist() == order and scores.tolist() == [expected[doc] for doc in order]


class Arrays:
    """Vectors in memory in place of those of a folder."""

    def __init__(self, vectors: np.ndarray):
        lengths = vectors_module.lengths_of(vectors)
        self._arrays = {"vectors": vectors.view(np.uint8), "vector_lengths": lengths}

    def whole(self, name: str) -> np.ndarray:
        return self._arrays[name]

    unchecked = whole

    def check_parts(self, *_: object) -> None: ...


def test_products_do_not_depend_on_the_other_rows():
    rows, query = made(50, dtype="f4").repeat(30, axis=1), made(3, seed=2).repeat(30, axis=1)[1]
    whole = exact_products(rows, query)
    assert all(exact_products(rows[n : n + 1], query)[0] == whole[n] for n in range(50))


@pytest.mark.parametrize(
    ("stage", "fusion"),
    [
        (FirstStage("hybrid"), {}),
        (FirstStage("hybrid", rrf_k=7, pool=20), {"k": 7}),
        (FirstStage("hybrid", dense_share=0.3, k1=0.9), {"method": "sum", "weights": [0.7, 0.3]}),
    ],
    ids=str,
)
def test_hybrid_is_the_fusion_of_both_lists(dense, stage, fusion):
    for depth in (4, 1000):
        words = retrieve(dense, QUERIES, max(stage.pool, depth), FirstStage(k1=stage.k1))
        by_vectors = retrieve(dense, QUERIES, max(stage.pool, depth), "dense", query_vectors=BY_ID)
        expected = fuse([words, by_vectors], depth=depth, **fusion)
        got = retrieve(dense, QUERIES, depth, stage, query_vectors=BY_ID)
        assert got.scores.tolist() == expected.scores.tolist()
        assert got.doc_ids.tolist() == expected.doc_ids.tolist()


def test_features_are_as_defined(dense):
    given = Retriever(dense, query_vectors=BY_ID)
    data = extract_features(given, QUERIES, depth=23, select=["dense.*", "relative.dense.dot"])
    assert data.n_queries == 3
    documents = stored(dense)
    for number, id in enumerate(data.query_ids.astype(str)):
        part = slice(data.offsets[number], data.offsets[number + 1])
        docs = [int(doc[1:]) for doc in data.lists.doc_ids[part]]
        naive = dense_features(BY_ID[id].tolist(), [documents[doc] for doc in docs])
        for column, name in enumerate(data.feature_names[:-1]):
            np.testing.assert_allclose(data.features[part, column], [row[name] for row in naive], rtol=1e-5, atol=1e-6)
    alone = extract_features(given, {"7": QUERIES["7"]}, depth=23, select="dense.*")
    np.testing.assert_array_equal(alone.features, data.features[data.offsets[2] :, :-1])
    single = extract_features(given, QUERIES, depth=1, select="dense.top_*")
    assert np.isnan(single.features).all() and len(single.features) == 3


def test_only_what_needs_vectors_needs_them(dense):
    assert retrieve(dense, QUERIES, 5).n_queries == 3
    assert "dense.dot" not in extract_features(dense, QUERIES, select="!dense.*").feature_names
    message = r"no vectors are given for the queries 1, 2, 7; the index .*query_vectors.*encode.*select='!dense\.\*'"
    for call in (lambda: extract_features(dense, QUERIES), lambda: retrieve(dense, QUERIES, 5, "hybrid")):
        with pytest.raises(ParameterError, match=message):
            call()


def test_a_run_needs_no_vectors_of_queries(dense):
    run = retrieve(dense, QUERIES, 8, "dense", query_vectors=BY_ID)
    chosen = {"select": ["bm25.*", "first.score"], "depth": 8}
    data = extract_features(Retriever(dense, "dense"), QUERIES, run, **chosen)
    assert data.column("first.score").tolist() == run.scores.astype(np.float32).tolist()
    assert data.info.candidates == {"source": "run"}
    own = extract_features(Retriever(dense, "dense", query_vectors=BY_ID), QUERIES, run, **chosen)
    assert own.info.candidates["stage"]["model"] == "dense"


def test_an_index_without_vectors_says_so(index):
    for stage in ("dense", "hybrid"):
        with pytest.raises(ParameterError, match=rf"{stage} compares vectors, which the index .* does not have"):
            retrieve(index, QUERIES, 5, stage)
    with pytest.raises(ParameterError, match=r"no feature matches 'dense\.\*'"):
        extract_features(index, QUERIES, select="dense.*")


def test_queries_are_encoded_by_the_indexs_own_encoder(svd, tmp_path):
    texts = list(QUERIES.values())
    with Index(svd.path) as again:
        np.testing.assert_array_equal(again.encoder(texts), svd.encoder(texts))
        np.testing.assert_array_equal(again.encoder(texts[1:2]), svd.encoder(texts)[1:2])
    documents = ["\n".join(svd.document(doc).values()) for doc in range(N_DOCS)]
    np.testing.assert_array_equal(svd.encoder(documents), svd.vectors.rows(np.arange(N_DOCS)))
    same = Index.build(random_documents(N_DOCS), tmp_path / "same", fields=["title", "body"], vectors="svd:5")
    assert folder_bytes(same.path) == folder_bytes(svd.path)
    given = retrieve(svd, QUERIES, 5, "dense", query_vectors=svd.encoder)
    assert given.scores.tolist() == retrieve(svd, QUERIES, 5, "dense").scores.tolist()
    assert not SvdEncoder.fit(["red wine", "car"], 128)(["", "!"])[0].any()
    assert SvdEncoder.fit(["red wine", "car"], 128).components.shape[1] == 2


def test_queries_with_a_vector_of_zeros_are_counted(svd, caplog):
    queries = {"a": "", "b": "engine wing"}
    run = retrieve(svd, queries, 4, "dense")
    assert [len(docs) for _, docs, _ in run.lists()] == [0, 4]
    assert caplog.messages == ["queries with a vector of zeros, which retrieve nothing: 1 (a)"]
    run = retrieve(svd, queries, 4, "hybrid")
    assert [len(docs) for _, docs, _ in run.lists()] == [0, 4]


def test_the_graph_finds_what_comparing_with_all_finds(dense):
    exact, near = (
        retrieve(dense, QUERIES, 10, FirstStage("dense", ef=ef), query_vectors=BY_ID) for ef in (0, 2 * N_DOCS)
    )
    assert near.doc_ids.tolist() == exact.doc_ids.tolist() and near.scores.tolist() == exact.scores.tolist()


def test_a_graph_needs_vectors_and_the_extra(svd, tmp_path, monkeypatch):
    with pytest.raises(ParameterError, match=r"ef is 20, but the index .* has no HNSW graph") as found:
        retrieve(svd, QUERIES, 5, FirstStage("dense", ef=20))
    assert found.value.for_command_line().endswith("index the corpus with --hnsw, or use --set ef=0")
    with pytest.raises(ParameterError, match="hnsw needs vectors"):
        Index.build(random_documents(5), tmp_path / "none", hnsw=True)
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'ranksieve\[hnsw\]'"):
        Index.build(random_documents(5), tmp_path / "none", vectors="svd:2", hnsw=True)


def test_the_share_is_tuned_on_judged_queries(dense):
    tuned = tune(Retriever(dense, "hybrid", query_vectors=BY_ID), QUERIES, JUDGED)
    assert tuned.after >= tuned.before and tuned.stage.model == "hybrid"
    run = retrieve(dense, QUERIES, 100, tuned.stage, query_vectors=BY_ID)
    assert rs.retrieval.evaluate_run({"run": run}, JUDGED).mean() == pytest.approx(tuned.after)
    alone = tune(Retriever(dense, "dense", query_vectors=BY_ID), QUERIES, JUDGED)
    assert alone.stage == FirstStage("dense") and alone.after == alone.before
    assert (
        FirstStage("hybrid", dense_share=0.25).flags().endswith("--set k1=1.2,b=0.75,k3=8,dense_share=0.25,pool=1000")
    )
    assert (str(FirstStage("dense")), FirstStage("dense").flags()) == ("dense", "--model dense")


@pytest.mark.parametrize(
    ("values", "message"),
    [({"ef": -1}, "ef is -1"), ({"ef": 2.5}, "ef is 2.5"), ({"dense_share": 1.5}, "dense_share is 1.5; expected a"),
     ({"pool": 0}, "pool is 0"), ({"rrf_k": float("nan")}, "rrf_k is nan"), ({"pool": float("inf")}, "pool is inf")],
)  # fmt: skip
def test_parameters_out_of_range(values, message):
    with pytest.raises(ParameterError, match=message):
        FirstStage("hybrid", **values)
    with pytest.raises(ParameterError, match=r"model is 'hybird'; did you mean 'hybrid'[?] expected one of bm25f"):
        FirstStage("hybird")


def test_a_model_uses_vectors_in_both_stages(dense, svd, tmp_path):
    encode = {text: BY_ID[id] for id, text in QUERIES.items()}
    data = extract_features(Retriever(dense, "hybrid", query_vectors=BY_ID), QUERIES, judgements=JUDGED, depth=20)
    model = rs.train(data, **TRAINING)
    pipeline = rs.Pipeline(dense, model, encode=lambda texts: [encode[text] for text in texts])
    assert pipeline.retriever.stage.model == "hybrid" and pipeline.difference() is None
    whole = pipeline.rerank(QUERIES)
    for id, docs, scores in rs.Pipeline(dense, model).rerank(QUERIES, query_vectors=BY_ID).lists():
        found = pipeline.search(QUERIES[id], k=20)
        assert [hit.docno for hit in found] == docs.tolist() and [hit.score for hit in found] == scores.tolist()
    assert whole.scores.tolist() == np.concatenate([s for _, _, s in pipeline.rerank(QUERIES).lists()]).tolist()
    with pytest.raises(ParameterError, match="no vectors are given for the queries 'engine wing flow'"):
        unwarned = rs.Pipeline(dense, model, stage="bm25f")
        unwarned.warns = False
        unwarned.search("engine wing flow")
    plain = Index.build(random_documents(9), tmp_path / "plain", fields=["title", "body"])
    with pytest.raises(ModelError, match=r"features that the index .* does not have, such as 'dense.cosine'"):
        rs.Pipeline(plain, model, stage="bm25f")
    hits = search(svd, "engine wing", 3, "hybrid")
    assert [hit.rank for hit in hits] == [1, 2, 3]


def test_models_of_another_encoder_are_refused_or_warned_of(dense, svd, tmp_path):
    """Features of vectors of another encoder are wrong; the same one fitted again gives slightly different ones."""
    data = extract_features(svd, QUERIES, judgements=JUDGED, select=["dense.*"])
    assert data.candidates["encoder"] == svd.encoder_info
    model = rs.train(data, **TRAINING)
    model.save(tmp_path / "model.txt")
    assert rs.load(tmp_path / "model.txt").info["candidates"]["encoder"]["digest"] == svd.encoder_info["digest"]
    pipeline = rs.Pipeline(svd, tmp_path / "model.txt")
    assert pipeline.difference() is None
    other = extract_features(Retriever(dense, query_vectors=BY_ID), QUERIES, judgements=JUDGED, select=["dense.*"])
    message = "arrays or files, dimension 7, but those of the training data came from svd:5, dimension 5"
    with pytest.raises(ModelError, match=f"the index {dense.path}: its vectors come from {message}"):
        rs.Pipeline(dense, model)
    with pytest.raises(ModelError, match=f"arrays: its vectors come from {message}"):
        model.predict(other)
    rs.io.write_parquet(other, tmp_path / "other.parquet")
    with pytest.raises(ModelError, match=f"other.parquet: its vectors come from {message}"):
        rs.evaluate(model, tmp_path / "other.parquet")
    again = Index.build(random_documents(N_DOCS - 5), tmp_path / "again", fields=["title", "body"], vectors="svd:5")
    assert (
        "the encoder svd:5 of the index was fitted on other texts than in training"
        in rs.Pipeline(again, model).difference()
    )
    plain = rs.train(extract_features(svd, QUERIES, judgements=JUDGED, select=["bm25*"]), **TRAINING)
    assert rs.Pipeline(dense, plain).difference() is None


def test_models_warn_of_functions_with_other_names(tmp_path):
    def first(texts):
        return np.array([[len(text), 1.0] for text in texts])

    def second(texts):
        return first(texts)

    kept = {}
    for encode in (first, second):
        kept[encode] = Index.build(
            random_documents(20), tmp_path / encode.__name__, fields=["title", "body"], vectors=encode
        )
    assert kept[first].encoder_info["name"].endswith(".first")
    data = extract_features(Retriever(kept[first], query_vectors=first), QUERIES, judgements=JUDGED, select=["dense.*"])
    model = rs.train(data, **TRAINING)
    assert rs.Pipeline(kept[first], model, encode=first).difference() is None
    found = rs.Pipeline(kept[second], model, encode=second).difference()
    assert "test_vectors:" in found and "if these are different encoders, train on features of this index" in found


def test_an_encoder_with_fewer_dimensions_than_were_asked_for_is_warned_of(tmp_path):
    documents = random_documents(9)
    with pytest.warns(RanksieveWarning, match="vectors='svd:40' has 9 dimensions, as many as there are texts") as found:
        index = Index.build(documents, tmp_path / "index", fields=["title", "body"], vectors="svd:40")
    assert len(found) == 1 and str(found[0].message).endswith("so use fewer, as in svd:4")
    assert found[0].filename == __file__
    assert index.encoder_info["name"] == "svd:9"


def test_models_warn_of_other_candidates_where_features_of_vectors_depend_on_them(dense):
    chosen = {"select": ["dense.centroid", "dense.top_5"], "judgements": JUDGED}
    given = Retriever(dense, query_vectors=BY_ID)
    model = rs.train(extract_features(given, QUERIES, depth=20, **chosen), **TRAINING)
    assert "depend on the first stage (dense." in (rs.Pipeline(dense, model, stage="dense").difference() or "")
    assert "depend on the whole list (dense.centroid" in (rs.Pipeline(dense, model, depth=10).difference() or "")
    model = rs.train(extract_features(given, QUERIES, **chosen | {"select": "dense.cosine"}), **TRAINING)
    assert rs.Pipeline(dense, model, stage="dense").difference() is None


def test_queries_given_in_other_ways(dense, tmp_path):
    expected = retrieve(dense, QUERIES, 5, "dense", query_vectors=BY_ID).scores.tolist()
    rows = np.stack(list(BY_ID.values()))
    np.save(tmp_path / "queries.npy", rows)
    for given_ in (rows, rows.astype("f8"), tmp_path / "queries.npy", lambda texts: rows[: len(texts)]):
        assert retrieve(dense, QUERIES, 5, "dense", query_vectors=given_).scores.tolist() == expected
    assert len(retrieve(dense, {}, 5, "dense", query_vectors=BY_ID)) == 0
    for given_, message in (
        (rows[:2], r"query vectors: 2 vectors for 3 queries; expected one row for each, in the same order"),
        ({"1": rows[0]}, r"2 queries of 3 without a vector \(2, 7\)"),
        ({**BY_ID, "2": rows[0, :3]}, r"the vector of query '2' has the shape \(3,\), that of '1' \(7,\)"),
        ({"1": 1.0, "2": 2.0, "7": 3.0}, r"query vectors: has the shape \(3,\)"),
        (rows[:, :3], r"the vectors of the queries have dimension 3, those of the documents 7"),
        (lambda texts: rows[:1], r"the encoder returned an array of shape \(1, 7\) for 3 texts; expected \(3, 7\)"),
        (lambda texts: 1 / 0, r"the encoder failed on 3 texts: ZeroDivisionError.*test_vectors.py"),
        (rows * np.nan, r"query vectors: row 0 has nan in column 0"),
    ):
        with pytest.raises(DataError, match=message):
            retrieve(dense, QUERIES, 5, "dense", query_vectors=given_)


def test_a_retriever_stands_for_an_index(dense, svd):
    array, stage = np.stack(list(BY_ID.values())), FirstStage("dense")
    retriever = Retriever(dense, stage, query_vectors=array)
    expected = retrieve(dense, QUERIES, 9, stage, query_vectors=array)
    for found in (retrieve(retriever, QUERIES, 9), retrieve(Retriever(dense, stage, query_vectors=BY_ID), QUERIES, 9)):
        assert [docs.tolist() for _, docs, _ in found.lists()] == [docs.tolist() for _, docs, _ in expected.lists()]
    candidates = retriever.candidates(list(QUERIES.values()), 9)
    for number, (_, docs, _) in enumerate(expected.lists()):
        assert dense.ids[candidates.list_of(number)[0]].tolist() == docs.tolist()
    with pytest.raises(ParameterError, match="query_vectors have query ids, but these texts have none; give a"):
        Retriever(dense, stage, query_vectors=BY_ID).candidates(["red"], 9)
    own = Retriever(svd, "dense")
    assert search(own, "d0 d1", 5) == search(svd, "d0 d1", 5, "dense")
    for name, value in (("stage", "bm25"), ("query_vectors", array)):
        message = f"{name} is given with a Retriever, which has its own; expected an index, or no {name}; give it to"
        for call in (lambda **given: retrieve(own, QUERIES, **given), lambda **given: search(own, "red", **given)):
            with pytest.raises(ParameterError, match=message):
                call(**{name: value})


def test_a_pipeline_takes_a_retriever(svd):
    model = rs.train(extract_features(Retriever(svd, "dense"), QUERIES, judgements=JUDGED), **TRAINING)
    retriever = Retriever(svd, "dense")
    with rs.Pipeline(retriever, model) as pipeline:
        assert pipeline.retriever is retriever
        assert pipeline.search(QUERIES["1"]) == rs.Pipeline(svd, model, stage="dense").search(QUERIES["1"])
    assert svd.n_docs == N_DOCS and retrieve(retriever, QUERIES, 3)  # the index is still open
    for name, value in (("stage", "bm25"), ("encode", len)):
        with pytest.raises(ParameterError, match=f"{name} is given with a Retriever"):
            rs.Pipeline(retriever, model, **{name: value})
    with pytest.raises(ParameterError, match="give the index"):
        rs.Pipeline(model, retriever)

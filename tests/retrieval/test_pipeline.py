"""Both stages together."""

from __future__ import annotations

import gc
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ranksieve as rs
from corpus_samples import QUERIES
from ranksieve.errors import DataError, ModelError, ParameterError, RanksieveWarning
from ranksieve.retrieval.labelling import QueryCandidates, extract_features, write_features
from ranksieve.retrieval.runs import Run
from ranksieve.retrieval.searching import Retriever, retrieve, search

JUDGEMENTS = {"1": {"d3": 2.0, "d9": 1.0}, "2": {"d4": 1.0, "d20": 1.0}, "7": {"d11": 2.0}}


@pytest.fixture(scope="module")
def model(index) -> rs.Forest:
    data = extract_features(index, QUERIES, judgements=JUDGEMENTS, depth=50)
    return rs.train(data, trees=8, leaves=4, min_docs=1)


def test_the_pipeline_ranks_by_the_models_scores(index, model):
    data = extract_features(index, QUERIES, depth=50)
    scores = model.predict(data)
    run = rs.Pipeline(index, model, depth=50).rerank(QUERIES)
    for number, (id, docs, values) in enumerate(run.lists()):
        part = slice(data.offsets[number], data.offsets[number + 1])
        order = np.argsort(-scores[part], kind="stable")
        assert docs.tolist() == data.lists.doc_ids[part][order].tolist()
        np.testing.assert_array_equal(values, scores[part][order])
        hits = rs.Pipeline(index, model, depth=50).search(QUERIES[id], k=4)
        assert [(hit.docno, hit.score) for hit in hits] == list(zip(docs[:4], values[:4], strict=True))


def test_runs_of_others_are_reranked(index, model, caplog):
    run = Run.from_lists((id, docs[:7], scores[:7]) for id, docs, scores in retrieve(index, QUERIES, 50).lists())
    with pytest.warns(RanksieveWarning, match="the 50 best candidates of a query and gets the 7 best"):
        again = rs.Pipeline(index, model).rerank(QUERIES, run)
    assert {id: sorted(docs) for id, docs, _ in again.lists()} == {id: sorted(docs) for id, docs, _ in run.lists()}
    assert not caplog.messages


def test_features_in_another_order_and_of_ones_own(index):
    def digits(query, documents):
        return [float(doc[1:]) for doc in documents]

    names = ["first.rank", "bm25.all", "mine", "relative.bm25.title", "relative.mine"]
    extra = {"mine": digits}
    data = extract_features(index, QUERIES, judgements=JUDGEMENTS, select=names, extra=extra)
    turned = rs.Dataset.from_arrays(
        data.features[:, ::-1].copy(), data.labels, qid=np.repeat(data.query_ids, data.lists.sizes)
    ).with_features(data.feature_names[::-1])
    model = rs.train(turned, trees=4, leaves=4, min_docs=1)
    run = rs.Pipeline(index, model, extra=extra).rerank({"1": QUERIES["1"]})
    np.testing.assert_allclose(np.sort(run.scores), np.sort(model.predict(turned)[: data.offsets[1]]))
    with pytest.raises(ModelError, match=r"needs 2 features that the index .* does not have, such as 'relative\.mine'"):
        rs.Pipeline(index, model)


def test_frames_as_pyterrier_has_them(index, model, tmp_path):
    model.save(tmp_path / "model.txt")
    pipeline = rs.Pipeline(index.path, tmp_path / "model.txt", depth=50)
    topics = pd.DataFrame({"qid": list(QUERIES), "query": list(QUERIES.values())})
    result = pipeline.transform(topics)
    assert list(result.columns) == ["qid", "query", "docno", "score", "rank"]
    few = result[result["rank"] < 3]
    with pytest.warns(RanksieveWarning, match="gets a run with other scores") as warned:  # they are the model's
        assert len(pipeline.transform(few)) == 9
    assert warned[0].filename == __file__
    with pytest.raises(DataError, match="no column 'query'"):
        pipeline.transform(topics[["qid"]])
    with pytest.raises(DataError, match="'1' occurs twice"):
        pipeline.transform(topics.assign(qid="1"))


def test_texts_that_find_nothing(index, model):
    pipeline = rs.Pipeline(index, model, depth=50)
    assert pipeline.search("") == pipeline.search("unheard") == []
    with pytest.raises(ParameterError, match="depth is 0"):
        rs.Pipeline(index, model, depth=0)
    with pytest.raises(ParameterError, match="k is -1"):
        pipeline.search("engine", k=-1)


def test_another_first_stage_than_in_training_is_warned_of(index, tmp_path):
    stage, path = rs.retrieval.FirstStage(k1=0.9), tmp_path / "data.parquet"
    write_features(QueryCandidates(QUERIES, Retriever(index, stage), judgements=JUDGEMENTS), path, select=["first.*"])
    rs.io.write_parquet(rs.read(path), path)  # the note is kept
    model = rs.train(path, trees=3, leaves=4, min_docs=1)
    model.save(tmp_path / "model.txt")
    loaded = rs.load(tmp_path / "model.txt")
    rs.Pipeline(index, loaded, stage=stage).search(QUERIES["1"])
    stage.save(tmp_path / "stage.json")
    rs.Pipeline(index, loaded, stage=tmp_path / "stage.json").search(QUERIES["1"])
    pipeline = rs.Pipeline(index, loaded, stage="bm25f")
    with pytest.warns(
        RanksieveWarning,
        match=r"of bm25f \(k1=0\.9,b=0\.75,k3=8\) and gets candidates of bm25f \(k1=1\.2,.*first\.score",
    ) as warned:
        pipeline.search(QUERIES["1"])
    assert warned[0].filename == __file__
    pipeline.search(QUERIES["2"])  # once is enough
    pipeline.rerank(QUERIES)


def test_a_run_of_ours_is_as_good_as_its_first_stage(index):
    ours = retrieve(index, QUERIES, 30)
    trained_on = extract_features(index, QUERIES, ours, judgements=JUDGEMENTS, select=["first.*", "relative.*"])
    assert (
        trained_on.candidates
        == extract_features(index, QUERIES, judgements=JUDGEMENTS, depth=30, select="bm25.all").candidates
    )
    model = rs.train(trained_on, trees=2, min_docs=1)
    rs.Pipeline(index, model, depth=30).search(QUERIES["1"])
    rs.Pipeline(index, model).rerank(QUERIES, ours)
    everything = extract_features(index, QUERIES, retrieve(index, QUERIES, 60), judgements=JUDGEMENTS, select="first.*")
    stage = {"model": "bm25f", "weights": {}, "k1": 1.2, "b": 0.75, "k3": 8.0}
    assert everything.candidates == {"source": "first stage", "stage": stage, "depth": index.n_docs}
    other = extract_features(
        index, QUERIES, retrieve(index, QUERIES, 30, "dfr"), judgements=JUDGEMENTS, select="first.*"
    )
    assert other.candidates == {"source": "run"}
    of_run = rs.Pipeline(index, rs.train(other, trees=2, min_docs=1), depth=30)
    of_run.rerank(QUERIES, ours)
    with pytest.warns(RanksieveWarning, match="trained on candidates of a run and gets candidates of bm25f"):
        of_run.search(QUERIES["1"])


def test_the_defaults_are_the_first_stage_and_depth_of_training(index, tmp_path):
    stage = rs.retrieval.FirstStage("dirichlet", mu=50.0, weights={"title": 2.0})
    given = rs.retrieval.Retriever(index, stage)
    data = extract_features(given, QUERIES, judgements=JUDGEMENTS, depth=40, select=["first.*"])
    model = rs.train(data, trees=3, leaves=4, min_docs=1)
    model.save(tmp_path / "model.txt")
    pipeline = rs.Pipeline(index, tmp_path / "model.txt")
    assert pipeline.depth == 40
    expected = rs.Pipeline(index, model, stage=stage, depth=40).rerank(QUERIES)
    np.testing.assert_array_equal(pipeline.rerank(QUERIES).scores, expected.scores)
    assert len(pipeline.search(QUERIES["1"], k=50)) == 40
    of_run = extract_features(
        index, QUERIES, retrieve(index, QUERIES, 30, "dfr"), judgements=JUDGEMENTS, select="bm25*"
    )
    assert rs.Pipeline(index, rs.train(of_run, trees=2, min_docs=1)).depth == 1000


@pytest.mark.parametrize("stored", [None, "--run", {}, {"source": "first stage", "stage": {"k9": 1}, "depth": 5}, 7])
def test_models_with_other_notes_on_their_candidates_are_used(index, model, stored):
    other = replace(model, info={**model.info, "candidates": stored})
    assert rs.Pipeline(index, other).depth == 1000


@pytest.mark.parametrize("text", [None, 7, ["engine"], b"engine"])
def test_what_is_no_text_is_refused(index, model, text):
    with pytest.raises(ParameterError, match="expected the text of one query"):
        rs.Pipeline(index, model).search(text)
    with pytest.raises(ParameterError, match="expected the text of one query"):
        search(index, text)


def open_files(folder: Path) -> int:
    links = [Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd")]
    return sum(os.path.realpath(link).startswith(str(folder)) for link in links)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs Linux")
def test_pipelines_close_their_files(index, model):
    gc.collect()
    gc.disable()
    try:
        before = open_files(index.path)
        with rs.Pipeline(index.path, model) as pipeline:
            assert pipeline.search(QUERIES["1"])
            assert open_files(index.path) > before
        assert open_files(index.path) == before
        with pytest.raises(ParameterError, match="the pipeline was closed"):
            pipeline.search(QUERIES["1"])
        with pytest.raises(DataError, match="the index was closed"):
            retrieve(pipeline.index, QUERIES)
        pipeline.close()
        pipeline = rs.Pipeline(index.path, model)
        assert pipeline.search(QUERIES["1"])
        del pipeline  # without waiting for the garbage collector
        assert open_files(index.path) == before
        rs.Pipeline(index, model).close()
        assert retrieve(index, QUERIES).n_queries == 3  # an index that was given stays open
    finally:
        gc.enable()


def test_another_depth_than_in_training_is_warned_of(index):
    data = extract_features(index, QUERIES, judgements=JUDGEMENTS, depth=50, select="neighbours.*")
    model = rs.train(data, trees=8, leaves=4, min_docs=1)
    with pytest.warns(RanksieveWarning, match=r"the 50 best .* gets the 7 best; .* uses 2 depend on .* use depth=50"):
        rs.Pipeline(index, model, depth=7).search(QUERIES["1"])
    with pytest.warns(RanksieveWarning, match="gets the 1000 best") as warned:
        rs.Pipeline(index, model, depth=1000).rerank(QUERIES)
    assert "use --depth 50" in warned[0].message.for_command_line()
    whole = rs.train(extract_features(index, QUERIES, judgements=JUDGEMENTS, depth=index.n_docs), trees=2, min_docs=1)
    rs.Pipeline(index, whole).search(QUERIES["1"])  # there are no more
    data = extract_features(index, QUERIES, judgements=JUDGEMENTS, depth=50, select=["bm25.*", "first.*", "feedback.*"])
    rs.Pipeline(index, rs.train(data, trees=2, min_docs=1), depth=20).search(QUERIES["1"])  # no list needed


def test_a_run_with_other_scores_than_in_training_is_warned_of(index):
    ours = retrieve(index, QUERIES, 50)
    theirs = Run.from_lists((id, docs, 2 * scores) for id, docs, scores in ours.lists())
    data = extract_features(index, QUERIES, judgements=JUDGEMENTS, depth=50, select=["bm25.*", "first.*"])
    model = rs.train(data, trees=3, leaves=4, min_docs=1)
    rs.Pipeline(index, model).rerank(QUERIES, ours)  # what our first stage makes is no news
    empty = [("0", np.empty(0, object), np.empty(0))]
    rs.Pipeline(index, model).rerank(QUERIES | {"0": "unheard"}, Run.from_lists([*empty, *ours.lists()]))
    with pytest.warns(RanksieveWarning, match="gets a run with other scores; .* depend on the first stage"):
        rs.Pipeline(index, model).rerank(QUERIES, theirs)
    with pytest.warns(RanksieveWarning, match="gets a run"):
        rs.Pipeline(index, model, stage=rs.retrieval.FirstStage(k1=0.9)).rerank(QUERIES, ours)
    data = extract_features(index, QUERIES, judgements=JUDGEMENTS, select=["bm25.*", "length.*"])
    rs.Pipeline(index, rs.train(data, trees=2, min_docs=1)).rerank(QUERIES, theirs)  # needs no first stage


def test_scored_candidates_are_in_the_order_of_the_first_stage(index, model):
    pipeline = rs.Pipeline(index, model, depth=50)
    for text in QUERIES.values():
        found = pipeline.score(text)
        assert index.ids[found.docs].tolist() == [hit.docno for hit in search(index, text, k=50)]
        np.testing.assert_array_equal(found.scores, model.predict(found.features))
        assert index.ids[found.docs[found.order[:3]]].tolist() == [hit.docno for hit in pipeline.search(text, k=3)]
    run = Run.from_rows([("", "d3", 2.0), ("", "d9", 1.0)])
    with pytest.warns(RanksieveWarning, match="gets a run with other scores"):
        assert index.ids[pipeline.score(QUERIES["1"], run).docs].tolist() == ["d3", "d9"]
    assert len(pipeline.score("unheard").docs) == 0
    pipeline.warns = False
    assert len(pipeline.score(QUERIES["1"], Run.from_rows([("", "none", 1.0)])).docs) == 0


def test_an_explanation_of_candidates_is_that_of_the_data(index, model):
    data = extract_features(index, QUERIES, depth=50)
    pipeline = rs.Pipeline(index, model, depth=50)
    for id, text in QUERIES.items():
        whole, ours = rs.explain(model, data, id), pipeline.explain(text)
        np.testing.assert_array_equal(ours.contributions, whole.contributions)
        np.testing.assert_array_equal(ours.scores, whole.scores)
        assert (ours.documents, ours.expected) == (whole.documents, whole.expected)
        two = [whole.documents[5], whole.documents[2]]
        assert pipeline.explain(text, two).why(*two) == whole.why(*two)
        assert pipeline.explain(text, two[0]).documents == (two[0],)
    with pytest.raises(DataError, match="document 'none' is not among the 0 candidates"):
        pipeline.explain("unheard", ["none"])
    assert pipeline.explain("unheard").documents == ()


def test_the_difference_to_training_is_a_message_or_a_warning(index, model):
    assert rs.Pipeline(index, model).difference() is None
    other = rs.Pipeline(index, model, stage="dfr")
    other.warns = False
    assert "candidates of bm25f" in other.difference()
    other.search("wing")  # a warning would be an error here


def test_an_index_and_a_model_that_are_exchanged_are_named(index, model, tmp_path):
    model.save(tmp_path / "model.txt")
    with pytest.raises(ParameterError, match=r"the index is .*model.txt, a file, and the model .*, a folder; give the"):
        rs.Pipeline(tmp_path / "model.txt", index.path)
    with pytest.raises(ParameterError, match="give the index first, then the model"):
        rs.Pipeline(model, index)

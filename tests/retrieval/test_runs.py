"""Run files, judgements, and measuring runs as ir-measures does."""

from __future__ import annotations

import ir_measures
import numpy as np
import pandas as pd
import pytest

from ranksieve.errors import DataError, ParameterError
from ranksieve.evaluation.metrics import parse_metric
from ranksieve.retrieval.run_evaluation import evaluate_run
from ranksieve.retrieval.runs import Run, read_judgements, read_run, write_run

BY_TREC_EVAL = ["nDCG@10", "nDCG", "AP", "AP@10", "AP(rel=2)", "RR", "RR(rel=3)", "P@5", "P(rel=2)@5", "R@10"]
BY_OTHERS = ["RR@5"]  # which orders equal scores in another way


def random_judged(seed: int, ties: bool = True) -> tuple[Run, dict]:
    """Lists with ties, unjudged documents, relevant ones that are missing, and a query that is not in the run."""
    rng = np.random.default_rng(seed)
    judgements = {
        str(q): {f"d{n}": float(rng.integers(0, 4)) for n in rng.choice(60, 20, replace=False)} for q in range(8)
    }
    rows = [
        (str(q), f"d{n}", float(rng.integers(0, 30)) if ties else rng.random())
        for q in range(7)
        for n in rng.choice(60, rng.integers(1, 40), replace=False)
    ]
    return Run.from_rows(rows), judgements


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", BY_TREC_EVAL + BY_OTHERS)
def test_runs_measure_as_ir_measures_does(seed, name):
    run, judgements = random_judged(seed, ties=name in BY_TREC_EVAL)
    qrels = [ir_measures.Qrel(q, d, int(g)) for q, grades in judgements.items() for d, g in grades.items()]
    scored = [
        ir_measures.ScoredDoc(q, d, s) for q, docs, scores in run.lists() for d, s in zip(docs, scores, strict=True)
    ]
    theirs = {m.query_id: m.value for m in ir_measures.iter_calc([ir_measures.parse_measure(name)], qrels, scored)}
    result = evaluate_run({"run": run}, judgements, name)
    ours = dict(zip(result.query_ids, result.per_query(), strict=True))
    assert ours.keys() == judgements.keys()
    for id, value in theirs.items():
        assert ours[id] == pytest.approx(value, abs=1e-9)
    assert ours["7"] == 0


def test_gains_are_exponential_by_default():
    run, judgements = random_judged(3)
    gains = {q: {d: 2**g - 1 for d, g in grades.items()} for q, grades in judgements.items()}
    ours = evaluate_run({"r": run}, judgements, "ndcg@5").per_query()
    np.testing.assert_allclose(ours, evaluate_run({"r": run}, gains, "nDCG(dcg='log2')@5").per_query(), atol=1e-12)


def test_average_ndcg_is_the_mean_over_cut_offs():
    run, judgements = random_judged(0)
    values = [evaluate_run({"r": run}, judgements, f"ndcg@{k}").per_query() for k in range(1, 6)]
    np.testing.assert_allclose(evaluate_run({"r": run}, judgements, "avg-ndcg@5").per_query(), np.mean(values, axis=0))


def test_err_of_a_run_does_not_depend_on_the_grades_that_it_misses():
    judgements = {"q": {"a": 3, "b": 1}, "r": {"a": 1}}
    rows = [("q", "b", 2.0), ("r", "a", 1.0)]
    runs = {"some": Run.from_rows(rows), "all": Run.from_rows([*rows, ("q", "a", 1.0)])}
    found = evaluate_run(runs, judgements, ["err@1", "ERR@1"])
    for metric, value in (("err@1", 1 / 8), ("ERR@1", 1 / 16)):
        assert [found.values[name][metric].tolist() for name in runs] == [[value, value]] * 2


def test_queries_without_positives_are_left_out():
    run = Run.from_rows([("1", "a", 1.0), ("2", "a", 1.0)])
    result = evaluate_run({"r": run}, {"1": {"a": 1.0}, "2": {"a": 0.0}}, ["ndcg@10", "p@1"])
    assert result.mean(metric="p@1") == 1.0
    assert "1 of 2 queries counted" in result.conventions[0]


def test_run_files_come_back(tmp_path):
    run, _ = random_judged(1)
    write_run(run, tmp_path / "run.trec")
    again = read_run(tmp_path / "run.trec")
    for (id, docs, scores), (id2, docs2, scores2) in zip(run.lists(), again.lists(), strict=True):
        assert (id, docs.tolist()) == (id2, docs2.tolist())
        np.testing.assert_allclose(scores2, scores, rtol=1e-5, atol=1e-5)
    frame = again.to_frame()
    assert list(frame.columns) == ["qid", "docno", "score", "rank"]
    back = Run.from_frame(frame.sample(frac=1, random_state=0).sort_values("rank", kind="stable"))
    assert {id: docs.tolist() for id, docs, _ in back.lists()} == {id: docs.tolist() for id, docs, _ in run.lists()}
    with pytest.raises(DataError, match="no column 'docno'"):
        Run.from_frame(pd.DataFrame({"qid": [1]}))


@pytest.mark.parametrize(
    "scores",
    [
        [2.0] * 50,
        [0.0] * 50,
        [-3.0] * 50,
        [1 + 1e-12, 1.0, 1 - 1e-9, 1 - 2e-7, -1e39],
        [1e39, 1e38, 0.0, 0.0, -0.0, -1],
    ],
)
def test_written_scores_keep_the_order_for_readers_of_scores_alone(tmp_path, scores):
    ids = [f"d{n}" for n in range(len(scores))]
    run = Run.from_rows(
        [(q, d, s) for q, docs in (("1", ids), ("2", ids[::-1])) for d, s in zip(docs, scores, strict=True)]
    )
    write_run(run, tmp_path / "run.trec")
    again = read_run(tmp_path / "run.trec")
    assert again.doc_ids.tolist() == ids + ids[::-1]
    for _, docs, read in again.lists():
        assert (np.diff(read) < 0).all() and (np.diff(read.astype(np.float32)) < 0).all()
        best = {"a": {docs[0]: 1.0}}
        assert evaluate_run({"r": Run.from_lists([("a", docs, read)])}, best, "mrr").mean() == 1.0


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("1", "a", 1.0), ("2", "a", 1.0), ("1", "a", 0.5)], "row 2: document 'a' occurs twice for query '1'"),
        ([("1", "a", 1.0), ("1", "b", float("nan"))], "row 1: the score 'nan' is not a finite number"),
        ([("1", "a", np.inf)], "row 0: the score 'inf' is not a finite number"),
        ([("1", "a", None)], "row 0: the score 'None' is not a finite number"),
        ([("1", "a", 1.0), ("1\0", "b", 0.5)], r"row 1: the query id '1\\x00' has a NUL character"),
    ],
)
def test_bad_rows_are_refused(rows, message):
    with pytest.raises(DataError, match=message):
        Run.from_rows(rows)
    with pytest.raises(DataError, match="row"):
        Run.from_frame(pd.DataFrame(rows, columns=["qid", "docno", "score"]))


def test_runs_describe_the_order_of_equal_scores():
    run = Run.from_rows([("q", "a", 1.0), ("q", "b", 1.0)])
    result = evaluate_run({"r": run}, {"q": {"b": 1.0}}, "mrr")
    assert result.mean() == 1.0
    assert "equal scores by descending document id as in trec_eval" in result.conventions[0]
    assert "input order" not in result.conventions[0]
    with pytest.raises(ParameterError, match="nDCG@10 is given twice"):
        evaluate_run({"r": run}, {"q": {"b": 1.0}}, ["nDCG@10", "nDCG(dcg='log2')@10"])
    with pytest.raises(ParameterError, match="leave out ties"):
        evaluate_run({"r": run}, {"q": {"b": 1.0}}, parse_metric("mrr", ties="mean"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 Q0 a 1 2.0\n", "run:1: has 5 columns"),
        ("1,Q0,a,1,2.0,t\n", "run:1: looks like CSV"),
        ("1 0 a 2\n", "run:1: looks like a file of judgements"),
        ("1 Q0 a 1 2.0 t\n1 Q0 a 2 1.0 t\n", "run:2: document 'a' occurs twice for query '1'"),
        ("1 Q0 a 1 1_0 t\n", "run:1: the score '1_0' is not a finite number"),
        ("1 Q0 a 1_0 2.0 t\n", "run:1: the rank '1_0' is not an integer"),
        ("1 Q0 a 1 much t\n", "run:1: the score 'much' is not a finite number"),
        ("1 Q0 a first 2.0 t\n", "run:1: the rank 'first' is not an integer"),
        ("1 Q0 a 1 nan t\n", "run:1"),
        ("1 Q0 a 1 2 t\n1 Q0 a\0 2 1 t\n", r"run:2: the document id 'a\\x00' has a NUL character"),
        ("\n", "holds no results"),
        ("", "the file is empty; expected TREC run lines"),
    ],
)
def test_bad_run_files_are_refused(tmp_path, text, message):
    (tmp_path / "run").write_text(text)
    with pytest.raises(DataError, match=message):
        read_run(tmp_path / "run")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 0 a\n", "qrels:1: the grade 'a' is not a finite number"),
        ("1 a\n", "qrels:1: has 2 columns; expected judgements .* with spaces or tabs between the columns"),
        ("query-id,corpus-id,score\n", "qrels:1: looks like CSV; expected .* with spaces or tabs between the columns"),
        ("1;0;a;1\n", "qrels:1: looks like CSV"),
        ('{"query": "1", "doc": "a"}\n', "qrels:1: looks like JSON"),
        ("1 Q0 a 1 2.0 t\n", "qrels:1: looks like a TREC run; expected judgements"),
        ("1\tred wine\n", "qrels:1: looks like a file of queries"),
        ("query-id corpus-id score\n", "qrels: holds no judgements"),
        ("1 0 a good\n", "qrels:1: the grade 'good' is not a finite number"),
        ("1 0 a 1\n1 0 a 2\n", "qrels:2: 'a' has two different grades"),
        ("1 0 a inf\n", "finite"),
        ("1 0 a 1\n1\0 0 a 1\n", r"qrels:2: the query id '1\\x00' has a NUL character"),
        ("1 0 a 1_0\n", "the grade '1_0' is not a finite number"),
    ],
)
def test_bad_judgements_are_refused(tmp_path, text, message):
    (tmp_path / "qrels").write_text(text)
    with pytest.raises(DataError, match=message):
        read_judgements(tmp_path / "qrels")


@pytest.mark.parametrize(
    "text", ["query-id\tcorpus-id\tscore\n1\ta\t2\n", "1 a 2\n", "qid iter docno label\n1 0 a 2\n"]
)
def test_judgements_of_three_columns_and_with_names_of_columns(tmp_path, text):
    (tmp_path / "qrels").write_text(text)
    assert read_judgements(tmp_path / "qrels") == {"1": {"a": 2.0}}


def test_runs_and_judgements_as_files_and_frames(tmp_path):
    (tmp_path / "qrels").write_text("1 0 a 2\n")
    (tmp_path / "run").write_text("1 Q0 a 1 2.0 t\n")
    judged = pd.DataFrame({"qid": [1], "docno": ["a"], "label": [2]})
    frame = Run.from_rows([("1", "a", 2.0)]).to_frame()
    for run, judgements in ((tmp_path / "run", str(tmp_path / "qrels")), (frame, judged)):
        assert evaluate_run({"r": run}, judgements).mean() == 1.0
    with pytest.raises(DataError, match="no column 'label'"):
        evaluate_run({"r": frame}, judged.drop(columns="label"))
    with pytest.raises(DataError, match="no query of the run r is judged: it has 1, the judgements have 2"):
        evaluate_run({"r": frame}, {"2": {"a": 1.0}})


@pytest.mark.parametrize(("query", "doc"), [("a b", "d"), ("a", "d\t1"), ("", "d"), ("a", "")])
def test_ids_that_a_run_file_cannot_hold_are_refused(tmp_path, query, doc):
    run = Run.from_rows([("1", "e", 1.0), (query, "f", 2.0), (query, doc, 1.0)])
    with pytest.raises(DataError, match="is empty or has spaces"):
        write_run(run, tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_negative_grades_are_zero(tmp_path):
    (tmp_path / "qrels").write_text("1 0 a -2\n1 0 b 1\n")
    assert read_judgements(tmp_path / "qrels") == {"1": {"a": 0.0, "b": 1.0}}


def test_judged_queries_that_a_run_does_not_have_count_as_0_or_are_left_out():
    run = Run.from_rows([("q", "a", 1.0), ("z", "a", 1.0)])
    judgements = {"p": {"a": 1.0}, "q": {"a": 1.0}, "r": {"a": 1.0}}
    found = evaluate_run({"r": run}, judgements, ["mrr", "nDCG@10"])
    assert found.mean() == pytest.approx(1 / 3) and found.per_query().tolist() == [0, 1, 0]
    assert found.conventions[-1] == (
        "r: queries without judgements, left out: 1; judged queries not in the run, counted as 0: 2"
    )
    found = evaluate_run({"r": run}, judgements, ["mrr", "nDCG@10"], missing_queries="skip")
    for metric in ("mrr", "nDCG@10"):
        np.testing.assert_array_equal(found.per_query(metric=metric), [np.nan, 1, np.nan])
    assert found.mean() == 1 and "1 of 3 queries counted" in found.conventions[0]
    assert found.conventions[-1].endswith("judged queries not in the run, left out: 2")
    whole = Run.from_rows([(id, "a", 1.0) for id in judgements])
    assert evaluate_run({"r": whole}, judgements, "mrr").conventions[-1].startswith("runs: ")
    both = evaluate_run({"r": run, "whole": whole}, judgements, "mrr", missing_queries="skip")
    assert both.conventions[-1].startswith("each mean is over the queries of its run; differences")
    assert both.conventions[0].endswith("; counted of 3 queries: 1 (r), 3 (whole)")
    only = Run.from_rows([("q", "a", 1.0)])
    notes = evaluate_run({"only": only, "whole": whole}, judgements, "mrr").conventions
    assert notes[-1] == "only: judged queries not in the run, counted as 0: 2"
    assert "3 of 3 queries counted" in notes[0]
    for wrong in (1, ["skip"]):
        with pytest.raises(ParameterError, match=r"missing_queries is .*; expected 0 or 'skip'"):
            evaluate_run({"r": run}, judgements, missing_queries=wrong)


def test_a_run_without_judged_documents_is_noted():
    judgements = {"p": {"a": 1.0}, "q": {"b": 1.0, "c": 0.0}}
    other = Run.from_rows([("p", "A", 1.0), ("q", "B", 2.0), ("q", "C", 1.0)])
    assert evaluate_run({"r": other}, judgements).conventions[-1] == (
        "r: none of its documents is judged for its query; query p has A, judged are a; document ids must be the same"
    )
    same = Run.from_rows([("p", "A", 1.0), ("q", "c", 1.0)])
    assert evaluate_run({"r": same}, judgements).conventions[-1].startswith("runs: ")

"""Rankers other than our boosted forests as runs: LightGBM, RankSVM, LambdaRank, McRank, one feature alone."""

from __future__ import annotations

import numpy as np
import pytest
from experiment_samples import WEB, run_table, write_spec

import ranksieve as rs
from ranksieve.errors import ParameterError
from ranksieve.experiments.measure import first_trees
from ranksieve.experiments.read_spec import load_spec
from ranksieve.experiments.run import run_experiment
from ranksieve.report.result_tables import all_cells, comparison

SPEC = (
    'stages = [2, 10]\nbaseline = "λ-MART"\n\n'
    + WEB
    + run_table("λ-MART", "lambdamart")
    + run_table("SelGB", "selgb", "negatives = 0.1", "min-negatives = 1")
    + run_table(
        "LightGBM", "lightgbm", 'sample = { how = "truncate", k = 300, positives = "drop" }', "shared-leaves = true"
    )
    + run_table("LightGBM, some rows", "lightgbm", "row-fraction = 0.5")
    + run_table("SVM", "ranksvm")
    + run_table("net", "lambdarank", "epochs = 2")
    + run_table("McRank", "mcrank", "early-stopping = 0")
    + run_table("BM25F", "feature")
    + run_table("on BM25F", "lambdamart", 'init = "BM25F"', "early-stopping = 0")
    + run_table("hard", "lambdamart", 'sample = { how = "by-model", model = "LightGBM", share = 0.2 }')
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rankers")
    return run_experiment(load_spec(write_spec(folder, SPEC)), folder / "out", jobs=1)


def test_a_cell_is_what_training_by_hand_gives(results):
    train, valid, test = (rs.synth.two_stage(n, n_features=6, start=start) for n, start in ((6, 0), (2, 6), (2, 8)))
    cells = {cell.run: cell for cell in results.cells}
    by_hand = {
        "LightGBM": rs.train(
            rs.sampling.truncate(train, 300, positives="drop"),
            valid=valid, algo="lightgbm", trees=4, leaves=4, min_docs=2, threads=1,
        ),
        "SVM": rs.train(train, algo="ranksvm"),
        "net": rs.train(train, valid=valid, algo="lambdarank", epochs=2),
        "McRank": rs.train(train, valid=valid, algo="mcrank", trees=4, leaves=4, min_docs=2, early_stopping=0),
        "BM25F": rs.train(train, algo="feature"),
    }  # fmt: skip
    for run, model in by_hand.items():
        expected = rs.evaluate(model, test).per_query()
        queries = cells[run].table("queries")
        np.testing.assert_allclose(queries["ndcg@10"], expected, rtol=1e-12, err_msg=run)
        for trees in (2, 10):
            early = model.first(trees) if run == "LightGBM" else model
            early = model.first(trees // model.n_outputs) if run == "McRank" else early
            expected = rs.evaluate(early, test).per_query()
            np.testing.assert_allclose(queries[f"ndcg@10 at {trees}"], expected, rtol=1e-12)
        np.testing.assert_array_equal(cells[run].model().predict(test), model.predict(test))
        curve = cells[run].table("curve")
        assert len(curve["valid"]) == len(curve["test"]) == cells[run].facts["n_grown"]
    grades = len(np.unique(train.labels))
    assert cells["McRank"].table("curve")["trees"].tolist() == [grades * n for n in (1, 2, 3, 4)]


def test_stages_are_of_so_many_trees(results):
    train, test = (rs.synth.two_stage(n, n_features=6, start=start) for n, start in ((6, 0), (2, 8)))
    cells = {cell.run: cell.table("queries") for cell in results.cells}
    mcrank = next(cell for cell in results.cells if cell.run == "McRank")
    assert mcrank.facts["n_trees"] > 10 >= mcrank.model().n_outputs  # so that 10 trees are some rounds, not all
    assert not np.array_equal(cells["McRank"]["ndcg@10 at 2"], cells["McRank"]["ndcg@10 at 10"])
    base = rs.train(train, algo="feature")
    early = rs.train(train, algo="lambdamart", init=base, trees=2, leaves=4, min_docs=2, threads=1, early_stopping=0)
    found = cells["on BM25F"]["ndcg@10 at 2"]
    np.testing.assert_allclose(found, rs.evaluate(early, test).per_query(), rtol=1e-12)
    whole = next(cell for cell in results.cells if cell.run == "on BM25F").model()
    np.testing.assert_array_equal(first_trees(whole, 2).predict(test), early.predict(test))
    assert not np.array_equal(whole.predict(test), early.predict(test))


def test_tables_show_what_a_tree_was_trained_on(results):
    table = all_cells(results, "web")
    shares = {row[0].text: row[table.columns.index("documents used")].number for row in table.rows}
    assert shares["λ-MART"] == shares["SVM"] == shares["on BM25F"] == 1
    assert shares["LightGBM, some rows"] is None  # LightGBM does not count them
    assert 0.1 < shares["SelGB"] < 0.4  # the first of four trees is trained on everything
    assert "LightGBM's times" in table.note
    trees = {row[0].text: row[1].text for row in comparison(results, "web").rows}
    assert trees["SVM"] == trees["BM25F"] == "–"
    assert int(trees["LightGBM"]) >= 1


def test_training_lists_are_followed_as_they_taught(tmp_path):
    lines = ("early-stopping = 0", 'sample = { how = "truncate", k = 300, positives = "drop" }')
    runs = "".join(run_table(algo, algo, *lines) for algo in ("lambdamart", "lightgbm", "mcrank"))
    path = write_spec(tmp_path, 'figures = ["phases"]\n' + WEB + runs)
    train = rs.synth.two_stage(6, n_features=6)
    sampled = rs.sampling.truncate(train, 300, positives="drop")
    for cell in run_experiment(load_spec(path), tmp_path / "out", jobs=1).cells:
        model = cell.model()
        assert cell.table("curve")["train"][-1] == pytest.approx(rs.evaluate(model, sampled).mean()), cell.run
        assert rs.evaluate(model, sampled).mean() != rs.evaluate(model, train).mean()


@pytest.mark.parametrize(
    ("old", "new", "where", "message"),
    [
        ('algo = "ranksvm"', 'algo = "ranksvm"\nleaves = 5', "leaves = 5", "leaves is not used with algo = 'ranksvm'"),
        ('algo = "ranksvm"', 'algo = "ranksvm"\nselections = true', "selections", "does not record selections"),
        ('algo = "feature"', 'algo = "feature"\nshared-leaves = true', "shared-leaves = true", "makes no forest"),
        ("[params]", "[params]\nrest = 0.4", "rest = 0.4", "rest is not used by any run"),
    ],
)
def test_what_a_ranker_does_not_have_is_refused(old, new, where, message, tmp_path):
    text = SPEC.replace(old, new)
    path = write_spec(tmp_path, text)
    line = max(number for number, one in enumerate(text.splitlines(), 1) if one.startswith(where))
    with pytest.raises(ParameterError, match=message) as caught:
        load_spec(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")

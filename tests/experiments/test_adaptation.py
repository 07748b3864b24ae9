"""Runs that build on others: a background model, boosting that starts from it, interpolations."""

from __future__ import annotations

import numpy as np
import pytest
from experiment_samples import write_spec

import ranksieve as rs
from ranksieve.data.parts import Joined
from ranksieve.data.read import open_source
from ranksieve.errors import DataError, ParameterError
from ranksieve.experiments.data import DataSpec
from ranksieve.experiments.read_spec import load_spec
from ranksieve.experiments.run import run_experiment
from ranksieve.report.tables import mutual_tests
from samples import small_dataset

SPEC = """\
metrics = ["ndcg@10", "ndcg@1"]
figures = ["tests"]
baseline = "in-domain"

[data.web]
generate = "two-stage"
queries = 10
features = 6
seed = 1
background-queries = 8
background-seed = 0

[params]
algo = "lambdamart"
trees = 4
leaves = 4
min-docs = 2
threads = 1

[[runs]]
name = "background"
background = true

[[runs]]
name = "in-domain"

[[runs]]
name = "both"
interpolate = ["background", "in-domain"]

[[runs]]
name = "adapted"
init = "background"
row-fraction = 0.7
"""
OPTIONS = {"algo": "lambdamart", "trees": 4, "leaves": 4, "min_docs": 2, "threads": 1}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("adaptation")
    return run_experiment(load_spec(write_spec(folder, SPEC)), folder / "out", jobs=1)


def test_the_cells_are_what_adapting_by_hand_gives(results):
    train, valid, test = (rs.two_stage(n, n_features=6, start=start, seed=1) for n, start in ((6, 0), (2, 6), (2, 8)))
    background = rs.train(rs.two_stage(8, n_features=6), valid=valid, **OPTIONS)
    in_domain = rs.train(train, valid=valid, **OPTIONS)
    models = {
        "background": background,
        "in-domain": in_domain,
        "both": rs.interpolate([background, in_domain], valid).model([background, in_domain]),
        "adapted": rs.train(train, valid=valid, init=background, row_fraction=0.7, **OPTIONS),
    }
    for cell in results.cells:
        model = models[cell.run]
        np.testing.assert_array_equal(cell.model().predict(test), model.predict(test))
        np.testing.assert_allclose(cell.table("queries")["ndcg@10"], rs.evaluate(model, test).per_query(), rtol=1e-12)
        assert cell.facts["n_trees"] == model.n_trees
        assert cell.facts["valid"] == pytest.approx(rs.evaluate(model, valid).mean())
    assert results.cells[0].facts["taught"]["queries"] == 8
    assert results.cells[3].facts["taught"]["queries"] == 6


def test_a_table_has_the_tests_of_all_against_all(results):
    table = mutual_tests(results, "web", "ndcg@1")
    names = [row[0].text for row in table.rows]
    assert names == ["background", "in-domain", "both", "adapted"]
    for i, row in enumerate(table.rows):
        assert row[1].number == pytest.approx(results.cells[i].facts["test"]["ndcg@1"]["full"])
        assert row[3 + i].text == ""
        assert all(row[3 + j].number == table.rows[j][3 + i].number for j in range(4) if j != i)


@pytest.mark.parametrize(
    ("old", "new", "where", "message"),
    [
        ('init = "background"', 'init = "later"', "init", "no earlier run is named 'later'"),
        ('init = "background"\nrow-fraction = 0.7', 'init = "background"\nalgo = "ranksvm"', "init", "from no model"),
        ('["background", "in-domain"]', '["background"]', "interpolate", "two or more earlier runs"),
        ('["background", "in-domain"]', '["background", "in-domain"]\nleaves = 3', "interpolate", "leave out leaves"),
        ("background = true", 'background = "yes"', "background = ", "expected true"),
        ("background-queries = 8\nbackground-seed = 0\n", "", "background = ", "has no background"),
        ("background-seed = 0", "background-seed = 1", "[data.web]", "a background-seed other than 1"),
        ("background-queries = 8\n", "", "[data.web]", "needs background-queries"),
        ("background-queries = 8\nbackground-seed = 0", 'background = ["a"]', "[data.web]", "data that is in files"),
        ("background = true", 'background = true\nsample = {how = "truncate", k = 5}', "background = ", "leave one"),
    ],
)
def test_mistakes_are_told_with_their_line(old, new, where, message, tmp_path):
    text = SPEC.replace(old, new, 1)
    path = write_spec(tmp_path, text)
    line = next(number for number, one in enumerate(text.splitlines(), 1) if one.startswith(where))
    with pytest.raises(ParameterError, match=message) as caught:
        load_spec(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")


def test_background_files_are_read_as_one(tmp_path):
    one, two = small_dataset(), small_dataset(seed=2)
    for number, data in enumerate((one, two)):
        ids = [f"{number}-{query}" for query in data.query_ids]
        named = rs.Dataset.from_arrays(data.features, data.labels, qid=np.repeat(ids, data.lists.sizes))
        rs.write_parquet(named, tmp_path / f"{number}.parquet")
    data = DataSpec.folded("x", {"file": "0.parquet", "background": "1.parquet"}, tmp_path)[0]
    assert data.has_background and data.identity()["background0_stamp"][0] > 0
    sources = [open_source(tmp_path / f"{number}.parquet") for number in (0, 1)]
    joined = np.concatenate([block.features for block in Joined(sources).blocks()])
    np.testing.assert_array_equal(joined, np.concatenate([one.features, two.features]))
    with pytest.raises(DataError, match="query '0-0' is in"):
        list(Joined([sources[0], open_source(tmp_path / ".." / tmp_path.name / "0.parquet")]).blocks())


def test_tuning_tunes_what_an_adapted_run_starts_from(tmp_path):
    pytest.importorskip("optuna")
    text = SPEC + "\n[tune]\nleaves = [3, 5]\n"
    results = run_experiment(load_spec(write_spec(tmp_path, text)), tmp_path / "out", jobs=1, tune=1)
    cells = {cell.run: cell for cell in results.cells}
    assert set(cells) == {"background", "in-domain", "both", "adapted"}
    assert cells["adapted"].facts["settings"]["init"] == cells["background"].facts["key"]
    assert cells["both"].facts["settings"]["blended"][1] == cells["in-domain"].facts["key"]

"""Runs that build on others: a background model, boosting that starts from it, interpolations."""

from __future__ import annotations

import numpy as np
import pytest
from experiment_samples import write_spec

import ranksieve as rs
from ranksieve.data.joined import JoinedSource, Piece
from ranksieve.data.read import open_data
from ranksieve.errors import DataError, ParameterError
from ranksieve.experiments.data_sets import DataSpec, load_values
from ranksieve.experiments.read_spec import load_spec
from ranksieve.experiments.run import run_experiment
from ranksieve.experiments.train_cell import interpolated
from ranksieve.report.result_tables import all_cells, mutual_tests
from samples import small_dataset

SPEC = """\
metrics = ["ndcg@10", "ndcg@1"]
stages = [2]
figures = ["tests"]
baseline = "in-domain"

[data.web]
generate = "two-stage"
queries = 24
split = [0.5, 0.1667, 0.3333]
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
early-stopping = 0
"""
OPTIONS = {"algo": "lambdamart", "trees": 4, "leaves": 4, "min_docs": 2, "threads": 1}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("adaptation")
    return run_experiment(load_spec(write_spec(folder, SPEC)), folder / "out", jobs=1)


def parts():
    return (rs.synth.two_stage(n, n_features=6, start=start, seed=1) for n, start in ((12, 0), (4, 12), (8, 16)))


def test_the_cells_are_what_adapting_by_hand_gives(results):
    train, valid, test = parts()
    background = rs.train(rs.synth.two_stage(8, n_features=6), valid=valid, **OPTIONS)
    in_domain = rs.train(train, valid=valid, **OPTIONS)
    models = {
        "background": background,
        "in-domain": in_domain,
        "both": rs.interpolate([background, in_domain], valid).model([background, in_domain]),
        "adapted": rs.train(train, valid=valid, init=background, row_fraction=0.7, early_stopping=0, **OPTIONS),
    }
    assert len({rs.evaluate(model, test).mean() for model in models.values()}) >= 3
    for cell in results.cells:
        model = models[cell.run]
        np.testing.assert_array_equal(cell.model().predict(test), model.predict(test))
        np.testing.assert_allclose(cell.table("queries")["ndcg@10"], rs.evaluate(model, test).per_query(), rtol=1e-12)
        assert cell.facts["n_trees"] == model.n_trees
        assert cell.facts["valid"] == pytest.approx(rs.evaluate(model, valid).mean())
    assert results.cells[0].facts["trained_on"]["queries"] == 8
    assert results.cells[3].facts["trained_on"]["queries"] == 12


def test_stages_of_an_adapted_model_count_its_new_trees(results):
    train, valid, test = parts()
    cells = {cell.run: cell for cell in results.cells}
    background = cells["background"].model()
    options = {**OPTIONS, "trees": 2, "early_stopping": 0, "row_fraction": 0.7}
    early = rs.train(train, valid=valid, init=background, **options)
    adapted = cells["adapted"]
    assert adapted.facts["base_trees"] == background.n_trees
    assert adapted.facts["n_trees"] == background.n_trees + 4
    found = adapted.table("queries")["ndcg@10 at 2"]
    np.testing.assert_allclose(found, rs.evaluate(early, test).per_query(), rtol=1e-12)
    assert found.tolist() != rs.evaluate(background.first(2), test).per_query().tolist()
    assert found.tolist() != adapted.table("queries")["ndcg@10"].tolist()


def test_the_share_per_tree_is_of_the_lists_it_is_trained_on(results):
    table = all_cells(results, "web")
    shares = {row[0].text: row[table.columns.index("documents used")].number for row in table.rows}
    train, _, _ = parts()
    kept = np.ceil(0.7 * train.lists.sizes - 1e-6).sum()
    assert shares["background"] == shares["in-domain"] == 1
    assert shares["adapted"] == pytest.approx(kept / train.n_docs)
    assert shares["both"] is None


def test_a_table_has_the_tests_of_all_against_all(results):
    table = mutual_tests(results, "web", "ndcg@10")
    names = [row[0].text for row in table.rows]
    assert names == ["background", "in-domain", "both", "adapted"]
    for i, row in enumerate(table.rows):
        assert row[1].number == pytest.approx(results.cells[i].facts["test"]["ndcg@10"]["full"])
        assert row[3 + i].text == ""
        assert all(row[3 + j].number == table.rows[j][3 + i].number for j in range(4) if j != i)
    values = [cell.table("queries")["ndcg@10"] for cell in results.cells]
    assert table.rows[0][1].number != table.rows[1][1].number
    assert table.rows[0][4].number == rs.significance.paired_t_test(values[0], values[1]).p_value


@pytest.mark.parametrize(
    ("old", "new", "where", "message"),
    [
        ('init = "background"', 'init = "later"', "init", "no earlier run is named 'later'"),
        ("row-fraction = 0.7\nearly-stopping = 0", 'algo = "ranksvm"', "init", "cannot start from a model"),
        ('["background", "in-domain"]', '["background"]', "interpolate", "two or more earlier runs"),
        ('["background", "in-domain"]', '["background", "in-domain"]\nleaves = 3', "interpolate", "leave out leaves"),
        ("background = true", 'background = "yes"', "background = ", "expected true"),
        ("background-queries = 8\nbackground-seed = 0\n", "", "background = ", "has no background"),
        ("background-seed = 0", "background-seed = 1", "[data.web]", "a background-seed other than 1"),
        ("background-queries = 8\n", "", "[data.web]", "needs background-queries"),
        ("background-queries = 8\nbackground-seed = 0", 'background = ["a"]', "[data.web]", "data that is in files"),
        ("background = true", "background = true\nselections = true", "background = ", "leave one out"),
        ("background = true", 'background = true\nsample = {how = "truncate", k = 5}', "background = ", "leave one"),
    ],
)
def test_mistakes_are_reported_with_their_line(old, new, where, message, tmp_path):
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
        rs.io.write_parquet(named, tmp_path / f"{number}.parquet")
    data = DataSpec("x", file="0.parquet", background="1.parquet").checked(tmp_path)[0]
    assert data.has_background and data.identity()["background0_stamp"][0] > 0
    sources = [open_data(tmp_path / f"{number}.parquet") for number in (0, 1)]
    joined = np.concatenate(
        [block.features for block in JoinedSource([Piece(source) for source in sources], distinct=True).blocks()]
    )
    np.testing.assert_array_equal(joined, np.concatenate([one.features, two.features]))
    with pytest.raises(DataError, match="query '0-0' is in"):
        again = open_data(tmp_path / ".." / tmp_path.name / "0.parquet")
        list(JoinedSource([Piece(sources[0]), Piece(again)], distinct=True).blocks())


def test_an_interpolation_is_measured_with_the_weights_of_the_lists(results):
    cells = {cell.run: cell for cell in results.cells}
    models = [cells[name].model() for name in ("background", "in-domain")]
    _, valid, test = parts()
    weights = {"valid": np.arange(valid.n_docs) // 300 + 1.0, "test": np.arange(test.n_docs) // 300 + 1.0}
    sets = {
        name: rs.Dataset.from_arrays(data.features, data.labels, group=data.lists.sizes, weights=weights[name])
        for name, data in (("valid", valid), ("test", test))
    }
    cell = next(one for one in load_spec(results.folder / "spec.toml").cells if one.run == "both")
    model = interpolated(cell, models, sets)
    for name, data in sets.items():
        (found,) = model.info["history"][name]["ndcg@10"]
        assert found == rs.evaluate(model, data, weighted=True).mean() != rs.evaluate(model, data).mean()
    assert model.info["best_score"] == pytest.approx(model.info["interpolation"]["value"])


def named_parquet(folder, name, features, seed):
    data = small_dataset(seed=seed)
    ids = np.repeat([f"{name}-{query}" for query in data.query_ids], data.lists.sizes)
    values = data.features[:, : len(features)]
    named = rs.Dataset.from_arrays(values, data.labels, qid=ids).with_features(features)
    rs.io.write_parquet(named, folder / f"{name}.parquet")


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (("clicks", "bm25"), r"background.parquet: lacks 1 of the 3 features of the training data \(price\)"),
        (("price", "bm25", "clicks"), "background.parquet: feature 1 is 'price', but was 'bm25'"),
        (
            ("bm25", "price", "clicks", "more"),
            r"background.parquet: 4 features \(bm25, .*more\); expected 3, as in training",
        ),
    ],
)
def test_a_background_with_other_features_is_refused(features, message, tmp_path):
    named_parquet(tmp_path, "small", ("bm25", "price", "clicks"), 0)
    named_parquet(tmp_path, "background", features, 2)
    data = DataSpec("x", file="small.parquet", background="background.parquet").checked(tmp_path)[0]
    with pytest.raises(DataError, match=message):
        load_values(data)


def test_text_without_its_trailing_zeros_is_widened(tmp_path):
    (tmp_path / "small.txt").write_text("".join(f"{d % 2} qid:{q} 1:{d} 3:{q}\n" for q in range(1, 6) for d in (1, 2)))
    (tmp_path / "background.txt").write_text("1 qid:8 1:5\n0 qid:8 1:4 2:3\n")
    with pytest.warns(UserWarning, match="no feature beyond 2 occurs, but 3 are expected"):
        found = load_values(DataSpec("x", file="small.txt", background="background.txt").checked(tmp_path)[0])
    np.testing.assert_array_equal(found["background"].features, [[5, 0, 0], [4, 3, 0]])
    assert found["background"].feature_names == found["train"].feature_names


def test_tuning_tunes_what_an_adapted_run_starts_from(tmp_path):
    pytest.importorskip("optuna")
    text = SPEC + "\n[tune]\nleaves = [3, 5]\n"
    results = run_experiment(load_spec(write_spec(tmp_path, text)), tmp_path / "out", jobs=1, tune=1)
    cells = {cell.run: cell for cell in results.cells}
    assert set(cells) == {"background", "in-domain", "both", "adapted"}
    assert cells["adapted"].facts["settings"]["init"] == cells["background"].facts["key"]
    assert cells["both"].facts["settings"]["interpolated"][1] == cells["in-domain"].facts["key"]

"""Positions of documents on result pages, and the biases that training learns for them."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import naive_objectives
import ranksieve as rs
from ranksieve.boosting.position_bias import sums_by_position, totals
from ranksieve.errors import DataError, ModelError, ParameterError, RanksieveWarning
from ranksieve.forest.formats.lightgbm_writer import to_text
from samples import small_dataset

SMALL = {"algo": "lambdamart", "trees": 6, "leaves": 8, "min_docs": 3, "learning_rate": 0.3, "threads": 1}


def shown(seed: int = 0, **options) -> rs.Dataset:
    """Small lists with the places that some ranker gave to the documents; the last one of each was not shown."""
    data = small_dataset(seed=seed)
    positions = np.concatenate([[*range(1, size), 0] for size in data.lists.sizes.tolist()])
    return rs.Dataset.from_arrays(
        data.features, data.labels, group=data.lists.sizes, positions=np.minimum(positions, 12), **options
    )


@pytest.fixture(scope="module")
def data() -> rs.Dataset:
    return shown()


@pytest.fixture(scope="module")
def clicks() -> tuple[rs.Dataset, rs.Dataset]:
    """Pages of simulated users with strong position bias, and the lists they are of."""
    lists = rs.synth.cubic(60)
    weak = rs.clicks.logging_ranker(lists, share=0.05, seed=3)
    log = rs.clicks.simulate(lists, rs.clicks.LoggingPolicy(weak, 0.2), pages=4000, seed=1)
    return rs.clicks.page_lists(log, lists), lists


def test_positions_come_through_every_door(tmp_path, data):
    model = rs.train(data, **SMALL)
    assert to_text(model) != to_text(rs.train(small_dataset(), **SMALL))
    rs.io.write_letor(data, tmp_path / "train.txt")
    rs.io.write_letor(data, tmp_path / "train.txt.gz")
    rs.io.write_parquet(data, tmp_path / "train.parquet")
    frame = pd.DataFrame(data.features, columns=data.feature_names)
    frame = frame.assign(label=data.labels, qid=np.repeat(np.arange(12), data.lists.sizes), rank=data.lists.positions)
    frame.to_csv(tmp_path / "train.csv", index=False)
    doors = (
        tmp_path / "train.txt",
        tmp_path / "train.txt.gz",
        tmp_path / "train.parquet",
        rs.read(tmp_path / "train.parquet"),
        rs.DataFile(tmp_path / "train.csv", position="rank"),
        rs.DataFile(frame, position="rank"),
    )
    for door in doors:
        np.testing.assert_array_equal(rs.read(door).lists.positions, data.lists.positions)
        np.testing.assert_array_equal(rs.train(door, missing="nan", **SMALL).leaf_values, model.leaf_values)
    ranker = rs.Ranker(**SMALL)
    ranker.fit(data.features, data.labels, group=data.lists.sizes, positions=data.lists.positions)
    np.testing.assert_array_equal(ranker.model_.leaf_values, model.leaf_values)
    assert gzip.decompress((tmp_path / "train.txt.gz").read_bytes()) and (tmp_path / "train.txt.gz.position").exists()


def test_positions_follow_their_documents():
    qid = ["b", "a", "b", "c", "a"]
    data = rs.Dataset.from_arrays(np.zeros((5, 1)), [0, 1, 2, 3, 4], qid=qid, positions=[1, 2, 3, 4, 5])
    assert data.lists.positions.tolist() == [1, 3, 2, 5, 4]
    assert data.take_queries([2, 0]).lists.positions.tolist() == [4, 1, 3]
    assert data.take_rows([1, 3]).lists.positions.tolist() == [3, 5]


@pytest.mark.parametrize("bad", [-1, 0.5, 1001, np.nan])
def test_positions_are_ranks(tmp_path, bad):
    with pytest.raises(DataError, match=r"position of row 1 is .* expected a rank from 1 to 1000"):
        rs.Dataset.from_arrays(np.zeros((2, 1)), [0, 1], qid=[1, 1], positions=[1, bad])
    (tmp_path / "a.txt").write_text("1 qid:1 1:2\n0 qid:1 1:3\n")
    (tmp_path / "a.txt.position").write_text(f"1\n{bad}\n")
    with pytest.raises(DataError, match=r"a.txt.position:2"):
        rs.read(tmp_path / "a.txt")
    table = pd.DataFrame({"label": [1, 0], "qid": [1, 1], "f": [1.0, 2.0], "position": [1, bad]})
    with pytest.raises(DataError, match="position"):
        rs.read(table)


def test_positions_need_one_per_line(tmp_path):
    (tmp_path / "a.txt").write_text("1 qid:1 1:2\n0 qid:1 1:3\n")
    (tmp_path / "a.txt.position").write_text("1\n")
    with pytest.raises(DataError, match=r"has 1 positions but .* lines"):
        rs.read(tmp_path / "a.txt")
    (tmp_path / "a.txt.position").write_text("1\n2\n3\n")
    with pytest.raises(DataError, match="has 3 positions"):
        rs.read(tmp_path / "a.txt")


@pytest.mark.parametrize("options", [{}, {"position_rate": 0.5, "position_l2": 0.1}], ids=["plain", "regularised"])
def test_biases_take_the_newton_steps_of_their_twin(data, options):
    model = rs.train(data, truncation=-1, normalize=False, **SMALL, **options)
    rate, l2 = options.get("position_rate", 1.0) * 0.3, options.get("position_l2", 0.0)
    positions, biases = data.lists.positions, [0.0] * 13
    for tree in range(model.n_trees):
        scores = model.take(np.arange(tree)).predict(data) if tree else np.zeros(data.n_docs)
        grad, hess = naive.lambdas(data.labels, scores + np.array(biases)[positions], data.offsets, 10**6)
        biases = naive_objectives.position_biases(biases, positions, grad, hess, rate, l2)
    assert model.info["position_biases"] == pytest.approx(biases, abs=1e-6)


def test_without_a_rate_positions_change_nothing(data):
    plain, ignored = rs.train(small_dataset(), **SMALL), rs.train(data, position_rate=0.0, **SMALL)
    np.testing.assert_array_equal(plain.leaf_values, ignored.leaf_values)
    assert "position_biases" not in ignored.info


def test_documents_of_which_none_was_shown_teach_no_biases(data):
    none = rs.Dataset.from_arrays(data.features, data.labels, group=data.lists.sizes, positions=np.zeros(data.n_docs))
    with pytest.warns(rs.errors.RanksieveWarning, match=r"positions of all documents are 0, .* give ranks from 1"):
        model = rs.train(none, **SMALL)
    assert "position_biases" not in model.info
    np.testing.assert_array_equal(model.leaf_values, rs.train(small_dataset(), **SMALL).leaf_values)


def test_one_position_for_all_is_as_none():
    """Biases matter by their differences within a list."""
    plain = small_dataset()
    same = rs.Dataset.from_arrays(
        plain.features, plain.labels, group=plain.lists.sizes, positions=np.ones(plain.n_docs)
    )
    a, b = rs.train(plain, **SMALL), rs.train(same, **SMALL)
    np.testing.assert_allclose(a.predict(plain), b.predict(plain), rtol=1e-5, atol=1e-7)


def test_biases_are_those_of_the_users(clicks):
    pages, lists = clicks
    options = {"algo": "lambdamart", "trees": 60, "leaves": 8, "learning_rate": 0.1, "gain": "newton", "min_docs": 20}
    learned, ignored = (rs.train(pages, position_rate=rate, **options) for rate in (1.0, 0.0))
    biases = np.array(learned.info["position_biases"])[1:]
    assert np.corrcoef(biases, -np.log(np.arange(1, 11)))[0, 1] > 0.97
    ndcg = [rs.evaluate(model, lists, metrics="ndcg@10").mean() for model in (ignored, learned)]
    assert ndcg[1] > ndcg[0] + 0.02


def test_scores_are_near_those_of_lightgbm(clicks):
    pages, _ = clicks
    options = {"trees": 60, "leaves": 8, "learning_rate": 0.1, "min_docs": 20, "min_hessian": 1e-3, "l2": 0.0}
    peer = rs.train(pages, algo="lightgbm", **options).predict(pages)
    same, without = (
        rs.train(pages, algo="lambdamart", gain="newton", position_rate=rate, **options).predict(pages)
        for rate in (1.0, 0.0)
    )
    assert np.corrcoef(peer, same)[0, 1] > 0.93 > 0.86 > np.corrcoef(peer, without)[0, 1]


@pytest.mark.parametrize(
    "options",
    [
        {"algo": "selgb", "negatives": 0.3, "every": 2},
        {"selection": "gradient", "algo": "selgb"},
        {"algo": "sgb", "row_fraction": 0.7},
        {"algo": "mart"},
        {"objective": "xendcg"},
        {"step": "optimal"},
    ],
    ids=lambda options: " ".join(map(str, options.values())),
)
def test_every_selection_and_objective_learns_them_and_resumes(tmp_path, data, options):
    options = {**SMALL, "gain": "newton", **options}
    whole = rs.train(data, **options)
    assert len(whole.info["position_biases"]) == 13 and whole.info["position_biases"][0] == 0
    assert np.abs(whole.info["position_biases"]).max() > 0

    def stop(record):
        if record.step == 3:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        rs.train(data, checkpoint=tmp_path, checkpoint_every=1, callbacks=[stop], **options)
    assert to_text(rs.train(data, checkpoint=tmp_path, resume=True, **options)) == to_text(whole)


def test_selected_negatives_are_those_of_scores_without_biases(data):
    """The first selection is made of the scores of one tree: biases after it do not enter."""
    seen = []

    def select(view):
        seen.append((view.step, view.scores.all().copy()))
        return

    model = rs.train(data, selection=select, **SMALL)
    for step, scores in seen:
        np.testing.assert_allclose(scores, model.take(np.arange(step)).predict(data), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("algo", ["ranksvm", "lambdarank", "mcrank"])
def test_rankers_that_learn_no_biases_say_so(data, algo):
    with pytest.warns(RanksieveWarning, match="positions are not used by algo="):
        rs.train(data, algo=algo, **({"trees": 2, "leaves": 4} if algo == "mcrank" else {}))


def test_checkpoints_of_other_positions_are_refused(tmp_path, data):
    rs.train(data, checkpoint=tmp_path, **SMALL)
    other = rs.Dataset.from_arrays(
        data.features, data.labels, group=data.lists.sizes, positions=np.flip(data.lists.positions)
    )
    with pytest.raises(ModelError, match="training data"):
        rs.train(other, checkpoint=tmp_path, resume=True, **SMALL)


def test_training_that_starts_from_a_model_starts_from_its_biases(tmp_path, data):
    first = rs.train(data, **SMALL)
    first.save(tmp_path / "first.txt")
    more = rs.train(data, init=tmp_path / "first.txt", **{**SMALL, "trees": 1, "position_rate": 1e-9})
    assert more.info["position_biases"] == pytest.approx(first.info["position_biases"], abs=1e-6)


def test_given_biases_stay_without_a_rate(data):
    fixed = rs.train(data, position_biases=[0, -1, -2], position_rate=0, **SMALL)
    assert fixed.info["position_biases"] == [0, 0, -1] + [-2] * 10
    moved = rs.train(data, position_biases="0,-1,-2", **SMALL)
    assert moved.info["position_biases"][4] != -2 and moved.info["position_biases"][0] == 0
    assert to_text(fixed) != to_text(rs.train(data, position_rate=0, **SMALL))
    with pytest.raises(ParameterError, match=r"position_biases is '0,x'; expected finite numbers"):
        rs.train(data, position_biases="0,x", **SMALL)


def test_known_propensities_remove_the_bias(clicks):
    pages, lists = clicks
    options = {"algo": "lambdamart", "trees": 60, "leaves": 8, "learning_rate": 0.1, "gain": "newton", "min_docs": 20}
    known = rs.clicks.Propensities.power(1.0, 10)
    models = (rs.train(pages, position_rate=0, position_biases=one, **options) for one in ("auto", known.biases))
    ndcg = [rs.evaluate(model, lists, metrics="ndcg@10").mean() for model in models]
    assert ndcg[1] > ndcg[0] + 0.02


def test_xcleaver_keeps_the_biases_of_its_rounds(data):
    options = {**SMALL, "algo": "xcleaver", "base": "lambdamart", "grow": 4, "rate": 0.5}
    model = rs.train(data, valid=small_dataset(seed=5), **options)
    assert np.abs(model.info["position_biases"]).max() > 0


def test_early_stopping_stores_the_biases_of_the_best_tree(data):
    options = {**SMALL, "trees": 12}
    model = rs.train(data, valid=small_dataset(seed=5), early_stopping=3, **options)
    short = rs.train(data, **{**options, "trees": model.n_trees})
    assert model.info["position_biases"] == short.info["position_biases"]


@settings(max_examples=30)
@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(0, 1e6), st.integers(0, 4)), min_size=1), st.data())
def test_sums_of_parts_add_up_exactly(rows, draw):
    grad, hess, positions = (np.array(column) for column in zip(*rows, strict=True))
    cut = draw.draw(st.integers(0, len(rows)))
    whole = sums_by_position(grad, hess, positions.astype(np.int16), 5)
    parts = [
        sums_by_position(grad[some], hess[some], positions[some].astype(np.int16), 5)
        for some in (slice(cut), slice(cut, None))
    ]
    np.testing.assert_array_equal(whole, parts[0] + parts[1])
    for found, values in zip(totals(whole), (grad, hess, np.ones(len(grad))), strict=True):
        assert found == pytest.approx([values[positions == p].sum() for p in range(5)], abs=1e-6)

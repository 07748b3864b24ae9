"""The selections beyond SelGB, against plain Python, on several queries of uneven sizes and with tied scores."""

from __future__ import annotations

import numpy as np
import pytest

import naive
import ranksieve as rs
from naive_trees import scores_of_trees
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.selections.adaptive import ByProgress, NearPositives
from ranksieve.boosting.selections.gradient import Goss, LargestGradients
from ranksieve.boosting.selections.top import TopAndBottom, TopAndRandom, TopNegatives, skip
from ranksieve.data.binned import bin_data
from ranksieve.data.negatives import Negatives
from ranksieve.errors import ParameterError
from ranksieve.params import Selected
from ranksieve.rules import OBJECTIVES, SELECTIONS
from rule_samples import random_tree, training_lists, view_of
from samples import small_dataset


def views(seed=0, n_steps=20, **sizes):
    """A growing forest of random trees: a view and the naive scores, now and then after several trees."""
    binned = bin_data(small_dataset(seed=seed, **sizes), max_bins=32)
    rng = np.random.default_rng(seed)
    scores, trees, last, training = Scores(binned), [], None, training_lists(binned.lists)
    for step in range(1, n_steps):
        tree = random_tree(rng, binned.binning.n_features)
        tree.leaf_values[:] = tree.leaf_values.round(1)  # ties
        trees.append(tree)
        scores.add(tree)
        if step % 3 == 0:
            continue
        view = view_of(training, scores, step, np.random.default_rng([seed, step]), last)
        last = yield view, scores_of_trees(trees, binned.bins)


def each(generator, check):
    """Run `check(view, scores) -> rows` on every view; the rows are the next view's last ones."""
    item = next(generator)
    try:
        while True:
            item = generator.send(check(*item))
    except StopIteration:
        return


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("margin", "at_least", "at_most"), [(0.1, 2, 0.5), (0.5, 5, 0.25), (-0.2, 0, 1.0)])
def test_adaptive_selects_negatives_near_the_positives(seed, margin, at_least, at_most):
    rule = NearPositives(margin=margin, min_negatives=at_least, max_negatives=at_most)

    def check(view, scores):
        rows, lists = rule(view), view.lists
        assert rows.tolist() == naive.near_positives(lists.labels, scores, lists.offsets, margin, at_least, at_most)
        return rows

    each(views(seed), check)


def test_adaptive_survives_queries_without_positives_and_without_negatives():
    data = rs.Dataset.from_arrays(
        np.arange(14)[:, None] % 5.0, [0] * 4 + [1] * 3 + [0, 1, 0, 0, 0, 0, 0], group=[4, 3, 7]
    )
    binned = bin_data(data)
    scores = Scores(binned)
    scores.add(random_tree(np.random.default_rng(0), 1))
    view = view_of(training_lists(data.lists), scores, 1, np.random.default_rng(0))
    rows = NearPositives(margin=9.0, min_negatives=2, max_negatives=1.0)(view)
    assert rows.tolist() == naive.near_positives(data.labels, scores.all(), data.offsets, 9.0, 2, 1.0)
    assert len(ByProgress(negatives=0.1, margin=0.1, min_negatives=2, max_negatives=0.5)(view)) == 2 + 3 + 1 + 2


@pytest.mark.parametrize("seed", range(2))
def test_progress_makes_learned_lists_shorter_and_others_longer(seed):
    rule = ByProgress(negatives=0.2, margin=-0.2, min_negatives=2, max_negatives=0.5)
    changes = set()

    def check(view, scores):
        rows, lists = rule(view), view.lists
        limits = {"first": 0.2, "margin": -0.2, "at_least": 2, "at_most": 0.5}
        assert rows.tolist() == naive.by_progress(lists.labels, scores, lists.offsets, view.last, **limits)
        if view.last is not None:
            sizes, before = (np.diff(np.searchsorted(some, lists.offsets)) for some in (rows, view.last))
            changes.update(np.sign(sizes - before))
        return rows

    each(views(seed, n_steps=30), check)
    assert {-1, 1} <= changes


def test_top_and_bottom_are_both_ends():
    rule = TopAndBottom(negatives=0.1, rest=0.15, min_negatives=2)

    def check(view, scores):
        lists = view.lists
        top, bottom = Negatives(lists).counts(0.1, 2), Negatives(lists).counts(0.15, 0)
        rows = rule(view)
        assert rows.tolist() == naive.top_and_bottom(lists.labels, scores, lists.offsets, top, bottom)
        return rows

    each(views(1), check)


def test_top_and_random_draws_from_the_others():
    rule = TopAndRandom(negatives=0.1, rest=0.3, min_negatives=2)
    drawn = []

    def check(view, scores):
        lists = view.lists
        counts = Negatives(lists).counts(0.1, 2)
        top = naive.top_negatives(lists.labels, scores, lists.offsets, counts)
        rows = rule(view)
        assert set(top) <= set(rows.tolist())
        others = np.setdiff1d(rows, top)
        assert (lists.labels[others] == 0).all()
        left = np.diff(Negatives(lists).offsets) - counts
        per_query = np.bincount(np.searchsorted(lists.offsets, others, side="right") - 1, minlength=lists.n_queries)
        assert per_query.tolist() == np.minimum(Negatives(lists).counts(0.3, 0), left).tolist()
        drawn.append(tuple(others))
        return rows

    each(views(2), check)
    assert len(set(drawn)) == len(drawn)


def test_skip_counts_past_the_taken():
    taken = np.array([0, 3, 4, 9])
    free = [place for place in range(15) if place not in taken]
    assert skip(np.arange(11), taken).tolist() == free


def test_gradient_keeps_the_steepest_of_the_full_lists():
    rule = LargestGradients(negatives=0.15, min_negatives=2)

    def check(view, scores):
        lists = view.lists
        grad, _ = naive.lambdas(lists.labels, scores, lists.offsets, 10)
        np.testing.assert_allclose(view.gradients[0], grad, atol=1e-12)
        size = np.abs(view.gradients[0])
        counts = Negatives(lists).counts(0.15, 2)
        rows = rule(view)
        assert rows.tolist() == naive.top_negatives(lists.labels, size, lists.offsets, counts)
        return rows

    each(views(3, n_steps=8), check)


def test_goss_selects_the_largest_gradients_and_weights_the_random_rows():
    rule = Goss(negatives=0.2, rest=0.1)

    def check(view, scores):
        n = view.lists.n_docs
        size = np.abs(view.gradients[0])
        n_top, n_rest = int(np.ceil(0.2 * n)), int(np.ceil(0.1 * n))
        selected = rule(view)
        assert selected.full_lists
        assert len(selected.rows) == n_top + n_rest
        heavy = selected.weights > 1
        assert selected.rows[~heavy].tolist() == sorted(naive.best_first(range(n), size)[:n_top])
        assert (selected.weights[heavy] == (n - n_top) / n_rest).all()
        assert selected.weights.sum() == pytest.approx(n)
        return selected.rows

    each(views(4, n_steps=8), check)


def test_goss_with_everything_is_lambdamart():
    data = small_dataset()
    settings = {"trees": 6, "leaves": 5, "negatives": 1.0, "rest": 0.0}
    everything = rs.train(data, algo="lambdamart", **settings)
    sampled = rs.train(data, selection="goss", **settings)
    np.testing.assert_array_equal(sampled.predict(data), everything.predict(data))


@pytest.mark.parametrize("name", [name for name in SELECTIONS if name != "everything"])
def test_every_rule_resumes_to_the_same_model(name, tmp_path):
    data, folder = small_dataset(), tmp_path / "checkpoint"
    settings = {"selection": name, "leaves": 5, "min_docs": 2, "every": 2, "seed": 3}
    settings |= {"negatives": 0.2, "min_negatives": 1, "rest": 0.1}
    whole = rs.train(data, trees=12, **settings)
    rs.train(data, trees=7, checkpoint=folder, **settings)
    resumed = rs.train(data, trees=12, checkpoint=folder, resume=True, **settings)
    np.testing.assert_array_equal(resumed.predict(data), whole.predict(data))
    assert whole.info["params"]["selection"] == name


def test_the_sieve_is_the_adaptive_rule():
    data, settings = small_dataset(), {"trees": 5, "leaves": 5, "min_docs": 2, "min_negatives": 2}
    sieve = rs.train(data, algo="sieve", **settings)
    rule = {"algo": "lambdamart", "selection": "adaptive", "margin": 1.5, "max_negatives": 0.5, **settings}
    np.testing.assert_array_equal(sieve.predict(data), rs.train(data, **rule).predict(data))
    other_gain = rs.train(data, algo="sieve", gain="variance", **settings)
    np.testing.assert_array_equal(other_gain.predict(data), rs.train(data, gain="variance", **rule).predict(data))
    assert not np.array_equal(sieve.predict(data), other_gain.predict(data))
    everybody = rs.train(data, algo="lambdamart", **settings)
    assert not np.array_equal(sieve.predict(data), everybody.predict(data))


@pytest.mark.usefixtures("nothing_registered")
def test_own_rules_go_by_name_and_by_file(tmp_path):
    data = small_dataset()
    rule = "import numpy as np\ndef half(view):\n    return np.arange(0, view.lists.n_docs, 2)\nnumber = 3\n"
    (tmp_path / "my_rules.py").write_text(rule)
    rs.params.register_selection("every-other", lambda view: np.arange(0, view.lists.n_docs, 2))
    by_name = rs.train(data, selection="every-other", trees=4, leaves=4)
    by_file = rs.train(data, selection=f"{tmp_path}/my_rules.py:half", trees=4, leaves=4)
    np.testing.assert_array_equal(by_name.predict(data), by_file.predict(data))
    for wrong, message in {
        "tpo": "did you mean 'top'",
        f"{tmp_path}/none.py:half": "cannot be imported",
        f"{tmp_path}/my_rules.py:whole": "my_rules.py has no 'whole'",
        f"{tmp_path}/my_rules.py:number": "of type int; expected a function",
    }.items():
        with pytest.raises(ParameterError, match=message):
            rs.train(data, selection=wrong)
    with pytest.raises(ParameterError, match="cannot name a selection"):
        rs.params.register_selection("a:b", len)
    with pytest.raises(ParameterError, match="expected a function"):
        rs.params.register_selection("ab", 3)


def test_bad_weights_of_a_rule_are_refused():
    data = small_dataset()
    for selected in (
        Selected(np.array([3, 1]), np.ones(2)),
        Selected(np.array([1, 3]), np.ones(3)),
        Selected(np.array([1, 3]), np.array([1.0, -1.0])),
    ):
        with pytest.raises(ParameterError, match="weights"):
            rs.train(data, selection=lambda view, s=selected: s, trees=3)


def test_a_counter_counts_the_trees_of_each_document():
    data, seen = small_dataset(), []

    def rule(view):
        seen.append(np.sort(view.rng.choice(view.lists.n_docs, 30, replace=False)))
        return seen[-1]

    counter = rs.callbacks.SelectionCounter()
    rs.train(data, selection=rule, trees=8, leaves=4, every=2, counter=counter)
    expected = np.bincount(np.concatenate(seen), minlength=data.n_docs) * 2
    assert counter.n_trees == 6
    np.testing.assert_array_equal(counter.counts, expected)
    rs.train(data, algo="lambdamart", trees=2, leaves=4, counter=counter)
    assert counter.n_trees == counter.counts.sum() == 0
    assert counter.n_rows == 2 * data.n_docs
    rs.train(data, algo="lambdamart", trees=2, leaves=4, row_fraction=0.5, counter=counter)
    assert counter.n_rows == 2 * np.ceil(0.5 * data.lists.sizes).sum()
    with pytest.raises(ParameterError, match="counter"):
        rs.train(data, trees=2, counter=counter, resume=True, checkpoint="never-made")


@pytest.mark.parametrize("name", ["progress", "top", "adaptive"])
@pytest.mark.parametrize("where", ["gradients", "measuring"])
def test_a_run_that_is_interrupted_within_a_tree_resumes_to_the_same_model(name, where, tmp_path, monkeypatch):
    """The selection of a tree that was not finished is not kept."""
    from ranksieve.boosting.callbacks import ValidationSet
    from ranksieve.boosting.training_rows import TrainingLists

    data, valid = small_dataset(), small_dataset(seed=3)
    options = {"selection": name, "negatives": 0.2, "min_negatives": 2, "trees": 12, "leaves": 5, "min_docs": 2,
               "valid": valid, "early_stopping": 0}  # fmt: skip
    whole = rs.train(data, **options)
    home, method = {"gradients": (TrainingLists, "gradients"), "measuring": (ValidationSet, "measure")}[where]
    inner, calls = getattr(home, method), []

    def interrupt(*arguments):
        calls.append(1)
        if len(calls) == 7:
            raise KeyboardInterrupt
        return inner(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(home, method, interrupt)
        with pytest.raises(KeyboardInterrupt):
            rs.train(data, checkpoint=tmp_path, **options)
    resumed = rs.train(data, checkpoint=tmp_path, resume=True, **options)
    np.testing.assert_array_equal(resumed.predict(data), whole.predict(data))


def test_rules_may_be_mixed_and_changed_from_tree_to_tree():
    data = small_dataset()

    def rising(view):
        return TopNegatives(negatives=0.05 if view.step < 2 else 0.5, min_negatives=1)(view)

    def both(view):
        return np.union1d(TopNegatives(negatives=0.1)(view), NearPositives(min_negatives=2)(view))

    for rule in (rising, both):
        assert rs.train(data, selection=rule, trees=5, leaves=4).n_trees == 5


def test_rules_cannot_change_the_scores_and_gradients_of_training():
    data = small_dataset()

    def writes(view):
        with pytest.raises(ValueError, match="read-only"):
            view.scores.all()[0] = 100.0
        with pytest.raises(ValueError, match="read-only"):
            view.gradients[0][0] = 100.0
        return np.arange(view.lists.n_docs)

    assert rs.train(data, selection=writes, trees=3, leaves=4).n_trees == 3


def _two(labels, scores):
    return labels, scores


@pytest.mark.parametrize("kind", ["objective", "selection"])
def test_a_function_with_other_arguments_is_refused_before_training(kind, tmp_path):
    expected = {"objective": "(labels, scores, offsets)", "selection": "a function of a view"}[kind]
    file = tmp_path / "rules.py"
    file.write_text("def two(labels, scores):\n    return labels, scores\n")
    for rule, name in ((_two, "_two"), (f"{file}:two", "two")):
        with pytest.raises(ParameterError) as refused:
            rs.train(rs.synth.cubic(4), trees=1, **{kind: rule})
        shown = "_two" if rule is _two else rule
        title = f"the {kind} {shown!r}"
        assert str(refused.value).startswith(f"{title} is the function {name}(labels, scores); expected ")
        assert expected in str(refused.value)
    with pytest.raises(ParameterError, match=rf"the {kind} 'wrong' is the function _two"):
        (SELECTIONS if kind == "selection" else OBJECTIVES).add("wrong", _two)
    with pytest.raises(ParameterError, match=r"rules\.py has no 'nope'"):
        rs.train(rs.synth.cubic(4), trees=1, **{kind: f"{file}:nope"})

"""Pictures of experiments: what is on the axes."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
from matplotlib.text import Text

import ranksieve as rs
from ranksieve import plots
from ranksieve.errors import ParameterError
from ranksieve.evaluation.analyses import difference_by_size, rank_heat_map
from ranksieve.plots.style import MORE_COLOURS, line_styles
from samples import small_dataset

matplotlib.use("agg")


@pytest.fixture(autouse=True)
def closed():
    yield
    matplotlib.pyplot.close("all")


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_learning_curves_of_values_and_models():
    train, valid = rs.synth.cubic(20), rs.synth.cubic(8, start=20)
    model = rs.train(train, valid={"dev": valid}, trees=5, leaves=4, early_stopping=0)
    ax = plots.learning_curves({"model": model, "other": [0.1, 0.2]}, baseline="other")
    lines = {line.get_label(): line for line in ax.lines}
    np.testing.assert_array_equal(lines["model"].get_ydata(), model.evals_result_["dev"]["ndcg@10"])
    np.testing.assert_array_equal(lines["other"].get_xdata(), [1, 2])
    assert legend(ax) == ["model", "other"]
    with pytest.raises(ParameterError, match="no history of map on 'dev'; known: dev: ndcg@10"):
        plots.learning_curves({"model": model}, metric="map")
    with pytest.raises(ParameterError, match="without validation data"):
        plots.learning_curves({"model": rs.train(train, trees=2, leaves=4)})


def test_every_function_draws_on_given_axes_and_returns_them():
    buckets = difference_by_size([0.5, 0.75, 1.0], [0.75, 0.75, 0.5], [120, 40, 199])
    heat = rank_heat_map([0, 0, 1], [1, 2, 1], [4, 99, 2], [3, 2])
    for draw in (
        lambda ax: plots.learning_curves({"a": [0.1]}, ax=ax),
        lambda ax: plots.share_curves({"a": ([0.1, 0.5], [0.2, 0.3])}, ax=ax),
        lambda ax: plots.time_against_quality({"a": (1.0, 0.3)}, ax=ax),
        lambda ax: plots.rank_heat_map(*heat, ax=ax),
        lambda ax: plots.rank_distribution({"a": [0.5, 1.0]}, ax=ax),
        lambda ax: plots.shared_leaves({"a": [1, 2, 3]}, ax=ax),
    ):
        _, ax = matplotlib.pyplot.subplots()
        assert draw(ax) is ax
    _, (one, two) = matplotlib.pyplot.subplots(2, 1)
    assert plots.difference_by_size(buckets, axes=(one, two)) == (one, two)


def test_many_curves_have_their_own_colours_and_a_legend_outside():
    ax = plots.learning_curves({f"run {i}": [0.1 * i, 0.2] for i in range(9)})
    assert len({line.get_color() for line in ax.lines}) == 9
    assert len(legend(ax)) == 9


def test_share_curves_are_sorted_and_show_the_whole():
    ax = plots.share_curves({"random": ([0.5, 0.1], [0.4, 0.3])}, full=0.42)
    assert ax.lines[0].get_xdata().tolist() == [0.1, 0.5]
    assert legend(ax) == ["random", "full training set"]


def test_differences_are_above_counts():
    buckets = difference_by_size([0.5, 0.75, 1.0], [0.75, 0.75, 0.5], [120, 40, 320])
    above, below = plots.difference_by_size(buckets, names=("x", "y"))
    assert [bar.get_height() for bar in above.patches] == [0.0, -0.25, 0.0, 0.5]
    assert [bar.get_height() for bar in below.patches] == [1, 1, 0, 1]
    assert above.get_title(loc="left") == "x − y"


def test_shared_leaves_are_densities_on_one_scale():
    ax = plots.shared_leaves({"small": [1, 1], "large": [0, 5, 5]})
    assert [line.get_xdata()[-1] for line in ax.lines] == [1.0, 1.0]
    np.testing.assert_allclose(ax.lines[1].get_ydata(), [0, 1, 1])


def test_a_heat_map_must_fit():
    with pytest.raises(ParameterError, match="expected 1 rows"):
        plots.rank_heat_map(np.zeros((2, 2)), [3], [1, 2])


@pytest.mark.parametrize(
    "draw",
    [
        plots.learning_curves,
        plots.share_curves,
        plots.time_against_quality,
        plots.rank_distribution,
        plots.shared_leaves,
    ],
)
def test_nothing_to_draw_is_refused(draw):
    with pytest.raises(ParameterError, match="give at least one"):
        draw({})


@pytest.fixture(scope="module")
def pruned():
    data = rs.synth.cubic(20)
    model = rs.train(data, trees=8, leaves=4)
    return {
        name: rs.prune(model, data, judge_on="train", rate=0.5, strategy=name)
        for name in ("last", "skip", "low-weights", "random")
    }


def test_removed_trees_and_weights_along_the_forest(pruned):
    panels = plots.removed_trees(pruned, buckets=4)
    assert [ax.get_title(loc="left") for ax in panels] == list(pruned)
    assert [bar.get_height() for bar in panels[0].patches] == [0, 0, 100, 100]
    assert [bar.get_height() for bar in panels[1].patches] == [50] * 4
    panels = plots.tree_weights({"last": pruned["last"]}, buckets=2)
    story = pruned["last"].info["pruning"]
    heights = [bar.get_height() for bar in panels[0].patches]
    assert heights == [pytest.approx(np.mean(story["weights"]) / story["given"]["weight"]), 0]
    _, axes = matplotlib.pyplot.subplots(1, 2)
    two = {name: pruned[name] for name in ("last", "skip")}
    assert plots.removed_trees(two, buckets=2, axes=axes) == list(axes)
    with pytest.raises(ParameterError, match="got 2 axes for 4 models"):
        plots.removed_trees(pruned, axes=axes)
    with pytest.raises(ParameterError, match="buckets is 9; expected an integer from 1 to 8"):
        plots.removed_trees(pruned, buckets=9)
    with pytest.raises(ParameterError, match="'plain' does not record which trees were removed"):
        plots.tree_weights({"plain": rs.train(rs.synth.cubic(5), trees=2, leaves=4)})


@pytest.mark.filterwarnings("ignore:trees are judged on the training lists")
def test_rounds_and_their_costs():
    model = rs.train(rs.synth.cubic(20), algo="xcleaver", trees=4, grow=4, rate=0.5, leaves=4)
    ax = plots.rounds(model, baseline=[0.2, 0.3])
    facts = model.info["rounds"]
    points = [line for line in ax.lines if len(line.get_xdata()) == 1]
    marks = [(line.get_marker(), *line.get_xdata(), *line.get_ydata()) for line in points]
    assert marks[:2] == [("o", 4, facts[0]["growth"]["train"][-1]), ("s", 2, facts[0]["after"]["train"])]
    with pytest.raises(ParameterError, match="no rounds measured on 'valid'"):
        plots.rounds(model, set_name="valid")
    costs = plots.phase_costs({"X": model, "Y": {"grow": 3.0, "prune": 1.0}})
    assert "75%" in [text.get_text() for text in costs.texts]
    assert legend(costs) == ["growing", "finding leaves", "cross-fitting", "pruning", "re-weighting"]
    with pytest.raises(ParameterError, match="'Z' was not trained in rounds"):
        plots.phase_costs({"Z": rs.train(rs.synth.cubic(5), trees=2, leaves=4)})


def test_a_combination_is_drawn_with_its_best_weight():
    data = small_dataset()
    found = rs.combine(data.labels + np.random.default_rng(0).normal(size=data.n_docs), -data.labels, data)
    ax = plots.combination_curve(found)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("α", "ndcg@10")
    (best,) = (line for line in ax.lines if line.get_marker() == "o")
    assert (best.get_xdata()[0], best.get_ydata()[0]) == (found.alpha, found.value)
    (steps,) = ax.patches
    np.testing.assert_array_equal(steps.get_data().values, found.curve.values)


def test_optimal_steps_are_drawn_tree_by_tree():
    data = small_dataset()
    options = {"algo": "lambdamart", "trees": 3, "leaves": 4, "min_docs": 2}
    model = rs.train(data, step="optimal", **options)
    ax = plots.tree_steps({"OC": model, "mine": [0.5, 1.0]})
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), model.info["steps"])
    assert len(ax.lines[1].get_xdata()) == 2
    with pytest.raises(ParameterError, match="'plain' was trained with one step size for all trees"):
        plots.tree_steps({"plain": rs.train(data, **options)})
    with pytest.raises(ParameterError, match="nothing to draw"):
        plots.tree_steps({})


def test_texts_beside_points_do_not_cover_each_other():
    names = [f"run {number}" for number in range(12)]
    points = {name: (0.02 + 0.0004 * number, 0.4) for number, name in enumerate(names)} | {"other": (0.03, 0.4)}
    points["run 3"] = points["run 2"]  # the same place
    groups = dict.fromkeys(names, "SelGB") | {"other": "other"}
    ax = plots.time_against_quality(points, groups=groups, marks={name: name[4:] for name in names})
    ax.figure.canvas.draw()
    assert sorted(text.get_text() for text in ax.texts) == sorted(name[4:] for name in names)
    boxes = [Text.get_window_extent(text) for text in ax.texts]  # without the lines to the points
    assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])
    inside = ax.get_window_extent()
    assert all(inside.x0 <= box.x0 and box.x1 <= inside.x1 and box.y0 >= inside.y0 for box in boxes)
    far = [text for text in ax.texts if text.arrow_patch is not None]
    assert 0 < len(far) < len(names)


@pytest.mark.parametrize(("seconds", "expected"), [((0.0011, 0.0016), 3), ((0.02, 0.13), 4), ((0.9, 130.0), 6)])
def test_a_logarithmic_axis_has_several_ticks_with_texts(seconds, expected):
    ax = plots.time_against_quality({"a": (seconds[0], 0.3), "b": (seconds[1], 0.4)})
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    places = [tick for tick in ax.get_xticks() if low <= tick <= high]
    assert len(places) >= expected
    shown = [label.get_text() for label in ax.get_xticklabels()]
    assert {f"{tick:g}" for tick in places} <= set(shown)


def test_lines_of_unrelated_names_have_colours_that_differ():
    names = ["sieve", "SelGB", "LightGBM", "McRank", "LambdaRank net", "RankSVM", "first stage", "MART"]
    styles = line_styles([*names, "λ-MART"], "λ-MART")
    assert [styles[name]["color"] for name in names] == list(MORE_COLOURS[:8])
    assert len({styles[name]["linestyle"] for name in names}) == 4
    many = line_styles(list("abcdefghijklmnopqrst"))
    assert len({(style["color"], style["linestyle"]) for style in many.values()}) == 20
    ordered = line_styles([f"SelGB, negatives {share}" for share in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1e-05)])
    red, green, _, _ = np.transpose([style["color"] for style in ordered.values()])
    assert (np.diff(green) > 0).all() and red[-1] > red[0]  # from dark to light

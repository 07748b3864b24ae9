"""`ranksieve combine`, `ranksieve interpolate` and `ranksieve refit`: other weights for models that exist."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranksieve.cli.command import option, takes_options
from ranksieve.cli.console import check_writable, show_facts, show_table, show_waiting
from ranksieve.cli.files import check_model_file, reads_data, save_model
from ranksieve.cli.shared_options import Metric, MissingAsTrained, OutModel, Threads, read_weights
from ranksieve.errors import ParameterError, check_once
from ranksieve.text_formats import counted

if TYPE_CHECKING:
    from ranksieve.boosting.line_search import Curve
    from ranksieve.forest.model import Model
    from ranksieve.forest.score_file import ScoredFile

ModelsArgument = Annotated[list[Path], typer.Argument(metavar="MODEL", help="Model file.")]
Data = Annotated[Path, typer.Option("--data", "-d", help="Labelled data on which the weights are optimized.")]


@dataclass(frozen=True, kw_only=True)
class CombineArguments:
    """Arguments and options of `ranksieve combine`."""

    models: ModelsArgument
    out: OutModel
    data: Path | None = option(None, "Labelled data on which the weights of two models are optimized.", "--data", "-d")
    weights: str | None = option(
        None, "Weights without --data, such as 0.5,0.3,0.2.", metavar="WEIGHTS", show_default="1/n each"
    )
    metric: Metric = "ndcg@10"
    form: str = option("convex", "convex: (1 - α) A + α B; additive: A + α B.", metavar="convex|additive")
    range: tuple[float, float] | None = option(
        None, "Smallest and largest α.", metavar="LOW HIGH", show_default="0 1, or 0.1 5 for additive"
    )
    curve: Path | None = option(None, "TSV file to write: the metric at every α.")
    threads: Threads = 0
    missing: MissingAsTrained = None


@reads_data("data")
@takes_options
def combine(given: CombineArguments) -> None:
    """Combine models into one: their mean or, with --data, the weighted sum of two that is best on the data.

    The result is one forest if all models are forests. For equal scores, the metric is the mean over all orders.
    """
    models, out, data = given.models, given.out, given.data
    check_model_file(out, *models, data)
    if given.curve is not None:
        check_writable(given.curve, *models, data)
    if data is None:
        if given.curve is not None or given.range is not None:
            raise ParameterError("--curve and --range need --data")
        _mean(models, out, given.weights, given.missing)
        return
    if len(models) != 2 or given.weights is not None:
        raise ParameterError("--data optimizes the weights of two models; for more use ranksieve interpolate")
    from ranksieve.rankers.combination import combine as find
    from ranksieve.threads import using_threads

    (a, b), scored = _scored(models, data, given.missing, given.threads)
    with using_threads(given.threads or None):
        scores_a, scores_b = scored.scores.values()
        found = find(scores_a, scores_b, scored.lists, given.metric, form=given.form, range=given.range)
    model = found.model(a, b, missing=given.missing)
    save_model(model, out)
    weights = " and ".join(f"{weight:.6g}" for weight in found.weights)
    ends = ", ".join(f"{value:.4f} at α = {place:g}" for place, value in _ends(found.curve))
    show_facts(
        [
            ("model", f"{out}, {model.size}"),
            ("best α", f"{found.alpha:.6g}, so the weights are {weights}"),
            (str(found.metric), f"{found.value:.4f}; {ends}"),
            ("conventions", found.metric.describe()),
        ]
    )
    if given.curve is not None:
        _write_curve(found.curve, given.curve)
        show_facts([("curve", f"{given.curve}, {counted(interval=len(found.curve.values))}")])


@reads_data("data")
def interpolate(
    models: ModelsArgument,
    data: Data,
    out: OutModel,
    metric: Metric = "ndcg@10",
    threads: Threads = 0,
    missing: MissingAsTrained = None,
) -> None:
    """Find weights for the sum of several models by Powell's method.

    The result is one forest if all models are forests. For equal scores, the metric is the mean over all orders.
    """
    check_model_file(out, *models, data)
    from ranksieve.rankers.interpolation import interpolate as find
    from ranksieve.threads import using_threads

    loaded, scored = _scored(models, data, missing, threads)
    with using_threads(threads or None):
        found = find(scored.scores, scored.lists, metric)
    model = found.model(loaded, missing=missing)
    save_model(model, out)
    show_table(
        ["model", "weight", f"{found.metric} alone"],
        [
            [str(path), f"{weight:.6g}", f"{alone:.4f}"]
            for path, weight, alone in zip(models, found.weights, found.alone, strict=True)
        ],
    )
    show_facts([("model", f"{out}, {model.size}"), (str(found.metric), f"{found.value:.4f}")])


@dataclass(frozen=True, kw_only=True)
class RefitArguments:
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file: a forest.")]
    data: Data
    out: OutModel
    metric: Metric = "ndcg@10"
    range: tuple[float, float] = option(
        (0.1, 5.0), "Smallest and largest factor of a tree's weight.", metavar="LOW HIGH"
    )
    rounds: int = option(1, "Number of passes over the trees.", min=1)
    threads: Threads = 0
    missing: MissingAsTrained = None


@reads_data("data")
@takes_options
def refit(given: RefitArguments) -> None:
    """Optimize the weights of a forest's trees, one after the other.

    Each weight is set to its exact optimum, so the metric on the data never decreases.
    """
    check_model_file(given.out, given.model, given.data, is_forest=True)
    from ranksieve.forest.formats.model_files import load_forest
    from ranksieve.forest.score_file import open_for, read_for
    from ranksieve.pruning.coordinate_ascent import refit as improve
    from ranksieve.threads import using_threads

    show_waiting("crossings")
    forest, name = load_forest(given.model), str(given.model)
    lists = read_for(forest, name, open_for(given.data, {name: forest}, given.missing))
    with using_threads(given.threads or None):
        better = improve(forest, lists, given.metric, range=given.range, rounds=given.rounds)
    better.save(given.out)
    values = better.info["refit"]["values"]
    changed = int((better.weights != forest.weights).sum())
    show_facts(
        [
            ("model", f"{given.out}, {better.size}"),
            ("weights", f"{changed} of {forest.n_trees} changed"),
            (better.info["refit"]["metric"], f"{values[0]:.4f} before, {values[-1]:.4f} after"),
        ]
    )


def _mean(paths: list[Path], out: Path, weights: str | None, missing: str | None) -> None:
    """Write the mean, or the weighted sum, of models."""
    from ranksieve.rankers.combination import mean_model

    shares = None if weights is None else read_weights(weights)
    models = _load(paths)
    model = mean_model(list(models.values()), weights=shares, missing=missing)
    save_model(model, out)
    used = [1 / len(paths)] * len(paths) if shares is None else shares
    show_facts([("model", f"{out}, {model.size}"), ("weights", ", ".join(f"{weight:.6g}" for weight in used))])


def _load(paths: list[Path]) -> dict[str, Model]:
    """The models by the names of their files."""
    from ranksieve.models.load import load

    check_once(paths, "name each model once")
    return {str(path): load(path) for path in paths}


def _scored(paths: list[Path], data: Path, missing: str | None, threads: int) -> tuple[list[Model], ScoredFile]:
    """The models, and their scores of the data by the names of their files."""
    from ranksieve.forest.score_file import open_for, score_file
    from ranksieve.models.blend import common_features

    show_waiting("crossings")
    models = _load(paths)
    common_features(list(models.values()))
    return list(models.values()), score_file(models, open_for(data, models, missing), threads or None)


def _ends(curve: Curve) -> list[tuple[float, float]]:
    return [(float(curve.borders[0]), float(curve.values[0])), (float(curve.borders[-1]), float(curve.values[-1]))]


def _write_curve(curve: Curve, path: Path) -> None:
    from ranksieve.files import atomic_text

    with atomic_text(path) as file:
        print("from", "to", "value", sep="\t", file=file)
        for start, stop, value in zip(curve.borders[:-1], curve.borders[1:], curve.values, strict=True):
            print(repr(float(start)), repr(float(stop)), f"{value:.6g}", sep="\t", file=file)

"""`ranksieve prune`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranksieve.cli.command import option, takes_options
from ranksieve.cli.console import exit_if_interrupted, show_facts
from ranksieve.cli.files import check_model_file, reads_data
from ranksieve.cli.options import given_flags, with_params
from ranksieve.cli.shared_options import Metric, MissingAsTrained, OutModel, Quiet, Seed, Threads, n_features_option
from ranksieve.cli.training_data import warn_of_same_files
from ranksieve.parameter_table import slot
from ranksieve.rules import STRATEGIES, Parameter, parameters_of
from ranksieve.text_formats import counted, duration

if TYPE_CHECKING:
    from ranksieve.forest.forest import Forest


def strategy_parameters() -> dict[str, Parameter]:
    """The choice of a strategy, and the parameters of all strategies."""
    own = {name: one for rule in STRATEGIES for name, one in parameters_of(STRATEGIES[rule]).items()}
    return {"strategy": replace(slot(STRATEGIES), help="How trees are chosen for removal"), **own}


def search_parameters() -> dict[str, Parameter]:
    """The parameters of the search for weights."""
    from ranksieve.pruning.weight_search import WeightSearch

    return parameters_of(WeightSearch)


@dataclass(frozen=True, kw_only=True)
class PruneArguments:
    """Arguments and options of `ranksieve prune`, besides the parameters of strategies and of the search."""

    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Model file: a forest of ranksieve or of another library.")
    ]
    out: OutModel
    rate: float | None = option(None, "Share of the trees to remove, between 0 and 1. Give this or --size.")
    size: int | None = option(None, "Number of trees to keep, in place of --rate.")
    valid: Path | None = option(None, "Validation data. Trees and weights are judged on it, by cross-fitting.")
    train: Path | None = option(None, "Training data. The metric on it is reported. See --judge-on.")
    judge_on: str = option(
        "valid",
        "Judge trees and weights on validation or on training data: keep those with the best metric there. "
        "With train, re-weighting stops when the metric on the validation data stops improving.", metavar="valid|train",
    )  # fmt: skip
    test: Path | None = option(None, "Test data. The full and the pruned model are compared on it.")
    metric: Metric = "ndcg@10"
    reweight: bool = option(True, "Optimize the weights of the remaining trees.", "--reweight/--no-reweight")
    seed: Seed = 0
    threads: Threads = 0
    missing: MissingAsTrained = None
    n_features: Annotated[int | None, n_features_option("as in the training data")] = None
    quiet: Quiet = False


@reads_data("train", "valid", "test")
@with_params({"Strategy": strategy_parameters, "Search for weights": search_parameters})
@takes_options
def prune(context: typer.Context, given: PruneArguments) -> None:
    """Remove the trees that contribute least and optimize the weights of the others (CLEaVER).

    If simply truncating the forest to the same size scores higher on validation data, the truncated forest is saved,
    with a warning. Ctrl-C saves the best model so far.
    """
    from ranksieve.pruning.prune import check_amount, n_removed

    check_amount(given.rate, given.size)
    data = (given.train, given.valid, given.test)
    check_model_file(given.out, given.model, *data, is_forest=True)
    kinds = ("training", "validation", "test")
    leakage = warn_of_same_files({kind: [path] for kind, path in zip(kinds, data, strict=True) if path is not None})
    from ranksieve.data.read import open_data
    from ranksieve.forest.formats.model_files import load_forest
    from ranksieve.forest.score_file import open_for
    from ranksieve.progress import PruningProgress
    from ranksieve.pruning.prune import prune as prune_forest

    n_features = given.n_features
    if n_features is None and (given.train or given.valid):
        n_features = getattr(open_data(given.train or given.valid), "n_features", None)
    forest = load_forest(given.model, n_features=n_features)
    n_removed(forest.n_trees, given.rate, given.size)
    for path in data:
        if path is not None:
            open_for(path, {str(given.model): forest}, given.missing)  # reports a wrong path before the work starts
    with PruningProgress(kernels="pruning", quiet=given.quiet) as progress:
        pruned = prune_forest(
            forest, given.train, valid=given.valid, rate=given.rate, size=given.size, reweight=given.reweight,
            judge_on=given.judge_on, metric=given.metric, missing=given.missing, threads=given.threads,
            seed=given.seed, callbacks=(progress,), **given_flags(context),
        )  # fmt: skip
    pruned.save(given.out)
    size = ("model", f"{given.out}, {pruned.n_trees} of {counted(tree=forest.n_trees)}")
    tested = () if given.test is None else _tested(forest, pruned, given, leakage.get("test", ""))
    show_facts([size, *tested, *_facts(pruned)])
    exit_if_interrupted(pruned.info["pruning"]["interrupted"])


def _facts(pruned: Forest) -> list[tuple[str, str]]:
    """How good the pruned model is: first on lists that trees were not judged on."""
    from ranksieve.evaluation.metrics import parse_metric

    record, facts = pruned.info["pruning"], []
    if record["judge_on"] == "valid" and "unseen" in record:
        value = f"{record['metric']} {record['unseen']:.4f}"
        facts.append(("cross-fitted", f"{value} on validation lists that trees were not judged on"))
    for name, title in (("valid", "validation"), ("train", "training")):
        if name in record["after"]:
            value = f"{record['metric']} {record['before'][name]:.4f} → {record['after'][name]:.4f}"
            in_sample = ", in-sample: trees were judged on these lists" if name == record["judge_on"] else ""
            facts.append((title, value + in_sample))
    if record.get("returned") == "first trees":
        facts.append(("returned", f"the first {counted(tree=pruned.n_trees)}, which are better than the pruned ones"))
    times = pruned.info["phase_seconds"]
    facts.append(("time", ", ".join(f"{phase} {duration(seconds)}" for phase, seconds in times.items())))
    facts.append(("conventions", parse_metric(record["metric"]).describe()))
    return facts


def _tested(forest: Forest, pruned: Forest, given: PruneArguments, leakage: str) -> list[tuple[str, str]]:
    from ranksieve.evaluation.evaluate import evaluate
    from ranksieve.forest.score_file import score_each

    scored = score_each({"full": forest, "pruned": pruned}, given.test, given.missing)
    result = evaluate(scored.scores, scored.lists, given.metric)
    return [
        ("test", f"{given.metric} {result.mean('full'):.4f} → {result.mean('pruned'):.4f}{leakage}"),
        ("difference", str(result.compare("pruned", "full"))),
    ]

"""`ranksieve prune`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranksieve.cli.console import exit_if_interrupted, show_facts
from ranksieve.cli.data_files import reads_data
from ranksieve.cli.model_file import check_model_file
from ranksieve.cli.shared_options import Metric, MissingAsTrained, OutModel, Quiet, Seed, Threads, n_features_option
from ranksieve.text_formats import counted, duration

if TYPE_CHECKING:
    from ranksieve.forest.forest import Forest

SEARCH = "Search for weights"


@reads_data("train", "valid", "test")
def prune(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Model file: a forest of ranksieve or of another library.")
    ],
    rate: Annotated[float, typer.Option(help="Share of the trees to remove, from 0 to 1.")],
    out: OutModel,
    valid: Annotated[
        Path | None, typer.Option(help="Validation data. Trees and weights are evaluated on it, by cross-fitting.")
    ] = None,
    train: Annotated[Path | None, typer.Option(help="Training data. Its metric is reported. See --judge-on.")] = None,
    judge_on: Annotated[
        str,
        typer.Option(
            metavar="valid|train",
            help="Evaluate trees and weights on validation or on training data. With train, re-weighting stops when "
            "the metric on the validation data stops improving.",
        ),
    ] = "valid",
    test: Annotated[
        Path | None, typer.Option(help="Test data. The full and the pruned model are compared on it.")
    ] = None,
    strategy: Annotated[
        str,
        typer.Option(
            metavar="STRATEGY",
            help="How trees are chosen for removal: quality-loss, quality-loss-once, random, skip, last, low-weights, "
            "score-loss or file.py:function.",
        ),
    ] = "quality-loss",
    draws: Annotated[int, typer.Option(help="Random sets of trees to try (strategy random).")] = 100,
    metric: Metric = "ndcg@10",
    reweight: Annotated[
        bool, typer.Option("--reweight/--no-reweight", help="Optimize the weights of the remaining trees.")
    ] = True,
    samples: Annotated[int, typer.Option(help="Weights tried per tree and round (σ).", rich_help_panel=SEARCH)] = 20,
    window: Annotated[
        float,
        typer.Option(
            help="Width of the range of these weights, relative to the mean weight (ω).", rich_help_panel=SEARCH
        ),
    ] = 2.0,
    shrink: Annotated[
        float, typer.Option(help="Factor of the width after each round (η).", rich_help_panel=SEARCH)
    ] = 0.95,
    patience: Annotated[
        int, typer.Option(help="Stop after this many rounds without improvement.", rich_help_panel=SEARCH)
    ] = 10,
    rounds: Annotated[int, typer.Option(help="Largest number of rounds.", rich_help_panel=SEARCH)] = 100,
    seed: Seed = 0,
    threads: Threads = 0,
    missing: MissingAsTrained = None,
    n_features: Annotated[int | None, n_features_option("as in the training data")] = None,
    quiet: Quiet = False,
) -> None:
    """Remove the trees that contribute least and optimize the weights of the others (CLEaVER).

    If simply truncating the forest to the same size scores higher on validation data, the truncated forest is saved,
    with a warning. Ctrl-C saves the best model so far.
    """
    check_model_file(out, model, train, valid, test, is_forest=True)
    from ranksieve.data.read import open_data
    from ranksieve.forest.formats.model_files import load_forest
    from ranksieve.forest.score_file import open_for
    from ranksieve.progress import PruningProgress
    from ranksieve.pruning.prune import prune as prune_forest

    if n_features is None and (train or valid):
        n_features = getattr(open_data(train or valid), "n_features", None)
    forest = load_forest(model, n_features=n_features)
    for path in (train, valid, test):
        if path is not None:
            open_for(path, {str(model): forest}, missing)  # reports a wrong path before the work starts
    of_strategy: dict[str, Any] = {"draws": draws} if strategy == "random" else {}
    with PruningProgress(kernels="pruning", quiet=quiet) as progress:
        pruned = prune_forest(
            forest,
            train,
            rate=rate,
            strategy=strategy,
            metric=metric,
            valid=valid,
            judge_on=judge_on,
            reweight=reweight,
            callbacks=(progress,),
            missing=missing,
            threads=threads,
            seed=seed,
            samples=samples,
            window=window,
            shrink=shrink,
            patience=patience,
            rounds=rounds,
            **of_strategy,
        )
    pruned.save(out)
    show_facts(_facts(forest, pruned, out))
    if test is not None:
        _show_test(forest, pruned, test, metric, missing)
    exit_if_interrupted(pruned.info["pruning"]["interrupted"])


def _facts(forest: Forest, pruned: Forest, out: Path) -> list[tuple[str, str]]:
    from ranksieve.evaluation.metrics import parse_metric

    record = pruned.info["pruning"]
    facts = [("model", f"{out}, {pruned.n_trees} of {counted(tree=forest.n_trees)}")]
    for name, title in (("train", "training"), ("valid", "validation")):
        if name in record["after"]:
            facts.append((title, f"{record['metric']} {record['before'][name]:.4f} → {record['after'][name]:.4f}"))
    if record["judge_on"] == "valid" and "unseen" in record:
        value = f"{record['metric']} {record['unseen']:.4f}"
        facts.append(("cross-fitted", f"{value} on validation lists that trees were not judged on"))
    if record.get("returned") == "first trees":
        facts.append(("returned", f"the first {counted(tree=pruned.n_trees)}, which are better than the pruned ones"))
    times = pruned.info["phase_seconds"]
    facts.append(("time", ", ".join(f"{phase} {duration(seconds)}" for phase, seconds in times.items())))
    facts.append(("conventions", parse_metric(record["metric"]).describe()))
    return facts


def _show_test(forest: Forest, pruned: Forest, path: Path, metric: str, missing: str | None) -> None:
    from ranksieve.evaluation.evaluate import evaluate
    from ranksieve.forest.score_file import open_for, score_file

    models = {"full": forest, "pruned": pruned}
    scored = score_file(models, open_for(path, models, missing))
    result = evaluate(scored.scores, scored.lists, metric)
    show_facts([
        ("test", f"{metric} {result.mean('full'):.4f} → {result.mean('pruned'):.4f}"),
        ("difference", str(result.compare("pruned", "full"))),
    ])  # fmt: skip

"""`ranksieve train`."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranksieve.cli.console import check_writable, duration, show_facts
from ranksieve.cli.options import chosen_params, with_params
from ranksieve.cli.progress import TrainingProgress
from ranksieve.cli.pruning_progress import PruningProgress, exit_if_interrupted
from ranksieve.errors import ParameterError

if TYPE_CHECKING:
    from ranksieve.evaluation.metrics import Metric
    from ranksieve.forest.model import Model


@with_params
def train(
    context: typer.Context,
    data: Annotated[Path, typer.Argument(metavar="TRAIN", help="Training data.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the model goes.")],
    valid: Annotated[Path | None, typer.Option(help="Validation data: early stopping watches it.")] = None,
    test: Annotated[Path | None, typer.Option(help="Test data: measured once, at the end.")] = None,
    init: Annotated[
        str | None, typer.Option(help="Model file or feature to start from; the new model holds it and the new trees.")
    ] = None,
    params: Annotated[
        Path | None, typer.Option(help="TOML file of training parameters, such as 'learning-rate = 0.05'; flags win.")
    ] = None,
    missing: Annotated[str, typer.Option(help="What a feature absent from a LETOR line is; zero or nan.")] = "zero",
    checkpoint: Annotated[Path | None, typer.Option(help="Folder for checkpoints.")] = None,
    checkpoint_every: Annotated[int, typer.Option(min=1, help="Trees between two checkpoints.")] = 50,
    checkpoint_minutes: Annotated[float, typer.Option(min=0, help="Minutes between two, if that is sooner.")] = 5.0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint, if there is one.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    **_values: Any,
) -> None:
    """Train a model on a file of documents, and say how good it is."""
    chosen = chosen_params(context, params)
    if resume and checkpoint is None:
        raise ParameterError("--resume needs a checkpoint to go on from; add --checkpoint DIR")
    check_writable(out)
    from ranksieve.data.read import open_source
    from ranksieve.evaluation.metrics import metric_of
    from ranksieve.rankers import train as rankers

    metric = metric_of(chosen)
    for path in (data, valid, test):
        if path is not None:
            open_source(path, missing=missing)  # complains about a wrong path before hours are spent
    bar = PruningProgress(quiet=quiet) if chosen.algo == "xcleaver" else TrainingProgress(chosen.algo, quiet=quiet)
    with bar as progress:
        model = rankers.train(
            data,
            valid=valid,
            init=init,
            callbacks=(progress,),
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            checkpoint_minutes=checkpoint_minutes,
            resume=resume,
            missing=missing,
            **chosen.as_dict(),
        )
    model.save(out)
    show_facts(_facts(model, out, metric))
    if test is not None:
        _show_test(model, test, metric)
    exit_if_interrupted(model.info.get("interrupted"))


def _facts(model: Model, out: Path, metric: Metric) -> list[tuple[str, str]]:
    info = model.info
    seconds = info.get("seconds") or []
    step = info.get("round", "tree")
    facts = [("model", f"{out}, {model.size}")]
    if seconds:
        facts.append(("time", f"{duration(sum(seconds))}, median {statistics.median(seconds):.3g} s per {step}"))
    if info.get("best_score") is not None:
        if info.get("best_iteration"):
            facts.append((f"best {step}", str(info["best_iteration"])))
        facts.append(("validation", f"{metric} {info['best_score']:.4f}"))
        facts.append(("conventions", metric.describe()))
    return facts


def _show_test(model: Model, path: Path, metric: Metric) -> None:
    from ranksieve.evaluation.evaluate import evaluate
    from ranksieve.forest.streaming import open_for, score_file

    models = {"the model": model}
    scored = score_file(models, open_for(path, models, None))
    result = evaluate(scored.scores, scored.lists, metric)
    show_facts([("test", f"{metric} {result.mean():.4f}"), ("conventions", result.conventions[0])])

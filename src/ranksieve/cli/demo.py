"""`ranksieve demo`: the whole way in two minutes, from generated data to compared models."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from ranksieve.cli.console import check_writable, duration, output, progress_output, show_table
from ranksieve.cli.progress import TrainingProgress

if TYPE_CHECKING:
    from ranksieve.data.dataset import Dataset
    from ranksieve.forest.forest import Forest

METRIC = "ndcg@10"
STAGES = (50, 100)  # trees after which the models are also measured
ALGORITHMS = {"lambdamart": "λ-MART", "selgb": "SelGB"}


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the models; made if it does not exist.")],
    queries: Annotated[int, typer.Option(min=6, help="Queries: half train, a sixth validates, a third tests.")] = 240,
    trees: Annotated[int, typer.Option(min=1, help="Most trees of each model.")] = 150,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the data and of training.")] = 0,
) -> None:
    """Generate a two-stage search data set, train λ-MART and SelGB on it, and compare them."""
    begin = time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    check_writable(out / "lambdamart.txt")
    train_set, valid, test = _generate(queries, seed)
    models = {name: _train(name, train_set, valid, trees, seed) for name in ALGORITHMS}
    for name, model in models.items():
        model.save(out / f"{name}.txt")
    _show(models, test)
    output().print(f"models in {out}; {duration(time.monotonic() - begin)} in all", markup=False)


def _generate(queries: int, seed: int) -> list[Dataset]:
    from ranksieve.data.generators import two_stage

    console = progress_output()
    console.print(f"generating {queries} queries; compiling kernels (first use only)…", markup=False)
    borders = [0, queries // 2, queries // 2 + queries // 6, queries]
    sets = [two_stage(stop - start, seed=seed, start=start) for start, stop in itertools.pairwise(borders)]
    n_docs = sum(data.n_docs for data in sets)
    console.print(f"{n_docs:,} documents with {sets[0].n_features} features", markup=False)
    return sets


def _train(name: str, data: Dataset, valid: Dataset, trees: int, seed: int) -> Forest:
    from ranksieve.boosting.train import train

    with TrainingProgress(ALGORITHMS[name]) as progress:
        return train(data, valid=valid, callbacks=(progress,), algo=name, trees=trees, metric=METRIC, seed=seed)


def _show(models: dict[str, Forest], test: Dataset) -> None:
    from ranksieve.evaluation.evaluate import evaluate

    stages = {str(stage): stage for stage in STAGES} | {"all": None}
    systems = {
        (name, label): model if stage is None else model.first(stage)
        for name, model in models.items()
        for label, stage in stages.items()
    }
    result = evaluate({f"{name} {label}": model for (name, label), model in systems.items()}, test, METRIC)
    rows = []
    for name, model in models.items():
        means = [f"{result.mean(f'{name} {label}'):.4f}" for label in stages]
        rows.append([ALGORITHMS[name], *means, str(model.n_trees), f"{np.median(model.info['seconds']):.4f}"])
    show_table(
        ["", *(f"{label} trees" for label in stages), "trees", "s/tree (median)"],
        rows,
        title=f"{METRIC} on {test.n_queries} test queries",
    )
    first, second = models
    console = output()
    console.print(
        f"{ALGORITHMS[second]} − {ALGORITHMS[first]}: {result.compare(f'{second} all', f'{first} all')}", markup=False
    )
    console.print(result.conventions[0], markup=False)

"""`ranksieve demo`: the whole way in two minutes, from generated data to compared models, a pruned one and a report."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranksieve.cli.console import check_writable, show_line, show_note, show_table, show_waiting
from ranksieve.cli.shared_options import Seed, out_option
from ranksieve.errors import MissingExtraError
from ranksieve.text_formats import counted, duration

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from ranksieve.experiments.data_sets import Loaded
    from ranksieve.experiments.results import Results
    from ranksieve.experiments.spec import Cell
    from ranksieve.forest.forest import Forest

METRIC = "ndcg@10"
STAGES = (50, 100)  # trees after which the models are also measured
FILES = {"λ-MART": "lambdamart.txt", "SelGB": "selgb.txt", "SelGB, half the trees": "pruned.txt"}
SPEC = Template("""\
title = "λ-MART, SelGB and half of its trees on generated two-stage lists"
about = '''
What ranksieve demo ran. The lists are generated so that few negatives matter, which suits SelGB; on real lists it
saves time more than it adds quality (docs/selections.md).'''
figures = ["table", "curves", "sizes", "removed", "weights"]
stages = [50, 100]
baseline = "λ-MART"
compare = ["SelGB", "λ-MART"]
timed = true

[data.two-stage]
generate = "two-stage"
queries = $queries
seed = $seed

[params]
trees = $trees
seed = $seed
metric = "ndcg@10"

[[runs]]
name = "λ-MART"
algo = "lambdamart"

[[runs]]
name = "SelGB"
algo = "selgb"

[[runs]]
name = "SelGB, half the trees"
prune = "SelGB"
rate = 0.5
""")


def demo(
    out: Annotated[Path, out_option("Folder for models and report; made if it does not exist.", metavar="DIR")],
    queries: Annotated[int, typer.Option(min=6, help="Number of queries, split 60/20/20.")] = 240,
    trees: Annotated[int, typer.Option(min=1, help="Largest number of trees per model.")] = 150,
    seed: Seed = 0,
) -> None:
    """Run a demonstration: generate data, train λ-MART and SelGB, compare and prune them, and write a report."""
    begin = time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    check_writable(out / "lambdamart.txt")
    from ranksieve.experiments.data_sets import load
    from ranksieve.experiments.read_spec import load_spec
    from ranksieve.experiments.run import run_experiment
    from ranksieve.pruning.warm_up import compile_kernels

    (out / "demo.toml").write_text(SPEC.substitute(queries=queries, trees=trees, seed=seed), encoding="utf-8")
    spec = load_spec(out / "demo.toml")
    show_waiting("growing", f"generating {counted(query=queries)}")
    compiling = multiprocessing.get_context("spawn").Process(target=compile_kernels, args=(METRIC,), daemon=True)
    compiling.start()
    _compile_training()
    loaded = load(spec.cells[0].data, spec.cells[0].params.max_bins)
    n_docs = sum(part.binned.lists.n_docs for part in (loaded.train, loaded.valid, loaded.test))
    show_note(f"{counted(document=n_docs)} with {counted(feature=loaded.train.binned.binning.n_features)}")
    results = run_experiment(spec, out / "results", jobs=1, callback_for=lambda cell: _progress(cell, compiling))
    groups = results.groups("two-stage")
    models = {group.run: group.cells[0].model() for group in groups}
    seconds = {group.run: group.seconds_per_tree for group in groups if group.seconds_per_tree is not None}
    for name, model in models.items():
        model.save(out / FILES[name])
    _show(models, seconds, loaded)
    show_line(f"models in {out}")
    show_line(_report(results, out))
    show_line(f"{duration(time.monotonic() - begin)} in all")


def _compile_training() -> None:
    """Train a little, so that compiling does not count as training in the report."""
    from ranksieve.boosting.train import train
    from ranksieve.data.binned import bin_data
    from ranksieve.data.generators import two_stage

    few = bin_data(two_stage(2))
    for algo in ("lambdamart", "selgb"):
        train(few, valid=few, algo=algo, trees=3, metric=METRIC)


@contextmanager
def _progress(cell: Cell, compiling: BaseProcess) -> Iterator[Any]:
    """What is shown while a cell is made; the one that prunes waits for what it needs."""
    from ranksieve.progress import PruningProgress, TrainingProgress

    if cell.prune is None:
        with TrainingProgress(cell.run) as training:
            yield training
        return
    compiling.join()
    show_note("pruning SelGB: half of its trees are removed, the others are re-weighted…")
    with PruningProgress() as pruning:
        yield pruning


def _show(models: dict[str, Forest], seconds: dict[str, float], loaded: Loaded) -> None:
    from ranksieve.evaluation.evaluate import evaluate
    from ranksieve.experiments.train_cell import scores_on_bins

    test, lists = loaded.test.binned, loaded.test.binned.lists
    stages = {str(stage): stage for stage in STAGES} | {"all": None}
    scores = {
        f"{name} {label}": scores_on_bins(model if stage is None else model.first(stage), test)
        for name, model in models.items()
        for label, stage in stages.items()
    }
    result = evaluate(scores, lists, METRIC)
    rows = []
    for name, model in models.items():
        shown = stages if name in seconds else ["all"]  # the first trees of a pruned model are no model
        means = [f"{result.mean(f'{name} {label}'):.4f}" if label in shown else "" for label in stages]
        rows.append([name, *means, str(model.n_trees), f"{seconds[name]:.4f}" if name in seconds else ""])
    show_table(
        ["", *(f"{label} trees" for label in stages), "trees", "s/tree (median)"],
        rows,
        title=f"{METRIC} on {lists.n_queries} test queries",
    )
    for first, second in (("λ-MART", "SelGB"), ("SelGB", "SelGB, half the trees")):
        show_line(f"{second} − {first}: {result.compare(f'{second} all', f'{first} all')}")
    show_line(result.conventions[0])
    show_line("generated lists suit SelGB; on real lists it saves time rather than improving quality")


def _report(results: Results, out: Path) -> str:
    try:
        from ranksieve.plots.style import without_display
        from ranksieve.report.write import write_report

        without_display()
        return f"report in {write_report(results, out / 'report')}"
    except MissingExtraError:
        return "no report: its pictures need matplotlib; pip install 'ranksieve[plots]'"

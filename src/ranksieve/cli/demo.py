"""`ranksieve demo`: generated data, compared models, a pruned model, a report and a page, in two minutes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranksieve.cli.compiling import TRAINING, compile_tasks
from ranksieve.cli.console import check_writable, show_line, show_note, show_table
from ranksieve.cli.demo_search import make_search
from ranksieve.cli.shared_options import Seed, out_option
from ranksieve.errors import DataError, MissingExtraError
from ranksieve.files import atomic_text
from ranksieve.text_formats import counted, duration

if TYPE_CHECKING:
    from ranksieve.experiments.results import Results
    from ranksieve.experiments.spec import Cell

METRIC = "ndcg@10"
KERNELS = (*TRAINING, "pruning", "scoring", "searching")
STAGES = (50, 100)  # trees after which the models are also measured
SPEC_FILE = "demo.toml"
FILES = {
    "LightGBM": "lightgbm.txt",
    "λ-MART": "lambdamart.txt",
    "SelGB": "selgb.txt",
    "SelGB, half the trees": "pruned.txt",
}
SPEC = Template("""\
title = "SelGB and its peers on generated two-stage lists"
about = '''
The experiment of ranksieve demo. SelGB is the default of ranksieve train: it trains on the positives and on the
best-scored 5% of each query's negatives, at least 100. λ-MART, and LightGBM where it is installed, train on all
documents. All have the same leaves, documents per leaf, learning rate and split gain.'''
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

$peer[[runs]]
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
PEER = '[[runs]]\nname = "LightGBM"\nalgo = "lightgbm"\n\n'  # where it is installed


def demo(
    out: Annotated[Path, out_option("Folder for models and report; made if it does not exist.", metavar="DIR")],
    queries: Annotated[int, typer.Option(min=6, help="Number of queries, split 60/20/20.")] = 240,
    trees: Annotated[int, typer.Option(min=1, help="Largest number of trees per model.")] = 150,
    seed: Seed = 0,
) -> None:
    """Run a demonstration: generate data, train SelGB and its peers, compare, prune, and write a report."""
    begin = time.monotonic()
    _check_models(out)
    out.mkdir(parents=True, exist_ok=True)
    check_writable(out / "lambdamart.txt")
    from ranksieve.experiments.data_sets import load
    from ranksieve.experiments.read_spec import load_spec
    from ranksieve.experiments.run import run_experiment

    peer = PEER if find_spec("lightgbm") else ""
    text = SPEC.substitute(queries=queries, trees=trees, seed=seed, peer=peer)
    with atomic_text(out / SPEC_FILE) as file:
        file.write(text)
    spec = load_spec(out / SPEC_FILE)
    show_note(f"generating {counted(query=queries)}…")
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(load, spec.cells[0].data, spec.cells[0].params.bin_limits)
        compile_tasks(KERNELS)  # all, so that compiling does not count as training
        loaded = loading.result()
    n_docs = sum(part.binned.lists.n_docs for part in (loaded.train, loaded.valid, loaded.test))
    show_note(f"{counted(document=n_docs)} with {counted(feature=loaded.train.binned.binning.n_features)}")
    results = run_experiment(spec, out / "results", jobs=1, callback_for=_progress)
    for cell in results.cells:
        cell.model().save(out / FILES[cell.run])
    _show(results)
    show_line(f"models in {out}")
    show_line(_report(results, out))
    show_note("making a collection of texts for the search page…")
    size = {"n_docs": 4000, "n_queries": 120} if queries >= 60 else {"n_docs": 400, "n_queries": 24}
    for line in make_search(out / "search", **size, trees=min(trees, 100), seed=seed):
        show_line(line)
    show_line(f"{duration(time.monotonic() - begin)} in total")


def _check_models(out: Path) -> None:
    """Refuse to overwrite models that are not of an earlier demonstration."""
    models = [out / name for name in FILES.values() if (out / name).exists()]
    if models and not (out / SPEC_FILE).exists():
        raise DataError(f"{models[0]}: exists already, and is not of a demonstration; choose another folder")


@contextmanager
def _progress(cell: Cell) -> Iterator[Any]:
    """The progress of a cell."""
    from ranksieve.progress import PruningProgress, TrainingProgress

    if cell.prune is None:
        with TrainingProgress(cell.run) as training:
            yield training
        return
    show_note("pruning SelGB: removing half of its trees, re-weighting the others…")
    with PruningProgress() as pruning:
        yield pruning


def _show(results: Results) -> None:
    from ranksieve.report.result_tables import compare

    groups = {group.run: group for group in results.groups("two-stage")}
    columns = {f"{stage} trees": f"{METRIC} at {stage}" for stage in STAGES} | {"all trees": METRIC}
    rows = []
    for name, group in groups.items():
        known = [column for column in columns.values() if group.has_stages or column == METRIC]
        means = [f"{group.value(column):.4f}" if column in known else "" for column in columns.values()]
        seconds = group.seconds_per_tree
        rows.append([name, *means, f"{group.n_trees:.0f}", "" if seconds is None else f"{seconds:.4f}"])
    n_queries = len(groups["SelGB"].per_query(METRIC)[0])
    show_table(["", *columns, "trees", "s/tree (median)"], rows, title=f"{METRIC} on {n_queries} test queries")
    pairs = [("LightGBM", "SelGB"), ("λ-MART", "SelGB"), ("SelGB", "SelGB, half the trees")]
    for first, second in [pair for pair in pairs if pair[0] in groups]:
        test, _ = compare(groups[second], groups[first], METRIC)
        show_line(f"{second} − {first}: {test}")
    if "LightGBM" in groups:
        show_line("LightGBM's times include scoring the validation and test lists.")
    show_line(results.cells[0].facts["conventions"][0])


def _report(results: Results, out: Path) -> str:
    try:
        from ranksieve.plots.style import without_display
        from ranksieve.report.write import write_report

        without_display()
        return f"report in {write_report(results, out / 'report')}"
    except MissingExtraError:
        return "no report: its figures need matplotlib; pip install 'ranksieve[plots]'"

"""`ranksieve evaluate` and `ranksieve cv`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranksieve.cli.command import option, takes_options
from ranksieve.cli.console import (
    check_writable,
    exit_if_interrupted,
    show_facts,
    show_line,
    show_remark,
    show_table,
    show_waiting,
)
from ranksieve.cli.files import check_model_file, check_new, reads_data, save_model, with_categories
from ranksieve.cli.options import chosen_params, with_params
from ranksieve.cli.shared_options import (
    DataArgument,
    FirstStage,
    Missing,
    MissingAsTrained,
    ParamsFile,
    Quiet,
    Threads,
    metric_option,
    out_option,
)
from ranksieve.errors import DataError, ParameterError, check_once
from ranksieve.files import check_folder
from ranksieve.parameter_table import FORESTS, flag, table
from ranksieve.text_formats import counted

if TYPE_CHECKING:
    from ranksieve.evaluation.evaluate import Evaluation
    from ranksieve.evaluation.metrics import Metric
    from ranksieve.forest.score_file import ScoredFile

PerQuery = Annotated[Path | None, typer.Option(help="TSV file to write: the value of every query.")]


@dataclass(frozen=True, kw_only=True)
class EvaluateArguments:
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="MODEL... DATA", help="Model files, then labelled data. The first model is the baseline."
        ),
    ] = None
    run: list[Path] | None = option(
        None, "TREC run to evaluate instead of models. The first one is the baseline.", "--run"
    )
    qrels: Path | None = option(None, "Judgements for --run, in TREC format.")
    metric: Annotated[
        list[str] | None,
        metric_option(
            "ndcg@10, map, mrr@10, p@5, …; or nDCG@10, AP(rel=2), … as in ir-measures.", show_default="ndcg@10"
        ),
    ] = None
    per_query: PerQuery = None
    ties: str | None = option(
        None, "Documents with equal scores: input order, mean over all orders, or worst order.",
        metavar="order|mean|worst", show_default="order",
    )  # fmt: skip
    empty: str | None = option(
        None, "Queries without positive documents: skip them, or count them as 0 or 1.", metavar="skip|0|1",
        show_default="skip; 0 for ir-measures' names",
    )  # fmt: skip
    gains: str | None = option(
        None, "Gain of each label, beginning with label 0, as in 0,1,3,7.", metavar="GAINS",
        show_default="2^label - 1",
    )  # fmt: skip
    missing_queries: str | None = option(
        None, "With --run, judged queries that a run does not have: count them as 0, as 'trec_eval -c' does, or skip "
        "them, as trec_eval does without -c.", metavar="0|skip", show_default="0",
    )  # fmt: skip
    first_stage: FirstStage = None
    weighted: bool = option(False, "Weight each query by the mean weight of its documents.", "--weighted")
    threads: Threads = 0
    missing: MissingAsTrained = None
    quiet: Quiet = False


@reads_data("files")
@takes_options
def evaluate(given: EvaluateArguments) -> None:
    """Evaluate models on labelled data, or runs on judgements, and test each against the first.

    For data of 'ranksieve features', and with --first-stage, the last row of the table is the first stage.
    """
    files, runs, per_query = given.files or [], given.run or [], given.per_query
    if per_query is not None:
        check_writable(per_query, *files, *runs, given.qrels)
    names = [str(path) for path in runs or files[:-1]]
    if bool(runs) != (given.qrels is not None) or bool(files) == bool(runs) or not names:
        raise ParameterError("give MODEL… and DATA, or --run RUN and --qrels QRELS")
    check_once(names, "name each model or run once, and the data last")
    for name in ("ties", "weighted", "missing", "first_stage"):
        if runs and getattr(given, name) not in (None, False):
            raise ParameterError(f"{flag(name)} is for models on data, not for --run; leave it out")
    if given.missing_queries is not None and not runs:
        raise ParameterError("--missing-queries is for --run, not for models on data; leave it out")
    from ranksieve.evaluation.evaluate import evaluate as measure

    wanted = _metrics(given)
    if given.qrels is not None:
        result = _measure_runs(names, given.qrels, wanted, given.missing_queries)
    else:
        scored, sizes = _score_models(names, files[-1], given)
        systems = scored.with_first_stage()
        result = measure(systems, scored.lists, wanted, weighted=given.weighted)
        _show(result, {name: sizes.get(name, "") for name in systems})
    if per_query is not None:
        write_per_query(result, per_query)
        show_facts([("per query", str(per_query))])


def _metrics(given: EvaluateArguments) -> list[Metric]:
    """The metrics to compute, with the conventions of the options."""
    from ranksieve.evaluation.metrics import parse_metric
    from ranksieve.params import Params
    from ranksieve.text_formats import read_gains

    options: dict[str, Any] = {} if given.gains is None else {"gain": read_gains(Params(gains=given.gains).gains)}
    if given.empty is not None:
        options["empty"] = int(given.empty) if given.empty.isdigit() else given.empty
    if given.ties is not None:
        options["ties"] = given.ties
    return [parse_metric(name, **options) for name in given.metric or ["ndcg@10"]]


def _score_models(names: list[str], data: Path, given: EvaluateArguments) -> tuple[ScoredFile, dict[str, str]]:
    from ranksieve.forest.score_file import score_each
    from ranksieve.models.load import load

    loaded = {name: load(name) for name in names}
    if not given.quiet:
        show_waiting("scoring")
    scored = score_each(loaded, data, given.missing, given.threads or None, first_stage=given.first_stage)
    return scored, {name: model.size for name, model in loaded.items()}


def _measure_runs(names: list[str], qrels: Path, wanted: list[Metric], missing_queries: str | None) -> Evaluation:
    from ranksieve.retrieval.run_evaluation import evaluate_run, unjudged_documents
    from ranksieve.retrieval.runs import read_judgements, read_run

    runs, judgements = {name: read_run(name) for name in names}, read_judgements(qrels)
    for name, found in runs.items():
        if foreign := unjudged_documents(found, judgements):
            raise DataError(f"{name}: {foreign}")
    way = 0 if missing_queries in (None, "0") else missing_queries
    result = evaluate_run(runs, judgements, wanted, missing_queries=way)
    if missing_queries is None:
        for name, found in runs.items():
            if missing := len(judgements.keys() - set(found.query_ids)):
                show_remark(
                    f"warning: {name} has no results for {missing:,} of {len(judgements):,} judged queries, which "
                    "count as 0; --missing-queries skip leaves them out, as trec_eval does without -c"
                )
    _show(result, {name: counted(document=len(run)) for name, run in runs.items()})
    return result


def _show(result: Evaluation, sizes: dict[str, str]) -> None:
    names, relevance, *rows = result.cells()
    columns = [f"{name}\n{words}".rstrip() for name, words in zip(names[1:], relevance[1:], strict=True)]
    show_table(["model", "size", *columns], [[name, sizes[name], *values] for name, *values in rows])
    for line in result.conventions:
        show_line(line)


def write_per_query(result: Evaluation, path: Path) -> None:
    """Write one line per query and system."""
    from ranksieve.files import atomic_text

    metrics = [str(metric) for metric in result.metrics]
    with atomic_text(path) as file:
        print("query", "model", *metrics, sep="\t", file=file)
        for name, values in result.values.items():
            for query, *numbers in zip(result.query_ids, *(values[metric] for metric in metrics), strict=True):
                print(query, name, *(f"{number:.6g}" for number in numbers), sep="\t", file=file)


@dataclass(frozen=True, kw_only=True)
class CrossValidationArguments:
    """Arguments and options of `ranksieve cv`, besides the parameters of training."""

    data: DataArgument
    folds: int = option(5, "Number of folds.", min=3)
    measure: list[str] | None = option(None, "Metric to report.", metavar="METRIC", show_default="that of --metric")
    out: Annotated[
        Path | None,
        out_option(
            "Folder for the models, fold1.txt, …; without --out, they are not saved. If the folder already has models, "
            "--replace is needed.",
            metavar="DIR",
        ),
    ] = None
    replace: bool = option(False, "Replace the models that are in --out already.", "--replace")
    jobs: int = option(
        0,
        "Number of folds to train at the same time. They share --threads and --memory. 0: as many as cores and free "
        "memory allow.", min=0,
    )  # fmt: skip
    per_query: PerQuery = None
    params: ParamsFile = None
    missing: Missing = "zero"
    quiet: Quiet = False


@reads_data("data")
@with_params({"": table})
@takes_options
def cv(context: typer.Context, given: CrossValidationArguments) -> None:
    """Cross-validate by query: train a model per fold and measure it on the queries it has not seen.

    A fold's model is trained on all folds but two: one validates, for early stopping, and one tests. The folds are
    those of 'ranksieve split --folds' with the same --seed.
    """
    chosen = chosen_params(context, given.params)
    missing = context.params["missing"]  # the TOML file's value, if there is one and no option
    data = with_categories(given.data, context)
    if given.per_query is not None:
        check_writable(given.per_query, data, given.params)
    files = _model_files(given, chosen.algo in FORESTS, data, given.params)
    from ranksieve.boosting.job import TrainingJob
    from ranksieve.cli.compiling import TRAINING, compile_tasks
    from ranksieve.data.read import read
    from ranksieve.evaluation.evaluate import wanted_metrics
    from ranksieve.evaluation.metrics import metric_of
    from ranksieve.rankers.cross_validation import cross_validate
    from ranksieve.rankers.inputs import load_library

    load_library(chosen.algo)
    wanted = wanted_metrics(given.measure) if given.measure else (metric_of(chosen),)
    job = TrainingJob(read(data, missing=missing), chosen, missing=missing)
    if chosen.algo in FORESTS and chosen.device != "cuda":
        compile_tasks(TRAINING, quiet=given.quiet)

    def save(fold: int, model: Any) -> None:
        if files:
            save_model(model, files[fold - 1])
        exit_if_interrupted(model.info.get("interrupted"))

    display = {"quiet": given.quiet, "flags": True}
    result = cross_validate(job, given.folds, wanted, jobs=given.jobs, display=display, on_fold=save)
    header, *rows = result.table().cells()
    show_table(header, rows)
    for line in result.conventions:
        show_line(line)
    facts = [("models", f"{files[0]} … {files[-1].name}")] if files else []
    if given.per_query is not None:
        write_per_query(result.evaluation, given.per_query)
        facts.append(("per query", str(given.per_query)))
    if facts:
        show_facts(facts)


def _model_files(given: CrossValidationArguments, is_forest: bool, *read: Path | None) -> list[Path]:
    """The files of the models, in a folder that is made here; none without a folder."""
    out = given.out
    if out is None:
        return []
    check_folder(out)
    files = [out / f"fold{n}.{'txt' if is_forest else 'json'}" for n in range(1, given.folds + 1)]
    check_new(files, replace=given.replace)
    out.mkdir(parents=True, exist_ok=True)
    for file in files:
        check_model_file(file, *read, is_forest=is_forest)
    return files

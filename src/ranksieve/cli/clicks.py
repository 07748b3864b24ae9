"""`ranksieve clicks`: logs of result pages, from clicks to judgements, training data, models and comparisons."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ranksieve.cli.click_comparisons import compare, estimate, interleave
from ranksieve.cli.click_options import (
    Actions,
    Clip,
    Depth,
    Events,
    Given,
    Log,
    MinDwell,
    Shrinkage,
    load_propensities,
    log_facts,
    read_log,
    shrinkage_of,
)
from ranksieve.cli.command import SETTINGS, Command, CommandGroup
from ranksieve.cli.console import check_writable, show_facts, show_table, show_waiting
from ranksieve.cli.files import check_model_file, reads_data, save_model, write_data
from ranksieve.cli.options import is_flag, read_toml
from ranksieve.cli.shared_options import Missing, OutData, OutModel, ParamsFile, Seed, Threads, out_option
from ranksieve.errors import ParameterError, check_choice
from ranksieve.parameter_table import canonical
from ranksieve.text_formats import counted

GROUP = typer.Typer(cls=CommandGroup, add_completion=False, no_args_is_help=True, **SETTINGS)


@GROUP.callback()
def clicks() -> None:
    """Fit click models, estimate propensities, make training data, simulate, and compare rankings, all from clicks."""


@GROUP.command(cls=Command)
def fit(
    log: Log,
    events: Events = None,
    model: Annotated[
        str, typer.Option(metavar="MODEL", help="ctr, rctr, coec, pbm, trust, cascade, sdbn or dbn.")
    ] = "pbm",
    prior: Annotated[float, typer.Option(min=0, help="Examinations that the mean of all documents counts for.")] = 2.0,
    holdout: Annotated[
        float, typer.Option(min=0, max=0.9, help="Share of the pages to measure the model on; 0: none.")
    ] = 0.2,
    qrels: Annotated[Path | None, typer.Option(metavar="FILE", help="TREC qrels to write, from all pages.")] = None,
    query_texts: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Queries to write, id TAB text; qrels then have these ids.")
    ] = None,
    levels: Annotated[
        int | None, typer.Option(min=2, help="Number of grades in qrels.", show_default="relevance from 0 to 1")
    ] = None,
    shrinkage: Shrinkage = "10",
    least_confidence: Annotated[
        float, typer.Option(min=0, max=1, help="Qrels: leave out documents with less confidence.")
    ] = 0.0,
    depth: Depth = None,
    min_dwell: MinDwell = 0.0,
    actions: Actions = "click",
    seed: Seed = 0,
) -> None:
    """Fit a click model, measure it on held-out pages, and write judgements."""
    for path in (qrels, query_texts):
        if path is not None:
            check_writable(path, *log)
    if query_texts is not None and qrels is None:
        raise ParameterError("--query-texts belongs to --qrels, which is missing; give both")
    from ranksieve import clicks as library

    pages = read_log(log, events, actions, depth, min_dwell)
    show_facts([("log", log_facts(pages))])
    if holdout:
        training, held_out = pages.split(1 - holdout, seed=seed)
        scores = library.fit(training, model, prior=prior).evaluate(held_out)
        show_facts(
            [
                ("held out", f"{counted(page=scores.n_pages)}"),
                ("log-likelihood", f"{scores.log_likelihood:.4f}"),
                ("perplexity", f"{scores.perplexity:.4f}"),
            ]
        )
    fitted = library.fit(pages, model, prior=prior)
    if qrels is not None:
        judged = library.judge(fitted, shrinkage=shrinkage_of(shrinkage), levels=levels)
        written = judged.write_qrels(qrels, queries=query_texts, least_confidence=least_confidence)
    columns = {"clicked": pages.by_place()[1] / pages.by_place()[0]}
    if fitted.examination is not None and fitted.examination[0] > 0:
        columns["examination"] = fitted.examination / fitted.examination[0]
    if holdout:
        columns |= {"log-likelihood": scores.likelihood_by_place, "perplexity": scores.perplexity_by_place}
    show_table(
        ["rank", *columns],
        [
            [str(place + 1), *(f"{values[place]:.4f}" if place < len(values) else "" for values in columns.values())]
            for place in range(pages.n_places)
        ],
    )
    if qrels is not None:
        show_facts([("qrels", f"{qrels}, {counted(judgement=written)}")])


@GROUP.command(cls=Command)
def propensities(
    log: Log,
    out: Annotated[Path, out_option("JSON file to write.")],
    events: Events = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="METHOD",
            help="harvest (documents that stood at several ranks), swaps (randomised ones), or the click model pbm, "
            "trust or rctr.",
        ),
    ] = "harvest",
    depth: Depth = None,
    min_dwell: MinDwell = 0.0,
    actions: Actions = "click",
) -> None:
    """Estimate how likely each rank is examined."""
    check_writable(out, *log)
    from ranksieve import clicks as library

    pages = read_log(log, events, actions, depth, min_dwell)
    found = library.propensities(pages, method)
    found.save(out)
    biases = ",".join(f"{bias:.4f}" for bias in found.biases)
    show_facts(
        [("log", log_facts(pages)), ("propensities", f"{out}, by {found.method}"), ("--position-biases", biases)]
    )
    show_table(["rank", "propensity"], [[str(rank), f"{value:.4f}"] for rank, value in enumerate(found.values, 1)])


@GROUP.command(cls=Command)
@reads_data("data")
def lists(
    log: Log,
    data: Annotated[Path, typer.Option("--data", "-d", help="Features of the documents, by query id and document id.")],
    out: OutData,
    events: Events = None,
    by: Annotated[
        str,
        typer.Option(
            metavar="page|query",
            help="One list per page, with clicks as labels and positions; or one per query, with judgements as labels.",
        ),
    ] = "page",
    given: Given = None,
    clip: Clip = 0.05,
    model: Annotated[str, typer.Option(metavar="MODEL", help="By query: the click model that judges.")] = "pbm",
    levels: Annotated[
        int | None, typer.Option(min=2, help="By query: number of grades.", show_default="fractions")
    ] = None,
    shrinkage: Shrinkage = "10",
    others: Annotated[
        bool, typer.Option("--others", help="By query: also documents of the data that were never shown, as the worst.")
    ] = False,
    balance: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="By page: weight a document by 1 / (this number + how often it was shown for the query).",
            show_default="weights of 1",
        ),
    ] = None,
    depth: Depth = None,
    min_dwell: MinDwell = 0.0,
    actions: Actions = "click",
    missing: Missing = "zero",
) -> None:
    """Make training data of a log and the features of its documents.

    By page, --propensities make clicks count by their inverse propensity. Without, train learns biases of the
    positions. By query, the model pbm uses --propensities, or estimates them.
    """
    check_choice("by", by, ("page", "query"))
    check_writable(out, *log, data)
    from ranksieve import clicks as library
    from ranksieve.data.read import read

    pages, features = read_log(log, events, actions, depth, min_dwell), read(data, missing=missing)
    if by == "page":
        made = library.page_lists(pages, features, load_propensities(given), clip=clip, balance=balance)
    else:
        fitted = library.fit(pages, model, propensities=load_propensities(given))
        judged = library.judge(fitted, shrinkage=shrinkage_of(shrinkage), levels=levels)
        made = library.judged_lists(judged, features, others=others)
    write_data(made, out)
    show_facts([("log", log_facts(pages)), ("data", f"{out}, {counted(list=made.n_queries, document=made.n_docs)}")])


@GROUP.command(cls=Command)
@reads_data("data")
def train(
    context: typer.Context,
    log: Log,
    data: Annotated[Path, typer.Option("--data", "-d", help="Features of the documents, by query id and document id.")],
    out: OutModel,
    events: Events = None,
    given: Given = None,
    trees: Annotated[int, typer.Option(min=1, help="Trees of each of the three models.")] = 100,
    params: ParamsFile = None,
    depth: Depth = None,
    min_dwell: MinDwell = 0.0,
    actions: Actions = "click",
    seed: Seed = 0,
    threads: Threads = 0,
    missing: Missing = "zero",
) -> None:
    """Train a model on a log and the features of its documents.

    The model is the mean of three: one of pages, with propensities as fixed biases, one of queries, with judgements as
    labels, and one with all other documents of the data as the least relevant ones. Without --propensities they are
    harvested from the log.
    """
    check_model_file(out, *log, data, is_forest=True)
    from ranksieve import clicks as library
    from ranksieve.data.read import read

    options: dict[str, Any] = {"trees": trees, "seed": seed, "threads": threads}
    flags = {name: value for name, value in options.items() if is_flag(context, name)}
    chosen = options | (canonical(read_toml(params)[0]) if params else {}) | flags
    pages, features = read_log(log, events, actions, depth, min_dwell), read(data, missing=missing)
    weights = load_propensities(given) or library.propensities(pages)
    model = library.train(pages, features, weights, **chosen)
    save_model(model, out)
    show_facts(
        [
            ("log", log_facts(pages)),
            ("propensities", f"{', '.join(f'{value:.3g}' for value in weights.values)}, by {weights.method}"),
            ("model", f"{out}, {model.size}"),
        ]
    )


@GROUP.command(cls=Command)
@reads_data("data")
def simulate(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Documents with true labels.")],
    out: Annotated[Path, out_option("Log to write: Parquet if its name ends in .parquet, else JSON Lines.")],
    ranker: Annotated[
        list[Path] | None, typer.Option(metavar="MODEL", help="Model that ranks the pages.", show_default="a weak one")
    ] = None,
    share: Annotated[
        float, typer.Option(help="Share of the queries that the weak ranker is trained on, without --ranker.")
    ] = 0.01,
    pages: Annotated[int, typer.Option(min=1, help="Number of pages.")] = 10_000,
    depth: Annotated[int, typer.Option(min=1, help="Documents of a page.")] = 10,
    users: Annotated[str, typer.Option(metavar="MODEL", help="How users click: pbm, trust, cascade or dbn.")] = "pbm",
    eta: Annotated[float, typer.Option(min=0, help="Strength of position bias: rank r is seen with (1/r)^eta.")] = 1.0,
    noise: Annotated[float, typer.Option(min=0, max=1, help="Chance of a click on an irrelevant document.")] = 0.1,
    temperature: Annotated[float, typer.Option(min=0, help="Randomness of rankings; 0: none.")] = 0.0,
    swaps: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the pages with a randomised swap of two documents.")
    ] = 0.0,
    seed: Seed = 0,
    missing: Missing = "zero",
) -> None:
    """Simulate a log of result pages and clicks on labelled lists."""
    check_writable(out, data, *(ranker or ()))
    from ranksieve import clicks as library
    from ranksieve.data.read import read
    from ranksieve.models.load import load

    labelled = read(data, missing=missing)
    show_waiting("hinge", "simulating")
    used = [load(one) for one in ranker] if ranker else library.logging_ranker(labelled, share=share, seed=seed)
    log = library.simulate(
        labelled, used, model=users, pages=pages, depth=depth, eta=eta, noise=noise, temperature=temperature,
        swaps=swaps, seed=seed,
    )  # fmt: skip
    library.write(log, out)
    show_facts([("log", f"{out}, {log_facts(log)}")])


for _command in (interleave, compare, estimate):
    GROUP.command(cls=Command)(_command)

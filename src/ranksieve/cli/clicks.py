"""`ranksieve clicks`: logs of result pages, from clicks to judgements, training data and comparisons."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranksieve.cli.command import SETTINGS, Command, Group
from ranksieve.cli.console import check_writable, show_facts, show_line, show_table, show_waiting
from ranksieve.cli.data_files import reads_data, write_data
from ranksieve.cli.model_file import check_model_file, save_model
from ranksieve.cli.options import is_flag, read_toml
from ranksieve.cli.shared_options import Missing, OutData, OutModel, ParamsFile, Seed, Threads, out_option
from ranksieve.errors import ParameterError
from ranksieve.parameter_table import canonical
from ranksieve.text_formats import counted

if TYPE_CHECKING:
    from ranksieve.clicks import ClickLog, Propensities

GROUP = typer.Typer(cls=Group, add_completion=False, no_args_is_help=True, **SETTINGS)

Log = Annotated[
    list[Path], typer.Argument(metavar="LOG...", help="Result pages: JSON Lines, Parquet, or OpenSearch's ubi_queries.")
]
Events = Annotated[list[Path] | None, typer.Option(metavar="FILE", help="OpenSearch's ubi_events, if LOG is UBI.")]
Actions = Annotated[str, typer.Option(metavar="NAMES", help="UBI: actions that count as clicks, with commas.")]
Depth = Annotated[int | None, typer.Option(min=1, help="Places of a page to read.", show_default="all")]
MinDwell = Annotated[float, typer.Option(min=0, help="Ignore clicks with fewer seconds of dwell time.")]
Given = Annotated[
    Path | None, typer.Option("--propensities", metavar="FILE", help="Propensities, as 'propensities' writes them.")
]
Shrinkage = Annotated[
    str,
    typer.Option(
        metavar="NUMBER|auto",
        help="Judgements: examinations that the mean of all documents counts for; auto estimates the distribution of "
        "relevance from the log.",
    ),
]
Clip = Annotated[float, typer.Option(min=0, max=1, help="Lowest propensity that is used.")]


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

    pages = _read(log, events, actions, depth, min_dwell)
    show_facts([("log", _facts(pages))])
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
        judged = library.judge(fitted, shrinkage=_shrinkage(shrinkage), levels=levels)
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

    pages = _read(log, events, actions, depth, min_dwell)
    found = library.propensities(pages, method)
    found.save(out)
    biases = ",".join(f"{bias:.4f}" for bias in found.biases)
    show_facts([("log", _facts(pages)), ("propensities", f"{out}, by {found.method}"), ("--position-biases", biases)])
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
    if by not in ("page", "query"):
        raise ParameterError(f"--by is {by!r}; expected page or query")
    check_writable(out, *log, data)
    from ranksieve import clicks as library
    from ranksieve.data.read import read

    pages, features = _read(log, events, actions, depth, min_dwell), read(data, missing=missing)
    if by == "page":
        made = library.page_lists(pages, features, _load(given), clip=clip, balance=balance)
    else:
        fitted = library.fit(pages, model, propensities=_load(given))
        judged = library.judge(fitted, shrinkage=_shrinkage(shrinkage), levels=levels)
        made = library.judged_lists(judged, features, others=others)
    write_data(made, out)
    show_facts([("log", _facts(pages)), ("data", f"{out}, {counted(list=made.n_queries, document=made.n_docs)}")])


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
    pages, features = _read(log, events, actions, depth, min_dwell), read(data, missing=missing)
    weights = _load(given) or library.propensities(pages)
    model = library.train(pages, features, weights, **chosen)
    save_model(model, out)
    show_facts(
        [
            ("log", _facts(pages)),
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
        list[Path] | None,
        typer.Option(metavar="MODEL", help="Model that ranks the pages.", show_default="a weak one"),
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
    show_facts([("log", f"{out}, {_facts(log)}")])


@GROUP.command(cls=Command)
def interleave(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="TREC run of ranking A.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="TREC run of ranking B.")],
    out: Annotated[Path, out_option("JSON Lines to write: a page per query, to be completed with clicks.")],
    method: Annotated[str, typer.Option(metavar="METHOD", help="team-draft or balanced.")] = "team-draft",
    depth: Annotated[int, typer.Option(min=1, help="Documents of a page.")] = 10,
    seed: Seed = 0,
) -> None:
    """Interleave two rankings of each query."""
    from ranksieve import clicks as library
    from ranksieve.clicks.reading import write_records
    from ranksieve.retrieval.runs import read_run

    methods = {"team-draft": library.team_draft, "balanced": library.balanced}
    if method not in methods:
        raise ParameterError(f"--method is {method!r}; expected one of {', '.join(methods)}")
    check_writable(out, run_a, run_b)
    rankings = [{id: docs.tolist() for id, docs, _ in read_run(one).lists()} for one in (run_a, run_b)]
    pages: list[dict[str, Any]] = []
    for number, query in enumerate(rankings[0] | rankings[1]):
        a, b = (ranking.get(query, []) for ranking in rankings)
        made = methods[method](a, b, depth=depth, seed=seed + number)
        teams = [{0: "a", 1: "b"}.get(team) for team in made.teams]
        pages.append({"query": query, "documents": made.documents, "clicks": [], "teams": teams})
    write_records(pages, out)
    show_facts([("pages", f"{out}, {len(pages):,}")])


@GROUP.command(cls=Command)
def compare(
    log: Log,
    samples: Annotated[int, typer.Option(min=100, help="Bootstrap samples.")] = 10_000,
    seed: Seed = 0,
) -> None:
    """Analyse a log of interleaved pages: which of two rankings do users prefer?"""
    from ranksieve import clicks as library

    found = library.preference(_read(log, None, "click", None, 0.0), samples=samples, seed=seed)
    needed = "unknown" if found.needed_pages is None else f"{found.needed_pages:,} pages with clicks"
    show_line(str(found))
    show_facts(
        [
            ("A wins", f"{found.wins_a:,}"),
            ("B wins", f"{found.wins_b:,}"),
            ("ties", f"{found.ties:,}"),
            ("without clicks", f"{found.without_clicks:,}"),
            ("needed", f"{needed} (80% chance of p < 0.05 for this preference)"),
        ]
    )


@GROUP.command(cls=Command)
@reads_data("data")
def estimate(
    log: Log,
    ranking: Annotated[
        Path, typer.Option(metavar="RUN|MODEL", help="New ranking: a TREC run, or a model, which needs --data.")
    ],
    given: Given = None,
    data: Annotated[
        Path | None, typer.Option("--data", "-d", help="Features of the documents, for a model as the ranking.")
    ] = None,
    metric: Annotated[str, typer.Option("--metric", "-m", metavar="METRIC", help="dcg, clicks or mrr.")] = "dcg",
    k: Annotated[int, typer.Option(min=1, help="Ranks that count.")] = 10,
    clip: Clip = 0.05,
    missing: Missing = "zero",
) -> None:
    """Estimate from a log of an old ranker how good a new ranking is."""
    from ranksieve import clicks as library
    from ranksieve.data.read import read
    from ranksieve.models.load import load
    from ranksieve.retrieval.runs import is_run, read_run

    weights = _load(given)
    if weights is None:
        raise ParameterError("--propensities is missing; estimate them with ranksieve clicks propensities")
    pages = _read(log, None, "click", None, 0.0)
    if is_run(ranking):
        run = read_run(ranking)
    elif data is None:
        raise ParameterError(f"--data is missing: {ranking} is a model, which ranks the documents of data")
    else:
        run = library.ranking_of(load(ranking), read(data, missing=missing))
    found = library.estimate(pages, run, weights, metric=metric, k=k, clip=clip)
    rows = (("new ranking", found.ips, found.ips_interval), ("self-normalised", found.snips, found.snips_interval))
    show_facts(
        [
            *((name, f"{found.metric} {value:.4f} in [{low:.4f}, {high:.4f}]") for name, value, (low, high) in rows),
            ("logged ranking", f"{found.metric} {found.logged:.4f}"),
            ("effective clicks", f"{found.effective_clicks:,.0f} of {found.clicks:,}"),
            ("clicks on documents not ranked", f"{found.not_ranked:,}"),
        ]
    )


def _read(log: list[Path], events: list[Path] | None, actions: str, depth: int | None, min_dwell: float) -> ClickLog:
    from ranksieve import clicks as library

    show_waiting("click_models", "reading the log")
    names = tuple(name.strip() for name in actions.split(",") if name.strip())
    return library.read(log, events or None, depth=depth, min_dwell=min_dwell, actions=names)


def _load(given: Path | None) -> Propensities | None:
    from ranksieve import clicks as library

    return None if given is None else library.Propensities.load(given)


def _shrinkage(text: str) -> float | str:
    """A number, or the word as it is, which `judge` checks."""
    try:
        return float(text)
    except ValueError:
        return text


def _facts(log: ClickLog) -> str:
    return counted(page=log.n_pages, query=log.n_queries, document=log.n_documents, click=log.n_clicks)

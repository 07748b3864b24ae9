"""`ranksieve clicks`: logs of result pages, from clicks to judgements, training data, models and comparisons."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranksieve.cli.click_comparisons import compare, estimate, interleave
from ranksieve.cli.click_options import (
    Clip,
    FeatureData,
    Given,
    LogArguments,
    PageDepth,
    Shrinkage,
    load_propensities,
    log_facts,
    ranking_facts,
    shrinkage_of,
)
from ranksieve.cli.command import SETTINGS, Command, CommandGroup, is_flag, option, takes_options
from ranksieve.cli.console import check_writable, show_facts, show_table, show_waiting
from ranksieve.cli.files import check_data_file, check_model_file, reads_data, save_model, write_data
from ranksieve.cli.options import read_toml
from ranksieve.cli.shared_options import Missing, OutData, OutModel, ParamsFile, Seed, Threads, out_option
from ranksieve.cli.training_data import warn_of_same_files
from ranksieve.errors import ParameterError, check_choice
from ranksieve.parameter_table import canonical
from ranksieve.text_formats import counted

if TYPE_CHECKING:
    from ranksieve.clicks import ClickLog, Propensities
    from ranksieve.data.dataset import Dataset
    from ranksieve.forest.model import TrainedModel

GROUP = typer.Typer(cls=CommandGroup, add_completion=False, no_args_is_help=True, **SETTINGS)


@GROUP.callback()
def clicks() -> None:
    """Use logs of clicks: fit click models, estimate propensities, make training data, compare rankings."""


@dataclass(frozen=True, kw_only=True)
class ClickFitArguments:
    model: str = option("pbm", "ctr, rctr, coec, pbm, trust, cascade, sdbn or dbn.", metavar="MODEL")
    prior: float = option(2.0, "Weight of the mean over all documents, in examinations.", min=0)
    holdout: float = option(0.2, "Share of the pages to measure the model on; 0: none.", min=0, max=0.9)
    qrels: Path | None = option(None, "TREC qrels to write, from all pages.", metavar="FILE")
    query_texts: Path | None = option(None, "Queries to write, id TAB text; qrels then have these ids.", metavar="FILE")
    levels: int | None = option(None, "Number of grades in qrels.", min=2, show_default="relevance from 0 to 1")
    shrinkage: Shrinkage = "10"
    least_confidence: float = option(0.0, "Qrels: leave out documents with less confidence.", min=0, max=1)
    seed: Seed = 0


@GROUP.command(cls=Command)
@takes_options
def fit(given: ClickFitArguments, source: LogArguments) -> None:
    """Fit a click model, measure it on held-out pages, and write judgements."""
    qrels, model, prior = given.qrels, given.model, given.prior
    for path in (qrels, given.query_texts):
        if path is not None:
            check_writable(path, *source.log)
    if given.query_texts is not None and qrels is None:
        raise ParameterError("--query-texts belongs to --qrels, which is missing; give both")
    from ranksieve import clicks as library

    pages = source.read()
    show_facts([("log", log_facts(pages))])
    if given.holdout:
        training, held_out = pages.split(1 - given.holdout, seed=given.seed)
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
        judged = library.judge(fitted, shrinkage=shrinkage_of(given.shrinkage), levels=given.levels)
        written = judged.write_qrels(qrels, queries=given.query_texts, least_confidence=given.least_confidence)
    columns = {"clicked": pages.by_place()[1] / pages.by_place()[0]}
    if fitted.examination is not None and fitted.examination[0] > 0:
        columns["examination"] = fitted.examination / fitted.examination[0]
    if given.holdout:
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
@takes_options
def propensities(
    source: LogArguments,
    out: Annotated[Path, out_option("JSON file to write.")],
    method: Annotated[
        str,
        typer.Option(
            metavar="METHOD",
            help="harvest (documents that stood at several ranks), swaps (randomised ones), or the click model pbm, "
            "trust or rctr.",
        ),
    ] = "harvest",
) -> None:
    """Estimate how likely each rank is examined."""
    check_writable(out, *source.log)
    from ranksieve import clicks as library

    pages = source.read()
    found = library.propensities(pages, method)
    found.save(out)
    biases = ",".join(f"{bias:.4f}" for bias in found.biases)
    show_facts(
        [("log", log_facts(pages)), ("propensities", f"{out}, by {found.method}"), ("--position-biases", biases)]
    )
    show_table(["rank", "propensity"], [[str(rank), f"{value:.4f}"] for rank, value in enumerate(found.values, 1)])


@dataclass(frozen=True, kw_only=True)
class ClickListArguments:
    data: FeatureData
    out: OutData
    by: str = option(
        "page",
        "One list per page, with clicks as labels and positions; or one per query, with judgements as labels.",
        metavar="page|query",
    )
    propensities: Given = None
    clip: Clip = 0.05
    model: str = option("pbm", "By query: click model that gives the judgements.", metavar="MODEL")
    levels: int | None = option(None, "By query: number of grades.", min=2, show_default="relevance from 0 to 1")
    shrinkage: Shrinkage = "10"
    others: bool = option(False, "By query: add documents that were never shown, with the lowest label.", "--others")
    balance: float | None = option(
        None, "By page: weight a document by 1 / (this number + how often it was shown for the query).", min=0,
        show_default="weights of 1",
    )  # fmt: skip
    missing: Missing = "zero"


@GROUP.command(cls=Command)
@reads_data("data")
@takes_options
def lists(given: ClickListArguments, source: LogArguments) -> None:
    """Make training data from a log and the features of its documents.

    By page, clicks are weighted by their inverse propensity if --propensities are given. If not, 'ranksieve train'
    learns the biases of the positions. By query, the model pbm uses --propensities, or estimates them.
    """
    check_choice("by", given.by, ("page", "query"))
    check_data_file(given.out, *source.log, given.data)
    from ranksieve import clicks as library
    from ranksieve.data.read import read

    pages = source.read()
    features, weights = read(given.data, missing=given.missing), load_propensities(given.propensities)
    if given.by == "page":
        made = library.page_lists(pages, features, weights, clip=given.clip, balance=given.balance)
    else:
        fitted = library.fit(pages, given.model, propensities=weights)
        judged = library.judge(fitted, shrinkage=shrinkage_of(given.shrinkage), levels=given.levels)
        made = library.judged_lists(judged, features, others=given.others)
    write_data(made, given.out)
    data_facts = f"{given.out}, {counted(list=made.n_queries, document=made.n_docs)}"
    show_facts([("log", log_facts(pages)), ("data", data_facts)])


@dataclass(frozen=True, kw_only=True)
class ClickTrainArguments:
    data: FeatureData
    out: OutModel
    propensities: Given = None
    test: list[Path] | None = option(None, "Other pages, such as a later log, to estimate the model on.", metavar="LOG")
    trees: int | None = option(
        None,
        "Largest number of trees in each of the six forests.",
        min=1,
        show_default="100 for pages, 400 for queries",
    )
    params: ParamsFile = None
    seed: Seed = 0
    threads: Threads = 0
    missing: Missing = "zero"


@GROUP.command(cls=Command)
@reads_data("data")
@takes_options
def train(context: typer.Context, given: ClickTrainArguments, source: LogArguments) -> None:
    """Train a model on a log and the features of its documents.

    The model is a mean of six forests. Five are trained on queries, with clicks per exposure as labels; each leaves out
    some queries for early stopping. One is trained on pages, with propensities as fixed biases. Without --propensities
    they are estimated from the log. --test estimates the model on other pages; on its own pages it looks better than it
    is.
    """
    check_model_file(given.out, *source.log, *(given.test or ()), given.data, is_forest=True)
    leakage = warn_of_same_files({"training": source.log, "test": given.test or ()})
    from ranksieve import clicks as library
    from ranksieve.data.read import read

    options: dict[str, Any] = {"seed": given.seed, "threads": given.threads}
    if given.trees is not None:
        options["trees"] = given.trees
    flags = {name: value for name, value in options.items() if is_flag(context, name)}
    chosen = options | (canonical(read_toml(given.params)[0]) if given.params else {}) | flags
    pages = source.read()
    features = read(given.data, missing=given.missing)
    weights = load_propensities(given.propensities) or library.propensities(pages)
    later = replace(source, log=given.test).read() if given.test else None  # a wrong file is refused before training
    model = library.train(pages, features, weights, **chosen)
    save_model(model, given.out)
    show_facts(
        [
            ("log", log_facts(pages)),
            ("propensities", f"{', '.join(f'{value:.3g}' for value in weights.values)}, by {weights.method}"),
            ("model", f"{given.out}, {model.size}"),
            *([] if later is None else _quality(model, later, features, weights, leakage.get("test", ""))),
        ]
    )


def _quality(
    model: TrainedModel, pages: ClickLog, features: Dataset, weights: Propensities, leakage: str
) -> list[tuple[str, str]]:
    """What the clicks of other pages say about the model, and about the rankings that were shown there."""
    from ranksieve.clicks import estimate, ranking_of

    found = estimate(pages, ranking_of(model, features), weights)
    return [
        ("test", log_facts(pages) + leakage),
        *ranking_facts(found),
    ]


@dataclass(frozen=True, kw_only=True)
class ClickSimulateArguments:
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Documents with true labels.")]
    out: Annotated[Path, out_option("Log to write: Parquet if its name ends in .parquet, else JSON Lines.")]
    ranker: list[Path] | None = option(None, "Model that ranks the pages.", metavar="MODEL", show_default="a weak one")
    share: float = option(0.01, "Share of the queries that the weak ranker is trained on, without --ranker.")
    pages: int = option(10_000, "Number of pages.", min=1)
    depth: PageDepth = 10
    users: str = option("pbm", "How users click: pbm, trust, cascade or dbn.", metavar="MODEL")
    eta: float = option(1.0, "Strength of position bias: rank r is examined with probability (1/r)^eta.", min=0)
    noise: float = option(0.1, "Probability of a click on an irrelevant document that is examined.", min=0, max=1)
    temperature: float = option(0.0, "Randomness of rankings; 0: none.", min=0)
    swaps: float = option(0.0, "Share of the pages with a randomised swap of two documents.", min=0, max=1)
    seed: int = option(0, "Random seed of queries, pages and clicks; the weak ranker does not depend on it.", min=0)
    missing: Missing = "zero"


@GROUP.command(cls=Command)
@reads_data("data")
@takes_options
def simulate(given: ClickSimulateArguments) -> None:
    """Simulate a log of result pages and clicks on labelled lists."""
    check_writable(given.out, given.data, *(given.ranker or ()))
    from ranksieve import clicks as library
    from ranksieve.data.categories import check_no_categories
    from ranksieve.data.read import read
    from ranksieve.models.load import load

    labelled = read(given.data, missing=given.missing)
    if not given.ranker:
        check_no_categories(labelled.info, "the weak ranker, a RankSVM,", instead="give --ranker MODEL, or ")
    show_waiting("hinge", "simulating")
    if given.ranker:
        ranker: Any = [load(one) for one in given.ranker]
    else:
        ranker = library.logging_ranker(labelled, share=given.share)  # --seed changes what users do, not the ranker
    policy = library.LoggingPolicy(ranker, given.temperature, given.swaps)
    users = library.Users(given.users, given.eta, given.noise)
    log = library.simulate(labelled, policy, users, pages=given.pages, depth=given.depth, seed=given.seed)
    library.write(log, given.out)
    facts = [("log", f"{given.out}, {log_facts(log)}")]
    if not (given.temperature or given.swaps or len(given.ranker or ()) > 1):
        needed = "--temperature 0.3, --swaps 0.5 or a second --ranker"
        facts.append(("note", f"propensities cannot be estimated from this log; for that, add {needed}"))
    show_facts(facts)


for _command in (interleave, compare, estimate):
    GROUP.command(cls=Command)(_command)

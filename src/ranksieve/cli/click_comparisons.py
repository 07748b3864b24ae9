"""`ranksieve clicks interleave`, `compare` and `estimate`: which of two rankings is better, online or from a log."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ranksieve.cli.click_options import Clip, Given, Log, LogArguments, PageDepth, load_propensities, ranking_facts
from ranksieve.cli.command import option, takes_options
from ranksieve.cli.console import check_writable, show_facts, show_line, show_note
from ranksieve.cli.files import reads_data
from ranksieve.cli.shared_options import Missing, Seed, metric_option, out_option
from ranksieve.errors import DataError, ParameterError, check_choice


def interleave(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="TREC run of ranking A.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="TREC run of ranking B.")],
    out: Annotated[Path, out_option("JSON Lines to write: one page per query, without clicks.")],
    method: Annotated[str, typer.Option(metavar="METHOD", help="team-draft or balanced.")] = "team-draft",
    depth: PageDepth = 10,
    seed: Seed = 0,
) -> None:
    """Interleave two rankings of each query that is in both runs."""
    from ranksieve import clicks as library
    from ranksieve.clicks.reading import write_records
    from ranksieve.retrieval.runs import read_run

    methods = {"team-draft": library.team_draft, "balanced": library.balanced}
    check_choice("method", method, methods)
    check_writable(out, run_a, run_b)
    rankings = [{id: docs.tolist() for id, docs, _ in read_run(one).lists()} for one in (run_a, run_b)]
    common = [query for query in rankings[0] if query in rankings[1]]
    if not common:
        first, second = (next(iter(ranking)) for ranking in rankings)
        raise DataError(
            f"{run_a} and {run_b} have no query in common: got ids like {first!r} and {second!r}; interleave two runs "
            "of the same queries"
        )
    pages: list[dict[str, Any]] = []
    for number, query in enumerate(common):
        made = methods[method](*(ranking[query] for ranking in rankings), depth=depth, seed=seed + number)
        teams = [{0: "a", 1: "b"}.get(team) for team in made.teams]
        pages.append({"query": query, "documents": made.documents, "clicks": [], "teams": teams})
    write_records(pages, out)
    show_facts([("pages", f"{out}, {len(pages):,}")])
    if left_out := len(rankings[0] | rankings[1]) - len(common):
        show_note(f"queries that occur in only one run are left out: {left_out:,}")


def compare(
    log: Log, samples: Annotated[int, typer.Option(min=100, help="Bootstrap samples.")] = 10_000, seed: Seed = 0
) -> None:
    """Analyse a log of interleaved pages: which of two rankings do users prefer?"""
    from ranksieve import clicks as library

    found = library.preference(LogArguments(log=log).read(), samples=samples, seed=seed)
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


@dataclass(frozen=True, kw_only=True)
class EstimateArguments:
    log: Log
    ranking: Annotated[
        Path, typer.Option(metavar="RUN|MODEL", help="New ranking: a TREC run, or a model, which needs --data.")
    ]
    propensities: Given = None
    data: Path | None = option(None, "Features of the documents, for a model as the ranking.", "--data", "-d")
    metric: Annotated[str, metric_option("dcg, clicks or mrr.")] = "dcg"
    k: int = option(10, "Ranks that count.", min=1)
    clip: Clip = 0.05
    missing: Missing = "zero"


@reads_data("data")
@takes_options
def estimate(given: EstimateArguments) -> None:
    """Estimate from a log of an old ranker how good a new ranking is."""
    from ranksieve import clicks as library
    from ranksieve.data.other_files import RUN, other_file
    from ranksieve.data.read import read
    from ranksieve.models.load import load
    from ranksieve.retrieval.runs import read_run

    weights = load_propensities(given.propensities)
    if weights is None:
        raise ParameterError("--propensities is missing; estimate them with ranksieve clicks propensities")
    pages = LogArguments(log=given.log).read()
    if other_file(str(given.ranking)) == RUN:
        run = read_run(given.ranking)
    elif given.data is None:
        raise ParameterError(f"--data is missing: {given.ranking} is a model, which ranks the documents of data")
    else:
        run = library.ranking_of(load(given.ranking), read(given.data, missing=given.missing))
    found = library.estimate(pages, run, weights, metric=given.metric, k=given.k, clip=given.clip)
    show_facts(ranking_facts(found))

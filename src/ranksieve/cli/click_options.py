"""Options that the commands of `ranksieve clicks` share, and reading the log."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranksieve.cli.console import show_waiting
from ranksieve.text_formats import counted

if TYPE_CHECKING:
    from ranksieve.clicks import ClickLog, Estimate, Propensities

Log = Annotated[
    list[Path], typer.Argument(metavar="LOG...", help="Result pages: JSON Lines, Parquet, or OpenSearch's ubi_queries.")
]
Events = Annotated[
    list[Path] | None, typer.Option(metavar="FILE", help="OpenSearch's ubi_events, if LOG is its ubi_queries.")
]
Actions = Annotated[str, typer.Option(metavar="NAMES", help="UBI: actions that count as clicks, separated by commas.")]
PageDepth = Annotated[int, typer.Option(min=1, help="Documents of a page.")]
Depth = Annotated[int | None, typer.Option(min=1, help="Number of places of each page to read.", show_default="all")]
MinDwell = Annotated[float, typer.Option(min=0, help="Ignore clicks with fewer seconds of dwell time.")]
Given = Annotated[
    Path | None, typer.Option("--propensities", metavar="FILE", help="File that 'clicks propensities' has written.")
]
FeatureData = Annotated[
    Path, typer.Option("--data", "-d", help="Features of the documents, by query id and document id.")
]
Shrinkage = Annotated[
    str,
    typer.Option(
        metavar="NUMBER|auto",
        help="Judgements: weight of the mean over all documents, in examinations; auto estimates the distribution of "
        "relevance from the log.",
    ),
]
Clip = Annotated[float, typer.Option(min=0, max=1, help="Lowest propensity that is used.")]


@dataclass(frozen=True, kw_only=True)
class LogArguments:
    log: Log
    events: Events = None
    depth: Depth = None
    min_dwell: MinDwell = 0.0
    actions: Actions = "click"

    def read(self) -> ClickLog:
        from ranksieve import clicks as library

        show_waiting("click_models", "reading the log")
        names = tuple(name.strip() for name in self.actions.split(",") if name.strip())
        return library.read(self.log, self.events or None, depth=self.depth, min_dwell=self.min_dwell, actions=names)


def load_propensities(given: Path | None) -> Propensities | None:
    from ranksieve import clicks as library

    return None if given is None else library.Propensities.load(given)


def shrinkage_of(text: str) -> float | str:
    """A number, or the word as it is, which `judge` checks."""
    try:
        return float(text)
    except ValueError:
        return text


def ranking_facts(found: Estimate) -> list[tuple[str, str]]:
    """What a ranking would have reached, what was logged, and how far that can be trusted."""
    low, high = found.ips_interval
    per_document = "{:.4f} in [{:.4f}, {:.4f}]".format(found.snips, *found.snips_interval)
    return [
        ("new ranking", f"{found.metric} {found.ips:.4f} in [{low:.4f}, {high:.4f}] per page"),
        ("logged ranking", f"{found.metric} {found.logged:.4f} per page"),
        ("self-normalised", f"{per_document} per relevant document, on another scale"),
        ("effective clicks", f"{found.effective_clicks:,.0f} of {found.clicks:,}"),
        ("clicks on documents not ranked", f"{found.not_ranked:,}"),
    ]


def log_facts(log: ClickLog) -> str:
    return counted(page=log.n_pages, query=log.n_queries, document=log.n_documents, click=log.n_clicks)

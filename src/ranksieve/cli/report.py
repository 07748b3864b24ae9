"""`ranksieve report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ranksieve.cli.console import show_facts
from ranksieve.cli.shared_options import out_option


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder written by 'ranksieve experiment'.")],
    out: Annotated[Path | None, out_option("Folder for the report.", metavar="DIR", show_default="DIR/report")] = None,
) -> None:
    """Write a report on an experiment: tables and figures. Nothing is trained."""
    from ranksieve.experiments.results import Results
    from ranksieve.plots.style import without_display
    from ranksieve.report.write import write_report

    without_display()
    path = write_report(Results.open(folder), out)
    show_facts([("report", str(path)), ("figures", str(len(list((path.parent / "figures").glob("*.svg")))))])

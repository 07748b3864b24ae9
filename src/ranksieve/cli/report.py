"""`ranksieve report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ranksieve.cli.console import show_facts
from ranksieve.cli.shared_options import out_option


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder that ranksieve experiment --out wrote.")],
    out: Annotated[Path | None, out_option("Folder for the report.", metavar="DIR", show_default="DIR/report")] = None,
) -> None:
    """Make tables and figures from the stored cells of an experiment; nothing is trained."""
    from ranksieve.experiments.results import Results
    from ranksieve.plots.canvas import without_display
    from ranksieve.report.write import write_report

    without_display()
    path = write_report(Results.open(folder), out)
    show_facts([("report", str(path)), ("figures", str(len(list((path.parent / "figures").glob("*.svg")))))])

"""`ranksieve bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ranksieve.cli.console import show_table
from ranksieve.cli.data_files import reads_data


@reads_data("data")
def bench(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file.")],
    data: Annotated[
        Path | None, typer.Argument(metavar="DATA", help="Documents to score; random ones without it.")
    ] = None,
    threads: Annotated[int, typer.Option(min=0, help="Threads; 0: all cores.")] = 0,
) -> None:
    """Measure how fast a model scores, beside every other scorer that is installed."""
    from ranksieve.data.read import read
    from ranksieve.forest.bench import bench as measure
    from ranksieve.forest.formats.files import load_forest

    forest = load_forest(model)
    documents = None if data is None else read(data, missing=str(forest.info.get("missing", "zero")))
    rows = measure(forest, documents, threads=threads or None)
    show_table(
        ["scorer", "µs per document", "× ours", "largest difference", "agrees"],
        [
            [row["name"], f"failed: {row['failed']}", "", "", ""]
            if "failed" in row
            else [
                row["name"],
                f"{row['us_per_doc']:.3f}",
                f"{row['ratio']:.2f}",
                f"{row['max_difference']:.1e}",
                "yes" if row["agrees"] else "no",
            ]
            for row in rows
        ],
    )

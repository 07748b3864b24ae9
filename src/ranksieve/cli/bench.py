"""`ranksieve bench`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranksieve.cli.console import show_line, show_table, show_waiting
from ranksieve.cli.data_files import reads_data
from ranksieve.cli.shared_options import ModelArgument, Threads
from ranksieve.text_formats import counted

if TYPE_CHECKING:
    from ranksieve.data.dataset import Dataset


@reads_data("data")
def bench(
    model: ModelArgument,
    data: Annotated[
        Path | None, typer.Argument(metavar="DATA", help="Documents to score; random ones if omitted.")
    ] = None,
    threads: Threads = 0,
) -> None:
    """Measure the scoring time of a model, in ranksieve and in every other scorer that is installed."""
    from ranksieve.forest.bench import PEERS, absent
    from ranksieve.forest.bench import bench as measure
    from ranksieve.forest.formats.model_files import load_forest
    from ranksieve.forest.score_file import open_for, read_for

    forest = load_forest(model)
    show_waiting("scoring", "timing the scorers")
    documents = None if data is None else read_for(forest, str(model), open_for(data, {str(model): forest}, None))
    rows = measure(forest, documents, threads=threads or None)
    show_table(
        ["scorer", "µs per document", "× ranksieve", "largest difference", "agrees"],
        [
            [
                row["name"],
                f"{row['us_per_doc']:.3f}",
                f"{row['ratio']:.2f}",
                f"{row['max_difference']:.1e}",
                "yes" if row["agrees"] else "no",
            ]
            for row in rows
            if "failed" not in row
        ],
    )
    notes = [f"{row['name']} failed: {row['failed']}" for row in rows if "failed" in row]
    missing = {name: absent(name) for name in PEERS if name not in {row["name"] for row in rows}}
    if missing:
        names = (name if name in lacks else f"{name} (lacks {', '.join(lacks)})" for name, lacks in missing.items())
        notes.append(f"not installed: {', '.join(names)}")
    for line in (_documents(documents), *notes):
        show_line(line)


def _documents(documents: Dataset | None) -> str:
    """A line about the documents that were scored."""
    from ranksieve.forest.bench import MOST_DOCUMENTS, RANDOM_DOCUMENTS

    if documents is None:
        return f"scored: {RANDOM_DOCUMENTS:,} random documents, with values around the model's thresholds"
    if documents.n_docs > MOST_DOCUMENTS:
        return f"scored: the first {MOST_DOCUMENTS:,} of {counted(document=documents.n_docs)}"
    return f"scored: {counted(document=documents.n_docs)}"

"""`write_report`: tables and figures of an experiment as one HTML page, and as Markdown with SVG files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ranksieve.errors import DataError
from ranksieve.experiments.results import Results
from ranksieve.files import atomic_path
from ranksieve.report.figures import figures
from ranksieve.report.page import page
from ranksieve.report.size_tables import by_size, speed
from ranksieve.report.tables import Table, all_cells, comparison, data_table, mutual_tests, share_table, tuned_table

FOLDER = "report"
SVG: Any = {"svg.fonttype": "none", "svg.hashsalt": "ranksieve"}  # text stays text; equal input, equal file
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))  # equal for all versions of matplotlib


def write_report(results: Results, out: str | os.PathLike[str] | None = None) -> Path:
    """Write `report.html`, and `report.md` with its figures, into a folder (default: `report` in the experiment's).

    Returns the path of the HTML page, which needs no other file. Nothing is trained, and no code of the specification
    is run: the report shows what the cells stored.
    """
    folder = results.folder / FOLDER if out is None else Path(out)
    try:
        (folder / "figures").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder}: cannot be made ({error.strerror}); choose another folder") from error
    pictures = []
    for picture in figures(results):
        _save(picture.figure, folder / "figures" / f"{picture.name}.svg")
        pictures.append(picture)
    head, foot, found = _head(results), _made_with(results), list(tables(results))
    shown = [f"![{one.title}](figures/{one.name}.svg)\n\n*{one.title}.* {one.caption}" for one in pictures]
    parts = [head, *(table.markdown() for table in found), *shown, data_table(results).markdown(), foot]
    with atomic_path(folder / "report.md") as path:
        path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    drawn = [(one, (folder / "figures" / f"{one.name}.svg").read_text(encoding="utf-8")) for one in pictures]
    with atomic_path(folder / "report.html") as path:
        path.write_text(page(results, head, foot, found, drawn), encoding="utf-8")
    return folder / "report.html"


def tables(results: Results) -> Iterator[Table]:
    """Every table of the specification, and all cells."""
    wanted = results.facts["figures"]
    if results.facts["tuned"]:
        yield tuned_table(results)
    for data in results.data:
        if "table" in wanted:
            yield comparison(results, data)
        if "tests" in wanted:
            yield from (mutual_tests(results, data, metric) for metric in results.facts["metrics"])
        if "by-size" in wanted:
            yield from by_size(results, data)
        if "speed" in wanted:
            yield speed(results, data)
        if "shares" in wanted and results.groups(
            data, results.facts["baseline"]
        ):  # else there is nothing to compare with
            yield share_table(results, data)
        yield all_cells(results, data)


def _save(figure: Any, path: Path) -> None:
    import matplotlib
    from matplotlib import pyplot

    with atomic_path(path) as temporary, matplotlib.rc_context(SVG):
        figure.savefig(temporary, format="svg", metadata=NO_METADATA)
    pyplot.close(figure)


def _head(results: Results) -> str:
    facts = results.facts
    lines = [f"# {facts['title']}"]
    if facts["about"]:
        lines.append(facts["about"].strip())
    if facts["quick"]:
        lines.append("Quick size: it shows that everything works, not which run is best.")
    if results.unfinished:
        lines.append(f"Unfinished: {len(results.unfinished)} of {len(facts['cells'])} models are missing.")
    return "\n\n".join(lines)


def _made_with(results: Results) -> str:
    facts = results.facts
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    conventions = "; ".join(results.cells[0].facts["conventions"])
    began = min(cell.facts["began"] for cell in results.cells)
    return f"Started {began}, with {versions}. {conventions}."

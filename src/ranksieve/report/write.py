"""`write_report`: tables and figures of an experiment as one HTML page, and as Markdown with SVG files."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from ranksieve.errors import DataError
from ranksieve.experiments.results import Results
from ranksieve.files import atomic_path
from ranksieve.report.explorer import MOST_QUERIES, explorer_data
from ranksieve.report.figures import Picture, figures
from ranksieve.report.result_tables import (
    ReportTable,
    all_cells,
    comparison,
    data_table,
    mutual_tests,
    share_table,
    tuned_table,
)
from ranksieve.report.size_tables import by_size, speed

MOST_COLUMNS = 4  # so many columns fit a phone's screen; wider tables become lists there
FOLDER = "report"
SVG: Any = {"svg.fonttype": "none", "svg.hashsalt": "ranksieve"}  # text stays text; equal input, equal file
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))  # equal for all versions of matplotlib


def page(
    results: Results, head: str, foot: str, tables: Iterable[ReportTable], pictures: Iterable[tuple[Picture, str]]
) -> str:
    """The whole page. `head` and `foot` (how it was made) are plain text; `pictures` come with their SVG texts."""
    title, *about = head.split("\n\n")
    title = title.removeprefix("# ")
    explorable = explorer_data(results)
    sections = {
        "Tables": "".join(map(_table, tables)),
        "Figures": "".join(_figure(picture, svg) for picture, svg in pictures),
        "Queries": _explorer(results.facts["metrics"][0]) if explorable else "",
        "What was run": _table(data_table(results)) + _settings(results),
    }
    shown = {name: body for name, body in sections.items() if body}
    links = "".join(f'<a href="#{_anchor(name)}">{name}</a>' for name in shown)
    body = "".join(f'<section id="{_anchor(name)}"><h2>{name}</h2>{body}</section>' for name, body in shown.items())
    data = json.dumps(explorable, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")  # no tag begins
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_asset('page.css')}</style></head><body><header><h1>{html.escape(title)}</h1>"
        f"{''.join(f'<p>{html.escape(text)}</p>' for text in about)}"
        f'<p class="quiet">{html.escape(foot)}</p><nav>{links}</nav></header>'
        f"<main>{body}</main>"
        f'<script type="application/json" id="explorer-data">{data}</script>'
        f"<script>{_asset('page.js')}</script></body></html>\n"
    )


def _asset(name: str) -> str:
    return resources.files("ranksieve.report").joinpath("assets", name).read_text(encoding="utf-8")


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")


def _table(table: ReportTable) -> str:
    heads = "".join(
        f'<th scope="col"><button type="button">{_text(name) or "run"}</button></th>' for name in table.columns
    )
    many = len(table.columns) > MOST_COLUMNS
    names = [f' data-name="{_text(name)}"' if many else "" for name in table.columns]
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td{names[place]}>{_text(value.text)}</td>"
            if value.number is None
            else f'<td{names[place]} data-number="{value.number!r}">{_number(value.text)}</td>'
            for place, value in enumerate(row)
        )
        + "</tr>"
        for row in table.rows
    )
    note = f'<p class="quiet">{_text(table.note)}</p>' if table.note else ""
    return (
        f'<h3>{_text(table.title)}</h3><div class="wide"><table class="sortable{" many" * many}" '
        f'aria-label="{_text(table.title)}">'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>{note}"
    )


def _text(markdown: str) -> str:
    """Text of a table, whose stars are escaped for Markdown."""
    return html.escape(markdown.replace("\\*", "*"))


def _number(markdown: str) -> str:
    """The same for a number; its interval stands below it where the table has many columns."""
    return re.sub(r" (\[[^]]*\])$", r' <span class="aside">\1</span>', _text(markdown))


def _figure(picture: Picture, svg: str) -> str:
    """An SVG file's picture without the metadata; its ids are made unique in the page."""
    drawing = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    mark = re.sub(r"\W+", "-", picture.name.lower()).strip("-")
    drawing = re.sub(r'\bid="([^"]+)"', rf'id="{mark}-\1"', drawing)
    drawing = re.sub(r'(href="#|url\(#)', rf"\1{mark}-", drawing)
    title, caption = html.escape(picture.title), html.escape(picture.caption)
    return f"<figure><h3>{title}</h3>{drawing}<figcaption>{caption}</figcaption></figure>"


def _explorer(metric: str) -> str:
    name = html.escape(metric)
    heads = ("query", "difference", "", "", "documents", "positives")  # the script fills in the models' names
    return (
        f'<div id="explorer"><p class="quiet">{name} of two models by query, and their rankings of the chosen query: '
        f"the best documents and all positives. At most {MOST_QUERIES} queries of each data set are shown, those on "
        "which models differ most.</p>"
        '<div class="choices"><label>data <select name="data"></select></label>'
        '<label>first model <select name="first"></select></label>'
        '<label>second model <select name="second"></select></label>'
        '<label>query <input name="find" type="search" placeholder="part of the query id"></label></div>'
        '<div class="queries wide"><table class="sortable"><thead><tr>'
        + "".join(f'<th scope="col"><button type="button">{text}</button></th>' for text in heads)
        + '</tr></thead><tbody></tbody></table></div><div class="sides"></div></div>'
    )


def _settings(results: Results) -> str:
    """The settings of every run, and the specification."""
    items = []
    for data in results.data:
        for group in results.groups(data):
            settings = group.first.settings
            given = json.dumps(settings, ensure_ascii=False, indent=1)
            title = html.escape(f"{group.label} on {data}")
            items.append(f"<details><summary>{title}</summary><pre>{html.escape(given)}</pre></details>")
    spec = html.escape((results.folder / "spec.toml").read_text(encoding="utf-8"))
    return f"{''.join(items)}<details><summary>specification</summary><pre>{spec}</pre></details>"


def write_report(results: Results, out: str | os.PathLike[str] | None = None) -> Path:
    """Write `report.html`, and `report.md` with its figures, into a folder (default: `report` in the experiment's).

    Returns the path of the HTML page, which needs no other file. Nothing is trained, and no code of the specification
    is run: the report shows what the cells stored.
    """
    folder = results.folder / FOLDER if out is None else Path(out)
    try:
        (folder / "figures").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder}: cannot be created ({error.strerror}); choose another folder") from error
    pictures = []
    for picture in figures(results):
        _save(picture.figure, folder / "figures" / f"{picture.name}.svg")
        pictures.append(picture)
    head, foot, found = _head(results), _versions_text(results), list(tables(results))
    shown = [f"![{one.title}](figures/{one.name}.svg)\n\n*{one.title}.* {one.caption}" for one in pictures]
    parts = [head, *(table.markdown() for table in found), *shown, data_table(results).markdown(), foot]
    with atomic_path(folder / "report.md") as path:
        path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    drawn = [(one, (folder / "figures" / f"{one.name}.svg").read_text(encoding="utf-8")) for one in pictures]
    with atomic_path(folder / "report.html") as path:
        path.write_text(page(results, head, foot, found, drawn), encoding="utf-8")
    return folder / "report.html"


def tables(results: Results) -> Iterator[ReportTable]:
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
    lines += facts.get("notes", [])
    if results.unfinished:
        lines.append(f"Unfinished: {len(results.unfinished)} of {len(facts['cells'])} models are missing.")
    return "\n\n".join(lines)


def _versions_text(results: Results) -> str:
    facts = results.facts
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    conventions = "; ".join(results.cells[0].facts["conventions"])
    began = min(cell.facts["began"] for cell in results.cells)
    return f"Started {began}, with {versions}. {conventions}."

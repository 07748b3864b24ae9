"""The HTML report in a real browser: it runs without an error, tables sort, the explorer follows its choices."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import matplotlib
import pytest

from ranksieve.experiments.read_spec import load_spec
from ranksieve.experiments.results import Results
from ranksieve.experiments.run import run_experiment
from ranksieve.experiments.spec import find_spec
from ranksieve.report import explorer
from ranksieve.report.result_tables import ReportTable, TableCell
from ranksieve.report.write import _asset, _table, write_report

matplotlib.use("agg")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

# what a reader does, and what there is to see after it; put behind the page's own script
ACTIONS = """
const seen = { errors: window.failures };
const column = (table, place) => [...table.tBodies[0].rows].map((row) => Number(row.cells[place].dataset.number));
const table = document.querySelector("table.sortable");
const button = table.querySelectorAll("th button")[1];
button.click(); seen.descending = column(table, 1);
button.click(); seen.rising = column(table, 1);
const root = document.getElementById("explorer");
const pick = (name) => root.querySelector(`[name=${name}]`);
const sides = () => [...root.querySelectorAll(".sides caption")].map((node) => node.textContent);
seen.start = sides();
seen.second = [...pick("second").options].map((option) => option.text);
seen.differences = column(root.querySelector(".queries table"), 1);
pick("first").value = "1"; pick("first").dispatchEvent(new Event("change"));
seen.changed = sides();
seen.heads = [...root.querySelectorAll(".queries th button")].map((node) => node.textContent);
const last = [...root.querySelectorAll(".queries tbody tr")].at(-1);
last.click(); seen.chosen = last.classList.contains("chosen");
seen.rows = root.querySelectorAll(".sides tbody tr").length;
pick("find").value = "no such query"; pick("find").dispatchEvent(new Event("input"));
seen.none = root.querySelector(".sides").textContent;
seen.scrolled = [...document.querySelectorAll(".wide")].filter((box) => box.scrollWidth > box.clientWidth).length;
seen.width = document.documentElement.scrollWidth;
const out = document.createElement("pre"); out.id = "seen"; out.textContent = JSON.stringify(seen);
document.body.append(out);
"""
WATCH = "<script>window.failures = []; window.onerror = (text) => { window.failures.push(text); };</script>"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    return write_report(run_experiment(load_spec(find_spec("table2"), quick=True), folder / "results", jobs=1))


def test_the_page_needs_nothing_else(page):
    text = page.read_text(encoding="utf-8")
    assert not re.search(r'(src|href)="(?!#)', re.sub(r'xlink:href="#', "", text))
    assert not re.search(r"@import|url\(['\"]?http", text)
    names = re.findall(r'\bid="([^"]+)"', text.split("<script")[0])
    assert len(names) == len(set(names))


def in_browser(text: str, folder: Path, width: int, actions: str = ACTIONS) -> Any:
    """What there is to see after the actions of a reader."""
    text = text.replace("<head>", f"<head>{WATCH}").replace("</body>", f"<script>{actions}</script></body>")
    (folder / "page.html").write_text(text, encoding="utf-8")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900", "--dump-dom"]
    shown = subprocess.run([*command, (folder / "page.html").as_uri()], capture_output=True, timeout=120, check=True)
    return json.loads(html.unescape(re.search(r'<pre id="seen">(.*?)</pre>', shown.stdout.decode())[1]))


@pytest.fixture
def hostile(page, monkeypatch):
    """A page whose documents and queries have markup in their ids."""
    results = Results.open(page.parent.parent)
    plain = explorer.explorer_data(results)
    for data in plain:
        for query in data["queries"]:
            query["name"] += "</script><img src=x onerror=alert(1)>"
        for model in data["models"]:
            for documents in model["documents"]:
                for document in documents:
                    document[-1] = f"{document[-1]}<!--<script>"
    monkeypatch.setattr("ranksieve.report.write.explorer_data", lambda results: plain)
    return write_report(results, page.parent / "hostile").read_text(encoding="utf-8"), plain


def test_ids_with_markup_stay_text(hostile):
    text, plain = hostile
    data = re.search(r'<script type="application/json" id="explorer-data">(.*?)</script>', text)[1]
    assert "<" not in data
    assert json.loads(data) == plain


@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
def test_the_explorer_shows_ids_with_markup(hostile, tmp_path):
    seen = in_browser(hostile[0], tmp_path, 1280)
    assert seen["errors"] == [] and seen["rows"] > 20


@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_works_in_a_browser(page, tmp_path, width):
    seen = in_browser(page.read_text(encoding="utf-8"), tmp_path, width)
    assert seen["errors"] == []
    assert seen["descending"] == sorted(seen["descending"], reverse=True) and seen["rising"] == seen["descending"][::-1]
    assert seen["start"] == ["SelGB", "λ-MART 500"]
    assert seen["differences"] == sorted(seen["differences"], reverse=True)
    assert seen["changed"] == [seen["second"][1], "λ-MART 500"]
    assert seen["heads"] == ["query", "difference", *seen["changed"], "documents", "positives"]
    assert seen["chosen"] and seen["rows"] > 20
    assert "No query" in seen["none"]
    assert seen["scrolled"] == 0
    assert seen["width"] <= max(width, 500)  # a browser's window has a smallest width; nothing makes the page wider


@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
def test_a_comparison_at_three_sizes_fits_a_page(tmp_path):
    names = ["ndcg@10", "ndcg@10, first 50 trees", "ndcg@10, first 100 trees"]
    row = [
        part
        for _ in names
        for part in (TableCell("0.5973\\*", 0.5973), TableCell("+4.6% [-12.1, +11.3]", 4.6), TableCell("0.1764", 0.2))
    ]
    columns = ("", "trees", *(part for name in names for part in (name, "difference", "p")))
    table = ReportTable("ndcg@10", columns, ((TableCell("SelGB, half the trees"), TableCell("1,000", 1000.0), *row),))
    script = """const box = document.querySelector(".wide"), out = document.createElement("pre"); out.id = "seen";
out.textContent = JSON.stringify([box.scrollWidth, box.clientWidth]); document.body.append(out);"""
    text = f"<html><head><style>{_asset('page.css')}</style></head><body>{_table(table)}</body></html>"
    seen = in_browser(text, tmp_path, 1280, script)
    assert seen[0] == seen[1] > 1000

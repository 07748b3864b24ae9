"""Reports of experiments: every shipped specification at its quick size, its tables and figures."""

from __future__ import annotations

import re

import matplotlib
import numpy as np
import pytest

import ranksieve as rs
from ranksieve.experiments.read_spec import SHIPPED, find_spec, load_spec
from ranksieve.experiments.results import Results
from ranksieve.experiments.run import run_experiment
from ranksieve.report.tables import comparison, share_table
from ranksieve.report.write import write_report

matplotlib.use("agg")
NAMES = sorted(path.stem for path in next(folder for folder in SHIPPED if folder.is_dir()).glob("*.toml"))
N_FIGURES = {"fig1": 2, "static": 2, "undersampling": 5, "efficiency": 2, "selections": 3}


@pytest.fixture(scope="module")
def run_quick(tmp_path_factory):
    """The results of a shipped specification at quick size, run once."""
    folder, known = tmp_path_factory.mktemp("quick"), {}

    def run(name: str) -> Results:
        if name not in known:
            known[name] = run_experiment(load_spec(find_spec(name), quick=True), folder / name, jobs=1)
        return known[name]

    return run


@pytest.mark.parametrize("name", NAMES)
def test_every_shipped_spec_runs_and_reports(name, run_quick):
    results = run_quick(name)
    assert results.unfinished == []
    page = write_report(results)
    path = page.with_name("report.md")
    text = path.read_text(encoding="utf-8")
    shown = re.findall(r"\]\((figures/[^)]*\.svg)\)", text)
    assert len(shown) == N_FIGURES.get(name, 1)
    for figure in shown:
        svg = (path.parent / figure).read_text(encoding="utf-8")
        assert svg.startswith("<?xml") and "<text" in svg  # text that can be read and searched
    for group in results.groups(results.data[0]):
        assert group.label in text
    html = page.read_text(encoding="utf-8")
    assert html.count("<figure>") == len(shown) and "http://" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", html)
    assert not matplotlib.pyplot.get_fignums()


def test_the_comparison_is_the_randomization_test(run_quick):
    results = run_quick("table2")
    table = comparison(results, "two-stage")
    rows = {row[0].text: row for row in table.rows}
    by_run = {group.run: group for group in results.best("two-stage")}
    ours, theirs = (by_run[name].per_query("ndcg@10")[1] for name in ("SelGB", "λ-MART 500"))
    test = rs.randomization_test(ours, theirs)
    assert table.columns[1] == "6 trees"
    mean, difference, interval = rows["SelGB"][4:7]
    assert mean.number == pytest.approx(np.nanmean(ours))
    assert difference.text == f"{test.relative:+.1f}%"
    assert mean.text.endswith("*") == (test.p_value <= 0.05)
    low, high = rs.paired_t_test(ours, theirs).interval
    assert interval.text == f"[{low:+.4f}, {high:+.4f}]"
    assert rows["λ-MART 500"][5].text == ""


def test_smallest_shares_are_of_the_full_set(run_quick):
    results = run_quick("undersampling")
    table = share_table(results, "two-stage")
    assert [row[0].text for row in table.rows] == ["random", "ascending", "descending"]
    full = results.groups("two-stage", "full")[0].value("avg-ndcg@10")
    random = {g.share: g.value("avg-ndcg@10") for g in results.groups("two-stage", "random")}
    reached = min([share for share, value in random.items() if value >= 0.9 * full] or [1.0])
    assert table.rows[0][1].number == pytest.approx(reached)
    assert table.markdown().startswith("**Smallest share")


def test_an_unfinished_experiment_says_so(run_quick, tmp_path):
    results = run_quick("fig4")
    part = Results(results.folder, results.facts, results.cells[:3])
    text = write_report(part, tmp_path / "part").read_text(encoding="utf-8")
    assert "Unfinished: 5 of 8 cells are missing" in text

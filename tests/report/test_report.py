"""Reports of experiments: every shipped specification at its quick size, its tables and figures."""

from __future__ import annotations

import re

import matplotlib
import numpy as np
import pytest

import ranksieve as rs
from naive_experiments import smallest_size
from ranksieve.experiments.read_spec import load_spec
from ranksieve.experiments.results import Results
from ranksieve.experiments.run import run_experiment
from ranksieve.experiments.spec import SHIPPED, find_spec
from ranksieve.report.figures import figures
from ranksieve.report.result_tables import comparison, share_table
from ranksieve.report.size_tables import by_size, speed
from ranksieve.report.write import write_report

matplotlib.use("agg")
NAMES = sorted(path.stem for path in next(folder for folder in SHIPPED if folder.is_dir()).glob("*.toml"))
N_FIGURES = {"fig1": 2, "static": 2, "undersampling": 5, "undersampling-ranksvm": 5, "oc": 2,
             "efficiency": 2, "selections": 3, "xcleaver": 3, "removed": 3,
             "rounds": 4, "bases": 2}  # fmt: skip


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
    test = rs.significance.randomization_test(ours, theirs)
    names = ("difference", "p")
    assert table.columns == ("", "trees", "ndcg@10", *names, "ndcg@10, first 6 trees", *names)
    mean, difference, p_value = rows["SelGB"][2:5]
    assert mean.number == pytest.approx(np.nanmean(ours))
    low, high = 100 * np.array(rs.significance.paired_t_test(ours, theirs).interval) / np.nanmean(theirs)
    assert difference.text == f"{test.relative:+.1f}% [{low:+.1f}, {high:+.1f}]"
    assert mean.text.endswith("*") == (test.p_value <= 0.05)
    assert p_value.number == test.p_value and p_value.text == f"{test.p_value:.4f}"
    assert rows["λ-MART 500"][3].text == rows["λ-MART 500"][4].text == ""


def test_stages_that_are_the_whole_model_are_left_out(tmp_path):
    spec = load_spec(find_spec("table2"), quick=True, params={"trees": 5})
    results = run_experiment(spec, tmp_path / "small", jobs=1)
    assert results.facts["stages"] == [6]
    assert comparison(results, "two-stage").columns == ("", "trees", "ndcg@10", "difference", "p")


def test_rankers_that_grow_several_trees_a_round_do_not_stretch_the_axis(run_quick):
    (picture,) = figures(run_quick("peers"))
    (ax,) = picture.figure.axes
    matplotlib.pyplot.close("all")
    assert ax.get_xlabel() == "trees (McRank: rounds of 5 trees)"
    assert max(line.get_xdata()[-1] for line in ax.lines) == 12
    assert len({line.get_color() for line in ax.lines}) == len(ax.lines) == 10


def test_a_single_run_has_no_explorer(run_quick):
    text = write_report(run_quick("fig7")).read_text(encoding="utf-8")
    assert 'id="explorer"' not in text and "#queries" not in text
    assert 'id="explorer"' in write_report(run_quick("table2")).read_text(encoding="utf-8")


def test_the_caption_names_the_dashed_line(run_quick):
    captions = {picture.name: picture.caption for picture in figures(run_quick("table2"))}
    matplotlib.pyplot.close("all")
    assert captions["curves-two-stage"].endswith("The dark dashed line is λ-MART 500, the baseline.")


def test_the_caption_of_list_sizes_names_the_better_model(run_quick):
    results = run_quick("fig6")
    captions = [picture.caption for picture in figures(results) if picture.name.startswith("sizes")]
    matplotlib.pyplot.close("all")
    (label,) = {group.label for group in results.best("two-stage") if group.run == results.facts["compare"][0]}
    assert len(captions) == 1 and f"; above 0 {label} is better." in captions[0]


def test_one_run_alone_is_compared_with_its_best_choice(run_quick):
    results = run_quick("fig1")
    table = comparison(results, "two-stage")
    assert len(table.rows) == 10
    best = max(results.groups("two-stage"), key=lambda group: group.valid)
    assert table.title.endswith(f"against {best.label}")
    assert [row[0].text for row in table.rows if row[3].text == ""] == [best.label]


def test_smallest_shares_are_of_the_full_set(run_quick):
    results = run_quick("undersampling")
    table = share_table(results, "two-stage")
    assert [row[0].text for row in table.rows] == ["random", "ascending", "descending"]
    full = results.groups("two-stage", "full")[0].value("avg-ndcg@10")
    random = {g.share: g.value("avg-ndcg@10") for g in results.groups("two-stage", "random")}
    reached = min([share for share, value in random.items() if value >= 0.9 * full] or [1.0])
    assert table.rows[0][1].number == pytest.approx(reached)
    assert table.markdown().startswith("**Smallest share")


def test_an_unfinished_experiment_is_marked(run_quick, tmp_path):
    results = run_quick("fig4")
    part = Results(results.folder, results.facts, results.cells[:3])
    text = write_report(part, tmp_path / "part").read_text(encoding="utf-8")
    assert "Unfinished: 5 of 8 models are missing" in text


def test_sizes_are_held_against_the_forest_that_was_pruned(run_quick):
    results = run_quick("pruning")
    (table,) = by_size(results, "two-stage")  # the first 100, 500 and 1,000 trees are all 10
    assert table.title.endswith("pruned from 10 trees of λ-MART") and table.columns[1:5] == ("5", "7", "10", "all")
    note = "λ-MART grows at most 10 trees; all are pruned in place of its first 100, 500, 1,000."
    assert write_report(results).with_name("report.md").read_text(encoding="utf-8").count(note) == 1
    rows = {row[0].text: row for row in table.rows}
    groups = {group.label: group for group in results.groups("two-stage")}
    full = groups["λ-MART"].per_query("ndcg@10")[1]
    found = {n: groups[f"pruned, rate {rate}, strategy skip"] for n, rate in ((5, 0.5), (7, 0.3))}
    values = {n: group.per_query("ndcg@10")[1] for n, group in found.items()}
    smallest = smallest_size(values, full)
    row = rows["pruned, strategy skip"]
    assert row[1].number == pytest.approx(found[5].value("ndcg@10"))
    assert row[5].number == smallest and row[6].text == f"{1 - smallest / 10:.0%}"
    assert row[7].number == rs.significance.randomization_test(values[smallest], full).p_value
    assert row[1].text.endswith("*") == (smallest == 5)


def test_forests_are_drawn_by_their_size(run_quick):
    (picture,) = figures(run_quick("pruning"))
    (ax,) = picture.figure.axes
    matplotlib.pyplot.close("all")
    (table,) = by_size(run_quick("pruning"), "two-stage")
    assert picture.title == table.title
    for line, row in zip(ax.lines, table.rows, strict=True):
        whole = row[4].text.rpartition("(")[2].rstrip(")")  # the number of all trees, after the value
        cells = zip((*table.columns[1:4], whole), row[1:5], strict=True)
        values = {int(trees): cell.number for trees, cell in cells if cell.number is not None}
        assert line.get_label() == row[0].text
        assert dict(zip(line.get_xdata().tolist(), line.get_ydata().tolist(), strict=True)) == values


def test_scoring_times_are_of_whole_and_equivalent_models(tmp_path):
    spec = load_spec(find_spec("rounds"), quick=True, params={"min-docs": 200})  # more than one round
    results = run_experiment(spec, tmp_path / "rounds", jobs=1)
    table = speed(results, "two-stage")
    names = [row[0].text for row in table.rows]
    assert names == ["λ-MART", "Asadi and Lin", "X-CLEaVER", "X-CLEaVER"]
    groups = {group.label: group for group in results.groups("two-stage")}
    full = groups["λ-MART"]
    theirs, time_of_all = full.per_query("ndcg@10")[1], full.cells[0].facts["scoring"]["full"]
    expected = []
    for name in ("λ-MART", "Asadi and Lin", "X-CLEaVER"):
        group, times = groups[name], groups[name].cells[0].facts["scoring"]
        sizes = [("full", group.n_trees)]
        ends = group.first.facts["rounds"] if name == "X-CLEaVER" else []
        ends = [n for n in (4, 8) if n < group.n_trees and n in ends]  # the numbers of trees that are measured
        values = {n: group.per_query(f"ndcg@10 at {n}")[1] for n in ends}
        smallest = smallest_size({**values, group.n_trees: group.per_query("ndcg@10")[1]}, theirs)
        sizes += [] if smallest in (None, group.n_trees) else [(str(smallest), smallest)]
        expected += [(name, trees, times[size], time_of_all / times[size]) for size, trees in sizes]
    found = [(row[0].text, row[1].number, row[4].number, row[5].number) for row in table.rows]
    assert found == expected
    assert all(row[4].number > 0 for row in table.rows)
    assert all(row[5].text == f"{row[5].number:.1f}×" for row in table.rows)
    for row in table.rows[1:]:
        column = "ndcg@10" if row[1].number == groups[row[0].text].n_trees else f"ndcg@10 at {row[1].number}"
        ours = groups[row[0].text].per_query(column)[1]
        assert row[2].number == pytest.approx(np.nanmean(ours))
        assert row[3].number == rs.significance.randomization_test(ours, theirs).p_value


def test_times_without_the_baseline_are_against_the_first_run(run_quick):
    results = run_quick("rounds")
    part = Results(results.folder, results.facts, tuple(c for c in results.cells if c.run != results.facts["baseline"]))
    table = speed(part, "two-stage")
    assert part.cells and table.rows[0][5].number == 1.0
    assert f"against {part.groups('two-stage')[0].label}" in table.note


@pytest.mark.parametrize("name", ["undersampling", "rounds"])
def test_a_report_does_without_its_baseline(name, run_quick, tmp_path):
    results = run_quick(name)
    cells = tuple(cell for cell in results.cells if cell.run != results.facts["baseline"])
    assert 0 < len(cells) < len(results.cells)
    page = write_report(Results(results.folder, results.facts, cells), tmp_path / "part")
    assert "Unfinished" in page.read_text(encoding="utf-8")

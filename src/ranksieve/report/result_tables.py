"""The tables of a report, as text cells with the numbers to sort them by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve.evaluation.analyses import smallest_shares
from ranksieve.evaluation.significance import TestResult, paired_t_test, randomization_test
from ranksieve.experiments.results import Group, Results

TARGETS = (0.90, 0.95, 0.98)
SIGNIFICANT = 0.05
SUMS = ("n_docs", "n_positives")


@dataclass(frozen=True)
class TableCell:
    """A cell of a table: its text, and the number it is sorted by."""

    text: str
    number: float | None = None


def number(value: float | None, style: str) -> TableCell:
    """A number, or a dash if there is none."""
    return TableCell("–") if value is None else TableCell(format(value, style), value)


@dataclass(frozen=True)
class ReportTable:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    note: str = ""

    def markdown(self) -> str:
        """The table in Markdown, numbers to the right."""
        lines = [" | ".join(["", *self.columns, ""]).strip(), "|---|" + "---:|" * (len(self.columns) - 1)]
        lines += [" | ".join(["", *(value.text for value in row), ""]).strip() for row in self.rows]
        return "\n".join([f"**{self.title}**", "", *lines, *(["", self.note] if self.note else [])])


def comparison(results: Results, data: str) -> ReportTable:
    """One row per run, each with the choice of its grid that is best on validation lists, against the baseline.

    If there is only one run, all its choices against the best.
    """
    metric, baseline_run = results.facts["metrics"][0], results.facts["baseline"]
    groups = results.best(data)
    baseline = next((group for group in groups if group.run == baseline_run), groups[0])
    if len(groups) == 1:
        groups = [baseline if group.label == baseline.label else group for group in results.groups(data)]
    columns = {metric: metric}
    stages = [stage for stage in results.facts["stages"] if any(group.is_larger_than(stage) for group in groups)]
    columns |= {f"{metric} at {stage}": f"{metric}, first {stage} trees" for stage in stages}
    rows = []
    for group in groups:
        row = [TableCell(group.label), number(group.n_trees, ".0f")]
        for column in columns:
            known = group.has_stages or column == metric
            row += _compared(group, baseline, column) if known else [TableCell("–")] * 3
        rows.append(tuple(row))
    n_queries = int(np.count_nonzero(~np.isnan(baseline.per_query(metric)[1])))
    return ReportTable(
        title=f"{metric} on {n_queries:,} test queries of {data}, against {baseline.label}",
        columns=("", "trees", *(part for name in columns.values() for part in (name, "difference", "p"))),
        rows=tuple(rows),
        note="The number of trees is chosen on validation lists, as are the parameters of a run with a grid. "
        f"Difference from {baseline.label}, in percent, with the 95% interval of the paired t-test. p is of Fisher's "
        f"randomization test, two-sided; \\* p ≤ {SIGNIFICANT}.",
    )


def _compared(group: Group, baseline: Group, column: str) -> list[TableCell]:
    mean = group.value(column)
    if group is baseline:
        return [number(mean, ".4f"), TableCell(""), TableCell("")]
    test, interval = compare(group, baseline, column)
    star = "\\*" if test.p_value <= SIGNIFICANT else ""
    percent = 100 / baseline.value(column) if baseline.value(column) else np.nan
    low, high = (percent * end for end in interval or (np.nan, np.nan))
    return [
        TableCell(f"{mean:.4f}{star}", mean),
        TableCell(f"{test.relative:+.1f}% [{low:+.1f}, {high:+.1f}]", test.relative),
        number(test.p_value, ".4f"),
    ]


def compare(a: Group, b: Group, column: str, other: str | None = None) -> tuple[TestResult, tuple[float, float] | None]:
    """Randomization test of a against b on the queries both were tested on, and the t-interval of the difference.

    `other` is the column of b, if it is another one.
    """
    ours, theirs = paired_values(a, b, column, other)
    interval = paired_t_test(ours, theirs).interval if len(ours) > 1 else None
    return randomization_test(ours, theirs), interval


def paired_values(a: Group, b: Group, column: str, other: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Values of two runs on the queries that both have values for."""
    names_a, values_a = a.per_query(column)
    names_b, values_b = b.per_query(column if other is None else other)
    _, places_a, places_b = np.intersect1d(names_a, names_b, return_indices=True)
    ours, theirs = values_a[places_a], values_b[places_b]
    both = ~(np.isnan(ours) | np.isnan(theirs))
    return ours[both], theirs[both]


def mutual_tests(results: Results, data: str, metric: str) -> ReportTable:
    """Every run with its 95% interval and its p-value against every other (as Wu et al. 2010, Tables 1-4)."""
    groups = results.best(data)
    rows = []
    for group in groups:
        values = group.per_query(metric)[1]
        low, high = paired_t_test(values, np.zeros(len(values))).interval or (np.nan, np.nan)
        half = 0.5 * (high - low)
        row = [TableCell(group.label), number(group.value(metric), ".4f"), number(half, ".4f")]
        for other in groups:
            p_value = None if other is group else _t_test(group, other, metric)
            row.append(TableCell("") if p_value is None else number(p_value, ".4f"))
        rows.append(tuple(row))
    return ReportTable(
        title=f"{metric} on {data}, every run against every other",
        columns=("", metric, "± (95%)", *(f"p against {group.label}" for group in groups)),
        rows=tuple(rows),
        note="± is half of the 95% interval of the mean. p is of the paired t-test, two-sided. A run with a grid is "
        "shown with the choice that is best on validation lists.",
    )


def _t_test(a: Group, b: Group, column: str) -> float | None:
    ours, theirs = paired_values(a, b, column)
    return paired_t_test(ours, theirs).p_value if len(ours) > 1 else None


def share_table(results: Results, data: str) -> ReportTable:
    """The smallest share of the training set that reaches 90, 95 and 98% of the full set's metric, and the times."""
    metric = results.facts["metrics"][0]
    full = results.groups(data, results.facts["baseline"])[0]
    rows = []
    for run, groups in sampled_runs(results, data).items():
        shares, values = [group.share for group in groups], [group.value(metric) for group in groups]
        found = smallest_shares([*shares, 1.0], [*values, full.value(metric)], full.value(metric), TARGETS)
        times = [groups[int(np.argmin(shares))].seconds("training"), full.seconds("training")]
        rows.append(
            (
                TableCell(run),
                *(number(share, ".1%") for share in found),
                *(TableCell(f"{seconds:.2f} s", seconds) for seconds in times),
            )
        )
    return ReportTable(
        title=f"Smallest share of the training set of {data} that reaches a part of the full set's {metric}",
        columns=("", *(f"{target:.0%}" for target in TARGETS), "training, smallest share", "training, full set"),
        rows=tuple(rows),
    )


def sampled_runs(results: Results, data: str) -> dict[str, list[Group]]:
    """Groups trained on a share of the training set, by run."""
    found: dict[str, list[Group]] = {}
    for group in results.groups(data):
        if group.first.settings["sample"] is not None:
            found.setdefault(group.run, []).append(group)
    return found


def all_cells(results: Results, data: str) -> ReportTable:
    """Every choice that was run, averaged over seeds and folds."""
    metrics: Sequence[str] = results.facts["metrics"]
    rows = []
    for group in results.groups(data):
        per_tree, training = group.seconds_per_tree, group.seconds("training")
        rows.append(
            (
                TableCell(group.label),
                number(group.valid, ".4f"),
                *(number(group.value(metric), ".4f") for metric in metrics),
                number(group.n_trees, ".0f"),
                number(None if per_tree is None else 1000 * per_tree, ".1f"),
                number(training, ".2f"),
                number(group.share_per_tree, ".1%"),
                number(len(group.cells), "d"),
            )
        )
    first = results.facts["metrics"][0]
    cells = [cell.facts for cell in results.cells if cell.data == data]
    peers = any(facts["settings"]["params"]["algo"] == "lightgbm" for facts in cells)
    alone = all(facts["alone"] for facts in cells)
    return ReportTable(
        title=f"All runs on {data}",
        columns=(
            "",
            f"{first}, validation",
            *metrics,
            "trees",
            "ms per tree",
            "training, s",
            "documents used",
            "models",
        ),
        rows=tuple(rows),
        note="Means over test lists; the number of trees is chosen on validation lists. Times do not include "
        "evaluating the metric; the time per tree is the median. Documents used: the mean share of the training "
        "documents that a tree is trained on. Models: one for each seed and fold; the values are their means."
        + (" LightGBM's times include scoring the validation and test lists." if peers else "")
        + ("" if alone else " Several models were trained at the same time, so times are rough."),
    )


def tuned_table(results: Results) -> ReportTable:
    """The parameters that a search chose for each run."""
    return ReportTable(
        title="Parameters chosen by search",
        columns=("", "data", "parameters", f"{results.facts['metrics'][0]}, validation", "trials"),
        rows=tuple(
            (
                TableCell(one["run"]),
                TableCell(one["data"]),
                TableCell(chosen_parameters(one["best"])),
                number(one["valid"], ".4f"),
                number(one["trials"], "d"),
            )
            for one in results.facts["tuned"]
        ),
        note="The best of the trials on validation lists.",
    )


def chosen_parameters(best: Mapping[str, Any]) -> str:
    """Parameters as text: `leaves 31, learning-rate 0.0824`."""
    texts = {name: f"{value:.4g}" if isinstance(value, float) else str(value) for name, value in best.items()}
    return ", ".join(f"{name} {text}" for name, text in texts.items())


def data_table(results: Results) -> ReportTable:
    """The lists of every data set, part by part."""
    rows = []
    for data in results.data:
        facts = next(one for one in results.facts["data"] if one["name"] == data)
        folds = sorted({cell.facts["fold"] for cell in results.cells if cell.data == data}, key=lambda fold: fold or 0)
        for part, words in (("train", "training"), ("valid", "validation"), ("test", "test")):
            lists = [results.lists(data, part, fold) for fold in folds]
            queries = float(np.mean([len(one["query"]) for one in lists]))
            documents, positives = (float(np.mean([one[name].sum() for one in lists])) for name in SUMS)
            rows.append(
                (
                    TableCell(f"{data}, {words}" + (f", mean of {len(folds)} folds" if len(folds) > 1 else "")),
                    number(queries, ",.0f"),
                    number(documents, ",.0f"),
                    number(positives, ",.0f"),
                    number(documents / queries, ",.0f"),
                    number(positives / queries, ".1f"),
                    TableCell(_source(facts, part)),
                )
            )
    return ReportTable(
        title="Data",
        columns=("data", "queries", "documents", "positives", "documents per query", "positives per query", "from"),
        rows=tuple(rows),
        note="Before sampling. Positives are documents with a label above 0.",
    )


def _source(facts: Mapping[str, Any], part: str) -> str:
    """Where a part comes from; files without their folders."""
    if "generate" in facts:
        return f"generated {facts['generate']}, seed {facts['seed']}"
    return Path(facts.get("file") or facts[part]).name

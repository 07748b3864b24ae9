"""Quality by number of trees, and scoring time at equal quality (Lucchese et al. 2018, X-CLEaVER, Tables 3 to 8)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ranksieve.evaluation.significance import TestResult
from ranksieve.experiments.results import Group, Results
from ranksieve.report.result_tables import SIGNIFICANT, ReportTable, TableCell, compare, number
from ranksieve.text_formats import counted


@dataclass(frozen=True)
class SizedForest:
    """A group's forest, or its first trees."""

    group: Group
    metric: str
    stage: int | None = None

    @property
    def trees(self) -> int:
        return round(self.group.n_trees or 0) if self.stage is None else self.group.base_trees + self.stage

    @property
    def column(self) -> str:
        return self.metric if self.stage is None else f"{self.metric} at {self.stage}"

    @property
    def value(self) -> float:
        return self.group.value(self.column)

    @property
    def microseconds(self) -> float:
        """To score a document; NaN if it was not measured."""
        times = [cell.facts.get("scoring") or {} for cell in self.group.cells]
        key = "full" if self.stage is None else str(self.stage)
        return float(np.mean([found.get(key, np.nan) for found in times]))

    def against(self, other: SizedForest) -> TestResult:
        return compare(self.group, other.group, self.column, other.column)[0]


@dataclass
class RunSizes:
    """A run at several sizes, and the full model it is compared with, if there is one."""

    name: str
    reference: SizedForest | None
    sizes: list[SizedForest] = field(default_factory=list)

    def smallest_equivalent(self) -> SizedForest | None:
        """The smallest size that is not significantly worse than the reference."""
        if self.reference is None:
            return None
        for size in sorted(self.sizes, key=lambda one: one.trees):
            test = size.against(self.reference)
            if test.difference >= 0 or test.p_value > SIGNIFICANT:
                return size
        return None


def by_size(results: Results, data: str) -> Iterator[ReportTable]:
    """One table for all forests that were trained, and one for each forest that was pruned."""
    metric = results.facts["metrics"][0]
    for title, lines in sized_runs(results, data):
        columns = sorted({size.trees for line in lines for size in line.sizes[:-1]} | _ends(lines))
        rows = tuple(_row(line, columns) for line in lines)
        yield ReportTable(
            title=f"{metric} on {data} by number of trees{title}",
            columns=("", *map(str, columns), "all", "smallest equivalent", "removed", "p"),
            rows=rows,
            note=f"\\* the smallest model that is not significantly worse than the full model (randomization test, p ≤ "
            f"{SIGNIFICANT}); + at least as good as the full model. The full model is the forest that was pruned, or "
            "that of X-CLEaVER's base algorithm. p is of the smallest equivalent model against the full model.",
        )


def _ends(lines: list[RunSizes]) -> set[int]:
    """Sizes of pruned forests, which have no others."""
    return {line.sizes[-1].trees for line in lines if line.sizes[0].group.pruned is not None}


def _row(line: RunSizes, columns: list[int]) -> tuple[TableCell, ...]:
    by_trees = {size.trees: size for size in line.sizes}
    smallest = line.smallest_equivalent()
    cells = [_cell(by_trees.get(trees), line, smallest) for trees in columns]
    last = line.sizes[-1]
    whole = _cell(last, line, smallest)
    end = TableCell(f"{whole.text} ({last.trees})", whole.number) if last.group.pruned is None else TableCell("")
    if smallest is None or line.reference is None:
        return TableCell(line.name), *cells, end, TableCell(""), TableCell(""), TableCell("")
    removed, p = 1 - smallest.trees / line.reference.trees, smallest.against(line.reference).p_value
    found = (number(smallest.trees, "d"), number(removed, ".0%"), number(p, ".3f"))
    return TableCell(line.name), *cells, end, *found


def _cell(size: SizedForest | None, line: RunSizes, smallest: SizedForest | None) -> TableCell:
    if size is None:
        return TableCell("")
    good = line.reference is not None and size.value >= line.reference.value
    return TableCell(f"{size.value:.4f}" + "+" * good + "\\*" * (size is smallest), size.value)


def speed(results: Results, data: str) -> ReportTable:
    """Every full model and every smallest equivalent one: trees, quality and the time to score a document."""
    metric = results.facts["metrics"][0]
    groups = results.groups(data, results.facts["baseline"]) or results.groups(data)  # it may not be finished
    baseline = SizedForest(groups[0], metric)
    rows = []
    for _, lines in sized_runs(results, data):
        for line in lines:
            smallest = line.smallest_equivalent()
            for size in [line.sizes[-1], *([smallest] if smallest not in (None, line.sizes[-1]) else [])]:
                rows.append(_timed_row(line.name, size, baseline))
    return ReportTable(
        title=f"Scoring time on {data}",
        columns=("", "trees", metric, "p", "µs per document", "speed-up"),
        rows=tuple(rows),
        note=f"One thread. p is of the randomization test against {baseline.group.label}; \\* significantly better. "
        "The second row of a run is its smallest model that is not significantly worse than the full model.",
    )


def _timed_row(name: str, size: SizedForest, baseline: SizedForest) -> tuple[TableCell, ...]:
    head = TableCell(name), number(size.trees, "d")
    times = size.microseconds, baseline.microseconds / size.microseconds
    tail = number(times[0], ".3g"), TableCell(f"{times[1]:.1f}×", times[1])
    if size == baseline:
        return *head, number(size.value, ".4f"), TableCell(""), *tail
    test = size.against(baseline)
    star = "\\*" * (test.p_value <= SIGNIFICANT and test.difference > 0)
    return *head, TableCell(f"{size.value:.4f}{star}", size.value), number(test.p_value, ".3f"), *tail


def sized_runs(results: Results, data: str) -> Iterator[tuple[str, list[RunSizes]]]:
    """The lines of each table, and the end of its title: forests as they grow, and one forest pruned to sizes."""
    grown: list[Group] = []
    pruned: dict[tuple[str, int | None], list[Group]] = {}
    for group in results.groups(data):
        if group.pruned is None or _size_axis(group) == "first":
            grown.append(group)
        else:
            pruned.setdefault((group.pruned["model"], group.pruned.get("first")), []).append(group)
    if len(grown) > 1:
        yield "", list(_lines(results, data, grown))
    for (run, _), members in pruned.items():
        lines, source = list(_lines(results, data, members)), results.groups(data, run)
        whole = lines[0].reference
        if whole is not None:  # else the source is not finished
            sizes = [size for size in _stages(results, source[0]) if size.trees <= whole.trees]
            title = f", pruned from {counted(tree=whole.trees)} of {run}"
            yield title, [RunSizes(source[0].label, None, sizes), *lines]


def _size_axis(group: Group) -> str:
    """The parameter by which the groups of a line differ in size: the trees grown or pruned, or the rate."""
    if group.pruned is None:
        return "trees"
    return "first" if "first" in group.grid and "rate" not in group.grid else "rate"


def _lines(results: Results, data: str, groups: list[Group]) -> Iterator[RunSizes]:
    """Groups that differ by size alone are one line."""
    found: dict[str, list[Group]] = {}
    for group in groups:
        words = [f"{name} {value}" for name, value in group.grid.items() if name not in (_size_axis(group), "first")]
        found.setdefault(", ".join([group.run, *words]), []).append(group)
    for name, members in found.items():
        sizes = [size for group in members for size in _stages(results, group)]
        sizes.sort(key=lambda size: size.trees)
        yield RunSizes(name, _reference(results, data, members[0]), sizes)


def _stages(results: Results, group: Group) -> list[SizedForest]:
    """A group at its stages: those at which a round ended, if it is made in rounds; none if it is pruned as a whole."""
    metric, ends = results.facts["metrics"][0], group.first.facts["rounds"]
    new_trees = (group.n_trees or 0) - group.base_trees
    stages = [stage for stage in sorted(results.facts["stages"]) if stage < new_trees and group.has_stages]
    stages = [stage for stage in stages if not ends or stage in ends]
    return [*(SizedForest(group, metric, stage) for stage in stages), SizedForest(group, metric)]


def _reference(results: Results, data: str, group: Group) -> SizedForest | None:
    """The full model: the trees that were pruned, or the forest of X-CLEaVER's base algorithm."""
    metric, params = results.facts["metrics"][0], group.params
    if group.pruned is not None:
        source = results.groups(data, group.pruned["model"])
        if not source:
            return None
        first = group.pruned.get("first") if _size_axis(group) == "rate" else None
        return SizedForest(source[0], metric, first if first is not None and first < (source[0].n_trees or 0) else None)
    if params["algo"] != "xcleaver":
        return None
    plain = [one for one in results.groups(data) if one.pruned is None]
    same = [one for one in plain if one.params["algo"] == params["base"]]
    chosen = same or results.groups(data, results.facts["baseline"])
    return SizedForest(chosen[0], metric) if chosen else None

"""Options of a run that are not training parameters: samples, grids, and models of earlier runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from typing import Any

from ranksieve.data.sampling import SAMPLES
from ranksieve.errors import ParameterError, check_key, param
from ranksieve.experiments.data_sets import DataSpec
from ranksieve.experiments.spec import Cell
from ranksieve.parameter_table import FORESTS
from ranksieve.rules import parameters_of
from ranksieve.text_formats import counted

MOST_CHOICES = 100_000  # most choices of a run's grid


@dataclass(frozen=True)
class RunTable:
    """The keys of a table `[[runs]]` that are not training parameters."""

    name: str | None = None
    seeds: tuple[int, ...] = ()
    sample: dict[str, Any] | None = None
    prune: str | dict[str, Any] | None = None  # an earlier run whose model is pruned
    selections: bool = False
    shared_leaves: bool = False
    background: bool = False  # train on the background lists of the data set
    init: str | None = None  # an earlier run whose model boosting starts from
    interpolate: tuple[str, ...] = ()  # earlier runs whose models are interpolated


def grid_choices(*tables: Mapping[str, Any] | None) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Every choice of one value from each list: the values of lists of two or more, and the tables with all values.

    Examples
    --------
    >>> list(grid_choices({"leaves": [4, 8], "trees": 3}, None))
    [({'leaves': 4}, [{'leaves': 4, 'trees': 3}, None]), ({'leaves': 8}, [{'leaves': 8, 'trees': 3}, None])]
    """
    axes = [
        (place, key, values)
        for place, table in enumerate(tables)
        for key, values in (table or {}).items()
        if isinstance(values, list)
    ]
    if math.prod(len(values) for _, _, values in axes) > MOST_CHOICES:
        raise ParameterError(f"the grid has more than {MOST_CHOICES:,} choices; make its lists shorter")
    for _, key, values in axes:
        if len({repr(value) if isinstance(value, list | dict) else value for value in values}) < len(values):
            raise ParameterError(param(key), " has a value twice; give each value once")
    for chosen in itertools.product(*(values for _, _, values in axes)):
        made = [None if table is None else dict(table) for table in tables]
        grid = {}
        for (place, key, values), value in zip(axes, chosen, strict=True):
            table = made[place]
            assert table is not None
            table[key] = value
            if len(values) > 1:
                grid[key] = value
        yield grid, made


def check_sample_keys(sample: Mapping[str, Any]) -> None:
    """Refuse a kind of sample that does not exist, and keys that it has not."""
    how = sample.get("how")
    if not isinstance(how, str) or how not in SAMPLES:
        raise ParameterError(
            f'how is {how!r}; expected a table such as {{how = "truncate", k = 500}}, how one of {", ".join(SAMPLES)}'
        )
    for key in sample:
        check_key(key, ("how", *parameters_of(SAMPLES[how]), *(("model",) if how == "by-model" else ())))


def sample_rule(sample: Mapping[str, Any]) -> Any:
    """The rule that a table such as `{ how = "truncate", k = 500 }` describes."""
    kind = SAMPLES[sample["how"]]
    own = parameters_of(kind)
    for name in (name for name, one in own.items() if one.default is MISSING and name not in sample):
        raise ParameterError(f"{sample['how']} expects {name}, {own[name].expected}: {own[name].help.lower()}")
    return kind(**{name: one.checked(sample[name]) for name, one in own.items() if name in sample})


def check_sample(sample: Mapping[str, Any]) -> None:
    """Refuse a sample whose table lacks something."""
    sample_rule(sample)
    if sample["how"] == "by-model" and "model" not in sample:
        raise ParameterError("by-model needs the name of an earlier run as its model")


def lacks_first_stage(sample: Mapping[str, Any], data: DataSpec) -> bool:
    """Whether a sample is drawn by the first stage's score, and the data does not say which feature that is."""
    needs_order = sample["how"] == "truncate" or sample.get("order", "random") != "random"
    return needs_order and not data.has_first_stage()


def prune_table(run: RunTable, others: Sequence[str]) -> dict[str, Any] | None:
    """The table `prune` of a run: `model`, the run to prune; `first`, numbers of its first trees; and `judge-on`.

    `others` are the training parameters in the table of the run.
    """
    if run.prune is None:
        return None
    table = {"model": run.prune} if isinstance(run.prune, str) else dict(run.prune)
    if not isinstance(table.get("model"), str):
        raise ParameterError(
            f"prune is {run.prune!r}; expected an earlier run's name, or {{ model = 'λ-MART', first = 500 }}"
        )
    unknown = [key for key in table if key not in ("model", "first", "judge-on")]
    if unknown:
        raise ParameterError(f"prune has the unknown key {unknown[0]!r}; expected model, first or judge-on")
    if table.setdefault("judge-on", "valid") not in ("valid", "train"):
        raise ParameterError(f"judge-on is {table['judge-on']!r}; expected 'valid' or 'train'")
    firsts = table["first"] if isinstance(table.get("first"), list) else [table.get("first", 1)]
    if not firsts or not all(type(first) is int and first >= 1 for first in firsts):
        raise ParameterError(f"first is {table['first']!r}; expected a number of trees, an integer from 1")
    wrong = [name for name in ("sample", "selections", "background", "init", "interpolate") if getattr(run, name)]
    wrong += [name for name in others if name == "algo"]
    if wrong:
        raise ParameterError(f"a run that prunes another run's model trains nothing; leave out {', '.join(wrong)}")
    return table


def fitting_sizes(prune: dict[str, Any], data: DataSpec, done: Sequence[Cell]) -> tuple[dict[str, Any], str | None]:
    """The table `prune` without numbers of first trees above those that its model grows, and what was changed.

    Such a number stands for the whole forest, which is pruned once.
    """
    trees = max((cell.params.all_trees for cell in done if (cell.run, cell.data) == (prune["model"], data)), default=0)
    given = prune.get("first", [])
    sizes = given if isinstance(given, list) else [given]
    larger = [size for size in sizes if size > trees]
    if not (trees and larger):  # an unknown model is refused later
        return prune, None
    note = (
        f"{prune['model']} grows at most {counted(tree=trees)}; all are pruned in place of its first "
        f"{', '.join(f'{size:,}' for size in larger)}."
    )
    return {**prune, "first": list(dict.fromkeys(min(size, trees) for size in sizes))}, note


def pruned_sizes(runs: Sequence[RunTable]) -> list[int]:
    """The numbers of first trees that runs prune; the model is measured at these sizes too, for comparison."""
    firsts = [run.prune.get("first", []) for run in runs if isinstance(run.prune, dict)]
    sizes = [size for first in firsts for size in (first if isinstance(first, list) else [first])]
    return [size for size in dict.fromkeys(sizes) if type(size) is int]


def check_run(run: RunTable, algo: str, data: DataSpec, others: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Keys of a run that do not fit its algorithm, its data or each other, with the reason."""
    if run.background and not data.has_background:
        yield (
            "background",
            (
                f"data {data.name!r} has no background; name files of another domain, background = [...], "
                "or with generate give background-queries and background-seed"
            ),
        )
    if run.background and run.sample is not None:
        yield "background", "a sample is drawn from the training lists, not from the background; leave one of them out"
    if run.background and run.selections:
        yield "background", "selections are recorded on the training lists, not on the background; leave one out"
    if run.selections and algo not in FORESTS:
        yield "selections", f"algo = {algo!r} does not record selections; leave the key out"
    if run.shared_leaves and algo not in (*FORESTS, "xcleaver", "lightgbm"):
        yield "shared-leaves", f"algo = {algo!r} makes no forest; leave the key out"
    if run.init is not None and algo not in FORESTS:
        yield "init", f"algo = {algo!r} cannot start from a model; use one of {', '.join(FORESTS)}"
    if run.interpolate:
        if len(run.interpolate) < 2 or len(set(run.interpolate)) < len(run.interpolate):
            yield (
                "interpolate",
                f"interpolate is {list(run.interpolate)}; expected the names of two or more earlier runs",
            )
        options = ("sample", "prune", "selections", "shared_leaves", "background", "init")
        wrong = [*(name for name in options if getattr(run, name)), *others]
        if wrong:
            yield "interpolate", f"an interpolation trains nothing; leave out {', '.join(wrong)}"


def earlier_cell(name: Any, data: DataSpec, seed: int, done: Sequence[Cell]) -> Cell:
    """The cell of an earlier run on the same data, of the same seed if there is one."""
    found = [cell for cell in done if cell.run == name and cell.data == data]
    found = [cell for cell in found if cell.seed == seed] or found
    if not found:
        known = ", ".join(dict.fromkeys(cell.run for cell in done)) or "none"
        raise ParameterError(f"no earlier run is named {name!r} (known: {known}); its model is needed")
    if len({cell.label for cell in found}) > 1:
        raise ParameterError(f"the run {name!r} has a grid; name a run with a single cell")
    return found[0]


def pruned_cell(prune: Mapping[str, Any], data: DataSpec, seed: int, done: Sequence[Cell]) -> Cell:
    """The cell whose model is pruned."""
    cell = earlier_cell(prune["model"], data, seed, done)
    if not cell.on_bins:
        raise ParameterError(
            f"the run {cell.run!r} grows no forest on the bins of its training lists; prune its model's file instead"
        )
    return cell

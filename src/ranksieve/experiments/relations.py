"""Runs that build on others: sampling with their models, starting from them, interpolating and pruning them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ranksieve.errors import ParameterError
from ranksieve.experiments.data import DataSpec
from ranksieve.experiments.spec import Cell
from ranksieve.params import ALGORITHMS

RELATIONS = ("background", "init", "interpolate")


def earlier_cell(name: Any, data: DataSpec, seed: int, done: Sequence[Cell]) -> Cell:
    """The cell of an earlier run on the same data, of the same seed where there is one."""
    found = [cell for cell in done if cell.run == name and cell.data == data]
    found = [cell for cell in found if cell.seed == seed] or found
    if not found:
        known = ", ".join(dict.fromkeys(cell.run for cell in done)) or "none"
        raise ParameterError(f"no earlier run is named {name!r} (known: {known}); its model is needed")
    if len({cell.label for cell in found}) > 1:
        raise ParameterError(f"the run {name!r} has a grid; name one with a single cell")
    return found[0]


def check_relation(key: str, run: Mapping[str, Any], algo: str, data: DataSpec) -> None:
    """Refuse a relation that does not fit the run or its data."""
    value = run[key]
    if key == "background":
        if not isinstance(value, bool):
            raise ParameterError(f"background is {value!r}; expected true, to learn from the data's background lists")
        if value and not data.has_background:
            raise ParameterError(
                f"data {data.name!r} has no background; name files of another domain, background = [...] "
                "(--background), or with generate give background-queries and background-seed"
            )
        if value and "sample" in run:
            raise ParameterError("a sample is of the training lists, not of the background; leave one of them out")
        if value and run.get("selections"):
            raise ParameterError("selections are shown of the training lists, not of the background; leave one out")
    if key == "init" and algo not in ALGORITHMS:
        raise ParameterError(f"algo={algo} starts from no model; use one of {', '.join(ALGORITHMS)}")
    if key == "interpolate":
        if not (isinstance(value, list) and len(value) > 1 and len(set(map(str, value))) == len(value)):
            raise ParameterError(f"interpolate is {value!r}; expected the names of two or more earlier runs")
        others = [name for name in run if name not in ("name", "seeds", key)]
        if others:
            raise ParameterError(f"an interpolation trains nothing; leave out {', '.join(others)}")


def related(run: Mapping[str, Any], data: DataSpec, seed: int, done: Sequence[Cell]) -> dict[str, Any]:
    """What a cell says of the cells it builds on."""
    found: dict[str, Any] = {"background": bool(run.get("background", False))}
    if "init" in run:
        found["init"] = earlier_cell(run["init"], data, seed, done)
    if "interpolate" in run:
        found["blended"] = tuple(earlier_cell(name, data, seed, done) for name in run["interpolate"])
    return found


def pruning_table(run: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a run's key `prune` says: the run whose model is pruned, and of how many of its trees, one or several."""
    given = run.get("prune")
    if given is None:
        return None
    table = {"model": given} if isinstance(given, str) else given
    if not isinstance(table, dict) or not isinstance(table.get("model"), str) or set(table) - {"model", "first"}:
        raise ParameterError(
            f"prune is {given!r}; expected an earlier run's name, or {{ model = 'λ-MART', first = 500 }}"
        )
    firsts = table["first"] if isinstance(table.get("first"), list) else [table.get("first", 1)]
    if not all(isinstance(first, int) and first >= 1 for first in firsts):
        raise ParameterError(f"first is {table['first']!r}; expected a whole number of trees from 1")
    others = [name for name in ("algo", "sample", "selections", *RELATIONS) if name in run]
    if others:
        raise ParameterError(f"a run that prunes another run's model has its training; leave out {', '.join(others)}")
    return dict(table)


def pruned_sizes(runs: Sequence[Mapping[str, Any]]) -> list[int]:
    """How many first trees of other models runs prune; these are measured too, to be compared with."""
    tables = [run["prune"] for run in runs if isinstance(run.get("prune"), dict)]
    firsts = [table.get("first", []) for table in tables]
    sizes = [size for first in firsts for size in (first if isinstance(first, list) else [first])]
    return [size for size in dict.fromkeys(sizes) if isinstance(size, int)]


def find_teacher(
    sample: Mapping[str, Any] | None, prune: Mapping[str, Any] | None, data: DataSpec, seed: int, done: Sequence[Cell]
) -> Cell | None:
    """The cell whose model chooses the sample, or is pruned."""
    if prune is None:
        by_model = sample is not None and sample["how"] == "by-model"
        return earlier_cell(sample["model"], data, seed, done) if sample is not None and by_model else None
    teacher = earlier_cell(prune["model"], data, seed, done)
    if not teacher.on_bins:
        raise ParameterError(
            f"the run {teacher.run!r} grows no forest on the bins of its training lists; prune its model's file instead"
        )
    return teacher

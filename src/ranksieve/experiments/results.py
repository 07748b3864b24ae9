"""Reading the folder of an experiment: cells, their curves, per-query values, documents, selections and models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ranksieve.errors import DataError
from ranksieve.evaluation.metrics import mean
from ranksieve.models.load import load as load_model
from ranksieve.rules import RANKERS, traits_of

EXPERIMENT = "experiment.json"
CELL = "cell.json"


@dataclass(frozen=True)
class CellResult:
    """A finished cell; its tables are dictionaries of arrays, read on demand.

    Attributes
    ----------
    folder
        The folder of the cell.
    facts
        The content of `cell.json`: trees, metrics, times, versions.
    settings
        Everything that the result depends on: `run`, `grid`, `params`, `seed`, …
    label
        The run with its choice of the grid.
    data
        The name of the data set.

    Examples
    --------
    >>> import pathlib
    >>> from ranksieve.experiments import load_spec, run_experiment
    >>> text = '''
    ... data.small = {generate = "cubic", queries = 30}
    ... runs = [{algo = "lambdamart", trees = 3, leaves = [4, 8]}]
    ... '''
    >>> _ = pathlib.Path("small.toml").write_text(text)
    >>> cell = run_experiment(load_spec("small.toml"), "small", jobs=1).cells[0]
    >>> cell.label, cell.table("curve")["trees"].tolist(), cell.model().n_trees
    ('lambdamart, leaves 4', [1, 2, 3], 3)
    """

    folder: Path
    facts: dict[str, Any]
    settings: dict[str, Any]
    label: str
    data: str

    @property
    def run(self) -> str:
        """The name of the run."""
        return str(self.settings["run"])

    @property
    def seed(self) -> int:
        """The seed."""
        return int(self.settings["seed"])

    def table(self, name: str) -> dict[str, np.ndarray]:
        """`curve`, `queries`, `documents`, or, where the cell recorded them, `selected` and `shared_leaves`."""
        path = self.folder / f"{name}.parquet"
        if not path.exists():
            raise DataError(f"{path}: does not exist; the cell did not record it")
        return _table(path)

    def model(self) -> Any:
        """The model: a `Forest`, or another kind that the run's algorithm makes."""
        return load_model(self.folder / "model.txt")


@dataclass(frozen=True)
class Group:
    """Cells that differ by seed and fold alone: one line of a table, one curve of a figure.

    Attributes
    ----------
    cells
        The cells.

    Examples
    --------
    Of the experiment of `CellResult`:

    >>> for group in Results.open("small").groups("small"):
    ...     print(group.label, group.per_query("ndcg@10")[1].shape, group.curve()[0].tolist())
    lambdamart, leaves 4 (6,) [1, 2, 3]
    lambdamart, leaves 8 (6,) [1, 2, 3]
    """

    cells: tuple[CellResult, ...]

    @property
    def first(self) -> CellResult:
        """The first cell."""
        return self.cells[0]

    @property
    def label(self) -> str:
        """The run with its choice of the grid."""
        return self.first.label

    @property
    def run(self) -> str:
        """The name of the run."""
        return self.first.run

    @property
    def grid(self) -> dict[str, Any]:
        """The choice of the grid."""
        return dict(self.first.settings["grid"])

    @property
    def params(self) -> dict[str, Any]:
        """The training parameters of the first cell."""
        return dict(self.first.settings["params"])

    @property
    def pruned(self) -> dict[str, Any] | None:
        """The run whose model was pruned and the number of its trees; None if the cells do not prune."""
        pruned: dict[str, Any] | None = self.first.settings["prune"]
        return pruned

    @property
    def in_rounds(self) -> bool:
        """Whether the forests were grown and pruned in rounds."""
        return self.pruned is None and traits_of(RANKERS.get(self.params["algo"])).has_base

    @property
    def has_stages(self) -> bool:
        """Whether its first trees are a model; they are not if all trees were pruned or re-weighted together."""
        return self.pruned is None and not (self.in_rounds and self.params["global_"])

    def is_larger_than(self, stage: int) -> bool:
        """Whether the first `stage` trees of a model are not the whole model."""
        return self.has_stages and any(cell.facts["n_trees"] - self.base_trees > stage for cell in self.cells)

    @cached_property
    def valid(self) -> float:
        """Mean validation value, by which the best cell of a run is chosen."""
        return float(np.mean([cell.facts["valid"] for cell in self.cells]))

    def per_query(self, column: str) -> tuple[np.ndarray, np.ndarray]:
        """Query names and values of a column of `queries`: the mean over seeds, all folds together, by name."""
        tables = [cell.table("queries") for cell in self.cells]
        names = np.concatenate([table["query"] for table in tables])
        values = np.concatenate([table[column].astype(np.float64) for table in tables])
        known, places = np.unique(names, return_inverse=True)
        return known, np.bincount(places, weights=values) / np.bincount(places)

    def value(self, column: str) -> float:
        """Mean over the queries of a column of `queries`, such as `ndcg@10`."""
        return mean(self.per_query(column)[1])

    def curve(self, column: str = "test") -> tuple[np.ndarray, np.ndarray]:
        """Trees and the mean over cells; a cell that stopped early counts with its last value."""
        tables = [cell.table("curve") for cell in self.cells]
        curves = [table[column] for table in tables]
        longest = max(map(len, curves))
        padded = [np.concatenate([curve, np.full(longest - len(curve), curve[-1])]) for curve in curves]
        return next(table["trees"] for table in tables if len(table["trees"]) == longest), np.mean(padded, axis=0)

    def seconds(self, name: str) -> float:
        """Mean of a time of the cells: `training`, `loading`, …"""
        return float(np.mean([cell.facts["seconds"][name] for cell in self.cells]))

    @property
    def seconds_per_tree(self) -> float | None:
        """Mean over cells of a tree's median time; None if trees are not grown one after another."""
        times = [cell.facts["seconds"]["per_tree"] for cell in self.cells]
        return None if None in times else float(np.mean(times))

    @property
    def share(self) -> float:
        """Mean share of the training documents that the cells' samples keep."""
        return float(np.mean([cell.facts["trained_on"]["share"] for cell in self.cells]))

    @property
    def share_per_tree(self) -> float | None:
        """Mean share of the training documents that a tree is trained on; None if it is not known."""
        shares = [cell.facts["trained_on"].get("per_tree") for cell in self.cells]
        return None if None in shares else float(np.mean(shares))

    @property
    def base_trees(self) -> int:
        """The number of trees of the model boosting started from; stages count the others."""
        return max(int(cell.facts.get("base_trees", 0)) for cell in self.cells)

    @property
    def n_trees(self) -> float | None:
        """Mean number of trees; None for rankers that have none."""
        return float(np.mean([cell.facts["n_trees"] for cell in self.cells])) or None


@dataclass(frozen=True)
class Results:
    """The folder of an experiment.

    Attributes
    ----------
    folder
        The folder.
    facts
        The content of `experiment.json`: title, metrics, baseline, data sets, versions.
    cells
        The finished cells, in the order of the specification.

    Examples
    --------
    Of the experiment of `CellResult`:

    >>> results = Results.open("small")
    >>> results.data, len(results.cells), results.unfinished
    (['small'], 2, [])
    >>> [group.run for group in results.best("small")]
    ['lambdamart']
    """

    folder: Path
    facts: dict[str, Any]
    cells: tuple[CellResult, ...]

    @classmethod
    def open(cls, folder: str | Path) -> Results:
        """Read the folder that `ranksieve experiment --out` wrote."""
        folder = Path(folder)
        if not (folder / EXPERIMENT).is_file():
            raise DataError(f"{folder}: holds no experiment; give the folder that ranksieve experiment --out wrote")
        facts = _facts(folder / EXPERIMENT, cells=list)
        cells = tuple(_cells(folder, facts["cells"]))
        if not cells:
            raise DataError(f"{folder}: no cell is finished yet; run the experiment first")
        return cls(folder, facts, cells)

    @property
    def unfinished(self) -> list[str]:
        """The keys of the cells that are not finished."""
        done = {cell.facts["key"] for cell in self.cells}
        return [key for key in self.facts["cells"] if key not in done]

    @property
    def data(self) -> list[str]:
        """Names of the data sets."""
        return list(dict.fromkeys(cell.data for cell in self.cells))

    def groups(self, data: str, run: str | None = None) -> list[Group]:
        """Cells of a data set, grouped over seeds and folds, in order."""
        found: dict[str, list[CellResult]] = {}
        for cell in self.cells:
            if cell.data == data and run in (None, cell.run):
                found.setdefault(cell.label, []).append(cell)
        return [Group(tuple(cells)) for cells in found.values()]

    def best(self, data: str) -> list[Group]:
        """For each run the choice of its grid with the best validation value."""
        runs = dict.fromkeys(cell.run for cell in self.cells if cell.data == data)
        return [max(self.groups(data, run), key=lambda group: group.valid) for run in runs]

    def lists(self, data: str, part: str = "train", fold: int | None = None) -> dict[str, np.ndarray]:
        """Queries of a part of a data set with their numbers of documents and positives."""
        title = data if fold is None else f"{data} fold {fold + 1}"
        return _table(self.folder / "data" / f"{title} {part}.parquet")


def _cells(folder: Path, keys: list[str]) -> Iterator[CellResult]:
    for key in keys:
        path = folder / "cells" / str(key) / CELL
        if path.exists():
            facts = _facts(path, settings=dict, label=str, data=str, key=str)
            yield CellResult(path.parent, facts, facts["settings"], facts["label"], facts["data"])


def _facts(path: Path, **kinds: type) -> dict[str, Any]:
    """A JSON object that has some keys with values of some kinds."""
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for key, kind in kinds.items():
            if not isinstance(found[key], kind):
                raise TypeError(f"{key} is {str(found[key])[:40]!r}")
        return found
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(path, error) from error


def _table(path: Path) -> dict[str, np.ndarray]:
    try:
        return {name: np.array(values) for name, values in pq.read_table(path).to_pydict().items()}
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> DataError:
    reason = " ".join(str(error).split())
    return DataError(f"{path}: cannot be read ({reason[:200]}); remove its folder and run the experiment again")

"""Running one cell: sample, train, measure on the test lists, and store everything that a report shows."""

from __future__ import annotations

import json
import os
import platform
import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ranksieve import __version__
from ranksieve.boosting.callbacks import SelectionCounter
from ranksieve.errors import RanksieveError
from ranksieve.evaluation.metrics import parse_metric
from ranksieve.experiments import measure
from ranksieve.experiments.data_sets import Loaded
from ranksieve.experiments.results import CELL
from ranksieve.experiments.spec import Cell
from ranksieve.experiments.train_cell import CELLS, MODEL, CellData, TrainOptions, load_cell, train_cell
from ranksieve.files import atomic_path
from ranksieve.forest.forest import Forest
from ranksieve.forest.model import Model

UNFINISHED = ".unfinished-"

CallbackFor = Callable[[Cell], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Trained:
    """A cell's model, and what was recorded while it was trained."""

    model: Any
    data: CellData
    counter: SelectionCounter | None
    stopwatch: measure.Stopwatch
    history: dict[str, list[float]]

    @property
    def n_rounds(self) -> int:
        return len(self.history["valid"])

    @property
    def trees_per_round(self) -> int:
        """More than one if every grade has its own trees; 0 for models without trees."""
        return getattr(self.model, "n_outputs", 1) if getattr(self.model, "n_trees", 0) else 0


def run_cell(
    cell: Cell, out: Path, *, threads: int = 0, alone: bool = True, callback_for: CallbackFor | None = None
) -> None:
    """Train and measure a cell into `out/cells/<key>`; the folder appears when everything in it is written.

    `callback_for` gives a context around the training whose value is one more training callback.
    """
    began, clock, cpu = datetime.now(timezone.utc), time.perf_counter(), time.process_time()
    data = load_cell(cell, out)
    loading = time.perf_counter() - clock
    test = data.loaded.test
    _store_lists(cell, out, data.loaded)
    trained = _trained(cell, out, data, threads, callback_for)
    measured, queries, scores = measure.measure(cell, trained.model, test)
    tables = {**_tables(cell, trained), "queries": queries, "documents": measure.documents(test, scores)}
    facts = {
        **_facts(cell, trained),
        "test": measured,
        "seconds": {
            "loading": loading,
            **trained.stopwatch.summary(0 if cell.has_no_history or cell.interpolated else trained.trees_per_round),
            "all": time.perf_counter() - clock,
            "cpu": time.process_time() - cpu,
            **({"phases": trained.model.info["phase_seconds"]} if cell.in_rounds else {}),
        },
        "threads": threads or cell.params.threads or os.cpu_count(),
        "alone": alone,
        "began": began.isoformat(timespec="seconds"),
        "versions": versions(),
    }
    _store(out / CELLS, cell.key, facts, trained.model, tables)


def _trained(cell: Cell, out: Path, data: CellData, threads: int, callback_for: CallbackFor | None) -> Trained:
    """Train, with the time of every tree and the rows it is trained on."""
    stopwatch = measure.Stopwatch()
    counter = SelectionCounter() if cell.grows_trees else None
    sets = ("valid", "test", *(("train",) if cell.follow_training else ()))
    with nullcontext() if callback_for is None else callback_for(cell) as more:
        callbacks = (*(() if cell.has_no_history else (stopwatch,)), *(() if more is None else (more,)))
        start = time.perf_counter()
        model = train_cell(cell, out, data, TrainOptions(sets, threads, callbacks, counter))
        total = time.perf_counter() - start
    history = measure.history_of(cell, model, data.loaded)
    stopwatch.fill(len(history["valid"]), total)
    return Trained(model, data, counter, stopwatch, history)


def _tables(cell: Cell, trained: Trained) -> dict[str, pa.Table]:
    """The curve, and selections and shared leaves if the cell records them."""
    trees = max(trained.trees_per_round, 1) * np.arange(1, trained.n_rounds + 1)
    steps = {"step": trained.model.info["steps"]} if "steps" in trained.model.info else {}
    tables = {"curve": pa.table({"trees": trees, **trained.history, "seconds": trained.stopwatch.seconds, **steps})}
    if cell.selections and trained.counter is not None:
        tables["selected"] = measure.selected(trained.data.train, trained.counter)
    if cell.shared_leaves:
        lists = trained.data.loaded.train.binned.lists
        tables["shared_leaves"] = measure.pairs_by_shared_leaves(cell, trained.model, lists)
    return tables


def _facts(cell: Cell, trained: Trained) -> dict[str, Any]:
    """What the cell is, the size of its model, what it was trained on, and its validation value."""
    model, data = trained.model, trained.data
    lists = data.values("train").lists if cell.background else data.train.binned.lists
    n_docs = lists.n_docs if cell.background else data.loaded.train.binned.lists.n_docs  # before the sample
    per_tree = measure.docs_per_tree(cell, trained.counter, trained.n_rounds, lists.n_docs)
    return {
        "key": cell.key,
        "label": cell.label,
        "settings": cell.settings(),
        "data": cell.data.name,
        "fold": cell.data.fold,
        "n_trees": getattr(model, "n_trees", 0),
        "base_trees": measure.base_trees(model),
        "n_grown": trained.n_rounds,
        "rounds": [one["trees"] for one in model.info.get("rounds", ())] if cell.in_rounds else [],
        "trained_on": {
            "queries": lists.n_queries,
            "documents": lists.n_docs,
            "share": lists.n_docs / n_docs,
            "per_tree": None if per_tree is None else per_tree / n_docs,
        },
        "valid": _validation_value(cell, trained),
        "scoring": measure.scoring_times(cell, model) if cell.time_scoring and isinstance(model, Forest) else None,
        "conventions": [parse_metric(metric).describe() for metric in cell.metrics],
    }


def _validation_value(cell: Cell, trained: Trained) -> float | None:
    """The validation metric of the model; after the last tree if all trees are kept."""
    info = trained.model.info
    keeps_all = cell.grows_trees and not cell.in_rounds and not cell.params.early_stopping
    if keeps_all:
        return trained.history["valid"][-1]
    value = info.get("best_score")
    if value is None and cell.prune is not None:  # too few validation lists for a cross-fitted value
        value = info["pruning"]["after"]["valid"]
    return value


def versions() -> dict[str, str]:
    """The versions and the machine behind the numbers."""
    return {
        "ranksieve": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
    }


def _store_lists(cell: Cell, out: Path, loaded: Loaded) -> None:
    """Sizes of the lists of each part, once for each data set."""
    folder = out / "data"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("train", "valid", "test"):
        lists = getattr(loaded, name).binned.lists
        path = folder / f"{cell.data.title} {name}.parquet"
        with atomic_path(path) as temporary:
            pq.write_table(pa.table(measure.list_columns(lists)), temporary)


def _store(folder: Path, key: str, facts: dict[str, Any], model: Model, tables: dict[str, pa.Table]) -> None:
    unfinished = folder / f"{UNFINISHED}{os.getpid()}-{key}"
    unfinished.mkdir(parents=True)
    model.save(unfinished / MODEL)
    for name, table in tables.items():
        pq.write_table(table, unfinished / f"{name}.parquet")
    with open(unfinished / CELL, "w", encoding="utf-8") as file:
        json.dump(facts, file, indent=1, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.replace(unfinished, folder / key)
    except OSError as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        if (folder / key).is_dir():  # a worker of an earlier, killed run has stored it
            return
        raise RanksieveError(f"{folder / key}: cannot be written ({error.strerror})") from error

"""Running one cell: sample, train, measure on the test lists, store everything that a report may ask for."""

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
from ranksieve.boosting.callbacks import Tally
from ranksieve.errors import RanksieveError
from ranksieve.evaluation.metrics import parse_metric
from ranksieve.experiments import measuring
from ranksieve.experiments.data import BACKGROUND, Loaded, Part, load, load_values
from ranksieve.experiments.scoring import scoring_times
from ranksieve.experiments.spec import Cell
from ranksieve.experiments.training import CELLS, MODEL, taught_part, taught_rows, trained
from ranksieve.files import atomic_path
from ranksieve.forest.forest import Forest
from ranksieve.forest.model import Model

UNFINISHED = ".unfinished-"

Watch = Callable[[Cell], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Made:
    """A cell's model, and what was noted while it was trained."""

    model: Any
    taught: Part
    tally: Tally | None
    stopwatch: measuring.Stopwatch
    history: dict[str, list[float]]

    @property
    def n_rounds(self) -> int:
        return len(self.history["valid"])

    @property
    def trees_a_round(self) -> int:
        """More than one where every grade has its own; none where there are no trees."""
        return getattr(self.model, "n_outputs", 1) if getattr(self.model, "n_trees", 0) else 0


def run_cell(cell: Cell, out: Path, *, threads: int = 0, alone: bool = True, watch: Watch | None = None) -> None:
    """Train and measure a cell into `out/cells/<key>`; the folder appears when everything in it is written.

    `watch` gives a context around the training whose value is one more training callback.
    """
    began, clock, cpu = datetime.now(timezone.utc), time.perf_counter(), time.process_time()
    loaded = load(cell.data, cell.params.max_bins)
    loading = time.perf_counter() - clock
    _store_lists(cell, out, loaded)
    made = _trained(cell, out, loaded, threads, watch)
    measured, queries, scores = measuring.measure(cell, made.model, loaded.test)
    tables = {**_tables(cell, made, loaded), "queries": queries, "documents": measuring.documents(loaded.test, scores)}
    facts = {
        **_facts(cell, made, loaded),
        "test": measured,
        "seconds": {
            "loading": loading,
            **made.stopwatch.summary(0 if cell.is_made_whole or cell.blended else made.trees_a_round),
            "all": time.perf_counter() - clock,
            "cpu": time.process_time() - cpu,
        },
        "threads": threads or cell.params.threads or os.cpu_count(),
        "alone": alone,
        "began": began.isoformat(timespec="seconds"),
        "versions": versions(),
    }
    _store(out / CELLS, cell.key, facts, made.model, tables)


def _trained(cell: Cell, out: Path, loaded: Loaded, threads: int, watch: Watch | None) -> Made:
    """Sample and train, with the time of every tree and who taught it."""
    rows = taught_rows(cell, out, loaded.train)
    taught = taught_part(loaded.train, rows)
    stopwatch = measuring.Stopwatch()
    tally = Tally() if cell.grows_trees else None
    parts = ("valid", "test", *(("train",) if cell.follow_training else ()))
    with nullcontext() if watch is None else watch(cell) as own:
        callbacks = (*(() if cell.is_made_whole else (stopwatch,)), *(() if own is None else (own,)))
        start = time.perf_counter()
        model = trained(cell, out, loaded, taught, rows, parts, threads, callbacks, tally)
        in_all = time.perf_counter() - start
    history = measuring.history_of(cell, model, loaded)
    stopwatch.fit(len(history["valid"]), in_all)
    return Made(model, taught, tally, stopwatch, history)


def _tables(cell: Cell, made: Made, loaded: Loaded) -> dict[str, pa.Table]:
    """The curve, and who taught and which leaves negatives share where the cell is to record them."""
    trees = max(made.trees_a_round, 1) * np.arange(1, made.n_rounds + 1)
    steps = {"step": made.model.info["steps"]} if "steps" in made.model.info else {}
    tables = {"curve": pa.table({"trees": trees, **made.history, "seconds": made.stopwatch.seconds, **steps})}
    if cell.selections and made.tally is not None:
        tables["selected"] = measuring.selected(made.taught, made.tally)
    if cell.shared_leaves:
        tables["shared_leaves"] = measuring.pairs_by_shared_leaves(cell, made.model, loaded.train.binned.lists)
    return tables


def _facts(cell: Cell, made: Made, loaded: Loaded) -> dict[str, Any]:
    """What the cell is, its model's size, what taught it, and its validation value."""
    model = made.model
    lists = load_values(cell.data)[BACKGROUND].lists if cell.background else made.taught.binned.lists
    n_docs = lists.n_docs if cell.background else loaded.train.binned.lists.n_docs  # before the sample
    per_tree = measuring.docs_per_tree(cell, made.tally, made.n_rounds, lists.n_docs)
    return {
        "key": cell.key,
        "label": cell.label,
        "settings": cell.settings(),
        "data": cell.data.name,
        "fold": cell.data.fold,
        "n_trees": getattr(model, "n_trees", 0),
        "base_trees": measuring.base_trees(model),
        "n_grown": made.n_rounds,
        "rounds": [one["trees"] for one in model.info.get("rounds", ())] if cell.in_rounds else [],
        "taught": {
            "queries": lists.n_queries,
            "documents": lists.n_docs,
            "share": lists.n_docs / n_docs,
            "per_tree": None if per_tree is None else per_tree / n_docs,
        },
        "valid": model.info.get("best_score"),
        "scoring": scoring_times(cell, model) if cell.time_scoring and isinstance(model, Forest) else None,
        "conventions": [parse_metric(metric).describe() for metric in cell.metrics],
    }


def versions() -> dict[str, str]:
    """What the numbers were made with."""
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
            pq.write_table(
                pa.table(
                    {
                        "query": [str(q) for q in lists.query_ids],
                        "n_docs": lists.sizes,
                        "n_positives": np.add.reduceat(lists.labels > 0, lists.offsets[:-1]),
                    }
                ),
                temporary,
            )


def _store(folder: Path, key: str, facts: dict[str, Any], model: Model, tables: dict[str, pa.Table]) -> None:
    unfinished = folder / f"{UNFINISHED}{os.getpid()}-{key}"
    unfinished.mkdir(parents=True)
    model.save(unfinished / MODEL)
    for name, table in tables.items():
        pq.write_table(table, unfinished / f"{name}.parquet")
    with open(unfinished / "cell.json", "w", encoding="utf-8") as file:
        json.dump(facts, file, indent=1, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.replace(unfinished, folder / key)
    except OSError as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        if (folder / key).is_dir():  # a worker of an earlier, killed run was faster
            return
        raise RanksieveError(f"{folder / key}: cannot be written ({error.strerror})") from error

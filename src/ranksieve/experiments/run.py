"""`run_experiment`: every cell that is not finished yet, then the folder read back."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ranksieve.errors import DataError
from ranksieve.experiments.cell import UNFINISHED, Watch, run_cell, versions
from ranksieve.experiments.pool import Task, run_tasks
from ranksieve.experiments.results import CELL, EXPERIMENT, Results
from ranksieve.experiments.spec import Cell, Spec
from ranksieve.experiments.training import CELLS
from ranksieve.experiments.tune import load_optuna, search, studies, tuned_cells
from ranksieve.files import atomic_path

Tell = Callable[[Cell, int, int], None]


def run_experiment(
    spec: Spec,
    out: str | os.PathLike[str],
    *,
    jobs: int = 0,
    tune: int = 0,
    tell: Tell = lambda cell, n_done, n_cells: None,
    watch: Watch | None = None,
) -> Results:
    """Run an experiment into a folder; cells that are finished there already are kept.

    Parameters
    ----------
    spec : Spec
        As `load_spec` reads it.
    out : folder
        Made where it does not exist. Interrupted at any moment, it holds every finished cell whole, and the same call
        goes on with the others.
    jobs : int
        Cells at a time, one thread each; 0 is one per core, 1 runs them here, one after the other, on all cores. An
        experiment that measures times (`timed = true`) always has one.
    tune : int
        Search so many trials for each run's parameters (the specification's table `tune`) on validation lists, and run
        the best; needs Optuna. A run's own grid is searched too. Runs that heed none of the parameters run as they are.
    tell : function
        Called after each cell with the cell, and how many of how many are done.
    watch : function
        Gives for a cell a context around its training whose value is a training callback; of cells that run here.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from ranksieve.experiments.read_spec import load_spec
    >>> text = '''
    ... [data.small]
    ... generate = "cubic"
    ... queries = 30
    ... [[runs]]
    ... algo = "lambdamart"
    ... trees = 3
    ... leaves = [4, 8]
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "small.toml")
    ...     _ = path.write_text(text)
    ...     results = run_experiment(load_spec(path), f"{folder}/out", jobs=1)
    ...     [cell.label for cell in results.cells]
    ['lambdamart, leaves 4', 'lambdamart, leaves 8']
    """
    if tune:
        load_optuna()  # complains before any work is done
    folder = Path(out)
    try:
        (folder / CELLS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder}: cannot be made ({error.strerror}); choose another folder") from error
    jobs = 1 if spec.timed else jobs or os.cpu_count() or 1
    with _alone_in(folder):
        for left in (folder / CELLS).glob(f"{UNFINISHED}*"):
            shutil.rmtree(left, ignore_errors=True)
        if tune:
            _run_tuned(spec, folder, jobs, tune, tell)
        else:
            _store_experiment(spec, folder)
            _run_cells(spec.cells, folder, jobs, tell, watch)
    return Results.open(folder)


def _run_cells(cells: Sequence[Cell], folder: Path, jobs: int, tell: Tell, watch: Watch | None = None) -> None:
    tasks = [Task(cell.key, cell, tuple(needed.key for needed in cell.needs)) for cell in cells]
    done = [task.key for task in tasks if (folder / CELLS / task.key / CELL).exists()]
    n_done = len(done)

    def count(task: Task) -> None:
        nonlocal n_done
        n_done += 1
        tell(task.payload, n_done, len(tasks))

    work = functools.partial(run_cell, watch=watch) if watch is not None and jobs == 1 else run_cell
    run_tasks(tasks, work, folder, jobs=jobs, done=done, tell=count)


def _run_tuned(spec: Spec, folder: Path, jobs: int, n_trials: int, tell: Tell) -> None:
    """Search, then run the best of each run; runs that need another run's model come after it."""
    tuned: list[Cell] = []
    runs = list(dict.fromkeys(cell.run for cell in spec.cells))
    for depth in sorted({_depth(cell) for cell in spec.cells}):
        cells = [_on_tuned(cell, tuned) for cell in spec.cells if _depth(cell) == depth]
        searched = studies(cells, spec.tune, n_trials)
        tasks = [Task(study.key, study) for study in searched]
        run_tasks(tasks, search, folder, jobs=jobs, tell=lambda task: None)
        places = [study.place for study in searched]
        found = [cell for cell in cells if cell.place not in places]  # nothing of theirs can be tuned
        found += [cell for study in searched for cell in tuned_cells(cells, study, folder)]
        tuned += sorted(found, key=lambda cell: runs.index(cell.run))
        _store_experiment(dataclasses.replace(spec, cells=tuple(tuned)), folder)
        _run_cells(tuned, folder, jobs, tell)


def _depth(cell: Cell) -> int:
    """How many runs have to come before a cell's, one after the other."""
    return 1 + max(map(_depth, cell.needs), default=-1)


def _on_tuned(cell: Cell, tuned: Sequence[Cell]) -> Cell:
    """The cell with tuned cells in place of those it needs."""

    def tuned_one(needed: Cell | None) -> Any:
        if needed is None:
            return None
        found = [one for one in tuned if (one.data, one.run) == (cell.data, needed.run)]
        return next((one for one in found if one.seed == cell.seed), found[0])

    return dataclasses.replace(
        cell,
        teacher=tuned_one(cell.teacher),
        init=tuned_one(cell.init),
        blended=tuple(map(tuned_one, cell.blended)),
    )


def _store_experiment(spec: Spec, folder: Path) -> None:
    facts: dict[str, Any] = {
        "title": spec.title,
        "about": spec.about,
        "spec": Path(spec.path).name,
        "quick": spec.quick,
        "metrics": spec.metrics,
        "stages": spec.stages,
        "figures": spec.figures,
        "baseline": spec.baseline,
        "compare": spec.compare,
        "timed": spec.timed,
        "data": [data.identity() for data in spec.data],
        "cells": [cell.key for cell in spec.cells],
        "began": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": versions(),
    }
    with atomic_path(folder / "spec.toml") as path:
        path.write_text(spec.text, encoding="utf-8")
    with atomic_path(folder / EXPERIMENT) as path:
        path.write_text(json.dumps(facts, indent=1, ensure_ascii=False), encoding="utf-8")


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keep a second run out of the folder; the system forgets the lock when the process dies."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    with open(folder / ".lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise DataError(f"{folder}: another experiment is running there; wait, or choose another folder") from error
        yield

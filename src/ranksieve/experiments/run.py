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

from ranksieve.errors import DataError, RanksieveError
from ranksieve.experiments.pool import Job, run_jobs
from ranksieve.experiments.read_spec import check_rules
from ranksieve.experiments.results import CELL, EXPERIMENT, Results
from ranksieve.experiments.run_cell import UNFINISHED, CallbackFor, run_cell, versions
from ranksieve.experiments.spec import Cell, Spec
from ranksieve.experiments.studies import search, studies, tuned, tuned_cells
from ranksieve.experiments.train_cell import CELLS
from ranksieve.files import atomic_path, locked
from ranksieve.rankers.trials import load_optuna

# of a specification
STORED = ("title", "about", "quick", "metrics", "stages", "figures", "baseline", "compare", "timed", "notes")

OnCell = Callable[[Cell, int, int], None]


def run_experiment(
    spec: Spec,
    out: str | os.PathLike[str],
    *,
    jobs: int = 0,
    tune: int = 0,
    on_cell: OnCell = lambda cell, n_done, n_cells: None,
    callback_for: CallbackFor | None = None,
) -> Results:
    """Run an experiment into a folder; cells that are finished there already are kept.

    Parameters
    ----------
    spec : Spec
        As `load_spec` reads it. Selections of your own, `file.py:function`, are run now.
    out : folder
        Made if it does not exist. It always holds every finished cell; after an interruption, the same call runs the
        others.
    jobs : int
        Cells to run at the same time, in processes of one thread each; 0 is one per core. 1 runs them in this process,
        one after the other, on all cores. An experiment that measures times (`timed = true`) always runs one.
    tune : int
        Number of trials to search each run's parameters (the specification's table `tune`) on validation lists before
        the best is run; needs Optuna. A run's own grid is searched too. Runs that use none of the parameters run as
        they are.
    on_cell : function
        Called after each cell with the cell, and how many of how many are done.
    callback_for : function
        Takes a cell and returns a context manager around its training, whose value is a training callback. Only for
        cells that run in this process.

    Examples
    --------
    >>> import pathlib
    >>> from ranksieve.experiments import load_spec
    >>> text = '''
    ... data.small = {generate = "cubic", queries = 30}
    ... runs = [{algo = "lambdamart", trees = 3, leaves = [4, 8]}]
    ... '''
    >>> _ = pathlib.Path("small.toml").write_text(text)
    >>> [cell.label for cell in run_experiment(load_spec("small.toml"), "small", jobs=1).cells]
    ['lambdamart, leaves 4', 'lambdamart, leaves 8']
    """
    if tune:
        load_optuna()  # fails before any work is done
    rules = {(cell.params.selection, cell.params.objective): cell.params for cell in spec.cells}
    for params in rules.values():
        try:
            check_rules(params, run_code=True)
        except RanksieveError as error:
            raise error.with_prefix(f"{spec.path}: ") from None
    folder = Path(out)
    try:
        (folder / CELLS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder}: cannot be created ({error.strerror}); choose another folder") from error
    jobs = 1 if spec.timed else jobs or os.cpu_count() or 1
    with _locked_folder(folder):
        for left in (folder / CELLS).glob(f"{UNFINISHED}*"):
            shutil.rmtree(left, ignore_errors=True)
        if tune:
            _run_tuned(spec, folder, jobs, tune, on_cell)
        else:
            _store_experiment(spec, folder)
            _run_cells(spec.cells, folder, jobs, on_cell, callback_for)
    return Results.open(folder)


def _run_cells(
    cells: Sequence[Cell], folder: Path, n_workers: int, on_cell: OnCell, callback_for: CallbackFor | None = None
) -> None:
    jobs = [Job(cell.key, cell, tuple(needed.key for needed in cell.needs)) for cell in cells]
    done = [job.key for job in jobs if (folder / CELLS / job.key / CELL).exists()]
    n_done = len(done)

    def count(job: Job) -> None:
        nonlocal n_done
        n_done += 1
        on_cell(job.item, n_done, len(jobs))

    in_process = callback_for is not None and n_workers == 1
    work = functools.partial(run_cell, callback_for=callback_for) if in_process else run_cell
    run_jobs(jobs, work, folder, n_workers=n_workers, done=done, on_done=count)


def _run_tuned(spec: Spec, folder: Path, n_workers: int, n_trials: int, on_cell: OnCell) -> None:
    """Search, then run the best of each run; runs that need another run's model come after it."""
    tuned_so_far: list[Cell] = []
    chosen: list[dict[str, Any]] = []
    runs = list(dict.fromkeys(cell.run for cell in spec.cells))
    for depth in sorted({_depth(cell) for cell in spec.cells}):
        cells = [_with_tuned_cells(cell, tuned_so_far) for cell in spec.cells if _depth(cell) == depth]
        searched = studies(cells, spec.tune, n_trials)
        run_jobs([Job(study.key, study) for study in searched], search, folder, n_workers=n_workers)
        places = [study.place for study in searched]
        found = [cell for cell in cells if cell.place not in places]  # nothing to choose
        for study in searched:
            chosen.append(tuned(study, folder))
            found += tuned_cells(cells, study, chosen[-1]["best"])
        tuned_so_far += sorted(found, key=lambda cell: runs.index(cell.run))
        _store_experiment(dataclasses.replace(spec, cells=tuple(tuned_so_far)), folder, chosen)
        _run_cells(tuned_so_far, folder, n_workers, on_cell)


def _depth(cell: Cell) -> int:
    """How many runs have to come before a cell's, one after the other."""
    return 1 + max(map(_depth, cell.needs), default=-1)


def _with_tuned_cells(cell: Cell, tuned: Sequence[Cell]) -> Cell:
    """The cell with tuned cells in place of those it needs."""

    def tuned_one(needed: Cell | None) -> Any:
        if needed is None:
            return None
        found = [one for one in tuned if (one.data, one.run) == (cell.data, needed.run)]
        return next((one for one in found if one.seed == cell.seed), found[0])

    return dataclasses.replace(
        cell,
        model_cell=tuned_one(cell.model_cell),
        init=tuned_one(cell.init),
        interpolated=tuple(map(tuned_one, cell.interpolated)),
    )


def _store_experiment(spec: Spec, folder: Path, tuned: Sequence[dict[str, Any]] = ()) -> None:
    facts: dict[str, Any] = {
        **{name: getattr(spec, name) for name in STORED},
        "spec": Path(spec.path).name,
        "tuned": tuned,
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
def _locked_folder(folder: Path) -> Iterator[None]:
    """Lock the folder against a second run; the OS releases the lock when the process dies."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(folder / ".lock", tries=1))
        except BlockingIOError as error:
            raise DataError(f"{folder}: another experiment is running there; wait, or choose another folder") from error
        except OSError as error:
            raise DataError(f"{folder}: cannot be locked ({error}); choose a folder that is writable") from error
        yield

"""The model after 1, 5 and 20 minutes of tuning and training: SelGB and LightGBM with one search and one space.

    python benchmarks/same_time.py ../shared/data [--features FOLDER] [--work FOLDER] [--data NAME …] [--minutes N …]
        [--sides NAME …] [--folds N] [--cpu]

Every side has the same wall time on all cores, from the data in memory to the model; with --cpu the same CPU time on
one thread, which other programs do not change. `rs.tune` chooses parameters on validation lists (Optuna, the same space
and seeds). A search has two results: the model of its best trial, and the mean of the models of its five best trials,
which `tune` returns. Kernels are compiled before. NDCG@10 on test lists; p of the two-sided randomization test against
LightGBM after as many minutes. A run that was interrupted continues with the searches that are missing; without --cpu,
run it on an idle machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import ranksieve as rs
from cells import Cell, Learned, Outcome, compared
from defaults import DATA
from ranksieve.rankers.trials import SPACE
from ranksieve.rankers.tune import Tuned
from results import save
from split_gain import Fold

MINUTES = (1.0, 5.0, 20.0)


def two_stage_folds(arguments: argparse.Namespace) -> list[Fold]:
    """The training and validation lists of `defaults.py`, with more test lists."""
    return [Fold(rs.synth.two_stage(90), rs.synth.two_stage(45, start=90), rs.synth.two_stage(400, start=135))]


LISTS = {name: DATA[name] for name in ("bugs, 1000 deep", "movies")}
LISTS["two-stage, 400 test lists"] = (1, two_stage_folds)
SHARED = {name: values for name, values in SPACE.items() if name != "negatives"}  # what both have
COMMON = {"trees": 1000, "early_stopping": 100, "seed": 0}
SIDES = {"LightGBM": "lightgbm", "SelGB": "selgb", "λ-MART": "lambdamart"}
RESULTS = ("best trial", "mean of five")


def search(fold: Fold, setting: Mapping[str, Any]) -> Tuned:
    """What one side finds in its time."""
    given = {name: setting[name] for name in ("algo", "minutes", "threads")}
    return rs.tune(fold.train, valid=fold.valid, trials=10_000, space=SHARED, **COMMON, **given)


def learned(found: Tuned, result: str, test: rs.Dataset) -> Learned:
    """A result of a search, measured."""
    model, value = found.model, found.best_score
    if result == "best trial":
        model, value = found.chosen[0].model, found.chosen[0].value
    return value, model.n_trees, model.predict(test)


def cells_of(data: str, side: str, minutes: float, arguments: argparse.Namespace) -> list[dict[str, Cell]]:
    """The cells of each fold, by the result."""
    n_folds = min(LISTS[data][0], arguments.folds)
    name = f"{data} {side}".replace(" ", "-").replace(",", "")
    setting = {"algo": SIDES[side], "minutes": minutes, "threads": 1 if arguments.cpu else None}
    common, lists = {**COMMON, "space": SHARED}, (data, LISTS[data][0])
    return [
        {one: Cell(arguments.work, lists, fold, name, common, {**setting, "result": one}) for one in RESULTS}
        for fold in range(n_folds)
    ]


def run(data: str, arguments: argparse.Namespace) -> None:
    missing = [
        cells
        for minutes in arguments.minutes
        for side in arguments.sides
        for cells in cells_of(data, side, minutes, arguments)
        if not all(cell.path.exists() for cell in cells.values())
    ]
    folds = LISTS[data][1](arguments) if missing else []
    if missing:
        search(folds[0], {"algo": "selgb", "minutes": 0.05, "threads": 1})  # compiles
    for cells in missing:
        first = cells[RESULTS[0]]
        fold = folds[first.fold]
        found = search(fold, first.setting)
        for result, cell in cells.items():
            cell.run(partial(learned, found, result, fold.test), fold.test)


def rows(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Both results of each side on each collection after each time, and their differences to LightGBM's."""
    for data in arguments.data:
        for minutes in arguments.minutes:
            done = {}
            for side in arguments.sides:
                cells = cells_of(data, side, minutes, arguments)
                if all(cell.path.exists() for fold in cells for cell in fold.values()):
                    done |= {(side, one): Outcome(f"{side}, {one}", [[fold[one] for fold in cells]]) for one in RESULTS}
            for (side, _), outcome in done.items():
                row = {"data": data, "minutes": minutes, "clock": "CPU" if arguments.cpu else "wall", **outcome.row()}
                row.pop("chosen by fold")
                for other in (done.get(("LightGBM", one)) for one in RESULTS if side != "LightGBM"):
                    if other is not None:
                        test = compared(outcome, other, list(range(len(outcome.chosen))))
                        row |= {f"difference to {other.side}": test["difference"], f"p, {other.side}": test["p"]}
                yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", type=Path, help="folder that holds ir/bugs-ecf, ir/movies, …")
    parser.add_argument("--features", type=Path, default=Path("build/bugs"), help="where features are or go")
    parser.add_argument("--work", type=Path, default=Path("build/same_time"), help="where finished cells are kept")
    parser.add_argument("--data", nargs="*", choices=LISTS, default=list(LISTS), help="which collections to run")
    parser.add_argument("--minutes", nargs="*", type=float, default=list(MINUTES), help="times to give each side")
    parser.add_argument("--sides", nargs="*", choices=SIDES, default=["LightGBM", "SelGB"], help="what to compare")
    parser.add_argument("--folds", type=int, default=5, help="folds of each collection at most")
    parser.add_argument("--cpu", action="store_true", help="minutes are CPU time of one thread")
    arguments = parser.parse_args()
    if arguments.cpu:
        time.monotonic = time.process_time  # the clock of `rs.tune`
    arguments.work.mkdir(parents=True, exist_ok=True)
    for data in arguments.data:
        run(data, arguments)
    table = list(rows(arguments))
    for row in table:
        print(row)
    save("same_time", table)


if __name__ == "__main__":
    main()

"""The best model after 1, 5 and 20 minutes of tuning and training: SelGB and LightGBM with one search and one space.

    python benchmarks/same_time.py ../shared/data [--features FOLDER] [--work FOLDER] [--data NAME …] [--minutes N …]
        [--sides NAME …] [--folds N] [--cpu]

Every side has the same wall time on all cores, from the data in memory to the model; with --cpu the same CPU time on
one thread, which other programs do not change. `rs.tune` chooses parameters on
validation lists (Optuna, the same space and seeds). A side that bags searches for half of the time; as many forests as
fit into the other half are trained with the parameters found. Kernels are compiled before. NDCG@10 on test lists; p of
the two-sided randomization test against LightGBM after as many minutes. A run that was interrupted continues with the
cells that are missing; without --cpu, run it on an idle machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import ranksieve as rs
from cells import Cell, Learned, Outcome, compared
from defaults import DATA
from ranksieve.rankers.trials import SPACE
from results import save
from split_gain import Fold

MINUTES = (1.0, 5.0, 20.0)
LISTS = ("bugs, 1000 deep", "movies", "two-stage")
SHARED = {name: values for name, values in SPACE.items() if name != "negatives"}  # what both have
COMMON = {"trees": 1000, "early_stopping": 100, "seed": 0}
SIDES = {
    "LightGBM": {"algo": "lightgbm", "bags": False},
    "SelGB": {"algo": "selgb", "bags": False},
    "SelGB, bag": {"algo": "selgb", "bags": True},
    "λ-MART": {"algo": "lambdamart", "bags": False},
}
MOST_FORESTS = 20


def learn(fold: Fold, side: dict[str, Any], minutes: float) -> Learned:
    """The model of one side after some minutes."""
    begin, wall = time.monotonic(), time.perf_counter()
    given = {**COMMON, "algo": side["algo"], "threads": side["threads"]}
    searching = minutes / 2 if side["bags"] else minutes
    found = rs.tune(fold.train, valid=fold.valid, minutes=searching, trials=10_000, space=SHARED, **given)
    model, value = found.model, found.best_score
    if side["bags"]:
        spent = time.monotonic() - begin
        left, rate = 60.0 * minutes - spent, spent / (time.perf_counter() - wall)
        seconds = rate * max(one.seconds for one in found.trials if one.value == found.best_score)
        n_forests = min(MOST_FORESTS, int(left / seconds))
        if n_forests > 1:
            bag = rs.train(fold.train, valid=fold.valid, bag=n_forests, verbose=False, **given, **found.values)
            if bag.info["best_score"] >= value:
                model, value = bag, bag.info["best_score"]
    return value, model.n_trees, model.predict(fold.test)


def cells_of(data: str, side: str, minutes: float, arguments: argparse.Namespace) -> list[Cell]:
    n_folds = min(DATA[data][0], arguments.folds)
    name = f"{data} {side}".replace(" ", "-").replace(",", "")
    setting = {**SIDES[side], "minutes": minutes, "threads": 1 if arguments.cpu else None}
    common = {**COMMON, "space": SHARED}
    return [Cell(arguments.work, (data, DATA[data][0]), fold, name, common, setting) for fold in range(n_folds)]


def run(data: str, arguments: argparse.Namespace) -> None:
    missing = [
        (side, minutes, cell)
        for minutes in arguments.minutes
        for side in arguments.sides
        for cell in cells_of(data, side, minutes, arguments)
        if not cell.path.exists()
    ]
    folds = DATA[data][1](arguments) if missing else []
    for _, _, cell in missing[:1]:
        learn(folds[0], {**cell.setting, "algo": "selgb"}, 0.05)  # compiles
    for _, minutes, cell in missing:
        cell.run(partial(learn, folds[cell.fold], cell.setting, minutes), folds[cell.fold].test)


def rows(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Each side on each collection after each time, and the difference to LightGBM after as long."""
    for data in arguments.data:
        for minutes in arguments.minutes:
            cells = {side: cells_of(data, side, minutes, arguments) for side in arguments.sides}
            done = {
                side: Outcome(side, [found])
                for side, found in cells.items()
                if all(cell.path.exists() for cell in found)
            }
            for side, outcome in done.items():
                row = {"data": data, "minutes": minutes, "clock": "CPU" if arguments.cpu else "wall", **outcome.row()}
                row.pop("chosen by fold")
                if side != "LightGBM" and "LightGBM" in done:
                    test = compared(outcome, done["LightGBM"], list(range(len(cells[side]))))
                    row |= {"difference": test["difference"], "p against LightGBM": test["p"]}
                yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", type=Path, help="folder that holds ir/bugs-ecf, ir/movies, …")
    parser.add_argument("--features", type=Path, default=Path("build/bugs"), help="where features are or go")
    parser.add_argument("--work", type=Path, default=Path("build/same_time"), help="where finished cells are kept")
    parser.add_argument("--data", nargs="*", choices=DATA, default=list(LISTS), help="which collections to run")
    parser.add_argument("--minutes", nargs="*", type=float, default=list(MINUTES), help="times to give each side")
    parser.add_argument("--sides", nargs="*", choices=SIDES, default=list(SIDES), help="what to compare")
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

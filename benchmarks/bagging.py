"""When a bag of five forests is better than one: the defaults, their bag, and LightGBM on all collections.

    python benchmarks/bagging.py ../shared/data [--features FOLDER] [--work FOLDER] [--data NAME …] [--sides NAME …]

The number of trees is that with the best NDCG@10 on a fold's validation lists, see `defaults.py`, whose best setting of
LightGBM for most collections stands beside. A run that was interrupted continues with the cells that are missing. One
thread; p-values of the two-sided randomization test.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import ranksieve as rs
from cells import Cell, Outcome, Setting, compared
from defaults import COMMON, DATA, HALF, LIGHTGBM, SMALL
from results import save
from split_gain import learn

SIDES: dict[str, Setting] = {
    "defaults": {"algo": "selgb"},
    "bag of five, 30% of the features": {"algo": "selgb", "bag": 5, "feature_fraction": 0.3},
    "LightGBM": {**LIGHTGBM, **SMALL, **HALF},
}
LISTS = [name for name in DATA if name != "bugs, whole lists"]


def cells_of(data: str, side: str, work: Path) -> list[Cell]:
    name = f"{data} {side}".replace(" ", "-").replace(",", "").replace("%", "")
    n_folds = DATA[data][0]
    return [Cell(work, (data, n_folds), fold, name, COMMON, SIDES[side]) for fold in range(n_folds)]


def run(data: str, arguments: argparse.Namespace) -> None:
    cells = [cell for side in arguments.sides for cell in cells_of(data, side, arguments.work)]
    missing = [cell for cell in cells if not cell.path.exists()]
    folds = DATA[data][1](arguments) if missing else []
    for cell in missing:
        cell.run(partial(learn, folds[cell.fold], cell.settled), folds[cell.fold].test)


def outcomes(data: str, work: Path) -> dict[str, Outcome]:
    """The sides that are finished on a collection."""
    cells = {side: cells_of(data, side, work) for side in SIDES}
    return {side: Outcome(side, [own]) for side, own in cells.items() if all(cell.path.exists() for cell in own)}


def rows(data: str, work: Path) -> Iterator[dict[str, Any]]:
    """Each side on a collection, and its differences to the sides before it."""
    done = outcomes(data, work)
    for number, outcome in enumerate(done.values()):
        cpu = round(sum(cell.found["cpu s"] for cell in outcome.chosen), 1)
        row = {"data": data, **outcome.row(), "cpu s": cpu}
        row.pop("chosen by fold")
        for other in list(done)[:number]:
            test = compared(outcome, done[other], list(range(len(outcome.chosen))))
            row |= {f"difference to {other}": test["difference"], f"p, {other}": test["p"]}
        yield row


def pooled(names: list[str], work: Path) -> Iterator[dict[str, Any]]:
    """The differences of two sides over the queries of all collections."""
    found = [done for name in names if len(done := outcomes(name, work)) == len(SIDES)]
    for one, other in combinations(SIDES, 2):
        values = {side: np.array([v for done in found for v in done[side].values.values()]) for side in (other, one)}
        counted = ~np.isnan(values[one])
        test = rs.significance.randomization_test(*(side[counted] for side in values.values()))
        difference, p = round(test.difference, 4), round(test.p_value, 4)
        yield {
            "data": f"all {len(found)}", "queries": int(counted.sum()), "side": other,
            f"difference to {one}": difference, f"p, {one}": p,
        }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", type=Path, help="folder that holds ltr/MQ2008, …, and ir/bugs-ecf, …")
    parser.add_argument("--features", type=Path, default=Path("build/bugs"), help="where features are or go")
    parser.add_argument("--work", type=Path, default=Path("build/bagging"), help="where finished cells are kept")
    parser.add_argument("--data", nargs="*", choices=DATA, default=LISTS, help="which collections to run")
    parser.add_argument("--sides", nargs="*", choices=SIDES, default=list(SIDES), help="which sides to run")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    for data in arguments.data:
        run(data, arguments)
    table = [row for data in arguments.data for row in rows(data, arguments.work)]
    table += pooled(arguments.data, arguments.work)
    for row in table:
        print(row)
    save("bagging", table)


if __name__ == "__main__":
    main()

"""The model of the defaults, and a bag of five, with 70% of their trees removed, on all collections.

    python benchmarks/pruning_defaults.py ../shared/data [--features FOLDER] [--work FOLDER] [--data NAME …]

The number of trees is that with the best NDCG@10 on a fold's validation lists, see `defaults.py`. A model is pruned
on the same validation lists, by several strategies with `fallback=False`, and by the defaults of `prune`, which return
the first trees where these are better. The first trees alone stand beside. A run that was interrupted continues with
the cells that are missing. One thread; p-values of the two-sided randomization test, against the full model.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import ranksieve as rs
from cells import METRIC, Cell, Learned, Outcome, Setting, compared
from defaults import COMMON, DATA
from results import save
from split_gain import Fold

RATE = 0.7
MODELS: dict[str, Setting] = {"defaults": {}, "bag of five": {"bag": 5, "feature_fraction": 0.3}}
STRATEGIES = ("quality-loss", "quality-loss-once", "low-weights")
SIDES: dict[str, Setting] = {
    "all trees": {},
    "first trees": {"first": True},
    **{strategy: {"strategy": strategy, "fallback": False} for strategy in STRATEGIES},
    "prune": {"strategy": "quality-loss", "fallback": True},
}
LISTS = [name for name in DATA if name not in ("bugs, whole lists", "movies")]


def cells_of(data: str, model: str, side: str, work: Path) -> list[Cell]:
    name = f"{data} {model} {side}".replace(" ", "-").replace(",", "")
    common, n_folds = {**COMMON, **MODELS[model], "rate": RATE}, DATA[data][0]
    return [Cell(work, (data, n_folds), fold, name, common, SIDES[side]) for fold in range(n_folds)]


def pruned(model: rs.Forest, fold: Fold, setting: Setting) -> Learned:
    """The model that a side makes of the full one."""
    if "first" in setting:
        model = model.first(model.n_trees - int(RATE * model.n_trees))
    elif "strategy" in setting:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the first trees are better
            model = rs.prune(model, valid=fold.valid, rate=RATE, seed=0, threads=1, **setting)
    value = float(np.nanmean(METRIC.per_query(fold.valid.labels, model.predict(fold.valid), fold.valid.offsets)))
    return value, model.n_trees, model.predict(fold.test)


def run(data: str, model: str, arguments: argparse.Namespace) -> None:
    cells = [cell for side in SIDES for cell in cells_of(data, model, side, arguments.work) if not cell.path.exists()]
    folds = DATA[data][1](arguments) if cells else []
    for number in sorted({cell.fold for cell in cells}):
        fold = folds[number]
        train, valid = fold.binned
        full = rs.train(train, valid=valid, **COMMON, **MODELS[model])
        for cell in (cell for cell in cells if cell.fold == number):
            cell.run(partial(pruned, full, fold, cell.setting), fold.test)


def rows(data: str, model: str, work: Path) -> Iterator[dict[str, Any]]:
    """Each side on a collection, and its difference to the full model."""
    cells = {side: cells_of(data, model, side, work) for side in SIDES}
    if not all(cell.path.exists() for side in cells.values() for cell in side):
        return
    done = {side: Outcome(side, [found]) for side, found in cells.items()}
    for side, outcome in done.items():
        row = {"data": data, "model": model, **outcome.row()}
        row.pop("chosen by fold")
        if side != "all trees":
            test = compared(outcome, done["all trees"], list(range(DATA[data][0])))
            row |= {name: test[name] for name in ("queries", "difference", "p")}
        yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", type=Path, help="folder that holds ltr/MQ2008, …, and ir/bugs-ecf, …")
    parser.add_argument("--features", type=Path, default=Path("build/bugs"), help="where features are or go")
    parser.add_argument(
        "--work", type=Path, default=Path("build/pruning_defaults"), help="where finished cells are kept"
    )
    parser.add_argument("--data", nargs="*", choices=DATA, default=LISTS, help="which collections to run")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    for data in arguments.data:
        for model in MODELS:
            run(data, model, arguments)
    table = [row for data in arguments.data for model in MODELS for row in rows(data, model, arguments.work)]
    for row in table:
        print(row)
    save("pruning_defaults", table)


if __name__ == "__main__":
    main()

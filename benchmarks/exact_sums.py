"""Packed sums beside exact ones: the quality of the defaults and of λ-MART on all collections.

    python benchmarks/exact_sums.py ../shared/data [--features FOLDER] [--work FOLDER] [--data NAME …] [--models NAME …]

Packed sums of gradients are rounded at random (`boosting.fixed_point`), so their values are means over three seeds;
exact ones do not depend on the seed. With 80% of the features per tree they do, so both sides have eight seeds. Trees
are chosen on validation lists, see `defaults.py`. A difference has the standard error over queries, and that of the
exact side's mean stands beside it. A run that was interrupted continues with the cells that are missing. One thread.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import ranksieve as rs
from cells import Cell, Learned, Setting
from defaults import COMMON
from defaults import DATA as COLLECTIONS
from ranksieve.boosting import fixed_point
from results import save
from split_gain import Fold, learn

SAMPLED = "selgb, 80% of the features"
MODELS: dict[str, Setting] = {
    "selgb": {"algo": "selgb"},
    "lambdamart": {"algo": "lambdamart"},
    SAMPLED: {"algo": "selgb", "feature_fraction": 0.8},
}
SEEDS = {"exact": range(1), "packed": range(3)}
SEEDS_OF_SAMPLED = range(8)


def several_two_stage(arguments: argparse.Namespace) -> list[Fold]:
    """Training sets that differ, since the exact sums of one make a single model."""
    starts = range(1000, 9000, 1000)
    sizes = {0: 90, 90: 45, 135: 100}  # training, validation and test lists, by the first
    return [Fold(*(rs.synth.two_stage(n, start=start + first) for first, n in sizes.items())) for start in starts]


DATA = COLLECTIONS | {"two-stage, eight training sets": (8, several_two_stage)}
LISTS = [name for name in DATA if name not in ("bugs, 1000 deep", "bugs, whole lists")]


def learn_with(sums: str, fold: Fold, setting: Setting) -> Learned:
    """A model of packed sums, or of sums that are not rounded at random."""
    given = {name: value for name, value in setting.items() if name != "sums"}
    if sums == "packed":
        return learn(fold, given)
    with patch.object(fixed_point, "fits_one_integer", lambda n_rows: False):
        return learn(fold, given)


def cells_of(data: str, model: str, sums: str, work: Path) -> list[list[Cell]]:
    """One list of folds for each seed."""
    name = f"{data} {sums}".replace(" ", "-").replace(",", "")
    seeds = SEEDS_OF_SAMPLED if model == SAMPLED else SEEDS[sums]
    settings = [{**MODELS[model], "sums": sums, "seed": seed} for seed in seeds]
    folds = range(DATA[data][0])
    return [[Cell(work, (data, len(folds)), fold, name, COMMON, one) for fold in folds] for one in settings]


def run(data: str, arguments: argparse.Namespace) -> None:
    found = [(model, sums) for model in arguments.models for sums in SEEDS]
    cells = [
        cell for model, sums in found for seed in cells_of(data, model, sums, arguments.work) for cell in seed
        if not cell.path.exists()
    ]  # fmt: skip
    folds = DATA[data][1](arguments) if cells else []
    for cell in cells:
        fold = folds[cell.fold]
        cell.run(partial(learn_with, cell.settled["sums"], fold, cell.settled), fold.test)


def rows(data: str, work: Path) -> Iterator[dict[str, Any]]:
    """The models on one collection."""
    for model in MODELS:
        exact, packed = (cells_of(data, model, sums, work) for sums in SEEDS)
        if not all(cell.path.exists() for seed in (*exact, *packed) for cell in seed):
            continue
        values = [
            np.mean([[v for cell in seed for v in cell.found["test"].values()] for seed in side], axis=0)
            for side in (exact, packed)
        ]
        counted = ~np.isnan(values[0])
        reference, difference = values[0][counted], (values[1] - values[0])[counted]
        yield {
            "data": data, "model": model, "queries": int(counted.sum()),
            "exact": round(float(reference.mean()), 4),
            "packed": round(float(values[1][counted].mean()), 4),
            "difference": round(float(difference.mean()), 4),
            "s.e. of the difference": round(float(difference.std() / np.sqrt(len(difference))), 4),
            "s.e. of exact": round(float(reference.std() / np.sqrt(len(reference))), 4),
        }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", type=Path, help="folder that holds ltr/MQ2008, …, and ir/bugs-ecf, …")
    parser.add_argument("--features", type=Path, default=Path("build/bugs"), help="where features are or go")
    parser.add_argument("--work", type=Path, default=Path("build/exact_sums"), help="where finished cells are kept")
    parser.add_argument("--data", nargs="*", choices=DATA, default=LISTS, help="which collections to run")
    parser.add_argument("--models", nargs="*", choices=MODELS, default=list(MODELS)[:2], help="which models to train")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    for data in arguments.data:
        run(data, arguments)
    table = [row for data in arguments.data for row in rows(data, arguments.work)]
    for row in table:
        print(row)
    save("exact_sums", table)


if __name__ == "__main__":
    main()

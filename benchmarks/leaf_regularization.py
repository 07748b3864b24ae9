"""What helps Newton gain on small collections: L2 and smallest leaves relative to w, path smoothing, or smaller trees.

    python benchmarks/leaf_regularization.py ../shared/data [--features FOLDER] [--work FOLDER] [--data NAME …]

λ-MART with 64 leaves of at least 5 documents loses on OHSUMED with Newton gain. Each side changes one thing. "l2 of c
mean w" scales λ and w of a tree such that the mean of w is 1, which makes `l2` and `min_hessian` relative to it. Path
smoothing is LightGBM's. The number of trees is that with the best NDCG@10 on a fold's validation lists. Five folds,
means of three seeds, one thread. p-values are of the two-sided randomization test against the first side.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import ranksieve as rs
from cells import Cell, Learned, Setting
from defaults import COMMON, DATA, LIGHTGBM, NEWTON
from ranksieve.boosting.objectives.lambdas import LambdaNdcg
from ranksieve.boosting.views import Gradients, ObjectiveView
from ranksieve.rankers import lightgbm
from results import save
from split_gain import Fold, learn

SEEDS = (0, 1, 2)
LAMBDAMART: Setting = {"algo": "lambdamart", **NEWTON}


@dataclass(frozen=True)
class RelativeNdcg(LambdaNdcg):
    """λ of NDCG, with a mean w of 1."""

    def __call__(self, view: ObjectiveView) -> Gradients:
        grad, hess = super().__call__(view)
        mean = hess[hess > 0].mean() if (hess > 0).any() else 1.0
        return grad / mean, hess / mean


rs.params.register_objective("ndcg-relative", RelativeNdcg)
RELATIVE: Setting = {**LAMBDAMART, "objective": "ndcg-relative"}
LARGE_LEAVES: Setting = {**RELATIVE, "leaves": 16, "min_docs": 50}
SIDES: dict[str, Setting] = {
    "λ-MART, Newton": LAMBDAMART,
    "λ-MART, variance": {**LAMBDAMART, "gain": "variance"},
    **{f"l2 of {c} mean w": {**RELATIVE, "l2": float(c)} for c in (1, 10, 100)},
    **{f"leaves of at least {c} mean w": {**RELATIVE, "l2": 1.0, "min_hessian": float(c)} for c in (5, 20, 50)},
    "at least 50 documents a leaf": {**LAMBDAMART, "min_docs": 50},
    "16 leaves": {**LAMBDAMART, "leaves": 16},
    "16 leaves, at least 50 documents": {**LAMBDAMART, "leaves": 16, "min_docs": 50},
    **{f"16 leaves, at least 50 documents, l2 of {c} mean w": {**LARGE_LEAVES, "l2": float(c)} for c in (1, 10)},
    "LightGBM": LIGHTGBM,
    **{f"LightGBM, path_smooth {c}": {**LIGHTGBM, "path_smooth": float(c)} for c in (10, 100)},
    "LightGBM, 16 leaves, at least 50 documents": {**LIGHTGBM, "leaves": 16, "min_docs": 50},
}
LISTS = ("OHSUMED", "MQ2008", "vaswani")


def learn_side(fold: Fold, setting: Setting) -> Learned:
    given = {name: value for name, value in setting.items() if name != "path_smooth"}
    if "path_smooth" not in setting:
        return learn(fold, given)
    settings = lightgbm._settings
    with patch.object(lightgbm, "_settings", lambda *a: {**settings(*a), "path_smooth": setting["path_smooth"]}):
        return learn(fold, given)


def cells_of(data: str, side: str, work: Path) -> list[list[Cell]]:
    """One list of folds for each seed."""
    return [
        [Cell(work, (data, 5), fold, data, COMMON, {**SIDES[side], "seed": seed}) for fold in range(5)]
        for seed in SEEDS
    ]


def run(data: str, arguments: argparse.Namespace) -> None:
    cells = [cell for side in SIDES for seed in cells_of(data, side, arguments.work) for cell in seed]
    missing = [cell for cell in cells if not cell.path.exists()]
    folds = DATA[data][1](arguments) if missing else []
    for cell in missing:
        cell.run(partial(learn_side, folds[cell.fold], cell.settled), folds[cell.fold].test)


def rows(data: str, work: Path) -> Iterator[dict[str, Any]]:
    """Each side on one collection, beside the first."""
    reference: np.ndarray | None = None
    for side in SIDES:
        cells = cells_of(data, side, work)
        if not all(cell.path.exists() for seed in cells for cell in seed):
            continue
        values = np.mean([[v for cell in seed for v in cell.found["test"].values()] for seed in cells], axis=0)
        values = values[~np.isnan(values)]
        row = {"data": data, "side": side, "queries": len(values), "NDCG@10": round(float(values.mean()), 4)}
        if reference is None:
            reference = values
        else:
            test = rs.significance.randomization_test(values, reference)
            row |= {"difference": round(test.difference, 4), "p": round(test.p_value, 4)}
        yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", type=Path, help="folder that holds ltr/MQ2008, …, and ir/cranfield, …")
    parser.add_argument("--features", type=Path, default=Path("build/bugs"), help="where features are or go")
    parser.add_argument("--work", type=Path, default=Path("build/leaves"), help="where finished cells are kept")
    parser.add_argument("--data", nargs="*", choices=LISTS, default=LISTS, help="which collections to run")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    for data in arguments.data:
        run(data, arguments)
    table = [row for data in LISTS for row in rows(data, arguments.work)]
    for row in table:
        print(row)
    save("leaf_regularization", table)


if __name__ == "__main__":
    main()

"""Variance gain and Newton gain compared: λ-MART and SelGB with either, and LightGBM.

    python benchmarks/split_gain.py ../shared/data [--features FOLDER] [--work FOLDER] [--data NAME …]

MQ2008 and OHSUMED, the five official folds; the bug reports of four projects with the 300 files BM25F ranks best, one
fold of five. `two_stage.py` compares the gains on generated lists. Leaves, learning rate and patience are the same
for all sides, the defaults but for fewer trees. Each side is run with the default regularisation of leaves and with a
strong one; SelGB with two shares of the negatives. In every fold share and trees are those with the best NDCG@10 on the
fold's validation lists, and in the part `chosen` the regularisation is too. A run that was interrupted goes on with the
cells that are missing. One thread; p-values are of the two-sided randomization test.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import ranksieve as rs
from bug_lists import feature_files, shortened
from cells import Cell, Learned, Outcome, Setting, compared
from quality import folds
from ranksieve.data.binned import Binned, bin_data
from ranksieve.data.joined import JoinedSource, Piece
from ranksieve.data.read import read_source
from ranksieve.data.sampling import fold_queries
from results import save

COMMON: Setting = {"trees": 500, "early_stopping": 50, "leaves": 64, "learning_rate": 0.05, "seed": 0, "threads": 1}
LEAVES: dict[str, Setting] = {"default": {"min_docs": 5, "l2": 1.0}, "strong": {"min_docs": 50, "l2": 10.0}}
SHARES = {"MQ2008": (0.2, 0.5), "OHSUMED": (0.2, 0.5), "bug reports": (0.07, 0.2)}
GAINS = ("variance", "newton")
DEPTH = 300
BUG_FOLDS = 1  # of five


@dataclass
class Fold:
    """Training, validation and test lists of one fold, binned when first used."""

    train: rs.Dataset
    valid: rs.Dataset
    test: rs.Dataset

    @cached_property
    def binned(self) -> tuple[Binned, Binned]:
        train = bin_data(self.train)
        return train, bin_data(self.valid, binning=train.binning)


def learn(fold: Fold, setting: Setting) -> Learned:
    train, valid = (fold.train, fold.valid) if setting["algo"] == "lightgbm" else fold.binned
    model = rs.train(train, valid=valid, **setting)
    return model.info["best_score"], model.n_trees, model.predict(fold.test)


def letor_folds(name: str, arguments: argparse.Namespace) -> list[Fold]:
    return [Fold(*parts) for parts in folds(arguments.collections / "ltr" / name)]


def bug_folds(arguments: argparse.Namespace) -> list[Fold]:
    files = feature_files(arguments.collections / "ir", arguments.features)
    data = read_source(JoinedSource([Piece(shortened(file, arguments.work, DEPTH)) for file in files]))
    splits = list(fold_queries(data.n_queries, 5, seed=0))[:BUG_FOLDS]
    return [Fold(*(data.take_queries(queries) for queries in split)) for split in splits]


DATA: dict[str, tuple[int, Callable[[argparse.Namespace], list[Fold]]]] = {
    "MQ2008": (5, partial(letor_folds, "MQ2008")),
    "OHSUMED": (5, partial(letor_folds, "OHSUMED")),
    "bug reports": (BUG_FOLDS, bug_folds),
}


@dataclass(frozen=True)
class Plan:
    """The cells of all sides on one kind of lists."""

    name: str
    n_folds: int
    work: Path

    def settings(self) -> Iterator[tuple[str, str, list[Cell]]]:
        """Regularisation, side, and the cells of one setting for all folds."""
        shares = [{"negatives": share, "min_negatives": 1} for share in SHARES[self.name]]
        sides = {
            **{f"λ-MART, {gain}": [{"algo": "lambdamart", "gain": gain}] for gain in GAINS},
            **{f"SelGB, {gain}": [{"algo": "selgb", "gain": gain, **share} for share in shares] for gain in GAINS},
            "LightGBM": [{"algo": "lightgbm"}],
        }
        for leaves, regularisation in LEAVES.items():
            for side, settings in sides.items():
                for setting in settings:
                    yield (
                        leaves,
                        side,
                        [self._cell(fold, {**setting, **regularisation}) for fold in range(self.n_folds)],
                    )

    def _cell(self, fold: int, setting: Setting) -> Cell:
        return Cell(self.work, (self.name,), fold, self.name.replace(" ", "-"), COMMON, setting)

    def run(self, parts: list[Fold]) -> None:
        for _, _, cells in self.settings():
            for cell in cells:
                if not cell.path.exists():
                    cell.run(partial(learn, parts[cell.fold], cell.settled), parts[cell.fold].test)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Each side by regularisation and with the chosen one; Newton against variance, both against LightGBM."""
        parts: dict[str, dict[str, list[list[Cell]]]] = {leaves: {} for leaves in (*LEAVES, "chosen")}
        for leaves, side, cells in self.settings():
            if all(cell.path.exists() for cell in cells):
                for part in (leaves, "chosen"):
                    parts[part].setdefault(side, []).append(cells)
        for part, done in parts.items():
            outcomes = {side: Outcome(side, settings) for side, settings in done.items()}
            facts = {"data": self.name, "leaves": part}
            yield from ({**facts, **outcome.row()} for outcome in outcomes.values())
            for algo in ("λ-MART", "SelGB"):
                pairs = [(f"{algo}, newton", f"{algo}, variance"), *((f"{algo}, {gain}", "LightGBM") for gain in GAINS)]
                for one, other in pairs:
                    if one in outcomes and other in outcomes:
                        yield {**facts, **compared(outcomes[one], outcomes[other], list(range(self.n_folds)))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", type=Path, help="folder that holds ltr/MQ2008, …, and ir/bugs-ecf, …")
    parser.add_argument("--features", type=Path, default=Path("build/bugs"), help="where bug features are or go")
    parser.add_argument("--work", type=Path, default=Path("build/split_gain"), help="where finished cells are kept")
    parser.add_argument("--data", nargs="*", choices=DATA, default=list(DATA), help="which lists to run")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, (n_folds, make) in DATA.items():
        plan = Plan(name, n_folds, arguments.work)
        if name in arguments.data and not all(cell.path.exists() for *_, cells in plan.settings() for cell in cells):
            plan.run(make(arguments))
        rows += plan.rows()
    for row in rows:
        print(row)
    save("split_gain", rows)


if __name__ == "__main__":
    main()

"""Sides that are compared on all collections: the cells of each, the rows, and the differences over all queries."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import ranksieve as rs
from cells import Cell, Learned, Outcome, Setting, compared
from defaults import COMMON, DATA
from results import save
from split_gain import Fold

LISTS = [name for name in DATA if name != "bugs, whole lists"]


@dataclass(frozen=True)
class Comparison:
    """Settings by the name of their side, and how a model is trained; `name` is that of the file of results."""

    name: str
    sides: Mapping[str, Setting]
    learn: Callable[[Fold, Setting], Learned]
    lists: Sequence[str] = tuple(LISTS)

    def main(self, description: str) -> None:
        parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("collections", type=Path, help="folder that holds ltr/MQ2008, …, and ir/bugs-ecf, …")
        parser.add_argument("--features", type=Path, default=Path("build/bugs"), help="where features are or go")
        parser.add_argument(
            "--work", type=Path, default=Path("build") / self.name, help="where finished cells are kept"
        )
        parser.add_argument("--data", nargs="*", choices=DATA, default=list(self.lists), help="collections to run")
        parser.add_argument("--sides", nargs="*", choices=self.sides, default=list(self.sides), help="sides to run")
        arguments = parser.parse_args()
        arguments.work.mkdir(parents=True, exist_ok=True)
        for data in arguments.data:
            self._run(data, arguments)
        table = [row for data in arguments.data for row in self._rows(data, arguments.work)]
        table += self._pooled(arguments.data, arguments.work)
        for row in table:
            print(row)
        save(self.name, table)

    def _cells(self, data: str, side: str, work: Path) -> list[Cell]:
        name = f"{data} {side}".replace(" ", "-").replace(",", "").replace("%", "")
        n_folds = DATA[data][0]
        return [Cell(work, (data, n_folds), fold, name, COMMON, self.sides[side]) for fold in range(n_folds)]

    def _run(self, data: str, arguments: argparse.Namespace) -> None:
        cells = [cell for side in arguments.sides for cell in self._cells(data, side, arguments.work)]
        missing = [cell for cell in cells if not cell.path.exists()]
        folds = DATA[data][1](arguments) if missing else []
        for cell in missing:
            cell.run(partial(self.learn, folds[cell.fold], cell.settled), folds[cell.fold].test)

    def _outcomes(self, data: str, work: Path) -> dict[str, Outcome]:
        """The sides that are finished on a collection."""
        cells = {side: self._cells(data, side, work) for side in self.sides}
        return {side: Outcome(side, [own]) for side, own in cells.items() if all(cell.path.exists() for cell in own)}

    def _rows(self, data: str, work: Path) -> Iterator[dict[str, Any]]:
        """Each side on a collection, and its differences to the sides before it."""
        done = self._outcomes(data, work)
        for number, outcome in enumerate(done.values()):
            cpu = round(sum(cell.found["cpu s"] for cell in outcome.chosen), 1)
            row = {"data": data, **outcome.row(), "cpu s": cpu}
            row.pop("chosen by fold")
            if np.isnan(row["validation NDCG@10"]):  # trained without validation data
                row.pop("validation NDCG@10")
            for other in list(done)[:number]:
                test = compared(outcome, done[other], list(range(len(outcome.chosen))))
                row |= {f"difference to {other}": test["difference"], f"p, {other}": test["p"]}
            yield row

    def _pooled(self, names: Sequence[str], work: Path) -> Iterator[dict[str, Any]]:
        """The differences of two sides over the queries of the collections that have all sides."""
        found = [done for name in names if len(done := self._outcomes(name, work)) == len(self.sides)]
        for one, other in combinations(self.sides, 2) if found else ():
            values = {
                side: np.array([v for done in found for v in done[side].values.values()]) for side in (other, one)
            }
            counted = ~np.isnan(values[one])
            test = rs.significance.randomization_test(*(side[counted] for side in values.values()))
            yield {
                "data": f"all {len(found)}", "queries": int(counted.sum()), "side": other,
                f"difference to {one}": round(test.difference, 4), f"p, {one}": round(test.p_value, 4),
            }  # fmt: skip

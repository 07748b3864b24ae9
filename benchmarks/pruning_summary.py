"""Rows of the results file of `pruning_quality.py`, from its cells."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import ranksieve as rs

DOCUMENTS, TIMED_DOCUMENTS = "documents.npy", 20_000  # of the test lists, to measure scoring with
SIGNIFICANT = 0.05
Cell = dict[str, Any]


class Summary:
    """Rows of the results file from finished cells."""

    def __init__(self, data: str, folder: Path, finished: list[Cell]) -> None:
        self.data, self.folder = data, folder
        stored = sorted(finished, key=lambda cell: cell["path"])
        fulls = [cell for cell in stored if cell["table"] == "full"]
        chosen = {}
        for cell in fulls:
            base = cell["what"].split(",")[0]
            if base not in chosen or cell["sizes"][-1]["valid"] > chosen[base]["sizes"][-1]["valid"]:
                chosen[base] = cell
        self.chosen = chosen
        self.cells = [cell for cell in stored if cell["table"] != "full" or any(cell is one for one in chosen.values())]
        self.full = chosen["lambdamart"]
        self.reference = self.full["sizes"][-1]

    def rows(self) -> list[Cell]:
        found = [self._row(cell, size) for cell in self.cells for size in cell["sizes"]]
        return [*found, *self.smallest(), *self.equal_size(), *self.bases()]

    def _row(self, cell: Cell, size: Cell) -> Cell:
        row = {"data": self.data, "table": cell["table"], "what": cell["what"], "trees": size["trees"]}
        row |= {"valid ndcg@10": round(size["valid"], 4)} | _compared(size, self.reference)
        if size is cell["sizes"][-1]:
            row |= {name: cell[name] for name in ("cpu seconds", "phases") if name in cell}
            rounds = rs.load(cell["path"].with_suffix(".0.txt")).info.get("rounds")
            if rounds:
                grown = {name: round(value, 4) for name, value in rounds[0]["after_growing"].items()}
                row["ndcg@10 of the first trees grown"] = grown
        return row

    def smallest(self) -> Iterator[Cell]:
        """The smallest model at least as good on validation lists as the full one; and the smallest that test lists
        cannot tell from it, as the paper's tables star them."""
        for kind, tables in (("X-CLEaVER", ("xcleaver",)), ("pruning the full model", ("strategies",))):
            sizes = [
                (size, cell) for cell in self.cells if cell["table"] in tables for size in cell["sizes"]
                if cell.get("base", "lambdamart") == "lambdamart" and cell.get("strategy") != "lambdamart"
            ]  # fmt: skip
            good = [pair for pair in sizes if pair[0]["valid"] >= self.reference["valid"]]
            if good:
                size, cell = min(good, key=_smallest)
                yield self._shrunk(f"smallest by validation, {kind}", size, cell)
            alike = [pair for pair in sizes if _alike(pair[0], self.reference)]
            if alike:
                size, cell = min(alike, key=_smallest)
                yield self._shrunk(f"smallest equivalent on test, {kind}", size, cell)

    def _shrunk(self, what: str, size: Cell, cell: Cell) -> Cell:
        documents = np.load(self.folder / DOCUMENTS)
        models = [rs.load(one["path"].with_suffix(".0.txt")) for one in (self.full, cell)]
        times = _microseconds([models[0], models[1].first(min(size["size"], models[1].n_trees))], documents)
        return {
            "data": self.data, "table": "equal quality", "what": what, "model": cell["what"],
            "full trees": self.reference["trees"], "trees": size["trees"],
            "share of trees removed": round(1 - size["trees"] / self.reference["trees"], 3),
            "valid ndcg@10": round(size["valid"], 4), **_compared(size, self.reference),
            "full, µs per document": round(times[0], 3), "µs per document": round(times[1], 3),
            "speed-up": round(times[0] / times[1], 2),
        }  # fmt: skip

    def equal_size(self) -> Iterator[Cell]:
        """At the sizes of X-CLEaVER: the best on validation lists, against λ-MART of that size."""
        for stage in self.full["sizes"]:
            found = [
                (size, cell) for cell in self.cells if cell["table"] == "xcleaver" and cell["base"] == "lambdamart"
                for size in cell["sizes"] if size["size"] == stage["size"]
            ]  # fmt: skip
            if found:
                size, cell = max(found, key=lambda pair: (pair[0]["valid"], "_G" not in pair[1]["what"]))
                yield {
                    "data": self.data, "table": "equal size", "trees": size["trees"], "what": cell["what"],
                    "lambdamart": round(float(np.nanmean(stage["test"])), 4), **_compared(size, stage),
                }  # fmt: skip

    def bases(self) -> Iterator[Cell]:
        """X-CLEaVER over each algorithm, with the size that is best on validation lists, against its full base; where
        other leaves than the base's own were tried and are better there, both."""
        for base, whole in self.chosen.items():
            full = whole["sizes"][-1]
            found = [
                (size, cell) for cell in self.cells if cell["table"] == "xcleaver" and cell["base"] == base
                and "_G" not in cell["what"] for size in cell["sizes"]
            ]  # fmt: skip
            own = [pair for pair in found if "leaves" not in pair[1]["what"]]
            best = [max(pairs, key=lambda pair: pair[0]["valid"]) for pairs in (found, own) if pairs]
            for size, cell in best[:1] if best and best[0] is best[-1] else best:
                yield {
                    "data": self.data, "table": "bases", "what": cell["what"], "trees": size["trees"],
                    "full trees": full["trees"], "full base": round(float(np.nanmean(full["test"])), 4),
                    **_compared(size, full),
                    "p against full lambdamart": _compared(size, self.reference)["p"],
                }  # fmt: skip


def _smallest(pair: tuple[Cell, Cell]) -> tuple[float, float, bool]:
    """The fewest trees, then the best on validation lists, then the plain variant."""
    return pair[0]["trees"], -pair[0]["valid"], "_G" in pair[1]["what"]


def _compared(size: Cell, other: Cell) -> Cell:
    mine, theirs = np.array(size["test"]), np.array(other["test"])
    row = {"ndcg@10": round(float(np.nanmean(mine)), 4)}
    if size is other:
        return {**row, "queries": int((~np.isnan(mine)).sum())}
    low, high = rs.significance.paired_t_test(mine, theirs).interval or (np.nan, np.nan)
    test = rs.significance.randomization_test(mine, theirs)
    return {
        **row, "difference": round(test.difference, 4), "interval": [round(low, 4), round(high, 4)],
        "p": round(test.p_value, 4),
    }  # fmt: skip


def _alike(size: Cell, reference: Cell) -> bool:
    found = _compared(size, reference)
    return found["difference"] >= 0 or found["p"] > SIGNIFICANT


def _microseconds(forests: list[rs.Forest], documents: np.ndarray) -> list[float]:
    """Per document, one thread, CPU time, the best of seven, in turns."""
    best = [np.inf] * len(forests)
    for _ in range(8):  # the first compiles
        for place, forest in enumerate(forests):
            begin = time.process_time()
            forest.predict(documents, threads=1)
            best[place] = min(best[place], time.process_time() - begin)
    return [1e6 * seconds / len(documents) for seconds in best]

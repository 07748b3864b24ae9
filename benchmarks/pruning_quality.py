"""How many trees can go at equal quality, and the best model at equal size: bug reports, MQ2008 and two-stage lists.

    export NUMBA_NUM_THREADS=1
    python benchmarks/pruning_quality.py WORK mq2008 FOLDER    # holds MQ2008/S1.txt.xz …; five folds
    python benchmarks/pruning_quality.py WORK bugs FOLDER      # holds ecf.parquet …, made by sieve.py
    python benchmarks/pruning_quality.py WORK two-stage        # generated

WORK keeps every finished cell under its settings, so an interrupted run goes on; `--only-rows` writes the results of
what there is.
After Lucchese et al. 2018, tables 3 to 8, at a smaller size (`SIZES`). The number of trees of the full models and
their leaves (SelGB: and share of negatives) are those best on validation lists. They are pruned by every strategy and
rate; X-CLEaVER grows n trees a round and removes the share p, with the leaves of its full base; over SelGB the other
leaves are tried, too. NDCG@10 on test lists; p of Fisher's randomization test (10,000 permutations) and 95% intervals
of the paired t-test, both against the full λ-MART. What is called chosen was chosen on validation lists alone.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ranksieve as rs
from finished_cells import path_of_cell
from pruning_summary import DOCUMENTS, TIMED_DOCUMENTS, Summary
from quality import folds
from ranksieve.data.binned import bin_data
from ranksieve.files import atomic_path
from ranksieve.pruning.strategies import STRATEGIES
from results import save

COMMON = {"learning_rate": 0.05, "threads": 1}
STAGES = (10, 25, 50, 75, 100, 150, 200, 300, 400)
BASES = ("lambdamart", "selgb", "gbrt", "oblivious-lambdamart")
ROUNDS = [
    {"grow": 100, "rate": 0.75}, {"grow": 200, "rate": 0.75}, {"grow": 100, "rate": 0.5}, {"grow": 200, "rate": 0.5},
    {"grow": 50, "rate": 0.0}, {"grow": 100, "rate": 0.75, "global_": True},
]  # fmt: skip
BUGS = ("ecf", "eclipse.jdt.debug", "eclipse.pde.ui", "tomcat70")
BUG_QUERIES = (100, 50, 200)  # of each project: training, validation, test
TWO_STAGE_QUERIES = (80, 40, 200)
QUERIES = {"mq2008": "five folds", "bugs": (BUGS, BUG_QUERIES), "two-stage": TWO_STAGE_QUERIES}  # what data sets hold
PARTS = ["xcleaver", "bases", "strategies"]
Split = tuple[rs.Dataset, rs.Dataset, rs.Dataset]
Cell = dict[str, Any]


class Sizes(NamedTuple):
    trees: int  # at most, of a full model
    patience: int  # trees without gain on validation lists that end it
    most: int  # trees of X-CLEaVER
    leaves: tuple[int, ...]
    negatives: tuple[float, ...]  # shares of SelGB
    rates: tuple[float, ...]  # of pruning

    def grid(self, algo: str) -> list[Cell]:
        """Settings among which validation lists choose."""
        leaves = (16, 32, 64) if algo.startswith("oblivious") else self.leaves
        found: list[Cell] = [{"leaves": n} for n in leaves]
        return [{**one, "negatives": n} for one in found for n in self.negatives] if algo == "selgb" else found


SIZES = {
    "mq2008": Sizes(500, 100, 200, (8, 16, 64), (0.05, 0.2, 0.5), (0.3, 0.5, 0.7, 0.8, 0.9)),
    "bugs": Sizes(300, 50, 100, (16, 64), (0.05, 0.2), (0.5, 0.7, 0.9)),
    "two-stage": Sizes(300, 50, 100, (16, 64), (0.05, 0.2), (0.5, 0.7, 0.9)),
}


class Unfinished(Exception):
    """A cell is missing, and training is turned off."""


class Bench:
    """One data set, and the cells that are finished for it."""

    def __init__(self, name: str, work: Path, load: Callable[[], list[Split]]) -> None:
        self.name, self.folder, self.sizes, self._load = name, work / name, SIZES[name], load
        self.folder.mkdir(parents=True, exist_ok=True)
        self.trains = True
        self.cells: dict[Path, Cell] = {}  # in use

    @cached_property
    def splits(self) -> list[Split]:
        splits = self._load()
        test = splits[0][2].features[:TIMED_DOCUMENTS]
        np.save(self.folder / DOCUMENTS, np.ascontiguousarray(test, dtype=np.float32))
        return splits

    @cached_property
    def binned(self) -> list[tuple[Any, Any]]:
        bins = [bin_data(train) for train, _, _ in self.splits]
        return [
            (one, bin_data(valid, binning=one.binning)) for one, (_, valid, _) in zip(bins, self.splits, strict=True)
        ]

    def cell(self, table: str, what: str, settings: Any, make: Callable[[int], rs.Forest], **more: Any) -> Cell:
        """A system: a model for each fold, measured at its sizes; stored, and read where it is stored."""
        path = path_of_cell(self.folder, f"{table} {what}", [QUERIES[self.name], STAGES, settings])
        if not path.exists() and not self.trains:
            raise Unfinished
        if not path.exists():
            begin = time.process_time()
            models = [make(fold) for fold in range(len(self.splits))]
            seconds = time.process_time() - begin
            for fold, model in enumerate(models):
                model.save(path.with_suffix(f".{fold}.txt"))
            cell = {
                "table": table, "what": what, "cpu seconds": round(seconds, 1), **_phases(models), **more,
                "sizes": [self._measured(models, size) for size in _sizes(table, models)],
            }  # fmt: skip
            with atomic_path(path) as temporary:
                temporary.write_text(json.dumps(cell))
            shown = [(size["trees"], round(size["valid"], 4)) for size in cell["sizes"]]
            print(f"{self.name}: {table}, {what}: {seconds:.0f} s, trees and validation {shown}", flush=True)
        self.cells[path] = {**json.loads(path.read_text()), "path": path}
        return self.cells[path]

    def models(self, cell: Cell) -> list[rs.Forest]:
        return [rs.load(cell["path"].with_suffix(f".{fold}.txt")) for fold in range(len(self.splits))]

    def _measured(self, models: list[rs.Forest], size: int) -> Cell:
        """The first trees of every fold's model; a model that is smaller counts as it is."""
        cut = [model.first(min(size, model.n_trees)) for model in models]
        parts = list(zip(cut, self.splits, strict=True))
        return {
            "size": size,
            "trees": round(float(np.mean([model.n_trees for model in cut])), 1),
            "valid": float(np.mean([rs.evaluate(model, valid).mean() for model, (_, valid, _) in parts])),
            "test": np.concatenate([rs.evaluate(model, test).per_query() for model, (_, _, test) in parts]).tolist(),
        }

    def full(self, algo: str) -> Cell:
        """The full model of an algorithm, with the setting of its grid that is best on validation lists."""
        found = []
        for setting in self.sizes.grid(algo):
            words = ", ".join(f"{name} {value}" for name, value in setting.items())
            with suppress(Unfinished):
                found.append(self.trained("full", f"{algo}, {words}", {"algo": algo, **setting}, setting=setting))
        if not found:
            raise Unfinished
        return max(found, key=lambda cell: cell["sizes"][-1]["valid"])

    def trained(self, table: str, what: str, params: Cell, **more: Any) -> Cell:
        settings = {**COMMON, "trees": self.sizes.trees, "early_stopping": self.sizes.patience, **params}

        def make(fold: int) -> rs.Forest:
            train, valid = self.binned[fold]
            return rs.train(train, valid=valid, **settings)

        return self.cell(table, what, settings, make, **more)

    def xcleaver(self, base: str, full: Cell, rounds: Cell, **other: Any) -> Cell:
        """X-CLEaVER over an algorithm with the setting of its full model, or another."""
        what = f"X-CLEaVER{'_G' * ('global_' in rounds)} of {base}, n {rounds['grow']}, p {rounds['rate']}"
        what += "".join(f", {name} {value}" for name, value in other.items())
        params = {"algo": "xcleaver", "base": base, "trees": self.sizes.most, "early_stopping": 0}
        return self.trained("xcleaver", what, {**params, **full["setting"], **rounds, **other}, base=base)

    def pruned(self, full: Cell, strategy: str, rate: float) -> Cell:
        def make(fold: int) -> rs.Forest:
            (train, valid), model = self.binned[fold], self.models(full)[fold]
            n = int(rate * model.n_trees + 1e-9)
            if strategy == "lambdamart" or (rate and not n):
                return model.first(model.n_trees - n)
            if rate == 0:
                return rs.pruning.reweight(model, train, valid=valid, threads=1)
            return rs.prune(model, train, valid=valid, rate=rate, strategy=strategy, fallback=False, threads=1)

        settings = [full["path"].name, strategy, rate]
        return self.cell("strategies", f"{strategy}, rate {rate}", settings, make, strategy=strategy, rate=rate)

    def wanted(self, parts: list[str], strategies: list[str]) -> Iterator[Callable[[], Cell]]:
        """What makes every cell, those that matter most first."""
        full = self.full("lambdamart")
        if "xcleaver" in parts:
            yield from (partial(self.xcleaver, "lambdamart", full, rounds) for rounds in ROUNDS)
        if "bases" in parts:
            yield from (partial(self.over, base) for base in BASES[1:])
        if "strategies" in parts:
            yield partial(self.pruned, full, "line search only", 0)
            kinds = [(rate, strategy) for rate in self.sizes.rates for strategy in ("lambdamart", *strategies)]
            yield from (partial(self.pruned, full, strategy, rate) for rate, strategy in kinds)

    def over(self, base: str) -> Cell:
        """X-CLEaVER over another algorithm, and over SelGB with other leaves: what is best for many trees need not be
        for few."""
        full = self.full(base)
        cell = self.xcleaver(base, full, ROUNDS[0])
        for leaves in self.sizes.leaves if base == "selgb" else ():
            if leaves != full["setting"]["leaves"]:
                self.xcleaver(base, full, ROUNDS[0], leaves=leaves)
        return cell

    def run(self, parts: list[str], strategies: list[str]) -> None:
        """Every cell; where nothing is to be trained, those that are finished."""
        with suppress(Unfinished):
            for make in self.wanted(parts, strategies):
                with suppress(Unfinished):
                    make()


def _phases(models: list[rs.Forest]) -> Cell:
    """Seconds of each phase of X-CLEaVER, all folds together."""
    spent: dict[str, float] = {}
    for model in models if "rounds" in models[0].info else ():
        for phase, value in model.info["phase_seconds"].items():
            spent[phase] = round(spent.get(phase, 0.0) + value, 2)
    return {"phases": spent} if spent else {}


def _sizes(table: str, models: list[rs.Forest]) -> list[int]:
    """At which numbers of trees a model is measured: its stages, the ends of its rounds, its end."""
    end = max(model.n_trees for model in models)
    stages: set[int] = set()
    if table == "full":
        stages = set(STAGES)
    elif not models[0].info.get("params", {}).get("global_"):
        stages = {facts["trees"] for model in models for facts in model.info.get("rounds", ())}
    return [*sorted(stage for stage in stages if 0 < stage < end), end]


def two_stage() -> list[Split]:
    ends = np.cumsum(TWO_STAGE_QUERIES)
    train, valid, test = (rs.synth.two_stage(n, start=end - n) for n, end in zip(TWO_STAGE_QUERIES, ends, strict=True))
    return [(train, valid, test)]


def bugs(folder: Path) -> list[Split]:
    """Some reports of each project, drawn once."""
    parts: list[list[rs.Dataset]] = [[], [], []]
    for project in BUGS:
        data = rs.read(folder / f"{project}.parquet")
        order = np.random.default_rng(0).permutation(data.n_queries)
        for place, chosen in enumerate(np.split(order, np.cumsum(BUG_QUERIES))[:3]):
            parts[place].append(data.take_queries(np.sort(chosen)))
    train, valid, test = (_joined(part) for part in parts)
    return [(train, valid, test)]


def _joined(parts: list[rs.Dataset]) -> rs.Dataset:
    return rs.Dataset.from_arrays(
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.labels for part in parts]),
        group=np.concatenate([np.diff(part.offsets) for part in parts]),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("data", choices=("mq2008", "bugs", "two-stage"))
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--strategies", nargs="+", default=list(STRATEGIES), choices=STRATEGIES)
    parser.add_argument("--only-rows", action="store_true", help="summarise what is finished; train nothing")
    arguments = parser.parse_args()
    makers: dict[str, Callable[[], list[Split]]] = {
        "mq2008": lambda: folds(arguments.folder / "MQ2008"),
        "bugs": lambda: bugs(arguments.folder),
        "two-stage": two_stage,
    }
    bench = Bench(arguments.data, arguments.work, makers[arguments.data])
    if not arguments.only_rows:
        bench.run(arguments.parts, arguments.strategies)
    bench.trains = False
    bench.run(PARTS, list(STRATEGIES))  # what earlier runs finished, too
    if not bench.cells:
        parser.error(f"no cell is finished in {bench.folder}; leave out --only-rows")
    rows = Summary(arguments.data, bench.folder, list(bench.cells.values())).rows()
    save(f"pruning_quality_{arguments.data.replace('-', '_')}", rows)


if __name__ == "__main__":
    main()

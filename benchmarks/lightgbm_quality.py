"""The defaults and three settings of LightGBM on all collections: quality and CPU time.

    python benchmarks/lightgbm_quality.py ../shared/data [--features FOLDER] [--work FOLDER] [--data NAME …]
        [--systems NAME …]

Validation lists decide when training stops, and which of LightGBM's settings counts as the best one of a fold. Systems
that draw random numbers have three seeds: a query's value is the mean over them. `without validation lists` has the
training lists alone: a fifth of their queries is held out. One thread, CPU seconds of a training with all that it
reads and bins; p-values of the two-sided randomization test. The last rows pool the queries of all collections; the
interval is that of the paired t-test. A run that was interrupted continues with the cells that are missing.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import ranksieve as rs
from cells import Cell, Learned, Setting, mean
from defaults import DATA, HALF, LIGHTGBM, SMALL
from results import save
from split_gain import Fold

COMMON: Setting = {"threads": 1}
PEER: Setting = {**LIGHTGBM, "trees": 1000, "early_stopping": 100}
SYSTEMS: dict[str, tuple[int, Setting]] = {  # how many seeds, and the parameters
    "defaults": (3, {}),
    "LightGBM, 16 leaves, half of the features": (3, {**PEER, **SMALL, **HALF}),
    "LightGBM, 31 leaves": (1, {**PEER, "leaves": 31, "min_docs": 20}),
    "LightGBM, 64 leaves": (1, PEER),
    "defaults without validation lists": (3, {"validation": "held out"}),
    "1,000 trees without validation lists": (1, {"validation": "none", "trees": 1000}),
}
SETTINGS = [name for name in SYSTEMS if name.startswith("LightGBM")]
BEST = "LightGBM, the best of three by validation"
TEST_LISTS = 400
Found = dict[str, Any]  # values by query, and CPU seconds


def two_stage_folds(arguments: argparse.Namespace) -> list[Fold]:
    """The training and validation lists of `defaults.py`, with more test lists."""
    return [Fold(rs.synth.two_stage(90), rs.synth.two_stage(45, start=90), rs.synth.two_stage(TEST_LISTS, start=135))]


LISTS = {**DATA, "two-stage": (1, two_stage_folds)}


def learn(fold: Fold, setting: Setting) -> Learned:
    parameters = {name: value for name, value in setting.items() if name != "validation"}
    valid = None if "validation" in setting else fold.valid
    model = rs.train(fold.train, valid=valid, verbose=False, **parameters)
    return model.info["best_score"] or 0.0, model.n_trees, model.predict(fold.test)


def cells_of(data: str, system: str, work: Path) -> list[list[Cell]]:
    """One list of folds for each seed."""
    n_seeds, setting = SYSTEMS[system]
    name = f"{data} {system}".replace(" ", "-").replace(",", "")
    folds = range(LISTS[data][0])
    return [
        [Cell(work, (data, len(folds), TEST_LISTS), fold, name, COMMON, {**setting, "seed": seed}) for fold in folds]
        for seed in range(n_seeds)
    ]


def run(data: str, arguments: argparse.Namespace) -> None:
    cells = [cell for system in arguments.systems for seed in cells_of(data, system, arguments.work) for cell in seed]
    missing = [cell for cell in cells if not cell.path.exists()]
    folds = LISTS[data][1](arguments) if missing else []
    for cell in missing:
        fold = folds[cell.fold]
        cell.run(partial(learn, fold, cell.settled), fold.test)


def values_of(cells: list[Cell]) -> Mapping[str, float]:
    return {query: value for cell in cells for query, value in cell.found["test"].items()}


def found_of(data: str, work: Path) -> dict[str, Found]:
    """What each finished system found on a collection: a value for each query, and the CPU seconds of all folds."""
    done: dict[str, Found] = {}
    cells = {system: cells_of(data, system, work) for system in SYSTEMS}
    cells = {name: own for name, own in cells.items() if all(cell.path.exists() for seed in own for cell in seed)}
    for system, seeds in cells.items():
        of_seeds = [values_of(seed) for seed in seeds]
        values = {query: float(np.mean([one[query] for one in of_seeds])) for query in of_seeds[0]}
        seconds = np.mean([sum(cell.found["cpu s"] for cell in seed) for seed in seeds])
        by_seed = [mean(one.values()) for one in of_seeds]
        done[system] = {"values": values, "cpu s": round(float(seconds), 1), "NDCG@10 by seed": by_seed}
    if all(name in done for name in SETTINGS):
        folds = zip(*(cells[name][0] for name in SETTINGS), strict=True)
        chosen = [max(fold, key=lambda cell: cell.found["valid"]) for fold in folds]
        total = sum(done[name]["cpu s"] for name in SETTINGS)
        done[BEST] = {"values": values_of(chosen), "cpu s": round(total, 1)}
    return done


def differences(one: Found, others: Mapping[str, Found]) -> dict[str, Any]:
    """The differences of a system to others, with p-values."""
    row: dict[str, Any] = {}
    for name, other in others.items():
        a, b = (np.array([found["values"][query] for query in one["values"]]) for found in (one, other))
        counted = ~np.isnan(a)
        test = rs.significance.randomization_test(a[counted], b[counted])
        low, high = rs.significance.paired_t_test(a[counted], b[counted]).interval
        row |= {
            f"difference to {name}": round(test.difference, 4), f"interval, {name}": [round(low, 4), round(high, 4)],
            f"p, {name}": round(test.p_value, 4),
        }  # fmt: skip
    return row


def rows(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Each system on each collection, and those that are finished on all collections, on all queries."""
    found = {data: found_of(data, arguments.work) for data in LISTS}
    for data, done in found.items():
        for number, (system, one) in enumerate(done.items()):
            others = {name: done[name] for name in list(done)[:number] if name not in SETTINGS[1:]}
            row = {"data": data, "system": system, "queries": sum(value == value for value in one["values"].values())}
            more = {name: value for name, value in one.items() if name != "values"}
            yield {**row, "NDCG@10": mean(one["values"].values()), **more, **differences(one, others)}
    for system in SYSTEMS | {BEST: ()}:
        common = [data for data, done in found.items() if system in done and "defaults" in done]
        if common and system != "defaults":
            one, other = (
                {"values": {(data, query): v for data in common for query, v in found[data][name]["values"].items()}}
                for name in ("defaults", system)
            )
            row = {"data": f"{len(common)} collections", "system": "defaults", "queries": len(one["values"])}
            yield {**row, **differences(one, {system: other})}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", type=Path, help="folder that holds ltr/MQ2008, …, and ir/bugs-ecf, …")
    parser.add_argument("--features", type=Path, default=Path("build/bugs"), help="where features are or go")
    parser.add_argument("--work", type=Path, default=Path("build/lightgbm_quality"), help="where finished cells are")
    parser.add_argument("--data", nargs="*", choices=LISTS, default=list(LISTS), help="which collections to run")
    parser.add_argument("--systems", nargs="*", choices=SYSTEMS, default=list(SYSTEMS), help="which systems to run")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    rs.train(rs.synth.two_stage(20), valid=rs.synth.two_stage(5, start=20), trees=2, verbose=False)  # compiles
    for data in arguments.data:
        run(data, arguments)
    table = list(rows(arguments))
    for row in table:
        print(row)
    save("lightgbm_quality", table)


if __name__ == "__main__":
    main()

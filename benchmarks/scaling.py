"""How the time of a tree and memory grow with documents, queries, features, leaves, trees and threads, beside LightGBM.

Run `python benchmarks/scaling.py`; about 40 minutes of one core and 3 GB of disk. `--axes leaves threads` measures
some of the axes; results of the others stay. `--part 0.1` tries everything on lists a tenth as long. Lists have few
positives and any number of negatives, as those of `synth.two_stage`. Each run is a process of its own that reads the
same Parquet file: ranksieve streams it into bins, LightGBM needs all values in memory. The time of a tree is the mean
CPU time after the tenth tree, with one thread; the axis of threads has elapsed time too. Memory is the peak of the
process. The trees of one long run are the axis of trees: the mean of the last tenth of the first 100, 300, … The
pictures of the documentation are drawn from the saved results.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import ranksieve as rs
from ranksieve.data.blocks import Block, Source
from ranksieve.data.features import FeatureInfo
from ranksieve.data.generators import COLLECTION, _fill_query, _stream
from ranksieve.data.parquet import write_parquet
from ranksieve.data.search_features import SearchFeatures
from results import FOLDER, save

USUAL = {"docs": 300, "queries": 300, "features": 220, "leaves": 64, "trees": 60, "threads": 1}
AXES: dict[str, list[int]] = {
    "docs": [100, 300, 1_000, 3_000, 10_000],
    "queries": [300, 1_000, 3_000, 10_000],
    "features": [50, 100, 220, 500, 1_000],
    "leaves": [16, 32, 64, 128, 256],
    "trees": [100, 300, 1_000, 5_000],
    "threads": [1, 2],
}
CHANGED = {"docs": {"trees": 40}, "queries": {"docs": 100, "trees": 40}, "threads": {"docs": 1_000}}  # of an axis
TITLES = {"docs": "documents per query", **{axis: axis for axis in AXES if axis != "docs"}}
SYSTEMS = {
    "selgb 5%": {"algo": "selgb", "negatives": 0.05, "min_negatives": 1},
    "selgb 100": {"algo": "selgb", "negatives": 1e-9, "min_negatives": 100},  # negatives of each query
    "lambdamart": {"algo": "lambdamart"},
    "lightgbm": {},
}
ALL_ROWS = ("lambdamart", "lightgbm")  # their trees all take the same time
MOST_TREES = 300  # of these
TOO_LONG = {"docs": 12_000, "queries": 10}  # lists that LightGBM refuses
FIRST = 10  # trees that do not count: the first are trained on all documents
TIME, ELAPSED, MEMORY = "CPU ms per tree", "elapsed ms per tree", "peak memory, MiB"
ASSETS = Path(__file__).parent.parent / "docs" / "assets"


class LongLists(Source):
    """Queries with the same number of documents each, of which few are relevant."""

    def __init__(self, n_queries: int, docs: int, n_features: int) -> None:
        self._n_queries, self._docs, self.n_features = n_queries, docs, n_features
        self.n_docs = n_queries * docs
        self._table = SearchFeatures.draw(n_features, _stream(0, COLLECTION))
        self.info = FeatureInfo(self._table.names, 0, "long lists", absent=np.nan)

    def blocks(self, rows: int = 0) -> Iterator[Block]:
        for query in range(self._n_queries):
            features, labels = np.empty((self._docs, self.n_features), np.float32), np.empty(self._docs, np.float32)
            _fill_query(_stream(0, query), self._table, features, labels)
            yield Block(features, labels, [query], np.array([self._docs]))


class Clock:
    """A callback that notes CPU time, elapsed time and peak memory after each tree."""

    def __init__(self) -> None:
        self.noted: list[tuple[float, float, int]] = []

    def __call__(self, record: Any) -> None:
        peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
        self.noted.append((time.process_time(), time.perf_counter(), int(peak.split()[1]) >> 10))

    def of_trees(self, first: int, last: int) -> dict[str, Any]:
        """The means of the trees after number `first` up to `last`."""
        before, after = self.noted[first - 1], self.noted[last - 1]
        cpu, elapsed = ((end - start) / (last - first) for start, end in zip(before[:2], after[:2], strict=True))
        return {TIME: round(1e3 * cpu, 3), ELAPSED: round(1e3 * elapsed, 3), MEMORY: after[2]}


def ours(path: str, setting: dict[str, int], params: dict[str, Any], clock: Clock) -> None:
    rs.train(
        path, **params, leaves=setting["leaves"], trees=setting["trees"], threads=setting["threads"], min_docs=5,
        early_stopping=0, verbose=False, callbacks=[clock],
    )  # fmt: skip


def lightgbm(path: str, setting: dict[str, int], clock: Clock) -> None:
    """With our defaults."""
    import lightgbm

    params = {
        "objective": "lambdarank", "num_leaves": setting["leaves"], "learning_rate": 0.05, "min_data_in_leaf": 5,
        "lambdarank_truncation_level": 30, "min_sum_hessian_in_leaf": 0.0, "lambda_l2": 1.0, "max_bin": 255,
        "num_threads": setting["threads"], "verbose": -1,
    }  # fmt: skip
    data = rs.read(path)
    lists = lightgbm.Dataset(data.features, data.labels, group=data.lists.sizes, params=params)
    lists.construct()
    del data
    lightgbm.train(params, lists, setting["trees"], callbacks=[clock])


def measure(system: str, path: str, setting: dict[str, int], ends: list[int]) -> list[dict[str, Any]]:
    """One run, in a process of its own: a row for each of the numbers of trees in `ends`, or one for all trees."""
    clock, n_trees = Clock(), setting["trees"]
    try:
        if system == "lightgbm":
            lightgbm(path, setting, clock)
        else:
            ours(path, setting, SYSTEMS[system], clock)
    except Exception as error:  # the message is the result
        return [{"message": str(error)}]
    if ends:
        return [{"value": end, **clock.of_trees(end * 9 // 10, end)} for end in ends if end <= n_trees]
    return [clock.of_trees(FIRST, n_trees)]


def run(system: str, path: Path, setting: dict[str, int], ends: list[int]) -> list[dict[str, Any]]:
    code = "import json, sys, scaling; print(json.dumps(scaling.measure(*json.loads(sys.argv[1]))))"
    command = [sys.executable, "-c", code, json.dumps([system, str(path), setting, ends])]
    done = subprocess.run(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True)
    if done.returncode:  # such as killed for its memory
        return [{"message": f"the process ended with {done.returncode}"}]
    return json.loads(done.stdout.splitlines()[-1])


def measure_axis(axis: str, part: float, folder: Path) -> Iterator[dict[str, Any]]:
    """A row for every value of an axis and every system."""
    ends = AXES["trees"] if axis == "trees" else []
    for value in AXES[axis][-1:] if ends else AXES[axis]:
        setting = {**USUAL, **CHANGED.get(axis, {}), axis: value}
        setting["docs"] = max(20, round(part * setting["docs"]))
        for system, path in files_of(setting, folder):
            here = {**setting, "trees": min(setting["trees"], MOST_TREES)} if system in ALL_ROWS else setting
            for row in run(system, path, here, ends):
                yield {"axis": axis, "value": value, "system": system, **row}
    if axis == "docs":
        setting = {**USUAL, **TOO_LONG}
        path = next(path for system, path in files_of(setting, folder))
        yield {"axis": axis, "value": setting["docs"], "system": "lightgbm", **run("lightgbm", path, setting, [])[0]}


def files_of(setting: dict[str, int], folder: Path) -> Iterator[tuple[str, Path]]:
    """The file of a setting, for each system."""
    path = folder / "lists.parquet"
    write_parquet(LongLists(setting["queries"], setting["docs"], setting["features"]), path)
    for system in SYSTEMS:
        yield system, path


def draw(rows: list[dict[str, Any]]) -> None:
    """Two pictures, of time and of memory, with a panel for each axis."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator

    for name, column in (("scaling_time", TIME), ("scaling_memory", MEMORY)):
        axes = [axis for axis in AXES if any(row["axis"] == axis for row in rows)]
        figure, panels = plt.subplots(2, 3, figsize=(10, 6), layout="constrained")
        for panel, axis in zip(panels.flat, axes, strict=False):
            shown = ELAPSED if (axis, column) == ("threads", TIME) else column
            for system in SYSTEMS:
                points = [row for row in rows if (row["axis"], row["system"]) == (axis, system) and shown in row]
                panel.plot([row["value"] for row in points], [row[shown] for row in points], "o-", label=system)
            panel.set(xscale="log", xlabel=TITLES[axis], ylabel=shown)
            if column == MEMORY:
                panel.set_ylim(bottom=0)
            else:
                panel.set_yscale("log")
                panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            panel.set_xticks(AXES[axis], [f"{value:,}" for value in AXES[axis]])
            panel.yaxis.set_major_formatter("{x:,.0f}")
            panel.xaxis.set_minor_formatter("")
            panel.yaxis.set_minor_formatter("")
        for panel in list(panels.flat)[len(axes) :]:
            panel.set_visible(False)
        figure.legend(*panels.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(SYSTEMS))
        figure.savefig(ASSETS / f"{name}.svg", metadata={"Date": None})


def show(rows: list[dict[str, Any]]) -> None:
    """The tables of the documentation: CPU ms per tree / MiB."""
    for axis in AXES:
        found = [row for row in rows if row["axis"] == axis and TIME in row]
        print(f"\n| {TITLES[axis]} | {' | '.join(SYSTEMS)} |\n|{'---|' * (len(SYSTEMS) + 1)}")
        time_of = ELAPSED if axis == "threads" else TIME
        for value in dict.fromkeys(row["value"] for row in found):
            cells = {row["system"]: f"{row[time_of]:.0f} / {row[MEMORY]:,}" for row in found if row["value"] == value}
            print(f"| {value:,} | {' | '.join(cells.get(system, '–') for system in SYSTEMS)} |")


def saved() -> list[dict[str, Any]]:
    path = FOLDER / "scaling.json"
    return json.loads(path.read_text())["rows"] if path.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--axes", nargs="+", choices=list(AXES), default=list(AXES))
    parser.add_argument("--part", type=float, default=1.0, help="of the documents of each query")
    parser.add_argument("--try", dest="trial", action="store_true", help="save nothing")
    parser.add_argument("--draw", action="store_true", help="only draw the saved results, and print their tables")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for axis in () if given.draw else given.axes:
            rows = []
            for row in measure_axis(axis, given.part, Path(folder)):
                print(row, flush=True)
                rows.append(row)
            if not given.trial:
                save("scaling", [*(row for row in saved() if row["axis"] != axis), *rows])
    if not given.trial:
        draw(saved())
        show(saved())


if __name__ == "__main__":
    main()

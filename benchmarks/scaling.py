"""How time per tree and memory grow with documents, queries, features, leaves, trees and threads, beside LightGBM.

Run `python benchmarks/scaling.py`; about an hour on two cores, which should have nothing else to do. `--axes leaves
threads` measures some of the axes, `--part 0.1` tries everything on lists a tenth as long. Lists have few positives and
any number of negatives, as those of `synth.two_stage`. Each run is a process of its own that reads the same Parquet
file: ranksieve streams it into bins, LightGBM needs all values in memory. Times are means after the tenth tree, memory
is the peak of the process. The pictures of the documentation are drawn from the saved results.
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

USUAL = {"docs": 300, "queries": 300, "features": 220, "leaves": 64, "trees": 60, "threads": 2}
AXES: dict[str, list[int]] = {
    "docs": [100, 300, 1_000, 3_000, 10_000, 12_000],
    "queries": [300, 1_000, 3_000, 10_000],
    "features": [50, 100, 220, 500, 1_000],
    "leaves": [16, 32, 64, 128, 256],
    "trees": [100, 300, 1_000, 5_000],
    "threads": [1, 2],
}
TITLES = {
    "docs": "documents per query",
    "queries": "queries",
    "features": "features",
    "leaves": "leaves",
    "trees": "trees",
    "threads": "threads",
}
SYSTEMS = {
    "selgb 5%": {"algo": "selgb", "negatives": 0.05, "min_negatives": 1},
    "selgb 100": {"algo": "selgb", "negatives": 1e-9, "min_negatives": 100},  # negatives of each query
    "lambdamart": {"algo": "lambdamart"},
    "lightgbm": {},
}
FIRST = 10  # trees that do not count: the first are trained on all documents
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


def ours(path: str, setting: dict[str, int], params: dict[str, Any]) -> list[float]:
    """Seconds of each tree."""
    model = rs.train(
        path, **params, leaves=setting["leaves"], trees=setting["trees"], threads=setting["threads"], min_docs=5,
        early_stopping=0, verbose=False,
    )  # fmt: skip
    return model.info["seconds"]


def lightgbm(path: str, setting: dict[str, int]) -> list[float]:
    """Seconds of each tree, with our defaults."""
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
    times = []
    lightgbm.train(params, lists, setting["trees"], callbacks=[lambda state: times.append(time.perf_counter())])
    return np.diff(times).tolist()


def measure(system: str, path: str, setting: dict[str, int]) -> dict[str, Any]:
    """One run; in a process of its own."""
    started = time.perf_counter()
    try:
        seconds = lightgbm(path, setting) if system == "lightgbm" else ours(path, setting, SYSTEMS[system])
    except Exception as error:  # the message is the result
        return {"message": str(error)}
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return {
        "ms per tree": round(1e3 * float(np.mean(seconds[FIRST:])), 3),
        "first tree, ms": round(1e3 * seconds[0], 1),
        "all, s": round(time.perf_counter() - started, 1),
        "peak memory, MiB": int(peak.split()[1]) >> 10,
    }


def run(system: str, path: Path, setting: dict[str, int]) -> dict[str, Any]:
    code = "import json, sys, scaling; print(json.dumps(scaling.measure(*json.loads(sys.argv[1]))))"
    command = [sys.executable, "-c", code, json.dumps([system, str(path), setting])]
    done = subprocess.run(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True)
    if done.returncode:  # such as killed for its memory
        return {"message": f"the process ended with {done.returncode}"}
    return json.loads(done.stdout.splitlines()[-1])


def measure_axis(axis: str, part: float, folder: Path) -> Iterator[dict[str, Any]]:
    """A row for every value of an axis and every system."""
    for value in AXES[axis]:
        setting = {**USUAL, axis: value}
        setting["docs"] = max(20, round(part * setting["docs"]))
        path = folder / "lists.parquet"
        write_parquet(LongLists(setting["queries"], setting["docs"], setting["features"]), path)
        for system in SYSTEMS:
            if axis == "trees" and value > 1_000 and system in ("lambdamart", "lightgbm"):
                continue  # their trees all take the same time
            yield {"axis": axis, "value": value, "system": system, **run(system, path, setting)}


def draw(rows: list[dict[str, Any]]) -> None:
    """Two pictures, of time and of memory, with a panel for each axis."""
    import matplotlib.pyplot as plt

    for name, column, label in (
        ("scaling_time", "ms per tree", "ms per tree"),
        ("scaling_memory", "peak memory, MiB", "peak memory, MiB"),
    ):
        axes = [axis for axis in AXES if any(row["axis"] == axis for row in rows)]
        figure, panels = plt.subplots(2, 3, figsize=(10, 6), layout="constrained")
        for panel, axis in zip(panels.flat, axes, strict=False):
            for system in SYSTEMS:
                points = [row for row in rows if (row["axis"], row["system"]) == (axis, system) and column in row]
                panel.plot([row["value"] for row in points], [row[column] for row in points], "o-", label=system)
            panel.set(xscale="log", yscale="log", xlabel=TITLES[axis], ylabel=label)
        for panel in list(panels.flat)[len(axes) :]:
            panel.set_visible(False)
        figure.legend(*panels.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(SYSTEMS))
        figure.savefig(ASSETS / f"{name}.svg", metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--axes", nargs="+", choices=list(AXES), default=list(AXES))
    parser.add_argument("--part", type=float, default=1.0, help="of the documents of each query")
    parser.add_argument("--try", dest="trial", action="store_true", help="save nothing")
    parser.add_argument("--draw", action="store_true", help="only draw the saved results")
    given = parser.parse_args()
    if given.draw:
        draw(json.loads((FOLDER / "scaling.json").read_text())["rows"])
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for axis in given.axes:
            for row in measure_axis(axis, given.part, Path(folder)):
                print(row, flush=True)
                rows.append(row)
    if not given.trial:
        save("scaling", rows)
        draw(rows)


if __name__ == "__main__":
    main()

"""How many trees can go at equal quality: strategies × sizes, X-CLEaVER by n and p, its bases, and scoring time.

Run `python benchmarks/pruning_quality.py two-stage` or `python benchmarks/pruning_quality.py mq2008 FOLDER` with the
folder that holds `MQ2008/S1.txt.xz` …; minutes to an hour, by `--reference`, `--grow` and `--queries`. NDCG@10 on test
lists, p-values of Fisher's randomization test against the reference, λ-MART of `--reference` trees (MQ2008: values of
the five folds' test lists together). "Equivalent" is the smallest model with p > 0.05 or a better mean.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import ranksieve as rs
from quality import folds
from ranksieve.data.binned import bin_data
from ranksieve.pruning.strategies import STRATEGIES
from results import FOLDER, save

BASES = ("lambdamart", "selgb", "gbrt", "oblivious-lambdamart")
Split = tuple[rs.Dataset, rs.Dataset, rs.Dataset]


class Lab:
    """The splits, the reference models, and rows of results."""

    def __init__(self, splits: list[Split], reference: int, settings: dict) -> None:
        self.splits, self.settings, self.rows = splits, settings, []
        self.binned = []
        for train, valid, _ in splits:
            bins = bin_data(train)
            self.binned.append((bins, bin_data(valid, binning=bins.binning)))
        self.references, self.reference_seconds = self._timed("lambdamart", trees=reference)
        self.reference_values = self.values(self.references)
        self.add("reference", "lambdamart", self.references, self.reference_seconds)

    def _timed(self, algo: str, **params) -> tuple[list[rs.Forest], float]:
        begin = time.perf_counter()
        models = [
            rs.train(train, valid=valid if algo == "xcleaver" else None, algo=algo, early_stopping=0,
                     **{**self.settings, **params})
            for train, valid in self.binned
        ]  # fmt: skip
        return models, time.perf_counter() - begin

    def values(self, models: list[rs.Forest]) -> np.ndarray:
        parts = [rs.evaluate(model, test).per_query() for model, (_, _, test) in zip(models, self.splits, strict=True)]
        return np.concatenate(parts)

    def add(self, table: str, what: str, models: list[rs.Forest], seconds: float | None = None, **more) -> dict:
        """One system: its size, its mean on test lists, and the test against the reference."""
        values = self.values(models)
        test = rs.randomization_test(values, self.reference_values)
        row = {
            "table": table,
            "what": what,
            "trees": round(float(np.mean([model.n_trees for model in models])), 1),
            "ndcg@10": round(float(np.nanmean(values)), 4),
            "difference": round(test.difference, 4),
            "p": round(test.p_value, 4),
            **({} if seconds is None else {"seconds": round(seconds, 1)}),
            **more,
        }
        self.rows.append(row)
        print(row, flush=True)
        return row

    def strategies(self, names: list[str], rates: list[float]) -> None:
        """Tables 3 to 5: strategies at several sizes, re-weighted; and λ-MART of that size."""
        n = self.references[0].n_trees
        for rate in rates:
            self.add("strategies", "lambdamart", [model.first(n - int(rate * n + 1e-9)) for model in self.references])
            for name in names:
                pruned = [
                    rs.prune(model, train, valid=valid, rate=rate, strategy=name)
                    for model, (train, valid) in zip(self.references, self.binned, strict=True)
                ]
                self.add("strategies", name, pruned)
        reweighted = [
            rs.reweight(model, train, valid=valid)
            for model, (train, valid) in zip(self.references, self.binned, strict=True)
        ]
        self.add("strategies", "lambdamart + line search", reweighted)

    def xcleaver(self, grow: int, trees: int) -> None:
        """Table 6: n, p and N; the sizes are those after each round."""
        for n, rate, whole in (
            (grow // 2, 0.5, False), (grow // 2, 0.75, False), (grow, 0.5, False), (grow, 0.75, False),
            (grow, 0.75, True),
        ):  # fmt: skip
            name = f"xcleaver{'_G' * whole} n={n} p={rate}"
            self._rounds("xcleaver", name, trees, base="lambdamart", grow=n, rate=rate, global_=whole)

    def bases(self, grow: int, trees: int) -> None:
        """Table 8: X-CLEaVER over other algorithms, each beside its base alone."""
        n = self.references[0].n_trees
        for base in BASES[1:]:
            models, seconds = self._timed(base, trees=n)
            self.add("bases", base, models, seconds)
            self._rounds("bases", f"xcleaver of {base}", trees, base=base, grow=grow, rate=0.75)

    def _rounds(self, table: str, name: str, trees: int, **params) -> None:
        models, seconds = self._timed("xcleaver", trees=trees, **params)
        if not params.get("global_"):
            sizes = sorted({facts["trees"] for model in models for facts in model.info["rounds"]})
            for size in sizes[:-1]:
                self.add(table, name, [model.first(size) for model in models])
        spent: dict[str, float] = {}
        for facts in (facts for model in models for facts in model.info["rounds"]):
            for phase, value in facts["seconds"].items():
                spent[phase] = round(spent.get(phase, 0.0) + value, 2)
        self.add(table, name, models, seconds, phases=spent)

    def equal_quality(self) -> None:
        """Table 7: the smallest model that is not worse than the reference, and how fast it scores."""
        documents = np.ascontiguousarray(self.splits[0][2].features, dtype=np.float32)
        full = _microseconds(self.references[0], documents)
        for table in ("strategies", "xcleaver", "bases"):
            rows = [row for row in self.rows if row["table"] == table and (row["p"] > 0.05 or row["difference"] >= 0)]
            for name in dict.fromkeys(row["what"] for row in rows):
                smallest = min((row for row in rows if row["what"] == name), key=lambda row: row["trees"])
                share = 1 - smallest["trees"] / self.references[0].n_trees
                own = _microseconds(self.references[0].first(max(1, round(smallest["trees"]))), documents)
                row = {
                    "table": "equal quality", "what": name, "trees": smallest["trees"],
                    "share of trees removed": round(share, 3), "ndcg@10": smallest["ndcg@10"], "p": smallest["p"],
                    "µs per document": round(own, 3), "speed-up": round(full / own, 2),
                }  # fmt: skip
                self.rows.append(row)
                print(row, flush=True)


def _microseconds(forest: rs.Forest, documents: np.ndarray) -> float:
    """Per document, one thread, CPU time, the best of five."""
    forest.predict(documents, threads=1)
    times = []
    for _ in range(5):
        begin = time.process_time()
        forest.predict(documents, threads=1)
        times.append(time.process_time() - begin)
    return 1e6 * min(times) / len(documents)


def two_stage(n_queries: int) -> list[Split]:
    starts = (0, n_queries), (n_queries, n_queries // 3), (2 * n_queries, n_queries)
    train, valid, test = (rs.two_stage(size, start=start) for start, size in starts)
    return [(train, valid, test)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", choices=("two-stage", "mq2008"))
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--reference", type=int, default=500, help="trees of the reference")
    parser.add_argument("--grow", type=int, default=200, help="n of X-CLEaVER")
    parser.add_argument("--trees", type=int, default=150, help="N of X-CLEaVER")
    parser.add_argument("--queries", type=int, default=200, help="training queries of two-stage data")
    parser.add_argument("--leaves", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.25, 0.5, 0.6, 0.7, 0.8, 0.9])
    parser.add_argument("--strategies", nargs="+", default=list(STRATEGIES), choices=STRATEGIES)
    parser.add_argument("--parts", nargs="+", default=["xcleaver", "bases", "strategies"])
    arguments = parser.parse_args()
    splits = two_stage(arguments.queries) if arguments.data == "two-stage" else folds(arguments.folder / "MQ2008")
    settings = {"leaves": arguments.leaves, "learning_rate": 0.05, "threads": arguments.threads}
    lab = Lab(splits, arguments.reference, settings)
    parts: dict[str, Callable[[], None]] = {
        "xcleaver": lambda: lab.xcleaver(arguments.grow, arguments.trees),
        "bases": lambda: lab.bases(arguments.grow, arguments.trees),
        "strategies": lambda: lab.strategies(arguments.strategies, arguments.rates),
    }
    for name in arguments.parts:
        parts[name]()
        save(f"pruning_quality_{arguments.data.replace('-', '_')}", lab.rows)
    lab.equal_quality()
    save(f"pruning_quality_{arguments.data.replace('-', '_')}", lab.rows)
    print(f"saved in {FOLDER}")


if __name__ == "__main__":
    main()

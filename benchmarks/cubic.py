"""λ-MART, McRank and LambdaRank on cubic data, as Table 1 and Figure 2 of the LambdaMART paper, and LightGBM's time.

Run `python benchmarks/cubic.py`; the paper's size takes about an hour of one core, `--queries 2000` ten minutes. The
work is done in pieces that are kept in a folder (`--work`) under their settings: a run that was interrupted goes on
with the pieces that are missing, and the results file holds those that are finished. Settings are the paper's where it
gives them: 10 leaves and 1,000 rounds for both forests, shrinkage 0.1 for λ-MART and 0.05 for McRank, 10 hidden units.
Chosen on validation lists are how λ are taken (`LAMBDAS`) and LambdaRank's step (`RATES`). Queries whose documents all
have one grade are left out, as in the paper.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import lightgbm
import numpy as np

import ranksieve as rs
from finished_cells import path_of_cell
from ranksieve.data.binned import bin_data
from ranksieve.files import atomic_path
from results import save

METRICS = ("ndcg@10", "ndcg@3", "ndcg@1")
PAPER = {"λ-MART": (87.9, 81.7, 79.6), "McRank": (83.7, 75.6, 72.2), "LambdaRank": (75.4, 67.8, 65.8)}
LAMBDAS = {
    "plain, cut at 10": {"normalize": False, "truncation": 10},  # as in the paper
    "normalised, cut at 30": {"normalize": True, "truncation": 30},  # our defaults
}
RATES = (0.01, 0.003, 0.001, 0.0003)
STAGES = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
TREES = {"leaves": 10, "early_stopping": 100}

Row = dict[str, Any]


class Piece(NamedTuple):
    """A ranker to train and measure, or times to compare, and the settings to do it with."""

    name: str
    make: Callable[..., Row]
    settings: dict[str, Any]


def timed(make: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """What a function makes, with its wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    made = make()
    return made, {"wall s": round(time.perf_counter() - wall, 3), "cpu s": round(time.process_time() - cpu, 3)}


def interval(values: np.ndarray) -> tuple[float, float]:
    """Mean and half of its 95% interval, in percent."""
    values = 100 * values[~np.isnan(values)]
    return round(float(values.mean()), 2), round(1.96 * float(values.std(ddof=1)) / len(values) ** 0.5, 2)


class Table:
    """The rankers of Table 1, each trained and measured as a piece of its own."""

    def __init__(self, queries: int, rounds: int, epochs: int, threads: int, work: Path) -> None:
        self.queries, self.rounds, self.epochs, self.threads, self.work = queries, rounds, epochs, threads, work

    @cached_property
    def train(self) -> rs.Dataset:
        return rs.synth.cubic(self.queries)

    @cached_property
    def valid(self) -> rs.Dataset:
        return rs.synth.cubic(self.queries // 2, start=self.queries)

    @cached_property
    def test(self) -> rs.Dataset:
        return rs.synth.cubic(self.queries, start=2 * self.queries)

    @cached_property
    def bins(self) -> Any:
        return bin_data(self.train)

    @cached_property
    def valid_bins(self) -> Any:
        return bin_data(self.valid, binning=self.bins.binning)

    def pieces(self) -> Iterator[Piece]:
        """The longest runs first."""
        first, second = LAMBDAS
        yield self.times(first)
        yield self.lambdamart(first)
        yield self.mcrank("McRank", "mcrank")
        for kind in LAMBDAS:
            yield from (
                Piece(f"LambdaRank {kind} {rate}", self.net, {"lambdas": kind, "learning_rate": rate, **LAMBDAS[kind]})
                for rate in RATES
            )
        yield self.lambdamart(second)
        yield self.times(second)
        yield self.mcrank("McRank, ordinal", "mcrank-ordinal")

    def times(self, lambdas: str) -> Piece:
        return Piece(f"time {lambdas}", self.compare_times, {"lambdas": lambdas, **LAMBDAS[lambdas]})

    def lambdamart(self, lambdas: str) -> Piece:
        settings = {"ranker": "λ-MART", "choice": lambdas, "algo": "lambdamart", "learning_rate": 0.1}
        return Piece(f"λ-MART {lambdas}", self.forest, {**settings, **LAMBDAS[lambdas]})

    def mcrank(self, name: str, algo: str) -> Piece:
        return Piece(name, self.forest, {"ranker": name, "choice": "", "algo": algo, "learning_rate": 0.05})

    def path(self, piece: Piece) -> Path:
        """Where a piece is kept: under all it depends on."""
        sizes = [self.queries, self.rounds, self.epochs, self.threads]
        return path_of_cell(self.work, piece.name, [*sizes, TREES, METRICS, STAGES, piece.settings])

    def compare_times(self, path: Path, *, lambdas: str, **kind: Any) -> Row:
        """Time of the same trees here and in LightGBM, without validation, binning apart; compiled before."""
        trees = self.rounds
        settings = {
            "objective": "lambdarank", "num_leaves": 10, "learning_rate": 0.1, "min_data_in_leaf": 5,
            "min_sum_hessian_in_leaf": 0.0, "lambda_l2": 1.0, "metric": "None", "verbose": -1, "seed": 0,
            "num_threads": self.threads, "lambdarank_norm": kind["normalize"],
            "lambdarank_truncation_level": kind["truncation"],
        }  # fmt: skip
        theirs = lightgbm.Dataset(
            self.train.features, self.train.labels, group=self.train.lists.sizes,
            params={"feature_pre_filter": False, "verbose": -1},
        ).construct()  # fmt: skip
        ours = {"algo": "lambdamart", "leaves": 10, "learning_rate": 0.1, "threads": self.threads, **kind}
        rs.train(self.bins, trees=1, **ours)
        booster, lightgbm_time = timed(lambda: lightgbm.train(settings, theirs, trees))
        forest, our_time = timed(lambda: rs.train(self.bins, trees=trees, **ours))
        scores = {"LightGBM": booster.predict(self.test.features, num_threads=self.threads), "λ-MART": forest}
        measured = rs.evaluate(scores, self.test, "ndcg@10")
        return {
            "time of": f"{trees} trees, λ {lambdas}",
            "threads": self.threads,
            **{name: {"ndcg@10": round(100 * measured.mean(name), 2), **seconds}
               for name, seconds in (("LightGBM", lightgbm_time), ("λ-MART", our_time))},
            "ratio": {key: round(our_time[key] / lightgbm_time[key], 2) for key in our_time},
        }  # fmt: skip

    def forest(self, path: Path, *, ranker: str, choice: str, **options: Any) -> Row:
        options = {"trees": self.rounds, "threads": self.threads, **TREES, **options}
        rs.train(rs.synth.cubic(9), valid=rs.synth.cubic(9, start=9), **{**options, "trees": 1})  # compiles
        model, seconds = timed(lambda: rs.train(self.bins, valid=self.valid_bins, **options))
        return {**self.measured(path, ranker, choice, model), **seconds, "ndcg@10 by trees": self.by_trees(model)}

    def net(self, path: Path, *, lambdas: str, **options: Any) -> Row:
        options = {"epochs": self.epochs, "early_stopping": 10, "threads": self.threads, **options}
        model, seconds = timed(lambda: rs.train(self.train, valid=self.valid, algo="lambdarank", **options))
        row = self.measured(path, "LambdaRank", f"{lambdas}, step {options['learning_rate']}", model)
        return {**row, **seconds, "epochs": len(model.info["seconds"])}

    def measured(self, path: Path, ranker: str, choice: str, model: Any) -> Row:
        """A row of the table; the values of all queries are kept beside it for tests of significance."""
        metrics = [rs.metrics.parse_metric(name, one_label="skip") for name in METRICS]
        result = rs.evaluate({ranker: model}, self.test, metrics)
        row = {
            "ranker": ranker, "choice": choice, "train": self.train.n_queries, "test": self.test.n_queries,
            "size": model.size, "validation": round(100 * model.info["best_score"], 2),
        }  # fmt: skip
        for metric, paper in zip(METRICS, PAPER.get(ranker, (None,) * 3), strict=True):
            mean, half = interval(result.per_query(ranker, metric))
            row |= {metric: mean, f"{metric} ±": half, f"{metric} in the paper": paper}
        model.save(path.with_suffix(".model"))
        np.save(path.with_suffix(".npy"), result.per_query(ranker, "ndcg@10"))
        return row

    def by_trees(self, model: Any) -> dict[str, float]:
        """NDCG@10 by number of trees (Figure 2)."""
        stages = [stage for stage in STAGES if stage <= model.n_trees]
        if isinstance(model, rs.Forest):
            return {str(stage): self.ndcg(model.predict(self.test, trees=stage)) for stage in stages}
        rounds = {stage: model.first(stage // model.n_outputs) for stage in stages if stage >= model.n_outputs}
        return {str(stage): self.ndcg(shorter.predict(self.test)) for stage, shorter in rounds.items()}

    def ndcg(self, scores: np.ndarray) -> float:
        return round(100 * rs.evaluate(scores, self.test, "ndcg@10").mean(), 2)


def chosen(paths: list[Path]) -> list[Row]:
    """The rows of finished pieces, with which choice of a ranker is best on validation, and its test against λ-MART."""
    rows = {path: json.loads(path.read_text()) for path in paths}
    best: dict[str, Path] = {}
    for path, row in rows.items():
        if "ranker" in row:
            other = best.setdefault(row["ranker"], path)
            best[row["ranker"]] = path if row["validation"] > rows[other]["validation"] else other
    for path, row in rows.items():
        if "ranker" not in row:
            continue
        row["chosen"] = path == best[row["ranker"]]
        if row["chosen"] and row["ranker"] != "λ-MART" and "λ-MART" in best:
            values, reference = (np.load(one.with_suffix(".npy")) for one in (path, best["λ-MART"]))
            row["p against λ-MART"] = float(f"{rs.significance.paired_t_test(values, reference).p_value:.2g}")
    return list(rows.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=10_000, help="training queries; half validate, as many test")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--name", default="cubic", help="of the results file")
    parser.add_argument("--only", default="", help="pieces whose names begin so; the others only if they are finished")
    parser.add_argument("--work", type=Path, help="folder of finished pieces; by default build/NAME-QUERIES")
    given = parser.parse_args()
    work = given.work or Path("build", f"{given.name}-{given.queries}")
    work.mkdir(parents=True, exist_ok=True)
    table = Table(given.queries, given.rounds, given.epochs, given.threads, work)
    finished: list[Path] = []
    for piece in table.pieces():
        path = table.path(piece)
        if not path.exists() and not piece.name.startswith(given.only):
            continue
        if not path.exists():
            row = piece.make(path, **piece.settings)
            with atomic_path(path) as temporary:
                temporary.write_text(json.dumps(row, ensure_ascii=False))
            print(row, flush=True)
        finished.append(path)
        save(given.name, chosen(finished))


if __name__ == "__main__":
    main()

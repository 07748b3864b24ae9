"""SelGB against λ-MART, ours and LightGBM's, on full two-stage lists, as in Table 2 of the SelGB paper.

Run `python benchmarks/two_stage.py [--trees 300] [--work FOLDER]`; NDCG@10 at some trees and where validation lists
chose to stop, with either split gain. What a ranker reached is stored when it is done, so an interrupted run goes on
with those that are missing; the table is of those that are there. One thread.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import ranksieve as rs
from cells import METRIC, mean
from finished_cells import path_of_cell
from paper_settings import TREES, VARIANCE, share
from ranksieve.data.binned import Binned, bin_data
from ranksieve.files import atomic_path
from results import save

STAGES = (50, 150)
FEW = 10  # documents: the share of smaller leaves is reported
RULES: dict[str, dict[str, Any]] = {
    "lambdamart": {"algo": "lambdamart", **VARIANCE},
    "lambdamart, newton": {"algo": "lambdamart", **TREES},
    "selgb 1%": {"algo": "selgb", **VARIANCE, **share(0.01)},
    "selgb 1%, newton": {"algo": "selgb", **TREES, **share(0.01)},
    "lightgbm": {"algo": "lightgbm", **TREES},
    "selgb 5%": {"algo": "selgb", **VARIANCE, **share(0.05)},
    "selgb 5%, newton": {"algo": "selgb", **TREES, **share(0.05)},
    "negsgb 1%": {"algo": "negsgb", **VARIANCE, **share(0.01)},
    "sgb 10%": {"algo": "sgb", **VARIANCE, "negatives": 0.1},
    "sieve": {"algo": "sieve", **TREES, "min_negatives": 20},
}


class TwoStage:
    """n training queries, n / 3 validation and 2 n / 3 test queries; generated when first used."""

    def __init__(self, n: int) -> None:
        self.n = n

    @cached_property
    def lists(self) -> tuple[rs.Dataset, rs.Dataset]:
        return rs.synth.two_stage(self.n), rs.synth.two_stage(self.n // 3, start=self.n)

    @cached_property
    def binned(self) -> tuple[Binned, Binned]:
        train, valid = self.lists
        bins = bin_data(train)
        return bins, bin_data(valid, binning=bins.binning)

    @cached_property
    def test(self) -> rs.Dataset:
        return rs.synth.two_stage(2 * self.n // 3, start=self.n + self.n // 3)

    def ndcg(self, scores: np.ndarray) -> list[float]:
        return METRIC.per_query(self.test.labels, scores, self.test.offsets).tolist()

    def learn(self, rule: Mapping[str, Any], trees: int) -> dict[str, Any]:
        train, valid = self.lists if rule["algo"] == "lightgbm" else self.binned
        model = rs.train(train, valid=valid, trees=trees, early_stopping=100, threads=1, **rule)
        stages = {f"at {k}": self.ndcg(model.predict(self.test, trees=min(k, model.n_trees))) for k in STAGES}
        sizes = model.leaf_count[: model.leaf_offsets[min(STAGES[0], model.n_trees)]]
        return {
            "trees": model.n_trees,
            "small leaves": float((sizes < FEW).mean()),
            "train": rs.evaluate(
                model.predict(self.lists[0], trees=min(STAGES[1], model.n_trees)), self.lists[0]
            ).mean(),
            "test": self.ndcg(model.predict(self.test)),
            **stages,
        }

    def first_stage(self) -> dict[str, Any]:
        scores = self.test.lists.to_user_order(self.test.column(self.test.first_stage).astype(np.float64))
        return {"test": self.ndcg(scores)}


def table(found: Mapping[str, dict[str, Any]], n: int) -> list[dict[str, Any]]:
    bm25f = found["first stage"]["test"]
    rows: list[dict[str, Any]] = [{"data": "two_stage", "train": n, "test": len(bm25f), "bm25f": mean(bm25f)}]
    for name, one in found.items():
        if name == "first stage":
            continue
        peers = ("lambdamart", "lambdamart, newton", "lightgbm", name.removesuffix(", newton"))
        tests = {
            peer: rs.significance.randomization_test(np.array(one["test"]), np.array(found[peer]["test"]))
            for peer in peers
            if peer in found and peer != name
        }
        rows.append(
            {
                "ranker": name,
                **{f"ndcg@10 at {k}": mean(one[f"at {k}"]) for k in STAGES},
                "ndcg@10": mean(one["test"]),
                "trees": one["trees"],
                **{f"p against {peer}": round(test.p_value, 4) for peer, test in tests.items()},
                f"on training lists at {STAGES[1]}": round(one["train"], 4),
                f"leaves of the first {STAGES[0]} trees below {FEW} documents": round(one["small leaves"], 3),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=600, help="training queries; a third validates, two thirds test")
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--work", type=Path, default=Path("build/two_stage"), help="where finished rankers are kept")
    parser.add_argument("--table", action="store_true", help="only the table of the rankers that are there")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    lists = TwoStage(arguments.queries)
    found = {}
    for name, rule in {"first stage": None, **RULES}.items():
        path = path_of_cell(arguments.work, name, [rule, arguments.queries, arguments.trees])
        if not path.exists() and not arguments.table:
            made = lists.first_stage() if rule is None else lists.learn(rule, arguments.trees)
            with atomic_path(path) as temporary:
                temporary.write_text(json.dumps(made))
            print(name, made.get("trees"), mean(made["test"]), flush=True)
        if path.exists():
            found[name] = json.loads(path.read_text())
    rows = table(found, arguments.queries)
    for row in rows:
        print(row)
    save("two_stage", rows)


if __name__ == "__main__":
    main()

"""SelGB against λ-MART, ours and LightGBM's, on full two-stage lists, as in Table 2 of the SelGB paper.

Run `python benchmarks/two_stage.py [--trees 300]`; NDCG@10 at some trees and where validation lists chose to stop.
"""

from __future__ import annotations

import argparse

import numpy as np

import ranksieve as rs
from ranksieve.data.binned import bin_data
from results import save

STAGES = (50, 150)
RULES = {
    "lambdamart": {"algo": "lambdamart"},
    "selgb 1%": {"algo": "selgb", "negatives": 0.01},
    "selgb 5%": {"algo": "selgb", "negatives": 0.05},
    "negsgb 1%": {"algo": "negsgb", "negatives": 0.01},
    "sgb 10%": {"algo": "sgb", "negatives": 0.1},
    # LightGBM's split gain, for a look at the rule alone beside LightGBM
    "lambdamart, newton": {"algo": "lambdamart", "gain": "newton"},
    "selgb 1%, newton": {"algo": "selgb", "negatives": 0.01, "gain": "newton"},
    "selgb 5%, newton": {"algo": "selgb", "negatives": 0.05, "gain": "newton"},
    "sieve": {"algo": "sieve"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=600, help="training queries; a third validates, two thirds test")
    parser.add_argument("--trees", type=int, default=500)
    arguments = parser.parse_args()
    n = arguments.queries
    lists = rs.two_stage(n)
    train = bin_data(lists)
    valid_lists = rs.two_stage(n // 3, start=n)
    valid = bin_data(valid_lists, binning=train.binning)
    test = rs.two_stage(2 * n // 3, start=n + n // 3)
    settings = {"trees": arguments.trees, "early_stopping": 100}
    models = {}
    for name, rule in RULES.items():
        models[name] = rs.train(train, valid=valid, **rule, **settings)
        print(name, models[name].n_trees, flush=True)
    models["lightgbm"] = rs.train(lists, valid=valid_lists, algo="lightgbm", **settings)
    systems = {name: model.predict(test) for name, model in models.items()}
    staged = {
        f"{name} @{k}": model.predict(test, trees=min(k, model.n_trees))
        for name, model in models.items()
        for k in STAGES
    }
    first_stage = {"bm25f": test.lists.to_user_order(test.column(test.first_stage).astype(np.float64))}
    result = rs.evaluate({**systems, **staged, **first_stage}, test)
    rows = [{"data": "two_stage", "train": n, "test": test.n_queries, "bm25f": round(result.mean("bm25f"), 4)}]
    for name, model in models.items():
        against = {peer: result.compare(name, peer, "ndcg@10").p_value for peer in ("lambdamart", "lightgbm")}
        rows.append(
            {
                "ranker": name,
                **{f"ndcg@10 at {k}": round(result.mean(f"{name} @{k}"), 4) for k in STAGES},
                "ndcg@10": round(result.mean(name), 4),
                "trees": model.n_trees,
                **{f"p against {peer}": round(p_value, 4) for peer, p_value in against.items()},
                "s per tree, validation included": round(float(np.median(model.info["seconds"])), 4),
            }
        )
        print(rows[-1], flush=True)
    save("two_stage", rows)


if __name__ == "__main__":
    main()

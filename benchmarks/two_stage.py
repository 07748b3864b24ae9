"""SelGB against λ-MART on full two-stage lists, as in Table 2 of the SelGB paper: NDCG@10 at some trees, and tests.

Run `python benchmarks/two_stage.py`; half an hour on two cores, most of it λ-MART. Trees are chosen on validation.
"""

from __future__ import annotations

import argparse

import numpy as np

import ranksieve as rs
from ranksieve.data.binned import bin_data
from results import save

STAGES = (50, 150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=600, help="training queries; a third validates, two thirds test")
    parser.add_argument("--trees", type=int, default=500)
    arguments = parser.parse_args()
    n = arguments.queries
    train = bin_data(rs.two_stage(n))
    valid = bin_data(rs.two_stage(n // 3, start=n), binning=train.binning)
    test = rs.two_stage(2 * n // 3, start=n + n // 3)
    settings = {"trees": arguments.trees, "early_stopping": 100}
    models = {
        "lambdamart": rs.train(train, valid=valid, algo="lambdamart", **settings),
        "selgb 1%": rs.train(train, valid=valid, algo="selgb", negatives=0.01, **settings),
        "selgb 5%": rs.train(train, valid=valid, algo="selgb", negatives=0.05, **settings),
        "negsgb 1%": rs.train(train, valid=valid, algo="negsgb", negatives=0.01, **settings),
        "sgb 10%": rs.train(train, valid=valid, algo="sgb", negatives=0.1, **settings),
    }
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
        against = result.compare(name, "lambdamart", "ndcg@10")
        rows.append(
            {
                "ranker": name,
                **{f"ndcg@10 at {k}": round(result.mean(f"{name} @{k}"), 4) for k in STAGES},
                "ndcg@10": round(result.mean(name), 4),
                "trees": model.n_trees,
                "p against lambdamart": round(against.p_value, 4),
                "s per tree, validation included": round(float(np.median(model.info["seconds"])), 4),
            }
        )
        print(rows[-1], flush=True)
    save("two_stage", rows)


if __name__ == "__main__":
    main()

"""Ranking quality on MQ2008 and OHSUMED, five folds, beside LightGBM with the same conventions; and how defaults rank.

Run `python benchmarks/quality.py FOLDER` with the folder that holds `MQ2008/S1.txt.xz` … and `OHSUMED/…`.
`--grid` compares settings by validation NDCG@10 instead: that is how the defaults were chosen.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import lightgbm
import numpy as np

import ranksieve as rs
from paper_settings import TREES
from results import save

COLLECTIONS = ("MQ2008", "OHSUMED")
LIGHTGBM = {
    "objective": "lambdarank",
    "num_leaves": 64,
    "learning_rate": 0.05,
    "lambdarank_norm": False,
    "lambdarank_truncation_level": 10,
    "min_data_in_leaf": 5,
    "min_sum_hessian_in_leaf": 0.0,
    "lambda_l2": 1.0,
    "verbose": -1,
    "num_threads": 1,
    "deterministic": True,
    "seed": 0,
}
SAME = {**TREES, "truncation": 10, "normalize": False}  # as LightGBM is set above
GRID = {
    "gain": ["variance", "newton"],
    "min_docs": [5, 20, 50],
    "l2": [0.0, 1.0],
    "truncation": [0, 30],
    "normalize": [False, True],
}


def folds(folder: Path) -> list[tuple[rs.Dataset, rs.Dataset, rs.Dataset]]:
    """Fold k trains on parts k, k+1, k+2, validates on k+3 and tests on k+4, numbers wrapping round."""
    parts = [rs.read(folder / f"S{number}.txt.xz") for number in range(1, 6)]
    return [(_joined([parts[(k + i) % 5] for i in range(3)]), parts[(k + 3) % 5], parts[(k + 4) % 5]) for k in range(5)]


def _joined(parts: list[rs.Dataset]) -> rs.Dataset:
    return rs.Dataset.from_arrays(
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.labels for part in parts]),
        group=np.concatenate([np.diff(part.offsets) for part in parts]),
    )


def lightgbm_scores(train: rs.Dataset, valid: rs.Dataset, test: rs.Dataset) -> np.ndarray:
    """LightGBM's scores of the test set, its trees chosen by our NDCG@10 on validation: the same convention."""
    metric = rs.metrics.parse_metric("ndcg@10")

    def measured(predictions: np.ndarray, _: lightgbm.Dataset) -> tuple[str, float, bool]:
        return "ours", float(np.nanmean(metric.per_query(valid.labels, predictions, valid.offsets))), True

    sets = [lightgbm.Dataset(d.features, d.labels, group=np.diff(d.offsets)) for d in (train, valid)]
    booster = lightgbm.train(
        {**LIGHTGBM, "metric": "none"},
        sets[0],
        1000,
        valid_sets=[sets[1]],
        feval=measured,
        callbacks=[lightgbm.early_stopping(100, verbose=False)],
    )
    return booster.predict(test.features, num_iteration=booster.best_iteration)


def systems(train: rs.Dataset, valid: rs.Dataset, test: rs.Dataset) -> dict:
    return {
        "lightgbm": lightgbm_scores(train, valid, test),
        "lambdamart": rs.train(train, valid=valid, algo="lambdamart", **SAME),
        "lambdamart, defaults": rs.train(train, valid=valid, algo="lambdamart"),
        "selgb, defaults": rs.train(train, valid=valid, algo="selgb"),
    }


def compare(folder: Path) -> list[dict]:
    """Mean over all queries of the five test parts, and the randomization test against LightGBM."""
    rows = []
    for collection in COLLECTIONS:
        values: dict[str, list[np.ndarray]] = {}
        for train, valid, test in folds(folder / collection):
            result = rs.evaluate(systems(train, valid, test), test)
            for name in result.values:
                values.setdefault(name, []).append(result.per_query(name))
        pooled = {name: np.concatenate(parts) for name, parts in values.items()}
        for name, mine in pooled.items():
            against = rs.significance.randomization_test(mine, pooled["lightgbm"])
            row = {"data": collection, "ranker": name, "ndcg@10": round(float(np.nanmean(mine)), 4)}
            rows.append({**row, "difference": round(against.difference, 4), "p": round(against.p_value, 4)})
            print(rows[-1], flush=True)
    return rows


def grid(folder: Path) -> list[dict]:
    data = {name: folds(folder / name) for name in COLLECTIONS}
    rows = []
    for values in itertools.product(*GRID.values()):
        setting = dict(zip(GRID, values, strict=True))
        row = dict(setting)
        for name in COLLECTIONS:
            best = [
                rs.train(train, valid=valid, algo="lambdamart", trees=300, early_stopping=50, **setting).info[
                    "best_score"
                ]
                for train, valid, _ in data[name]
            ]
            row[f"valid ndcg@10 {name}"] = round(float(np.mean(best)), 4)
        row["mean"] = round(float(np.mean([row[f"valid ndcg@10 {name}"] for name in COLLECTIONS])), 4)
        rows.append(row)
        print(row, flush=True)
    return sorted(rows, key=lambda row: -row["mean"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--grid", action="store_true")
    arguments = parser.parse_args()
    save("quality_grid" if arguments.grid else "quality", (grid if arguments.grid else compare)(arguments.folder))


if __name__ == "__main__":
    main()

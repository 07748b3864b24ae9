"""Scores of converted models in the programs they are made for, on 100,000 hard documents.

    python benchmarks/formats.py [--docs 100000] [--folder FOLDER]

Out: one forest, with missing values in its training data, is written in every format and scored by its consumer;
Elasticsearch, Solr, RankLib and QuickRank by evaluators of their documented rules (`tests/naive_formats.py`). In:
models trained by other libraries are read and scored here. A third of the documents' values lie on a threshold or one
float32 step beside it, a tenth are missing.

A consumer that adds float32 leaves is compared with the forest's own leaves, rounded to float32 and added in the same
way (`arithmetic: float32`), every other with `predict`. `exact` leaves are the same trees with leaf values of at most
14 binary places, which no arithmetic has to round: there every consumer is compared with `predict`. lleaves runs in
an environment of its own, as in `scoring.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib.metadata
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # nothing is timed; threads that spin on a busy machine take minutes

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).parent))
import naive_formats as naive
import ranksieve as rs
import results
import scoring
from format_consumers import OUT, SUFFIXES, Consumer, lleaves
from ranksieve.forest.forest import Forest


def with_missing(X: np.ndarray, rng: np.random.Generator, share: float) -> np.ndarray:
    X = X.copy()
    X[rng.random(X.shape) < share] = np.nan
    return X


def train(path: Path) -> Forest:
    """300 trees of 64 leaves on two-stage features; every third feature has missing values. Kept in a file."""
    if path.exists():
        return rs.load(path)
    data = rs.synth.two_stage(8, seed=1)
    rng = np.random.default_rng(0)
    X = data.rows(0, data.n_docs).copy()
    X[:, ::3] = with_missing(X[:, ::3], rng, 0.2)
    noisy = data.labels + rng.exponential(size=data.n_docs)  # keeps every tree at its full number of leaves
    lists = rs.Dataset.from_arrays(X, noisy, group=data.lists.sizes).with_features(data.feature_names)
    forest = rs.train(lists, algo="mart", trees=300, leaves=64, learning_rate=0.05)
    weights = rng.choice([0.5, 0.75, 1.0, 1.25], forest.n_trees)  # as after pruning and re-weighting
    forest.reweighted(weights).save(path)
    return rs.load(path)


def hard_documents(forest: Forest, n_docs: int) -> np.ndarray:
    data = rs.synth.two_stage(n_docs // 2_000 + 5, seed=1, start=1_000)
    rng = np.random.default_rng(1)
    X = data.rows(0, n_docs).copy()
    for feature in np.unique(forest.feature):
        with np.errstate(over="ignore"):
            near = forest.threshold[forest.feature == feature].astype(np.float32)
            steps = [np.nextafter(near, np.float32(side)) for side in (-np.inf, np.inf)]
        choices = np.concatenate([near, near, *steps])
        places = rng.random(n_docs) < 1 / 3
        X[places, feature] = rng.choice(choices[np.isfinite(choices)], int(places.sum()))
    return with_missing(X, rng, 0.1)


def exact_leaves(forest: Forest) -> Forest:
    values = np.round(forest.scaled_leaf_values() * 2**14) / 2**14
    return dataclasses.replace(forest, leaf_values=values, weights=np.ones(forest.n_trees))


def as_served(X: np.ndarray, missing: str) -> np.ndarray:
    """The documents as input of `predict`: RankLib and QuickRank have zeros instead of missing values."""
    return X if missing == "nan" else np.where(np.isnan(X), np.float32(0), X)


def measure_out(consumers: dict[str, Consumer], forest: Forest, X: np.ndarray, folder: Path) -> list[dict]:
    rows = []
    for leaves, model in (("as trained", forest), ("exact", exact_leaves(forest))):
        for consumer, (name, score, single, missing) in consumers.items():
            path = folder / f"model.{SUFFIXES.get(name, 'txt')}"
            model.save(path, format=name, missing=missing)
            served = as_served(X, missing)
            predicted = model.predict(served)
            theirs = score(path, X if missing != "never" else served, model)
            if leaves == "exact":
                expected, arithmetic = predicted, "any"
            elif single:
                expected, arithmetic = naive.singles_in_order(model, served), "float32"
            else:
                rounded = theirs.dtype == np.float32
                expected, arithmetic = predicted.astype(theirs.dtype), "float64, rounded" if rounded else "float64"
            rows.append(_row("out", consumer, name, leaves, arithmetic, theirs, expected, predicted))
    return rows


def _row(direction, consumer, name, leaves, arithmetic, theirs, expected, predicted) -> dict:
    largest = np.abs(predicted).max()
    difference = np.abs(theirs.astype(float) - expected.astype(float))
    row = {
        "direction": direction,
        "consumer": consumer,
        "format": name,
        "leaves": leaves,
        "arithmetic": arithmetic,
        "documents": len(theirs),
        "differing": int((difference > 0).sum()),
        "max_difference": float(difference.max()),
        "relative": float(difference.max() / largest),
        "relative_to_predict": float(np.abs(theirs.astype(float) - predicted).max() / largest),
    }
    print(row, flush=True)
    assert row["relative"] <= (1e-12 if arithmetic == "float64" else 0.0), row
    return row


def measure_in(n_docs: int) -> list[dict]:
    """Models of other libraries: read, and scored here and there."""
    data = rs.synth.two_stage(4, seed=2)
    X = data.rows(0, 4_000).copy()
    X[:, ::3] = with_missing(X[:, ::3], np.random.default_rng(0), 0.2)
    labels, sizes = data.labels[:4_000], [1_000] * 4
    rows = []
    for name, fit in IN.items():
        try:
            model, score, single = fit(X, labels, np.repeat(np.arange(4), sizes))
        except ImportError:
            continue
        forest = rs.io.from_model(model)
        docs = hard_documents(forest, n_docs)
        if name == "GradientBoosting":
            docs = np.nan_to_num(docs)
        theirs = np.asarray(score(docs))
        predicted = forest.predict(docs)
        expected = naive.singles_in_order(forest, docs) if single else predicted
        rows.append(
            _row("in", name, "object", "as trained", "float32" if single else "float64", theirs, expected, predicted)
        )
    return rows


def fit_xgboost(X, labels, qid):
    import xgboost

    params = {"objective": "rank:ndcg", "max_leaves": 32, "grow_policy": "lossguide", "max_depth": 0, "nthread": 2}
    model = xgboost.train(params, xgboost.DMatrix(X, labels, qid=qid), 100)
    return model, lambda docs: model.predict(xgboost.DMatrix(docs)), True


def fit_catboost(X, labels, qid):
    import catboost

    params = {"loss_function": "YetiRank", "iterations": 100, "verbose": 0, "allow_writing_files": False}
    model = catboost.CatBoost(params).fit(catboost.Pool(X, labels, group_id=qid))
    return model, lambda docs: model.predict(docs, prediction_type="RawFormulaVal"), False


def fit_sklearn(kind: str, **params):
    def fit(X, labels, qid):
        from sklearn import ensemble

        model = getattr(ensemble, f"{kind}Regressor")(random_state=0, **params)
        model.fit(np.nan_to_num(X) if kind == "GradientBoosting" else X, labels)
        return model, model.predict, False

    return fit


IN = {
    "xgboost": fit_xgboost,
    "catboost": fit_catboost,
    "RandomForest": fit_sklearn("RandomForest", n_estimators=50, max_leaf_nodes=64, max_features=0.3),
    "ExtraTrees": fit_sklearn("ExtraTrees", n_estimators=50, max_leaf_nodes=64, max_features=0.3),
    "GradientBoosting": fit_sklearn("GradientBoosting", n_estimators=50, max_features=0.1),
    "HistGradientBoosting": fit_sklearn("HistGradientBoosting", max_iter=50),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "ranksieve-formats")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    forest = train(options.folder / "forest.txt")
    X = hard_documents(forest, options.docs)
    print(forest, f"{np.isnan(X).mean():.1%} missing")
    rows: list[dict] = [{"consumers": versions(scoring.python_of("lleaves", options.folder))}]
    for measure in (
        lambda: measure_out(OUT, forest, X, options.folder),
        lambda: measure_in(options.docs),
        # 40 trees: compiling 300 takes minutes
        lambda: measure_out({"lleaves": ("lightgbm", lleaves, False, "nan")}, forest.first(40), X, options.folder),
    ):
        rows += measure()
    results.save("formats", rows)


def versions(lleaves_python: Path) -> dict[str, str]:
    """Versions of the consumers; lleaves and its llvmlite are in an environment of their own."""
    code = "import importlib.metadata as m; print(m.version('lleaves'), m.version('llvmlite'))"
    lines = subprocess.run([str(lleaves_python), "-c", code], check=True, capture_output=True, text=True).stdout.split()
    found = {"lleaves": lines[0], "llvmlite of lleaves": lines[1]}
    for package in ("xgboost-cpu", "onnxruntime", "onnx", "treelite", "catboost"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found


if __name__ == "__main__":
    main()

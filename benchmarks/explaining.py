"""Speed of contributions beside LightGBM's `pred_contrib` and the `shap` package, on the same models and documents.

    python benchmarks/explaining.py [--docs 2000]

Models are trained by LightGBM on the features of `two_stage` with noisy grades as targets. Results are compared before
anything is timed; times are processor time on one thread, the best of three. `shap.TreeExplainer` calls LightGBM where
it is given a Booster, so the same trees are given to it also in its own format, for its own compiled code.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import lightgbm
import numpy as np
import shap

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1] / "tests"))
import results
from naive_shap import shap_model
from ranksieve.data.generators import two_stage
from ranksieve.forest.formats.lightgbm_reader import from_text

MODELS = {"100x64": (100, 64), "300x64": (300, 64), "300x16": (300, 16)}
CLOSE = 1e-9


def train(n_trees: int, n_leaves: int) -> tuple[lightgbm.Booster, np.ndarray]:
    data = two_stage(8, seed=1)
    X = data.rows(0, data.n_docs).astype(np.float64)
    noisy = data.labels + np.random.default_rng(0).normal(size=data.n_docs)
    params = {"num_leaves": n_leaves, "verbose": -1, "num_threads": 1, "learning_rate": 0.05, "feature_fraction": 0.3}
    return lightgbm.train(params, lightgbm.Dataset(X, noisy), n_trees), X


def best_of_three(function: Callable[[], np.ndarray]) -> float:
    times = []
    for _ in range(3):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def measure(name: str, n_docs: int) -> dict:
    booster, X = train(*MODELS[name])
    X = X[:n_docs]
    forest = from_text(booster.model_to_string())
    own = shap.TreeExplainer(shap_model(forest), feature_perturbation="tree_path_dependent")
    wrapped = shap.TreeExplainer(booster, feature_perturbation="tree_path_dependent")
    start = time.perf_counter()
    ours = forest.predict(X, contributions=True, threads=1)
    row = {"model": name, "docs": n_docs, "features": X.shape[1], "first_call_s": time.perf_counter() - start}
    row["difference_to_shap"] = float(np.abs(own.shap_values(X) - ours[:, :-1]).max())
    row["difference_to_lightgbm"] = float(np.abs(booster.predict(X, pred_contrib=True) - ours).max())
    assert max(row["difference_to_shap"], row["difference_to_lightgbm"]) < CLOSE, row
    times = {
        "ranksieve": best_of_three(lambda: forest.predict(X, contributions=True, threads=1)),
        "shap": best_of_three(lambda: own.shap_values(X)),
        "shap on a Booster": best_of_three(lambda: wrapped.shap_values(X)),
        "lightgbm": best_of_three(lambda: booster.predict(X, pred_contrib=True, num_threads=1)),
    }
    row["us_per_doc"] = {peer: 1e6 * seconds / n_docs for peer, seconds in times.items()}
    row["times_as_fast"] = {peer: seconds / times["ranksieve"] for peer, seconds in times.items()}
    return row


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=int, default=2000)
    rows = [measure(name, parser.parse_args().docs) for name in MODELS]
    for row in rows:
        print(row)
    results.save("explaining", rows)

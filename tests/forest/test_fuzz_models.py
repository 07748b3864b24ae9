"""Damaged model files of every format: a ModelError that names the file, or a model that scores as the slow truth."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import numpy as np
import pytest

import ranksieve as rs
from damage import damaged
from naive_forest import naive_scores, random_forest
from naive_formats import evaluate_statistics
from ranksieve.errors import ModelError
from ranksieve.forest.ctr_forest import CtrForest
from ranksieve.forest.formats.lightgbm_writer import to_text
from ranksieve.forest.formats.xgboost import to_xgboost
from ranksieve.forest.formats.xml_models import to_quickrank, to_ranklib
from ranksieve.forest.matrix import encoded
from ranksieve.models.load import read_model
from samples import small_dataset

FILES = Path(__file__).parent / "formats" / "files"
CASES = 150  # of each format
MOST_FEATURES = 1000  # of a model that is scored here
FOREST = random_forest(np.random.default_rng(7), n_trees=3)
FOREST = dataclasses.replace(FOREST, default_left=np.zeros_like(FOREST.default_left))


def saved(folder: Path, **options) -> bytes:
    """The file of a small ranker."""
    path = folder / "model"
    rs.train(small_dataset(), **options).save(path)
    return path.read_bytes()


def blend(folder: Path) -> bytes:
    path = folder / "model"
    data = small_dataset()
    rs.combine([rs.train(data, trees=2, leaves=3, min_docs=3), rs.train(data, algo="ranksvm")]).save(path)
    return path.read_bytes()


def combined(folder: Path) -> bytes:
    path = folder / "model.json"
    rs.load(FILES / "catboost_combinations.json").save(path)
    return path.read_bytes()


MODELS = {
    "lightgbm": lambda _: to_text(random_forest(np.random.default_rng(7), n_trees=3, zero_missing=True)).encode(),
    "lightgbm without sizes": lambda _: b"\n".join(
        line for line in to_text(FOREST).encode().split(b"\n") if not line.startswith(b"tree_sizes=")
    ),
    "xgboost": lambda _: to_xgboost(FOREST).encode(),
    "ubjson": lambda _: (FILES / "xgboost.ubj").read_bytes(),
    "catboost": lambda _: (FILES / "catboost_ranker.json").read_bytes(),
    "catboost depthwise": lambda _: (FILES / "catboost_depthwise.json").read_bytes(),
    "catboost combinations": lambda _: (FILES / "catboost_combinations.json").read_bytes(),
    "ctr": combined,
    "ranklib": lambda _: to_ranklib(dataclasses.replace(FOREST, default_left=FOREST.threshold >= 0)).encode(),
    "quickrank": lambda _: to_quickrank(FOREST).encode(),
    "linear": lambda folder: saved(folder, algo="ranksvm"),
    "net": lambda folder: saved(folder, algo="lambdarank", epochs=1, hidden=3),
    "grades": lambda folder: saved(folder, algo="mcrank", trees=2, leaves=3, min_docs=3),
    "blend": blend,
}


def documents(n_features: int, seed: int) -> np.ndarray:
    """Ordinary and extreme values, some of them missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, n_features))
    X[rng.random(X.shape) < 0.1] = 0.0
    X[rng.random(X.shape) < 0.05] = 1e30
    X[rng.random(X.shape) < 0.1] = np.nan
    return X.astype(np.float32)


def check(content: bytes, seed: int) -> bool:
    """Whether the content is still a model; fails where it is neither a model nor a ModelError."""
    try:
        model = read_model(content, "the-file")
    except ModelError as error:
        assert str(error).startswith("the-file"), error
        return False
    if model.n_features <= MOST_FEATURES:
        X = encoded(documents(model.n_features, seed), model)
        with np.errstate(all="ignore"):
            scores = model.predict(X, threads=1)
            assert scores.shape == (len(X),)
            if isinstance(model, CtrForest):
                rows = np.hstack([X, np.array(evaluate_statistics(model.statistics, X.tolist()), np.float32)])
                np.testing.assert_array_equal(scores, naive_scores(model.forest, rows))
            if isinstance(model, rs.Forest):
                np.testing.assert_array_equal(scores, naive_scores(model, X))
                np.testing.assert_array_equal(model.predict(X[:3], threads=1), scores[:3])
    return True


@pytest.mark.parametrize("name", MODELS)
def test_damaged_models_are_refused_or_score_as_the_slow_truth(name, tmp_path, fuzz_cases):
    content = MODELS[name](tmp_path)
    assert check(content, 0)
    loaded = 0
    for seed, _ in enumerate(fuzz_cases(CASES)):
        start = time.monotonic()
        try:
            loaded += check(damaged(content, seed), seed)
        except Exception as error:
            raise AssertionError(f"damage number {seed} of {name}: {error!r}") from error
        assert time.monotonic() - start < 300, f"damage number {seed} of {name} took too long"
    assert 0 < loaded < seed

"""The programs that `formats.py` writes models for: functions (model file, documents, forest) -> scores."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import naive_formats as naive
import scoring
from ranksieve.forest.forest import Forest

LLEAVES = """
import sys, lleaves, numpy as np
model = lleaves.Model(model_file=sys.argv[1])
model.compile()
np.save(sys.argv[3], model.predict(np.load(sys.argv[2])))
"""


def lightgbm(path: Path, X: np.ndarray, forest: Forest) -> np.ndarray:
    import lightgbm

    return lightgbm.Booster(model_file=str(path)).predict(X, num_threads=1)


def xgboost(path: Path, X: np.ndarray, forest: Forest) -> np.ndarray:
    import xgboost

    booster = xgboost.Booster({"nthread": 1}, model_file=str(path))
    return booster.predict(xgboost.DMatrix(X, feature_names=list(forest.feature_names)))


def treelite_lightgbm(path: Path, X: np.ndarray, forest: Forest) -> np.ndarray:
    import treelite

    return treelite.gtil.predict(treelite.frontend.load_lightgbm_model(path), X, nthread=1).ravel()


def treelite_xgboost(path: Path, X: np.ndarray, forest: Forest) -> np.ndarray:
    import treelite

    return treelite.gtil.predict(treelite.frontend.load_xgboost_model(path), X, nthread=1).ravel()


def onnxruntime(path: Path, X: np.ndarray, forest: Forest) -> np.ndarray:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(["scores"], {"features": X})[0][:, 0]


def compiled_c(path: Path, X: np.ndarray, forest: Forest) -> np.ndarray:
    library = Path(tempfile.mkdtemp(dir=path.parent)) / "model.so"  # a library is loaded once under one name
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", str(path), "-o", str(library)], check=True)
    scores = np.empty(len(X))
    score = ctypes.CDLL(str(library)).model_scores
    score(X.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(len(X)), scores.ctypes.data_as(ctypes.c_void_p))
    return scores


def lleaves(path: Path, X: np.ndarray, forest: Forest) -> np.ndarray:
    python = scoring.python_of("lleaves", path.parent)
    files = [path, path.with_name("docs.npy"), path.with_name("scores.npy")]
    np.save(files[1], X)
    subprocess.run([str(python), "-c", LLEAVES, *map(str, files)], check=True)
    return np.load(files[2])


def by_rules(evaluate: Callable[..., np.ndarray], *, names: bool) -> Callable[..., np.ndarray]:
    def score(path: Path, X: np.ndarray, forest: Forest) -> np.ndarray:
        return evaluate(path.read_text(), X, *([forest.feature_names] if names else []))

    return score


# consumer: (format, what it does, adds in float32, how missing values are encoded)
Consumer = tuple[str, Callable[..., np.ndarray], bool, str]
OUT: dict[str, Consumer] = {
    "lightgbm": ("lightgbm", lightgbm, False, "nan"),
    "treelite (LightGBM)": ("lightgbm", treelite_lightgbm, False, "nan"),
    "xgboost": ("xgboost", xgboost, True, "nan"),
    "treelite (XGBoost)": ("xgboost", treelite_xgboost, True, "nan"),
    "onnxruntime": ("onnx", onnxruntime, False, "nan"),
    "C, compiled": ("c", compiled_c, False, "nan"),
    "Elasticsearch, OpenSearch (rules)": (
        "elasticsearch",
        by_rules(naive.evaluate_elasticsearch, names=True),
        True,
        "nan",
    ),
    "Solr (rules)": ("solr", by_rules(naive.evaluate_solr, names=True), True, "nan"),
    "RankLib (rules)": ("ranklib", by_rules(naive.evaluate_ranklib, names=False), True, "zero"),
    "QuickRank (rules)": ("quickrank", by_rules(naive.evaluate_quickrank, names=False), False, "never"),
}
SUFFIXES = {"xgboost": "json", "onnx": "onnx", "c": "c"}

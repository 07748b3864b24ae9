"""`bench`: the scoring speed of a model, compared with every other scorer that is installed."""

from __future__ import annotations

import importlib.util
import os
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve.data.dataset import Dataset
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.model_files import given_forest
from ranksieve.forest.matrix import check_features, encoded

AGREE = 1e-12  # tolerance, relative to the largest score: rounding of another order of sums in float64
AGREE_SINGLE = 1e-4  # for scorers that add in float32
SECONDS = 0.2  # least time of one measurement
MOST_DOCUMENTS, RANDOM_DOCUMENTS = 20_000, 5_000

Predict = Callable[[np.ndarray], Any]


def bench(
    model: Forest | str | os.PathLike[str], X: Any = None, *, threads: int | None = None, repeat: int = 3
) -> list[dict[str, Any]]:
    """Time the scoring of documents with this package and with every installed peer.

    Parameters
    ----------
    model : Forest or path
    X : Dataset or array, optional
        Documents; by default 5,000 random ones around the model's thresholds. At most 20,000 are used.
    threads : int, optional
        All cores by default.
    repeat : int
        Number of measurements of each scorer; the best time is reported.

    Returns
    -------
    list of dict
        `name`, `us_per_doc`, `ratio` (how many times our time it takes), `max_difference` (relative to the largest
        score) and `agrees`, or `failed` with a reason; ours first.

    Examples
    --------
    >>> from ranksieve.forest.forest import empty_forest
    >>> [row["name"] for row in bench(empty_forest(["a"]), repeat=1)][0]
    'ranksieve'
    """
    forest = given_forest(model)
    documents = _documents(forest, X)
    threads = threads or os.cpu_count() or 1
    given = encoded(documents, forest)
    scores = forest.predict(given, threads=threads)
    ours = seconds(lambda: forest.predict(given, threads=threads), repeat=repeat)
    rows = [_row("ranksieve", ours, ours, len(documents), scores, scores, AGREE)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.txt"
        forest.save(path)
        for name, make in PEERS.items():
            try:
                if absent(name) or not forest.n_trees:
                    continue
                predict = make(path, forest.n_features, threads)
                theirs = np.asarray(predict(documents), dtype=np.float64).ravel()
                taken = seconds(lambda predict=predict: predict(documents), repeat=repeat)  # type: ignore[misc]
            except Exception as error:  # an error of one peer must not hide the others
                reason = str(error).strip().splitlines() or [type(error).__name__]
                rows.append({"name": name, "failed": reason[0]})
                continue
            rows.append(_row(name, taken, ours, len(documents), theirs, scores, LIMITS.get(name, AGREE)))
    return rows


def seconds(call: Callable[[], Any], *, repeat: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """The best of several times of a call, each the mean over as many calls as fill `SECONDS`."""
    start = clock()
    call()
    n_calls = max(1, int(SECONDS / max(clock() - start, 1e-9)))
    best = np.inf
    for _ in range(repeat):
        start = clock()
        for _ in range(n_calls):
            call()
        best = min(best, (clock() - start) / n_calls)
    return float(best)


def _row(
    name: str, taken: float, ours: float, n_docs: int, theirs: np.ndarray, scores: np.ndarray, limit: float
) -> dict:
    largest = max(float(np.abs(scores).max(initial=0.0)), 1e-300)
    difference = float(np.abs(theirs - scores).max(initial=0.0)) / largest
    return {
        "name": name,
        "us_per_doc": taken / n_docs * 1e6,
        "ratio": taken / ours,
        "max_difference": difference,
        "agrees": difference <= limit,
    }


def _documents(forest: Forest, X: Any) -> np.ndarray:
    if X is None:
        return random_documents(forest, RANDOM_DOCUMENTS)
    if isinstance(X, Dataset):
        rows = X.in_order(forest.feature_names, forest.categories).rows(0, min(X.n_docs, MOST_DOCUMENTS))
    else:
        rows = np.ascontiguousarray(X[:MOST_DOCUMENTS], np.float32)
    check_features(rows.shape[1], forest)
    return rows


def random_documents(forest: Forest, n_docs: int) -> np.ndarray:
    """Documents whose values lie around the thresholds of each feature, so that they spread over the leaves."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_docs, forest.n_features))
    for feature in np.unique(forest.feature):
        splits = np.flatnonzero(forest.feature == feature)
        if forest.categorical[splits].any():
            codes = np.unique(np.concatenate([forest.set_of(split) for split in splits.tolist()]))
            X[:, feature] = rng.choice(np.append(codes, np.nan), n_docs)
            continue
        limits = np.sort(forest.threshold[splits])
        limits = np.concatenate([[limits[0] - 1.0], limits, [limits[-1] + 1.0]])
        X[:, feature] = np.interp(rng.random(n_docs), np.linspace(0, 1, len(limits)), limits)
    with np.errstate(over="ignore"):
        return X.astype(np.float32)


def absent(peer: str) -> list[str]:
    """The modules that a peer needs and that are not installed."""
    return [name for name in MODULES.get(peer, (peer,)) if importlib.util.find_spec(name) is None]


def lightgbm_peer(path: Path, n_features: int, threads: int) -> Predict:
    """LightGBM's own predict."""
    import lightgbm

    booster = lightgbm.Booster(model_file=str(path))
    return lambda X: booster.predict(X, num_threads=threads)


def onnx_peer(path: Path, n_features: int, threads: int) -> Predict:
    """ONNX Runtime. Its thresholds are float32 too: a document next to a threshold may go the other way."""
    import lightgbm
    import onnxmltools
    import onnxruntime
    from onnxmltools.convert.common.data_types import FloatTensorType

    given = [("input", FloatTensorType([None, n_features]))]
    # the converter does not support ranking; the trees are the same
    text = re.sub("^objective=.*", "objective=regression", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    converted = onnxmltools.convert_lightgbm(lightgbm.Booster(model_str=text), initial_types=given, zipmap=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(converted.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda X: session.run(None, {"input": X})[0]


def treelite_peer(path: Path, n_features: int, threads: int) -> Predict:
    """Treelite's interpreter."""
    import treelite

    model = treelite.frontend.load_lightgbm_model(path)
    return lambda X: treelite.gtil.predict(model, X, nthread=threads, pred_margin=True)


def tl2cgen_peer(path: Path, n_features: int, threads: int) -> Predict:
    """Treelite's trees as C, compiled by the system's compiler."""
    import tl2cgen
    import treelite

    library = path.with_suffix(".so")
    model = treelite.frontend.load_lightgbm_model(path)
    if not library.exists() or library.stat().st_mtime < path.stat().st_mtime:
        tl2cgen.export_lib(model, toolchain="gcc", libpath=library, params={"parallel_comp": 32}, verbose=False)
    predictor = tl2cgen.Predictor(library, nthread=threads, verbose=False)
    return lambda X: predictor.predict(tl2cgen.DMatrix(X), pred_margin=True)


def lleaves_peer(path: Path, n_features: int, threads: int) -> Predict:
    """lleaves: trees compiled by LLVM."""
    import lleaves

    model = lleaves.Model(model_file=str(path))
    model.compile()
    return lambda X: model.predict(X, n_jobs=threads)


PEERS: dict[str, Callable[[Path, int, int], Predict]] = {
    "lightgbm": lightgbm_peer,
    "onnxruntime": onnx_peer,
    "treelite": treelite_peer,
    "tl2cgen": tl2cgen_peer,
    "lleaves": lleaves_peer,
}
MODULES = {"onnxruntime": ("lightgbm", "onnxmltools", "onnxruntime"), "tl2cgen": ("treelite", "tl2cgen")}
LIMITS = {"onnxruntime": AGREE_SINGLE}

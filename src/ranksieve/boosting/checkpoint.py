"""Checkpoints: one small file, written atomically, from which training goes on to the same model bit for bit."""

from __future__ import annotations

import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve.boosting.loop import Sample, State
from ranksieve.boosting.tree import to_forest, to_trees
from ranksieve.data.binned import Binned
from ranksieve.errors import ModelError, RanksieveError
from ranksieve.files import atomic_path
from ranksieve.forest.lightgbm_text import from_text, to_text
from ranksieve.params import Params

FILE = "checkpoint.npz"
MAY_CHANGE = ("trees", "threads", "early_stopping")  # a resumed run may set these anew


def fingerprint(data: Binned, params: Params) -> dict[str, Any]:
    """What must be equal for a checkpoint to fit: the data, its bins and the parameters that shape the model."""
    lists = data.lists
    sums = [zlib.crc32(a.tobytes()) for a in (lists.labels, lists.offsets, data.binning.thresholds)]
    shape = [lists.n_docs, lists.n_queries, data.binning.n_features]
    settings = {name: value for name, value in params.as_dict().items() if name not in MAY_CHANGE}
    return {"data": sums + shape, "bins": zlib.crc32(data.bins[:: max(1, lists.n_docs // 1000)].tobytes()), **settings}


def save_checkpoint(folder: Path, state: State, data: Binned, params: Params) -> None:
    forest = to_forest(state.trees, data.binning, data.feature_names, {})
    meta = {"fingerprint": fingerprint(data, params), "history": state.history, "seconds": state.seconds}
    rows = state.sample.rows
    with atomic_path(folder / FILE) as path, open(path, "wb") as file:
        np.savez(
            file,
            model=np.frombuffer(to_text(forest).encode(), np.uint8),
            meta=np.frombuffer(json.dumps(meta).encode(), np.uint8),
            everything=np.bool_(rows is None),
            rows=np.empty(0, np.int32) if rows is None else rows,
        )


def load_checkpoint(folder: Path, state: State, data: Binned, params: Params) -> State:
    """`state` moved on to the checkpoint in `folder`; unchanged where there is none yet."""
    path = folder / FILE
    if not path.exists():
        return state
    try:
        with np.load(path, allow_pickle=False) as archive:
            meta = json.loads(archive["meta"].tobytes())
            model = archive["model"].tobytes().decode()
            rows = None if archive["everything"] else archive["rows"]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise ModelError(f"{path}: not a checkpoint ({error}); delete it to start anew") from error
    expected = fingerprint(data, params)
    different = [name for name in expected if meta["fingerprint"].get(name) != expected[name]]
    if different:
        raise ModelError(
            f"{path}: made with another {' and '.join(different)}; resume with the same data and parameters, "
            "or choose another checkpoint folder"
        )
    try:
        state.trees = to_trees(from_text(model, source=str(path)), data.binning)
    except RanksieveError as error:
        raise ModelError(f"{path}: damaged ({error}); delete it to start anew") from error
    for tree in state.trees:
        state.scores.add(tree)
    state.sample = Sample.of(data.lists, rows)
    state.history, state.seconds = meta["history"], meta["seconds"]
    return state

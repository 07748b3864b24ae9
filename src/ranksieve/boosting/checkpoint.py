"""Checkpoints: one small file, written atomically, from which training continues to the same model bit for bit."""

from __future__ import annotations

import json
import os
import time
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.boosting.bagging import BaggedRows
from ranksieve.boosting.callbacks import ValidationSet
from ranksieve.boosting.loop import Rows, State, TrainScores
from ranksieve.boosting.training_rows import TrainingRows
from ranksieve.boosting.tree import to_forest, to_trees
from ranksieve.data.binned import Binned
from ranksieve.errors import DataError, ModelError, ParameterError, RanksieveError, check_number, check_whole, param
from ranksieve.files import atomic_path
from ranksieve.forest.formats.lightgbm_reader import from_text
from ranksieve.forest.formats.lightgbm_writer import to_text
from ranksieve.parameter_table import RESOURCES
from ranksieve.params import Params
from ranksieve.rules import Selected

if TYPE_CHECKING:
    from ranksieve.boosting.backend import AllScores

FILE = "checkpoint.npz"
# raised by NumPy, zipfile and json on damaged files; RuntimeError also for encryption and unknown compression
UNREADABLE = (
    OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, OverflowError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip
MAY_CHANGE = ("trees", "device", "early_stopping", *RESOURCES)  # a resumed run may set these anew


@dataclass(frozen=True)
class CheckpointOptions:
    """Where and how often to save checkpoints, and whether to continue from one."""

    folder: str | os.PathLike[str] | None = None
    every: int = 50
    minutes: float = 5.0
    resume: bool = False

    def __post_init__(self) -> None:
        check_whole("checkpoint_every", self.every)
        check_number("checkpoint_minutes", self.minutes)

    def check(self) -> None:
        """Refuse to resume without a folder, and to overwrite a checkpoint."""
        if self.folder is None:
            if self.resume:
                raise ParameterError(param("resume"), " needs a checkpoint folder; give ", param("checkpoint"))
        elif not self.resume and (Path(self.folder) / FILE).exists():
            raise ParameterError(
                f"{Path(self.folder)} holds a checkpoint; ", param("resume"), " continues from it; to start anew, "
                "delete it or choose another folder",
            )  # fmt: skip


def fingerprint(
    data: Binned, valid_sets: Sequence[ValidationSet], starts: Sequence[AllScores], params: Params
) -> dict[str, Any]:
    """What must be equal for a checkpoint to fit: the data sets, their initial scores, and the parameters."""
    return {
        "training data": checksums(data),
        "validation data": {one.name: checksums(one.data) for one in valid_sets},
        "init": [zlib.crc32(start.all().tobytes()) for start in starts],
        **choices(data.feature_names, params),
    }


def choices(names: Sequence[str], params: Params) -> dict[str, Any]:
    """The features and parameters that determine a model, as they are read back from a checkpoint."""
    settings = {name: value for name, value in params.as_dict().items() if name not in MAY_CHANGE}
    return {"feature names": zlib.crc32("\n".join(names).encode()), **json.loads(json.dumps(settings))}


def checksums(data: Binned) -> list[int]:
    """Checksums of what training depends on: labels, lists, weights, positions, thresholds and a sample of the bins."""
    lists = data.lists
    sample = data.bins[:: max(1, lists.n_docs // 1000)]
    weights = np.empty(0) if lists.weights is None else lists.weights
    positions = () if lists.positions is None else (lists.positions,)
    codes = [data.binning.codes[feature] for feature in sorted(data.binning.codes)]
    arrays = (lists.labels, lists.offsets, weights, data.binning.thresholds, sample, *positions, *codes)
    return [lists.n_docs, lists.n_queries, *(zlib.crc32(array.tobytes()) for array in arrays)]


class Checkpointer:
    """Saves the state every few trees or minutes, and at the end; loads it when a run is resumed."""

    def __init__(self, options: CheckpointOptions, data: Binned, params: Params, mark: dict[str, Any]) -> None:
        assert options.folder is not None
        folder = Path(options.folder)
        self._path = folder / FILE
        self._data, self._params, self._mark = data, params, mark
        self._every, self._seconds = options.every, 60.0 * options.minutes
        self._saved = time.monotonic()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"{folder}: cannot be created ({error.strerror}); choose another checkpoint folder"
            ) from error

    def __call__(self, state: State[Any, Any]) -> None:
        n_trees = len(state.trees)
        late = time.monotonic() - self._saved > self._seconds
        if n_trees % self._every == 0 or late or state.stopped or n_trees == self._params.all_trees:
            self.save(state)
            self._saved = time.monotonic()

    def save(self, state: State[Any, Any]) -> None:
        """Write the state."""
        forest = to_forest(state.trees, self._data.binning, self._data.feature_names, {})
        meta = {"fingerprint": self._mark, "history": state.history, "seconds": state.seconds, "steps": state.steps}
        kept = state.rows.members if isinstance(state.rows, BaggedRows) else (state.rows,)
        with atomic_path(self._path) as path, open(path, "wb") as file:
            np.savez(
                file,
                model=np.frombuffer(to_text(forest).encode(), np.uint8),
                meta=np.frombuffer(json.dumps(meta).encode(), np.uint8),
                biases=np.array(state.biases, np.float64),
                **{f"{name}{number}": array for number, rows in enumerate(kept)
                   for name, array in _arrays_of(rows).items()},
            )  # fmt: skip

    def load(self, state: State[Rows, TrainScores]) -> State[Rows, TrainScores]:
        """`state` moved on to the checkpoint; unchanged where there is none yet."""
        path, data, mark = self._path, self._data, self._mark
        if not path.exists():
            return state
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
                meta = _progress(archive)
                different = [name for name in mark if meta["fingerprint"].get(name) != mark[name]]
                model = archive["model"].tobytes().decode()
                if not different:  # else its rows may not be among those of the data
                    n_members = len(state.rows.members) if isinstance(state.rows, BaggedRows) else 1
                    selected = [_selected(archive, data.lists.n_docs, number) for number in range(n_members)]
                    biases = _biases(archive, len(meta["seconds"]))
        except UNREADABLE as error:
            raise _unreadable(path, error) from error
        if different:
            held_out: tuple[Any, ...] = ()
            if "training data" in different:
                different = [name for name in different if name != "init"]  # "init" has scores of the data
                if "validation data" in different:
                    held_out = (" (if queries were held out for early stopping, with ", param("valid_fraction"), ")")
            raise ModelError(
                f"{path}: made with another {' and '.join(different)}; resume with the same data and parameters",
                *held_out, ", or choose another checkpoint folder",
            )  # fmt: skip
        try:
            state.trees = to_trees(from_text(model, source=str(path)), data.binning)
        except RanksieveError as error:
            raise ModelError(f"{path}: damaged ({error}); delete it to start anew") from error
        if len(state.trees) > self._params.all_trees:
            raise ModelError(f"{path}: has {len(state.trees)} trees already; train at least as many, or start anew")
        for tree in state.trees:
            state.scores.add(tree)
        members = tuple(TrainingRows.of(data.lists, one) for one in selected)
        rows: Any = BaggedRows(members) if isinstance(state.rows, BaggedRows) else members[0]
        state.rows = rows
        state.history, state.seconds, state.steps = meta["history"], meta["seconds"], meta["steps"]
        state.biases = biases
        return state


def finished(state: State[Rows, TrainScores]) -> State[Rows, TrainScores]:
    """The trees that were measured, where a run ends in the middle of one."""
    n = state.drop_unmeasured()
    before = state.previous_rows if len(state.trees) > n else None
    rows = state.rows if before is None else before
    return replace(state, trees=state.trees[:n], steps=state.steps[:n], rows=rows, biases=state.biases[: n + 1])


def _arrays_of(rows: TrainingRows) -> dict[str, Any]:
    """The training rows as arrays."""
    chosen = rows.selected or Selected(np.empty(0))
    return {
        "everything": np.bool_(rows.rows is None),
        "rows": np.empty(0, np.int32) if rows.rows is None else rows.rows,
        "weights": np.empty(0) if chosen.weights is None else chosen.weights,
        "full_lists": np.bool_(chosen.full_lists),
    }


def _selected(archive: Any, n_docs: int, number: int) -> np.ndarray | Selected | None:
    """The training rows of a forest of a bag; of the only one, number 0."""
    if archive[f"everything{number}"]:
        return None
    rows, weights, full_lists = (archive[f"{name}{number}"] for name in ("rows", "weights", "full_lists"))
    if rows.dtype.kind not in "iu" or rows.ndim != 1 or (len(rows) and not 0 <= rows.min() <= rows.max() < n_docs):
        raise ValueError(f"its rows are not among the {n_docs} of the data")
    if weights.dtype.kind != "f" or weights.shape not in ((0,), rows.shape):
        raise ValueError("its weights do not fit its rows")
    if not len(weights) and not full_lists:
        return rows
    return Selected(rows, weights if len(weights) else None, bool(full_lists))


def _biases(archive: Any, n_trees: int) -> list[np.ndarray]:
    """Biases of positions at the start and after each tree; none where they are not learned."""
    biases = archive["biases"]
    if biases.dtype.kind != "f" or not np.isfinite(biases).all() or (len(biases) and biases.ndim != 2):
        raise ValueError("its biases of positions are not numbers")
    if len(biases) not in (0, n_trees + 1):
        raise ValueError("its biases of positions are not those of its trees")
    return list(biases)


def read_checkpoint_progress(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What a checkpoint says of its run: its `fingerprint`, and of each tree the `seconds` and the `history`."""
    path = Path(folder) / FILE
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            return _progress(archive)
    except UNREADABLE as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> ModelError:
    return ModelError(f"{path}: not a checkpoint ({error}); delete it to start anew")


def _progress(archive: Any) -> dict[str, Any]:
    """The part of a checkpoint that is JSON; a history that is not one number per tree is refused."""
    if (damaged := archive.zip.testzip()) is not None:  # else a damaged header could declare a huge array
        raise ValueError(f"{damaged} does not have its checksum")
    meta: dict[str, Any] = json.loads(archive["meta"].tobytes())
    curves = [values for metrics in meta["history"].values() for values in metrics.values()]
    if not isinstance(meta["fingerprint"], dict):
        raise TypeError("it does not say what it was made with")
    for values in (meta["seconds"], meta["steps"], *curves):
        if not isinstance(values, list) or not all(isinstance(value, int | float) for value in values):
            raise TypeError("its history does not hold numbers")
    if any(len(values) != len(meta["seconds"]) for values in curves):
        raise ValueError("its history does not have one number per tree")
    return meta

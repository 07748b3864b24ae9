"""`ModelStore`: the models of a service, opened once and replaced when their files change."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ranksieve.dtypes import FEATURE
from ranksieve.errors import DataError, ParameterError, RanksieveError, did_you_mean
from ranksieve.forest.matrix import encoded
from ranksieve.forest.model import Model
from ranksieve.models.load import load
from ranksieve.retrieval.index import Index
from ranksieve.retrieval.pipeline import Pipeline

LOG = logging.getLogger("ranksieve.serve")
FIRST_STAGE = "first-stage"  # the name of the first stage among models
SECONDS = 1.0  # between two looks at the files

Signature = tuple[int, int, int]


class NotFoundError(DataError):
    """A model or document that the service does not have."""


@dataclass(frozen=True)
class Served:
    """A model that is served: its name, file and content. Requests keep the one they started with."""

    name: str
    path: Path
    model: Model
    signature: Signature
    error: str | None = None  # why a newer file could not be read

    def score(self, features: np.ndarray) -> np.ndarray:
        """Scores of feature vectors."""
        if features.shape[1] != self.model.n_features:
            raise DataError(
                f"a vector has {features.shape[1]} features; the model {self.name} has {self.model.n_features}"
            )
        if np.isinf(features).any():
            raise DataError("a feature is infinite; give finite numbers, and null where a feature is missing")
        return self.model.predict(features, threads=1)


class ModelStore:
    """The models by name: those given at the start, then those in the folder of trained models.

    Parameters
    ----------
    index
        Every model must fit it; None where models score feature vectors alone.
    paths
        Model files; a name is the file's name without its ending.
    folder
        Further models, which may come while the service runs.
    """

    def __init__(self, index: Index | None, paths: Sequence[Path], folder: Path | None = None):
        self._index, self._paths, self._folder = index, tuple(paths), folder
        self._lock = threading.Lock()
        self._wake, self._is_closed = threading.Event(), False
        self._served: dict[str, Served] = {}
        self._refused: dict[Path, Signature] = {}  # files of the folder that are not models
        for path in self._paths:
            if path.stem in self._served or path.stem == FIRST_STAGE:
                raise ParameterError(f"{path}: another model is named {path.stem!r} already; rename one of the files")
            self._served[path.stem] = self._open(path)
        self._add_trained()
        self._thread = threading.Thread(target=self._watch, name="ranksieve-models", daemon=True)

    def _open(self, path: Path) -> Served:
        signature = _signature(path)
        model = load(path)
        if self._index is not None:
            Pipeline(self._index, model, threads=1).close()  # refuses models of other indexes
        return Served(path.stem, path, model, signature)

    @property
    def names(self) -> list[str]:
        return list(self._served)

    def all(self) -> list[Served]:
        return list(self._served.values())

    def find(self, name: str) -> Served:
        """The model with a name."""
        found = self._served.get(name)
        if found is None and not self.names:
            raise NotFoundError("this needs a model; start the service with one, or train one on the page")
        if found is None:
            known = self.names if name == FIRST_STAGE else [FIRST_STAGE, *self.names]
            problem = "this needs a model" if name == FIRST_STAGE else f"no model is named {name[:80]!r}"
            raise NotFoundError(f"{problem}; {did_you_mean(name[:80], known)}known: {', '.join(known)}")
        return found

    def warm_up(self) -> None:
        """Score once with every model, so that no request waits for kernels to be compiled or loaded."""
        for served in self.all():
            served.score(encoded(np.zeros((1, served.model.n_features), FEATURE), served.model))

    def start(self) -> None:
        """Begin to look for changed files."""
        self._thread.start()

    def wake(self) -> None:
        """Look for changed files now."""
        self._wake.set()

    def close(self) -> None:
        self._is_closed = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        while not self._is_closed:
            self._wake.wait(SECONDS)
            self._wake.clear()
            try:
                self.refresh()
            except Exception:
                LOG.exception("looking for changed models failed")

    def refresh(self) -> None:
        """Read models again whose files have changed; one that cannot be read is reported, and the old one stays."""
        with self._lock:
            for served in self.all():
                try:
                    signature = _signature(served.path)
                    if signature != served.signature:
                        self._served[served.name] = self._open(served.path)
                        LOG.info("%s: read again", served.path)
                except (RanksieveError, OSError) as error:
                    self._report(served, error)
            self._add_trained()

    def _report(self, served: Served, error: Exception) -> None:
        message = str(error)
        if served.error == message:
            return
        LOG.error("%s; the model read before stays in use", message)
        self._served[served.name] = Served(served.name, served.path, served.model, served.signature, message)

    def _add_trained(self) -> None:
        """Take in new models of the folder."""
        if self._folder is None or not self._folder.is_dir():
            return
        for path in sorted(self._folder.glob("*.txt"), key=lambda path: (len(path.stem), path.stem)):
            if path.stem in self._served or path.stem == FIRST_STAGE:
                continue
            try:
                signature = _signature(path)
            except OSError:  # it is gone, or a link to nothing
                continue
            try:
                if self._refused.get(path) != signature:
                    self._served = {**self._served, path.stem: self._open(path)}
            except (RanksieveError, OSError) as error:
                LOG.error("%s; it is left out", error)
                self._refused[path] = signature


def _signature(path: Path) -> Signature:
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size

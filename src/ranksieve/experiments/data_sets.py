"""Data sets of experiments: where they come from, how they are split, and loading them as bins."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve.data.binned import Binned, bin_data
from ranksieve.data.blocks import Block, Source
from ranksieve.data.categories import Encoder
from ranksieve.data.data_file import COLUMN_PARAMETERS, DataFile
from ranksieve.data.dataset import BLOCK_ROWS, Dataset
from ranksieve.data.generators import GENERATORS, GeneratedSource
from ranksieve.data.joined import JoinedSource, Piece, query_ids_of
from ranksieve.data.pipes import SpooledPath
from ranksieve.data.read import open_data, read_like, read_source
from ranksieve.data.sampling import fold_queries, split_queries, too_few_queries
from ranksieve.dtypes import FEATURE
from ranksieve.errors import ParameterError
from ranksieve.rules import integer, parameter, parameters_of

FILES = ("train", "valid", "test")
BACKGROUND = "background"
MOST_FOLDS = 1000


@dataclass(frozen=True)
class DataSpec:
    """A data set: generated, three files, or one file to be split by query or into folds."""

    name: str = "data"
    generate: str | None = parameter(
        None, "Data to generate", f"one of {', '.join(GENERATORS)}", lambda name: name is None or name in GENERATORS
    )
    queries: int = integer(1000, "Queries to generate", 1)
    seed: int = 0
    features: int | None = parameter(None, "Features to generate", "an integer from 1", lambda n: n is None or n >= 1)
    file: str | None = None
    train: str | None = None
    valid: str | None = None
    test: str | None = None
    split: tuple[float, ...] = (0.6, 0.2, 0.2)
    folds: int = integer(0, "Parts to cross-validate with", 0, MOST_FOLDS)
    first_stage: str | None = None
    missing: str = "zero"
    label: str | None = None  # columns of Parquet files that have other names than usual
    qid: str | None = None
    docid: str | None = None
    weight: str | None = None
    position: str | None = None
    ignore: str | None = None  # columns that are not features
    categorical: str | None = None  # columns that hold categories
    background: str | tuple[str, ...] | None = None  # files of another domain, to start from
    background_queries: int | None = None  # the same of generated data, of another seed
    background_seed: int | None = None
    fold: int | None = None

    def checked(self, folder: Path | None = None) -> list[DataSpec]:
        """The data set, or one for each of its folds; file names are relative to `folder`."""
        files = (self.background,) if isinstance(self.background, str) else self.background
        paths: dict[str, Any] = {key: _beside(folder, getattr(self, key)) for key in ("file", *FILES)}
        paths["background"] = None if files is None else tuple(_beside(folder, file) for file in files)
        data = dataclasses.replace(self, split=tuple(self.split), **paths)
        data._check()
        return [data] if not data.folds else [dataclasses.replace(data, fold=fold) for fold in range(data.folds)]

    def _check(self) -> None:
        kinds = [self.generate is not None, self.file is not None, any(getattr(self, key) for key in FILES)]
        if not self.name or "/" in self.name or "\\" in self.name or not self.name.isprintable():
            raise ParameterError(f"data {self.name!r}: the name is part of file names; use letters, digits, - and _")
        if sum(kinds) != 1:
            raise ParameterError(
                f"data {self.name!r}: give one of generate, file (to be split), or the three files train, valid, test"
            )
        for key in ("generate", "queries", "features", "folds"):
            parameters_of(DataSpec)[key].checked(getattr(self, key))
        if kinds[2]:
            for key in FILES:
                if getattr(self, key) is None:
                    raise ParameterError(f"data {self.name!r} has no {key} file; give train, valid and test")
        if self.folds:
            if self.file is None:
                raise ParameterError(f"data {self.name!r}: folds need one file (file = ...)")
            next(fold_queries(self.folds, self.folds))
        elif not kinds[2]:
            if len(self.split) != 3:
                raise ParameterError(f"split is {list(self.split)}; expected three shares: train, valid, test")
            split_queries(10_000, self.split)
        self._check_background()
        for path in self._files().values():
            self._open(path)

    def _check_background(self) -> None:
        if self.background is not None and (self.generate is not None or not self.background):
            raise ParameterError(f"data {self.name!r}: background is a list of files, for data that is in files")
        if self.background_queries is None:
            if self.background_seed is not None:
                raise ParameterError(f"data {self.name!r}: a background-seed needs background-queries")
        elif self.generate is None:
            raise ParameterError(
                f"data {self.name!r}: background-queries are for generated data; name background files"
            )
        elif self.background_queries < 1 or self.background_seed in (None, self.seed):
            raise ParameterError(
                f"data {self.name!r}: expected background-queries from 1 and a background-seed other than "
                f"{self.seed}, so that it is another collection"
            )

    def _files(self) -> dict[str, str]:
        """Every file by its role."""
        files = {key: getattr(self, key) for key in ("file", *FILES) if getattr(self, key) is not None}
        return files | {f"background{number}": path for number, path in enumerate(self.background or ())}

    @property
    def title(self) -> str:
        return self.name if self.fold is None else f"{self.name} fold {self.fold + 1}"

    def identity(self) -> dict[str, Any]:
        """What distinguishes the data: all settings, and size and time of every file."""
        facts: dict[str, Any] = {k: v for k, v in dataclasses.asdict(self).items() if v is not None}
        for key, path in self._files().items():
            facts[f"{key}_stamp"] = _stamp(path)
            if key in facts:
                facts[key] = str(path)
        if self.background is not None:
            facts["background"] = list(map(str, self.background))
        return facts

    @property
    def has_background(self) -> bool:
        return self.background is not None or self.background_queries is not None

    def has_first_stage(self) -> bool:
        if self.generate is not None:
            return self.generate == "two-stage"
        return self._open(self.file or self.train).first_stage is not None  # type: ignore[arg-type]

    def _open(self, path: str, encoders: dict[str, Encoder] | None = None) -> Source:
        file = DataFile(path, **{name: getattr(self, name) for name in COLUMN_PARAMETERS})
        return open_data(file, missing=self.missing, first_stage=self.first_stage, encoders=encoders)

    def sources(self, encoders: dict[str, Encoder] | None = None) -> list[Source]:
        """Training, validation and test data, each to be read in blocks.

        The files share the numbers of categories, which are those of the training data if it is read first. Other data
        has the same ones if `encoders` are given.
        """
        encoders = {} if encoders is None else encoders
        if self.train is not None:
            return [self._open(getattr(self, key), encoders) for key in FILES]
        if self.generate is not None:
            return self._generated()
        assert self.file is not None
        source = self._open(self.file)
        ids = query_ids_of(source)
        if self.fold is None:
            parts: Any = split_queries(len(ids), self.split, seed=self.seed)
        else:
            parts = list(fold_queries(len(ids), self.folds, seed=self.seed))[self.fold]
        return [
            JoinedSource(
                [Piece(self._open(self.file, encoders), frozenset(ids[q] for q in part))], name=f"{self.file} ({name})"
            )
            for part, name in zip(parts, FILES, strict=True)
        ]

    def background_source(self, encoders: dict[str, Encoder] | None = None) -> Source | None:
        """Lists of another domain, for a model that is to be adapted."""
        if self.background is not None:
            encoders = {} if encoders is None else encoders
            return JoinedSource([Piece(self._open(path, encoders)) for path in self.background], distinct=True)
        if self.background_queries is None:
            return None
        assert self.background_seed is not None
        generate, size = self._generator()
        return GeneratedSource(generate, range(self.background_queries), self.background_seed, size)

    def _generator(self) -> tuple[Callable[..., Dataset], int]:
        """The function that generates, and how many queries at once."""
        assert self.generate is not None
        function, size = GENERATORS[self.generate]
        options = {} if self.features is None else {"n_features": self.features}
        return functools.partial(function, **options), size

    def _generated(self) -> list[Source]:
        generate, size = self._generator()
        ends = np.round(np.cumsum(self.split) * self.queries).astype(int)
        ranges = [range(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]
        if min(map(len, ranges)) == 0:
            raise too_few_queries(self.queries, self.split)
        return [GeneratedSource(generate, part, self.seed, size) for part in ranges]


@dataclass(frozen=True)
class DataPart:
    """One of training, validation and test data: bins, the first stage's scores and document ids where known."""

    binned: Binned
    first_stage: np.ndarray | None
    doc_ids: np.ndarray | None


@dataclass(frozen=True)
class Loaded:
    """The three parts of a data set in bins."""

    train: DataPart
    valid: DataPart
    test: DataPart


def _stamp(path: str) -> Any:
    """What changes with a file: its size and time, or a digest of what came through a pipe."""
    stat = os.stat(path)
    return _digest(path) if isinstance(path, SpooledPath) else [stat.st_size, stat.st_mtime_ns]


@lru_cache
def _digest(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _beside(folder: Path | None, file: str | None) -> str | None:
    return file if file is None or folder is None else str(folder / file)


def load(data: DataSpec, bin_limits: Mapping[str, int]) -> Loaded:
    """The data set in bins, with the thresholds of its training part; the last one is kept in memory."""
    return _load(json.dumps(data.identity(), sort_keys=True), data, tuple(bin_limits.items()))


@lru_cache(maxsize=1)
def _load(identity: str, data: DataSpec, bin_limits: tuple[tuple[str, int], ...]) -> Loaded:
    train, valid, test = data.sources()
    first = _load_part(train, **dict(bin_limits))
    others = [_load_part(source, binning=first.binned.binning) for source in (valid, test)]
    return Loaded(first, *others)


def load_values(data: DataSpec) -> dict[str, Dataset]:
    """Training, validation, test and background data with feature values; the last ones stay in memory."""
    return _load_values(json.dumps(data.identity(), sort_keys=True), data)


@lru_cache(maxsize=1)
def _load_values(identity: str, data: DataSpec) -> dict[str, Dataset]:
    encoders: dict[str, Encoder] = {}
    sources = dict(zip(FILES, data.sources(encoders), strict=True))
    background = data.background_source(encoders)
    if background is not None:
        sources[BACKGROUND] = background
    train = read_source(sources.pop("train"))
    return {"train": train, **{name: read_like(source, train) for name, source in sources.items()}}


class _RecordingSource(Source):
    """A source that keeps what bins do not have: the first stage's scores and the document ids of the last pass."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.info, self.n_docs, self.n_features = source.info, source.n_docs, source.n_features
        self.scores: list[np.ndarray] = []
        self.ids: list[np.ndarray] = []

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[Block]:
        self.scores, self.ids = [], []
        for block in self._source.blocks(rows):
            if block.doc_ids is not None:
                self.ids.append(block.doc_ids)
            if self.first_stage is not None:
                inside = self.first_stage < block.features.shape[1]
                absent = np.full(block.n_docs, self.absent, FEATURE)
                self.scores.append(block.features[:, self.first_stage].copy() if inside else absent)
            yield block
        self.n_docs, self.n_features = self._source.n_docs, self._source.n_features


def _load_part(source: Source, **binning: Any) -> DataPart:
    recorded = _RecordingSource(source)
    binned = bin_data(recorded, **binning)
    order = slice(None) if binned.lists.order is None else binned.lists.order
    has_ids = sum(map(len, recorded.ids)) == binned.lists.n_docs
    return DataPart(
        binned,
        np.concatenate(recorded.scores)[order] if recorded.scores else None,
        np.concatenate(recorded.ids)[order] if has_ids else None,
    )

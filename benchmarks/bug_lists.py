"""The bug collections as lists with features, and the folds of a cross-validation over all their reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import lightgbm
import numpy as np

import ranksieve as rs
from ranksieve.data.binned import Binned, bin_data
from ranksieve.data.sampling import Truncate
from retrieval_quality import BUG_FIELDS, read_collection

PROJECTS = ("ecf", "eclipse.jdt.debug", "tomcat70", "eclipse.pde.ui")
DEPTH = 1000  # of the files with features, which several experiments read
# All but feedback.*, opening.*, expanded.* and neighbours.*: 149 features for three fields.
SELECT = ("[!efno]*", "first*", "nearness*", "ordered*")


def feature_files(
    collections: Path, folder: Path, projects: Sequence[str] = PROJECTS, depth: int = DEPTH
) -> list[Path]:
    """The projects' lists with features, made where they are not there."""
    folder.mkdir(parents=True, exist_ok=True)
    ending = "" if depth == DEPTH else f"-{depth}"
    files = [folder / f"{project}{ending}.parquet" for project in projects]
    for project, file in zip(projects, files, strict=True):
        if not file.exists():
            source = collections / f"bugs-{project}"
            queries, judgements = read_collection(source)
            stored = folder / f"{project}.index"  # also for lists of another depth
            if not stored.exists():
                rs.Index.build(source / "corpus.jsonl.xz", stored, fields=BUG_FIELDS)
            index = rs.Index(stored)
            rs.io.write_parquet(
                rs.retrieval.extract_features(index, queries, judgements=judgements, depth=depth, select=SELECT), file
            )
            print(file, flush=True)
    return files


def shortened(file: Path, work: Path, depth: int) -> Path:
    """The lists cut to their first documents, as a file."""
    short = work / f"{file.stem}-{depth}.parquet"
    if not short.exists():
        work.mkdir(parents=True, exist_ok=True)
        rs.io.write_parquet(rs.sampling.truncate(rs.read(file), depth, positives="drop"), short)
    return short


@dataclass
class Fold:
    """One fold's lists, as our bins and as LightGBM's data; each is made when first used."""

    data: rs.Dataset
    train_queries: np.ndarray
    valid_queries: np.ndarray
    test_queries: np.ndarray

    @cached_property
    def train(self) -> Binned:
        return bin_data(self.data.take_queries(self.train_queries))

    @cached_property
    def valid(self) -> Binned:
        return bin_data(self.data.take_queries(self.valid_queries), binning=self.train.binning)

    @cached_property
    def test(self) -> rs.Dataset:
        return self.data.take_queries(self.test_queries)

    def shortened(self, cut: int | None) -> Binned:
        return self.train if cut is None else self.train.take_rows(self._rows(cut))

    @cached_property
    def lightgbm_full(self) -> lightgbm.Dataset:
        return _for_lightgbm(self.data.take_queries(self.train_queries))

    def lightgbm_shortened(self, cut: int | None) -> lightgbm.Dataset:
        if cut is None:
            return self.lightgbm_full
        return _for_lightgbm(self.data.take_queries(self.train_queries).take_rows(self._rows(cut)))

    def _rows(self, cut: int) -> np.ndarray:
        """Training rows within the first stage's best; positives beyond are dropped, since keeping them misleads."""
        lists, rows = self.data.lists.take_queries(self.train_queries)
        return Truncate(cut, "drop").rows(lists, self.data.column(self.data.first_stage)[rows])


def _for_lightgbm(part: rs.Dataset) -> lightgbm.Dataset:
    made = lightgbm.Dataset(part.features, part.labels, group=part.lists.sizes, params={"verbose": -1})
    return made.construct()

"""`Grades`: a ranker that foretells the grade: one forest for each chance, the expected grade as the score."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ranksieve.dtypes import SCORE
from ranksieve.files import atomic_path
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.lightgbm_reader import Header, parse_text
from ranksieve.forest.formats.lightgbm_writer import to_text
from ranksieve.text_formats import counted


class Link(Protocol):
    """How the sums of forests become chances, and chances an expected grade; arrays are outputs × documents."""

    objective: str  # what LightGBM calls it

    def targets(self, labels: np.ndarray, grades: np.ndarray) -> np.ndarray:
        """What each output should say of each document: 0 or 1."""
        ...

    def starts(self, means: np.ndarray) -> np.ndarray:
        """The sums to start from: those whose chances are the means of the targets."""
        ...

    def chances(self, sums: np.ndarray) -> np.ndarray: ...

    def curvature(self, n_outputs: int) -> float:
        """Factor of p(1 - p) in the second derivative."""
        ...

    def expected(self, chances: np.ndarray, grades: np.ndarray) -> np.ndarray: ...


class Multinomial:
    """One output per grade: its chance (Li, Burges, Wu 2007)."""

    objective = "multiclass"

    def targets(self, labels: np.ndarray, grades: np.ndarray) -> np.ndarray:
        return labels[None, :] == grades[:, None]

    def starts(self, means: np.ndarray) -> np.ndarray:
        return np.log(means)

    def chances(self, sums: np.ndarray) -> np.ndarray:
        powers = np.exp(sums - sums.max(axis=0))
        return powers / powers.sum(axis=0)

    def curvature(self, n_outputs: int) -> float:
        return n_outputs / (n_outputs - 1)  # the outputs share one degree of freedom (Friedman 2001)

    def expected(self, chances: np.ndarray, grades: np.ndarray) -> np.ndarray:
        return _weighted_sum(chances, grades, 0.0)


class Cumulative:
    """One output per grade but the highest: the chance of a higher one (the ordinal variant of the same paper)."""

    objective = "multiclassova"

    def targets(self, labels: np.ndarray, grades: np.ndarray) -> np.ndarray:
        return labels[None, :] > grades[:-1, None]

    def starts(self, means: np.ndarray) -> np.ndarray:
        return np.log(means / (1.0 - means))

    def chances(self, sums: np.ndarray) -> np.ndarray:
        return 1.0 / (1.0 + np.exp(-sums))

    def curvature(self, n_outputs: int) -> float:
        return 1.0

    def expected(self, chances: np.ndarray, grades: np.ndarray) -> np.ndarray:
        return _weighted_sum(chances, np.diff(grades), float(grades[0]))


HEADER = 1000  # bytes of a LightGBM text model within which it says its objective
LINKS: dict[str, Link] = {"multinomial": Multinomial(), "cumulative": Cumulative()}


@dataclass(frozen=True, eq=False, repr=False)
class Grades:
    """Trees of all outputs in turns: tree t belongs to output `t % n_outputs`."""

    forest: Forest
    grades: np.ndarray  # the labels of the training set, ascending
    link: str  # a key of LINKS

    def __repr__(self) -> str:
        return f"Grades({counted(grade=len(self.grades))}, {self.size}, {counted(feature=self.n_features)})"

    @property
    def n_outputs(self) -> int:
        return len(self.grades) - (self.link == "cumulative")

    @property
    def n_trees(self) -> int:
        return self.forest.n_trees

    @property
    def feature_names(self) -> tuple[str, ...]:
        return self.forest.feature_names

    @property
    def n_features(self) -> int:
        return self.forest.n_features

    @property
    def info(self) -> Mapping[str, Any]:
        return self.forest.info

    @property
    def size(self) -> str:
        return counted(tree=self.n_trees)

    def first(self, n_rounds: int) -> Grades:
        """The ranker of the first so many rounds."""
        return replace(self, forest=self.forest.first(n_rounds * self.n_outputs))

    def chances(self, X: Any, *, threads: int | None = None) -> np.ndarray:
        """What each output says of each document, (n_docs, n_outputs): chances of the grades, or of higher ones."""
        return self._chances(X, threads).T

    def predict(self, X: Any, *, threads: int | None = None) -> np.ndarray:
        """The expected grade of documents in any form `Forest.predict` takes."""
        return LINKS[self.link].expected(self._chances(X, threads), self.grades)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a LightGBM text model of several classes, whole or not at all; `ranksieve.load` reads it back.

        `lightgbm.Booster(model_file=path).predict(X)` gives the chances.
        """
        info = {**self.info, "grades": self.grades.tolist(), "link": self.link}
        text = to_text(self.forest, classes=self.n_outputs, objective=LINKS[self.link].objective, info=info)
        with atomic_path(path) as temporary:
            temporary.write_bytes(text.encode())

    def _chances(self, X: Any, threads: int | None) -> np.ndarray:
        return LINKS[self.link].chances(np.stack([part.predict(X, threads=threads) for part in self._parts]))

    @cached_property
    def _parts(self) -> list[Forest]:
        """The forest of each output."""
        return [self.forest.take(np.arange(k, self.n_trees, self.n_outputs)) for k in range(self.n_outputs)]


def has_classes(content: bytes) -> bool:
    """Whether the content of a file is a LightGBM text model of several classes, or holds our grades."""
    header = content[:HEADER]
    return header.startswith(b"tree") and re.search(rb"^objective=multiclass", header, re.MULTILINE) is not None


def read_grades(text: str, source: str) -> Grades:
    """The model in the text of a LightGBM model of several classes, ours or LightGBM's own; `source` names it."""
    forest, header = parse_text(text, source, _check_classes)
    classes = int(header.values["num_class"])
    if forest.n_trees % classes:
        raise header.error("num_class", f"{forest.n_trees} trees make no whole rounds of {classes}; it was changed")
    info = dict(forest.info)
    grades, link = info.pop("grades", None), info.pop("link", "multinomial")
    if grades is None and link == "multinomial" and header.values["objective"].split()[0] == "multiclass":
        grades = list(range(classes))  # LightGBM's classes are whole numbers from 0
    grades = _checked_grades(grades, link, classes, header)
    return Grades(replace(forest, info=info), grades, link)


def _check_classes(header: Header) -> None:
    for key in ("num_class", "num_tree_per_iteration"):
        if not header.values.get(key, "").isdigit() or header.values[key] == "0":
            raise header.error(key, f"{key} is {header.values.get(key, '')[:20]!r}, expected a number from 1")
    if header.values["num_class"] != header.values["num_tree_per_iteration"]:
        raise header.error("num_class", "num_class and num_tree_per_iteration differ; expected one tree per class")


def _checked_grades(grades: Any, link: Any, classes: int, header: Header) -> np.ndarray:
    if grades is None:
        raise header.error(
            "objective",
            "sets each class against all others, which gives no expected grade; train with objective=multiclass",
        )
    if link not in LINKS or not isinstance(grades, list) or len(grades) != classes + (link == "cumulative"):
        raise header.error("num_class", f"{classes} classes do not fit the grades {grades!r}; the file was changed")
    return np.array(grades, dtype=SCORE)


def _weighted_sum(chances: np.ndarray, weights: Sequence[float] | np.ndarray, start: float) -> np.ndarray:
    """Output by output, so that a document's bits do not depend on the others."""
    total = np.full(chances.shape[1], start, SCORE)
    for chance, weight in zip(chances, weights, strict=True):
        total += weight * chance
    return total

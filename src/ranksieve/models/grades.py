"""`Grades`: a ranker that predicts grades: one forest per probability, the expected grade as the score."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ranksieve.dtypes import SCORE
from ranksieve.files import atomic_path
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.lightgbm_reader import Header, parse_text
from ranksieve.forest.formats.lightgbm_trees import REMEDY
from ranksieve.forest.formats.lightgbm_writer import to_text
from ranksieve.forest.formats.nodes import is_count
from ranksieve.forest.model import TrainedModel
from ranksieve.forest.summary import Summary, tree_summary
from ranksieve.text_formats import counted


class Multinomial:
    """One output per grade, its probability (Li, Burges, Wu 2007). Arrays are outputs × documents."""

    objective = "multiclass"  # LightGBM's name of it

    def targets(self, labels: np.ndarray, grades: np.ndarray) -> np.ndarray:
        """The target of each output for each document: 0 or 1."""
        return np.asarray(labels[None, :] == grades[:, None])

    def initial_sums(self, means: np.ndarray) -> np.ndarray:
        """The sums of leaves before the first tree: their probabilities are the means of the targets."""
        return np.asarray(np.log(means))

    def probabilities(self, sums: np.ndarray) -> np.ndarray:
        powers = np.exp(sums - sums.max(axis=0))
        return np.asarray(powers / powers.sum(axis=0))

    def curvature(self, n_outputs: int) -> float:
        """Factor of p(1 - p) in the second derivative."""
        return n_outputs / (n_outputs - 1)  # the outputs share one degree of freedom (Friedman 2001)

    def expected(self, probabilities: np.ndarray, grades: np.ndarray) -> np.ndarray:
        """The expected grade of each document."""
        return _weighted_sum(probabilities, grades, 0.0)


class Cumulative:
    """One output per grade but the highest, the probability of a higher grade (the ordinal variant in that paper)."""

    objective = "multiclassova"

    def targets(self, labels: np.ndarray, grades: np.ndarray) -> np.ndarray:
        return labels[None, :] > grades[:-1, None]

    def initial_sums(self, means: np.ndarray) -> np.ndarray:
        return np.log(means / (1.0 - means))

    def probabilities(self, sums: np.ndarray) -> np.ndarray:
        return np.asarray(1.0 / (1.0 + np.exp(-sums)))

    def curvature(self, n_outputs: int) -> float:
        return 1.0

    def expected(self, probabilities: np.ndarray, grades: np.ndarray) -> np.ndarray:
        return _weighted_sum(probabilities, np.diff(grades), float(grades[0]))


MOST_CLASSES = 1000  # most classes of a model without trees: a small file must not make a large model
HEADER = 1000  # bytes of a LightGBM text model that contain its objective
Link = Multinomial | Cumulative
LINKS: dict[str, Link] = {"multinomial": Multinomial(), "cumulative": Cumulative()}


@dataclass(frozen=True, eq=False, repr=False)
class Grades(TrainedModel):
    """A forest that predicts probabilities of grades (McRank); a document's score is its expected grade.

    Attributes
    ----------
    forest
        The trees of all outputs: tree t belongs to output `t % n_outputs`.
    grades
        The labels of the training set, ascending.
    link
        How outputs become probabilities: "softmax", one output per grade, or "cumulative", one per "higher than".

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(20)
    >>> model = rs.train(data, algo="mcrank", trees=5, leaves=4)
    >>> model.grades.tolist(), model.predict_proba(data).shape
    ([0.0, 1.0, 2.0, 3.0, 4.0], (1000, 5))
    """

    forest: Forest
    grades: np.ndarray
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
    def info(self) -> Mapping[str, Any]:
        return self.forest.info

    def with_info(self, **facts: Any) -> Grades:
        """The same model with more facts in its `info`."""
        return replace(self, forest=self.forest.with_info(**facts))

    @property
    def size(self) -> str:
        return counted(tree=self.n_trees)

    def own_summary(self) -> Summary:
        """Its grades and trees, and the share of each feature in the gain."""
        rounds = self.n_trees // self.n_outputs
        grades = f"{', '.join(f'{grade:g}' for grade in self.grades)}, {self.link} in {counted(round=rounds)}"
        trees = tree_summary(self.forest)
        return trees._replace(facts=[("grades", grades), *trees.facts])

    def first(self, n_rounds: int) -> Grades:
        """The ranker of the first `n_rounds` rounds."""
        return replace(self, forest=self.forest.first(n_rounds * self.n_outputs))

    def predict_proba(self, X: Any, *, threads: int | None = None) -> np.ndarray:
        """Probabilities of the grades, or of higher grades, of each document: an array (n_docs, n_outputs)."""
        return self._probabilities(X, threads).T

    def predict(self, X: Any, *, threads: int | None = None) -> np.ndarray:
        """The expected grade of documents in any form `Forest.predict` takes."""
        return LINKS[self.link].expected(self._probabilities(X, threads), self.grades)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a LightGBM text model of several classes, whole or not at all; `ranksieve.load` reads it back.

        `lightgbm.Booster(model_file=path).predict(X)` gives the probabilities.
        """
        info = {**self.info, "grades": self.grades.tolist(), "link": self.link}
        text = to_text(self.forest, classes=self.n_outputs, objective=LINKS[self.link].objective, info=info)
        with atomic_path(path) as temporary:
            temporary.write_bytes(text.encode())

    def _probabilities(self, X: Any, threads: int | None) -> np.ndarray:
        return LINKS[self.link].probabilities(np.stack([part.predict(X, threads=threads) for part in self._parts]))

    @cached_property
    def _parts(self) -> list[Forest]:
        """The forest of each output."""
        return [self.forest.take(np.arange(k, self.n_trees, self.n_outputs)) for k in range(self.n_outputs)]


def has_classes(content: bytes) -> bool:
    """Whether the content of a file is a LightGBM text model of several classes, ours or LightGBM's."""
    header = content[:HEADER]
    return header.startswith(b"tree") and re.search(rb"^objective=multiclass", header, re.MULTILINE) is not None


def read_grades(text: str, source: str) -> Grades:
    """The model in the text of a LightGBM model of several classes, ours or LightGBM's own; `source` names it."""
    forest, header = parse_text(text, source, _check_classes)
    classes = int(header.values["num_class"])
    if forest.n_trees % classes or (classes > MOST_CLASSES and not forest.n_trees):
        raise header.error("num_class", f"{forest.n_trees} trees are not whole rounds of {classes}; {REMEDY}")
    info = dict(forest.info)
    grades, link = info.pop("grades", None), info.pop("link", "multinomial")
    if grades is None and link == "multinomial" and header.values["objective"].split()[0] == "multiclass":
        grades = list(range(classes))  # LightGBM's classes are integers from 0
    grades = _checked_grades(grades, link, classes, header)
    return Grades(replace(forest, info=info), grades, link)


def _check_classes(header: Header) -> None:
    for key in ("num_class", "num_tree_per_iteration"):
        if not is_count(header.values.get(key)) or int(header.values[key]) < 1:
            raise header.error(key, f"{key} is {header.values.get(key, '')[:20]!r}, expected an integer from 1")
    if header.values["num_class"] != header.values["num_tree_per_iteration"]:
        raise header.error("num_class", "num_class and num_tree_per_iteration differ; expected one tree per class")


def _checked_grades(grades: Any, link: Any, classes: int, header: Header) -> np.ndarray:
    if grades is None:
        raise header.error("objective", "multiclassova gives no expected grade; train with objective=multiclass")
    numbers = isinstance(grades, list) and all(isinstance(grade, int | float) for grade in grades)
    if not numbers or link not in tuple(LINKS) or len(grades) != classes + (link == "cumulative"):
        raise header.error("num_class", f"{classes} classes do not fit the grades {grades!r}; {REMEDY}")
    if not np.isfinite(np.array(grades, dtype=SCORE)).all():
        raise header.error("num_class", f"the grades {grades!r} are not all finite; {REMEDY}")
    return np.array(grades, dtype=SCORE)


def _weighted_sum(probabilities: np.ndarray, weights: Sequence[float] | np.ndarray, start: float) -> np.ndarray:
    """Added output by output: a document's score does not depend on the other documents."""
    total = np.full(probabilities.shape[1], start, SCORE)
    for probability, weight in zip(probabilities, weights, strict=True):
        total += weight * probability
    return total

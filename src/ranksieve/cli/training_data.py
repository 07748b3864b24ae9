"""What `train` and `tune` show of their data: its size, queries that leak into other data, and the test metric."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.cli.console import show_facts
from ranksieve.errors import ParameterError, ParamName, RanksieveWarning, joined_parts
from ranksieve.text_formats import counted, some_of

if TYPE_CHECKING:
    from ranksieve.data.blocks import Source
    from ranksieve.data.features import FeatureInfo
    from ranksieve.data.joined import JoinedSource
    from ranksieve.data.lists import Lists
    from ranksieve.evaluation.metrics import Metric
    from ranksieve.forest.model import Model

CONVENTIONS = "conventions"  # the last line of a summary
MOST_COLUMNS = 12  # more columns are not named
USELESS = "the metric on {} says nothing about new queries"
CHOSEN = "the model is chosen on it, so that the metric on it is too high"


def warn_of_same_files(files: Mapping[str, Sequence[Path]]) -> dict[str, str]:
    """Warn of files that are of two kinds, such as training and test data; returns what a summary says of the later."""
    seen: dict[str, str] = {}
    found = {}
    for kind, paths in files.items():
        for path in paths:
            before = seen.setdefault(os.path.realpath(path), kind)
            if before != kind:
                reason = USELESS.format("it") if before == "training" else CHOSEN
                warnings.warn(RanksieveWarning(f"{path} is {before} and {kind} data; {reason}"), stacklevel=2)
                found[kind] = f"; {path} is {before} data, too"
    return found


def joined(paths: Sequence[Path] | None, missing: str) -> Path | JoinedSource | None:
    """The parts of a data set as one."""
    from ranksieve.data.joined import JoinedSource, Piece

    if not paths:
        return None
    return paths[0] if len(paths) == 1 else JoinedSource([Piece(path) for path in paths], missing=missing)


class TrainingData:
    """A callback of training that passes what is trained on to `show`, and warns of leakage.

    Leakage is data that is training data and validation or test data, too: the same file, or queries with the same
    labels and features in both.
    """

    def __init__(
        self,
        train: Sequence[Path],
        valid: Sequence[Path] = (),
        test: Path | None = None,
        *,
        missing: str = "zero",
        first_stage: str | None = None,
    ) -> None:
        if first_stage is not None and test is None:
            raise ParameterError("--first-stage is for the comparison on test data; add --test FILE, or leave it out")
        self._train, self._valid, self._test = train, valid, () if test is None else (test,)
        self._missing, self._first_stage = missing, first_stage
        self.show: Callable[[str], None] = lambda text: None
        self._lists: list[Lists] = []  # those of the training data, and of queries held out of it
        self._info: FeatureInfo | None = None
        # what was warned of, for the summary
        self._leakage = warn_of_same_files({"training": train, "validation": valid, "test": self._test})

    def __call__(self, record: Any) -> None:
        """Nothing is done after a tree."""

    def note(self, *parts: str | ParamName) -> None:
        """Show a note on the data: text, and parameters by name."""
        self.show(joined_parts(parts, flags=True))

    def check(self) -> None:
        """Refuse files that cannot be read, before training; of test data, which is read after it, also the first rows.

        Validation and test data may lack columns that are ignored, and have others, as when they are read.
        """
        from ranksieve.data.blocks import blocks_of
        from ranksieve.data.read import open_data

        names: Sequence[str] = ()
        for path in self._train:
            names = open_data(path, missing=self._missing).feature_names or ()
        for path in (*self._valid, *self._test):
            first_stage = self._first_stage if path in self._test else None
            source = open_data(path, missing=self._missing, wanted=names, first_stage=first_stage)
            if path in self._test:
                next(blocks_of(source), None)

    def leakage(self, kind: str) -> str:
        """What the summary adds to the metric on validation or test data that has training data in it."""
        return self._leakage.get(kind, "")

    def on_data(self, name: str, data: Any, sizes: Mapping[str, int]) -> None:
        """Show the size of the training data; compare validation data with it."""
        from ranksieve.boosting.initial_scores import TRAIN

        if name != TRAIN and self._valid:
            self._compare("validation", self._valid, data.lists)
            return
        self._lists.append(data.lists)
        if name != TRAIN:
            return
        self._info = data.info
        size = f"{counted(document=sizes['documents'])} of {counted(query=sizes['queries'])}"
        columns = some_of([f"{column} ({why})" for column, why in data.info.left_out.items()], MOST_COLUMNS)
        left_out = f"; columns that are not features: {columns}" if columns else ""
        self.show(f"training on {size} with {counted(feature=len(data.feature_names))}{left_out}")

    def show_test(self, model: Model, metric: Metric) -> None:
        """Show the metric of the model and of the first stage, if it is known, on the test data, if there is any."""
        from ranksieve.evaluation.evaluate import evaluate
        from ranksieve.forest.score_file import FIRST_STAGE, score_each

        for path in self._test:
            scored = score_each({"the model": model}, path, None, first_stage=self._first_stage)
            self._compare("test", self._test, scored.lists)
            result = evaluate(scored.with_first_stage(), scored.lists, metric)
            facts = [("test", f"{metric} {result.mean():.4f}{self.leakage('test')}")]
            if scored.why_no_first_stage is not None:
                facts.append((FIRST_STAGE, joined_parts(("not compared: ", *scored.why_no_first_stage), flags=True)))
            elif not np.isnan(result.mean()):
                facts.append((FIRST_STAGE, f"{metric} {result.mean(FIRST_STAGE):.4f}"))
                facts.append(("difference", str(result.compare("the model", FIRST_STAGE))))
            show_facts([*facts, (CONVENTIONS, result.conventions[0])], len(CONVENTIONS))

    def _compare(self, kind: str, paths: Sequence[Path], lists: Lists) -> None:
        """Warn of queries that are in the training data, too."""
        from ranksieve.data.leakage import same_documents, same_labels

        if kind in self._leakage:
            return
        queries = [query for known in self._lists for query in same_labels(known, lists)]
        if queries:  # rarely; both are read once more
            queries = same_documents(self._open(self._train), self._open(paths), queries)
        if queries:
            files = " and ".join(map(str, paths))
            text = (
                f"{files}: {len(queries):,} of {counted(query=lists.n_queries)} ({some_of(queries, 3)}) are in the "
                f"training data with the same labels and features; {USELESS.format('them')}"
            )
            warnings.warn(RanksieveWarning(text), stacklevel=2)
            self._leakage[kind] = f"; {len(queries):,} of {counted(query=lists.n_queries)} are training data, too"

    def _open(self, paths: Sequence[Path]) -> Source:
        """Data with the numbers that the training data has for categories."""
        from ranksieve.data.joined import JoinedSource, Piece

        assert self._info is not None
        wanted = {"wanted": self._info.feature_names, "categories": self._info.categories}
        return JoinedSource([Piece(path) for path in paths], missing=self._missing, wanted=wanted)

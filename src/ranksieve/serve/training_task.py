"""What a training process does: features, a split by query, SelGB, and a measure on held-out queries."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ranksieve.boosting.callbacks import Record
from ranksieve.data.dataset import Dataset
from ranksieve.data.index_features import FIRST_STAGE
from ranksieve.data.sampling import split
from ranksieve.errors import DataError, RanksieveError
from ranksieve.evaluation.evaluate import list_scores
from ranksieve.files import locked
from ranksieve.forest.forest import Forest
from ranksieve.progress import waiting
from ranksieve.rankers.train import train
from ranksieve.retrieval.first_stage import FirstStage
from ranksieve.retrieval.index import Index
from ranksieve.retrieval.labelling import extract_features
from ranksieve.retrieval.runs import Judgements
from ranksieve.retrieval.searching import Retriever
from ranksieve.serve.comparison import METRIC, Ranked, measured
from ranksieve.text_formats import counted
from ranksieve.user_functions import import_function

FIRST = "first stage"
FEWEST_QUERIES = 10  # with a relevant candidate: six to train on, two to stop by, two to measure
SECONDS = 0.3  # between two reports
SECONDS_TO_END = 10.0  # seconds that a process may take to end
FEATURES_DONE, TREES_DONE = 0.3, 0.95  # shares of the work


@dataclass(frozen=True)
class Task:
    """A model to train."""

    index: Path
    folder: Path
    grades: Judgements
    texts: Mapping[str, str]
    stage: FirstStage
    depth: int
    params: Mapping[str, Any]
    encode: str | None = None  # file.py:function that makes vectors of queries


class Progress(NamedTuple):
    """How far training is: idle, running, done or failed; the share that is done, and a line about it."""

    state: str = "idle"
    done: float = 0.0
    line: str = ""
    model: str | None = None


Report = Callable[[Progress], None]


def progress_file(folder: Path) -> Path:
    return folder / ".progress.json"


def write_progress(folder: Path, progress: Progress) -> None:
    """Replace the file in one step; it need not survive a power failure."""
    new = progress_file(folder).with_suffix(f".{os.getpid()}-{threading.get_ident()}")
    new.write_text(json.dumps(progress), encoding="utf-8")
    os.replace(new, progress_file(folder))


def read_progress(folder: Path) -> Progress:
    """The progress of the last training in a folder."""
    try:
        return Progress(*json.loads(progress_file(folder).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return Progress()


def run_task(task: Task) -> None:
    """Train in a process of its own; what happens is written to the folder's file."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the service, which ends this process
    if hasattr(os, "nice"):
        os.nice(10)  # requests come first
    written = 0.0

    def report(progress: Progress) -> None:
        nonlocal written
        if progress.state != "running" or time.monotonic() > written + SECONDS:
            written = time.monotonic()
            write_progress(task.folder, progress)

    try:
        # one that looks whether there is a lock has it for a moment
        with locked(_lock_file(task.folder), tries=40) as handle:
            os.ftruncate(handle, 0)  # a process that was killed has left its number
            os.write(handle, str(os.getpid()).encode())
            try:
                train_model(task, report)
            except (RanksieveError, OSError) as error:
                report(Progress("failed", 0.0, str(error)))
            except MemoryError:
                report(Progress("failed", 0.0, "there is not enough memory for training"))
            finally:
                os.ftruncate(handle, 0)
    except BlockingIOError:  # another process trains, and reports
        return


def train_model(task: Task, report: Report) -> Path:
    """Train, measure and save a model under a new name; returns its file."""
    start = time.monotonic()
    task.folder.mkdir(parents=True, exist_ok=True)
    report(Progress("running", 0.0, waiting("computing features", kernels="neighbours")))
    with Index(task.index) as index:
        data = _judged(index, task)
    report(Progress("running", FEATURES_DONE, f"training on {counted(query=data.n_queries)}"))
    parts = split(data, seed=0)
    lists = with_sampled_negatives(parts[0], task.grades)
    params = {"min_docs": max(5, min(50, lists.n_docs // 40)), **task.params}  # few judgements need small leaves
    model: Forest = train(
        lists, valid=with_sampled_negatives(parts[1], task.grades), algo="selgb", metric=METRIC, verbose=False,
        callbacks=[lambda record: report(_progress(record))], **params,
    )  # fmt: skip
    report(Progress("running", TREES_DONE, "measuring"))
    path = _new_file(task.folder)
    info, line = _measured(model, path.stem, parts, task.grades)
    replace(model, info={**model.info, **info}).save(path)
    report(Progress("done", 1.0, f"{line}; {time.monotonic() - start:.0f} s", path.stem))
    return path


def _judged(index: Index, task: Task) -> Dataset:
    """Features of the candidates of all queries with a relevant one."""
    texts = {id: task.texts[id] for id in task.grades if id in task.texts}
    relevant = {id: text for id, text in texts.items() if any(grade > 0 for grade in task.grades[id].values())}
    grades = {id: task.grades[id] for id in relevant}
    encode = task.encode and import_function(task.encode, parameter="encode", signature="a function of texts")
    without = "!dense.*" if index.vectors is not None and not (encode or index.encoder) else ()
    retriever = Retriever(index, task.stage, query_vectors=encode or None)
    useful = np.empty(0, np.int64)
    if relevant:
        data = extract_features(retriever, relevant, judgements=grades, depth=task.depth, select=without)
        useful = np.flatnonzero(np.logical_or.reduceat(data.labels > 0, data.offsets[:-1]))
    if len(useful) < FEWEST_QUERIES:
        raise DataError(
            f"{len(useful)} of {len(texts)} judged queries have a candidate with a grade above 0, but training needs "
            f"{FEWEST_QUERIES}; judge more, or use a larger depth"
        )
    return data.take_queries(useful)


def with_sampled_negatives(data: Dataset, grades: Judgements, seed: int = 0) -> Dataset:
    """The judged documents of every query, and about as many others, drawn at random, as negatives.

    Judged documents are those that the page has shown. With all others as negatives the model would learn that what
    the first stage ranks low is not relevant. Queries without a grade of 0 keep all documents: their judgements list
    the relevant ones only.
    """
    rng, kept = np.random.default_rng(seed), []
    doc_ids = np.empty(data.n_docs, object) if data.lists.doc_ids is None else data.lists.doc_ids
    for q, id in enumerate(data.query_ids):
        rows, mine = np.arange(data.offsets[q], data.offsets[q + 1]), grades.get(str(id), {})
        is_judged = np.array([doc in mine for doc in doc_ids[rows]])
        others = rows[~is_judged]
        if any(grade == 0 for grade in mine.values()):
            others = rng.permutation(others)[: int(is_judged.sum())]
        kept += [rows[is_judged], others]
    return data.take_rows(np.concatenate(kept))


def _progress(record: Record) -> Progress:
    share = record.step / record.n_trees
    return Progress("running", FEATURES_DONE + (TREES_DONE - FEATURES_DONE) * share, f"training: {record}")


def _measured(model: Forest, name: str, parts: list[Dataset], grades: Judgements) -> tuple[dict[str, Any], str]:
    """What is stored about the training, and a line with the metric on the held-out queries."""
    held_out = parts[2]
    scores = {FIRST: held_out.column(FIRST_STAGE), name: list_scores(name, model, held_out, held_out.lists)}
    found = measured({column: _ranked(held_out, values) for column, values in scores.items()}, grades)
    assert found is not None  # every query has a relevant candidate
    test = found.compare(name, FIRST)
    seen = [str(id) for part in parts[:2] for id in part.query_ids]
    info = {
        "judged_queries": {"train": seen, "test": [str(id) for id in held_out.query_ids]},
        "held_out": {
            "metric": METRIC,
            "first_stage": found.mean(FIRST),
            "model": found.mean(name),
            "p_value": test.p_value,
            "n": test.n,
        },
    }
    means = f"{METRIC} {found.mean(name):.4f}, {FIRST} {found.mean(FIRST):.4f}"
    return info, f"{means}, on {counted(query=test.n)} held out, p = {test.p_value:.4f}"


def _ranked(data: Dataset, scores: np.ndarray) -> dict[str, Ranked]:
    """The documents of every query, best first."""
    doc_ids, found = np.asarray(data.lists.doc_ids, dtype=object), {}
    for q, id in enumerate(data.query_ids):
        part = slice(data.offsets[q], data.offsets[q + 1])
        order = np.argsort(-scores[part], kind="stable")
        found[str(id)] = Ranked(doc_ids[part][order], scores[part][order])
    return found


def _new_file(folder: Path) -> Path:
    """A name that no file has."""
    number = 1
    while any(folder.glob(f"trained-{number}.*")):
        number += 1
    return folder / f"trained-{number}.txt"


def is_training(folder: Path) -> bool:
    """Whether a process trains in a folder."""
    try:
        with locked(_lock_file(folder), tries=1) as handle:
            os.ftruncate(handle, 0)  # else `end_training` could end another process that has the same number now
            return False
    except BlockingIOError:
        return True
    except OSError:
        return False


def end_training(folder: Path) -> bool:
    """End the process that trains in a folder, and wait for its end; False where none does."""
    if not is_training(folder):
        return False
    try:
        number = int(_lock_file(folder).read_bytes())
        os.kill(number, signal.SIGTERM)
    except (OSError, ValueError):  # it has just ended
        return False
    end = time.monotonic() + SECONDS_TO_END
    while is_training(folder) and time.monotonic() < end:
        time.sleep(0.05)
    return True


def _lock_file(folder: Path) -> Path:
    """Locked while a process trains; it has the process's number."""
    return folder / ".training.lock"

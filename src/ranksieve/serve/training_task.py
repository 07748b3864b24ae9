"""What a training process does: features, a split by query, SelGB, and a measure on held-out queries."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ranksieve.boosting.callbacks import Record
from ranksieve.data.dataset import Dataset
from ranksieve.data.splits import split
from ranksieve.errors import DataError, RanksieveError
from ranksieve.evaluation.evaluate import evaluate
from ranksieve.forest.forest import Forest
from ranksieve.progress import waiting
from ranksieve.rankers.train import train
from ranksieve.retrieval.feature_names import FIRST_STAGE
from ranksieve.retrieval.first_stage import FirstStage
from ranksieve.retrieval.index import Index
from ranksieve.retrieval.labelling import extract_features
from ranksieve.retrieval.runs import Judgements
from ranksieve.text_formats import counted

if sys.platform != "win32":
    import fcntl

METRIC = "ndcg@10"
FEWEST_QUERIES = 10  # with a relevant candidate: six to train on, two to stop by, two to measure
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


class Progress(NamedTuple):
    """How far training is: running, done or failed; the share that is done, and a line about it."""

    state: str
    done: float
    line: str
    model: str | None = None


Report = Callable[[Progress], None]


def run_task(task: Task, connection: Any) -> None:
    """Train in a process of its own; what happens is sent through the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the service, which ends this process
    if hasattr(os, "nice"):
        os.nice(10)  # requests come first

    def report(progress: Progress) -> None:
        with contextlib.suppress(OSError):
            connection.send(tuple(progress))

    try:
        train_model(task, report)
    except (RanksieveError, OSError) as error:
        report(Progress("failed", 0.0, str(error)))
    except MemoryError:
        report(Progress("failed", 0.0, "there is not enough memory for training"))
    connection.close()


def train_model(task: Task, report: Report) -> Path:
    """Train, measure and save a model under a new name; returns its file."""
    start = time.monotonic()
    task.folder.mkdir(parents=True, exist_ok=True)
    with _only_one(task.folder):
        report(Progress("running", 0.0, waiting("computing features", kernels="neighbours")))
        with Index(task.index) as index:
            data = _judged(index, task)
        report(Progress("running", FEATURES_DONE, f"training on {counted(query=data.n_queries)}"))
        parts = split(data, seed=0)
        model: Forest = train(
            parts[0], valid=parts[1], algo="selgb", metric=METRIC, verbose=False,
            callbacks=[lambda record: report(_progress(record))], **task.params,
        )  # fmt: skip
        report(Progress("running", TREES_DONE, "measuring"))
        path = _new_file(task.folder)
        info, line = _measured(model, path.stem, parts)
        replace(model, info={**model.info, **info}).save(path)
    report(Progress("done", 1.0, f"{line}; {time.monotonic() - start:.0f} s", path.stem))
    return path


def _judged(index: Index, task: Task) -> Dataset:
    """Features of the candidates of all queries with a relevant one."""
    texts = {id: task.texts[id] for id in task.grades if id in task.texts}
    relevant = {id: text for id, text in texts.items() if any(grade > 0 for grade in task.grades[id].values())}
    data = (
        extract_features(index, relevant, judgements=task.grades, depth=task.depth, stage=task.stage)
        if relevant
        else None
    )
    offsets = np.zeros(1, np.int64) if data is None else data.offsets
    useful = [] if data is None else [
        q for q in range(data.n_queries) if (data.labels[offsets[q] : offsets[q + 1]] > 0).any()
    ]  # fmt: skip
    if data is None or len(useful) < FEWEST_QUERIES:
        raise DataError(
            f"{counted(query=len(useful))} of {len(texts)} judged ones have a candidate with a grade above 0; training "
            f"needs {FEWEST_QUERIES}: judge more, or use a larger depth"
        )
    return data.take_queries(useful)


def _progress(record: Record) -> Progress:
    share = record.step / record.n_trees
    return Progress("running", FEATURES_DONE + (TREES_DONE - FEATURES_DONE) * share, f"training: {record}")


def _measured(model: Forest, name: str, parts: list[Dataset]) -> tuple[dict[str, Any], str]:
    """What is stored about the training, and a line with the metric on the held-out queries."""
    held_out = parts[2]
    first = np.asarray(held_out.features[:, held_out.feature_names.index(FIRST_STAGE)], dtype=np.float64)
    found = evaluate({"first stage": first, name: model}, held_out, METRIC)
    test = found.compare(name, "first stage")
    seen = [str(id) for part in parts[:2] for id in part.query_ids]
    info = {
        "judged_queries": {"train": seen, "test": [str(id) for id in held_out.query_ids]},
        "held_out": {
            "metric": METRIC,
            "first_stage": found.mean("first stage"),
            "model": found.mean(name),
            "p_value": test.p_value,
            "n": test.n,
        },
    }
    means = f"{METRIC} {found.mean(name):.4f}, first stage {found.mean('first stage'):.4f}"
    return info, f"{means}, on {counted(query=test.n)} held out, p = {test.p_value:.4f}"


def _new_file(folder: Path) -> Path:
    """A name that no file has."""
    number = 1
    while any(folder.glob(f"trained-{number}.*")):
        number += 1
    return folder / f"trained-{number}.txt"


@contextlib.contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Refuse to train while another process does in the same folder."""
    if sys.platform == "win32":
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise DataError("a model is being trained already; wait until it is done") from error
    finally:
        os.close(handle)

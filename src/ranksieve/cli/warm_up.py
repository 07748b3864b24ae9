"""`ranksieve warm-up`: compile kernels before they are needed, in several processes."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ranksieve.cli.compiling import END, TASKS, compile_listener, compile_tasks, is_done
from ranksieve.cli.console import show_facts
from ranksieve.cli.shared_options import Quiet
from ranksieve.errors import ParameterError, RanksieveError

DOCUMENTS = '{"id": "a", "body": "red wine in a glass"}\n{"id": "b", "body": "white wine"}\n'


def warm_up(
    tasks: Annotated[
        list[str] | None, typer.Argument(metavar="TASK...", help=f"What to compile for: {', '.join(TASKS)}; or all.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Compile kernels ahead of their first use and keep them on disk, for example in a container image.

    Kernels are compiled for the processor of this machine and kept in NUMBA_CACHE_DIR if that is set, else next to the
    package. Those that are there already are not compiled again.
    """
    from ranksieve.text_formats import counted, duration

    for task in tasks or ():
        if task not in TASKS:
            raise ParameterError(f"unknown task {task!r}; expected some of {', '.join(TASKS)}")
    n_kernels, seconds = compile_tasks(tasks or TASKS, quiet=quiet)
    left = [task for task in tasks or TASKS if not is_done(task)]
    if left:
        raise RanksieveError(
            f"the kernels of {', '.join(left)} were not compiled; "
            f"echo {left[0]} | python -m ranksieve.cli.warm_up shows why"
        )
    show_facts([("compiled", f"{counted(kernel=n_kernels)} in {duration(seconds)}")])


def _data(n_queries: int = 60) -> Any:
    from ranksieve.data.generators import cubic

    return cubic(n_queries)


def _in_bins(data: Any) -> Any:
    """A data set in two bins for each feature, made without kernels: those of bins belong to another task."""
    import numpy as np

    from ranksieve.data.binned import Binned, MemorySink
    from ranksieve.data.binning import Binning
    from ranksieve.kernels.histograms import LANES

    n_features = data.n_features
    bins = MemorySink(data.n_docs, -(-n_features // LANES) * LANES).bins
    bins[:, :n_features] = data.features > 0
    thresholds, features = np.zeros(n_features, np.float32), np.arange(n_features)
    return Binned(bins, data.lists, Binning(thresholds, np.arange(n_features + 1), features), data.info)


def _stump(feature: int = 0) -> Any:
    """A tree of one split."""
    import numpy as np

    from ranksieve.boosting.tree import Tree

    splits, one = np.array([[feature, 0, 1, -1, -2]], np.int32), np.ones(1)
    return Tree(splits, one, np.ones(1, np.int64), np.array([0.1, 0.2]), np.ones(2, np.int64), np.ones(2))


def _compile_growing() -> None:
    """Growing trees, on many rows of which few have gradients, and adding them to scores."""
    import numpy as np

    from ranksieve.boosting.grower import Grower
    from ranksieve.boosting.scores import Scores
    from ranksieve.boosting.training_rows import TreeTarget
    from ranksieve.data.dataset import Dataset
    from ranksieve.kernels.rounding import MANY_ROWS
    from ranksieve.params import Params

    rows, params = np.arange(MANY_ROWS, dtype=np.float32), Params(leaves=4, gain="newton")
    data = _in_bins(Dataset.from_arrays(rows[:, None] % 2, np.zeros(MANY_ROWS), np.zeros(MANY_ROWS)))
    grad = np.where(rows < 90, rows % 5 - 2.0, 0.0).astype(np.float64)
    target = TreeTarget(None, grad, np.abs(grad))
    tree, leaves = Grower(data, params, threads=1).grow(target, np.random.default_rng(0))
    assert leaves is not None
    Scores(data).add(tree, leaves)


def _compile_scores() -> None:
    """Scores in training: of all documents, of some, and the best of each query."""
    import numpy as np

    from ranksieve.boosting.callbacks import ValidationSet
    from ranksieve.boosting.grower import Leaves
    from ranksieve.boosting.scores import Scores
    from ranksieve.evaluation.metrics import parse_metric

    data = _in_bins(_data())
    valid = ValidationSet("valid", data, Scores(data))
    valid.per_query([_stump()], parse_metric("ndcg@10"))
    valid.scores.add(_stump())
    valid.scores.at(np.arange(9, dtype=np.int32))
    valid.scores.add(_stump(), Leaves(np.arange(9, dtype=np.int32), np.array([[0, 5], [5, 9]])))
    valid.scores.all()


def _compile_gradients() -> None:
    """The bins of data, gradients and metrics."""
    import numpy as np

    from ranksieve.boosting.scores import Scores
    from ranksieve.boosting.training_rows import TrainingLists
    from ranksieve.data.binned import bin_data
    from ranksieve.evaluation.metrics import parse_metric
    from ranksieve.params import Params

    data, metric = bin_data(_data(2)), parse_metric("ndcg@10")
    lists = TrainingLists(data.lists, Params(algo="lambdamart"), metric)
    lists.gradients(lists.all_rows, Scores(data), 0, np.random.default_rng(0))
    metric.per_query(data.lists.labels, np.zeros(data.lists.n_docs), data.lists.offsets)


def _compile_scoring() -> None:
    """Scores of many documents, and of one."""
    data = _data()
    forest = _forest(_in_bins(data))
    forest.predict(data.features)
    forest.predict(data.features[:1])


def _forest(data: Any) -> Any:
    from ranksieve.boosting.tree import to_forest

    return to_forest([_stump(feature) for feature in range(8)], data.binning, data.feature_names, {})


def _compile_pruning() -> None:
    """Pruning and re-weighting."""
    from ranksieve.pruning.prune import prune

    data = _in_bins(_data())
    prune(_forest(data), data, judge_on="train", rate=0.5)


def _compile_reading() -> None:
    """LETOR text."""
    from ranksieve.data.letor_lines import SERIAL_BYTES
    from ranksieve.data.read import read

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "lists.txt")
        lines = [f"{number % 2} qid:{number // 8} 1:0.5 2:1e-3 # {number}\n" for number in range(SERIAL_BYTES // 16)]
        path.write_text("".join(lines), encoding="utf-8")
        read(path)
        path.write_text("".join(lines[:8]), encoding="utf-8")  # short files have kernels of their own
        read(path)


def _compile_searching() -> None:
    """An index, first-stage retrieval, and features of words and positions."""
    from ranksieve.cli.demo_search import compile_retrieval

    compile_retrieval()


def _compile_features() -> None:
    """All features."""
    from ranksieve.cli.app import app

    with tempfile.TemporaryDirectory() as folder:
        files = {"documents.jsonl": DOCUMENTS, "queries.tsv": "q\tred wine\n", "qrels.txt": "q 0 a 1\n"}
        for name, text in files.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        documents, queries, qrels, index, lists = (
            str(Path(folder, name)) for name in (*files, "index", "lists.parquet")
        )
        with contextlib.redirect_stdout(io.StringIO()):  # it is read as the names of kernels
            app(["index", documents, "--out", index], standalone_mode=False)
            app(["features", index, queries, "--qrels", qrels, "--out", lists], standalone_mode=False)


FUNCTIONS: dict[str, Callable[[], None]] = {
    "growing": _compile_growing,
    "scores": _compile_scores,
    "gradients": _compile_gradients,
    "scoring": _compile_scoring,
    "pruning": _compile_pruning,
    "reading": _compile_reading,
    "searching": _compile_searching,
    "features": _compile_features,
}


def _report_kernels() -> None:
    """Print a line for each kernel that is compiled; the process that counts them reads it."""
    from numba.core import event

    event.register("numba:compile", compile_listener(lambda name: print(name, file=sys.__stdout__, flush=True)))


if __name__ == "__main__":
    gc.disable()  # the compiler makes many objects; looking through them takes time, and a process ends soon
    _report_kernels()
    for line in sys.stdin:
        FUNCTIONS[line.strip()]()
        print(END, file=sys.__stdout__, flush=True)
    os._exit(0)  # to free what the compiler has made takes seconds

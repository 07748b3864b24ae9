"""Compiling kernels in other processes before a command begins, with a counter."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue

from ranksieve.progress import ProgressDisplay

# Kernels of a task, by their files: the task is done where these are compiled. Long tasks come first.
TRAINING = ("growing", "scores", "gradients")
TASKS = {
    "growing": [("growing", "grow_tree")],
    "scores": [("traverse_binned", "catch_up_rows")],
    "gradients": [("lambdas", "all_lambdas")],
    "pruning": [("leave_one_out", "values_along")],
    "scoring": [("quantize", "add_raw"), ("traverse_raw", "walk_scores")],
    "searching": [("pairs", "describe_pairs")],
    "features": [("neighbours", "describe_neighbours")],
    "reading": [("letor", "parse_lines")],
}


def is_done(task: str) -> bool:
    """Whether the kernels of a task are on disk."""
    from ranksieve.kernels.numba_cache import is_compiled

    return all(is_compiled(*kernel) for kernel in TASKS[task])


def compile_tasks(tasks: Iterable[str], *, quiet: bool = False) -> tuple[int, float]:
    """Compile the kernels of some tasks, as many at a time as there are cores, and show how many are done.

    Returns the number of kernels, 0 where all were on disk, and the seconds it took. A process that fails changes
    nothing: its kernels are compiled when they are first used.
    """
    begin, n_kernels = time.monotonic(), 0
    left = [task for task in TASKS if task in tasks and not is_done(task)]
    if not left:
        return 0, 0.0
    compiled: SimpleQueue[str] = SimpleQueue()
    running: set[subprocess.Popen[str]] = set()
    with (
        ProgressDisplay("compiling kernels", doing="first use only", kernels="", quiet=quiet) as progress,
        ThreadPoolExecutor((os.cpu_count() or 1) + 1) as pool,  # one may wait for a kernel that another compiles
    ):
        tasks_done = [pool.submit(_compile, task, compiled, running) for task in left]
        try:
            while not (all(one.done() for one in tasks_done) and compiled.empty()):
                try:
                    compiled.get(timeout=0.2)
                except Empty:
                    continue
                n_kernels += 1
                progress.update(n_kernels, unit="kernel")
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(running):
                process.kill()
    return n_kernels, time.monotonic() - begin


def start_task(task: str) -> subprocess.Popen[str] | None:
    """Compile the kernels of a task while other work goes on; None where they are on disk."""
    if is_done(task):
        return None
    return subprocess.Popen(_command(task), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)


def _command(task: str) -> list[str]:
    return [sys.executable, "-m", "ranksieve.cli.warm_up", task]


def _compile(task: str, compiled: SimpleQueue[str], running: set[subprocess.Popen[str]]) -> None:
    """Run the process of a task; it writes a line for each kernel."""
    with subprocess.Popen(_command(task), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        running.add(process)
        assert process.stdout is not None
        for line in process.stdout:
            compiled.put(line)
    running.discard(process)

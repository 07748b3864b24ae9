"""Compiling kernels with a counter: in other processes before a command begins, or while it runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any

from ranksieve.progress import ProgressDisplay
from ranksieve.text_formats import counted

TITLE = "compiling kernels"
COMMAND = [sys.executable, "-m", "ranksieve.cli.warm_up"]  # reads tasks; writes a line for each kernel, then END
END = "."
# Kernels of a task, by their files: the task is done where these are compiled. Long tasks come first.
TRAINING = ("growing", "scores", "gradients")
TASKS = {
    "growing": [("growing", "grow_tree")],
    "scores": [("traverse_binned", "score_rows")],
    "gradients": [("lambdas", "all_lambdas")],
    "pruning": [("leave_one_out", "values_along")],
    "scoring": [("quantize", "add_raw"), ("traverse_raw", "add_scores")],
    "searching": [("term_pairs", "describe_pairs")],
    "features": [("neighbours", "describe_neighbours")],
    "reading": [("letor", "parse_lines")],
}


def is_done(task: str) -> bool:
    """Whether the kernels of a task are on disk."""
    from ranksieve.kernels.numba_cache import is_compiled

    return all(is_compiled(*kernel) for kernel in TASKS[task])


def compile_tasks(tasks: Iterable[str], *, quiet: bool = False) -> tuple[int, float]:
    """Compile the kernels of some tasks in a process per core, and show how many are done.

    Returns the number of kernels, 0 where all were on disk, and the seconds it took. A task that fails changes
    nothing: its kernels are compiled when they are first used.
    """
    begin, n_kernels, n_done = time.monotonic(), 0, 0
    left: deque[str] = deque(task for task in TASKS if task in tasks and not is_done(task))
    n_tasks, n_workers = len(left), min(len(left), os.cpu_count() or 1)
    if not left:
        return 0, 0.0
    compiled: SimpleQueue[str] = SimpleQueue()
    running: set[subprocess.Popen[str]] = set()
    with (
        ProgressDisplay(TITLE, doing="first use only", kernels="", quiet=quiet) as progress,
        ThreadPoolExecutor(n_workers) as pool,
    ):
        workers = [pool.submit(_compile, left, compiled, running) for _ in range(n_workers)]
        try:
            while not (all(worker.done() for worker in workers) and compiled.empty()):
                try:
                    is_kernel = compiled.get(timeout=0.2) != END
                except Empty:
                    continue
                n_kernels, n_done = n_kernels + is_kernel, n_done + (not is_kernel)
                # how many kernels there will be is not known: some are of several tasks, or on disk already
                progress.update(n_done, n_tasks, unit="task", details=[counted(kernel=n_kernels)], estimate="")
        finally:
            left.clear()
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(running):
                process.kill()
    return n_kernels, time.monotonic() - begin


@contextmanager
def counting_kernels(display: ProgressDisplay) -> Iterator[None]:
    """Show in a display how many kernels are compiled in this process.

    This is for commands that compile what they need when they need it. Their own updates must have a title.
    """
    from numba.core import event

    n_kernels = 0

    def count(name: str) -> None:
        nonlocal n_kernels
        n_kernels += 1
        display.update(n_kernels, unit="kernel", title=TITLE)

    with event.install_listener("numba:compile", compile_listener(count)):
        yield


def compile_listener(tell: Callable[[str], None]) -> Any:
    """A listener of Numba that tells the name of each kernel that was compiled."""
    from numba.core import event

    class CompileListener(event.Listener):
        def on_start(self, event: Any) -> None: ...

        def on_end(self, event: Any) -> None:
            kernel = event.data["dispatcher"].py_func
            if kernel.__module__.startswith("ranksieve."):
                tell(kernel.__name__)

    return CompileListener()


def start_task(task: str) -> subprocess.Popen[str] | None:
    """Compile the kernels of a task while other work goes on; None where they are on disk."""
    if is_done(task):
        return None
    process = subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdin is not None
    with suppress(OSError), process.stdin:
        process.stdin.write(task + "\n")
    return process


def _compile(left: deque[str], compiled: SimpleQueue[str], running: set[subprocess.Popen[str]]) -> None:
    """Let one process compile tasks in turn, which saves imports; where it fails, another one goes on."""
    while left:
        process = subprocess.Popen(
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        running.add(process)
        with suppress(OSError), process:  # closing the input of a process that has ended may fail
            _compile_in_turn(left, compiled, process)
        running.discard(process)


def _compile_in_turn(left: deque[str], compiled: SimpleQueue[str], process: subprocess.Popen[str]) -> None:
    """Give tasks to a process until none is left, or one of them ends it."""
    assert process.stdin is not None and process.stdout is not None
    with suppress(IndexError):  # another process has taken the last task
        while left:
            task = left.popleft()
            with suppress(OSError):  # the process has ended; then its output has ended, too
                process.stdin.write(task + "\n")
                process.stdin.flush()
            for line in process.stdout:
                compiled.put(line.strip())
                if line.strip() == END:
                    break
            else:
                compiled.put(END)  # the task failed, and is not tried again
                return

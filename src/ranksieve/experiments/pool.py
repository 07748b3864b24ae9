"""Cells on worker processes: one cell a process at a time, in any order that respects who samples with whose model."""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from ranksieve.errors import RanksieveError
from ranksieve.files import atomic_path

Work = Callable[..., Any]  # work(task, out, threads=…, alone=…)


@dataclass(frozen=True)
class Task:
    """Something to do, under a name, after others are done."""

    key: str
    payload: Any
    after: tuple[str, ...] = ()


class WorkError(RanksieveError):
    """A task that failed; what was finished before it is kept."""


def run_tasks(
    tasks: Sequence[Task], work: Work, out: Path, *, jobs: int, done: Iterable[str] = (), tell: Callable[[Task], None]
) -> None:
    """Do all tasks; `tell` is called after each. With one job they run here, on all cores; else on processes, one
    thread each. A worker whose parent is gone finishes its task and ends.
    """
    finished = set(done)
    waiting = [task for task in tasks if task.key not in finished]
    if jobs == 1:
        for task in waiting:
            work(task.payload, out, threads=0, alone=True)
            tell(task)
        return
    pool = _Pool(work, out, min(jobs, len(waiting)))
    try:
        running = 0
        while waiting or running:
            ready = [task for task in waiting if finished.issuperset(task.after)]
            for task in ready[: pool.n_idle]:
                pool.start(task)
                waiting.remove(task)
                running += 1
            task = pool.next_done()
            running -= 1
            finished.add(task.key)
            tell(task)
    finally:
        pool.stop()


@dataclass(frozen=True)
class _Bug:
    """An exception that no user's input should cause."""

    summary: str
    trace: str


class _Pool:
    def __init__(self, work: Work, out: Path, size: int) -> None:
        context = multiprocessing.get_context("spawn")  # threads of compiled code do not survive a fork
        self._out = out
        self._idle: list[Connection] = []
        self._busy: dict[Connection, Task] = {}
        self._processes: dict[Connection, Any] = {}
        for _ in range(size):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, work, out), daemon=True)
            process.start()
            theirs.close()  # so that the worker sees the end when we are gone
            self._processes[ours] = process
            self._idle.append(ours)

    @property
    def n_idle(self) -> int:
        return len(self._idle)

    def start(self, task: Task) -> None:
        line = self._idle.pop()
        line.send(task.payload)
        self._busy[line] = task

    def next_done(self) -> Task:
        line = wait(list(self._busy))[0]
        assert isinstance(line, Connection)
        task = self._busy.pop(line)
        try:
            error = line.recv()
        except EOFError:
            process = self._processes[line]
            process.join()
            raise WorkError(
                f"{task.key}: the worker process ended with code {process.exitcode}; was memory short? Try fewer jobs "
                "(--jobs 1). What is finished is kept: run the same command again to go on"
            ) from None
        if isinstance(error, _Bug):
            place = self._out / f"{task.key}.error.txt"
            with atomic_path(place) as temporary:
                temporary.write_text(error.trace, encoding="utf-8")
            raise WorkError(
                f"{task.key}: failed with {error.summary}, which is not expected; its trace is in {place}. What is "
                "finished is kept: run the same command again to go on"
            )
        if error is not None:
            raise WorkError(f"{task.key}: {error}")
        self._idle.append(line)
        return task

    def stop(self) -> None:
        for line, process in self._processes.items():
            if line in self._busy:
                process.terminate()
            line.close()
        for process in self._processes.values():
            process.join()


def _serve(line: Connection, work: Work, out: Path) -> None:
    """A worker: tasks in, what went wrong (or None) out; ends with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    while True:
        try:
            payload = line.recv()
        except (EOFError, OSError):
            return
        try:
            work(payload, out, threads=1, alone=False)
            error: str | _Bug | None = None
        except RanksieveError as problem:
            error = str(problem)
        except Exception as problem:
            error = _Bug("".join(traceback.format_exception_only(problem)).strip(), traceback.format_exc())
        try:
            line.send(error)
        except OSError:
            return

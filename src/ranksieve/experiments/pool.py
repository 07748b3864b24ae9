"""Jobs on worker processes: each process runs one job at a time, and a job starts after the jobs it needs."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ranksieve.errors import ParamName, RanksieveError, param
from ranksieve.files import atomic_path

Work = Callable[..., Any]  # work(item, out, threads=…, alone=…)
AGAIN = "Finished cells are kept: run the same command again to continue"


@dataclass(frozen=True)
class Job:
    """One piece of work, which runs after the jobs with the keys `after`."""

    key: str
    item: Any
    after: tuple[str, ...] = ()


class JobError(RanksieveError):
    """A job that failed; what was finished before it is kept."""


@dataclass(frozen=True)
class _Failure:
    """What went wrong in a worker; `trace` is set for errors that no input should cause."""

    message: tuple[str | ParamName, ...]
    trace: str = ""


def run_jobs(
    jobs: Sequence[Job],
    work: Work,
    out: Path,
    *,
    n_workers: int,
    done: Iterable[str] = (),
    on_done: Callable[[Job], None] = lambda job: None,
) -> None:
    """Run all jobs that are not done; `on_done` is called after each.

    One worker is this process, which uses all cores; several are processes of one thread each. They end with this
    process, also when it is killed, or when a job fails.
    """
    finished = set(done)
    waiting = [job for job in jobs if job.key not in finished]
    if n_workers == 1:
        for job in waiting:
            work(job.item, out, threads=0, alone=True)
            on_done(job)
        return
    if not waiting:
        return
    context = multiprocessing.get_context("spawn")  # threads of compiled code do not survive a fork
    ended, alive = context.Pipe(duplex=False)  # closing `alive`, or our end, ends the workers
    pool = ProcessPoolExecutor(min(n_workers, len(waiting)), context, _start_worker, (ended,))
    running: dict[Future[_Failure | None], Job] = {}
    try:
        while waiting or running:
            for job in [job for job in waiting if finished.issuperset(job.after)]:
                running[pool.submit(_run_job, work, job.item, out)] = job
                waiting.remove(job)
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                _check(future, running, out)
                job = running.pop(future)
                finished.add(job.key)
                on_done(job)
    except BaseException:
        alive.close()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        alive.close()
        ended.close()


def _check(future: Future[_Failure | None], running: dict[Future[_Failure | None], Job], out: Path) -> None:
    """Raise what went wrong with a job."""
    try:
        failure = future.result()
    except BrokenProcessPool:
        names = ", ".join(job.key for job in running.values())
        raise JobError(
            f"a worker process ended unexpectedly (running: {names}); if memory is short, use ",
            param("jobs", 1),
            f". {AGAIN}",
        ) from None
    if failure is None:
        return
    key = running[future].key
    if not failure.trace:
        raise JobError(f"{key}: ", *failure.message)
    place = out / f"{key}.error.txt"
    with atomic_path(place) as temporary:
        temporary.write_text(failure.trace, encoding="utf-8")
    raise JobError(f"{key}: failed with ", *failure.message, f", which is a bug; its traceback is in {place}. {AGAIN}")


def _start_worker(ended: Connection) -> None:
    """Leave Ctrl-C to the parent process, and end when it does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def wait_for_the_end() -> None:
        ended.poll(None)
        os._exit(1)

    threading.Thread(target=wait_for_the_end, daemon=True).start()


def _run_job(work: Work, item: Any, out: Path) -> _Failure | None:
    try:
        work(item, out, threads=1, alone=False)
    except RanksieveError as error:
        return _Failure(error.parts)
    except Exception as error:
        return _Failure(("".join(traceback.format_exception_only(error)).strip(),), traceback.format_exc())
    return None

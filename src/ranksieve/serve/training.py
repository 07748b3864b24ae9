"""`Trainer`: one training process at a time, beside the service."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from ranksieve.serve.problems import Refused
from ranksieve.serve.training_task import Progress, Task, run_task

IDLE = Progress("idle", 0.0, "")


class Trainer:
    """Starts and follows training; `when_done` is called after a model was saved."""

    def __init__(self, when_done: Callable[[], None]):
        self._when_done = when_done
        self._lock = threading.Lock()
        self._process: BaseProcess | None = None
        self._progress = IDLE

    @property
    def progress(self) -> Progress:
        return self._progress

    def start(self, task: Task) -> None:
        """Train in the background; refused while another model is being trained."""
        with self._lock:
            if self._progress.state == "running":
                raise Refused(409, "a model is being trained already; wait until it is done")
            context = multiprocessing.get_context("spawn")
            ours, theirs = context.Pipe(duplex=False)
            self._progress = Progress("running", 0.0, "starting")
            self._process = context.Process(target=run_task, args=(task, theirs), daemon=True)
            self._process.start()
            theirs.close()
            threading.Thread(target=self._follow, args=(self._process, ours), daemon=True).start()

    def _follow(self, process: BaseProcess, connection: Connection) -> None:
        while True:
            try:
                received: tuple[Any, ...] = connection.recv()
            except (EOFError, OSError):
                break
            progress = Progress(*received)
            if progress.state == "done":
                self._when_done()
            self._progress = progress
        process.join()
        if self._progress.state == "running":
            self._progress = Progress("failed", 0.0, f"training ended with exit code {process.exitcode}")
        connection.close()

    def stop(self) -> None:
        """End training, if any; nothing is left of it."""
        with self._lock:
            if self._process is not None and self._process.is_alive():
                self._progress = Progress("failed", 0.0, "training was stopped")
                self._process.terminate()
                self._process.join(10)

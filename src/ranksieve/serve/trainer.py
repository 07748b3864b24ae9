"""`Trainer`: one training process at a time, beside the service."""

from __future__ import annotations

import multiprocessing
import threading
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

from ranksieve.serve.problems import Refused
from ranksieve.serve.training_task import (
    Progress,
    Task,
    end_training,
    is_training,
    progress_file,
    read_progress,
    run_task,
    write_progress,
)

SECONDS_TO_START = 60.0  # in which a training process takes its lock


class Trainer:
    """Starts and follows training. Its progress is in a file, which all processes of the service read."""

    def __init__(self, folder: Path | None):
        self._folder = folder
        self._lock = threading.Lock()
        self._process: BaseProcess | None = None

    @property
    def progress(self) -> Progress:
        """How far the last training is."""
        if self._folder is None:
            return Progress()
        found = read_progress(self._folder)
        is_alive = self._process is not None and self._process.is_alive()
        if found.state == "running" and not is_alive and not is_training(self._folder):
            has_ended = self._process is not None or time.time() - _changed(self._folder) > SECONDS_TO_START
            found = read_progress(self._folder)  # it may have ended in between
            if found.state == "running" and has_ended:
                return Progress("failed", 0.0, "training ended without a model; the log has the reason")
        return found

    def start(self, task: Task) -> None:
        """Train in the background; refused while another model is being trained."""
        with self._lock:
            if self.progress.state == "running":
                raise Refused(409, "a model is being trained already; wait until it is done")
            task.folder.mkdir(parents=True, exist_ok=True)
            is_training(task.folder)  # removes the number of a process that was killed
            write_progress(task.folder, Progress("running", 0.0, "starting"))
            context = multiprocessing.get_context("spawn")
            self._process = context.Process(target=run_task, args=(task,), daemon=True)
            self._process.start()

    def stop(self) -> None:
        """End training, whichever process of the service has started it; nothing is left of it."""
        if not self.close() and self._folder is not None and end_training(self._folder):
            self._write_stopped()

    def close(self) -> bool:
        """End training that this process has started, and say whether there was any."""
        with self._lock:
            if self._process is None or not self._process.is_alive():
                return False
            self._process.terminate()
            self._process.join(10)
            self._write_stopped()
            return True

    def _write_stopped(self) -> None:
        if self._folder is not None and read_progress(self._folder).state == "running":
            write_progress(self._folder, Progress("failed", 0.0, "training was stopped"))


def _changed(folder: Path) -> float:
    """When the progress was written."""
    try:
        return progress_file(folder).stat().st_mtime
    except OSError:
        return 0.0

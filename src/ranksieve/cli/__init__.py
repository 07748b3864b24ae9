"""The command line `ranksieve`."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from types import FrameType

INTERRUPTED = "interrupted; no incomplete file is left"
LONGEST_IMPORT = 5.0  # seconds; a file of the user may go on for longer
SECONDS_BETWEEN = 0.05


def main() -> None:
    """Entry point of the installed command."""
    # Arrow's own allocator keeps freed memory, 20% of what training needs; it is chosen when Arrow is loaded.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    can_interrupt = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not so in the background
    try:
        if can_interrupt:
            signal.signal(signal.SIGINT, Interrupt())
        from ranksieve.cli.app import app

        for name in ("SIGTERM", "SIGHUP"):  # temporary files are removed, as after Ctrl-C
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, lambda number, _: sys.exit(128 + number))
        app()
    except KeyboardInterrupt:  # before a command began
        sys.stderr.write(f"error: {INTERRUPTED}\n")
        sys.exit(130)
    finally:
        if can_interrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Python ends, which takes a while


class Interrupt:
    """What Ctrl-C does: `KeyboardInterrupt`, but not within an import, where an exception can become another one."""

    def __init__(self) -> None:
        self._since: float | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        self._since = self._since or now
        if _is_importing(frame) and now - self._since < LONGEST_IMPORT:
            again = threading.Timer(SECONDS_BETWEEN, os.kill, (os.getpid(), number))
            again.daemon = True
            again.start()
            return
        self._since = None
        raise KeyboardInterrupt


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None

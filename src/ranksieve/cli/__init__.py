"""The command line `ranksieve`."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from types import FrameType
from typing import Any

INTERRUPTED = "interrupted; no incomplete file is left"
LONGEST_IMPORT = 5.0  # seconds; a file of the user may go on for longer
SECONDS_BETWEEN = 0.05


def main() -> None:
    """Entry point of the installed command; signals are handled as before when it ends and the process goes on."""
    # Arrow's own allocator keeps freed memory, 20% of what training needs; it is chosen when Arrow is loaded.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    before = {}
    report_unraisable = sys.unraisablehook
    try:
        if _handles(signal.SIGINT, signal.default_int_handler):  # not so in the background
            before[signal.SIGINT] = signal.signal(signal.SIGINT, Interrupt())
            sys.unraisablehook = _interrupt_again
        from ranksieve.cli.app import app

        for name in ("SIGTERM", "SIGHUP"):  # temporary files are removed, as after Ctrl-C
            number = getattr(signal, name, None)
            if number is not None and _handles(number, signal.SIG_DFL):
                before[number] = signal.signal(number, lambda number, _: sys.exit(128 + number))
        app()
    except KeyboardInterrupt:  # before a command began
        sys.stderr.write(f"error: {INTERRUPTED}\n")
        sys.exit(130)
    finally:
        sys.unraisablehook = report_unraisable
        for number, handler in before.items():
            signal.signal(number, handler)
        if signal.SIGINT in before:
            atexit.unregister(_ignore_interrupts)
            atexit.register(_ignore_interrupts)


def _handles(number: int, handler: Any) -> bool:
    """Whether a signal has this handler, and another one can be set."""
    return threading.current_thread() is threading.main_thread() and signal.getsignal(number) is handler


def _interrupt_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Send Ctrl-C again where it was raised in a callback or a destructor, which cannot pass exceptions on."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        _send_later(signal.SIGINT)
    else:
        sys.__unraisablehook__(unraisable)


def _ignore_interrupts() -> None:
    """Python ends, which takes a while."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class Interrupt:
    """What Ctrl-C does: `KeyboardInterrupt`, but not within an import, where an exception can become another one."""

    def __init__(self) -> None:
        self._since: float | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        self._since = self._since or now
        if _is_importing(frame) and now - self._since < LONGEST_IMPORT:
            _send_later(number)
            return
        self._since = None
        raise KeyboardInterrupt


def _send_later(number: int) -> None:
    """Send a signal to this process in a moment."""
    again = threading.Timer(SECONDS_BETWEEN, _send, (number,))
    again.daemon = True
    again.start()


def _send(number: int) -> None:
    """Send a signal to this process."""
    if os.name == "nt":  # where os.kill would end the process
        signal.raise_signal(number)
    else:  # it also wakes up the main thread
        os.kill(os.getpid(), number)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None

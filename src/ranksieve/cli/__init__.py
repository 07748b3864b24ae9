"""The command line `ranksieve`."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

INTERRUPTED = "interrupted; no incomplete file is left"
LONGEST_IMPORT = 5.0  # seconds; a file of the user may go on for longer
SECONDS_BETWEEN = 0.05


def main() -> None:
    """Entry point of the installed command; signals are handled as before when it ends and the process goes on."""
    # Arrow's own allocator keeps freed memory, 20% of what training needs; it is chosen when Arrow is loaded.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    before = {}
    signals = Signals(sys.unraisablehook)
    try:
        if _handles(signal.SIGINT, signal.default_int_handler):  # not so in the background
            before[signal.SIGINT] = signal.signal(signal.SIGINT, signals.interrupt)
        sys.unraisablehook = signals.send_again
        from ranksieve.cli.app import app

        for name in ("SIGTERM", "SIGHUP"):  # temporary files are removed, as after Ctrl-C
            number = getattr(signal, name, None)
            if number is not None and _handles(number, signal.SIG_DFL):
                before[number] = signal.signal(number, signals.end)
        app()
    except KeyboardInterrupt:  # before a command began
        sys.stderr.write(f"error: {INTERRUPTED}\n")
        sys.exit(130)
    finally:
        signals.stop_sending()
        sys.unraisablehook = signals.report_unraisable
        for number, handler in before.items():
            signal.signal(number, handler)
        if signal.SIGINT in before:
            atexit.unregister(_ignore_interrupts)
            atexit.register(_ignore_interrupts)


def _handles(number: int, handler: Any) -> bool:
    """Whether a signal has this handler, and another one can be set."""
    return threading.current_thread() is threading.main_thread() and signal.getsignal(number) is handler


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C while Python shuts down, which takes a while."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class Signals:
    """Turns Ctrl-C and requests to end into exceptions that are not lost.

    During an import Python may replace the exception, so Ctrl-C waits until the import ends. A callback or a destructor
    cannot pass exceptions on: the signal is sent again.
    """

    def __init__(self, report_unraisable: Callable[[sys.UnraisableHookArgs], Any]) -> None:
        self.report_unraisable = report_unraisable
        self._since: float | None = None
        self._sending: object | None = None  # stands for the thread that sends a signal again; no lock, as handlers ask
        self._last = signal.SIGINT

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """The handler of Ctrl-C."""
        now = time.monotonic()
        self._since = self._since or now
        if _is_importing(frame) and now - self._since < LONGEST_IMPORT:
            self._last = signal.Signals(number)
            self._send_until_raised()
            return
        self._since = None
        self._raise(number, frame, KeyboardInterrupt())

    def end(self, number: int, frame: FrameType | None) -> None:
        """The handler of requests to end."""
        self._raise(number, frame, SystemExit(128 + number))

    def send_again(self, unraisable: sys.UnraisableHookArgs) -> None:
        """The hook for exceptions that cannot be passed on."""
        if issubclass(unraisable.exc_type, (KeyboardInterrupt, SystemExit)):
            self._send_until_raised()
        else:
            self.report_unraisable(unraisable)

    def stop_sending(self) -> None:
        """Send no signal any more."""
        self._sending = None

    def _raise(self, number: int, frame: FrameType | None, error: BaseException) -> None:
        """Raise an exception, unless it would be lost in the hook: then send the signal again, to raise it later."""
        self._last = signal.Signals(number)
        if _runs(frame, self.send_again.__code__):
            self._send_until_raised()
            return
        self.stop_sending()
        raise error

    def _send_until_raised(self) -> None:
        """Send the last signal to this process, again and again, until its handler raises."""
        if self._sending is None:
            self._sending = object()
            threading.Thread(target=self._send, args=(self._sending,), daemon=True).start()

    def _send(self, thread: object) -> None:
        time.sleep(SECONDS_BETWEEN)
        while self._sending is thread:
            _send(self._last)
            time.sleep(SECONDS_BETWEEN)


def _send(number: int) -> None:
    """Send a signal to this process."""
    if os.name == "nt":  # where os.kill would end the process
        signal.raise_signal(number)
    else:  # it also wakes up the main thread
        os.kill(os.getpid(), number)


def _is_importing(frame: FrameType | None) -> bool:
    return any(one.f_code.co_filename.startswith("<frozen importlib") for one in _callers(frame))


def _runs(frame: FrameType | None, code: CodeType) -> bool:
    return any(one.f_code is code for one in _callers(frame))


def _callers(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back

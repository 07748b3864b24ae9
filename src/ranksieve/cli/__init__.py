"""The command line `ranksieve`."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Entry point of the installed command."""
    can_interrupt = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not so in the background
    if can_interrupt:
        signal.signal(signal.SIGINT, _exit_at_once)
    # Arrow's own allocator keeps freed memory, 20% of what training needs; it is chosen when Arrow is loaded.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    from ranksieve.cli.app import app

    if can_interrupt:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # raises KeyboardInterrupt, which `app` reports
    for name in ("SIGTERM", "SIGHUP"):  # temporary files are removed, as after Ctrl-C
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    app()


def _exit_at_once(*_: object) -> None:
    """What Ctrl-C does while modules are imported: an exception could get lost there, and nothing is written yet."""
    sys.stderr.write("error: interrupted; no incomplete file is left\n")
    sys.stderr.flush()
    os._exit(130)

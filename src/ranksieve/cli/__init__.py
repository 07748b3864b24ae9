"""The command line `ranksieve`."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Entry point of the installed command."""
    from ranksieve.cli.app import app

    for name in ("SIGTERM", "SIGHUP"):  # temporary files are removed, as after Ctrl-C
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    app()

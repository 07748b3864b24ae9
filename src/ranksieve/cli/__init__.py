"""The command line `ranksieve`."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Entry point of the installed command."""
    # Arrow's own allocator keeps freed memory, 20% of what training needs; it is chosen when Arrow is loaded.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    from ranksieve.cli.app import app

    for name in ("SIGTERM", "SIGHUP"):  # temporary files are removed, as after Ctrl-C
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    app()

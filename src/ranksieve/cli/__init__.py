"""The command line `ranksieve`."""

from __future__ import annotations


def main() -> None:
    """Entry point of the installed command."""
    from ranksieve.cli.app import app

    app()

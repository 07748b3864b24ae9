"""Where in a TOML file a key stands, so that an error can name the line; the parser itself does not tell."""

from __future__ import annotations

import re

Path = tuple[str | int, ...]

HEADER = re.compile(r"\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(#.*)?$")
KEY = re.compile(r"""\s*([\w-]+|"[^"]*"|'[^']*')(\s*\.\s*[\w-]+)*\s*=""")
PART = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


def key_lines(text: str) -> dict[Path, int]:
    """Line numbers, from 1, of tables and keys: `("runs", 0)` is the first `[[runs]]`, `("runs", 0, "algo")` its key.

    Keys inside inline tables and arrays have none of their own.

    Examples
    --------
    >>> key_lines("title = 'x'\\n[data.web]\\nseed = 1\\n[[runs]]\\nalgo = 'mart'\\n")[("runs", 0, "algo")]
    5
    """
    lines: dict[Path, int] = {}
    counts: dict[Path, int] = {}
    table: Path = ()
    quotes = None  # the delimiter of a string that goes on over lines
    for number, line in enumerate(text.splitlines(), 1):
        if quotes is not None:
            quotes = None if quotes in line else quotes
            continue
        header = HEADER.match(line)
        if header:
            table = tuple(part.strip("\"'") for part in PART.findall(header[2]))
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            lines.setdefault(table, number)
            continue
        key = KEY.match(line)
        if key:
            path = table
            for part in PART.findall(line[: key.end() - 1]):
                path = (*path, part.strip("\"'"))
                lines.setdefault(path, number)
        for mark in ('"""', "'''"):
            if line.count(mark) % 2:
                quotes = mark
    return lines


def line_of(lines: dict[Path, int], path: Path) -> int:
    """The line of a key, or of the nearest table around it."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)

"""`Notes`: what was left out or is unusual, counted and with a few examples."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator

EXAMPLES = 3
LOG = logging.getLogger("ranksieve.retrieval")


class Notes:
    """Counted remarks, in the order of their first occurrence.

    Examples
    --------
    >>> notes = Notes()
    >>> for name in ("d7", "d9", "d11", "d12"):
    ...     notes.add("judgements of documents that are not in the index", name)
    >>> print(*notes, sep="; ")
    judgements of documents that are not in the index: 4 (d7, d9, d11, …)
    >>> notes = Notes()
    >>> notes.extend("judgements of documents that are not in the index", ["d7", "d7", "d9"])
    >>> print(*notes)
    judgements of documents that are not in the index: 3 (d7, d9)
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._examples: dict[str, list[str]] = {}  # different ones
        self._has_more: set[str] = set()  # remarks with more examples than are kept

    def add(self, remark: str, example: object) -> None:
        self.extend(remark, [example])

    def extend(self, remark: str, examples: Iterable[object]) -> None:
        """Count one remark for every example."""
        for example in examples:
            self._counts[remark] = self._counts.get(remark, 0) + 1
            kept = self._examples.setdefault(remark, [])
            if str(example) in kept:
                continue
            if len(kept) < EXAMPLES:
                kept.append(str(example))
            else:
                self._has_more.add(remark)

    def count(self, remark: str) -> int:
        return self._counts.get(remark, 0)

    def __iter__(self) -> Iterator[str]:
        for remark, count in self._counts.items():
            more = ", …" if remark in self._has_more else ""
            yield f"{remark}: {count:,} ({', '.join(self._examples[remark])}{more})"

    def __len__(self) -> int:
        return len(self._counts)


@contextlib.contextmanager
def logged_notes() -> Iterator[Notes]:
    """New notes, which are logged in the end."""
    notes = Notes()
    yield notes
    for note in notes:
        LOG.warning(note)

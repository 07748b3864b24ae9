"""Features chosen by text: names, globs, and LETOR's numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

import numpy as np

from ranksieve.errors import ParameterError, did_you_mean
from ranksieve.text_formats import read_signs


def choose_features(text: str, names: Sequence[str]) -> np.ndarray:
    """Numbers, from 0 and ascending, of the features that a text chooses.

    Parameters
    ----------
    text
        Names (`bm25_title`), globs (`bm25_*`), numbers and ranges counted from 1 as LETOR does (`7`, `1-46`), with
        commas between; a `!` before one takes it away again, at first from all.
    names
        The features' names.

    Examples
    --------
    >>> names = ["bm25_title", "bm25_body", "pagerank", "length"]
    >>> choose_features("bm25_*,4", names).tolist(), choose_features("!pagerank", names).tolist()
    ([0, 1, 3], [0, 1, 3])
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    chosen = np.full(len(names), bool(parts) and parts[0].startswith("!"))
    for part in parts:
        chosen[_meant(part.removeprefix("!"), names)] = not part.startswith("!")
    if not chosen.any():
        raise ParameterError(f"--features {text!r} leaves no feature to learn from; choose at least one")
    return np.flatnonzero(chosen)


def monotone_signs(text: str, names: Sequence[str]) -> np.ndarray | None:
    """Per feature 1 (scores never fall as it rises), -1 (never rise) or 0 (free); None where all are free.

    Parameters
    ----------
    text
        `bm25_*:+1,spam:-1` with what `choose_features` reads before the colons, or one sign per feature (`1,0,-1`).

    Examples
    --------
    >>> monotone_signs("bm25_*:+1, length:-1", ["bm25_title", "bm25_body", "pagerank", "length"]).tolist()
    [1, 1, 0, -1]
    """
    pairs = read_signs(text)
    signs = np.zeros(len(names), np.int8)
    if any(feature for feature, _ in pairs):
        for feature, sign in pairs:
            signs[_meant(feature, names)] = sign
    elif pairs:
        if len(pairs) != len(names):
            raise ParameterError(
                f"--monotone gives {len(pairs)} signs for {len(names)} features; give one for each, or names with "
                "signs as in 'bm25:+1'"
            )
        signs[:] = [sign for _, sign in pairs]
    return signs if signs.any() else None


def _meant(part: str, names: Sequence[str]) -> list[int]:
    """The features that one name, glob, number or range means."""
    if part in names:
        return [list(names).index(part)]
    if match := re.fullmatch(r"(\d+)(?:-(\d+))?", part, re.ASCII):
        first, last = int(match[1]), int(match[2] or match[1])
        if 1 <= first <= last <= len(names):
            return list(range(first - 1, last))
        raise ParameterError(f"feature {part} does not exist; there are {len(names)}, counted from 1")
    found = [number for number, name in enumerate(names) if fnmatchcase(name, part)]
    if not found:
        hint = did_you_mean(part, names).strip() or f"known: {', '.join(names[:8])}, …"
        raise ParameterError(f"no feature is named {part!r}; {hint}")
    return found

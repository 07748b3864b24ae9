"""Texts of documents: how an index stores them, and what to show of one for a query."""

from __future__ import annotations

import json
import unicodedata
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ranksieve.errors import DataError
from ranksieve.retrieval.analysis import UNSEEN, word_spans

if TYPE_CHECKING:
    from ranksieve.retrieval.analysis import Analyzer

LEVEL = 1  # of the compression: reading the corpus stays the larger part of indexing
LONGEST_TEXT = 200_000  # characters of a text in which words of the query are looked for
WORDS = 30  # in a snippet
BEFORE = 4  # words before the first match, at most a quarter of the stretch
LONGEST_GAP = 120  # characters shown between two words


def packed(texts: Mapping[str, str | None]) -> bytes:
    """Texts by field in compressed JSON; fields without a text are left out."""
    content = json.dumps({name: text for name, text in texts.items() if text}, ensure_ascii=False)
    return zlib.compress(content.encode(errors="replace"), LEVEL)


def unpacked(content: bytes) -> dict[str, str]:
    """The texts that `packed` has stored."""
    try:
        texts: dict[str, str] = json.loads(zlib.decompress(content))
    except (zlib.error, ValueError) as error:
        raise DataError(f"a stored text is damaged ({error}); index the corpus again") from error
    return texts


class TextPiece(NamedTuple):
    """A part of a snippet, and whether it is a word of the query."""

    text: str
    marked: bool


def snippet(text: str, query: str, analyzer: Analyzer, n_words: int = WORDS) -> list[TextPiece]:
    """The stretch of a text that has most of the query's words, with these marked; its beginning where it has none.

    Words are the same if the analyzer makes the same term of them, so inflected forms are marked, too.

    Examples
    --------
    >>> from ranksieve.retrieval.analysis import Analyzer
    >>> snippet("A car. Two roses, one red.", "red rose", Analyzer(), n_words=4)
    [TextPiece(text='… Two ', marked=False), TextPiece(text='roses', marked=True), \
TextPiece(text=', one ', marked=False), TextPiece(text='red', marked=True), TextPiece(text='.', marked=False)]
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", UNSEEN.sub("", text))
    spans = list(word_spans(text[:LONGEST_TEXT]))
    found = _matches(text, spans, query, analyzer)
    first = _best_window(found, n_words)
    last = min(first + n_words, len(spans))
    if not spans:
        return [TextPiece(" ".join(text[:LONGEST_GAP].split()), False)] if text.strip() else []
    pieces, place = [], spans[first][0] if first else 0
    plain = "… " if first else ""
    for number in range(first, last):
        start, end = spans[number]
        plain += _gap(text[place:start])
        if found[number] is None:
            plain += text[start:end]
        else:
            pieces += [TextPiece(plain, False)] if plain else []
            pieces.append(TextPiece(text[start:end], True))
            plain = ""
        place = end
    rest = text[place : spans[last][0]] if last < len(spans) else text[place:]
    plain += _gap(rest).rstrip() + (" …" if last < len(spans) else "")
    return [*pieces, TextPiece(plain, False)] if plain else pieces


def _gap(text: str) -> str:
    """What stands between two words: white space as one space, and not too much of it."""
    gap = " ".join(text[:LONGEST_GAP].split())
    return f"{' ' * text[:1].isspace()}{gap}{' ' * (bool(gap) and text[-1:].isspace())}"


def _matches(
    text: str, spans: Sequence[tuple[int, int]], query: str, analyzer: Analyzer
) -> list[frozenset[str] | None]:
    """The terms of the query that each word has; None for words that have none."""
    wanted = frozenset(analyzer.terms(query))
    words = [text[start:end] for start, end in spans]
    distinct = list(dict.fromkeys(words))
    terms = {word: wanted & frozenset(some) for word, some in zip(distinct, analyzer.analyse(distinct), strict=True)}
    return [terms[word] or None for word in words]


def _best_window(found: Sequence[frozenset[str] | None], n_words: int) -> int:
    """Where the stretch begins that has most terms, then most matches; the first of equal ones."""
    matched = [number for number, terms in enumerate(found) if terms is not None]
    before = min(BEFORE, n_words // 4)
    best, begin, stop, counts, total = (0, 0), 0, 0, dict[str, int](), 0
    for place, first in enumerate(matched):
        while stop < len(matched) and matched[stop] < first + n_words - before:
            for term in found[matched[stop]] or ():
                counts[term] = counts.get(term, 0) + 1
            stop, total = stop + 1, total + 1
        if (len(counts), total) > best:
            best, begin = (len(counts), total), first
        for term in found[matched[place]] or ():
            counts[term] -= 1
            if not counts[term]:
                del counts[term]
        total -= 1
    return max(0, min(begin - before, len(found) - n_words)) if matched else 0

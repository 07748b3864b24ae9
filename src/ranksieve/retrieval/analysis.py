"""`Analyzer`: from text to terms. Words are found by a regular expression; each distinct word is analysed once."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from typing import Any

from ranksieve.errors import MissingExtraError, ParameterError

ASCII_WORD = re.compile(r"\w+")
UNSEEN = re.compile("[\u00ad\u20dd-\u20e4\ufe00-\ufe0f]")  # soft hyphens, enclosing marks, glyph choices
JOINERS = "\u200c\u200d"  # within words of Persian, Sinhala and others
MARKED = 1 << 16  # marks of scripts in wide use; regular expressions are slow with characters beyond

# The words Lucene leaves out of English text.
ENGLISH = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this"
    " to was will with"
)
STOP_WORDS = {"english": tuple(ENGLISH.split()), "none": ()}

# A word drawn as u (upper case), l (other letters), d (digits) and _ (the rest); its parts are runs of these:
# parseXMLFile2 → llllluuuullld → parse, XML, File, 2.
PART = re.compile(r"u+(?=ul)|u?l+|u+|d+")


def words_of(text: str) -> list[str]:
    """The words of a text: letters, digits and underscores, and the marks on them, such as accents and vowel signs.

    Letters with accents are the same whether the text has them as one character or as two.

    Examples
    --------
    >>> words_of("Ünïcode, file_name: हिन्दी भाषा")
    ['Ünïcode', 'file_name', 'हिन्दी', 'भाषा']
    """
    if text.isascii():
        return ASCII_WORD.findall(text)
    return _marked_word().findall(unicodedata.normalize("NFC", UNSEEN.sub("", text)))


@cache
def _marked_word() -> re.Pattern[str]:
    """Words with marks, which `\\w` takes for gaps between words."""
    marks = "".join(map(re.escape, filter(_is_mark, map(chr, range(MARKED)))))
    return re.compile(rf"\w[\w{marks}]*(?:[{JOINERS}]+\w[\w{marks}]*)*")


def _is_mark(letter: str) -> bool:
    return unicodedata.category(letter).startswith("M")


@dataclass(frozen=True)
class Analyzer:
    """What becomes of a word.

    Parameters
    ----------
    lower
        Terms are in lower case.
    split
        `getFileName` and `file_name` also count as their parts.
    stop
        Words left out: "english", "none", or the words themselves.
    stem
        A Snowball language, such as "english", or "none".

    Examples
    --------
    >>> Analyzer().terms("The HTTPServer failed")
    ['httpserver', 'http', 'server', 'fail']
    >>> Analyzer(split=False, stem="none", stop="none").terms("The HTTPServer failed")
    ['the', 'httpserver', 'failed']
    """

    lower: bool = True
    split: bool = True
    stop: str | tuple[str, ...] = "english"
    stem: str = "english"

    def __post_init__(self) -> None:
        if isinstance(self.stop, str):
            if self.stop not in STOP_WORDS:
                raise ParameterError(
                    f"stop is {self.stop!r}; expected one of {', '.join(STOP_WORDS)}, or a sequence of words"
                )
        else:
            object.__setattr__(self, "stop", tuple(self.stop))
        if self.stem != "none":
            known = _stemmer_module().algorithms()
            if self.stem not in known:
                raise ParameterError(f"stem is {self.stem!r}; expected none or one of {', '.join(sorted(known))}")

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def terms(self, text: str) -> list[str]:
        """The terms of a text, in order."""
        return [term for pieces in self.analyse(words_of(text)) for term in pieces]

    def analyse(self, words: Sequence[str]) -> list[list[str]]:
        """The terms of each word: none for a stop word; the word and its parts for one that splits."""
        forms = [_forms(word) for word in words] if self.split else [[word] for word in words]
        if self.lower:
            forms = [[form.lower() for form in some] for some in forms]
        if self._stop_set:
            forms = [[form for form in some if form not in self._stop_set] for some in forms]
        if self._stemmer is not None:
            stems = iter(self._stemmer.stemWords([form for some in forms for form in some]))
            forms = [[next(stems) for _ in some] for some in forms]
        return forms

    @cached_property
    def _stop_set(self) -> frozenset[str]:
        return frozenset(STOP_WORDS[self.stop] if isinstance(self.stop, str) else self.stop)

    @cached_property
    def _stemmer(self) -> Any:
        return None if self.stem == "none" else _stemmer_module().Stemmer(self.stem)


def _forms(word: str) -> list[str]:
    """A word, and its parts where there are several; underscores at its ends do not count."""
    if word.isalpha() and (word.islower() or word[1:].islower()):
        return [word]
    parts = [word[match.start() : match.end()] for match in PART.finditer("".join(map(_shape, word)))]
    return parts if len(parts) < 2 else [word.strip("_"), *parts]


def _shape(letter: str) -> str:
    if letter.isupper():
        return "u"
    if letter.isalpha() or _is_mark(letter) or letter in JOINERS:
        return "l"
    return "d" if letter.isalnum() else "_"


def _stemmer_module() -> Any:
    try:
        import Stemmer
    except ImportError as error:
        raise MissingExtraError(
            "stemming needs the package 'PyStemmer'; install it with: pip install 'ranksieve[retrieval]', "
            "or turn it off with stem='none' (--stem none)"
        ) from error
    return Stemmer

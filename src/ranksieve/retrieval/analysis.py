"""`Analyzer`: from text to terms. `Field`: which text of a document is searched, and its analyzer."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from typing import Any

from ranksieve.errors import MissingExtraError, ParameterError, param
from ranksieve.retrieval.corpus import plain_text

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

STEMMING = threading.Lock()  # a stemmer is for one thread at a time
ALL = "all"  # the name under which features over all fields go
FIELD = re.compile(r"(?P<name>[^:=~]+)(:(?P<options>[^=~]*))?(=(?P<source>[^~]+))?(~(?P<pattern>.+))?", re.DOTALL)
OPTIONS = {
    "lower": ("lower", True), "nolower": ("lower", False),
    "split": ("split", True), "nosplit": ("split", False),
    "stop": ("stop", "english"), "nostop": ("stop", "none"),
    "stem": ("stem", "english"), "nostem": ("stem", "none"),
    "positions": ("positions", True), "nopositions": ("positions", False),
}  # fmt: skip


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


def word_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the words of a text begin and end; a text that is not ASCII is in normal form already."""
    return (found.span() for found in (ASCII_WORD if text.isascii() else _marked_word()).finditer(text))


@cache
def _marked_word() -> re.Pattern[str]:
    """Words with marks, which `\\w` takes for gaps between words."""
    marks = "".join(map(re.escape, filter(_is_mark, map(chr, range(MARKED)))))
    return re.compile(rf"\w[\w{marks}]*(?:[{JOINERS}]+\w[\w{marks}]*)*")


def _is_mark(letter: str) -> bool:
    return unicodedata.category(letter).startswith("M")


@dataclass(frozen=True)
class Analyzer:
    """How a word is turned into terms.

    Parameters
    ----------
    lower
        Terms are in lower case.
    split
        `getFileName`, `file_name` and `w12` also count as their parts: `w12` as `w12`, `w` and `12`.
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
                    param("stop"), f" is {self.stop!r}; expected one of {', '.join(STOP_WORDS)}, or a sequence of words"
                )
        else:
            object.__setattr__(self, "stop", tuple(self.stop))
        if self.stem != "none":
            known = _stemmer_module().algorithms()
            if self.stem not in known:
                known_ones = ", ".join(sorted(known))
                raise ParameterError(param("stem"), f" is {self.stem!r}; expected none or one of {known_ones}")

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
            with STEMMING:
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
            "stemming needs the package 'PyStemmer'; install it with: pip install PyStemmer, or turn it off with ",
            param("stem", "none"),
        ) from error
    return Stemmer


@dataclass(frozen=True)
class Field:
    """A field of an index.

    Parameters
    ----------
    name
        Its name in weights and features.
    source
        The field of the corpus it is made from; its own name if empty.
    pattern
        A regular expression: only what it matches is text of the field; everything if empty.
    analyzer
        How its text becomes terms.
    positions
        Whether positions are kept, which phrases, windows and proximity need.

    Examples
    --------
    >>> field = parse_field("file:nostem=path~[^/]+$")
    >>> field.name, field.source, field.analyzer.stem, field.text({"path": "java/el/MapResolver.java"})
    ('file', 'path', 'none', 'MapResolver.java')
    """

    name: str
    source: str = ""
    pattern: str = ""
    analyzer: Analyzer = field(default_factory=Analyzer)
    positions: bool = True

    def __post_init__(self) -> None:
        if not self.name or self.name == ALL or set(self.name) & set(":=~*?[,") or self.name != self.name.strip():
            raise ParameterError(
                f"a field cannot be named {self.name!r}; use a name other than {ALL!r} without spaces around it "
                "and without : = ~ * ? [ ,"
            )
        if not self.source:
            object.__setattr__(self, "source", self.name)
        try:
            _ = self._pattern
        except re.error as error:
            raise ParameterError(
                f"the pattern {self.pattern!r} of field {self.name!r} is not a regular expression ({error}); correct it"
            ) from error

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        return re.compile(self.pattern, re.DOTALL) if self.pattern else None

    def text(self, document: dict[str, Any]) -> str | None:
        """The field's text in a document of the corpus; None where the document has no such field."""
        text = plain_text(document.get(self.source))
        if text is None or self._pattern is None:
            return text
        return "\n".join(match.group() for match in self._pattern.finditer(text))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Field:
        return cls(**{**values, "analyzer": Analyzer(**values["analyzer"])})


def parse_field(text: str, analyzer: Analyzer | None = None, *, positions: bool = True) -> Field:
    """A field from `NAME[:option,…][=SOURCE][~PATTERN]`; the options override the given analyzer."""
    match = FIELD.fullmatch(text)
    if match is None:
        raise ParameterError(
            f"field {text!r} cannot be read; fields look like 'title', 'title:nostem', 'file=path~[^/]+$'"
        )
    changes: dict[str, Any] = {"positions": positions}
    for option in filter(None, map(str.strip, (match["options"] or "").split(","))):
        if option not in OPTIONS:
            raise ParameterError(f"field {text!r} has the option {option!r}; expected one of {', '.join(OPTIONS)}")
        name, value = OPTIONS[option]
        changes[name] = value
    keep = changes.pop("positions")
    return Field(
        match["name"].strip(),
        (match["source"] or "").strip(),
        match["pattern"] or "",
        replace(analyzer or Analyzer(), **changes),
        keep,
    )

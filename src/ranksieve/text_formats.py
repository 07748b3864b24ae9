"""How things are spelled: parameters that are lists, the same text everywhere, and numbers of things."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

AUTO = "auto"
FREE = "none"  # no monotone constraints
SIGNS = {"+1": 1, "1": 1, "-1": -1, "0": 0, "+0": 0, "-0": 0}  # signs of --monotone
COMMA = re.compile(r",(?![^\[\]]*\])")  # not one in brackets, as in the glob "price[,] net"
IRREGULAR = {"query": "queries", "leaf": "leaves", "category": "categories"}


def some_of(names: Sequence[str], most: int = 8) -> str:
    """The first few names of a list, for messages.

    Examples
    --------
    >>> some_of(["a", "b", "c"], 2)
    'a, b, …'
    """
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def split_commas(text: str) -> list[str]:
    """The parts of a text between its commas, without spaces around them and without empty ones.

    A comma in brackets does not separate.

    Examples
    --------
    >>> split_commas("brand, genre,price[,] net")
    ['brand', 'genre', 'price[,] net']
    """
    return [part.strip() for part in COMMA.split(text) if part.strip()]


def without_comma(name: str) -> str:
    """A name as a part of a text that has commas between names: `[,]`, which as a glob matches a comma.

    Examples
    --------
    >>> without_comma("price, net"), without_comma("bm25_*")
    ('price[,] net', 'bm25_*')
    """
    return name.replace(",", "[,]")


def comma_hint(names: Iterable[str]) -> str:
    """How to spell a name that has a comma, if there is one; the end of a message."""
    return "; write [,] for the comma in a name" if any("," in name for name in names) else ""


def counted(**numbers: int) -> str:
    """How many there are of some things.

    Examples
    --------
    >>> counted(query=1, document=1200), counted(tree=0), counted(leaf=2)
    ('1 query, 1,200 documents', '0 trees', '2 leaves')
    """
    return ", ".join(f"{number:,} {noun if number == 1 else plural(noun)}" for noun, number in numbers.items())


def category_counts(categories: Mapping[str, Sequence[str]]) -> str:
    """Categorical features and how many categories they have; a feature may have numbers of categories without names.

    Examples
    --------
    >>> category_counts({"genre": ["drama", "crime"], "brand": []})
    'genre (2 categories), brand'
    """
    return some_of([f"{name} ({counted(category=len(one))})" if one else name for name, one in categories.items()])


def plural(noun: str) -> str:
    """Such as `queries` of `query`."""
    return IRREGULAR.get(noun, f"{noun}s")


def duration(seconds: float) -> str:
    """A time span in readable units: `0.84 s`, `12 s`, `3 min 05 s`, `2 h 10 min`."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def numbers_text(value: Any) -> Any:
    """Numbers as text, `0,1,3`: one spelling in Python, TOML, flags and model files."""
    return value if isinstance(value, str) else ",".join(repr(float(number)).removesuffix(".0") for number in value)


def are_numbers(value: Any) -> bool:
    return value == AUTO or len(read_numbers(value)) > 0


def read_numbers(text: str) -> tuple[float, ...]:
    """The finite numbers that a text spells; empty where it spells none, or anything else."""
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        return ()
    return numbers if all(abs(one) < float("inf") for one in numbers) else ()


def are_gains(value: Any) -> bool:
    return value == AUTO or len(read_gains(value)) > 0


def read_gains(text: str) -> tuple[float, ...]:
    """The gain table that a text spells; empty where it is none."""
    gains = read_numbers(text)
    good = gains and gains[0] == 0 < gains[-1] and all(a <= b for a, b in itertools.pairwise(gains))
    return gains if good else ()


def features_text(value: Any) -> Any:
    """Names, and numbers from 0 as Python has them, as text with numbers from 1 as LETOR has them."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return value
    return ",".join(without_comma(part) if isinstance(part, str) else str(int(part) + 1) for part in value)


def signs_text(value: Any) -> Any:
    if isinstance(value, str) or not isinstance(value, Iterable):
        return value
    if isinstance(value, Mapping):
        return ",".join(f"{without_comma(name)}:{int(sign):+d}" for name, sign in value.items())
    return ",".join(part if isinstance(part, str) else str(int(part)) for part in value)


def are_signs(value: Any) -> bool:
    return value == FREE or len(read_signs(value)) > 0


def read_signs(text: str) -> tuple[tuple[str, int], ...]:
    """Features and their signs as a text spells them, with empty names where it has signs alone; empty for neither."""
    named = ":" in text
    spelled = [tuple(map(str.strip, part.rpartition(":"))) for part in COMMA.split(text)]
    good = all(bool(feature) == bool(colon) == named and sign in SIGNS for feature, colon, sign in spelled)
    return tuple((feature, SIGNS[sign]) for feature, _, sign in spelled) if good else ()


def is_monotone(info: Mapping[str, Any]) -> bool:
    """Whether a model's trees are monotone by its info; their sum then is, too, if no weight is negative."""
    params = info.get("params")
    text = params.get("monotone", FREE) if isinstance(params, Mapping) else FREE
    return isinstance(text, str) and any(sign for _, sign in read_signs(text))


UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}  # units of bytes


def is_size(value: Any) -> bool:
    return value == AUTO or read_size(value) > 0


def read_size(text: str) -> int:
    """The bytes that a text spells; 0 where it spells none.

    Examples
    --------
    >>> read_size("4G"), read_size("1.5 GiB"), read_size("many")
    (4294967296, 1610612736, 0)
    """
    number = text.strip().upper().removesuffix("B").removesuffix("I")
    unit = number[-1:] if number[-1:] in UNITS else ""
    try:
        size = float(number.removesuffix(unit)) * UNITS[unit]
    except ValueError:
        return 0
    return int(size) if 0 < size < 2.0**62 else 0


def unit_hint(text: str) -> str:
    """Advice on a size that is likely to lack its unit; empty for others.

    Examples
    --------
    >>> unit_hint("200"), unit_hint("200K"), unit_hint("200000000")
    ('200 bytes; did you mean 200M?', '', '')
    """
    number = text.strip()
    return f"{number} bytes; did you mean {number}M?" if number.isdecimal() and int(number) < UNITS["M"] else ""


def size_text(value: Any) -> Any:
    """A number of bytes as text."""
    return value if isinstance(value, str) else str(int(value))


def memory_size(n_bytes: int) -> str:
    """A number of bytes as `read_size` reads it, in units of 1,024 bytes.

    Examples
    --------
    >>> memory_size(98_304), memory_size(389 << 20), memory_size(6 << 30), memory_size(1130 << 20)
    ('96K', '389M', '6G', '1.1G')
    """
    unit = next(unit for unit, size in reversed(UNITS.items()) if n_bytes >= size or unit == "")
    size = n_bytes / UNITS[unit]
    return f"{size:.3g}{unit}" if size < 1000 else f"{size:.0f}{unit}"


def file_size(n_bytes: int) -> str:
    """A number of bytes with a unit: `512 B`, `3.4 MB`."""
    size, unit = float(n_bytes), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.3g} {unit}"

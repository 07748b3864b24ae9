"""Guesses what the columns of a table hold: advice on tables whose columns have other than the usual names."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from ranksieve.data.categories import categorical_text, is_number, kind_text, matches_any
from ranksieve.data.compression import first_bytes
from ranksieve.data.csv import first_lines, is_csv
from ranksieve.data.data_file import NEEDED, OTHER_NAMES, ROLE_TEXTS, USUAL_NAMES, DataFile
from ranksieve.data.parquet import MAGIC
from ranksieve.text_formats import split_commas

NUMBERS = "numbers"  # or categories of a categorical type: both are features
FEATURE, NO_FEATURE = "a feature", "not a feature"
UNIQUE = "text, no two alike"  # such a column holds no categories
FEWEST_UNIQUE = 10  # rows from which on texts count as unique


@dataclass(frozen=True)
class ColumnRoles:
    """The columns of a table: what they hold and what they are used as, and the `flags` that reading them needs."""

    kinds: dict[str, str]
    uses: dict[str, str]
    flags: dict[str, str]
    categories: str = ""  # columns that may hold categories, as `ignore` has them

    @property
    def is_readable(self) -> bool:
        """Whether the table can be read as it is; ids of documents that are numbers would be a feature."""
        return all(role == "docid" and self.kinds[name] == NUMBERS for role, name in self.flags.items())


def find_roles(file: DataFile) -> ColumnRoles | None:
    """What the columns of a CSV or Parquet file are likely to hold.

    None for other files, and where a column that is given does not exist, which reading the file reports.

    Columns `query,doc,rel,bm25,title` with texts in the last one have the flags
    `{"label": "rel", "qid": "query", "docid": "doc", "ignore": "title"}`.
    """
    kinds = _kinds(file)
    if kinds is None or not kinds.keys() >= set(file.columns.values()):
        return None
    roles = {role: _likely(role, kinds, file.columns) for role in USUAL_NAMES}
    held = {name: ROLE_TEXTS[role] for role, name in roles.items() if name is not None}
    ignore, categorical = split_commas(file.ignore or ""), split_commas(categorical_text(file.categorical))
    ignored = [name for name in kinds if name not in held and matches_any(name, ignore)]
    texts = [
        name
        for name, kind in kinds.items()
        if kind != NUMBERS and name not in (*held, *ignored) and not matches_any(name, categorical)
    ]
    flags = {
        role: roles[role] or "NAME"
        for role in USUAL_NAMES
        if role not in file.columns and roles[role] not in USUAL_NAMES[role] and (roles[role] or role in NEEDED)
    }
    uses = {name: held.get(name) or (NO_FEATURE if name in (*texts, *ignored) else FEATURE) for name in kinds}
    advice = {"ignore": ",".join(map(_glob, texts))} if texts else {}
    return ColumnRoles(kinds, uses, flags | advice, ",".join(_glob(name) for name in texts if kinds[name] != UNIQUE))


def _kinds(file: DataFile) -> dict[str, str] | None:
    """What each column holds, in words; of CSV, by its first lines."""
    path = file.__fspath__()
    if first_bytes(path).startswith(MAGIC):
        schema = pq.read_schema(path)
        return {
            one.name: NUMBERS if is_number(one.type) or pa.types.is_dictionary(one.type) else kind_text(one.type)
            for one in schema
        }
    if not is_csv(path, file.columns):
        return None
    names, _, rows = first_lines(path)
    return {name: _kind([row[place] for row in rows if len(row) > place]) for place, name in enumerate(names)}


def _kind(cells: Sequence[str]) -> str:
    """What cells hold; a few texts among numbers are mistakes, which reading the file reports with their lines."""
    if 2 * sum(map(_is_number, cells)) > len(cells) or not cells:
        return NUMBERS
    return UNIQUE if len(cells) >= FEWEST_UNIQUE and len(set(cells)) == len(cells) else "text"


def _glob(name: str) -> str:
    """A glob for one column in a list with commas."""
    return "".join({"[": "[[]", "*": "[*]", "?": "[?]", ",": "?"}.get(letter, letter) for letter in name)


def _is_number(cell: str) -> bool:
    if cell.strip().lower() in ("", "true", "false"):
        return True
    with contextlib.suppress(ValueError):
        float(cell)
        return True
    return False


def _likely(role: str, kinds: Mapping[str, str], given: Mapping[str, str]) -> str | None:
    """The column of a role: the one given, the one with the usual name, or one with another frequent name."""
    if role in given:
        return given[role]
    frequent = (*USUAL_NAMES[role], *OTHER_NAMES.get(role, ()))
    return next((name for known in frequent for name in kinds if name.lower() == known), None)

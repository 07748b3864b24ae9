"""Guesses what the columns of a table hold: advice on tables whose columns have other than the usual names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from ranksieve.data.categories import columns_text, is_number, kind_text, matches_any
from ranksieve.data.compression import PARQUET_MAGIC, first_bytes
from ranksieve.data.csv import first_lines, is_csv
from ranksieve.data.data_file import NEEDED, OTHER_NAMES, ROLE_TEXTS, USUAL_NAMES, DataFile
from ranksieve.text_formats import split_commas

NUMBERS = "numbers"  # numbers, or categories of a categorical type: both are features
FEATURE, NO_FEATURE, PERHAPS_QID = "a feature", "not a feature", "query ids, perhaps"
TEXT, LISTS = "text", "lists"  # columns of these types may hold categories
UNIQUE = "text, mostly different"  # ids or sentences, and no categories
FEWEST_UNIQUE = 10  # rows from which on texts count as mostly different
ROWS = 2_000  # rows that are read to find roles, if they are among the first bytes of the file
Cells = list[str]  # the cells of a column
T = TypeVar("T")


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
    """What the columns of a CSV or Parquet file are likely to hold, by their names, and by their first rows.

    None for other files, and where reading the file reports what is wrong: a damaged file, or a column that is given
    and does not exist.

    Columns `query,doc,rel,bm25,title` with texts in the last one have the flags
    `{"label": "rel", "qid": "query", "docid": "doc", "ignore": "title"}`. Other columns are query ids if equal values
    stand together, in blocks that lie within those of other such columns, and document ids if they hold texts without
    spaces that differ within each query.
    """
    found = _columns(file)
    if found is None or not found[0].keys() >= set(file.columns.values()):
        return None
    kinds, cells = found
    ignore, categorical = split_commas(columns_text(file.ignore)), split_commas(columns_text(file.categorical))
    roles = {role: _likely(role, kinds, file.columns) for role in USUAL_NAMES}
    free = [
        name for name in kinds
        if cells[name] and name not in roles.values() and not matches_any(name, (*ignore, *categorical))
    ]  # fmt: skip
    queries = [] if roles["qid"] else _query_ids({name: cells[name] for name in free})
    if len(queries) == 1:
        roles["qid"] = queries.pop()
    qids = cells.get(roles["qid"] or "", [])
    texts = [name for name in free if kinds[name] in (TEXT, UNIQUE) and name not in (roles["qid"], *queries)]
    roles["docid"] = roles["docid"] or next((name for name in texts if _are_ids(cells[name], qids)), None)
    held = {name: ROLE_TEXTS[role] for role, name in roles.items() if name is not None}
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
    others = {name: NO_FEATURE if name in (*texts, *ignored) else FEATURE for name in kinds}
    uses = others | dict.fromkeys(queries, PERHAPS_QID) | held
    advice = {"ignore": ",".join(map(_glob, texts))} if texts else {}
    categories = [name for name in texts if kinds[name] in (TEXT, LISTS) and not _is_in_blocks(cells[name])]
    return ColumnRoles(kinds, uses, flags | advice, ",".join(map(_glob, categories)))


def _columns(file: DataFile) -> tuple[dict[str, str], dict[str, Cells]] | None:
    """What each column holds, in words, and its first cells; none of columns of Parquet that hold fractions."""
    path = file.__fspath__()
    if first_bytes(path).startswith(PARQUET_MAGIC):
        kinds, cells = {}, {}
        try:
            with pq.ParquetFile(path) as table:
                schema = table.schema_arrow
                read = [one.name for one in schema if not _is_skipped(one.type)]
                first = next(table.iter_batches(ROWS, columns=read), pa.RecordBatch.from_pylist([]))
            for one in schema:
                cells[one.name] = _texts(first.column(one.name)) if one.name in first.schema.names else []
                is_feature = is_number(one.type) or pa.types.is_dictionary(one.type)
                kinds[one.name] = NUMBERS if is_feature else kind_text(one.type)
        except (pa.ArrowException, KeyError, ValueError, OSError):  # it is damaged, or has two columns of one name
            return None
    elif is_csv(path, file.columns):
        names, _, rows = first_lines(path, ROWS)
        cells = {name: [row[place] for row in rows if len(row) > place] for place, name in enumerate(names)}
        kinds = {name: NUMBERS if _are_numbers(found) else TEXT for name, found in cells.items()}
    else:
        return None
    unique = {name: UNIQUE for name, kind in kinds.items() if kind == TEXT and _are_different(cells[name])}
    return kinds | unique, cells


def _is_skipped(kind: pa.DataType) -> bool:
    """Whether cells of a column of Parquet are not looked at: fractions, lists and records are no ids."""
    return bool(pa.types.is_floating(kind) or pa.types.is_nested(kind))


def _texts(column: pa.Array) -> Cells:
    """The cells of a column as text; none of bytes that are not text."""
    with contextlib.suppress(pa.ArrowException):
        found: Cells = column.cast(pa.string()).fill_null("").to_pylist()
        return found
    return []


def _are_numbers(cells: Cells) -> bool:
    """Whether cells hold numbers; a few texts among them are mistakes, which reading the file reports by line."""
    return 2 * sum(map(_is_number, cells)) > len(cells) or not cells


def _are_different(cells: Cells) -> bool:
    return len(cells) >= FEWEST_UNIQUE and 2 * len(set(cells)) > len(cells)


def _is_in_blocks(cells: Cells) -> bool:
    """Whether equal cells stand together, as query ids do: integers or texts, each in several rows."""
    blocks = _blocks(cells)
    is_fraction = any("." in cell for cell in blocks) and _are_numbers(blocks)
    return 1 < len(blocks) == len(set(blocks)) <= len(cells) // 2 and not is_fraction


def _query_ids(cells: Mapping[str, Cells]) -> list[str]:
    """The column whose equal values stand together, in blocks within those of all other such columns; else all."""
    blocks = {name: len(_blocks(found)) for name, found in cells.items() if _is_in_blocks(found)}
    finest = max(blocks, key=lambda name: blocks[name], default="")
    are_within = (len(_blocks(zip(cells[finest], cells[name], strict=False))) == blocks[finest] for name in blocks)
    return [finest] if blocks and all(are_within) else list(blocks)


def _blocks(cells: Iterable[T]) -> list[T]:
    """The value of each run of equal cells."""
    return [cell for cell, _ in groupby(cells)]


def _are_ids(cells: Cells, queries: Cells) -> bool:
    """Whether cells may be ids of documents: they have no spaces, and differ within each query."""
    pairs = list(zip(queries or [""] * len(cells), cells, strict=False))
    has_spaces = any(len(cell.split()) != 1 for cell in cells)
    return len(pairs) >= FEWEST_UNIQUE and len(set(pairs)) == len(pairs) and not has_spaces


def _glob(name: str) -> str:
    """A glob for one column in a list with commas."""
    return "".join({"[": "[[]", "*": "[*]", "?": "[?]", ",": "[,]"}.get(letter, letter) for letter in name)


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

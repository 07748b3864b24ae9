"""Guesses what the columns of a table hold: advice on tables whose columns have other than the usual names."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa
import pyarrow.parquet as pq

from ranksieve.data.categories import columns_text, is_number, kind_text, matches_any
from ranksieve.data.compression import first_bytes
from ranksieve.data.csv import first_lines, is_csv
from ranksieve.data.data_file import NEEDED, OTHER_NAMES, ROLE_TEXTS, USUAL_NAMES, DataFile
from ranksieve.data.parquet import MAGIC
from ranksieve.text_formats import split_commas

NUMBERS = "numbers"  # or categories of a categorical type: both are features
FEATURE, NO_FEATURE = "a feature", "not a feature"
TEXT, LISTS = "text", "lists"  # which may hold categories
UNIQUE = "text, mostly different"  # ids or sentences, and no categories
FEWEST_UNIQUE = 10  # rows from which on texts count as mostly different
ROWS = 2_000  # that are looked at, if they are among the first bytes of the file
Cells = list[str]  # of a column


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

    None for other files, and where a column that is given does not exist, which reading the file reports.

    Columns `query,doc,rel,bm25,title` with texts in the last one have the flags
    `{"label": "rel", "qid": "query", "docid": "doc", "ignore": "title"}`. Other columns are query ids if equal values
    stand together, and document ids if they hold texts without spaces that differ within each query.
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
    roles["qid"] = roles["qid"] or next((name for name in free if _is_in_blocks(cells[name])), None)
    queries = cells.get(roles["qid"] or "", [])
    texts = [name for name in free if kinds[name] in (TEXT, UNIQUE) and name != roles["qid"]]
    roles["docid"] = roles["docid"] or next((name for name in texts if _are_ids(cells[name], queries)), None)
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
    uses = {name: held.get(name) or (NO_FEATURE if name in (*texts, *ignored) else FEATURE) for name in kinds}
    advice = {"ignore": ",".join(map(_glob, texts))} if texts else {}
    categories = [name for name in texts if kinds[name] in (TEXT, LISTS) and not _is_in_blocks(cells[name])]
    return ColumnRoles(kinds, uses, flags | advice, ",".join(map(_glob, categories)))


def _columns(file: DataFile) -> tuple[dict[str, str], dict[str, Cells]] | None:
    """What each column holds, in words, and its first cells; none of columns of Parquet that hold fractions."""
    path = file.__fspath__()
    if first_bytes(path).startswith(MAGIC):
        kinds, cells = {}, {}
        with pq.ParquetFile(path) as table:
            schema = table.schema_arrow
            read = [one.name for one in schema if not pa.types.is_floating(one.type)]
            first = next(table.iter_batches(ROWS, columns=read), pa.RecordBatch.from_pylist([]))
        for one in schema:
            has_cells = one.name in first.schema.names and not pa.types.is_nested(one.type)
            cells[one.name] = [str(cell) for cell in first.column(one.name).to_pylist()] if has_cells else []
            is_feature = is_number(one.type) or pa.types.is_dictionary(one.type)
            kinds[one.name] = NUMBERS if is_feature else kind_text(one.type)
    elif is_csv(path, file.columns):
        names, _, rows = first_lines(path, ROWS)
        cells = {name: [row[place] for row in rows if len(row) > place] for place, name in enumerate(names)}
        kinds = {name: NUMBERS if _are_numbers(found) else TEXT for name, found in cells.items()}
    else:
        return None
    unique = {name: UNIQUE for name, kind in kinds.items() if kind == TEXT and _are_different(cells[name])}
    return kinds | unique, cells


def _are_numbers(cells: Cells) -> bool:
    """Whether cells hold numbers; a few texts among them are mistakes, which reading the file reports by line."""
    return 2 * sum(map(_is_number, cells)) > len(cells) or not cells


def _are_different(cells: Cells) -> bool:
    return len(cells) >= FEWEST_UNIQUE and 2 * len(set(cells)) > len(cells)


def _is_in_blocks(cells: Cells) -> bool:
    """Whether equal cells stand together, as query ids do: integers or texts, each in several rows."""
    blocks = [cell for cell, _ in groupby(cells)]
    is_fraction = any("." in cell for cell in blocks) and _are_numbers(blocks)
    return 1 < len(blocks) == len(set(blocks)) <= len(cells) // 2 and not is_fraction


def _are_ids(cells: Cells, queries: Cells) -> bool:
    """Whether cells may be ids of documents: they have no spaces, and differ within each query."""
    pairs = list(zip(queries or [""] * len(cells), cells, strict=False))
    has_spaces = any(len(cell.split()) != 1 for cell in cells)
    return len(pairs) >= FEWEST_UNIQUE and len(set(pairs)) == len(pairs) and not has_spaces


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

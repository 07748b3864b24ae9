"""Files that are not data, by how they begin: models, TREC runs, judgements, queries, JSON Lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ranksieve.data.compression import open_text

RANKLIB_FORESTS = ("LambdaMART", "MART", "Random Forests")  # as the first line of a file of RankLib names them
MODELS = (b"tree\n", b"tree\r\n", b"{", b"<", b"CBM1", *(f"## {kind}".encode() for kind in RANKLIB_FORESTS))
HEAD_BYTES = 1 << 16
HEAD_LINES = 20  # lines that are read to tell kinds apart
BINARY = re.compile("[\x00-\x08\x0e-\x1f]")  # characters that text does not have
INTEGER = re.compile(r"[+-]?[0-9]{1,18}")  # a rank or a grade
WORD = re.compile(r"[^\W\d]{2}")  # a word; a row of numbers has none
QUERY_IDS = ("id", "_id", "qid", "query_id", "query-id", "topic")  # names of what holds the ids of queries
QUERY_TEXTS = ("text", "query")
BEIR_QRELS = ["query-id", "corpus-id", "score"]  # its first line
INDEX_HEADER = "header.json"  # a folder with this file is an index
JOURNAL_LINE = '{"op_code":'  # how the lines of Optuna's journal begin
JSON_ENDINGS = {".jsonl", ".ndjson"}


class OtherFile(NamedTuple):
    """A kind of file: what it is, and what it is for."""

    name: str
    used_by: str

    def refusal(self, expected: str) -> str:
        """What to say of a file of this kind where something else is expected."""
        return f"is {self.name}, not {expected}; it is for {self.used_by}"


RUN = OtherFile("a TREC run", "ranksieve evaluate --run RUN --qrels QRELS, fuse, features --run and rerank --run")
QRELS = OtherFile(
    "a file of judgements (TREC qrels)", "ranksieve evaluate --qrels, features --qrels and retrieve --tune"
)
QUERIES = OtherFile("a file of queries", "ranksieve retrieve, features and rerank, with an index of documents")
TRIALS = OtherFile("trials of a search (an Optuna journal)", "ranksieve tune --journal, which continues the search")
JSON_LINES = OtherFile(
    "JSON Lines", "ranksieve index (documents), ranksieve clicks (result pages) or ranksieve retrieve (queries)"
)

BY_ENDING = {
    ".toml": OtherFile("TOML", "ranksieve train --params or ranksieve experiment"),
    ".npy": OtherFile("a NumPy array", "ranksieve index --vectors"),
    ".onnx": OtherFile("an ONNX model", "onnxruntime"),
    ".c": OtherFile("C source", "a C compiler"),
}


def starts_like_model(head: bytes) -> bool:
    """Whether a file with these first bytes is a model of one of the formats that can be read, not data."""
    return head.startswith(MODELS) or is_dump(head)


def is_dump(head: bytes) -> bool:
    """Whether a file with these first bytes is a JSON dump of trees, as XGBoost writes it."""
    return head.startswith(b"[") and b'"nodeid"' in head


def other_file(path: str) -> OtherFile | None:
    """The kind of a file that is not empty; None where it may be data, a model, or something unknown."""
    head = bytearray(HEAD_BYTES)
    with open_text(path) as stream:
        size = stream.readinto(memoryview(head))
    return other_text(bytes(head[:size]), path) or BY_ENDING.get(Path(path).suffix)


def other_text(content: bytes, name: str) -> OtherFile | None:
    """As `other_file`, of the content of a file with a name.

    Examples
    --------
    >>> other_text(b"q1 Q0 d7 1 2.5 bm25", "a.txt").name, other_text(b"q1\\tred wine", "a.tsv").name
    ('a TREC run', 'a file of queries')
    >>> other_text(b"2 qid:10 1:0.5 3:1", "a.txt"), other_text(b"qid\\tbm25\\nq1\\t2.5", "a.tsv")
    (None, None)
    """
    text = content[:HEAD_BYTES].decode("utf-8-sig", errors="replace")
    lines = text.split("\n")
    if len(content) >= HEAD_BYTES and len(lines) > 1:
        lines.pop()  # it may be a part of a line
    shown = [line.rstrip("\r") for line in lines if line.strip()][:HEAD_LINES]
    if not shown or BINARY.search(text):
        return None
    is_named = shown[0].lstrip().startswith("{") and not JSON_ENDINGS.isdisjoint(Path(name).suffixes)
    return next((kind for kind, is_kind in KINDS.items() if is_kind(shown)), JSON_LINES if is_named else None)


def _is_run(lines: Sequence[str]) -> bool:
    cells = lines[0].split()
    return len(cells) == 6 and cells[1].upper() == "Q0"


def _is_qrels(lines: Sequence[str]) -> bool:
    cells = lines[0].split()
    if len(cells) != 4:
        return cells == BEIR_QRELS
    return all(map(INTEGER.fullmatch, (cells[1].upper().replace("Q0", "0"), cells[3])))


def _is_queries(lines: Sequence[str]) -> bool:
    """An id, a tab and words; the first line may name both."""
    rows = [line.split("\t") for line in lines]
    if not all(len(cells) == 2 and len(cells[0].split()) == 1 for cells in rows):
        return False
    id, text = rows[0]
    if id.lower() in QUERY_IDS and text.lower() not in QUERY_TEXTS:
        return False  # a table of something else
    return any(WORD.search(cells[1]) for cells in rows[1:] or rows)


def _is_json_lines(lines: Sequence[str]) -> bool:
    """Objects in lines; one line alone may be a model."""
    with suppress(ValueError, RecursionError):
        return len(lines) > 1 and isinstance(json.loads(lines[0]), dict)
    return False


KINDS: dict[OtherFile, Callable[[Sequence[str]], bool]] = {
    RUN: _is_run,
    QRELS: _is_qrels,
    QUERIES: _is_queries,
    TRIALS: lambda lines: lines[0].startswith(JOURNAL_LINE),
    JSON_LINES: _is_json_lines,
}

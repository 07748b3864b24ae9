"""LETOR text, `label qid:ID feature:value … # comment`: reading it in blocks and writing it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ranksieve.data.blocks import Block, Source, blocks_of, stamp
from ranksieve.data.categories import named, other_categories
from ranksieve.data.compression import create_text, open_text
from ranksieve.data.data_file import ReadOptions
from ranksieve.data.dataset import BLOCK_ROWS, Dataset
from ranksieve.data.features import FeatureInfo
from ranksieve.data.letor_lines import EXAMPLE, Lines, chunks, parse
from ranksieve.data.letor_side_files import ENDINGS, SideFiles
from ranksieve.data.lists import check_id
from ranksieve.data.pipes import permanent_paths
from ranksieve.dtypes import MOST_FEATURES, OFFSET
from ranksieve.errors import DataError
from ranksieve.files import atomic_path, atomic_text
from ranksieve.kernels import letor as kernel
from ranksieve.text_formats import counted, split_commas

DOC_ID = re.compile(r"docid\s*=\s*(\S+)")


class TextSource(Source):
    """A LETOR file, plain or compressed, that is parsed on every pass over its blocks.

    `path.query`, `path.weight` and `path.position` beside it are LightGBM's query sizes, weights and positions. The
    first stage is a number from 0, or a name: `"f12"` is feature 12.
    """

    def __init__(self, path: str, options: ReadOptions) -> None:
        self._file, self.files = path, permanent_paths(path)
        for name, names in named(options.categorical.known or {}).items():
            raise other_categories(f"{path}: is LETOR text, in which feature {name!r} holds numbers", names)
        first_stage = _feature_number(path, options.first_stage)
        numbers = _categorical(path, options.categorical.chosen) if options.categorical.known is None else []
        self.info = FeatureInfo(
            (), first_stage, str(path), options.absent, categories={f"f{number}": [] for number in numbers}
        )

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[Block]:
        """The documents in file order, at most `rows` at a time; a full pass fills in `n_docs` and `n_features`."""
        sides = SideFiles(self._file)
        width, n_docs, n_named = self.n_features or 0, 0, 0
        for lines in self._parsed(width):
            if n_docs == 0:
                sides.choose(lines_have_ids=bool(lines.spans[0, kernel.QID] >= 0))
            width = lines.features.shape[1]
            n_named += lines.n_named
            for start in range(0, lines.n_docs, rows):
                block = self._block(lines, start, min(start + rows, lines.n_docs), sides, n_docs)
                n_docs += block.n_docs
                yield block
        if n_docs == 0:
            raise DataError(f"{self.path}: the file holds no documents; expected LETOR lines like {EXAMPLE}")
        if width == 0:
            raise DataError(f"{self.path}: no line has a feature; expected LETOR lines like {EXAMPLE}")
        sides.check_end(n_docs)
        if self.first_stage is not None and self.first_stage >= width:
            raise DataError(
                f"{self.path}: the first-stage feature f{self.first_stage + 1} does not exist; "
                f"the file has {counted(feature=width)}, f1 to f{width}"
            )
        self.n_docs, self.n_features, self.dense = n_docs, width, n_named == n_docs * width

    def fingerprint(self) -> list[Any] | None:
        """Also the files beside it."""
        found = super().fingerprint()
        beside = [stamp(f"{self._file}{ending}") for ending in ENDINGS if os.path.exists(f"{self._file}{ending}")]
        return None if found is None else [*found, beside]

    def _parsed(self, width: int) -> Iterator[Lines]:
        line = 1
        with open_text(self._file) as stream:
            for text, start, stop in chunks(stream):
                self.fraction_read = stream.fraction_read
                n_lines, width = yield from parse(
                    self.path, text, start, stop, first_line=line, width=width, absent=self.absent
                )
                line += n_lines

    def _block(self, lines: Lines, start: int, stop: int, sides: SideFiles, n_docs: int) -> Block:
        """Rows start:stop of the lines; `n_docs` rows of the file came before them."""
        n_rows = stop - start
        if sides.sized:
            run_ids, run_lengths = sides.runs(n_docs, n_docs + n_rows)
        else:
            run_ids, run_lengths = self._runs(lines, start, stop)
        return Block(
            features=lines.features[start:stop],
            labels=lines.labels[start:stop],
            run_ids=run_ids,
            run_lengths=run_lengths,
            doc_ids=self._doc_ids(lines, start, stop),
            weights=sides.weights_of(n_docs, n_docs + n_rows),
            positions=sides.positions_of(n_docs, n_docs + n_rows),
        )

    def _runs(self, lines: Lines, start: int, stop: int) -> tuple[list[str], np.ndarray]:
        without_id = lines.spans[start:stop, kernel.QID] < 0
        if without_id.any():
            line = lines.line_of(start + int(np.argmax(without_id)))
            raise DataError(
                f"{self.path}:{line}: there is no 'qid:' after the label; LETOR lines look like {EXAMPLE}, "
                f"or give the query sizes in {os.path.basename(self.path)}.query"
            )
        starts = np.union1d([0], np.flatnonzero(lines.run_starts[start:stop]))
        ids = []
        for row in (starts + start).tolist():
            ids.append(self._text(lines.token(row, kernel.QID, kernel.QID_STOP), "query id", lines, row))
        return ids, np.diff(np.append(starts, stop - start)).astype(OFFSET)

    def _doc_ids(self, lines: Lines, start: int, stop: int) -> np.ndarray | None:
        """Document ids from the comments: the X of `docid = X`, else the whole comment; None without comments."""
        rows = start + np.flatnonzero(lines.spans[start:stop, kernel.COMMENT] >= 0)
        doc_ids = np.full(stop - start, None, dtype=object)
        for row in rows.tolist():
            token = lines.token(row, kernel.COMMENT, kernel.COMMENT_STOP)
            comment = token.decode(errors="surrogateescape").strip()
            named = DOC_ID.match(comment)
            doc_id = named.group(1) if named else comment
            if "\0" in doc_id:
                check_id(doc_id, "document", f"{self.path}:{lines.line_of(row)}: ")
            if not doc_id.isascii():
                self._text(doc_id.encode(errors="surrogateescape"), "document id", lines, row)
            doc_ids[row - start] = doc_id or None
        return doc_ids if any(doc_id is not None for doc_id in doc_ids) else None

    def _text(self, token: bytes, kind: str, lines: Lines, row: int) -> str:
        """An id of a row; refused unless it is UTF-8, so that different ids stay different."""
        try:
            return token.decode()
        except UnicodeDecodeError as error:
            raise DataError(
                f"{self.path}:{lines.line_of(row)}: {kind} {token[:40]!r} is not UTF-8; save the file as UTF-8"
            ) from error


def _feature_number(path: str, feature: int | str | None) -> int | None:
    """A feature by its number from 0 or its default name `f1`, `f2`, …; the reader checks at its end that it exists."""
    if isinstance(feature, str):
        if not re.fullmatch(r"f[1-9][0-9]{0,8}", feature):
            raise DataError(f"{path}: no feature is named {feature!r}; features of LETOR text are named f1, f2, …")
        return int(feature[1:]) - 1
    if feature is not None and feature < 0:
        raise DataError(f"{path}: feature {feature} does not exist; features are counted from 0 here")
    return feature


def _categorical(path: str, text: str) -> list[int]:
    """The numbers, from 1, of categorical features; they are given as `3`, `f3` or `3-5`."""
    numbers: list[int] = []
    for part in split_commas(text):
        match = re.fullmatch(r"f?([1-9][0-9]{0,8})(?:-f?([1-9][0-9]{0,8}))?", part)
        if match is None:
            raise DataError(f"{path}: no feature is named {part!r}; features of LETOR text have numbers, as in '3,7-9'")
        first, last = int(match[1]), int(match[2] or match[1])
        if not first <= last <= MOST_FEATURES:
            raise DataError(
                f"{path}: {part!r} is given as categorical; expected numbers of features from 1 to {MOST_FEATURES:,}, "
                "and ranges from the lower to the higher one"
            )
        numbers += range(first, last + 1)
    return numbers


def write_letor(data: Dataset | Source, path: str | os.PathLike[str]) -> None:
    """Write LETOR text: zeros are left out, and values have as few digits as a float32 needs to be read back exactly.

    A file whose name ends in .gz, .xz or .zst is compressed. Weights and positions are written to `path.weight` and
    `path.position`, as for LightGBM.

    Examples
    --------
    >>> import pathlib, tempfile, ranksieve
    >>> data = ranksieve.Dataset.from_arrays([[0.5, 0.0], [0.1, 2.0]], [1, 0], qid=[7, 7], doc_ids=["a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_letor(data, f"{folder}/tiny.txt")
    ...     print(pathlib.Path(folder, "tiny.txt").read_text())
    1 qid:7 1:0.5 2:0 # docid = a
    0 qid:7 1:0.1 2:2 # docid = b
    <BLANKLINE>
    """
    _check_no_names(data)
    sides: dict[str, list[np.ndarray]] = {"weight": [], "position": []}
    with atomic_path(path) as temporary:
        with create_text(temporary, Path(path).suffix) as file:
            for number, block in enumerate(blocks_of(data)):
                _check_no_names(data)  # a table's are known when it is read
                # The highest feature is named once, even if it is 0, so that the number of features survives.
                file.write("".join(_block_lines(block, name_last=number == 0)).encode())
                for name, values in (("weight", block.weights), ("position", block.positions)):
                    if values is not None:
                        sides[name].append(values)
        for name in (name for name, values in sides.items() if not values):
            if (side := _side_path(path, name)).exists():
                raise DataError(f"{side}: would be taken for the {name}s of the new file; remove it first")
    for name in (name for name, values in sides.items() if values):
        with atomic_text(_side_path(path, name)) as file:
            for values in sides[name]:
                file.writelines(f"{value!r}\n" for value in values.tolist())


def _check_no_names(data: Dataset | Source) -> None:
    for name in named(data.categories):
        raise DataError(f"{data.source}: {name!r} has names of categories, which LETOR text cannot hold; write Parquet")


def _side_path(path: str | os.PathLike[str], name: str) -> Path:
    return Path(f"{os.fspath(path)}.{name}")


def _block_lines(block: Block, *, name_last: bool) -> Iterator[str]:
    n_features = block.features.shape[1]
    written = block.features != 0
    if name_last:
        written[0, n_features - 1] = True
    texts = _shortest(block.features[written])
    names = [f" {number}:" for number in range(1, n_features + 1)]
    columns = np.nonzero(written)[1].tolist()
    stops = np.cumsum(written.sum(axis=1)).tolist()
    heads = [
        f"{_checked_id(run_id)}"
        for run_id, length in zip(block.run_ids, block.run_lengths, strict=True)
        for _ in range(length)
    ]
    comments = [""] * block.n_docs if block.doc_ids is None else [_comment(doc_id) for doc_id in block.doc_ids]
    start = 0
    for label, head, stop, comment in zip(_shortest(block.labels), heads, stops, comments, strict=True):
        features = "".join([names[columns[k]] + texts[k] for k in range(start, stop)])
        yield f"{label} qid:{head}{features}{comment}\n"
        start = stop


def _shortest(values: np.ndarray) -> list[str]:
    texts: list[str] = pc.cast(pa.array(values), pa.string()).to_pylist()
    return texts


def _checked_id(query_id: object) -> str:
    text = str(query_id)
    if not text or text.split() != [text] or min(text) <= " ":
        raise DataError(f"query id {text!r} cannot be written to LETOR text; ids there have no white space")
    return text


def _comment(doc_id: object) -> str:
    text = "" if doc_id is None else str(doc_id)
    if "\n" in text:
        raise DataError(f"document id {text!r} cannot be written to LETOR text; remove its line breaks")
    if not text:
        return ""
    return f" # docid = {text}" if text.split() == [text] else f" # {text}"

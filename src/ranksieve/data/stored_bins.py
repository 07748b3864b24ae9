"""`StoredBins`: the content of a bin file. `FileSink`: a bin file that is written."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve.data.bin_file import BinFile, BinWriter
from ranksieve.data.binning import Binning
from ranksieve.data.dataset import BLOCK_ROWS
from ranksieve.data.features import FeatureInfo
from ranksieve.data.lists import Lists
from ranksieve.dtypes import BIN
from ranksieve.errors import DataError, param
from ranksieve.files import atomic_path, scratch_path

CUTS = ("thresholds", "offsets", "features")  # arrays of a `Binning`
CODES = "codes_"  # the names of arrays with codes begin so


@dataclass(frozen=True)
class StoredBins:
    """The content of a bin file."""

    file: BinFile
    lists: Lists
    binning: Binning
    info: FeatureInfo

    @classmethod
    def from_arrays(cls, file: BinFile, note: dict[str, Any], arrays: dict[str, np.ndarray], source: str) -> StoredBins:
        """What `to_arrays` has stored."""
        columns = {item.name: arrays.get(item.name) for item in fields(Lists)}
        columns["stored_labels"] = arrays["labels"]
        if arrays["query_ids"].dtype.kind == "U":
            columns["query_ids"] = arrays["query_ids"].astype(object)
        lists = Lists(**columns)  # type: ignore[arg-type]
        codes = {int(name.removeprefix(CODES)): array for name, array in arrays.items() if name.startswith(CODES)}
        binning = Binning(**{name: arrays[f"binning_{name}"] for name in CUTS}, codes=codes)
        info = FeatureInfo(**{**note["info"], "feature_names": tuple(note["info"]["feature_names"])})
        return cls(file, lists, binning, replace(info, source=source))


def to_arrays(
    key: str | None, lists: Lists, binning: Binning, info: FeatureInfo
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The note and the arrays of a bin file."""
    columns = {
        item.name: getattr(lists, item.name) for item in fields(lists) if item.name not in ("stored_labels", "doc_ids")
    }
    arrays = {name: column for name, column in {"labels": lists.labels, **columns}.items() if column is not None}
    if lists.query_ids.dtype == object:
        arrays["query_ids"] = lists.query_ids.astype(str)
    cuts = {f"binning_{name}": getattr(binning, name) for name in CUTS}
    codes = {f"{CODES}{feature}": codes for feature, codes in binning.codes.items()}
    return {"key": key, "info": asdict(info)}, {**arrays, **cuts, **codes}


class FileSink:
    """A bin file that is written; it gets its name at the end of the context, and is removed if something fails."""

    def __init__(self, path: Path, width: int, key: str | None, use_file: Callable[[StoredBins], StoredBins]) -> None:
        self._path, self._width, self._key, self._use_file = path, width, key, use_file
        self._stack = contextlib.ExitStack()
        self._room = np.zeros((0, width), BIN)
        self._file: BinFile | None = None  # what was written, where files can be renamed while they are open

    def __enter__(self) -> FileSink:
        try:
            self._unfinished = self._stack.enter_context(atomic_path(self._path))
        except DataError as error:
            raise DataError(*error.parts, ", ", param("bin_folder", "FOLDER")) from error
        self._writer = BinWriter(self._unfinished, self._width)
        self._stack.callback(self._writer.close)
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def reserve(self, n_rows: int, source: str) -> np.ndarray:
        """Where to put the bins of the next rows."""
        if n_rows > len(self._room):
            self._room = np.zeros((n_rows, self._width), BIN)
        return self._room[:n_rows]

    def advance(self, n_rows: int) -> None:
        """The bins of the next rows are there."""
        self._writer.append(self._room[:n_rows])

    @property
    def n_docs(self) -> int:
        return self._writer.n_rows

    def finish(self, lists: Lists, binning: Binning, info: FeatureInfo) -> None:
        """Write what else there is. If rows had to be regrouped by query, the bins are written again in that order."""
        writer = self._writer
        if lists.order is None:
            writer.finish(*to_arrays(self._key, lists, binning, info))
        else:
            self._writer.close()
            mapped = np.memmap(self._unfinished, BIN, mode="r", shape=(lists.n_docs, self._width))
            with scratch_path(self._path) as path:
                writer = BinWriter(path, self._width)
                self._stack.callback(writer.close)
                for start in range(0, lists.n_docs, BLOCK_ROWS):
                    writer.append(mapped[lists.order[start : start + BLOCK_ROWS]])
                writer.finish(*to_arrays(self._key, lists, binning, info))
                del mapped
                if sys.platform == "win32":  # open files cannot be renamed there
                    writer.close()
                os.replace(path, self._unfinished)
        if sys.platform == "win32":
            writer.close()
        else:
            self._file = writer.reader(self._path)
        self._stored = lists, binning, info

    def stored(self) -> StoredBins:
        """The bins; after the context."""
        file = self._file or BinFile(self._path, self._stored[0].n_docs, self._width)
        return self._use_file(StoredBins(file, *self._stored))

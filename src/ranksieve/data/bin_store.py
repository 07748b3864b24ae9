"""`BinStore`: decides whether the bins of a data set are in memory or in a file, and finds files of earlier runs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve.data.bin_file import CHECKSUMS, BinFile, BinFileError, BinWriter, open_bins, read_arrays, verify
from ranksieve.data.binning import Binning, sample_bytes
from ranksieve.data.blocks import Source
from ranksieve.data.dataset import BLOCK_ROWS
from ranksieve.data.disk_rows import WHOLE_BYTES
from ranksieve.data.features import FeatureInfo
from ranksieve.data.free_memory import available_memory, resident_memory
from ranksieve.data.lists import Lists
from ranksieve.dtypes import BIN
from ranksieve.errors import DataError, ParameterError, param
from ranksieve.files import atomic_path, scratch_path
from ranksieve.text_formats import AUTO, file_size, read_size

LOG = logging.getLogger("ranksieve")
SHARE = 0.7  # of the free memory that bins may take, if no limit is given
DOC_BYTES = 30  # of a document whose bins are in a file: label, score, its bound and trees, places in work arrays
TOP_BYTES = 8  # more of a validation set: scores of the best documents
MEMORY_BYTES = 54  # of a document besides its bins, where these are in memory: label, scores, gradients, work arrays
WORK_BYTES = 48 << 20  # libraries and kernels that are loaded, blocks of the bin file
FEATURE_BYTES = 448 << 10  # of a feature: blocks and buffers of data that is read, or histograms
LEAST_ROWS = 1_024  # that have to fit beside the documents' scores
BESIDE = 8  # validation bins up to one part in so many of the memory stay in memory
ENDING = ".bins"
HASH_DIGITS = 8  # in the names of bin files that are not beside their data
CUTS = ("thresholds", "offsets", "features")  # arrays of a `Binning`
CODES = "codes_"  # and the beginning of the names of others


class Listener:
    """Is told what happens to bins; this one shows no progress, and logs notes."""

    def prepare(self, doing: str, share: float) -> None:
        """What is done, and the share of it that is done."""

    def note(self, text: str) -> None:
        """One line that a user should see."""
        LOG.warning(text)


@dataclass(frozen=True)
class StoredBins:
    """The content of a bin file."""

    file: BinFile
    lists: Lists
    binning: Binning
    info: FeatureInfo


@dataclass
class BinStore:
    """Where the bins of a run's data sets are.

    Parameters
    ----------
    memory
        The size that the process may have, such as "4G"; "auto": bins may take 70% of the memory that is free.
    folder
        Where bin files are; "auto": beside the data, and temporary files for data that is no file.
    keep
        Whether bin files stay for the next run.
    listener
        Is told what happens.
    """

    memory: str = AUTO
    folder: str = AUTO
    keep: bool = True
    listener: Listener = field(default_factory=Listener)
    _in_files: int = field(default=0, init=False)  # documents whose bins are in files
    _doc_bytes: int = field(default=0, init=False)  # that these take
    _column_bytes: int = field(default=0, init=False)  # of their weights, positions and order
    _in_memory: int = field(default=0, init=False)  # bytes of bins in memory

    def __post_init__(self) -> None:
        self._limit = read_size(self.memory) if self.memory != AUTO else None
        self._free = available_memory()
        self._started = resident_memory()

    @property
    def _total(self) -> int:
        """Bytes that the process may have."""
        if self._limit is not None:
            return self._limit
        return self._started + int(SHARE * (self._free or 0))

    def fits(self, n_docs: int, width: int, *, beside: bool = False) -> bool:
        """Whether bins can be in memory; `beside` those of the training set."""
        if self._limit is None and self._free is None:
            return True
        n_bytes = n_docs * width + self._in_memory
        if beside and self._in_files:
            return n_bytes <= self._total // BESIDE
        if self._limit is None:
            return n_bytes <= SHARE * (self._free or 0)
        n_docs += self._in_memory // width
        return self._used(width) + n_bytes + n_docs * MEMORY_BYTES <= self._limit

    def room(self, file: BinFile) -> int:
        """How many rows of a file can be in memory at a time. Files share the memory by their numbers of documents."""
        used = self._used(file.width) + self._in_memory + self._doc_bytes + self._column_bytes
        left = (self._total - used) * file.n_rows / max(self._in_files, 1)
        return int(min(max(left // file.width, min(LEAST_ROWS, file.n_rows)), file.n_rows))

    def _used(self, width: int) -> int:
        """Bytes that the program takes besides documents."""
        return self._started + WORK_BYTES + width * FEATURE_BYTES

    def check_room(self, n_docs: int, width: int, source: str) -> None:
        """Refuse a limit that is too low for the scores of so many documents."""
        per_doc = DOC_BYTES + WHOLE_BYTES
        least = self._used(width) + self._doc_bytes + n_docs * per_doc + LEAST_ROWS * width
        self._refuse_below(least, f"{n_docs:,} documents of {source}: scores and gradients", n_docs * per_doc, width)

    def check_sample(self, n_docs: int, width: int, source: str) -> None:
        """Refuse a limit that is too low for the rows that thresholds are computed from."""
        n_bytes = sample_bytes(n_docs, width)
        least = self._used(width) + self._in_memory + self._doc_bytes + n_bytes
        self._refuse_below(least, f"{source}: the rows that thresholds are computed from", n_bytes, width)

    def _refuse_below(self, least: int, what: str, n_bytes: int, width: int) -> None:
        if self._limit is not None and least > self._limit:
            raise ParameterError(
                param("memory", self.memory), f" is too little for {what} alone take {file_size(n_bytes)}, and the "
                f"program {file_size(self._used(width))}; give at least {-(-least * 11 // 10 >> 20)}M",
            )  # fmt: skip

    def key(self, source: Source, most: Mapping[str, int], binning: Binning | None) -> str | None:
        """What a bin file of the source has to match to be used again; None if it cannot be."""
        fingerprint = source.fingerprint()
        if fingerprint is None:
            return None
        cuts: Any = dict(most)
        if binning is not None:
            coded = sorted(binning.codes)
            codes = (binning.codes[feature] for feature in coded)
            cuts = _digest(binning.thresholds, binning.offsets, binning.features, np.array(coded, np.int64), *codes)
        categories = {name: list(names) for name, names in source.categories.items()}
        return hashlib.sha256(json.dumps([fingerprint, cuts, categories]).encode()).hexdigest()

    def path(self, files: Sequence[str]) -> Path:
        """The bin file of a data set that is made of files; in a given folder its name has a hash of their paths."""
        first, more = Path(files[0]), f"+{len(files) - 1}" if len(files) > 1 else ""
        if self.folder == AUTO:
            return first.absolute().parent / f"{first.name}{more}{ENDING}"
        paths = "\0".join(str(Path(file).absolute()) for file in files)
        digest = hashlib.sha256(os.fsencode(paths)).hexdigest()[:HASH_DIGITS]
        return Path(self.folder) / f"{first.name}{more}.{digest}{ENDING}"

    def find(self, source: Source, key: str | None, *, beside: bool = False) -> StoredBins | None:
        """The bins that an earlier run has written, verified; None if there are none, or if they fit into memory."""
        path = None if key is None else self.path(source.files)
        if path is None or not path.is_file():
            return None
        try:
            file, note = open_bins(path)
            n_docs, width = note["shape"]
            if note.get("key") != key or self.fits(n_docs, width, beside=beside):
                return None
            self.check_room(n_docs, width, source.path)
            arrays = read_arrays(file)
            verify(file, arrays[CHECKSUMS], lambda done: self.listener.prepare(f"checking {path.name}", done))
            stored = _from_arrays(file, note, arrays, source.path)
        except (BinFileError, KeyError, TypeError) as error:
            self.listener.note(f"{path}: the bin file is damaged ({error}); it is written again")
            return None
        self.listener.note(f"{path}: {file_size(file.n_bytes)} of bins are read from this file of an earlier run")
        return self.opened(stored, beside=beside)

    def create(
        self, source: Source | None, key: str | None, n_docs: int, width: int, *, beside: bool = False
    ) -> FileSink | None:
        """Where to write the bins of a data set; None if they fit into memory."""
        name, n_bytes = "the data" if source is None else source.path, n_docs * width
        if self.fits(n_docs, width, beside=beside):
            self._in_memory += n_bytes
            if self._limit is not None and not beside:
                self.listener.note(f"the bins of {name} take {file_size(n_bytes)} and fit into memory")
            return None
        self.check_room(n_docs, width, name)
        temporary = source is None or key is None
        if source is None or key is None:
            path = (
                Path(tempfile.gettempdir() if self.folder == AUTO else self.folder)
                / f"ranksieve-{uuid.uuid4().hex[:12]}{ENDING}"
            )
        else:
            path = self.path(source.files)
        _check_space(path, n_bytes)
        free = f"more than {SHARE:.0%} of the free memory, {file_size(self._free or 0)}"
        why = "" if self._limit is not None else f", {free}"
        keep = self.keep and not temporary
        what = "they are kept" if keep else "during the training they are"
        self.listener.note(f"the bins of {name} take {file_size(n_bytes)}{why}; {what} in {path}")
        return FileSink(self, path, width, key, keep=keep, beside=beside)

    def opened(self, stored: StoredBins, *, keep: bool | None = None, beside: bool = False) -> StoredBins:
        """Count the documents of a file that is used from now on."""
        n_docs, lists = stored.file.n_rows, stored.lists
        more = (column for column in (lists.weights, lists.positions, lists.order) if column is not None)
        self._in_files += n_docs
        self._doc_bytes += n_docs * (DOC_BYTES + TOP_BYTES * beside)
        self._column_bytes += sum(column.nbytes for column in more)
        if not (self.keep if keep is None else keep):
            stored.file.remove()
        return stored


class FileSink:
    """A bin file that is written; it gets its name at the end of the context, and is removed if something fails."""

    def __init__(self, store: BinStore, path: Path, width: int, key: str | None, **options: bool) -> None:
        self._store, self._path, self._width, self._key, self._options = store, path, width, key, options
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

    def room(self, n_rows: int, source: str) -> np.ndarray:
        """Where to put the bins of the next rows."""
        if n_rows > len(self._room):
            self._room = np.zeros((n_rows, self._width), BIN)
        return self._room[:n_rows]

    def done(self, n_rows: int) -> None:
        """The bins of the next rows are there."""
        self._writer.append(self._room[:n_rows])

    @property
    def n_docs(self) -> int:
        return self._writer.n_rows

    def finish(self, lists: Lists, binning: Binning, info: FeatureInfo) -> None:
        """Write what else there is. If rows had to be regrouped by query, the bins are written again in that order."""
        writer = self._writer
        if lists.order is None:
            writer.finish(*_to_arrays(self._key, lists, binning, info))
        else:
            self._writer.close()
            mapped = np.memmap(self._unfinished, BIN, mode="r", shape=(lists.n_docs, self._width))
            with scratch_path(self._path) as path:
                writer = BinWriter(path, self._width)
                self._stack.callback(writer.close)
                for start in range(0, lists.n_docs, BLOCK_ROWS):
                    writer.append(mapped[lists.order[start : start + BLOCK_ROWS]])
                writer.finish(*_to_arrays(self._key, lists, binning, info))
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
        return self._store.opened(StoredBins(file, *self._stored), **self._options)


def _check_space(path: Path, n_bytes: int) -> None:
    try:
        free = shutil.disk_usage(path.parent).free
    except OSError:  # the writer reports that
        return
    if free < n_bytes:
        raise DataError(
            f"{path}: the bin file takes {file_size(n_bytes)}, and {file_size(free)} are free there; free some space, "
            "or name a folder on another disk, ", param("bin_folder", "FOLDER"),
        )  # fmt: skip


def _to_arrays(
    key: str | None, lists: Lists, binning: Binning, info: FeatureInfo
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The note and the arrays of a bin file."""
    columns = {item.name: getattr(lists, item.name) for item in fields(lists) if item.name != "doc_ids"}
    arrays = {name: column for name, column in columns.items() if column is not None}
    if lists.query_ids.dtype == object:
        arrays["query_ids"] = lists.query_ids.astype(str)
    cuts = {f"binning_{name}": getattr(binning, name) for name in CUTS}
    codes = {f"{CODES}{feature}": codes for feature, codes in binning.codes.items()}
    return {"key": key, "info": asdict(info)}, {**arrays, **cuts, **codes}


def _from_arrays(file: BinFile, note: dict[str, Any], arrays: dict[str, np.ndarray], source: str) -> StoredBins:
    """What `_to_arrays` has stored."""
    columns = {item.name: arrays.get(item.name) for item in fields(Lists)}
    if arrays["query_ids"].dtype.kind == "U":
        columns["query_ids"] = arrays["query_ids"].astype(object)
    lists = Lists(**columns)  # type: ignore[arg-type]
    codes = {int(name.removeprefix(CODES)): array for name, array in arrays.items() if name.startswith(CODES)}
    binning = Binning(**{name: arrays[f"binning_{name}"] for name in CUTS}, codes=codes)
    info = FeatureInfo(**{**note["info"], "feature_names": tuple(note["info"]["feature_names"])})
    return StoredBins(file, lists, binning, replace(info, source=source))


def _digest(*arrays: np.ndarray) -> str:
    """Of the lengths and contents of arrays."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(f"{len(array)} ".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()

"""`BinStore`: decides whether the bins of a data set are in memory or in a file, and finds files of earlier runs."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve.data.bin_file import CHECKSUMS, BinFile, BinFileError, open_bins, read_arrays, verify
from ranksieve.data.binning import Binning, sample_bytes
from ranksieve.data.blocks import Source
from ranksieve.data.disk_rows import WHOLE_BYTES
from ranksieve.data.free_memory import available_memory, resident_memory
from ranksieve.data.stored_bins import FileSink, StoredBins
from ranksieve.dtypes import GRADE
from ranksieve.errors import DataError, ParameterError, ParamName, joined_parts, param
from ranksieve.text_formats import AUTO, file_size, memory_size, read_size, unit_hint

LOG = logging.getLogger("ranksieve")
SHARE = 0.7  # share of the free memory that bins may take, if no limit is given
DOC_BYTES = 14  # bytes of a document whose bins are in a file: score, number of trees, place in memory
LABEL_BYTES = 5  # most bytes of its label: a label larger than a byte also has a byte for "is 0"
POSITIVE_BYTES = 4  # more of a positive: its row
TOP_BYTES = 8  # more of a validation set: scores of the best documents, at the end those that ties are checked by
WORKER_BYTES = 12  # more on a worker of a cluster: initial score, place in the coordinator's cache
FOREST_BYTES = 10  # more for each further forest of a bag: score, number of its trees
MEMORY_BYTES = 55  # of a document besides its bins, where these are in memory: label, scores, gradients, work arrays
WORK_BYTES = 48 << 20  # libraries and kernels that are loaded, blocks of the bin file
FEATURE_BYTES = 448 << 10  # bytes of a feature: blocks and buffers of data that is read, or histograms
LEAST_ROWS = 1_024  # fewest rows that have to fit into memory with the scores of all documents
BESIDE = 8  # validation bins up to one part in so many of the memory stay in memory
ENDING = ".bins"
THRESHOLD_RULE = 2  # files whose thresholds were learned in another way are written again
HASH_DIGITS = 8  # in the names of bin files that are not beside their data


class Listener:
    """Receives the progress of making bins, and notes; this one shows no progress, and logs notes."""

    def prepare(self, doing: str, share: float) -> None:
        """What is done, and the share of it that is done."""

    def note(self, *parts: str | ParamName) -> None:
        """One line that a user should see: text, and parameters by name."""
        LOG.warning(joined_parts(parts))


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
        Receives progress and notes.
    forests
        How many forests a run trains; each has its own scores.
    on_cluster
        Whether this is a worker of a cluster.
    """

    memory: str = AUTO
    folder: str = AUTO
    keep: bool = True
    listener: Listener = field(default_factory=Listener)
    forests: int = 1
    on_cluster: bool = False
    _in_files: int = field(default=0, init=False)  # documents whose bins are in files
    _doc_bytes: int = field(default=0, init=False)  # that these take
    _column_bytes: int = field(default=0, init=False)  # of their labels, weights, positions and order
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

    def fits(self, n_docs: int, width: int, *, validation: bool = False) -> bool:
        """Whether bins can be in memory; `validation`: those of a validation set."""
        if self._limit is None and self._free is None:
            return True
        n_bytes = n_docs * width + self._in_memory
        if validation and self._in_files:
            return n_bytes <= self._total // BESIDE
        if self._limit is None:
            return n_bytes <= SHARE * (self._free or 0)
        n_docs += self._in_memory // width
        return self._used(width) + n_bytes + n_docs * MEMORY_BYTES <= self._limit

    def rows_in_memory(self, file: BinFile) -> int:
        """How many rows of a file can be in memory at a time. Files share the memory by their numbers of documents."""
        used = self._used(file.width) + self._in_memory + self._doc_bytes + self._column_bytes
        left = (self._total - used) * file.n_rows / max(self._in_files, 1)
        return int(min(max(left // file.width, min(LEAST_ROWS, file.n_rows)), file.n_rows))

    def _used(self, width: int) -> int:
        """Bytes that the program takes besides documents."""
        return self._started + WORK_BYTES + width * FEATURE_BYTES

    def check_room(self, n_docs: int, width: int, source: str) -> None:
        """Refuse a limit that is too low for the scores of so many documents."""
        per_doc = self._per_doc + LABEL_BYTES + WHOLE_BYTES
        least = self._used(width) + self._in_memory + self._doc_bytes + n_docs * per_doc + LEAST_ROWS * width
        self._refuse_below(least, f"scores and gradients of {n_docs:,} documents of {source}", n_docs * per_doc, width)

    @property
    def _per_doc(self) -> int:
        """Bytes of a document whose bins are in a file, without its label."""
        return DOC_BYTES + FOREST_BYTES * (self.forests - 1) + WORKER_BYTES * self.on_cluster

    def check_sample(self, n_docs: int, width: int, source: str) -> None:
        """Refuse a limit that is too low for the rows that thresholds are computed from."""
        n_bytes = sample_bytes(n_docs, width)
        least = self._used(width) + self._in_memory + self._doc_bytes + n_bytes
        self._refuse_below(least, f"the rows of {source} that thresholds are computed from", n_bytes, width)

    def _refuse_below(self, least: int, what: str, n_bytes: int, width: int) -> None:
        if self._limit is not None and least > self._limit:
            program = memory_size(self._used(width))
            needs = (
                f"{what} take {memory_size(n_bytes)}, and the program {program}"
                if n_bytes
                else f"the program takes {program}"
            )
            hint = unit_hint(self.memory)
            raise ParameterError(
                param("memory", self.memory), f" is {hint} It is" if hint else " is",
                f" too little: {needs}; give at least {-(-least * 11 // 10 >> 20)}M",
            )  # fmt: skip

    def key(self, source: Source, most: Mapping[str, int], binning: Binning | None) -> str | None:
        """What a bin file of the source has to match to be used again; None if it cannot be."""
        fingerprint = source.fingerprint()
        if fingerprint is None:
            return None
        cuts: Any = {**most, "rule": THRESHOLD_RULE}
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

    def find(self, source: Source, key: str | None, *, validation: bool = False) -> StoredBins | None:
        """The bins that an earlier run has written, verified; None if there are none, or if they fit into memory."""
        path = None if key is None else self.path(source.names)
        if path is None or not path.is_file():
            return None
        try:
            file, note = open_bins(path)
            n_docs, width = note["shape"]
            if note.get("key") != key or self.fits(n_docs, width, validation=validation):
                return None
            self.check_room(n_docs, width, source.path)
            arrays = read_arrays(file)
            verify(file, arrays[CHECKSUMS], lambda done: self.listener.prepare(f"checking {path.name}", done))
            stored = StoredBins.from_arrays(file, note, arrays, source.path)
        except (BinFileError, KeyError, TypeError) as error:
            self.listener.note(f"{path}: the bin file is damaged ({error}); it is written again")
            return None
        self.listener.note(f"{path}: {file_size(file.n_bytes)} of bins are read from this file of an earlier run")
        return self.use_file(stored, validation=validation)

    def new_file(
        self, source: Source | None, key: str | None, n_docs: int, width: int, *, validation: bool = False
    ) -> FileSink | None:
        """Where to write the bins of a data set; None if they fit into memory."""
        name, n_bytes = "the data" if source is None else source.path, n_docs * width
        if self.fits(n_docs, width, validation=validation):
            self._in_memory += n_bytes
            if self._limit is not None and not validation:
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
            path = self.path(source.names)
        _check_space(path, n_bytes)
        free = f"more than {SHARE:.0%} of the free memory, {file_size(self._free or 0)}"
        why = "" if self._limit is not None else f", {free}"
        keep = self.keep and not temporary
        what = "they are kept" if keep else "during the training they are"
        self.listener.note(f"the bins of {name} take {file_size(n_bytes)}{why}; {what} in {path}")
        return FileSink(path, width, key, partial(self.use_file, keep=keep, validation=validation))

    def use_file(self, stored: StoredBins, *, keep: bool | None = None, validation: bool = False) -> StoredBins:
        """Count the documents of a file that is used from now on."""
        if not validation:  # metrics need the labels of validation sets for every tree
            stored = replace(stored, lists=stored.lists.small())
        n_docs, lists = stored.file.n_rows, stored.lists
        columns = (lists.weights, lists.positions, lists.order)
        self._in_files += n_docs
        self._doc_bytes += n_docs * (self._per_doc + TOP_BYTES * validation)
        self._column_bytes += sum(column.nbytes for column in columns if column is not None)
        self._column_bytes += lists.n_docs if lists.stored_labels.dtype == GRADE else lists.n_docs * LABEL_BYTES
        self._column_bytes += POSITIVE_BYTES * int(np.count_nonzero(lists.stored_labels))
        if not (self.keep if keep is None else keep):
            stored.file.remove()
        return stored


class MemoryStore(BinStore):
    """Bins are in memory, however large they are, and none are looked for in files."""

    def fits(self, n_docs: int, width: int, *, validation: bool = False) -> bool:
        return True

    def key(self, source: Source, most: Mapping[str, int], binning: Binning | None) -> None:
        return None


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


def _digest(*arrays: np.ndarray) -> str:
    """Of the lengths and contents of arrays."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(f"{len(array)} ".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()

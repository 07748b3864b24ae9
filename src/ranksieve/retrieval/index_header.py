"""The header of an index: its fields, first stage and vectors, and the shapes and checksums of its arrays."""

from __future__ import annotations

import json
import operator
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from ranksieve.data.other_files import INDEX_HEADER, JSON_LINES, other_file
from ranksieve.errors import DataError, RanksieveError
from ranksieve.models.load import is_model
from ranksieve.retrieval.analysis import Field
from ranksieve.retrieval.first_stage import FirstStage
from ranksieve.retrieval.vectors import SIMILARITIES

FORMAT = 6
HEADER = INDEX_HEADER

# Every array of an index: its type, and its shape in terms of the header's sizes (one size per axis).
ARRAYS: dict[str, tuple[str, tuple[str, ...]]] = {
    "term_bytes": ("u1", ("term_bytes",)),  # the terms, sorted, one behind the other
    "term_ends": ("i8", ("terms",)),
    "id_bytes": ("u1", ("id_bytes",)),  # the documents' ids
    "id_ends": ("i8", ("docs",)),
    "entry_starts": ("i8", ("terms + 1",)),
    "docs": ("i4", ("entries",)),
    "fields": ("u1", ("entries",)),
    "tfs": ("i4", ("entries",)),
    "position_starts": ("u4", ("entries",)),  # bytes from the term's first one
    "positions": ("u1", ("position_bytes",)),
    "byte_starts": ("i8", ("terms + 1",)),
    "forward_starts": ("i8", ("docs + 1",)),
    "forward_terms": ("i4", ("forward",)),  # the terms of every document, in order
    "forward_tfs": ("i4", ("forward",)),  # over all fields
    "forward_firsts": ("u1", ("forward",)),  # the earliest place in a field, at most 255
    "document_frequency": ("i4", ("terms", "columns")),  # columns: the fields, then all of them together
    "collection_frequency": ("i8", ("terms", "columns")),
    "lengths": ("i4", ("columns", "docs")),
    "distinct": ("i4", ("columns", "docs")),
    "norms": ("f4", ("columns", "docs")),  # of the tf·idf vectors
    "numbers": ("f4", ("numbers", "docs")),
    "text_bytes": ("u1", ("text_bytes",)),  # the documents' texts, compressed one by one
    "text_ends": ("i8", ("texts",)),  # as many as documents, or none
    "vectors": ("u1", ("vectors", "vector_bytes")),  # as many as documents, or none; numbers as the header says
    "vector_lengths": ("f8", ("vectors",)),
    "graph": ("u1", ("graph_bytes",)),  # of nearest neighbours
    "encoder_weights": ("f4", ("encoder_buckets",)),
    "encoder_components": ("f4", ("encoder_buckets", "encoder_dimension")),
}
SIZES = tuple(dict.fromkeys(axis.removesuffix(" + 1") for _, axes in ARRAYS.values() for axis in axes))
VECTOR_SIZES = ("vectors", "vector_bytes", "graph_bytes", "encoder_buckets", "encoder_dimension")
VECTOR_TYPES = ("<f4", "<f2")


@dataclass(frozen=True)
class VectorInfo:
    """How the vectors of an index are stored and compared."""

    dtype: str
    similarity: str
    function: str = ""  # the name of the function that made them, where one did

    @classmethod
    def from_dict(cls, values: dict[str, str] | None, sizes: dict[str, int]) -> VectorInfo | None:
        """What a header says, which must fit the sizes of its arrays."""
        if values is None:
            if any(sizes[axis] for axis in VECTOR_SIZES):
                raise ValueError("vectors are not described")
            return None
        found = cls(**values)
        if found.dtype not in VECTOR_TYPES or found.similarity not in SIMILARITIES:
            raise ValueError("vectors are of another kind")
        dimension, rest = divmod(sizes["vector_bytes"], np.dtype(found.dtype).itemsize)
        encoded = dimension if sizes["encoder_buckets"] else 0
        if rest or not dimension or sizes["vectors"] != sizes["docs"] or sizes["encoder_dimension"] != encoded:
            raise ValueError("sizes of vectors are out of range")
        return found


@dataclass(frozen=True)
class IndexHeader:
    """The metadata that an index stores."""

    fields: tuple[Field, ...]
    numbers: tuple[str, ...]
    sizes: dict[str, int]
    notes: tuple[str, ...]
    checksums: dict[str, list[int]]  # by array: the checksums of its blocks
    stage: FirstStage | None = None  # to use where none is given
    vectors: VectorInfo | None = None

    def as_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "fields": [field.as_dict() for field in self.fields],
            "numbers": list(self.numbers),
            "stage": None if self.stage is None else self.stage.as_dict(),
            "vectors": None if self.vectors is None else {name: v for name, v in vars(self.vectors).items() if v},
            "sizes": self.sizes,
            "notes": list(self.notes),
            "checksums": self.checksums,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> IndexHeader:
        sizes = {axis: operator.index(values["sizes"][axis]) for axis in SIZES}
        counts = {"columns": len(values["fields"]) + 1, "numbers": len(values["numbers"])}
        in_range = all(0 <= size < 1 << 63 for size in sizes.values()) and sizes["texts"] in (0, sizes["docs"])
        if not in_range or sizes != sizes | counts:
            raise ValueError("sizes are out of range")
        return cls(
            tuple(map(Field.from_dict, values["fields"])),
            tuple(values["numbers"]),
            sizes,
            tuple(values["notes"]),
            {name: list(map(operator.index, values["checksums"][name])) for name in ARRAYS},
            None if values["stage"] is None else FirstStage(**values["stage"]),
            VectorInfo.from_dict(values["vectors"], sizes),
        )

    def write(self, folder: Path) -> None:
        values = self.as_dict()
        with open(folder / HEADER, "w", encoding="utf-8") as file:
            file.write(json.dumps({**values, "checksum": _header_checksum(values)}, indent=1) + "\n")
            file.flush()
            os.fsync(file.fileno())

    @classmethod
    def read(cls, folder: Path) -> IndexHeader:
        """The header of an index, or an error with the reason why the folder is not one."""
        path = folder / HEADER
        if folder.is_file():
            raise DataError(f"{folder}: {_refusal(str(folder))}")
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            version, checksum = operator.index(values["format"]), values.pop("checksum", None)
            if version == FORMAT:
                if checksum != _header_checksum(values):
                    raise ValueError("it has changed since it was written")
                return cls.from_dict(values)
        except OSError as error:
            what = f"it holds no {HEADER}" if folder.exists() else "there is no such folder"
            what = what if isinstance(error, FileNotFoundError) else f"{HEADER}: {error.strerror}"
            raise DataError(
                f"{folder}: is not an index ({what}); make one with: ranksieve index CORPUS --out {folder}"
            ) from error
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, RanksieveError) as error:
            raise DataError(
                f"{path}: the header is damaged ({type(error).__name__}: {error}); index the corpus again"
            ) from error
        raise DataError(
            f"{folder}: is an index of format {version}, this version of ranksieve reads format {FORMAT}; "
            "index the corpus again"
        )


def _refusal(path: str) -> str:
    """What to say of a file in the place of an index."""
    other = other_file(path)
    if other is not None and other is not JSON_LINES:
        return other.refusal("an index")
    if other is None and is_model(path):
        return f"is a model, not an index; give the index first, as in: ranksieve serve INDEX --model {path}"
    return f"is a file, not an index; make one with: ranksieve index {path} --out INDEX"


def _header_checksum(values: dict[str, Any]) -> int:
    return crc32(json.dumps(values, sort_keys=True).encode())

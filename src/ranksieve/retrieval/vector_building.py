"""Vectors of documents written into an index: from arrays and files, or from an encoder."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ranksieve.errors import DataError, ParameterError, RanksieveWarning, caller_level, check_choice, param
from ranksieve.retrieval.encoders import FITTED_TEXTS, LONGEST_TEXT, SVD, Encode, SvdEncoder, encoded, svd_dimension
from ranksieve.retrieval.notes import Notes
from ranksieve.retrieval.storage import IndexWriter
from ranksieve.retrieval.vector_files import VectorTable, as_ids, row_of_ids
from ranksieve.retrieval.vectors import SIMILARITIES, GraphBuilder, check_extra, lengths_of
from ranksieve.text_formats import counted
from ranksieve.user_functions import function_name

BLOCK_DOCS = 1024  # encoded and written at a time


class Texts(Protocol):
    """Texts of documents that can be read again."""

    def read(self, docs: Iterable[int]) -> list[str]: ...


@dataclass
class VectorSource:
    """Where the vectors of documents come from: a table, an encoder, or an encoder that is fitted first."""

    similarity: str
    hnsw: bool
    table: VectorTable | None = None
    ids: list[str] | None = None  # of the table's rows; None if these are in the order of the corpus
    encode: Encode | None = None
    svd: int | None = None  # dimension of an encoder to fit and to store
    dtype: str = ""  # known once vectors are written

    @property
    def function(self) -> str:
        """The name of the user's function, if the vectors come from one."""
        return "" if self.encode is None or isinstance(self.encode, SvdEncoder) else function_name(self.encode)

    def write(
        self,
        ids: list[str],
        texts: Texts | None,
        writer: IndexWriter,
        notes: Notes,
        progress: Callable[[int, int], None] | None,
    ) -> dict[str, int]:
        """Write the vectors of all documents; returns the sizes of what was written."""
        row_bytes, done, graph, kind = 0, 0, None, ""
        for vectors in self._blocks(ids, texts, notes):
            if not done:
                self.dtype, row_bytes = vectors.dtype.str, vectors.shape[1] * vectors.itemsize
                kind = _kind(vectors)
                graph = GraphBuilder(vectors.shape[1], self.similarity) if self.hnsw else None
            if _kind(vectors) != kind:
                raise DataError(
                    f"the encoder returned {_kind(vectors)} after {kind}; expected the same for all documents"
                )
            lengths = lengths_of(vectors)
            zeros = (ids[done + row] for row in np.flatnonzero(lengths == 0).tolist())
            notes.extend("documents have a vector of zeros, so that their cosine is 0", zeros)
            writer.append("vectors", np.ascontiguousarray(vectors).view(np.uint8))
            writer.append("vector_lengths", lengths)
            if graph is not None:
                graph.add(vectors)
            done += len(vectors)
            if progress is not None:
                progress(done, len(ids))
        stored = np.empty(0, np.uint8) if graph is None else graph.stored()
        writer.append("graph", stored)
        sizes = {"vectors": done, "vector_bytes": row_bytes, "graph_bytes": len(stored)}
        if isinstance(self.encode, SvdEncoder):
            writer.append("encoder_weights", self.encode.weights)
            writer.append("encoder_components", self.encode.components)
            sizes |= zip(("encoder_buckets", "encoder_dimension"), self.encode.components.shape, strict=True)
        return sizes

    def _blocks(self, ids: list[str], texts: Texts | None, notes: Notes) -> Iterator[np.ndarray]:
        """The vectors, some documents at a time."""
        blocks = [range(start, min(start + BLOCK_DOCS, len(ids))) for start in range(0, len(ids), BLOCK_DOCS)]
        if self.table is not None:
            rows, unknown = row_of_ids(self.table, ids, self.ids, "document")
            notes.extend("vectors are of documents that the corpus does not have, and are left out", unknown)
            yield from (self.table.take(rows[some.start : some.stop]) for some in blocks)
            return
        assert texts is not None
        if self.svd is not None:
            spread = np.unique(np.linspace(0, len(ids) - 1, min(FITTED_TEXTS, len(ids))).astype(np.int64))
            some = [text[:LONGEST_TEXT] for doc in spread.tolist() for text in texts.read([doc])]
            self.encode = SvdEncoder.fit(some, self.svd)
            if (dimension := self.encode.components.shape[1]) < self.svd:
                warnings.warn(
                    RanksieveWarning(
                        param("vectors", f"{SVD}{self.svd}"), f" has {counted(dimension=dimension)}, as many as there "
                        "are texts to fit it on; expected more documents than dimensions, so use fewer, as in svd:"
                        f"{max(1, min(128, dimension // 2))}",
                    ),
                    stacklevel=caller_level(),
                )  # fmt: skip
        assert self.encode is not None
        yield from (encoded(self.encode, texts.read(some)) for some in blocks)


def vector_source(vectors: Any, ids: Any, similarity: str, *, hnsw: bool, has_texts: bool) -> VectorSource | None:
    """The source that `Index.build` is given, checked as far as it can be before documents are read."""
    check_choice("similarity", similarity, SIMILARITIES)
    if vectors is None:
        for name, given in (("vector_ids", ids is not None), ("hnsw", hnsw)):
            if given:
                raise ParameterError(param(name), " needs vectors; give them with ", param("vectors"))
        return None
    if hnsw:
        check_extra()
    is_svd = isinstance(vectors, str) and f"{vectors}:".startswith(SVD) and not os.path.exists(vectors)
    if isinstance(vectors, str) and not (is_svd or vectors.endswith(".npy") or os.path.exists(vectors)):
        raise ParameterError(
            param("vectors"), f" is {vectors!r}, which is not a file; expected FILE.npy, svd:N as in svd:128, or a "
            "function (on the command line FILE.py:FUNCTION)",
        )  # fmt: skip
    if not (is_svd or callable(vectors)):
        return VectorSource(similarity, hnsw, VectorTable.of(vectors), as_ids(ids))
    if ids is not None:
        raise ParameterError(param("vector_ids"), " are for arrays and files; an encoder gets the texts in their order")
    if not has_texts:
        raise ParameterError(
            param("texts"), " is off, but an encoder reads the stored texts; leave it on, or give vectors as a file"
        )
    if is_svd:
        return VectorSource(similarity, hnsw, svd=svd_dimension(vectors))
    return VectorSource(similarity, hnsw, encode=vectors)


def _kind(vectors: np.ndarray) -> str:
    return f"{vectors.dtype} vectors of dimension {vectors.shape[1]}"

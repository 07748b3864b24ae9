"""`Index`: a corpus on disk, ready to be searched."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from ranksieve.errors import ParameterError
from ranksieve.files import restore_folder
from ranksieve.retrieval.analysis import ALL
from ranksieve.retrieval.building import IndexSettings, build_index
from ranksieve.retrieval.corpus import Corpus, Document
from ranksieve.retrieval.encoders import SVD, SvdEncoder
from ranksieve.retrieval.first_stage import as_first_stage
from ranksieve.retrieval.index_header import FORMAT
from ranksieve.retrieval.notes import logged_notes
from ranksieve.retrieval.storage import Postings, open_folder
from ranksieve.retrieval.texts import unpacked
from ranksieve.retrieval.vectors import Graph, StoredVectors
from ranksieve.text_formats import counted

FILES = "arrays or files"  # in place of an encoder's name
UNKNOWN = -1  # in place of a term that occurs nowhere
ENTRIES = ("docs", "fields", "tfs", "position_starts")  # arrays with one value per term, document and field
FORWARD = ("forward_terms", "forward_tfs", "forward_firsts")


class Index:
    """An index on disk, opened; its arrays are mapped into memory and read where needed.

    It holds files open until it is closed (`close`, or `with Index(path) as index:`) or no longer used.

    Attributes
    ----------
    fields
        The fields, in the order of their numbers.
    numbers
        Names of the numeric fields that are features.
    stage
        The first stage to use where none is given; None if the index was built without one.
    notes
        What is unusual about the corpus, such as documents without a field.

    Examples
    --------
    >>> corpus = [{"id": "a", "text": "a red car"}, {"id": "b", "text": "red wine, red roses"}]
    >>> Index.build(corpus, "index").close()
    >>> with Index("index") as index:
    ...     print(index.n_docs)
    2
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        if not self.path.exists():
            restore_folder(self.path)
        header, self._arrays = open_folder(self.path)
        self.sizes = header.sizes
        self.fields = header.fields
        self.numbers = header.numbers
        self.stage = header.stage
        self.notes = header.notes
        self._vector_info = header.vectors
        self._encoder_checksums = [header.checksums[name] for name in ("encoder_weights", "encoder_components")]

    @classmethod
    def build(
        cls,
        corpus: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Iterable[Document] | Corpus,
        out: str | os.PathLike[str],
        *,
        replace: bool = False,
        progress: Callable[[int], None] | None = None,
        vector_progress: Callable[[int, int], None] | None = None,
        **settings: Any,
    ) -> Index:
        """Index a corpus.

        Parameters
        ----------
        corpus
            A file of JSON Lines, tab-separated text or Parquet (text may be compressed), a folder of text files,
            several of these in a list, documents as dicts, or a DataFrame.
        out
            The folder to write.
        replace
            Replace an existing index.
        progress
            Called now and then with the number of documents read.
        vector_progress
            Called now and then with the number of documents that have their vector, and of all.
        fields
            Fields to index, as `Field`s or as `parse_field` reads them, such as "title" or "file:nostem=path~[^/]+$";
            all text fields if empty.
        numbers
            Numeric fields to keep as features of the documents.
        id
            The field that holds the ids; `id`, `_id`, `docno`, `doc_id` or `docid` if None, whichever the first
            document has.
        analyzer
            How fields given by name are analysed.
        positions
            Whether fields given by name keep positions; True.
        memory
            Bytes that texts and postings may take while indexing, however large the corpus is; besides, every document
            costs a few dozen bytes; 1 GiB.
        stage
            The first stage to use for this index where none is given: a `FirstStage`, a model's name, or a file.
        texts
            Store the texts of the fields, compressed, so that `document` and `ranksieve serve` can show them; True.
        vectors
            Vectors of the documents: an array or a `.npy` file with one row per document (several in a list are one
            below the other), a function texts → array such as the `encode` of sentence-transformers, or "svd:128" to
            fit an encoder on the texts, which then encodes queries, too.
        vector_ids
            The documents' ids in the order of the rows, or a file with one per line; the order of the corpus if None.
        similarity
            The similarity of vectors: "cosine" or "dot".
        hnsw
            Build a graph for approximate search (extra `hnsw`), which `FirstStage("dense", ef=200)` uses.

        Examples
        --------
        >>> from ranksieve.retrieval import search
        >>> corpus = [{"id": "a", "text": "a red car"}, {"id": "b", "text": "red wine, red roses"}]
        >>> index = Index.build(corpus, "index2")
        >>> [(hit.docno, hit.rank) for hit in search(index, "red roses", k=5)]
        [('b', 1), ('a', 2)]
        """
        chosen = IndexSettings(**{**settings, "stage": as_first_stage(settings.get("stage"))})
        source = corpus if isinstance(corpus, Corpus) else Corpus(corpus)
        with logged_notes() as notes:
            build_index(
                source, out, chosen, replace=replace, progress=progress, vector_progress=vector_progress,
                notes=notes,
            )  # fmt: skip
        return cls(out)

    def close(self) -> None:
        """Close the files; the index cannot be used any more."""
        for name in ("ids", "encoder", "graph"):
            self.__dict__.pop(name, None)
        self._arrays.close()

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Index({counted(document=self.n_docs, term=self.n_terms)}, fields {', '.join(self.field_names)})"

    def verify(self) -> None:
        """Compare every byte with the checksums written with it; raises `DataError` where one has changed."""
        self._arrays.check_all()

    def describe(self) -> dict[str, Any]:
        """Facts about the index: documents, terms, mean lengths of fields, numbers, first stage, size, notes."""
        return {
            "path": str(self.path),
            "format": FORMAT,
            "documents": self.n_docs,
            "terms": self.n_terms,
            "bytes": self._arrays.n_bytes,
            "fields": dict(zip(self.columns, self.lengths.mean(axis=1).tolist(), strict=True)),
            "numbers": list(self.numbers),
            "stage": None if self.stage is None else str(self.stage),
            "vectors": self._describe_vectors(),
            "notes": list(self.notes),
        }

    def _describe_vectors(self) -> dict[str, Any] | None:
        vectors = self.vectors
        if vectors is None:
            return None
        return {
            "dimension": vectors.dimension,
            "dtype": vectors.dtype,
            "similarity": vectors.similarity,
            "encoder": (self.encoder_info or {})["name"],
            "encodes queries": self.encoder is not None,
            "hnsw": self.sizes["graph_bytes"] > 0,
        }

    @property
    def n_docs(self) -> int:
        return self.sizes["docs"]

    @property
    def n_terms(self) -> int:
        return self.sizes["terms"]

    @property
    def field_names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the fields, and `all`."""
        return (*self.field_names, ALL)

    @property
    def document_frequency(self) -> np.ndarray:
        """(terms, fields + 1): documents that have a term in a field; the last column is over all fields."""
        return self._arrays.whole("document_frequency")

    @property
    def collection_frequency(self) -> np.ndarray:
        """(terms, fields + 1): occurrences of a term in a field; the last column is over all fields."""
        return self._arrays.whole("collection_frequency")

    @property
    def lengths(self) -> np.ndarray:
        """(fields + 1, documents): terms in each field, and in all."""
        return self._arrays.whole("lengths")

    @cached_property
    def total_lengths(self) -> np.ndarray:
        """Terms of the corpus in each field, and in all."""
        return np.asarray(self.lengths.sum(axis=1, dtype=np.int64))

    @cached_property
    def ids(self) -> np.ndarray:
        """The documents' ids."""
        blob, ends = self._arrays.whole("id_bytes").tobytes(), self._arrays.whole("id_ends").tolist()
        ids = np.empty(len(ends), dtype=object)
        ids[:] = [blob[start:end].decode() for start, end in zip([0, *ends[:-1]], ends, strict=True)]
        return ids

    @cached_property
    def numbers_of_ids(self) -> dict[str, int]:
        """The number of each document."""
        return {id: number for number, id in enumerate(self.ids)}

    def term_number(self, term: str) -> int:
        """The number of a term, by binary search in the sorted vocabulary; -1 where it does not occur."""
        wanted, blob, ends = term.encode(), self._arrays.whole("term_bytes"), self._arrays.whole("term_ends")
        low, high = 0, len(ends)
        while low < high:
            middle = (low + high) // 2
            if blob[ends[middle - 1] if middle else 0 : ends[middle]].tobytes() < wanted:
                low = middle + 1
            else:
                high = middle
        start = ends[low - 1] if low else 0
        return low if low < len(ends) and blob[start : ends[low]].tobytes() == wanted else UNKNOWN

    def term(self, number: int) -> str:
        """A term by its number."""
        ends = self._arrays.whole("term_ends")
        blob = self._arrays.whole("term_bytes")
        return blob[ends[number - 1] if number else 0 : ends[number]].tobytes().decode()

    @property
    def has_texts(self) -> bool:
        """Whether it was built with `texts`."""
        return self.sizes["texts"] > 0

    def document(self, number: int) -> dict[str, str]:
        """The texts of a document by the names of its fields in the corpus; empty if the index does not have them.

        Examples
        --------
        >>> corpus = [{"id": "a", "text": "a red car"}, {"id": "b", "text": "red wine, red roses"}]
        >>> with Index.build(corpus, "index3") as index:
        ...     index.document(index.numbers_of_ids["b"])
        {'text': 'red wine, red roses'}
        """
        if not 0 <= number < self.n_docs:
            raise ParameterError(f"document {number} does not exist; expected a number from 0 to {self.n_docs - 1}")
        if not self.has_texts:
            return {}
        ends = self._arrays.whole("text_ends")
        part = np.array([ends[number - 1] if number else 0]), np.array([ends[number]])
        self._arrays.check_parts(("text_bytes",), *part)
        return unpacked(self._arrays.unchecked("text_bytes")[part[0][0] : part[1][0]].tobytes())

    @property
    def vectors(self) -> StoredVectors | None:
        """The vectors of the documents, if the index was built with them."""
        info = self._vector_info
        return None if info is None else StoredVectors(self._arrays, info.dtype, info.similarity)

    @cached_property
    def encoder(self) -> SvdEncoder | None:
        """The encoder that was fitted on the corpus, if there is one."""
        if not self.sizes["encoder_buckets"]:
            return None
        return SvdEncoder(*map(self._arrays.whole, ("encoder_weights", "encoder_components")))

    @property
    def encoder_info(self) -> dict[str, Any] | None:
        """What made the vectors of the documents, which models that use them store; None without vectors.

        Its `name` is svd:128 or such, the name of a function, or FILES; an encoder that was fitted on the corpus has a
        `digest`.
        """
        vectors, info = self.vectors, self._vector_info
        if vectors is None or info is None:
            return None
        if not self.sizes["encoder_buckets"]:
            return {"name": info.function or FILES, "dimension": vectors.dimension}
        digest = crc32(json.dumps(self._encoder_checksums).encode())
        return {"name": f"{SVD}{vectors.dimension}", "dimension": vectors.dimension, "digest": f"{digest:08x}"}

    @cached_property
    def graph(self) -> Graph | None:
        """The graph for approximate search, if there is one."""
        if self._vector_info is None or not self.sizes["graph_bytes"]:
            return None
        self._arrays.whole("graph")  # checked: faiss trusts what it reads
        return Graph(self.path / "graph.bin", self._vector_info.similarity)

    def document_array(self, name: str) -> np.ndarray:
        """`distinct`, `norms` or `numbers`: one row per field or number, one column per document."""
        return self._arrays.whole(name)

    def postings(self, terms: np.ndarray) -> Postings:
        """The postings; those of the given terms are checked."""
        arrays = self._arrays
        entries, positions = arrays.whole("entry_starts"), arrays.whole("byte_starts")
        arrays.check_parts(ENTRIES, entries[terms], entries[terms + 1])
        arrays.check_parts(("positions",), positions[terms], positions[terms + 1])
        return Postings(*map(arrays.unchecked, Postings._fields))

    def forward(self, docs: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
        """Where each document's terms start, the terms and their frequencies over all fields; and their first places.

        Those of the given documents are checked. A first place is the earliest in any field, at most 255.
        """
        starts = self._arrays.whole("forward_starts")
        self._arrays.check_parts(FORWARD, starts[docs], starts[docs.astype(np.int64) + 1])
        terms, frequencies, firsts = map(self._arrays.unchecked, FORWARD)
        return (starts, terms, frequencies), firsts

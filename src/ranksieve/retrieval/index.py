"""`Index`: a corpus ready to be searched."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ranksieve.retrieval.analysis import Analyzer
from ranksieve.retrieval.fields import ALL, Field
from ranksieve.retrieval.models import FirstStage
from ranksieve.retrieval.notes import Notes, remarks
from ranksieve.retrieval.queries import UNKNOWN, QueryAnalysis, as_queries
from ranksieve.retrieval.storage import Postings, map_arrays, read_header
from ranksieve.text_formats import counted

if TYPE_CHECKING:
    from ranksieve.data.dataset import Dataset
    from ranksieve.retrieval.runs import Run


class Hit(NamedTuple):
    """One document found."""

    docno: str
    score: float
    rank: int  # from 1, as in TREC runs


class Index:
    """An index on disk, opened; its arrays are mapped into memory and read where needed.

    Attributes
    ----------
    fields
        The fields, in the order of their numbers.
    numbers
        Names of the numeric fields that features are made of.
    document_frequency, collection_frequency
        (terms, fields + 1): documents with a term in a field and its occurrences; the last column is over all fields.
    lengths
        (fields + 1, documents): terms in each field.
    notes
        What was odd about the corpus, such as documents without a field.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        header = read_header(self.path)
        self.sizes = header.sizes
        self.fields = header.fields
        self.numbers = header.numbers
        self.notes = header.notes
        self._arrays = map_arrays(self.path, header)
        self.postings = Postings(*(self._arrays[name] for name in Postings._fields))
        self.document_frequency = self._arrays["document_frequency"]
        self.collection_frequency = self._arrays["collection_frequency"]
        self.lengths = self._arrays["lengths"]
        self.analysis = QueryAnalysis(self.fields, self.term_number)

    @classmethod
    def build(
        cls,
        corpus: str | os.PathLike[str] | Iterable[dict[str, Any]],
        out: str | os.PathLike[str],
        *,
        fields: str | Field | Sequence[str | Field] = (),
        numbers: str | Sequence[str] = (),
        id: str | None = None,
        analyzer: Analyzer | None = None,
        positions: bool = True,
        memory: int = 1 << 30,
        replace: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> Index:
        """Index a corpus.

        Parameters
        ----------
        corpus
            A file of JSON Lines, tab-separated text or Parquet (text may be compressed), a folder of text files,
            documents as dicts, or a DataFrame.
        out
            The folder to write.
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
            Whether fields given by name keep positions.
        memory
            Bytes that texts and postings may take while indexing, however large the corpus is; besides, every document
            costs a few dozen bytes.
        replace
            Replace an index that is there.
        progress
            Called now and then with the number of documents read.

        Examples
        --------
        >>> import tempfile
        >>> corpus = [{"id": "a", "text": "a red car"}, {"id": "b", "text": "red wine, red roses"}]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     index = Index.build(corpus, f"{folder}/index")
        ...     [(hit.docno, hit.rank) for hit in index.search("red roses", k=5)]
        [('b', 1), ('a', 2)]
        """
        from ranksieve.retrieval.building import build_index

        with remarks(None) as notes:
            build_index(
                corpus, out, fields=fields, numbers=numbers, id=id, analyzer=analyzer, positions=positions,
                memory=memory, replace=replace, progress=progress, notes=notes,
            )  # fmt: skip
        return cls(out)

    def __repr__(self) -> str:
        names = ", ".join(field.name for field in self.fields)
        return f"Index({counted(document=self.n_docs, term=self.n_terms)}, fields {names})"

    @property
    def n_docs(self) -> int:
        return self.sizes["docs"]

    @property
    def n_terms(self) -> int:
        return self.sizes["terms"]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the fields, and `all`."""
        return (*(field.name for field in self.fields), ALL)

    @cached_property
    def total_lengths(self) -> np.ndarray:
        """Terms in each field, and in all."""
        return self.lengths.sum(axis=1, dtype=np.int64)

    @cached_property
    def ids(self) -> np.ndarray:
        """The documents' ids."""
        blob, ends = self._arrays["id_bytes"].tobytes(), self._arrays["id_ends"].tolist()
        ids = np.empty(len(ends), dtype=object)
        ids[:] = [blob[start:end].decode() for start, end in zip([0, *ends[:-1]], ends, strict=True)]
        return ids

    @cached_property
    def numbers_of_ids(self) -> dict[str, int]:
        """The number of each document."""
        return {id: number for number, id in enumerate(self.ids)}

    def term_number(self, term: str) -> int:
        """The number of a term, by binary search in the sorted vocabulary; -1 where it does not occur."""
        wanted, blob, ends = term.encode(), self._arrays["term_bytes"], self._arrays["term_ends"]
        low, high = 0, len(ends)
        while low < high:
            middle = (low + high) // 2
            if blob[ends[middle - 1] if middle else 0 : ends[middle]].tobytes() < wanted:
                low = middle + 1
            else:
                high = middle
        start = ends[low - 1] if low else 0
        return low if low < len(ends) and blob[start : ends[low]].tobytes() == wanted else UNKNOWN

    def document_array(self, name: str) -> np.ndarray:
        """`distinct`, `norms` or `numbers`: one row per field or number, one column per document."""
        return self._arrays[name]

    @property
    def forward(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The terms of documents: where each document's start, the terms, and their frequencies over all fields."""
        return self._arrays["forward_starts"], self._arrays["forward_terms"], self._arrays["forward_tfs"]

    @property
    def forward_firsts(self) -> np.ndarray:
        """Where the terms of `forward` occur first in any field of the document; those behind place 255 have that."""
        return self._arrays["forward_firsts"]

    def retrieve(self, queries: Any, depth: int = 1000, stage: FirstStage | str | None = None) -> Run:
        """The `depth` best documents of every query by the first stage; `queries` as `as_queries` takes them."""
        from ranksieve.retrieval.searching import retrieve

        return retrieve(self, queries, depth, stage)

    def features(
        self,
        queries: Any,
        run: Run | Any = None,
        *,
        judgements: Mapping[str, Mapping[str, float]] | Any = None,
        depth: int = 1000,
        stage: FirstStage | str | None = None,
        select: str | Sequence[str] = (),
        extra: Mapping[str, Callable[[str, np.ndarray], Any]] | None = None,
        notes: Notes | None = None,
    ) -> Dataset:
        """Features of candidates, as a data set to train on or to score.

        Parameters
        ----------
        queries
            A mapping from query ids to texts, (id, text) pairs, a DataFrame with `qid` and `query`, or a file as a
            `Path`.
        run
            The candidates: a `Run`, a DataFrame with `qid`, `docno` and `score`, or a TREC file; those of the first
            stage if None.
        judgements
            Grades of documents by query id, a DataFrame with `qid`, `docno` and `label`, or a file; all labels are 0
            without.
        depth
            Most candidates of a query.
        stage
            The first stage, or its model's name.
        select
            Names or patterns of features, such as `bm25*` or `*.title`; all if empty.
        extra
            Your own features by name: functions (query text, document ids) → one number per document.
        notes
            Gets remarks on what was left out; the logger `ranksieve` tells them if None.

        Examples
        --------
        >>> import tempfile
        >>> corpus = [{"id": "a", "text": "a red car"}, {"id": "b", "text": "red wine, red roses"}]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     index = Index.build(corpus, f"{folder}/index")
        ...     data = index.features({"q": "red roses"}, judgements={"q": {"b": 1}}, select=["tf_sum.text"])
        >>> data.features.tolist(), data.labels.tolist(), data.lists.doc_ids.tolist()
        ([[3.0], [1.0]], [1.0, 0.0], ['b', 'a'])
        """
        from ranksieve.retrieval.features import FeatureMaker
        from ranksieve.retrieval.labelling import Pairs, to_dataset
        from ranksieve.retrieval.runs import as_judgements, as_run
        from ranksieve.retrieval.searching import Searcher

        pairs = Pairs(as_queries(queries), Searcher(self, stage), depth, as_run(run), as_judgements(judgements))
        with remarks(notes) as taken:
            return to_dataset(pairs, FeatureMaker(self, select, extra), taken)

    def search(self, text: str, k: int = 10, stage: FirstStage | str | None = None) -> list[Hit]:
        """The k best documents for a text by the first stage alone; ranks count from 1."""
        from ranksieve.retrieval.searching import Searcher, check_depth

        check_depth(k, "k")
        docs, scores = Searcher(self, stage).candidates([text], k).list_of(0)
        return [
            Hit(self.ids[doc], float(score), rank)
            for rank, (doc, score) in enumerate(zip(docs, scores, strict=True), 1)
        ]

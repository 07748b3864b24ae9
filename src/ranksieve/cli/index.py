"""`ranksieve index`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from ranksieve.cli.console import show_facts
from ranksieve.cli.corpus_options import memory_size, show_notes, vector_facts, vectors_or_function
from ranksieve.cli.shared_options import out_option
from ranksieve.errors import DataError, ParameterError
from ranksieve.files import check_folder
from ranksieve.text_formats import UNITS, counted, duration, file_size, some_of

VECTORS = "Vectors"
Corpus = Annotated[
    list[Path],
    typer.Argument(metavar="CORPUS...", help="JSON Lines, TSV with a header, Parquet, or a folder of texts; "
                   "several are indexed as one corpus."),
]  # fmt: skip
Fields = Annotated[
    list[str] | None,
    typer.Option("--field", "-f", metavar="FIELD", show_default="all text fields",
                 help="Field to index: NAME, or NAME:OPTIONS=SOURCE~PATTERN. OPTIONS are lower, split, stop, stem "
                 "and positions, or each with 'no' in front, separated by commas. For example, "
                 "'file:nostem=path~[^/]+$' indexes what the pattern matches in the field 'path'."),
]  # fmt: skip
Numbers = Annotated[
    list[str] | None, typer.Option("--number", "-n", metavar="FIELD", help="Numeric field to use as a feature.")
]
Id = Annotated[
    str | None,
    typer.Option(
        metavar="FIELD", show_default="id, _id, docno, doc_id or docid", help="Field with the documents' ids."
    ),
]
Lower = Annotated[bool, typer.Option("--lower/--no-lower", help="Convert text to lower case.")]
Split = Annotated[bool, typer.Option("--split/--no-split", help="Also split camelCase and snake_case.")]
Stop = Annotated[str, typer.Option(metavar="WORDS", help="Stop words: english, none, or a file of words.")]
Stem = Annotated[str, typer.Option(metavar="LANGUAGE", help="Snowball stemmer: english, german, …, or none.")]
Positions = Annotated[
    bool, typer.Option("--positions/--no-positions", help="Store positions, for phrase and proximity features.")
]
Memory = Annotated[str, typer.Option(metavar="SIZE", help="Memory for texts and postings, such as 512M or 2G.")]
Stage = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Default first stage of this index: a file written by "
                 "'ranksieve retrieve --tune --save-stage'."),
]  # fmt: skip
Texts = Annotated[bool, typer.Option("--texts/--no-texts", help="Store the texts, which 'ranksieve serve' shows.")]
Vectors = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE.npy|svd:N|FILE.py:FUNCTION", rich_help_panel=VECTORS,
                 help="Vectors of the documents: a NumPy array (float32 or float16, one row per document; several "
                 "are one below the other), svd:128 to fit an encoder on the texts that also encodes queries, or a "
                 "function texts → array."),
]  # fmt: skip
VectorIds = Annotated[
    Path | None,
    typer.Option(metavar="FILE", rich_help_panel=VECTORS, show_default="the order of the corpus",
                 help="Document ids in the order of the rows of --vectors, one per line."),
]  # fmt: skip
Similarity = Annotated[
    str, typer.Option(metavar="cosine|dot", rich_help_panel=VECTORS, help="What makes vectors similar.")
]
Hnsw = Annotated[
    bool,
    typer.Option("--hnsw", rich_help_panel=VECTORS,
                 help="Build a graph for approximate search, which --set ef=200 uses."),
]  # fmt: skip


def index(
    corpus: Corpus,
    out: Annotated[Path, out_option("Folder for the index. One that exists is kept; see --replace.", metavar="DIR")],
    field: Fields = None,
    number: Numbers = None,
    id: Id = None,
    lower: Lower = True,
    split: Split = True,
    stop: Stop = "english",
    stem: Stem = "english",
    positions: Positions = True,
    memory: Memory = "1G",
    stage: Stage = None,
    texts: Texts = True,
    vectors: Vectors = None,
    vector_ids: VectorIds = None,
    similarity: Similarity = "cosine",
    hnsw: Hnsw = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace an existing index.")] = False,
) -> None:
    """Build an index of a corpus."""
    check_folder(out)
    from ranksieve.progress import ProgressDisplay
    from ranksieve.retrieval.analysis import Analyzer
    from ranksieve.retrieval.corpus import Corpus as Documents
    from ranksieve.retrieval.index import Index

    size = memory_size(memory, "--memory", least=UNITS["M"])
    source = Documents(corpus)
    analyzer = Analyzer(lower=lower, split=split, stop=_stop_words(stop), stem=stem)
    start = time.perf_counter()
    with ProgressDisplay("indexing", doing="reading documents", kernels="") as display:
        made = Index.build(
            source, out, fields=field or (), numbers=number or (), id=id, analyzer=analyzer, positions=positions,
            memory=size, stage=stage, texts=texts, vectors=_vectors(vectors), vector_ids=vector_ids,
            similarity=similarity, hnsw=hnsw, replace=replace,
            progress=lambda read: display.update(read, unit="document"),
            vector_progress=lambda done, most: display.update(done, most, unit="document", title="encoding"),
        )  # fmt: skip
    show_notes(made.notes)
    facts = made.describe()
    lengths = (f"{name} ({mean:,.1f} terms)" for name, mean in facts["fields"].items())
    show_facts(
        [
            ("index", f"{out}, {counted(document=made.n_docs, term=made.n_terms)}, {file_size(facts['bytes'])}"),
            ("fields", ", ".join(lengths)),
            *_number_facts(source, made, id),
            *([] if facts["vectors"] is None else [("vectors", vector_facts(facts["vectors"]))]),
            ("time", duration(time.perf_counter() - start)),
        ]
    )


def _number_facts(corpus: Any, made: Any, id: str | None) -> list[tuple[str, str]]:
    """The numeric fields that the index keeps, and those that it does not."""
    from ranksieve.retrieval.building import FIRST_DOCUMENTS
    from ranksieve.retrieval.corpus import IDS

    used = {*made.numbers, *(field.source for field in made.fields), *([id] if id else IDS)}
    unused = [name for name in corpus.number_fields(FIRST_DOCUMENTS) if name not in used]
    kept = [("numbers", ", ".join(made.numbers))] if made.numbers else []
    remedy = f"(numbers; keep them with --number {unused[0]})" if unused else ""
    return [*kept, ("not used", f"{some_of(unused)} {remedy}")] if unused else kept


def _vectors(given: list[str] | None) -> Any:
    """One source of vectors, or several files."""
    found = [vectors_or_function(one, "vectors") for one in given or ()]
    if len(found) > 1 and (bad := next((one for one in given or () if not one.endswith(".npy")), None)) is not None:
        raise ParameterError(
            f"--vectors is given {len(found)} times, one of them {bad!r}; only .npy files can be joined"
        )
    return None if not found else found[0] if len(found) == 1 else found


def _stop_words(stop: str) -> str | tuple[str, ...]:
    from ranksieve.retrieval.analysis import STOP_WORDS

    if stop in STOP_WORDS:
        return stop
    try:
        return tuple(Path(stop).read_text(encoding="utf-8").split())
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"--stop is {stop!r}: neither {' nor '.join(STOP_WORDS)}, and no file to read ({error}); give one of these"
        ) from error

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
from ranksieve.text_formats import counted, duration, file_size

VECTORS = "Vectors"


def index(
    corpus: Annotated[
        list[Path],
        typer.Argument(metavar="CORPUS...", help="JSON Lines, TSV with a header, Parquet, or a folder of texts; "
                       "several are indexed as one corpus."),
    ],
    out: Annotated[Path, out_option("Folder for the index.", metavar="DIR")],
    field: Annotated[
        list[str] | None,
        typer.Option("--field", "-f", metavar="FIELD", show_default="all text fields",
                     help="Field to index: NAME, or NAME:OPTIONS=SOURCE~PATTERN. OPTIONS are lower, split, stop, stem "
                     "and positions, or each with 'no' in front, separated by commas. For example, "
                     "'file:nostem=path~[^/]+$' indexes what the pattern matches in the field 'path'."),
    ] = None,
    number: Annotated[
        list[str] | None, typer.Option("--number", "-n", metavar="FIELD", help="Numeric field to use as a feature.")
    ] = None,
    id: Annotated[
        str | None,
        typer.Option("--id", show_default="id, _id, docno, doc_id or docid",
                     metavar="FIELD", help="Field with the documents' ids."),
    ] = None,
    lower: Annotated[bool, typer.Option("--lower/--no-lower", help="Convert text to lower case.")] = True,
    split: Annotated[bool, typer.Option("--split/--no-split", help="Also split camelCase and snake_case.")] = True,
    stop: Annotated[
        str, typer.Option(metavar="WORDS", help="Stop words: english, none, or a file of words.")
    ] = "english",
    stem: Annotated[
        str, typer.Option(metavar="LANGUAGE", help="Snowball stemmer: english, german, …, or none.")
    ] = "english",
    positions: Annotated[
        bool, typer.Option("--positions/--no-positions", help="Store positions, for phrase and proximity features.")
    ] = True,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory for texts and postings, such as 512M or 2G.")
    ] = "1G",
    stage: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Default first stage of this index: a file written by "
                     "'ranksieve retrieve --tune --save-stage'."),
    ] = None,
    texts: Annotated[
        bool, typer.Option("--texts/--no-texts", help="Store the texts, which 'ranksieve serve' shows.")
    ] = True,
    vectors: Annotated[
        list[str] | None,
        typer.Option("--vectors", metavar="FILE.npy|svd:N|FILE.py:FUNCTION", rich_help_panel=VECTORS,
                     help="Vectors of the documents: a NumPy array (float32 or float16, one row per document; several "
                     "are one below the other), svd:128 to fit an encoder on the texts that also encodes queries, or a "
                     "function texts → array."),
    ] = None,
    vector_ids: Annotated[
        Path | None,
        typer.Option(metavar="FILE", rich_help_panel=VECTORS, show_default="the order of the corpus",
                     help="Document ids in the order of the rows of --vectors, one per line."),
    ] = None,
    similarity: Annotated[
        str, typer.Option(metavar="cosine|dot", rich_help_panel=VECTORS, help="What makes vectors similar.")
    ] = "cosine",
    hnsw: Annotated[
        bool,
        typer.Option("--hnsw", rich_help_panel=VECTORS,
                     help="Build a graph for approximate search, which --set ef=200 uses."),
    ] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace an existing index.")] = False,
) -> None:  # fmt: skip
    """Build an index of a corpus."""
    check_folder(out)
    from ranksieve.progress import ProgressDisplay
    from ranksieve.retrieval.analysis import Analyzer
    from ranksieve.retrieval.index import Index

    analyzer = Analyzer(lower=lower, split=split, stop=_stop_words(stop), stem=stem)
    start = time.perf_counter()
    with ProgressDisplay("indexing", doing="reading documents", kernels="") as display:
        made = Index.build(
            corpus, out, fields=field or (), numbers=number or (), id=id, analyzer=analyzer, positions=positions,
            memory=memory_size(memory), stage=stage, texts=texts, vectors=_vectors(vectors), vector_ids=vector_ids,
            similarity=similarity, hnsw=hnsw, replace=replace,
            progress=lambda read: display.update(read, unit="document"),
            vector_progress=lambda done, most: display.update(done, most, unit="document", title="encoding"),
        )  # fmt: skip
    show_notes(made.notes)
    facts = made.describe()
    size, lengths = facts["bytes"], (f"{name} ({mean:,.1f} terms)" for name, mean in facts["fields"].items())
    show_facts(
        [
            ("index", f"{out}, {counted(document=made.n_docs, term=made.n_terms)}, {file_size(size)}"),
            ("fields", ", ".join(lengths)),
            *([] if facts["vectors"] is None else [("vectors", vector_facts(facts["vectors"]))]),
            ("time", duration(time.perf_counter() - start)),
        ]
    )


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

"""`ranksieve index`."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ranksieve.cli.command import option, takes_options
from ranksieve.cli.console import show_facts
from ranksieve.cli.corpus_options import read_size_option, vector_facts, vectors_or_function
from ranksieve.cli.shared_options import ids_option, out_option
from ranksieve.errors import DataError, ParameterError
from ranksieve.files import check_folder
from ranksieve.text_formats import UNITS, counted, duration, file_size

PANEL = "Vectors"


@dataclass(frozen=True, kw_only=True)
class IndexArguments:
    """Arguments and options of `ranksieve index`, besides those of vectors."""

    corpus: Annotated[
        list[Path],
        typer.Argument(metavar="CORPUS...", help="JSON Lines, TSV with a header, Parquet, or a folder of texts; "
                       "several are indexed as one corpus."),
    ]  # fmt: skip
    out: Annotated[Path, out_option("Folder for the index. If it exists already, --replace is needed.", metavar="DIR")]
    field: list[str] | None = option(
        None,
        "Field to index: NAME, or NAME:OPTIONS=SOURCE~PATTERN. OPTIONS are lower, split, stop, stem and positions, or "
        "each with 'no' in front, separated by commas. For example, 'file:nostem=path~[^/]+$' indexes what the "
        "pattern matches in the field 'path'.", "--field", "-f", metavar="FIELD", show_default="all text fields",
    )  # fmt: skip
    number: list[str] | None = option(None, "Numeric field to use as a feature.", "--number", "-n", metavar="FIELD")
    id: Annotated[str | None, ids_option()] = None
    lower: bool = option(True, "Convert text to lower case.", "--lower/--no-lower")
    split: bool = option(
        True,
        "Also index the parts of words: file and name of fileName and file_name, w and 12 of w12.",
        "--split/--no-split",
    )
    stop: str = option("english", "Stop words: english, none, or a file of words.", metavar="WORDS")
    stem: str = option("english", "Snowball stemmer: english, german, …, or none.", metavar="LANGUAGE")
    positions: bool = option(True, "Store positions, for phrase and proximity features.", "--positions/--no-positions")
    memory: str = option("1G", "Memory for texts and postings, such as 512M or 2G.", metavar="SIZE")
    stage: Path | None = option(
        None,
        "Default first stage of this index: a file written by 'ranksieve retrieve --tune --save-stage'.",
        metavar="FILE",
    )
    texts: bool = option(True, "Store the texts, which 'ranksieve serve' shows.", "--texts/--no-texts")
    replace: bool = option(False, "Replace an existing index.", "--replace")


@dataclass(frozen=True, kw_only=True)
class VectorOptions:
    """Options of `ranksieve index` for vectors of the documents."""

    vectors: list[str] | None = option(
        None,
        "Vectors of the documents: a NumPy array (float32 or float16, one row per document; several arrays follow "
        "each other), svd:128 to fit an encoder on the texts that also encodes queries, or a function texts → array.",
        metavar="FILE.npy|svd:N|FILE.py:FUNCTION", rich_help_panel=PANEL,
    )  # fmt: skip
    vector_ids: Path | None = option(
        None, "Document ids in the order of the rows of --vectors, one per line.", metavar="FILE",
        rich_help_panel=PANEL, show_default="the order of the corpus",
    )  # fmt: skip
    similarity: str = option("cosine", "Similarity of vectors.", metavar="cosine|dot", rich_help_panel=PANEL)
    hnsw: bool = option(
        False, "Build a graph for approximate search, which --set ef=200 uses.", "--hnsw", rich_help_panel=PANEL
    )


@takes_options
def index(given: IndexArguments, dense: VectorOptions) -> None:
    """Build an index of a corpus."""
    check_folder(given.out)
    from ranksieve.cli.compiling import counting_kernels
    from ranksieve.progress import ProgressDisplay
    from ranksieve.retrieval.analysis import Analyzer
    from ranksieve.retrieval.corpus import Corpus
    from ranksieve.retrieval.index import Index

    size = read_size_option(given.memory, "--memory", least=UNITS["M"])
    source = Corpus(given.corpus)
    analyzer = Analyzer(lower=given.lower, split=given.split, stop=_stop_words(given.stop), stem=given.stem)
    start = time.perf_counter()
    with (
        ProgressDisplay("indexing", doing="reading documents", kernels="postings") as display,
        counting_kernels(display),
    ):
        made = Index.build(
            source, given.out, fields=given.field or (), numbers=given.number or (), id=given.id, analyzer=analyzer,
            positions=given.positions, memory=size, stage=given.stage, texts=given.texts, replace=given.replace,
            vectors=_vectors(dense.vectors), vector_ids=dense.vector_ids, similarity=dense.similarity, hnsw=dense.hnsw,
            progress=lambda read: display.update(read, unit="document", title="indexing"),
            vector_progress=lambda done, most: display.update(done, most, unit="document", title="encoding"),
        )  # fmt: skip
    facts = made.describe()
    lengths = (f"{name} ({mean:,.1f} terms)" for name, mean in facts["fields"].items())
    show_facts(
        [
            ("index", f"{given.out}, {counted(document=made.n_docs, term=made.n_terms)}, {file_size(facts['bytes'])}"),
            ("fields", ", ".join(lengths)),
            *_other_facts(source, made, given.id),
            *([] if facts["vectors"] is None else [("vectors", vector_facts(facts["vectors"]))]),
            ("time", duration(time.perf_counter() - start)),
        ]
    )


def _other_facts(corpus: Any, made: Any, id: str | None) -> list[tuple[str, str]]:
    """The numeric fields that the index keeps, and the fields other than text that it does not."""
    from ranksieve.retrieval.building import FIRST_DOCUMENTS
    from ranksieve.retrieval.corpus import IDS, fields_by_kind

    used = {*made.numbers, *(field.source for field in made.fields), *([id] if id else IDS)}
    held = {name: kind for found in corpus.first_fields(FIRST_DOCUMENTS) for name, kind in found.items() if kind}
    unused = {name: kind for name, kind in held.items() if name not in used and kind != "text"}
    kept = [("numbers", ", ".join(made.numbers))] if made.numbers else []
    numeric = next((name for name, kind in unused.items() if kind == "numbers"), None)
    remedy = "" if numeric is None else f"; keep numbers with --number {shlex.quote(numeric)}"
    return [*kept, ("not used", fields_by_kind(unused) + remedy)] if unused else kept


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
            f"--stop is {stop!r}; expected {', '.join(STOP_WORDS)}, or a file of words ({error})"
        ) from error

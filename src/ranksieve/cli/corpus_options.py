"""Options of the commands on an index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranksieve.cli.command import option
from ranksieve.cli.console import check_writable
from ranksieve.cli.shared_options import Threads
from ranksieve.errors import ParameterError
from ranksieve.text_formats import read_size, unit_hint
from ranksieve.user_functions import import_function

if TYPE_CHECKING:
    from ranksieve.retrieval.encoders import GivenVectors
    from ranksieve.retrieval.first_stage import FirstStage

PANEL = "First stage"

IndexArgument = Annotated[Path, typer.Argument(metavar="INDEX", help="Index folder, made by 'ranksieve index'.")]
QUERIES = typer.Argument(
    metavar="QUERIES", help="File with lines 'id TAB text', or JSON Lines or Parquet with fields id and text."
)
QueriesArgument = Annotated[Path, QUERIES]
Depth = Annotated[int, typer.Option(min=1, help="Candidates per query.")]
Run = Annotated[
    Path | None, typer.Option(help="TREC run with the candidates. Without it, the first stage retrieves them.")
]
Qrels = Annotated[
    Path | None, typer.Option(help="Judgements, which become the labels. Without them, all labels are 0.")
]
Own = Annotated[
    list[str] | None,
    typer.Option("--own", metavar="[NAME=]FILE.py:FUNCTION",
                 help="Your own feature: a function (query, document ids) → one number per document."),
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """What the first stage uses besides its settings: vectors of the queries, and threads."""

    vectors: str | None = option(
        None, "Vectors of the queries, one row for each in their order; or a function texts → array.",
        "--query-vectors", metavar="FILE.npy|FILE.py:FUNCTION", show_default="those of the index's encoder",
    )  # fmt: skip
    vector_ids: Path | None = option(
        None, "Query ids in the order of --query-vectors, one per line.", "--query-vector-ids", metavar="FILE"
    )
    threads: Threads = 0

    def query_vectors(self, queries: Iterable[str]) -> GivenVectors | None:
        """What `--query-vectors` and `--query-vector-ids` give."""
        from ranksieve.retrieval.encoders import as_query_vectors
        from ranksieve.retrieval.vector_files import as_ids

        if self.vectors is None:
            if self.vector_ids is not None:
                raise ParameterError("--query-vector-ids needs --query-vectors; give both")
            return None
        return as_query_vectors(vectors_or_function(self.vectors, "query_vectors"), queries, as_ids(self.vector_ids))


def vectors_or_function(given: str, parameter: str) -> Any:
    """The function that `file.py:function` names; anything else as it is."""
    home, _, name = given.rpartition(":")
    if home and name.isidentifier() and not Path(given).exists():
        return import_function(given, parameter=parameter, signature="a function of a list of texts")
    return given


def vector_facts(facts: Mapping[str, Any]) -> str:
    """What an index says about its vectors, in one line."""
    parts = [f"from {facts['encoder']}", f"dimension {facts['dimension']}", facts["dtype"], facts["similarity"]]
    parts += ["an encoder for queries"] if facts["encodes queries"] else []
    return ", ".join([*parts, *(["an HNSW graph"] if facts["hnsw"] else [])])


def own_features(given: list[str] | None) -> dict[str, Callable[..., Any]]:
    """The functions that `--own` names, by the names of their features."""
    found: dict[str, Callable[..., Any]] = {}
    for text in given or []:
        name, sign, place = text.rpartition("=")
        feature = name if sign else place.rpartition(":")[2]
        if not feature or feature in found:
            raise ParameterError(
                f"--own is {text!r}, which {'names a feature twice' if feature else 'names no function'}; expected "
                "file.py:function or name=file.py:function, each name once"
            )
        found[feature] = import_function(place, parameter="own", signature="a function of (query, document ids)")
    return found


def _model_option(default: str) -> Any:
    return option(
        None,
        "Retrieval model: bm25f, bm25, dirichlet, jelinek-mercer or dfr; of an index with vectors also dense, or "
        "hybrid, which fuses bm25f and dense.", metavar="NAME", rich_help_panel=PANEL, show_default=default,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class StageOptions:
    """The first stage: a file, or a model and its parameters."""

    stage: Path | None = option(
        None, "First stage written by 'ranksieve retrieve --save-stage', instead of --model, --weights and --set.",
        metavar="FILE", rich_help_panel=PANEL,
    )  # fmt: skip
    model: str | None = _model_option("that of the index, or bm25f")
    weights: str | None = option(
        None, "Weights of the fields, as in 'title=3,body=1'; 1 where not given.", metavar="WEIGHTS",
        rich_help_panel=PANEL,
    )  # fmt: skip
    settings: str | None = option(
        None,
        "Parameters of the model, as in 'k1=0.9,b=0.4'; 'b.title=0.3' for one field; for hybrid dense_share, rrf_k and "
        "pool; ef > 0 searches the HNSW graph.", "--set", metavar="VALUES", rich_help_panel=PANEL,
    )  # fmt: skip

    def read(self, out: Path | None = None) -> FirstStage | None:
        """The first stage that the options give, which is not written to `out`; None if they give none."""
        from ranksieve.retrieval.first_stage import RANGES, FirstStage

        is_given = bool(self.model or self.weights or self.settings)
        if self.stage is not None:
            if is_given:
                raise ParameterError(
                    "--stage cannot be combined with --model, --weights or --set; give one or the other"
                )
            if out is not None:
                check_writable(out, self.stage)
            return FirstStage.load(self.stage)
        if not is_given:
            return None
        values: dict[str, Any] = {}
        known = [name for name in RANGES if name != "weights"]
        for name, value in _numbers("--set", self.settings or "").items():
            name, dot, field = name.partition(".")
            if name not in known or (dot and name != "b"):
                raise ParameterError(f"--set has no {name + dot + field!r}; expected b.FIELD, {', '.join(known)}")
            if dot:
                values["b"] = {**(values["b"] if isinstance(values.get("b"), dict) else {}), field: value}
            else:
                values[name] = value
        return FirstStage(self.model or "bm25f", weights=_numbers("--weights", self.weights or ""), **values)


@dataclass(frozen=True, kw_only=True)
class RerankStageOptions(StageOptions):
    """The first stage of `ranksieve rerank`, whose default is that of the model."""

    model: str | None = _model_option("as in training of MODEL, or that of the index, or bm25f")


def _numbers(flag: str, text: str) -> dict[str, float]:
    """`a=1,b=2` as a dict."""
    found = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, sign, value = part.partition("=")
        try:
            if not sign or "_" in value:
                raise ValueError
            found[name.strip()] = float(value)
        except ValueError:
            raise ParameterError(f"{flag} has {part!r}; expected name=number, separated by commas") from None
    return found


def read_size_option(text: str, flag: str, least: int = 1) -> int:
    """Bytes of a size such as `512M` or `2G`, at least the given minimum."""
    size = read_size(text)
    if size < least:
        expected = f"{text!r}; expected a size such as 512M or 2G{'' if least == 1 else f', at least {least:,} bytes'}"
        raise ParameterError(f"{flag} is {(unit_hint(text) if size else '') or expected}")
    return size

"""Options of the commands on an index, and how these commands show notes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from ranksieve.cli.console import progress_output
from ranksieve.errors import ParameterError
from ranksieve.user_functions import import_function

if TYPE_CHECKING:
    from ranksieve.retrieval.first_stage import FirstStage

PANEL = "First stage"
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}

IndexArgument = Annotated[Path, typer.Argument(metavar="INDEX", help="Index folder, made by 'ranksieve index'.")]
QueriesArgument = Annotated[
    Path,
    typer.Argument(
        metavar="QUERIES", help="File with lines 'id TAB text', or JSON Lines or Parquet with fields id and text."
    ),
]
Depth = Annotated[int, typer.Option(min=1, help="Candidates per query.")]
Model = Annotated[
    str | None, typer.Option(metavar="NAME", help="Retrieval model: bm25f, bm25, dirichlet, jelinek-mercer or dfr.",
                             show_default="bm25f", rich_help_panel=PANEL)
]  # fmt: skip
Stage = Annotated[
    Path | None, typer.Option(metavar="FILE", help="First stage written by 'ranksieve retrieve --tune --save-stage', "
                              "instead of --model, --weights and --set.", rich_help_panel=PANEL)
]  # fmt: skip
Weights = Annotated[
    str, typer.Option(metavar="WEIGHTS", help="Weights of the fields, as in 'title=3,body=1'; 1 where not given.",
                      rich_help_panel=PANEL)
]  # fmt: skip
Settings = Annotated[
    str,
    typer.Option(
        "--set",
        metavar="VALUES",
        help="Parameters of the model, as in 'k1=0.9,b=0.4'; 'b.title=0.3' for one field.",
        rich_help_panel=PANEL,
    ),
]
Own = Annotated[
    list[str] | None,
    typer.Option("--own", metavar="[NAME=]FILE.py:FUNCTION",
                 help="Your own feature: a function (query, document ids) → one number per document."),
]  # fmt: skip


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


def first_stage(model: str | None, weights: str, settings: str, stage: Path | None) -> FirstStage | None:
    """The first stage that the options describe; None if none is given."""
    from ranksieve.retrieval.first_stage import FirstStage

    if stage is not None:
        if model or weights or settings:
            raise ParameterError("--stage cannot be combined with --model, --weights or --set; give one or the other")
        return FirstStage.load(stage)
    if not (model or weights or settings):
        return None
    values: dict[str, Any] = {}
    for name, value in _numbers("--set", settings).items():
        name, dot, field = name.partition(".")
        if name not in ("k1", "b", "k3", "mu", "mix", "c") or (dot and name != "b"):
            raise ParameterError(f"--set has no {name + dot + field!r}; expected k1, b, b.FIELD, k3, mu, mix or c")
        if dot:
            values.setdefault("b", {})
            values["b"] = {**values["b"], field: value} if isinstance(values["b"], dict) else {field: value}
        else:
            values[name] = value
    return FirstStage(model or "bm25f", weights=_numbers("--weights", weights), **values)


def _numbers(flag: str, text: str) -> dict[str, float]:
    """`a=1,b=2` as a dict."""
    found = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, sign, value = part.partition("=")
        try:
            if not sign:
                raise ValueError
            found[name.strip()] = float(value)
        except ValueError:
            raise ParameterError(f"{flag} has {part!r}; expected name=number, separated by commas") from None
    return found


def memory_size(text: str) -> int:
    """Bytes of a size such as `512M` or `2G`."""
    digits = text.strip().lower().removesuffix("b").removesuffix("i")
    number, unit = (digits[:-1], digits[-1:]) if digits[-1:].isalpha() else (digits, "")
    try:
        return int(float(number) * UNITS[unit])
    except (ValueError, KeyError):
        raise ParameterError(f"--memory is {text!r}; expected a size such as 512M or 2G") from None


def show_notes(notes: Iterable[str]) -> None:
    """Notes, one line each, on standard error."""
    for note in notes:
        progress_output().print(Text(f"note: {note}", style="yellow"), soft_wrap=True)

"""Model files that commands write: their names are checked before training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranksieve.cli.console import check_writable, show_table
from ranksieve.errors import ParameterError

if TYPE_CHECKING:
    from ranksieve.forest.model import Model


def check_model_file(out: Path, *read: Path | str | None, is_forest: bool = False) -> None:
    """Refuse files that cannot be written, and extensions of other formats; .json is for rankers other than forests."""
    check_writable(out, *read)
    from ranksieve.forest.formats.model_files import ENDINGS

    ending = out.suffix.lower()
    if ending in ENDINGS and (is_forest or ending != ".json"):
        raise ParameterError(
            f"{out}: forests are written as LightGBM text, not as {ending}; write a .txt file and convert it with "
            f"ranksieve convert --format {ENDINGS[ending][0]}"
        )


def save_model(model: Model, out: Path) -> None:
    """Write a model in our own format, for any file extension."""
    from ranksieve.forest.forest import Forest

    if isinstance(model, Forest):
        model.save(out, format="lightgbm")
    else:
        model.save(out)


def show_biases(info: Mapping[str, Any]) -> None:
    """The biases of positions that a model has learned, relative to the first."""
    biases = info.get("position_biases", ())[1:]
    if biases:
        rows = [[str(rank), f"{bias - biases[0]:+.4f}"] for rank, bias in enumerate(biases, 1)]
        show_table(["rank", "learned bias"], rows)


def free_name(out: Path) -> Path:
    """A name for an unfinished model that no file has."""
    others = (f"{out.stem}.interrupted{number}{out.suffix}" for number in ("", *(f"-{n}" for n in range(2, 10_000))))
    return next(path for path in (out, *map(out.with_name, others)) if not path.exists())

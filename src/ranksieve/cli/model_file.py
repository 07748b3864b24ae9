"""Names of model files, checked before hours are spent, and models written under them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ranksieve.cli.console import check_writable
from ranksieve.errors import ParameterError

if TYPE_CHECKING:
    from ranksieve.forest.model import Model


def check_model_file(out: Path, *read: Path | str | None, is_forest: bool = False) -> None:
    """Refuse what cannot be written, and an ending that promises another format; JSON is for rankers but forests."""
    check_writable(out, *read)
    from ranksieve.forest.formats.model_files import ENDINGS

    ending = out.suffix.lower()
    if ending in ENDINGS and (is_forest or ending != ".json"):
        raise ParameterError(
            f"{out}: forests are written as LightGBM text, which {ending} does not promise; write a .txt file, and "
            f"convert it with ranksieve convert --format {ENDINGS[ending][0]}"
        )


def save_model(model: Model, out: Path) -> None:
    """Write a model in our own format, whatever the name promises: by now it is worth more than its name."""
    from ranksieve.forest.forest import Forest

    if isinstance(model, Forest):
        model.save(out, format="lightgbm")
    else:
        model.save(out)

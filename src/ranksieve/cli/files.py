"""Files of commands: options for the columns of data files, pipes, and checks of model files before training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranksieve.cli.command import is_flag, with_options
from ranksieve.cli.console import check_writable, show_table
from ranksieve.errors import DataError, ParameterError, param

if TYPE_CHECKING:
    from ranksieve.forest.model import Model

PARQUET, LETOR = ".parquet", (".txt", ".letor", ".dat", ".svm", ".libsvm", ".svmlight")  # endings of data files
PANEL = "Columns of Parquet and CSV"
COLUMNS = {
    "label": ("label", "Labels."),
    "qid": ("qid", "Query ids."),
    "docid": ("docid or doc_id", "Document ids."),
    "weight": ("weight", "Weights of documents."),
    "position": ("position", "Ranks, from 1, at which documents were shown."),
    "ignore": (
        "none",
        "Columns that are not features, such as texts: names or globs, separated by commas. If a name has a "
        "comma, put it in brackets: [,].",
    ),
    "categorical": (
        "categorical types",
        "Columns that hold categories, such as brands: names or globs, as for --ignore.",
    ),
}


def reads_data(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add options for the names of columns to a command. Its arguments `names` become `DataFile`s.

    Each such argument is a path, a list of paths or None. Pipes, and `-` for standard input, are stored in a file.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run(**values: Any) -> None:
            given = {role: values.pop(role) for role in COLUMNS}
            columns = {role: ",".join(one) or None if isinstance(one, list) else one for role, one in given.items()}
            unused = [role for role, name in columns.items() if name is not None]
            if unused and not any(values[name] for name in names):
                raise ParameterError(param(unused[0]), " names a column of data files, and none is given; leave it out")
            command(**values | {name: _data_files(values[name], columns) for name in names})

        return with_options(command, run, {role: _option(role) for role in COLUMNS})

    return decorate


def _option(role: str) -> Any:
    usual, text = COLUMNS[role]
    several = role in ("ignore", "categorical")
    option = typer.Option(
        f"--{role}", help=text, metavar="NAMES" if several else "NAME", show_default=usual, rich_help_panel=PANEL
    )
    return Annotated[list[str] | None if several else str | None, option]


def _data_files(given: Path | list[Path] | None, columns: dict[str, str | None]) -> Any:
    from ranksieve.data.data_file import DataFile
    from ranksieve.data.pipes import spool_pipe

    if isinstance(given, list):
        return [_data_files(path, columns) for path in given]
    return None if given is None else DataFile(spool_pipe(given), **columns)


def with_categories(files: Any, context: typer.Context) -> Any:
    """Data files, a list of them or None, with the categorical columns of a TOML file, where no option names any."""
    from ranksieve.data.data_file import DataFile

    if files is None or is_flag(context, "categorical"):
        return files
    if isinstance(files, list):
        return [with_categories(file, context) for file in files]
    return DataFile(files, categorical=context.params["categorical"] or None)


def check_data_file(out: Path, *read: Path | str | None, text: bool = True) -> None:
    """Refuse a data file that cannot be written, and names of other formats than Parquet and, with `text`, LETOR text.

    A compressed LETOR file has one more extension, such as .txt.gz.
    """
    from ranksieve.data.compression import WRITERS

    check_writable(out, *read)
    compressed = out.suffix.lower() in WRITERS
    ending = Path(out.stem).suffix.lower() if compressed else out.suffix.lower()
    if compressed or ending != PARQUET:
        if not text:
            raise ParameterError(f"{out}: the data is written as Parquet; name it {out.stem}{PARQUET}")
        if ending not in LETOR:
            raise ParameterError(
                f"{out}: expected a name that ends in {PARQUET}, or for LETOR text in {', '.join(LETOR)}, which may be "
                f"followed by {', '.join(WRITERS)}"
            )


def write_data(data: Any, out: Path) -> None:
    """Write a data set: as Parquet if the name ends in .parquet, else as LETOR text."""
    from ranksieve.data.letor import write_letor
    from ranksieve.data.parquet import write_parquet

    (write_parquet if out.suffix.lower() == PARQUET else write_letor)(data, out)


def check_new(files: Iterable[Path], *, replace: bool) -> None:
    """Refuse files that exist already, unless they are to be replaced; for names that the user has not typed."""
    existing = next((file for file in files if not replace and file.exists()), None)
    if existing is not None:
        raise DataError(
            f"{existing}: exists already; choose another folder, or replace the files there with ", param("replace")
        )


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

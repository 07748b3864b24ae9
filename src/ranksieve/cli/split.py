"""`ranksieve split`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ranksieve.cli.console import check_writable, show_facts
from ranksieve.cli.data_files import reads_data
from ranksieve.cli.shared_options import Missing, Seed, out_option
from ranksieve.errors import DataError, ParameterError
from ranksieve.files import check_folder
from ranksieve.text_formats import counted

NAMES = {2: ("train", "test"), 3: ("train", "valid", "test")}  # by the number of parts
ENDINGS = {"parquet": ".parquet", "letor": ".txt"}  # by format


@reads_data("data")
def split(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Documents with labels.")],
    out: Annotated[Path, out_option("Folder for train, valid and test; made if it does not exist.", metavar="DIR")],
    shares: Annotated[
        str | None,
        typer.Option(
            help="Shares of the queries for train, valid and test, or for train and test as in 80/20.",
            show_default="60/20/20",
        ),
    ] = None,
    folds: Annotated[
        int | None, typer.Option(min=3, help="Number of folds for cross-validation; each has its own folder in --out.")
    ] = None,
    seed: Seed = 0,
    format: Annotated[str, typer.Option(help="Format to write: parquet or letor (text).")] = "parquet",
    missing: Missing = "zero",
) -> None:
    """Split a data file by query into training, validation and test data, or into folds."""
    from ranksieve.data.joined import JoinedSource, Piece, query_ids_of
    from ranksieve.data.letor import write_letor
    from ranksieve.data.parquet import write_parquet
    from ranksieve.data.read import open_data

    if format not in ENDINGS:
        raise ParameterError(f"--format is {format!r}; expected one of {', '.join(ENDINGS)}")
    if folds is not None and shares is not None:
        raise ParameterError("--folds and --shares are mutually exclusive; give one of them")
    fractions = _shares(shares or "60/20/20")
    check_folder(out)
    source = open_data(data, missing=missing)
    ids = query_ids_of(source)
    parts = _parts(out, len(ids), fractions, folds, seed)
    _make_folders(out, *(part.parent for part in parts))
    for part in parts:
        check_writable(part.with_suffix(ENDINGS[format]), data)
    facts = []
    for part, numbers in parts.items():
        file, name = part.with_suffix(ENDINGS[format]), part.relative_to(out).as_posix()
        piece = Piece(source, frozenset(ids[number] for number in numbers))
        (write_letor if format == "letor" else write_parquet)(JoinedSource([piece], name=f"{data} ({name})"), file)
        facts.append((name, f"{file}, {counted(query=len(numbers))}"))
    show_facts(facts)


def _parts(out: Path, n_queries: int, shares: Sequence[float], folds: int | None, seed: int) -> dict[Path, np.ndarray]:
    """The numbers of the queries of each file, by its path without the ending."""
    from ranksieve.data.splits import fold_queries, split_queries

    if folds is None:
        parts = split_queries(n_queries, shares, seed=seed)
        return {out / name: numbers for name, numbers in zip(NAMES[len(parts)], parts, strict=True)}
    return {
        out / f"fold{fold}" / name: numbers
        for fold, parts in enumerate(fold_queries(n_queries, folds, seed=seed), start=1)
        for name, numbers in zip(NAMES[3], parts, strict=True)
    }


def _make_folders(*folders: Path) -> None:
    for folder in folders:
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise DataError(f"{folder}: cannot be made a folder ({error.strerror}); choose another place") from error


def _shares(text: str) -> list[float]:
    try:
        numbers = [float(part) for part in text.split("/")]
        if len(numbers) not in NAMES or min(numbers) <= 0:
            raise ValueError
    except ValueError:
        raise ParameterError(f"--shares is {text!r}; expected numbers above 0, as in 60/20/20 or 80/20") from None
    return [number / sum(numbers) for number in numbers]

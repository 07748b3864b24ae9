"""`ranksieve split`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ranksieve.cli.console import check_writable, show_facts
from ranksieve.cli.data_files import reads_data
from ranksieve.cli.shared_options import Missing, Seed, out_option
from ranksieve.errors import DataError, ParameterError
from ranksieve.text_formats import counted

NAMES = ("train", "valid", "test")
ENDINGS = {"parquet": ".parquet", "letor": ".txt"}  # by format


@reads_data("data")
def split(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Documents with labels.")],
    out: Annotated[Path, out_option("Folder for train, valid and test; made if it does not exist.", metavar="DIR")],
    shares: Annotated[str, typer.Option(help="Shares of the queries for train, valid and test.")] = "60/20/20",
    seed: Seed = 0,
    format: Annotated[str, typer.Option(help="Format to write: parquet or letor (text).")] = "parquet",
    missing: Missing = "zero",
) -> None:
    """Split a data file by query into training, validation and test data."""
    from ranksieve.data.joined import JoinedSource, Piece, query_ids_of
    from ranksieve.data.letor import write_letor
    from ranksieve.data.parquet import write_parquet
    from ranksieve.data.read import open_data
    from ranksieve.data.splits import split_queries

    if format not in ENDINGS:
        raise ParameterError(f"--format is {format!r}; expected one of {', '.join(ENDINGS)}")
    fractions = _shares(shares)
    source = open_data(data, missing=missing)
    ids = query_ids_of(source)
    parts = split_queries(len(ids), fractions, seed=seed)
    try:
        out.mkdir(exist_ok=True)
    except OSError as error:
        raise DataError(f"{out}: cannot be made a folder ({error.strerror}); choose another place") from error
    files = [out / f"{name}{ENDINGS[format]}" for name in NAMES]
    for file in files:
        check_writable(file, data)
    facts = []
    for file, numbers in zip(files, parts, strict=True):
        part = JoinedSource([Piece(source, frozenset(ids[number] for number in numbers))], name=f"{data} ({file.stem})")
        (write_letor if format == "letor" else write_parquet)(part, file)
        facts.append((file.stem, f"{file}, {counted(query=len(numbers))}"))
    show_facts(facts)


def _shares(text: str) -> list[float]:
    try:
        numbers = [float(part) for part in text.split("/")]
        if len(numbers) != len(NAMES) or min(numbers) <= 0:
            raise ValueError
    except ValueError:
        raise ParameterError(f"--shares is {text!r}; expected three numbers above 0, as in 60/20/20") from None
    return [number / sum(numbers) for number in numbers]

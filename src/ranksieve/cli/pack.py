"""`ranksieve pack`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ranksieve.cli.console import check_writable, show_facts
from ranksieve.cli.data_files import reads_data
from ranksieve.cli.shared_options import Missing, out_option
from ranksieve.text_formats import file_size


@reads_data("data")
def pack(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Data file, such as LETOR text.")],
    out: Annotated[Path, out_option("Parquet file to write.")],
    missing: Missing = "zero",
) -> None:
    """Convert a data file to Parquet, which loads many times faster."""
    check_writable(out, data)
    from ranksieve.data.parquet import write_parquet
    from ranksieve.data.read import open_data
    from ranksieve.progress import ProgressDisplay

    with ProgressDisplay("packing", kernels="letor") as display:
        write_parquet(open_data(data, missing=missing), out, progress=lambda share: display.update(share, 1.0))
    before, after = file_size(os.path.getsize(data)), file_size(os.path.getsize(out))
    show_facts([("packed", f"{out}, {after} (was {before})")])

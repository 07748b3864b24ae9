"""Commands on data files: `ranksieve split`, `sample`, `pack` and `synth`."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from ranksieve.cli.command import option, takes_options
from ranksieve.cli.console import check_not_read, check_writable, show_facts
from ranksieve.cli.files import check_data_file, check_new, reads_data, write_data
from ranksieve.cli.shared_options import DataArgument, Missing, OutData, Seed, out_option
from ranksieve.errors import DataError, ParameterError, check_choice, did_you_mean
from ranksieve.files import check_folder
from ranksieve.text_formats import counted, file_size

if TYPE_CHECKING:
    from ranksieve.data.dataset import Dataset

NAMES = {2: ("train", "test"), 3: ("train", "valid", "test")}  # by the number of parts
ENDINGS = {"parquet": ".parquet", "letor": ".txt"}  # by format
NEEDS = {"truncate": ("k",), "by-model": ("model", "share"), "undersample": ()}


@dataclass(frozen=True, kw_only=True)
class SplitArguments:
    data: DataArgument
    out: Annotated[
        Path,
        out_option(
            "Folder for train, valid and test; made if it does not exist. If it already has such parts, --replace is "
            "needed.",
            metavar="DIR",
        ),
    ]
    shares: str | None = option(
        None, "Shares of the queries for train, valid and test, or for train and test as in 80/20.",
        metavar="SHARES", show_default="60/20/20",
    )  # fmt: skip
    folds: int | None = option(None, "Number of folds for cross-validation; each has its own folder in --out.", min=3)
    seed: Seed = 0
    format: str = option("parquet", "Format to write; letor is text.", metavar="parquet|letor")
    replace: bool = option(False, "Replace the parts that are in --out already.", "--replace")
    missing: Missing = "zero"


@reads_data("data")
@takes_options
def split(given: SplitArguments) -> None:
    """Split a data file by query into training, validation and test data, or into folds."""
    from ranksieve.data.data_file import DataFile
    from ranksieve.data.joined import JoinedSource, Piece, query_ids_of
    from ranksieve.data.read import open_data

    check_choice("format", given.format, ENDINGS)
    if given.folds is not None and given.shares is not None:
        raise ParameterError("--folds and --shares are mutually exclusive; give one of them")
    fractions = _shares(given.shares or "60/20/20")
    data, out = given.data, given.out
    check_folder(out)
    names, ending, facts = _part_names(out, len(fractions), given.folds), ENDINGS[given.format], []
    files = [name.with_suffix(ending) for name in names]
    for file in files:
        check_not_read(file, data)
    _check_parts(out, files, folds=given.folds, replace=given.replace)
    source = open_data(data, missing=given.missing)
    ids = query_ids_of(source)
    parts = dict(zip(names, _parts(len(ids), fractions, given.folds, given.seed), strict=True))
    _make_folders(out, *(part.parent for part in parts))
    for file in files:
        check_writable(file)
    for part, numbers in parts.items():
        file, name = part.with_suffix(ending), part.relative_to(out).as_posix()
        piece = Piece(source, frozenset(ids[number] for number in numbers))
        write_data(JoinedSource([piece], name=f"{data} ({name})"), file)
        facts.append((name, f"{file}, {counted(query=len(numbers))}"))
    if isinstance(data, DataFile) and data.columns:  # the options that name columns are not needed any more
        facts.append(("columns", ", ".join(f"{role} (before: {name})" for role, name in data.columns.items())))
    show_facts(facts)


def _part_names(out: Path, n_shares: int, folds: int | None) -> list[Path]:
    """The files without their ending."""
    if folds is None:
        return [out / name for name in NAMES[n_shares]]
    return [out / f"fold{fold}" / name for fold in range(1, folds + 1) for name in NAMES[3]]


def _parts(n_queries: int, shares: Sequence[float], folds: int | None, seed: int) -> list[np.ndarray]:
    """The numbers of the queries of each file."""
    from ranksieve.data.sampling import fold_queries, split_queries

    if folds is None:
        return list(split_queries(n_queries, shares, seed=seed))
    return [numbers for parts in fold_queries(n_queries, folds, seed=seed) for numbers in parts]


def _check_parts(out: Path, files: Sequence[Path], *, folds: int | None, replace: bool) -> None:
    """Refuse to overwrite parts of an earlier split without `replace`, or to leave some of them beside the new ones."""
    folder = "" if folds is None else "fold[1-9]*/"
    found = [file for name in NAMES[3] for file in sorted(out.glob(f"{folder}{name}{files[0].suffix}"))]
    check_new(found, replace=replace)
    left = next((file for file in found if file not in files), None)
    if left is not None:
        raise DataError(f"{left}: is a part of another split and would not be replaced; remove it first")


def _make_folders(*folders: Path) -> None:
    for folder in folders:
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise DataError(f"{folder}: cannot be created ({error.strerror}); choose another folder") from error


def _shares(text: str) -> list[float]:
    try:
        numbers = [float(part) for part in text.split("/")]
        if len(numbers) not in NAMES or min(numbers) <= 0:
            raise ValueError
    except ValueError:
        raise ParameterError(f"--shares is {text!r}; expected numbers above 0, as in 60/20/20 or 80/20") from None
    total = sum(numbers)
    if not any(math.isclose(total, whole, rel_tol=2e-3) for whole in (1, 100)):  # thirds are rounded
        raise ParameterError(f"--shares is {text!r}, which adds up to {total:g}; expected 100 or 1, as in 60/20/20")
    return [number / total for number in numbers]


def _known(how: str) -> str:
    if how not in NEEDS:
        raise ParameterError(
            f"unknown way to sample {how!r}; {did_you_mean(how, NEEDS)}expected one of {', '.join(NEEDS)}"
        )
    return how


@dataclass(frozen=True, kw_only=True)
class SampleArguments:
    how: Annotated[
        str,
        typer.Argument(metavar="truncate|by-model|undersample", help="How documents are selected.", callback=_known),
    ]
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Training data. Do not sample test data.")]
    out: OutData
    k: int | None = option(None, "truncate: documents per query to keep.", min=1)
    positives: str = option("keep", "truncate: keep or drop positives below rank k.", metavar="keep|drop")
    model: Path | None = option(None, "by-model: model whose highest-scored negatives are kept.")
    share: float | None = option(None, "by-model, undersample: share of a query's negatives to keep.")
    n: int | None = option(None, "undersample: negatives per query to keep.", "--n", min=0)
    order: str = option("random", "undersample: random, or ascending or descending by a feature.", metavar="ORDER")
    by: str | None = option(
        None, "Feature to order by, such as bm25 or f25.", metavar="FEATURE", show_default="the first stage"
    )
    seed: Seed = 0
    missing: Missing = "zero"


@reads_data("data")
@takes_options
def sample(given: SampleArguments) -> None:
    """Select documents of each query: the best of the first stage, a model's hardest negatives, or random ones."""
    for name in NEEDS[given.how]:
        if getattr(given, name) is None:
            raise ParameterError(f"{given.how} needs --{name}; see ranksieve sample --help")
    check_data_file(given.out, given.data, given.model)
    from ranksieve.data import sampling
    from ranksieve.data.read import read

    data = read(given.data, missing=given.missing)
    if given.how == "truncate":
        assert given.k is not None
        kept = sampling.truncate(data, given.k, by=given.by, positives=given.positives)
    elif given.how == "by-model":
        assert given.model is not None and given.share is not None
        kept = sampling.by_model(data, _scores(given.model, data), given.share)
    else:
        kept = sampling.undersample(data, n=given.n, share=given.share, order=given.order, by=given.by, seed=given.seed)
    write_data(kept, given.out)
    share_kept = kept.n_docs / data.n_docs
    show_facts(
        [
            ("sample", f"{given.out}, {kept.n_docs:,} of {counted(document=data.n_docs)} ({share_kept:.1%})"),
            ("queries", f"{kept.n_queries:,}"),
            ("positives", f"{(kept.labels > 0).sum():,} of {(data.labels > 0).sum():,}"),
        ]
    )


def _scores(path: Path, documents: Dataset) -> np.ndarray:
    from ranksieve.forest.formats.model_files import load_forest

    return load_forest(path).predict(documents)


@reads_data("data")
def pack(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Data file, such as LETOR text.")],
    out: Annotated[Path, out_option("Parquet file to write.")],
    missing: Missing = "zero",
) -> None:
    """Convert a data file to Parquet, which loads many times faster."""
    check_data_file(out, data, text=False)
    from ranksieve.data.parquet import write_parquet
    from ranksieve.data.read import open_data
    from ranksieve.progress import ProgressDisplay

    with ProgressDisplay("packing", kernels="letor") as display:
        write_parquet(open_data(data, missing=missing), out, progress=lambda share: display.update(share, 1.0))
    before, after = file_size(os.path.getsize(data)), file_size(os.path.getsize(out))
    show_facts([("packed", f"{out}, {after} (was {before})")])


def synth(
    kind: Annotated[str, typer.Argument(metavar="two-stage|cubic", help="Which data set to generate.")],
    out: OutData,
    queries: Annotated[int, typer.Option(min=1, help="Number of queries.")] = 300,
    seed: Seed = 0,
    start: Annotated[
        int, typer.Option(min=0, help="Number of the first query, to generate more of the same collection.")
    ] = 0,
) -> None:
    """Generate data: long lists as in a second stage, or labels that are a cubic polynomial of the features."""
    from ranksieve.data.generators import GENERATORS, GeneratedSource

    if kind not in GENERATORS:
        raise ParameterError(f"unknown kind {kind!r}; expected one of {', '.join(GENERATORS)}")
    check_data_file(out)
    generate, block_queries = GENERATORS[kind]
    source = GeneratedSource(generate, range(start, start + queries), seed, block_queries)
    write_data(source, out)
    assert source.n_docs is not None and source.n_features is not None  # once all of it was generated
    show_facts([("data", f"{out}, {counted(query=queries, document=source.n_docs, feature=source.n_features)}")])

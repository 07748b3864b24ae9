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
from ranksieve.cli.console import check_writable, show_facts
from ranksieve.cli.files import reads_data, write_data
from ranksieve.cli.shared_options import Missing, OutData, Seed, out_option
from ranksieve.errors import DataError, ParameterError, check_choice, did_you_mean
from ranksieve.files import check_folder
from ranksieve.text_formats import counted, file_size

if TYPE_CHECKING:
    from ranksieve.data.dataset import Dataset

NAMES = {2: ("train", "test"), 3: ("train", "valid", "test")}  # by the number of parts
ENDINGS = {"parquet": ".parquet", "letor": ".txt"}  # by format
NEEDS = {"truncate": ("k",), "by-model": ("model", "share"), "undersample": ()}
BLOCK_QUERIES = {"two-stage": 16, "cubic": 1000}  # of about 40 MB each


@dataclass(frozen=True, kw_only=True)
class SplitArguments:
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Documents with labels.")]
    out: Annotated[Path, out_option("Folder for train, valid and test; made if it does not exist.", metavar="DIR")]
    shares: str | None = option(
        None, "Shares of the queries for train, valid and test, or for train and test as in 80/20.",
        metavar="SHARES", show_default="60/20/20",
    )  # fmt: skip
    folds: int | None = option(None, "Number of folds for cross-validation; each has its own folder in --out.", min=3)
    seed: Seed = 0
    format: str = option("parquet", "Format to write; letor is text.", metavar="parquet|letor")
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
    source = open_data(data, missing=given.missing)
    ids = query_ids_of(source)
    parts = _parts(out, len(ids), fractions, given.folds, given.seed)
    _make_folders(out, *(part.parent for part in parts))
    ending, facts = ENDINGS[given.format], []
    for part in parts:
        check_writable(part.with_suffix(ending), data)
    for part, numbers in parts.items():
        file, name = part.with_suffix(ending), part.relative_to(out).as_posix()
        piece = Piece(source, frozenset(ids[number] for number in numbers))
        write_data(JoinedSource([piece], name=f"{data} ({name})"), file)
        facts.append((name, f"{file}, {counted(query=len(numbers))}"))
    if isinstance(data, DataFile) and data.columns:  # the options that name columns are not needed any more
        facts.append(("columns", ", ".join(f"{role} (before: {name})" for role, name in data.columns.items())))
    show_facts(facts)


def _parts(out: Path, n_queries: int, shares: Sequence[float], folds: int | None, seed: int) -> dict[Path, np.ndarray]:
    """The numbers of the queries of each file, by its path without the ending."""
    from ranksieve.data.sampling import fold_queries, split_queries

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
    total = sum(numbers)
    if not any(math.isclose(total, whole, rel_tol=2e-3) for whole in (1, 100)):  # thirds are rounded
        raise ParameterError(f"--shares is {text!r}, in sum {total:g}; expected a sum of 100 or 1, as in 60/20/20")
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
    check_writable(given.out, given.data, given.model)
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
    check_writable(out, data)
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
    if kind not in BLOCK_QUERIES:
        raise ParameterError(f"unknown kind {kind!r}; expected one of {', '.join(BLOCK_QUERIES)}")
    check_writable(out)
    from ranksieve.data import generators

    generate = {"two-stage": generators.two_stage, "cubic": generators.cubic}[kind]
    source = generators.GeneratedSource(generate, range(start, start + queries), seed, BLOCK_QUERIES[kind])
    write_data(source, out)
    assert source.n_docs is not None and source.n_features is not None  # once all of it was generated
    show_facts([("data", f"{out}, {counted(query=queries, document=source.n_docs, feature=source.n_features)}")])

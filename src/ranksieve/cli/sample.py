"""`ranksieve sample`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranksieve.cli.console import check_writable, show_facts
from ranksieve.cli.data_files import reads_data
from ranksieve.cli.shared_options import Missing, OutData, Seed
from ranksieve.errors import ParameterError, did_you_mean
from ranksieve.text_formats import counted

if TYPE_CHECKING:
    import numpy as np

    from ranksieve.data.dataset import Dataset

NEEDS = {"truncate": ("k",), "by-model": ("model", "share"), "undersample": ()}


@reads_data("data")
def sample(
    how: Annotated[
        str,
        typer.Argument(
            metavar="truncate|by-model|undersample",
            help="How documents are selected.",
            callback=lambda how: _known(how),
        ),
    ],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Training data. Do not sample test data.")],
    out: OutData,
    k: Annotated[int | None, typer.Option(min=1, help="truncate: documents per query to keep.")] = None,
    positives: Annotated[
        str, typer.Option(metavar="keep|drop", help="truncate: keep or drop positives below rank k.")
    ] = "keep",
    model: Annotated[Path | None, typer.Option(help="by-model: model whose highest-scored negatives are kept.")] = None,
    share: Annotated[
        float | None, typer.Option(help="by-model, undersample: share of a query's negatives to keep.")
    ] = None,
    n: Annotated[int | None, typer.Option("--n", min=0, help="undersample: negatives per query to keep.")] = None,
    order: Annotated[
        str, typer.Option(metavar="ORDER", help="undersample: random, or ascending or descending by a feature.")
    ] = "random",
    by: Annotated[
        str | None,
        typer.Option(
            show_default="the first stage", metavar="FEATURE", help="Feature to order by, such as bm25 or f25."
        ),
    ] = None,
    seed: Seed = 0,
    missing: Missing = "zero",
) -> None:
    """Select documents of each query: the best of the first stage, a model's hardest negatives, or random ones."""
    given = {"k": k, "model": model, "share": share}
    for name in NEEDS[how]:
        if given[name] is None:
            raise ParameterError(f"{how} needs --{name}; see ranksieve sample --help")
    check_writable(out, data, model)
    from ranksieve.data import sampling
    from ranksieve.data.letor import write_letor
    from ranksieve.data.parquet import write_parquet
    from ranksieve.data.read import read

    documents = read(data, missing=missing)
    if how == "truncate":
        assert k is not None
        kept = sampling.truncate(documents, k, by=by, positives=positives)
    elif how == "by-model":
        assert model is not None and share is not None
        kept = sampling.by_model(documents, _scores(model, documents), share)
    else:
        kept = sampling.undersample(documents, n=n, share=share, order=order, by=by, seed=seed)
    write = write_parquet if out.suffix == ".parquet" else write_letor
    write(kept, out)
    share_kept = kept.n_docs / documents.n_docs
    show_facts(
        [
            ("sample", f"{out}, {kept.n_docs:,} of {counted(document=documents.n_docs)} ({share_kept:.1%})"),
            ("queries", f"{kept.n_queries:,}"),
            ("positives", f"{(kept.labels > 0).sum():,} of {(documents.labels > 0).sum():,}"),
        ]
    )


def _known(how: str) -> str:
    if how not in NEEDS:
        raise ParameterError(
            f"unknown way to sample {how!r}; {did_you_mean(how, NEEDS)}expected one of {', '.join(NEEDS)}"
        )
    return how


def _scores(path: Path, documents: Dataset) -> np.ndarray:
    from ranksieve.forest.formats.model_files import load_forest

    return load_forest(path).predict(documents)

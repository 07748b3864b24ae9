"""`ranksieve describe`."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from ranksieve.cli.command import option, takes_options
from ranksieve.cli.console import check_writable, show_facts, show_line, show_table
from ranksieve.cli.describe_folders import describe_bins, describe_folder
from ranksieve.cli.describe_others import DESCRIBED, describe_log, describe_other
from ranksieve.cli.files import reads_data, show_biases
from ranksieve.cli.shared_options import Missing, metric_option, out_option
from ranksieve.errors import DataError, ParameterError

if TYPE_CHECKING:
    from ranksieve.data.blocks import Source
    from ranksieve.data.column_roles import ColumnRoles

KINDS = (
    "data file, model file, log of clicks, TREC run, judgements (TREC qrels), queries, JSON Lines of documents; folder "
    "of an index, a checkpoint, an experiment's results or bin files"
)
MOST_FEATURES = 10  # columns that are named
FREQUENT = 3  # categories of a feature that are named


@dataclass(frozen=True, kw_only=True)
class DescribeArguments:
    file: Annotated[Path, typer.Argument(metavar="FILE", help=f"What to describe: {KINDS}.")]
    events: Path | None = option(None, "OpenSearch's ubi_events, if FILE is its ubi_queries.", metavar="FILE")
    verify: bool = option(False, "Compare an index with its checksums.", "--verify")
    card: bool = option(False, "Write a model card: a Markdown page about a model.", "--card")
    data: list[Path] | None = option(None, "With --card: data to measure the model on.", "--data", "-d")
    metric: Annotated[
        list[str] | None, metric_option("With --card: metric on the data.", show_default="ndcg@10, map, mrr")
    ] = None
    out: Annotated[Path | None, out_option("With --card: file to write.", show_default="standard output")] = None
    missing: Missing = "zero"


@reads_data("file", "data")
@takes_options
def describe(given: DescribeArguments) -> None:
    """Describe what a file or a folder holds: data, a model, an index, a log of clicks, a run, judgements, queries."""
    from ranksieve.clicks.reading import is_log
    from ranksieve.data.bin_store import ENDING
    from ranksieve.data.column_roles import find_roles
    from ranksieve.data.data_file import DataFile
    from ranksieve.data.other_files import other_file
    from ranksieve.data.read import open_data
    from ranksieve.models.load import is_model, load

    file, path = given.file, os.fspath(given.file)
    if given.verify and not os.path.isdir(path):
        raise ParameterError(f"--verify is for index folders, and {file} is a file; leave it out")
    of_cards = [name for name in ("data", "metric", "out") if getattr(given, name)]
    if of_cards and not given.card:
        raise ParameterError(f"--{of_cards[0]} is for model cards; give --card")
    if given.card:
        _write_card(path, given.data or [], given.metric, given.out)
    elif os.path.isdir(path):
        describe_folder(path, verify=given.verify)
    elif path.endswith(ENDING) and os.path.isfile(path):
        describe_bins([Path(path)])
    elif is_log(path):
        describe_log(path, given.events)
    elif (other := other_file(path)) is not None and other in DESCRIBED:
        describe_other(path, other)
    elif is_model(path):
        _describe_model(load(path))
    elif other is not None:
        raise DataError(f"{path}: is {other.name}, which describe cannot show; it is for {other.used_by}")
    elif (roles := find_roles(DataFile(file))) is not None and not roles.is_readable:
        _describe_columns(roles)
    else:
        _describe_data(open_data(file, missing=given.missing))


def _write_card(path: str, data: list[Path], metric: list[str] | None, out: Path | None) -> None:
    from ranksieve.evaluation.model_card import USUAL_METRICS, model_card
    from ranksieve.files import atomic_text
    from ranksieve.models.load import is_model

    if os.path.isdir(path) or not is_model(path):
        raise ParameterError(f"--card is for model files, and {path} is not one; leave it out")
    if out is not None:
        check_writable(out, path, *data)
    card = model_card(path, {Path(one).name: one for one in data}, metrics=metric or USUAL_METRICS)
    if out is None:
        typer.echo(card, nl=False)
        return
    with atomic_text(out) as file:
        file.write(card)
    show_facts([("model card", str(out))])


def _describe_model(model: Any) -> None:
    from ranksieve.forest.summary import summarize
    from ranksieve.models.blend import Blend

    if isinstance(model, Blend):
        for number, (weight, part) in enumerate(zip(model.weights, model.models, strict=True), start=1):
            show_facts([(f"model {number} of {len(model.models)}", f"weight {weight:.6g}")])
            _describe_model(part)
        return
    summary = summarize(model)
    show_facts(summary.facts)
    show_biases(model.info)
    show_table(["feature", summary.column], summary.top_features(model.feature_names))


def _describe_columns(roles: ColumnRoles) -> None:
    """The columns of a table that cannot be read without options, and these options."""
    from ranksieve.data.column_roles import FEATURE, PERHAPS_QID
    from ranksieve.text_formats import counted

    features = [name for name, use in roles.uses.items() if use == FEATURE]
    left_out = set(features[MOST_FEATURES:])
    show_table(
        ["column", "holds", "likely to be"],
        [[name, kind, roles.uses[name]] for name, kind in roles.kinds.items() if name not in left_out],
        numbers=(),
    )
    if left_out:
        show_line(f"and {counted(feature=len(left_out))} more")
    needed = " ".join(f"--{role} {shlex.quote(name)}" for role, name in roles.flags.items())
    facts = [("options", f"{needed}; ranksieve describe, train and others need them to read this file")]
    if "NAME" in roles.flags.values():
        queries = [name for name, use in roles.uses.items() if use == PERHAPS_QID]
        perhaps = f"; --qid may be {' or '.join(queries)}" if queries else ""
        facts.append(("NAME", f"no column has a usual name for this; name the right one{perhaps}"))
    if roles.flags.get("label") == roles.flags.get("qid") == "NAME" and "ignore" in roles.flags:
        facts.append(("or", "ranksieve index, if these are documents to search"))
    if roles.categories:
        categories = shlex.quote(roles.categories)
        facts.append(
            ("or", f"--categorical {categories} instead of --ignore, for those that hold categories or lists of them")
        )
    show_facts(facts)


def _describe_data(source: Source) -> None:
    from ranksieve.data.blocks import ListsBuilder
    from ranksieve.data.lists import list_facts

    growing = ListsBuilder(source.path)
    zeros = missing = values = 0
    codes: dict[int, Counter[float]] = {}  # how often each category of a feature occurs
    for block in source.blocks():
        growing.append(block)
        names = [source.info.name_of(number) for number in range(block.features.shape[1])]
        categorical = np.isin(names, list(source.categories))
        for number in np.flatnonzero(categorical).tolist():
            column = block.features[:, number]
            found, counts = np.unique(column[column >= 0], return_counts=True)
            codes.setdefault(number, Counter()).update(dict(zip(found.tolist(), counts.tolist(), strict=True)))
        numbers = block.features[:, ~categorical]
        zeros += int(np.count_nonzero(numbers == 0))
        missing += int(np.count_nonzero(np.isnan(numbers)))
        values += numbers.size
    lists = growing.finish()
    facts = [
        *list_facts(lists, source.n_features or 0),
        ("values", f"{zeros / max(values, 1):.1%} zero, {missing / max(values, 1):.1%} missing"),
    ]
    if lists.positions is not None:
        facts.append(("positions", f"{lists.positions.min()} to {lists.positions.max()}"))
    if source.first_stage is not None:
        facts.append(("first-stage score", source.info.name_of(source.first_stage)))
    show_facts(facts)
    if codes:
        _show_categories(source, codes, lists.n_docs)
    grades = sorted(Counter(lists.labels.tolist()).items())
    shown = grades if len(grades) <= 20 else [*grades[:10], *grades[-10:]]
    show_table(
        ["label", "documents", "share"],
        [[f"{label:g}", f"{count:,}", f"{count / lists.n_docs:.2%}"] for label, count in shown],
    )


def _show_categories(source: Source, counts: dict[int, Counter[float]], n_docs: int) -> None:
    """The categorical features of a data file."""
    rows = []
    for number, found in sorted(counts.items()):
        name = source.info.name_of(number)
        names, known = source.categories[name], Counter({int(code): n for code, n in found.items() if code >= 0})
        most = [f"{names[code] if names else code} ({n / n_docs:.1%})" for code, n in known.most_common(FREQUENT)]
        rows.append([name, f"{len(known):,}", ", ".join(most), f"{1 - known.total() / n_docs:.1%}"])
    show_table(
        ["categorical feature", "categories", "most frequent", "missing"], rows, numbers=("categories", "missing")
    )

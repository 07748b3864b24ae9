"""`ranksieve describe`."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from ranksieve.cli.console import file_size, show_facts, show_table
from ranksieve.cli.corpus_options import vector_facts
from ranksieve.cli.data_files import reads_data
from ranksieve.cli.model_file import show_biases
from ranksieve.cli.shared_options import Missing
from ranksieve.errors import ParameterError
from ranksieve.parameter_table import table
from ranksieve.text_formats import counted, duration

if TYPE_CHECKING:
    from ranksieve.data.blocks import Source
    from ranksieve.forest.model import Model

TOP_FEATURES = 10


@reads_data("file")
def describe(
    file: Annotated[
        Path,
        typer.Argument(metavar="DATA|MODEL|INDEX|LOG", help="Data file, model file, index folder, or log of clicks."),
    ],
    events: Annotated[Path | None, typer.Option(metavar="FILE", help="OpenSearch's ubi_events of a log.")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Compare an index with its checksums.")] = False,
    missing: Missing = "zero",
) -> None:
    """Describe a data file, a model file, an index or a log of clicks."""
    from ranksieve.clicks.reading import is_log
    from ranksieve.data.read import open_data
    from ranksieve.models.load import load

    path = os.fspath(file)
    if verify and not os.path.isdir(path):
        raise ParameterError(f"--verify is for index folders, and {file} is a file; leave it out")
    if os.path.isdir(path):
        _describe_index(path, verify)
    elif is_log(path):
        _describe_log(path, events)
    elif is_model(path):
        _describe_model(load(path))
    else:
        _describe_data(open_data(file, missing=missing))


def is_model(path: str) -> bool:
    """Whether a file is a model, by its first bytes."""
    from ranksieve.data.compression import first_bytes
    from ranksieve.forest.formats.model_files import is_model as is_forest
    from ranksieve.models.json_model import START

    head = first_bytes(path)
    return is_forest(head) or START.startswith(head[: len(START)])


def _describe_index(path: str, verify: bool) -> None:
    from ranksieve.retrieval.index import Index

    index = Index(path)
    if verify:
        index.verify()
    facts = index.describe()
    fields = ", ".join(f"{name} ({length:,.1f})" for name, length in facts["fields"].items())
    rows = [
        ("documents", f"{facts['documents']:,}"),
        ("terms", f"{facts['terms']:,}"),
        ("fields, mean length", fields),
        ("numeric fields", ", ".join(facts["numbers"]) or "none"),
        ("first stage", facts["stage"] or "not set"),
        *([] if facts["vectors"] is None else [("vectors", vector_facts(facts["vectors"]))]),
        ("size", file_size(facts["bytes"])),
        *(("note", note) for note in facts["notes"]),
        *([("checksums", "match")] if verify else []),
    ]
    show_facts(rows)


def _describe_log(path: str, events: Path | None) -> None:
    from ranksieve.clicks.reading import read

    log = read(path, events)
    sizes, several = log.sizes, np.add.reduceat(log.clicks, log.offsets[:-1], dtype=int)
    facts = [
        ("pages", f"{log.n_pages:,}, {np.count_nonzero(several == 0):,} of them without clicks"),
        ("queries", f"{log.n_queries:,}"),
        ("documents", f"{log.n_documents:,}"),
        ("documents per page", f"{sizes.min():,} to {sizes.max():,}, mean {sizes.mean():,.1f}"),
        ("clicks per page", f"{several.min():,} to {several.max():,}, mean {several.mean():,.2f}"),
        (
            "pairs of query and document",
            f"{len(log.pairs):,}, each shown {len(log.clicks) / len(log.pairs):,.1f} times",
        ),
    ]
    if log.sessions is not None:
        facts.append(("sessions", f"{len(np.unique(log.sessions)):,}"))
    show_facts(facts)
    shown, clicked = log.by_place()
    rows = [
        [str(rank), f"{n:,}", f"{c:,}", f"{c / n:.2%}"]
        for rank, (n, c) in enumerate(zip(shown, clicked, strict=True), 1)
    ]
    show_table(["rank", "shown", "clicked", "share"], rows)


def _describe_model(model: Model) -> None:
    from ranksieve.forest.forest import Forest
    from ranksieve.models.blend import Blend
    from ranksieve.models.grades import Grades
    from ranksieve.models.linear import Linear
    from ranksieve.models.net import Net

    if isinstance(model, Blend):
        for number, (weight, part) in enumerate(zip(model.weights, model.models, strict=True), start=1):
            show_facts([(f"model {number} of {len(model.models)}", f"weight {weight:.6g}")])
            _describe_model(part)
        return
    info = model.info
    facts, column, importance = {Forest: _trees, Grades: _grades, Linear: _weights, Net: _influence}[type(model)](model)
    facts.append(("features", f"{model.n_features:,}, {np.count_nonzero(importance):,} of them used"))
    if info.get("best_score") is not None:
        facts.append(("validation", f"{info['params']['metric']} {info['best_score']:.4f}"))
    if info.get("seconds"):
        facts.append(
            (
                "training",
                f"{duration(sum(info['seconds']))} on {counted(**{info.get('round', 'tree'): len(info['seconds'])})}",
            )
        )
    if info.get("params"):
        facts.append(("parameters", _chosen(info["params"])))
    show_facts(facts)
    show_biases(info)
    best = [number for number in np.argsort(-np.abs(importance), kind="stable")[:TOP_FEATURES] if importance[number]]
    style = "{:.1%}" if column.startswith("share") else "{:+.4f}"
    show_table(
        ["feature", column],
        [[model.feature_names[number], style.format(importance[number])] for number in best],
    )


def _chosen(params: dict[str, Any]) -> str:
    """The algorithm, and the parameters that are not at their defaults."""
    defaults = json.loads(json.dumps({name: one.default for name, one in table().items()}))  # tuples become lists
    shown = [f"{name} {value}" for name, value in params.items() if name == "algo" or value != defaults.get(name)]
    return f"{', '.join(shown)}; all others at their defaults"


def _trees(forest: Any) -> tuple[list[tuple[str, str]], str, np.ndarray]:
    """Facts of a forest, and the gain of its features."""
    leaves = forest.n_leaves
    gains = np.bincount(forest.feature, weights=forest.gain, minlength=forest.n_features)
    facts = [
        ("trees", f"{forest.n_trees:,}"),
        ("leaves", f"{leaves.sum():,}, {leaves.mean():.1f} per tree" if forest.n_trees else "0"),
    ]
    return facts, "share of gain", gains / (gains.sum() or 1.0)


def _grades(model: Any) -> tuple[list[tuple[str, str]], str, np.ndarray]:
    """Facts of forests that predict grades."""
    facts, column, gains = _trees(model.forest)
    rounds = model.n_trees // model.n_outputs
    grades = f"{', '.join(f'{grade:g}' for grade in model.grades)}, {model.link} in {counted(round=rounds)}"
    return [("grades", grades), *facts], column, gains


def _weights(model: Any) -> tuple[list[tuple[str, str]], str, np.ndarray]:
    """Facts of a linear ranker, and the weights of its standardised features."""
    facts = [("linear ranker", model.size)]
    if "pairs" in model.info:
        facts.append(("pairs", f"{model.info['pairs']:,.0f}"))
    return facts, "weight", model.weights


def _influence(model: Any) -> tuple[list[tuple[str, str]], str, np.ndarray]:
    """Facts of a net, and how far its standardised features can move the score."""
    return [("net of two layers", model.size)], "influence", model.influence()


def _describe_data(source: Source) -> None:
    from ranksieve.data.list_builder import ListBuilder

    growing = ListBuilder(source.path)
    zeros = missing = values = 0
    for block in source.blocks():
        growing.append(block)
        zeros += int(np.count_nonzero(block.features == 0))
        missing += int(np.count_nonzero(np.isnan(block.features)))
        values += block.features.size
    lists = growing.finish()
    sizes, positives = lists.sizes, np.add.reduceat(lists.labels > 0, lists.offsets[:-1])
    facts = [
        ("documents", f"{lists.n_docs:,}"),
        ("queries", f"{lists.n_queries:,}, {np.count_nonzero(positives == 0):,} of them without positives"),
        ("features", f"{source.n_features:,}"),
        ("documents per query", f"{sizes.min():,} to {sizes.max():,}, mean {sizes.mean():,.1f}"),
        ("positives per query", f"{positives.min():,} to {positives.max():,}, mean {positives.mean():,.1f}"),
        ("values", f"{zeros / max(values, 1):.1%} zero, {missing / max(values, 1):.1%} missing"),
    ]
    if lists.positions is not None:
        facts.append(("positions", f"{lists.positions.min()} to {lists.positions.max()}"))
    if source.first_stage is not None:
        names = source.feature_names or ()
        name = names[source.first_stage] if names else f"f{source.first_stage + 1}"
        facts.append(("first-stage score", name))
    show_facts(facts)
    grades = sorted(Counter(lists.labels.tolist()).items())
    shown = grades if len(grades) <= 20 else [*grades[:10], *grades[-10:]]
    show_table(
        ["label", "documents", "share"],
        [[f"{label:g}", f"{count:,}", f"{count / lists.n_docs:.2%}"] for label, count in shown],
    )

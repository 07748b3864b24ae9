"""`model_card`: a model as a page of Markdown, for those who have to decide whether to use it."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ranksieve import __version__
from ranksieve.data.dataset import Dataset
from ranksieve.data.lists import list_facts
from ranksieve.errors import ModelError
from ranksieve.evaluation.evaluate import Evaluation, evaluate
from ranksieve.evaluation.metrics import Metric
from ranksieve.forest.model import TrainedModel
from ranksieve.forest.score_file import read_for_models
from ranksieve.forest.summary import cross_validated, data_size, default_params, summarize
from ranksieve.models.load import load
from ranksieve.text_formats import category_counts, counted

TOP_FEATURES = 20
USUAL_METRICS = ("ndcg@10", "map", "mrr")
LIBRARIES = ("numpy", "scipy", "numba")


def model_card(
    model: Any,
    data: Any = None,
    *,
    metrics: str | Metric | Iterable[str | Metric] = USUAL_METRICS,
    title: str | None = None,
    date: datetime | None = None,
) -> str:
    """A model card in Markdown: data, parameters, metrics, importance, date and versions.

    Parameters
    ----------
    model : model, fitted `Ranker`, or name of a model file
        A card of a file has the time at which the file was written; models themselves hold no dates.
    data : Dataset, file name, or mapping of names to them, optional
        Data sets to describe and to measure the model on, such as test data. A single one is named `test`.
    metrics
        What to measure on them.
    title : str, optional
        The heading; the name of the file by default.
    date : datetime, optional
        When the card was made; now by default.

    Examples
    --------
    >>> import ranksieve as rs
    >>> model = rs.train(rs.synth.cubic(20), trees=5, leaves=4)
    >>> card = rs.io.model_card(model, rs.synth.cubic(10, start=20), metrics="ndcg@10", title="Products")
    >>> [line for line in card.splitlines() if line.startswith("#")]
    ['# Products', '## Data', '## Metrics', '## Parameters', '## Importance', '## Versions']
    """
    path = model if isinstance(model, str | os.PathLike) else None
    trained = load(path) if path is not None else getattr(model, "model_", model)
    if not isinstance(trained, TrainedModel):
        raise ModelError(
            f"a {type(trained).__name__} has no card; give a model of rs.train, rs.load or rs.io.from_model, or a file"
        )
    given = data if isinstance(data, Mapping) else {} if data is None else {"test": data}
    sets = {str(name): read_for_models(one, [trained]) for name, one in given.items()}
    heading = title or (Path(path).name if path is not None else f"{type(trained).__name__} of {trained.size}")
    parts = [
        f"# {_plain(heading)}",
        _about(trained, path, date or datetime.now(timezone.utc)),
        "## Data",
        _data(trained, sets),
        "## Metrics",
        _metrics(trained, sets, metrics),
        "## Parameters",
        _parameters(trained.info.get("params", {})),
        "## Importance",
        _importance(trained),
        "## Versions",
        _versions(trained.info),
    ]
    return "\n\n".join(parts) + "\n"


def _about(model: TrainedModel, path: Any, date: datetime) -> str:
    rows = [("kind", type(model).__name__), *model.own_summary().facts]
    if path is not None:
        written = datetime.fromtimestamp(os.stat(path).st_mtime, timezone.utc)
        rows.append(("file", f"{Path(path).name}, written {written:%Y-%m-%d %H:%M} UTC"))
    return _table(["", ""], [*rows, ("card made", f"{date:%Y-%m-%d}")])


def _data(model: TrainedModel, sets: Mapping[str, Dataset]) -> str:
    sizes, first = model.info.get("data"), model.info.get("first_stage")
    lines = ["The model file does not say what it was trained on."]
    if sizes:
        valid = [f"{name}: {data_size(one)}" for name, one in sizes.get("valid", {}).items()]
        lines = [f"Trained on {data_size(sizes)}.", *([f"Validated on {'; '.join(valid)}."] if valid else [])]
    absent = "missing" if model.info.get("missing") == "nan" else "0"
    lines.append(f"It reads {model.n_features:,} features; an absent feature counts as {absent}.")
    if model.categories:
        lines.append(f"Categorical features: {_plain(category_counts(model.categories))}.")
    if first is not None:
        lines.append(f"The first stage's score is {_code(model.feature_names[first])}.")
    if not sets:
        return " ".join(lines)
    facts = {name: dict(list_facts(one.lists, one.n_features)) for name, one in sets.items()}
    names = list(dict.fromkeys(name for one in facts.values() for name in one))
    rows = [[name, *(one.get(name, "") for one in facts.values())] for name in names]
    return " ".join(lines) + "\n\nMeasured on:\n\n" + _table(["", *sets], rows)


def _metrics(
    model: TrainedModel, sets: Mapping[str, Dataset], metrics: str | Metric | Iterable[str | Metric]
) -> str:  # fmt: skip
    parts = []
    best = model.info.get("best_iteration") or 0
    steps = model.info.get("round", "tree")
    rows = [
        [name, metric, f"{values[min(best, len(values)) - 1]:.4f}"]
        for name, found in model.evals_result_.items()
        for metric, values in found.items()
        if values and best
    ]
    if rows:
        parts += [f"In training, after {steps} {best:,}:", _table(["data", "metric", "value"], rows)]
    if (chosen := cross_validated(model.info)) is not None:
        parts.append(f"Cross-validated to choose the number of {steps}s: {_plain(chosen)}.")
    if held_out := held_out_values(model.info):
        n_queries = counted(query=held_out["n"])
        values = [["model", f"{held_out['model']:.4f}"], ["first stage", f"{held_out['first_stage']:.4f}"]]
        parts += [
            f"Tested in training, on {n_queries} held out (p = {held_out['p_value']:.4f}):",
            _table(["", held_out["metric"]], values),
        ]
    found: dict[str, Evaluation] = {name: evaluate(model, one, metrics) for name, one in sets.items()}
    for name, evaluation in found.items():
        values = [[str(one), f"{evaluation.mean(metric=one):.4f}"] for one in evaluation.metrics]
        parts += [f"Measured on {_plain(name)}:", _table(["metric", "mean"], values)]
        parts.append("\n".join(f"- {_plain(line)}" for line in evaluation.conventions))
    return "\n\n".join(parts) or "None: there was no validation data, and the card was made without data."


def held_out_values(info: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The metric on held-out queries that the search page stores with a model it has trained; None of other models."""
    stored = info.get("held_out")
    numbers = ("first_stage", "model", "p_value", "n")
    if not isinstance(stored, Mapping) or not all(isinstance(stored.get(name), int | float) for name in numbers):
        return None
    return {**stored, "metric": str(stored.get("metric"))}


def _parameters(params: Mapping[str, Any]) -> str:
    if not params:
        return "The model file does not say how it was trained."
    defaults = default_params()
    rows = [
        [_code(name), _code(str(value)), "" if value == defaults.get(name) else _code(str(defaults.get(name, "")))]
        for name, value in params.items()
    ]
    return _raw_table(["parameter", "value", "default, if it is another"], rows)


def _importance(model: TrainedModel) -> str:
    summary = summarize(model)
    rows = summary.top_features(model.feature_names, TOP_FEATURES)
    if not rows:
        return "Features have no importance in a model of this kind."
    more = len(summary.importance.nonzero()[0]) - len(rows)
    shown = _raw_table(["feature", summary.column], [[_code(name), value] for name, value in rows])
    return shown + (f"\n\n{more:,} more features are used." if more else "")


def _versions(info: Mapping[str, Any]) -> str:
    rows = [("trained with ranksieve", str(info.get("ranksieve", "unknown")))]
    rows += [("card made with ranksieve", __version__), ("Python", platform.python_version())]
    return _table(["", ""], [*rows, *((name, version(name)) for name in LIBRARIES)])


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return _raw_table([_plain(cell) for cell in header], [[_plain(cell) for cell in row] for row in rows])


def _raw_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in (header, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]])


def _plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    shown = " ".join(text.split())
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>|#" else letter for letter in shown)


def _code(text: str) -> str:
    """Text in the letters of code; as plain text where it has a backtick."""
    return _plain(text) if "`" in text or not text.strip() else f"`{' '.join(text.split())}`".replace("|", "\\|")

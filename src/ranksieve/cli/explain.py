"""`ranksieve explain`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from ranksieve.cli.command import option, takes_options
from ranksieve.cli.console import show_facts, show_line, show_table, show_waiting
from ranksieve.cli.files import reads_data
from ranksieve.cli.shared_options import MissingAsTrained, ModelArgument, Seed, Threads, metric_option
from ranksieve.errors import ParameterError
from ranksieve.text_formats import counted

if TYPE_CHECKING:
    from ranksieve.data.dataset import Dataset
    from ranksieve.evaluation.explanations import Explanation
    from ranksieve.forest.ctr_forest import CtrForest
    from ranksieve.forest.forest import Forest

NAMED = 3  # features named beside a document


@dataclass(frozen=True, kw_only=True)
class ExplainArguments:
    model: ModelArgument
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Documents, with labels if a metric is to be computed.")]
    query: str | None = option(
        None, "Query to explain. Without it, the importance of features over all queries is shown.", "--query",
        metavar="ID",
    )  # fmt: skip
    above: str | None = option(
        None, "Document to compare with --below: its id, or its rank, from 1.", metavar="DOCUMENT"
    )
    below: str | None = option(None, "Document that --above is compared with: its id, or its rank.", metavar="DOCUMENT")
    drop: list[str] | None = option(None, "Show the ranking without this feature.", metavar="FEATURE")
    by: str = option(
        "contribution",
        "How --drop removes a feature: subtract its contribution, or score with the feature missing.",
        metavar="contribution|missing",
    )
    top: int = option(10, "Number of documents and features to show.", min=1)
    metric: Annotated[str, metric_option("Metric for the effect of a feature.")] = "ndcg@10"
    repeats: int = option(5, "Permutations of each feature (without --query).", min=1)
    seed: Seed = 0
    threads: Threads = 0
    missing: MissingAsTrained = None


@reads_data("data")
@takes_options
def explain(given: ExplainArguments) -> None:
    """Explain the ranking of one query, or show the importance of features over all queries.

    Contributions are exact (TreeSHAP): those of a document and the mean score add up to its score.
    """
    if (given.above is None) != (given.below is None):
        raise ParameterError("--above and --below need each other; give both")
    if given.query is None and (given.above is not None or given.drop):
        raise ParameterError("--above, --below and --drop need --query")
    from ranksieve.evaluation.explanations import explain as explain_query
    from ranksieve.evaluation.importance import importance
    from ranksieve.evaluation.metrics import parse_metric
    from ranksieve.forest.ctr_forest import trees_of
    from ranksieve.forest.score_file import open_for, read_for
    from ranksieve.models.load import load

    parse_metric(given.metric)
    name, top, threads = str(given.model), given.top, given.threads or None
    forest = trees_of(load(given.model))
    show_waiting("contributions")
    documents = read_for(forest, name, open_for(given.data, {name: forest}, given.missing), query=given.query)
    if given.query is None:
        options: dict[str, Any] = {
            "metric": given.metric,
            "repeats": given.repeats,
            "seed": given.seed,
            "threads": threads,
        }
        values = {
            kind: importance(forest, kind, data=documents, **options)
            for kind in ("gain", "split", "contribution", "permutation")
        }
        _show_importance(forest, documents, values, given.metric, top)
        return
    found = explain_query(forest, documents, given.query, threads=threads)
    if given.above is not None and given.below is not None:
        _show_why(found, given.above, given.below, top)
    elif given.drop:
        _show_drop(found, given.drop, given.by, top)
    else:
        _show_query(found, top)
        _show_features(found, given.metric, given.by, top)


def _show_importance(
    forest: Forest | CtrForest, data: Dataset, values: dict[str, np.ndarray], metric: str, top: int
) -> None:
    show_facts([("documents", f"{data.n_docs:,} of {counted(query=data.n_queries)}")])
    best = np.argsort(-values["contribution"], kind="stable")[:top]
    show_table(
        ["feature", "contribution", f"loss of {metric}", "share of gain", "splits"],
        [
            [forest.feature_names[f], f"{values['contribution'][f]:.4f}", f"{values['permutation'][f]:+.4f}",
             f"{values['gain'][f]:.1%}", f"{values['split'][f]:,}"]
            for f in best if values["split"][f]
        ],
    )  # fmt: skip
    _show_left_out(top, feature=int(np.count_nonzero(values["split"])))
    show_line("contribution: mean of absolute values; loss: decrease when the values of the feature are shuffled")


def _show_query(found: Explanation, top: int) -> None:
    show_facts(
        [("query", f"{found.query_id}, {counted(document=len(found.scores))}"), ("mean score", f"{found.expected:.4f}")]
    )
    rows = []
    for place, d in enumerate(found.order[:top], 1):
        parts = found.contributions[d]
        up, down = np.argsort(-parts, kind="stable")[:NAMED], np.argsort(parts, kind="stable")[:NAMED]
        rows.append(
            [
                str(place),
                found.documents[d],
                f"{found.labels[d]:g}",
                f"{found.scores[d]:.4f}",
                "\n".join(_named(found, d, f) for f in up if parts[f] > 0),
                "\n".join(_named(found, d, f) for f in down if parts[f] < 0),
            ]
        )
    show_table(["rank", "document", "label", "score", "raised by", "lowered by"], rows, numbers=("label", "score"))
    _show_left_out(top, document=len(found.scores))


def _show_features(found: Explanation, metric: str, by: str, top: int) -> None:
    """The effect on the ranking of the features whose contributions differ most among the documents."""
    from ranksieve.evaluation.analyses import list_ranks
    from ranksieve.evaluation.explanations import REMOVALS
    from ranksieve.evaluation.metrics import parse_metric

    wanted, offsets = parse_metric(metric), np.array([0, len(found.scores)])
    before = wanted.per_query(found.labels, found.scores, offsets)[0]
    spread, best = found.contributions.std(axis=0), set(found.order[:top].tolist())
    rows = []
    for f in np.argsort(-spread, kind="stable")[:top]:
        if spread[f] == 0.0:
            break
        scores = found.scores_without(int(f), by=by)
        after = wanted.per_query(found.labels, scores, offsets)[0]
        moved = np.abs(list_ranks(scores, offsets) - found.ranks)
        left = len(best - set(np.argsort(-scores, kind="stable")[:top].tolist()))
        lost = "" if np.isnan(after) else f"{before - after:+.4f}"
        rows.append([found.feature_names[f], f"{spread[f]:.4f}", str(left), str(moved.max()), lost])
    show_table(
        ["feature", "spread", f"documents that leave the top {top}", "largest move", f"loss of {metric}"],
        rows,
        title="Without the feature",
    )
    _show_left_out(top, feature=int(np.count_nonzero(spread)))
    show_line(
        f"spread: standard deviation of contributions; without a feature: {REMOVALS[by]}."
        + ("" if np.isnan(before) else f" {metric} with all features: {before:.4f}")
    )


def _show_why(found: Explanation, above: str, below: str, top: int) -> None:
    from ranksieve.evaluation.explanations import value_text

    a, b = found.document(above), found.document(below)
    ranks, names = found.ranks, found.documents
    show_facts(
        [
            ("query", f"{found.query_id}, {counted(document=len(found.scores))}"),
            *((f"rank {ranks[d]}", f"{names[d]}, label {found.labels[d]:g}, score {found.scores[d]:.4f}")
              for d in (a, b)),
            ("difference", f"{found.scores[a] - found.scores[b]:+.4f}"),
        ]
    )  # fmt: skip
    if ranks[a] > ranks[b]:
        show_line(f"{names[a]} is ranked below {names[b]}, not above it")
    differences = found.why(above, below)
    rows = [
        [item.feature, value_text(item.value_above), value_text(item.value_below), f"{item.above:+.4f}",
         f"{item.below:+.4f}", f"{item.difference:+.4f}"]
        for item in differences[:top]
    ]  # fmt: skip
    if rest := differences[top:]:
        sums = [sum(getattr(item, name) for item in rest) for name in ("above", "below", "difference")]
        rows.append([f"the other {len(rest)}", "", "", *(f"{value:+.4f}" for value in sums)])
    first, second = f"rank {ranks[a]}", f"rank {ranks[b]}"
    columns = ["feature", f"value, {first}", f"value, {second}", f"adds, {first}", f"adds, {second}", "difference"]
    show_table(columns, rows)


def _show_drop(found: Explanation, features: list[str], by: str, top: int) -> None:
    from ranksieve.evaluation.explanations import REMOVALS

    before, after = found.ranks, found.ranks_without(features, by=by)
    shown = [d for d in found.order if before[d] <= top or after[d] <= top]
    show_table(
        ["document", "label", "rank", "without", "moves"],
        [
            [found.documents[d], f"{found.labels[d]:g}", str(before[d]), str(after[d]), _move(before[d] - after[d])]
            for d in shown
        ],
    )  # fmt: skip
    if len(shown) < len(found.order):
        show_line(f"{counted(document=len(found.order) - len(shown))} stay below rank {top}")
    show_line(f"{', '.join(features)}: {REMOVALS[by]}")


def _move(places: int) -> str:
    """How a document moves in a ranking; up is towards the first rank."""
    return f"{'up' if places > 0 else 'down'} {abs(places)}" if places else "="


def _show_left_out(top: int, **number: int) -> None:
    """Show how many entries the table above leaves out."""
    ((_, n),) = number.items()
    if n > top:
        show_line(f"the first {top} of {counted(**number)}; --top shows more")


def _named(found: Explanation, document: int, feature: int) -> str:
    """A feature and what it adds to a document's score; with the name of the category, where it has one."""
    value, part = found.value(document, feature), found.contributions[document, feature]
    return f"{found.feature_names[feature]}{f'={value}' if isinstance(value, str) else ''} {part:+.3f}"

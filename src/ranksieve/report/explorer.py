"""The data of a report's query explorer: for the best choice of each run, its value and ranking of every query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ranksieve.experiments.results import Group, Results

MOST_QUERIES = 500  # most queries of a data set; more would make the page large


def explorer_data(results: Results) -> list[dict[str, Any]]:
    """For each data set its queries, and each run's values and documents by query; plain lists and numbers.

    Data sets with a single run are left out: there is nothing to compare.
    """
    metric = results.facts["metrics"][0]
    several = [data for data in results.data if len(results.best(data)) > 1]
    return [found for data in several if (found := _explored(results, data, metric))["queries"]]


def _explored(results: Results, data: str, metric: str) -> dict[str, Any]:
    groups = results.best(data)
    names = np.unique(np.concatenate([group.per_query(metric)[0] for group in groups]))
    values = np.array([_aligned(names, *group.per_query(metric)) for group in groups])
    shown = _most_different(values)
    names, values = names[shown], values[:, shown]
    sizes, positives = (_aligned(names, *_of_all(groups, column)) for column in ("n_docs", "n_positives"))
    models = [
        {
            "label": group.label,
            "baseline": group.run == results.facts["baseline"],
            "values": [None if np.isnan(value) else round(float(value), 6) for value in row],
            "documents": list(_documents(group, names)),
        }
        for group, row in zip(groups, values, strict=True)
    ]
    queries = [
        {"name": str(name), "n_docs": int(size), "n_positives": int(count)}
        for name, size, count in zip(names, sizes, positives, strict=True)
    ]
    return {"name": data, "queries": queries, "models": models}


def _aligned(names: np.ndarray, known: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Values by name, NaN for unknown names."""
    found = np.full(len(names), np.nan)
    _, to, at = np.intersect1d(names, known, return_indices=True)
    found[to] = values[at]
    return found


def _of_all(groups: list[Group], column: str) -> tuple[np.ndarray, np.ndarray]:
    """A column that is the same for all groups, of the queries of any of them."""
    parts = [group.per_query(column) for group in groups]
    names, first = np.unique(np.concatenate([names for names, _ in parts]), return_index=True)
    return names, np.concatenate([values for _, values in parts])[first]


def _most_different(values: np.ndarray) -> np.ndarray:
    """Positions of the queries on which the models differ most, in order."""
    usable = np.flatnonzero((~np.isnan(values)).any(axis=0))
    spread = np.nanmax(values[:, usable], axis=0) - np.nanmin(values[:, usable], axis=0)
    return np.sort(usable[np.argsort(-spread, kind="stable")[:MOST_QUERIES]])


def _documents(group: Group, names: np.ndarray) -> Iterator[list[list[Any]]]:
    """The stored documents of each query: rank, label, first-stage rank, score, id; from the first cell that has it."""
    found: dict[str, list[list[Any]]] = {}
    for cell in group.cells:
        table = cell.table("documents")
        here: dict[str, list[list[Any]]] = {}
        for place in range(len(table["query"])):
            name = str(table["query"][place])
            if name not in found:
                here.setdefault(name, []).append(_document(table, place))
        found.update(here)
    for name in names:
        yield sorted(found.get(str(name), []))


def _document(table: dict[str, np.ndarray], place: int) -> list[Any]:
    known = table["first_stage_rank"][place] if "first_stage_rank" in table else None
    name = table["doc_id"][place] if "doc_id" in table else f"no. {int(table['document'][place]) + 1}"
    return [
        int(table["rank"][place]),
        float(table["label"][place]),
        None if known is None else int(known),
        round(float(table["score"][place]), 6),
        str(name),
    ]

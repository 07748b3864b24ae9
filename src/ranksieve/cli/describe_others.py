"""What `ranksieve describe` says of files that are neither data nor models: runs, judgements, queries, logs, texts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from ranksieve.cli.console import show_facts, show_table
from ranksieve.data.other_files import JSON_LINES, QRELS, QUERIES, RUN, TRIALS, OtherFile

Facts = list[tuple[str, str]]


def describe_other(path: str, kind: OtherFile) -> None:
    """Describe a file of a kind in `DESCRIBED`."""
    show_facts([*DESCRIBED[kind](path), ("used by", kind.used_by)])


def _run(path: str) -> Facts:
    from ranksieve.retrieval.runs import read_run

    run = read_run(path)
    sizes = np.diff(run.offsets)
    return [
        ("queries", f"{run.n_queries:,}"),
        ("documents per query", f"{sizes.min():,} to {sizes.max():,}, mean {sizes.mean():,.1f}"),
        ("scores", f"{run.scores.min():.6g} to {run.scores.max():.6g}"),
    ]


def _judgements(path: str) -> Facts:
    from ranksieve.retrieval.runs import read_judgements

    judgements = read_judgements(path)
    sizes = np.array([len(grades) for grades in judgements.values()])
    grades = np.array([grade for given in judgements.values() for grade in given.values()])
    without = sum(max(given.values()) <= 0 for given in judgements.values())
    counts = zip(*np.unique(grades, return_counts=True), strict=True)
    return [
        ("queries", f"{len(judgements):,}, {without:,} of them without a relevant document"),
        ("judged documents per query", f"{sizes.min():,} to {sizes.max():,}, mean {sizes.mean():,.1f}"),
        ("grades", ", ".join(f"{grade:g}: {n:,} ({n / len(grades):.2%})" for grade, n in counts)),
    ]


def _queries(path: str) -> Facts:
    from ranksieve.retrieval.queries import read_queries

    queries = read_queries(path)
    sizes = [len(text.split()) for text in queries.values()]
    return [
        ("queries", f"{len(queries):,}, not data to train on"),
        ("words per query", f"{min(sizes):,} to {max(sizes):,}, mean {np.mean(sizes):,.1f}"),
    ]


def _json_lines(path: str) -> Facts:
    from ranksieve.retrieval.corpus import kind_of_value, plain_text, read_documents

    n_lines, words = 0, Counter[str]()
    kinds: dict[str, Counter[str]] = {}
    for _, document in read_documents(path):
        n_lines += 1
        for name, value in document.items():
            if kind := kind_of_value(value):
                kinds.setdefault(name, Counter())[kind] += 1
            if kind == "text":
                words[name] += len((plain_text(value) or "").split())
    rows = [
        [name, found.most_common(1)[0][0], f"{found.total() / n_lines:.1%}",
         f"{words[name] / found['text']:,.1f}" if found["text"] else ""]
        for name, found in kinds.items()
    ]  # fmt: skip
    show_table(["field", "holds", "of the lines", "words, mean"], rows, numbers=("of the lines", "words, mean"))
    return [("JSON objects", f"{n_lines:,}, not data to train on")]


DESCRIBED = {
    RUN: _run, QRELS: _judgements, QUERIES: _queries, TRIALS: lambda _: [("holds", TRIALS.name)],
    JSON_LINES: _json_lines,
}  # fmt: skip


def describe_log(path: str, events: Path | None) -> None:
    """Describe a log of clicks."""
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
    show_facts([*facts, ("used by", "ranksieve clicks")])
    shown, clicked = log.by_place()
    rows = [
        [str(rank), f"{n:,}", f"{c:,}", f"{c / n:.2%}"]
        for rank, (n, c) in enumerate(zip(shown, clicked, strict=True), 1)
    ]
    show_table(["rank", "shown", "clicked", "share"], rows)

"""Expanded queries whose constants are chosen within folds, and SelGB that starts from them.

    python benchmarks/retrieval_expansions.py ../shared/data/ir [--collection cranfield …]

The features `opening.*` and `expanded.*` have constants that were chosen by looking at whole collections. Here they are
chosen on the queries to learn from alone, from a grid: k1 and b of BM25, how far the opening of a text reaches, how
many documents and terms expand a query by what share. Three sides rank the candidates of BM25F with default
parameters, by cross-validation over five splits into folds:

- the variation that is best on the four other folds, with nothing else learned,
- SelGB by the protocol of retrieval_quality.py without the features of the two families, its smaller trees starting
  from the variation that is best on the three folds which they learn from,
- the same, but starting from the best of the features that remain.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import ranksieve as rs
from ranksieve.evaluation.significance import randomization_test
from ranksieve.retrieval.feature_extractor import saturated
from ranksieve.retrieval.first_stage import idf
from ranksieve.retrieval.queries import QueryAnalysis
from ranksieve.retrieval.runs import Run
from retrieval_families import grid_of, measure_collections, names_without
from retrieval_quality import (
    FIELDS,
    NUMBERS,
    BestScores,
    best_feature,
    cross_validated,
    measurer,
    places,
    read_collection,
    split,
    tuned_values,
)

DEPTH = 300
SPLITS = 5  # into folds; a query's values are averaged over them
K1 = (0.9, 1.2, 1.6, 2.0)
B = (0.4, 0.5, 0.6, 0.75, 0.9)
REACHES = (0.0, 4.0, 8.0, 16.0)  # the first occurrence of a term at place p counts 1 + exp(-p / reach); 0: as others
DOCS = (3, 5, 10, 20)
TERMS = (10, 20, 50)
SHARES = (0.3, 0.5, 0.7)
LEFT_OUT = ("opening.", "expanded.")


def variations(index: rs.Index, queries: list[str], data: rs.Dataset) -> dict[str, np.ndarray]:
    """Scores of all candidates by every variation, by its name."""
    (starts, terms, tfs), firsts = index.forward(np.arange(index.n_docs))
    shape = (index.n_docs, index.n_terms)
    counts = sp.csr_matrix((tfs.astype(float), terms, starts), shape)
    lengths, weights = index.lengths[-1], idf(index.n_docs, index.document_frequency[:, -1])
    prepared = QueryAnalysis(index).prepare(queries)
    entries = (saturated(prepared.weights.max(axis=1)), prepared.terms, prepared.starts)
    query_weights = sp.csr_matrix(entries, (len(queries), index.n_terms)).toarray()
    query_weights /= np.maximum(query_weights.sum(axis=1, keepdims=True), 1e-12)
    docs = np.array([index.numbers_of_ids[id] for id in data.lists.doc_ids])
    first, spans = data.column("first.score"), list(itertools.pairwise(data.offsets))
    found: dict[str, list[np.ndarray]] = {}
    for k1, b, reach in itertools.product(K1, B, REACHES):
        full = counts.data + (np.exp(firsts / -reach) if reach else 0.0)
        half = np.repeat(k1 * (1 - b + b * lengths / lengths.mean()), np.diff(starts))
        vectors = sp.csr_matrix((full / (full + half) * (k1 + 1) * weights[terms], terms, starts), shape)
        for q, (begin, end) in enumerate(spans):
            candidates = vectors[docs[begin:end]]
            plain = candidates @ query_weights[q]
            found.setdefault(f"k1={k1} b={b} reach={reach}", []).append(plain)
            for name, query in expansions(candidates, first[begin:end]):
                scores = candidates @ query
                for share in SHARES:
                    mixed = (1 - share) * plain + share * scores
                    found.setdefault(f"k1={k1} b={b} reach={reach} {name} share={share}", []).append(mixed)
    return {name: np.concatenate(scores) for name, scores in found.items()}


def expansions(candidates: sp.csr_matrix, scores: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Queries of the terms that weigh most in the best candidates, whose weights add up to one."""
    order = np.argsort(-scores, kind="stable")
    for n_docs in DOCS:
        best = order[:n_docs]
        weights = candidates[best].T @ scores[best]
        for n_terms in TERMS:
            query = np.zeros(len(weights))
            largest = np.argsort(-weights, kind="stable")[:n_terms]
            query[largest] = weights[largest] / weights[largest].sum()
            yield f"docs={n_docs} terms={n_terms}", query


def measure(folder: Path) -> list[dict]:
    """A row for each side: its NDCG@10, and p against BM25F, BM25F tuned and the expanded query alone."""
    queries, judgements = read_collection(folder)
    fields, numbers, order = FIELDS[folder.name], NUMBERS.get(folder.name, []), list(judgements)
    splits = [split(order, seed) for seed in range(SPLITS)]
    with tempfile.TemporaryDirectory() as out:
        index = rs.Index.build(folder / "corpus.jsonl.xz", f"{out}/index", fields=fields, numbers=numbers)
        data = rs.retrieval.extract_features(
            index, queries, judgements=judgements, depth=DEPTH, select=["*", "relative.*"]
        )
        query_ids = data.query_ids.astype(str).tolist()
        chosen = BestScores(variations(index, [queries[id] for id in query_ids], data), data.lists)
        per_query = measurer(index, queries, judgements)
        tuned = np.mean([tuned_values(index, places(folds, order), per_query)[0] for folds in splits], axis=0)
    names = names_without(data, LEFT_OUT)
    single, ids = best_feature(data, names), np.repeat(query_ids, data.lists.sizes)
    learned = lambda folds, start: cross_validated(data, folds, start, grid_of(names))[0]  # noqa: E731
    sides = {
        "BM25F": lambda _: data.column("first.score"),
        "expanded query": lambda folds: chosen.cross_validated(folds, data.lists),
        "SelGB from expanded query": lambda folds: learned(folds, chosen),
        "SelGB from the best feature": lambda folds: learned(folds, single),
    }
    rows, known = [], {" tuned": tuned}
    for name, scores in sides.items():
        begun, chosen.taken, single.taken = time.process_time(), Counter(), Counter()
        made = (scores(places(folds, query_ids)) for folds in splits)
        runs = [Run.from_rows(zip(ids, data.lists.doc_ids, some, strict=True)) for some in made]
        each = np.array([rs.retrieval.evaluate_run({name: run}, judgements, "ndcg@10").per_query() for run in runs])
        values = each.mean(axis=0)
        known |= {"BM25F": {"": values}, "expanded query": {" expanded": values}}.get(name, {})
        row = {"collection": folder.name, "queries": len(queries), "variations": len(chosen.names), "side": name}
        row |= {"ndcg@10": round(float(values.mean()), 4), "splits": each.mean(axis=1).round(4).tolist()}
        for against, others in known.items():
            test = randomization_test(values, others)
            row |= {f"relative %{against}": round(test.relative, 1), f"p{against}": round(test.p_value, 4)}
        row |= {"tuned bm25f": round(float(tuned.mean()), 4), "taken": dict(chosen.taken | single.taken)}
        rows.append(row | {"cpu s": round(time.process_time() - begun, 1)})
        print(rows[-1], flush=True)
    return rows


if __name__ == "__main__":
    measure_collections("retrieval_expansions", measure, __doc__)

"""From a corpus to a re-ranked run, by five-fold cross-validation: SelGB against its first stage, BM25F.

    python benchmarks/retrieval_quality.py ../shared/data/ir [--depth 300] [--collection cranfield …]

Every query is ranked by a model that has neither trained on it nor been chosen by it. One setting for all collections.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from pathlib import Path

import numpy as np

import ranksieve as rs
from ranksieve.data.splits import fold_queries
from ranksieve.retrieval.queries import read_queries
from ranksieve.retrieval.runs import Run
from results import save

BUG_FIELDS = ["file=path~[^/]+$", "path", "text"]
FIELDS = {
    "bugs-ecf": BUG_FIELDS,
    "bugs-eclipse.jdt.debug": BUG_FIELDS,
    "bugs-eclipse.pde.ui": BUG_FIELDS,
    "bugs-tomcat70": BUG_FIELDS,
    "cranfield": ["title", "text"],
    "vaswani": ["text"],
    "esci_us_shrunk": ["title", "description", "bullet_points", "brand"],
}
NUMBERS = {"esci_us_shrunk": ["price", "rating", "rating_count"]}
SELGB = {
    "algo": "selgb", "negatives": 0.2, "leaves": 8, "learning_rate": 0.1, "trees": 150, "early_stopping": 40,
    "min_docs": 50, "l2": 20.0, "feature_fraction": 0.3,
}  # fmt: skip
METRICS = ("ndcg@10", "map", "mrr")
MOST_POSITIVES = 50  # a few bug reports concern hundreds of files


def read_collection(folder: Path) -> tuple[dict[str, str], dict]:
    """Queries and judgements; of bug reports without their own number, which comments of the fix may name."""
    queries, judgements = read_queries(folder / "queries.tsv.xz"), rs.read_judgements(folder / "qrels.txt.xz")
    positives = {id: sum(grade > 0 for grade in grades.values()) for id, grades in judgements.items()}
    most = MOST_POSITIVES if folder.name.startswith("bugs-") else np.inf
    queries = {id: text for id, text in queries.items() if 0 < positives.get(id, 0) <= most}
    if folder.name.startswith("bugs-"):
        for id, text in queries.items():
            number = id.rsplit("-", 1)[1]
            queries[id] = re.sub(rf"\b(bug\s*)?{number}\b", " ", text, flags=re.IGNORECASE)
    return queries, {id: judgements[id] for id in queries}


def cross_validated(data: rs.Dataset, folds: int = 5) -> tuple[np.ndarray, list[int]]:
    """Scores of all documents by models that have not seen their queries, and how many trees these have."""
    scores, sizes = np.empty(data.n_docs), []
    for train, valid, test in fold_queries(data.n_queries, folds):
        model = rs.train(data.take_queries(train), valid=data.take_queries(valid), **SELGB)
        scores[data.lists.take_queries(test)[1]] = model.predict(data.take_queries(test))
        sizes.append(model.n_trees)
    return scores, sizes


def measure(folder: Path, depth: int) -> dict:
    queries, judgements = read_collection(folder)
    with tempfile.TemporaryDirectory() as out:
        index = rs.Index.build(
            folder / "corpus.jsonl.xz", f"{out}/index", fields=FIELDS[folder.name], numbers=NUMBERS.get(folder.name, [])
        )
        start = time.perf_counter()
        data = index.features(queries, judgements=judgements, depth=depth)
        seconds = time.perf_counter() - start
        deep = index.retrieve(queries, 1000)
    scores, sizes = cross_validated(data)
    ids = np.repeat(data.query_ids.astype(str), data.lists.sizes)
    runs = {
        "bm25f": Run.from_rows(zip(ids, data.lists.doc_ids, data.column("first.score"), strict=True)),
        "selgb": Run.from_rows(zip(ids, data.lists.doc_ids, scores, strict=True)),
    }
    result = rs.evaluate_run(runs, judgements, METRICS)
    test = result.compare("selgb", "bm25f")
    return {
        "collection": folder.name,
        "queries": len(queries),
        "documents": index.n_docs,
        "depth": depth,
        "features": data.n_features,
        "recall@1000": round(rs.evaluate_run({"bm25f": deep}, judgements, "recall@1000").mean(), 4),
        **{f"{name} {metric}": round(result.mean(name, metric), 4) for name in runs for metric in METRICS},
        "relative %": round(test.relative, 1),
        "p": round(test.p_value, 4),
        "trees": sizes,
        "feature seconds": round(seconds, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--depth", type=int, default=300)
    parser.add_argument("--collection", nargs="+", default=list(FIELDS))
    arguments = parser.parse_args()
    rows = []
    for name in arguments.collection:
        rows.append(measure(arguments.folder / name, arguments.depth))
        print(rows[-1], flush=True)
    save("retrieval_quality", rows)


if __name__ == "__main__":
    main()

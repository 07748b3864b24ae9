"""From a corpus to a re-ranked run, by five-fold cross-validation: SelGB against its first stage, BM25F.

    python benchmarks/retrieval_quality.py ../shared/data/ir [--depth 300] [--collection cranfield …] [--resume]

One protocol for all collections. For each fold that tests, every setting of one small grid is trained four times on
three of the other folds and validated on the fourth; the setting and the number of trees with the best mean NDCG@10 on
these validation lists are taken, and the mean of its four models ranks the fold that tests. So every query is ranked
by models that have neither learned from it nor been chosen by it. BM25F has its default parameters, untuned, and SelGB
at most 60 trees. Rows are saved one by one; `--resume` makes the missing.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import tempfile
import time
from pathlib import Path

import numpy as np

import ranksieve as rs
from ranksieve.forest.forest import concatenate
from ranksieve.retrieval.queries import read_queries
from ranksieve.retrieval.runs import Run
from results import FOLDER, save

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
FOLDS = 5
SELGB = {
    "algo": "selgb", "negatives": 0.2, "leaves": 8, "learning_rate": 0.2, "trees": 60, "early_stopping": 0,
    "min_docs": 50, "l2": 20.0, "feature_fraction": 0.3, "threads": 1,
}  # fmt: skip
GRID = {"relative": {"features": "relative.*"}, "both": {"features": "*"}}
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


Model = tuple[rs.Forest, dict[int, np.ndarray]]  # and its validation NDCG@10 after every tree, by fold left out


def models_without(data: rs.Dataset, folds: list[np.ndarray], setting: dict) -> dict[tuple[int, int], Model]:
    """A model for every two folds left out: where one of them tests, the other validates."""
    models = {}
    for pair in itertools.combinations(range(FOLDS), 2):
        rest = np.concatenate([folds[fold] for fold in range(FOLDS) if fold not in pair])
        sets = {str(fold): data.take_queries(folds[fold]) for fold in pair}
        model = rs.train(data.take_queries(np.sort(rest)), valid=sets, **SELGB | setting)
        models[pair] = (model, {fold: np.array(model.evals_result_[str(fold)]["ndcg@10"]) for fold in pair})
    return models


def cross_validated(data: rs.Dataset) -> tuple[np.ndarray, list[dict]]:
    """Scores of all documents by models that have not seen their queries, and what was chosen for each fold."""
    folds = [np.sort(part) for part in np.array_split(np.random.default_rng(0).permutation(data.n_queries), FOLDS)]
    models = {name: models_without(data, folds, setting) for name, setting in GRID.items()}
    scores, chosen = np.empty(data.n_docs), []
    for test in range(FOLDS):
        others = [fold for fold in range(FOLDS) if fold != test]
        pairs = [tuple(sorted((test, fold))) for fold in others]
        sizes = [len(folds[fold]) for fold in others]
        curves = {
            name: np.average([found[pair][1][fold] for pair, fold in zip(pairs, others, strict=True)], 0, sizes)
            for name, found in models.items()
        }
        best = max(curves, key=lambda name: curves[name].max())
        n_trees = int(curves[best].argmax()) + 1
        bag = concatenate([models[best][pair][0].first(n_trees) for pair in pairs])
        scores[data.lists.take_queries(folds[test])[1]] = bag.predict(data.take_queries(folds[test]))
        chosen.append({"setting": best, "trees": n_trees, "valid": round(float(curves[best].max()), 4)})
    return scores, chosen


def measure(folder: Path, depth: int) -> dict:
    queries, judgements = read_collection(folder)
    with tempfile.TemporaryDirectory() as out:
        index = rs.Index.build(
            folder / "corpus.jsonl.xz", f"{out}/index", fields=FIELDS[folder.name], numbers=NUMBERS.get(folder.name, [])
        )
        start = time.perf_counter()
        data = index.features(queries, judgements=judgements, depth=depth, select=["*", "relative.*"])
        seconds = time.perf_counter() - start
        deep = index.retrieve(queries, 1000)
    start = time.perf_counter()
    scores, chosen = cross_validated(data)
    learning = time.perf_counter() - start
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
        "chosen": chosen,
        "feature seconds": round(seconds, 1),
        "learning seconds": round(learning, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--depth", type=int, default=300)
    parser.add_argument("--collection", nargs="+", default=list(FIELDS))
    parser.add_argument("--resume", action="store_true", help="keep the rows that are there")
    arguments = parser.parse_args()
    rows = kept_rows(arguments)
    for name in arguments.collection:
        if name not in rows:
            rows[name] = measure(arguments.folder / name, arguments.depth)
            print(rows[name], flush=True)
            save("retrieval_quality", [rows[name] for name in FIELDS if name in rows])


def kept_rows(arguments: argparse.Namespace) -> dict[str, dict]:
    """Rows of an earlier run: with --resume all of them, else those of collections that are not measured now."""
    path = FOLDER / "retrieval_quality.json"
    rows = {row["collection"]: row for row in json.loads(path.read_text())["rows"]} if path.exists() else {}
    return {name: row for name, row in rows.items() if arguments.resume or name not in arguments.collection}


if __name__ == "__main__":
    main()

"""What vectors add: BM25F, dense and hybrid first stages, and SelGB with and without features of vectors.

    python benchmarks/vectors.py ../shared/data/ir [--collection cranfield …] [--splits 3] [--encoder minilm.py:encode]

Vectors are those of the encoder that an index fits on its own texts (svd:128, svd:256), or of `--encoder`. The share of
`dense` in the convex combination is chosen for each of five folds on the other four. SelGB has the default parameters;
it is trained on three folds, stops by the fourth and ranks the fifth, on the 200 best candidates, of BM25F or of
reciprocal rank fusion. A query's values are averaged over the splits into folds. Relevant documents that are not among
the candidates count as not found. p-values of the two-sided randomization test, of first stages against BM25F, of SelGB
against SelGB without vectors.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import ranksieve as rs
from defaults import MOVIES
from ranksieve.data.sampling import fold_queries
from ranksieve.evaluation.significance import randomization_test
from ranksieve.retrieval.fusion import fuse
from ranksieve.retrieval.runs import Run
from ranksieve.retrieval.tuning import GRIDS
from ranksieve.user_functions import import_function
from results import FOLDER, save
from retrieval_quality import FIELDS, NUMBERS, read_collection

COLLECTIONS = ("cranfield", "vaswani", "esci_us_shrunk", "movies")
ENCODERS = ("svd:128", "svd:256")  # SelGB is trained with the last
MOST_QUERIES = {"movies": 1000}  # the first of a large collection
DEPTH, POOL, FOLDS = 200, 1000, 5
METRIC = "ndcg@10"
TRAINING: dict[str, Any] = {"threads": 1, "verbose": False}
WORDS, WITH_VECTORS, ON_HYBRID = "selgb", "selgb, vectors", "selgb, vectors, candidates of rrf"


def per_query(run: Run, judgements: dict, metric: str = METRIC) -> np.ndarray:
    """The metric of every judged query, in the order of the judgements."""
    return rs.retrieval.evaluate_run({"run": run}, judgements, metric).per_query("run", metric)


def folds(n_queries: int, splits: int) -> list[tuple[np.ndarray, ...]]:
    """Places of the queries to train on, to stop by and to test on."""
    return [split for seed in range(splits) for split in fold_queries(n_queries, FOLDS, seed=seed)]


def tuned_combination(runs: list[Run], judgements: dict, splits: int) -> tuple[np.ndarray, list[float]]:
    """NDCG of every query by the share of `dense` that is best on the other folds, and these shares."""
    shares = GRIDS["dense_share"]
    values = np.array(
        [per_query(fuse(runs, "sum", weights=[1 - share, share], depth=DEPTH), judgements) for share in shares]
    )
    found, chosen = np.zeros(len(judgements)), []
    for train, valid, test in folds(len(judgements), splits):
        best = int(values[:, np.concatenate([train, valid])].mean(axis=1).argmax())
        found[test] += values[best, test] / splits
        chosen.append(shares[best])
    return found, chosen


def selgb(data: rs.Dataset, judgements: dict, splits: int) -> np.ndarray:
    """NDCG of every query by models that were trained on other folds."""
    place_of = {id: place for place, id in enumerate(data.query_ids.astype(str))}
    ids, found = list(judgements), np.zeros(len(judgements))
    for parts in folds(len(ids), splits):
        train, valid, test = (
            data.take_queries(np.sort([place_of[ids[n]] for n in part if ids[n] in place_of])) for part in parts
        )
        scores = rs.train(train, valid=valid, **TRAINING).predict(test)
        names = np.repeat(test.query_ids.astype(str), np.diff(test.offsets))
        run = Run.from_rows(zip(names, test.lists.doc_ids, scores, strict=True))
        tested = {ids[n]: judgements[ids[n]] for n in parts[2]}
        found[parts[2]] += per_query(run, tested) / splits
    return found


def first_stages(
    index: rs.Index, queries: dict, judgements: dict, splits: int, vectors: dict | None
) -> tuple[dict[str, np.ndarray], dict]:
    """NDCG of every query by first stages, and recall and the shares chosen."""
    runs = {
        name: rs.retrieval.retrieve(index, queries, POOL, name, query_vectors=vectors, threads=1)
        for name in ("bm25f", "dense")
    }
    runs["rrf"] = fuse(list(runs.values()), depth=POOL)
    values = {name: per_query(run, judgements) for name, run in runs.items()}
    values["convex"], chosen = tuned_combination([runs["bm25f"], runs["dense"]], judgements, splits)
    recall = {
        f"{name} recall@{DEPTH}": round(float(per_query(run, judgements, f"recall@{DEPTH}").mean()), 4)
        for name, run in runs.items()
    }
    return values, recall | {"shares": chosen}


def measure(folder: Path, splits: int, encoders: tuple[str, ...]) -> list[dict]:
    queries, judgements = read_collection(folder)
    queries = dict(list(queries.items())[: MOST_QUERIES.get(folder.name)])
    judgements = {id: judgements[id] for id in queries}
    rows = []
    with tempfile.TemporaryDirectory() as out:
        for number, encoder in enumerate(encoders):
            start, given, vectors = time.process_time(), encoder, None
            if encoder not in ENCODERS:
                given = import_function(encoder, parameter="encoder", signature="a function texts → array")
                vectors = dict(zip(queries, np.asarray(given(list(queries.values()))), strict=True))
            index = rs.Index.build(
                folder / "corpus.jsonl.xz", f"{out}/{number}", fields=(FIELDS | MOVIES[0])[folder.name],
                numbers=(NUMBERS | MOVIES[1]).get(folder.name, []), vectors=given,
            )  # fmt: skip
            seconds = time.process_time() - start
            values, facts = first_stages(index, queries, judgements, splits, vectors)
            if encoder == encoders[-1]:
                for name, stage, select in (
                    (WORDS, "bm25f", "!dense.*"), (WITH_VECTORS, "bm25f", ()), (ON_HYBRID, "hybrid", ())
                ):  # fmt: skip
                    retriever = rs.retrieval.Retriever(index, stage, query_vectors=vectors)
                    data = rs.retrieval.extract_features(
                        retriever, queries, judgements=judgements, depth=DEPTH, select=select
                    )
                    values[name] = selgb(data, judgements, splits)
            facts |= {"index cpu s": round(seconds, 1), "splits": splits}
            rows.append(row(folder.name, index, encoder, values, facts))
            print(rows[-1], flush=True)
    return rows


def row(name: str, index: rs.Index, encoder: str, values: dict[str, np.ndarray], facts: dict) -> dict:
    baselines = {some: WORDS if some.startswith(WORDS) else "bm25f" for some in values}
    tests = {
        f"p {some}": round(randomization_test(values[some], values[base]).p_value, 4)
        for some, base in baselines.items()
        if some != base
    }
    means = {f"{some} {METRIC}": round(float(some_values.mean()), 4) for some, some_values in values.items()}
    n_queries = len(values["bm25f"])
    return {
        "collection": name, "documents": index.n_docs, "queries": n_queries, "encoder": encoder, **means, **tests,
        **facts,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--collection", nargs="+", default=list(COLLECTIONS))
    parser.add_argument("--splits", type=int, default=3, help="into folds")
    parser.add_argument("--encoder", nargs="+", default=list(ENCODERS), metavar="FILE.py:FUNCTION")
    arguments = parser.parse_args()
    for name in arguments.collection:
        rows = measure(arguments.folder / name, arguments.splits, tuple(arguments.encoder))
        known = read_rows() | {(name, one["encoder"]): one for one in rows}
        save("vectors", sorted(known.values(), key=lambda one: COLLECTIONS.index(one["collection"])))


def read_rows() -> dict[tuple[str, str], dict]:
    """The rows of earlier runs, by collection and encoder."""
    path = FOLDER / "vectors.json"
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    return {(one["collection"], one["encoder"]): one for one in rows}


if __name__ == "__main__":
    main()

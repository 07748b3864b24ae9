"""From a corpus to a re-ranked run, by five-fold cross-validation: SelGB against its first stage, BM25F.

    python benchmarks/retrieval_quality.py ../shared/data/ir [--collection cranfield …] [--splits 1] [--resume]

One protocol for all collections. For each fold that tests, every setting of one small grid is trained four times on
three of the other folds and validated on the fourth; the setting and the number of trees with the best mean NDCG@10 on
these validation lists (a mean over five numbers of trees in a row, as the curves are rough) are taken, and the mean of
its four models ranks the fold that tests. So every query is ranked by models that have neither learned from it nor been
chosen by it. The grid has relative features and both kinds, each with larger trees that start from nothing and with
smaller ones that start from the feature that is best by itself on the lists they learn from. What was chosen before, by
looking at cross-validated results, is said in docs/retrieval_evidence.md; retrieval_expansions.py does without.

SelGB re-orders the best documents of BM25F with default parameters. It is compared with these, and with BM25F whose
parameters and field weights are tuned on the four other folds of each fold that tests. Rows are saved one by one, each
with its settings; `--resume` makes those that are missing or have other settings.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import ranksieve as rs
from ranksieve.evaluation.metrics import parse_metric
from ranksieve.evaluation.significance import randomization_test
from ranksieve.forest.forest import concatenate
from ranksieve.retrieval.feature_names import RELATIVE, any_features
from ranksieve.retrieval.queries import read_queries
from ranksieve.retrieval.runs import Run
from ranksieve.retrieval.searching import retrieve
from ranksieve.retrieval.tuning import GRIDS, ROUNDS, ascend
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
    "chorus_icecat": ["title", "short_description", "supplier", "name"],
}
NUMBERS = {"esci_us_shrunk": ["price", "rating", "rating_count"], "chorus_icecat": ["price"]}
FOLDS = 5
SMOOTH = 5  # numbers of trees in a row over which validation curves are averaged
SELGB = {
    "algo": "selgb", "negatives": 0.2, "min_negatives": 1, "early_stopping": 0, "min_docs": 50, "l2": 5.0,
    "gain": "newton", "feature_fraction": 0.3, "threads": 1,
}  # fmt: skip
LARGE = {"leaves": 8, "learning_rate": 0.2, "trees": 60, "start": False}
SMALL = {"leaves": 4, "learning_rate": 0.1, "trees": 100, "start": True}
GRID = {
    "large trees, relative features": {"features": "relative.*", **LARGE},
    "large trees, both kinds": {"features": "*", **LARGE},
    "small trees, relative features": {"features": "relative.*", **SMALL},
    "small trees, both kinds": {"features": "*", **SMALL},
}
METRICS = ("ndcg@10", "map", "mrr")
TUNED_DEPTH = 20  # documents retrieved to measure NDCG@10: some more, as equal scores are ordered by id
MOST_POSITIVES = 50  # a few bug reports concern hundreds of files


def read_collection(folder: Path) -> tuple[dict[str, str], dict]:
    """Queries and judgements; of bug reports without their own number, which comments of the fix may name."""
    queries, judgements = read_queries(folder / "queries.tsv.xz"), rs.io.read_judgements(folder / "qrels.txt.xz")
    positives = {id: sum(grade > 0 for grade in grades.values()) for id, grades in judgements.items()}
    most = MOST_POSITIVES if folder.name.startswith("bugs-") else np.inf
    queries = {id: text for id, text in queries.items() if 0 < positives.get(id, 0) <= most}
    if folder.name.startswith("bugs-"):
        for id, text in queries.items():
            number = id.rsplit("-", 1)[1]
            queries[id] = re.sub(rf"\b(bug\s*)?{number}\b", " ", text, flags=re.IGNORECASE)
    return queries, {id: judgements[id] for id in queries}


def split(ids: list[str], seed: int) -> list[set[str]]:
    order = np.random.default_rng(seed).permutation(len(ids))
    return [{ids[number] for number in part} for part in np.array_split(order, FOLDS)]


def places(folds: list[set[str]], ids: list[str]) -> list[np.ndarray]:
    """Where the queries of every fold stand; lists without candidates are not among those to learn from."""
    return [np.flatnonzero([id in fold for id in ids]) for fold in folds]


Model = tuple[rs.Forest, dict[int, np.ndarray]]  # and its validation NDCG@10 after every tree, by fold left out
Start = Callable[[np.ndarray], np.ndarray]  # scores of all documents to start from, by the queries to learn from


def models_without(
    data: rs.Dataset, folds: list[np.ndarray], setting: dict, starts: dict[tuple[int, int], np.ndarray]
) -> dict[tuple[int, int], Model]:
    """A model for every two folds left out: where one of them tests, the other validates."""
    models = {}
    for pair, start in starts.items():
        learned, sets = learning(folds, pair), {str(fold): folds[fold] for fold in pair}
        options = dict(setting)
        if options.pop("start"):
            rows = {name: data.lists.take_queries(some)[1] for name, some in {"train": learned, **sets}.items()}
            options["init"] = {name: start[some] for name, some in rows.items()}
        valid = {name: data.take_queries(some) for name, some in sets.items()}
        model = rs.train(data.take_queries(learned), valid=valid, **SELGB | options)
        models[pair] = (model, {fold: np.array(model.evals_result_[str(fold)]["ndcg@10"]) for fold in pair})
    return models


def learning(folds: list[np.ndarray], pair: tuple[int, int]) -> np.ndarray:
    """The queries of the folds that are not left out."""
    return np.sort(np.concatenate([folds[fold] for fold in range(FOLDS) if fold not in pair]))


class BestScores:
    """Of scores by name those that rank some queries best; counts which were."""

    def __init__(self, scores: dict[str, np.ndarray], lists: rs.Lists):
        metric = parse_metric("ndcg@10", ties="mean")  # candidates lie in the order of the first stage
        values = [metric.per_query(lists.labels, some, lists.offsets) for some in scores.values()]
        self.scores, self.names, self.values, self.taken = scores, list(scores), np.array(values), Counter()

    def __call__(self, queries: np.ndarray) -> np.ndarray:
        name = self.names[int(np.nanmean(self.values[:, queries], axis=1).argmax())]
        self.taken[name] += 1
        return self.scores[name]

    def cross_validated(self, folds: list[np.ndarray], lists: rs.Lists) -> np.ndarray:
        """For the documents of every fold the scores that rank the other folds best."""
        scores = np.empty(lists.n_docs)
        for fold in folds:
            rows = lists.take_queries(fold)[1]
            scores[rows] = self(np.setdiff1d(np.arange(lists.n_queries), fold))[rows]
        return scores


def best_feature(data: rs.Dataset, names: Sequence[str] | None = None) -> BestScores:
    """The feature that ranks queries best by itself; missing values come last."""
    plain = [name for name in names or data.feature_names if not name.startswith(RELATIVE)]
    return BestScores({name: np.nan_to_num(data.column(name), nan=-1e9) for name in plain}, data.lists)


def cross_validated(
    data: rs.Dataset, folds: list[np.ndarray], start: Start, grid: dict[str, dict] = GRID
) -> tuple[np.ndarray, list[dict]]:
    """Scores of all documents by models that have not seen their queries, and what was chosen for each fold."""
    starts = {pair: start(learning(folds, pair)) for pair in itertools.combinations(range(FOLDS), 2)}
    models = {name: models_without(data, folds, setting, starts) for name, setting in grid.items()}
    scores, chosen = np.empty(data.n_docs), []
    for test in range(FOLDS):
        others = [fold for fold in range(FOLDS) if fold != test]
        pairs = [tuple(sorted((test, fold))) for fold in others]
        sizes = [len(folds[fold]) for fold in others]
        curves = {
            name: np.average([found[pair][1][fold] for pair, fold in zip(pairs, others, strict=True)], 0, sizes)
            for name, found in models.items()
        }
        smooth = {name: np.convolve(curve, np.full(SMOOTH, 1 / SMOOTH), "valid") for name, curve in curves.items()}
        best = max(smooth, key=lambda name: smooth[name].max())
        n_trees = int(smooth[best].argmax()) + SMOOTH // 2 + 1
        bag = concatenate([models[best][pair][0].first(n_trees) for pair in pairs])
        rows = data.lists.take_queries(folds[test])[1]
        begun = sum(starts[pair][rows] for pair in pairs) if grid[best]["start"] else 0.0
        scores[rows] = bag.predict(data.take_queries(folds[test])) + begun
        chosen.append({"setting": best, "trees": n_trees, "valid": round(float(smooth[best].max()), 4)})
    return scores, chosen


def tuned_values(index: rs.Index, folds: list[np.ndarray], per_query: Callable) -> tuple[np.ndarray, list[str]]:
    """NDCG@10 of every query by BM25F tuned on the other folds, and the parameters found for each fold."""
    values, found = np.empty(sum(map(len, folds))), []
    for test in range(FOLDS):
        rest = np.concatenate([folds[fold] for fold in range(FOLDS) if fold != test])
        measure = lambda stage, rest=rest: float(per_query(stage)[rest].mean())  # noqa: E731
        stage, _ = ascend(index, rs.retrieval.FirstStage(), measure, measure(rs.retrieval.FirstStage()))
        values[folds[test]] = per_query(stage)[folds[test]]
        found.append(stage.flags())
    return values, found


def measurer(
    index: rs.Index, queries: dict[str, str], judgements: dict
) -> Callable[[rs.retrieval.FirstStage], np.ndarray]:
    """NDCG@10 of every query by a first stage; cached, since folds try the same ones."""
    known: dict[str, np.ndarray] = {}

    def per_query(stage: rs.retrieval.FirstStage) -> np.ndarray:
        if stage.flags() not in known:
            run = retrieve(index, queries, TUNED_DEPTH, stage, threads=1)
            known[stage.flags()] = rs.retrieval.evaluate_run({"bm25f": run}, judgements, "ndcg@10").per_query()
        return known[stage.flags()]

    return per_query


def measure(folder: Path, depth: int, splits: int) -> dict:
    queries, judgements = read_collection(folder)
    spans = {"features": 0.0, "learning": 0.0, "tuning": 0.0}

    def timed(what: str, call: Callable, *arguments):
        start = time.process_time()
        result = call(*arguments)
        spans[what] += time.process_time() - start
        return result

    order, values, tuned, chosen, stages = list(judgements), [], [], [], []
    with tempfile.TemporaryDirectory() as out:
        index = rs.Index.build(
            folder / "corpus.jsonl.xz", f"{out}/index", fields=FIELDS[folder.name], numbers=NUMBERS.get(folder.name, [])
        )
        data = timed(
            "features",
            lambda: rs.retrieval.extract_features(
                index, queries, judgements=judgements, depth=depth, select=["*", "relative.*"]
            ),
        )
        deep = rs.retrieval.evaluate_run(
            {"bm25f": rs.retrieval.retrieve(index, queries, 1000)}, judgements, "recall@1000"
        ).mean()
        ids = np.repeat(data.query_ids.astype(str), data.lists.sizes)
        as_run = lambda scores: Run.from_rows(zip(ids, data.lists.doc_ids, scores, strict=True))  # noqa: E731
        first = rs.retrieval.evaluate_run({"bm25f": as_run(data.column("first.score"))}, judgements, METRICS)
        per_query = measurer(index, queries, judgements)
        start = best_feature(data)
        for folds in (split(order, seed) for seed in range(splits)):
            known = places(folds, data.query_ids.astype(str).tolist())
            scores, found = timed("learning", cross_validated, data, known, start)
            result = rs.retrieval.evaluate_run({"selgb": as_run(scores)}, judgements, METRICS)
            values.append([result.per_query("selgb", metric) for metric in METRICS])
            some, parameters = timed("tuning", tuned_values, index, places(folds, order), per_query)
            tuned.append(some)
            chosen.extend(found)
            stages.extend(parameters)
    means = dict(zip(METRICS, np.mean(values, axis=0), strict=True))
    tests = {
        "": randomization_test(means["ndcg@10"], first.per_query("bm25f", "ndcg@10")),
        " tuned": randomization_test(means["ndcg@10"], np.mean(tuned, axis=0)),
    }
    return {
        "collection": folder.name,
        "queries": len(queries),
        "documents": index.n_docs,
        "depth": depth,
        "features": data.n_features,
        "splits": splits,
        "recall@1000": round(deep, 4),
        **{f"bm25f {metric}": round(first.mean("bm25f", metric), 4) for metric in METRICS},
        "tuned bm25f ndcg@10": round(float(np.mean(tuned)), 4),
        **{f"selgb {metric}": round(float(means[metric].mean()), 4) for metric in METRICS},
        **{f"relative %{name}": round(test.relative, 1) for name, test in tests.items()},
        **{f"p{name}": round(test.p_value, 4) for name, test in tests.items()},
        "chosen": chosen,
        "starts": dict(start.taken),
        "stages": sorted(set(stages)),
        **{f"{what} cpu s": round(span, 1) for what, span in spans.items()},
        "settings": settings(depth, splits),
    }


def settings(depth: int, splits: int) -> dict:
    """What a row depends on: with other features or grids of the first stage it is measured anew."""
    made = hashlib.sha256(repr((any_features(), sorted(GRIDS.items()), ROUNDS, TUNED_DEPTH)).encode()).hexdigest()[:12]
    learned = {
        "selgb": SELGB,
        "grid": GRID,
        "start": "best feature",
        "folds": FOLDS,
        "splits": splits,
        "smooth": SMOOTH,
    }
    return {"depth": depth, **learned, "features and tuning": made}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--depth", type=int, default=300)
    parser.add_argument("--splits", type=int, default=1, help="into folds; a query's values are averaged over them")
    parser.add_argument("--collection", nargs="+", default=list(FIELDS))
    parser.add_argument("--resume", action="store_true", help="keep the rows that have these settings")
    arguments = parser.parse_args()
    wanted = settings(arguments.depth, arguments.splits)
    for name in arguments.collection:
        if not arguments.resume or read_rows().get(name, {}).get("settings") != wanted:
            row = measure(arguments.folder / name, arguments.depth, arguments.splits)
            print(row, flush=True)
            rows = read_rows() | {name: row}  # read again: another process may have measured others meanwhile
            save("retrieval_quality", [rows[name] for name in FIELDS if name in rows])


def read_rows() -> dict[str, dict]:
    """The rows of earlier runs, by collection."""
    path = FOLDER / "retrieval_quality.json"
    return {row["collection"]: row for row in json.loads(path.read_text())["rows"]} if path.exists() else {}


if __name__ == "__main__":
    main()

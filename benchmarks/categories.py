"""Categories: NDCG@10 with and without them, of ranksieve, LightGBM and CatBoost on the same features; and times.

    python benchmarks/categories.py ../shared/data/ir [--collection movies …] [--queries 600] [--features FOLDER]
        [--catboost] [--ydf]

Lists are those of BM25F with all features of an index. Categories of products are brand and color, those of films are
director, first actor and genres. A film has several genres: they are taken as one category for each combination, as
the first genre alone, or as one feature of 0 and 1 for each genre; YDF can also split by sets over lists of them. Every
side is trained on three folds of the queries, stops by the fourth and ranks the fifth, with 200 trees of at most 16
leaves (CatBoost: depth 4) and learning rate 0.1; all its other parameters are defaults. Times are of one thread, CPU
seconds of training a fold and microseconds of scoring a document. p-values are of the two-sided randomization test
against the same side without categories.
"""

from __future__ import annotations

import argparse
import json
import lzma
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import ranksieve as rs
from defaults import MOVIES
from ranksieve.data.sampling import fold_queries
from ranksieve.evaluation.significance import randomization_test
from ranksieve.forest.formats.lightgbm_writer import to_text
from ranksieve.forest.matrix import encoded
from results import save
from retrieval_quality import FIELDS, NUMBERS, read_collection

TREES, LEAVES, RATE, STOP = 200, 16, 0.1, 50
COMMON = {"trees": TREES, "leaves": LEAVES, "learning_rate": RATE, "early_stopping": STOP, "threads": 1}
DEPTH = {"movies": 100, "esci_us_shrunk": 200}
OURS, LIGHTGBM, CATBOOST, YDF = "ranksieve", "LightGBM", "CatBoost", "YDF"
SETS, FLAGS = "sets of genres", "genres of 0 and 1"


def first(values: list[str]) -> str | None:
    return values[0] if values else None


def products(document: dict) -> dict[str, Any]:
    return {"brand": document.get("brand") or None, "color": document.get("color") or None}


def films(document: dict) -> dict[str, Any]:
    genres = sorted(document.get("genres") or [])
    return {
        "director": document.get("director") or None,
        "actor": first(document.get("actors") or []),
        "genres": "|".join(genres) or None,
        "genre": first(document.get("genres") or []),
    }


CATEGORIES = {"movies": films, "esci_us_shrunk": products}
VARIANTS = {
    "esci_us_shrunk": {"without": [], "categories": ["brand", "color"]},
    "movies": {
        "without": [],
        "categories": ["director", "actor", "genres"],
        "first genre": ["director", "actor", "genre"],
        FLAGS: ["director", "actor", "genre=*"],
    },
}


def lists_of(name: str, arguments: argparse.Namespace) -> rs.Dataset:
    """The candidates of the first queries, with the features of an index."""
    file = arguments.features / f"{name}-{arguments.queries}.parquet"
    if not file.exists():
        arguments.features.mkdir(parents=True, exist_ok=True)
        source = arguments.collections / name
        queries, judgements = read_collection(source)
        queries = dict(list(queries.items())[: arguments.queries])
        fields, numbers = (FIELDS | MOVIES[0])[name], (NUMBERS | MOVIES[1])[name]
        folder = arguments.features / f"{name}.index"
        index = rs.Index.build(source / "corpus.jsonl.xz", folder, fields=fields, numbers=numbers)
        found = rs.retrieval.extract_features(index, queries, judgements=judgements, depth=DEPTH[name])
        rs.io.write_parquet(found, file)
    return rs.read(file)


def table_of(name: str, data: rs.Dataset, folder: Path) -> pd.DataFrame:
    """The features of the documents and their categories, one row each in the order of the lists."""
    with lzma.open(folder / name / "corpus.jsonl.xz", "rt") as lines:
        known = {str(one["id"]): CATEGORIES[name](one) for one in map(json.loads, lines)}
    rows = np.concatenate(list(data.blocks()))
    table = pd.DataFrame(rows, columns=list(data.feature_names))
    found = pd.DataFrame([known[str(id)] for id in data.lists.doc_ids])
    for column in found:
        table[column] = found[column]
    if "genres" in found:
        sets = found["genres"].fillna("").str.split("|")
        for genre in sorted({one for some in sets for one in some if one}):
            table[f"genre={genre}"] = [float(genre in some) for some in sets]
    return table


def variant_of(table: pd.DataFrame, data: rs.Dataset, chosen: list[str]) -> tuple[pd.DataFrame, list[str]]:
    """The columns of a variant, and which of them are categorical."""
    columns, categorical = list(data.feature_names), []
    for name in chosen:
        if name.endswith("=*"):
            columns += [column for column in table if column.startswith(name[:-1])]
        else:
            columns.append(name)
            categorical.append(name)
    return table[columns], categorical


def by_ranksieve(algo: str, data: rs.Dataset, split: tuple[np.ndarray, ...]) -> tuple[np.ndarray, float, float]:
    """NDCG@10 of the test queries, CPU seconds of training and microseconds of scoring a document."""
    train, valid, test = (data.take_queries(part) for part in split)
    start = time.process_time()
    model = rs.train(train, valid=valid, algo=algo, verbose=False, **COMMON)
    spent = time.process_time() - start
    rows, score = encoded(np.concatenate(list(test.blocks())), model), partial(model.predict, threads=1)
    if algo == "lightgbm":  # its own scorer, of the same model
        import lightgbm

        score = partial(lightgbm.Booster(model_str=to_text(model)).predict, num_threads=1)
    expected = model.predict(rows)
    assert score(rows).tobytes() == expected.tobytes()
    start = time.process_time()
    score(rows)
    scoring = (time.process_time() - start) / test.n_docs * 1e6
    return rs.evaluate(model, test).per_query(), spent, scoring


def by_catboost(
    data: rs.Dataset, table: pd.DataFrame, categorical: list[str], split: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, float, float]:
    """The same of CatBoost's YetiRank, which takes texts as they are."""
    import catboost

    table = table.assign(**{name: table[name].fillna("") for name in categorical})
    pools, offsets = [], data.lists.offsets
    for part in split:
        rows = np.concatenate([np.arange(offsets[q], offsets[q + 1]) for q in part])
        queries = np.repeat(np.arange(len(part)), np.diff(offsets)[part])
        pools.append(
            catboost.Pool(table.iloc[rows], data.labels[rows], group_id=queries, cat_features=categorical or None)
        )
    ranker = catboost.CatBoostRanker(
        iterations=TREES, learning_rate=RATE, depth=4, loss_function="YetiRank", eval_metric="NDCG:top=10;type=Exp",
        early_stopping_rounds=STOP, thread_count=1, random_seed=0, verbose=False, allow_writing_files=False,
    )  # fmt: skip
    start = time.process_time()
    ranker.fit(pools[0], eval_set=pools[1])
    spent = time.process_time() - start
    start = time.process_time()
    scores = ranker.predict(pools[2], thread_count=1)
    scoring = (time.process_time() - start) / len(scores) * 1e6
    lists = data.lists.take_queries(split[2])[0]
    return rs.evaluate(scores, lists).per_query(), spent, scoring


def by_ydf(
    data: rs.Dataset, table: pd.DataFrame, categorical: list[str], split: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, float, float]:
    """The same of YDF's λ-MART, which takes texts as they are; a column `genres` holds sets."""
    import ydf

    kinds = {
        name: ydf.Semantic.CATEGORICAL_SET if name == "genres" else ydf.Semantic.CATEGORICAL for name in categorical
    }
    offsets, parts = data.lists.offsets, []
    for part in split:
        rows = np.concatenate([np.arange(offsets[q], offsets[q + 1]) for q in part])
        found: dict[str, Any] = {name: table[name].to_numpy()[rows] for name in table}
        for name in categorical:
            texts = table[name].fillna("").to_numpy()[rows]
            found[name] = np.array([text.encode() for text in texts]) if name != "genres" else _lists(texts)
        found |= {"label": data.labels[rows], "qid": np.repeat(part, np.diff(offsets)[part]).astype("S")}
        parts.append(found)
    learner = ydf.GradientBoostedTreesLearner(
        label="label", task=ydf.Task.RANKING, ranking_group="qid", num_trees=TREES, shrinkage=RATE, num_threads=1,
        growing_strategy="BEST_FIRST_GLOBAL", max_num_nodes=LEAVES, max_depth=-1, discretize_numerical_columns=True,
        early_stopping_num_trees_look_ahead=STOP, include_all_columns=True, ndcg_truncation=10,
        features=[ydf.Feature(name, kind) for name, kind in kinds.items()],
    )  # fmt: skip
    start = time.process_time()
    model = learner.train(parts[0], valid=parts[1], verbose=0)
    spent = time.process_time() - start
    start = time.process_time()
    scores = model.predict(parts[2], num_threads=1)
    scoring = (time.process_time() - start) / len(scores) * 1e6
    lists = data.lists.take_queries(split[2])[0]
    return rs.evaluate(scores.astype(np.float64), lists).per_query(), spent, scoring


def _lists(texts: np.ndarray) -> np.ndarray:
    """Texts such as `Drama|War` as lists of texts."""
    found = np.empty(len(texts), object)
    found[:] = [[one for one in text.split("|") if one] for text in texts]
    return found


def measure(name: str, arguments: argparse.Namespace) -> list[dict]:
    data = lists_of(name, arguments)
    table = table_of(name, data, arguments.collections)
    splits = list(fold_queries(data.n_queries, 5, seed=0))
    rows, without = [], {}
    variants = VARIANTS[name] | ({SETS: ["director", "actor", "genres"]} if arguments.ydf and name == "movies" else {})
    for variant, chosen in variants.items():
        columns, categorical = variant_of(table, data, chosen)
        full = rs.Dataset.from_arrays(columns, data.labels, group=data.lists.sizes).with_features(
            categorical=categorical or None
        )
        with_catboost = arguments.catboost and variant in ("without", "categories")
        with_ydf = arguments.ydf and name == "movies" and variant in ("without", FLAGS)
        sides = [OURS, LIGHTGBM, *([CATBOOST] if with_catboost else []), *([YDF] if with_ydf else [])]
        for side in [YDF] if variant == SETS else sides:
            if side == YDF:
                found = [by_ydf(data, columns, categorical, split) for split in splits]
            elif side == CATBOOST:
                found = [by_catboost(data, columns, categorical, split) for split in splits]
            else:
                algo = "lambdamart" if side == OURS else "lightgbm"
                found = [by_ranksieve(algo, full, split) for split in splits]
            values = np.concatenate([one[0] for one in found])
            without.setdefault(side, values)
            row = {
                "collection": name, "side": side, "variant": variant, "queries": data.n_queries,
                "documents": data.n_docs, "features": len(columns.columns), "ndcg@10": float(np.nanmean(values)),
                "categories": [len(full.categories[one]) for one in categorical],
                "p": None if variant == "without" else float(randomization_test(values, without[side]).p_value),
                "training s": float(np.mean([one[1] for one in found])),
                "scoring us": float(np.mean([one[2] for one in found])),
            }  # fmt: skip
            rows.append(row)
            print(row, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", type=Path, help="folder that holds movies and esci_us_shrunk")
    parser.add_argument("--collection", nargs="*", default=list(VARIANTS))
    parser.add_argument("--queries", type=int, default=600, help="first queries of a collection to use")
    parser.add_argument("--features", type=Path, default=Path("build/categories"), help="where features are kept")
    parser.add_argument("--catboost", action="store_true", help="also train CatBoost, which has to be installed")
    parser.add_argument("--ydf", action="store_true", help="also train YDF, which has to be installed")
    arguments = parser.parse_args()
    rows = [row for name in arguments.collection for row in measure(name, arguments)]
    save("categories", rows)
    counts = Counter(row["side"] for row in rows)
    print(f"{sum(counts.values())} rows in benchmarks/results/categories.json")


if __name__ == "__main__":
    main()

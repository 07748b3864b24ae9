"""Which defaults to ship: sets of parameters on all collections, LightGBM beside them.

    python benchmarks/defaults.py ../shared/data [--features FOLDER] [--work FOLDER] [--data NAME …] [--sets NAME …]

The number of trees is that with the best NDCG@10 on a fold's validation lists. A set's loss on a collection is its
distance from the best set there, in percent; the set with the smallest worst loss is the one to ship. A run that was
interrupted continues with the cells that are missing. Results of collections that are not named stay as they are. One
thread; p-values of the two-sided randomization test.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import ranksieve as rs
from bug_lists import feature_files, shortened
from cells import Cell, Outcome, Setting, compared
from ranksieve.data.joined import JoinedSource, Piece
from ranksieve.data.read import read_source
from ranksieve.data.sampling import fold_queries
from results import FOLDER, save
from retrieval_quality import FIELDS, NUMBERS, read_collection
from split_gain import Fold, learn, letor_folds

COMMON: Setting = {"trees": 500, "early_stopping": 60, "seed": 0, "threads": 1}
VARIANCE: Setting = {"gain": "variance", "leaves": 64, "min_docs": 5, "l2": 1.0}
NEWTON: Setting = {"gain": "newton", "leaves": 64, "min_docs": 5, "l2": 1.0}
LIGHTGBM: Setting = {"algo": "lightgbm", "leaves": 64, "min_docs": 5, "l2": 1.0}
LAMBDAMART: Setting = {"algo": "lambdamart", **NEWTON}


def selgb(share: float, least: int, **changes: Any) -> Setting:
    """SelGB with Newton gain on a share of the negatives, but not fewer than some."""
    return {"algo": "selgb", **NEWTON, "negatives": share, "min_negatives": least, **changes}


SMALL: Setting = {"leaves": 16, "min_docs": 20}
MIDDLE: Setting = {"leaves": 32, "min_docs": 20}
LARGE_LEAVES: Setting = {"leaves": 16, "min_docs": 50}
HALF: Setting = {"feature_fraction": 0.5}
TUNED = "LightGBM, the best of three by validation"
TUNING = (
    "LightGBM", "LightGBM, 31 leaves, 20 documents", "LightGBM, 16 leaves, 20 documents, half of the features"
)  # fmt: skip
SETS: dict[str, Setting] = {
    "LightGBM": LIGHTGBM,
    "LightGBM, 31 leaves, 20 documents": {**LIGHTGBM, "leaves": 31, "min_docs": 20},
    "LightGBM, 16 leaves, 20 documents, half of the features": {**LIGHTGBM, **SMALL, **HALF},
    "SelGB 1%, variance (as shipped before)": {"algo": "selgb", **VARIANCE, "negatives": 0.01, "min_negatives": 1},
    "λ-MART, variance": {"algo": "lambdamart", **VARIANCE},
    "λ-MART": LAMBDAMART,
    "λ-MART, 16 leaves, 20 documents": {**LAMBDAMART, **SMALL},
    "λ-MART, 32 leaves, 20 documents": {**LAMBDAMART, **MIDDLE},
    "SelGB 5%": selgb(0.05, 1),
    "SelGB 5% ≥ 100": selgb(0.05, 100),
    "SelGB 10% ≥ 100": selgb(0.1, 100),
    "SelGB 5% ≥ 100, 32 leaves, 20 documents": selgb(0.05, 100, **MIDDLE),
    "SelGB 5% ≥ 100, 16 leaves, 20 documents": selgb(0.05, 100, **SMALL),
    "SelGB 10% ≥ 100, 32 leaves, 20 documents": selgb(0.1, 100, **MIDDLE),
    "SelGB 20% ≥ 100, 32 leaves, 20 documents": selgb(0.2, 100, **MIDDLE),
    "SelGB 5% ≥ 200, 32 leaves, 20 documents": selgb(0.05, 200, **MIDDLE),
    "SelGB 5% ≥ 100, 32 leaves, 20 documents, half of the features": selgb(0.05, 100, **MIDDLE, **HALF),
    "SelGB 5% ≥ 100, 16 leaves, 20 documents, half of the features": selgb(0.05, 100, **SMALL, **HALF),
    "λ-MART, 16 leaves, 50 documents": {**LAMBDAMART, **LARGE_LEAVES},
    "λ-MART, 16 leaves, 20 documents, half of the features": {**LAMBDAMART, **SMALL, **HALF},
    "SelGB 5% ≥ 100, 16 leaves, 20 documents, 30% of the features": selgb(0.05, 100, **SMALL, feature_fraction=0.3),
    "SelGB 5% ≥ 100, 16 leaves, 20 documents, learning rate 0.03": selgb(0.05, 100, **SMALL, learning_rate=0.03),
    "SelGB 5% ≥ 100, 16 leaves, 20 documents, half, 0.03": selgb(0.05, 100, **SMALL, **HALF, learning_rate=0.03),
    "SelGB 5% ≥ 100, 16 leaves, 50 documents": selgb(0.05, 100, **LARGE_LEAVES),
    "SelGB 5% ≥ 100, 16 leaves, 20 documents, l2 5": selgb(0.05, 100, **SMALL, l2=5.0),
    "SelGB 5% ≥ 200, 16 leaves, 20 documents": selgb(0.05, 200, **SMALL),
    "SelGB 5% ≥ 200, 16 leaves, 20 documents, half of the features": selgb(0.05, 200, **SMALL, **HALF),
    "SelGB 20% ≥ 100, 16 leaves, 20 documents": selgb(0.2, 100, **SMALL),
    "SelGB 5% ≥ 100, 16 leaves, 20 documents, half, seed 1": selgb(0.05, 100, **SMALL, **HALF, seed=1),
    "LightGBM, 16 leaves, 20 documents, half, seed 1": {**LIGHTGBM, **SMALL, **HALF, "seed": 1},
    # the other selections with the trees of the chosen set
    **{
        f"{selection}, 16 leaves, 50 documents": {**LAMBDAMART, **LARGE_LEAVES, "selection": selection, **parameters}
        for selection, parameters in {
            "adaptive": {"min_negatives": 20},
            "progress": {"negatives": 0.05, "min_negatives": 20},
            "random": {"negatives": 0.05, "min_negatives": 100},
            "gradient": {"negatives": 0.05, "min_negatives": 100},
            "top+random": {"negatives": 0.05, "rest": 0.05, "min_negatives": 100},
            "top+bottom": {"negatives": 0.05, "rest": 0.05, "min_negatives": 100},
            "goss": {"negatives": 0.2, "rest": 0.1},
            "rows": {"negatives": 0.2},
        }.items()
    },
}


WHOLE = 10_000  # deeper than the lists of all bug projects
MOST_QUERIES = 1500
DEPTH = {"movies": 200}  # of a collection's lists, where it is not 1,000
MOVIES = (
    {"movies": ["title", "overview", "director", "actors", "characters"]},
    {"movies": ["year", "votes", "rating", "popularity", "budget"]},
)


def split_into_folds(data: rs.Dataset, n_folds: int) -> list[Fold]:
    splits = list(fold_queries(data.n_queries, 5, seed=0))[:n_folds]
    return [Fold(*(data.take_queries(queries) for queries in split)) for split in splits]


def bug_folds(depth: int, n_folds: int, arguments: argparse.Namespace) -> list[Fold]:
    if depth == WHOLE:
        files = feature_files(arguments.collections / "ir", arguments.features, depth=WHOLE)
    else:
        files = feature_files(arguments.collections / "ir", arguments.features)
        files = [shortened(file, arguments.work, depth) for file in files]
    return split_into_folds(read_source(JoinedSource([Piece(file) for file in files])), n_folds)


def search_folds(name: str, arguments: argparse.Namespace) -> list[Fold]:
    """A collection's lists as BM25F makes them, with all features; of large ones the first queries."""
    file = arguments.features / f"{name}.parquet"
    if not file.exists():
        arguments.features.mkdir(parents=True, exist_ok=True)
        source = arguments.collections / "ir" / name
        queries, judgements = read_collection(source)
        queries = dict(list(queries.items())[:MOST_QUERIES])
        options = {"numbers": (NUMBERS | MOVIES[1])[name]} if name in NUMBERS | MOVIES[1] else {}
        index = rs.Index.build(
            source / "corpus.jsonl.xz",
            arguments.features / f"{name}.index",
            fields=(FIELDS | MOVIES[0])[name],
            **options,
        )
        rs.io.write_parquet(
            rs.retrieval.extract_features(index, queries, judgements=judgements, depth=DEPTH.get(name, 1000)), file
        )
    return split_into_folds(rs.read(file), 5)


def two_stage_folds(arguments: argparse.Namespace) -> list[Fold]:
    return [Fold(rs.synth.two_stage(90), rs.synth.two_stage(45, start=90), rs.synth.two_stage(90, start=135))]


DATA: dict[str, tuple[int, Callable[[argparse.Namespace], list[Fold]]]] = {
    "MQ2008": (5, partial(letor_folds, "MQ2008")),
    "OHSUMED": (5, partial(letor_folds, "OHSUMED")),
    "cranfield": (5, partial(search_folds, "cranfield")),
    "vaswani": (5, partial(search_folds, "vaswani")),
    "esci_us_shrunk": (5, partial(search_folds, "esci_us_shrunk")),
    "chorus_icecat": (5, partial(search_folds, "chorus_icecat")),
    "movies": (5, partial(search_folds, "movies")),
    "two-stage": (1, two_stage_folds),
    "bugs, 300 deep": (1, partial(bug_folds, 300, 1)),
    "bugs, 1000 deep": (1, partial(bug_folds, 1000, 1)),
    "bugs, whole lists": (1, partial(bug_folds, WHOLE, 1)),
}


def cells_of(data: str, setting: Setting, work: Path) -> list[Cell]:
    name = data.replace(" ", "-").replace(",", "")
    return [Cell(work, (data, DATA[data][0]), fold, name, COMMON, setting) for fold in range(DATA[data][0])]


def run(data: str, names: list[str], arguments: argparse.Namespace) -> None:
    missing = [cell for name in names for cell in cells_of(data, SETS[name], arguments.work) if not cell.path.exists()]
    folds = DATA[data][1](arguments) if missing else []
    for cell in missing:
        cell.run(partial(learn, folds[cell.fold], cell.settled), folds[cell.fold].test)


def rows(data: str, work: Path) -> Iterator[dict[str, Any]]:
    """Each set on a collection, and its loss against the best set there."""
    found = {name: cells_of(data, setting, work) for name, setting in SETS.items()}
    found = {name: cells for name, cells in found.items() if all(cell.path.exists() for cell in cells)}
    done = {name: Outcome(name, [cells]) for name, cells in found.items()}
    tuned = [found[name] for name in TUNING if name in found]
    if len(tuned) == len(TUNING):
        done[TUNED] = Outcome(TUNED, tuned)
    reference = next((name for name in (TUNED, *TUNING) if name in done), "")
    values = {name: outcome.row()["NDCG@10"] for name, outcome in done.items()}
    for name, outcome in done.items():
        loss = round(100 * (1 - values[name] / max(values.values())), 1)
        cpu = round(sum(cell.found["cpu s"] for cells in outcome.settings for cell in cells), 1)
        row = {"data": data, "set": name, "NDCG@10": values[name], "loss %": loss, "cpu s": cpu}
        if reference in done and name != reference:
            against = "tuned LightGBM" if reference == TUNED else reference
            row[f"p against {against}"] = compared(outcome, done[reference], list(range(DATA[data][0])))["p"]
        yield row


def all_rows(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The rows of all collections, and the worst loss of each set over all collections."""
    known = FOLDER / "defaults.json"
    old = json.loads(known.read_text())["rows"] if known.exists() else []
    losses: dict[str, list[float]] = {}
    for data in DATA:
        measured = rows(data, arguments.work) if data in arguments.data else (r for r in old if r.get("data") == data)
        for row in measured:
            losses.setdefault(row["set"], []).append(row["loss %"])
            yield row
    for name, found in sorted(losses.items(), key=lambda item: max(item[1])):
        yield {"set": name, "worst loss %": max(found), "collections": len(found)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", type=Path, help="folder that holds ltr/MQ2008, …, and ir/bugs-ecf, …")
    parser.add_argument("--features", type=Path, default=Path("build/bugs"), help="where features are or go")
    parser.add_argument("--work", type=Path, default=Path("build/defaults"), help="where finished cells are kept")
    parser.add_argument("--data", nargs="*", choices=DATA, default=list(DATA), help="which collections to run")
    parser.add_argument("--sets", nargs="*", choices=SETS, default=list(SETS), help="which sets to run")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    for data in arguments.data:
        run(data, arguments.sets, arguments)
    table = list(all_rows(arguments))
    for row in table:
        print(row)
    save("defaults", table)


if __name__ == "__main__":
    main()

"""What families of features add: SelGB by the protocol of retrieval_quality.py, with all features and without some.

    python benchmarks/retrieval_families.py ../shared/data/ir [--collection cranfield …]

A row is one collection with all features, without one family, or the order of the feature that is best by itself on the
other folds, with nothing learned; p is of its difference from all features.
"""

from __future__ import annotations

import argparse
import fnmatch
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import ranksieve as rs
from ranksieve.evaluation.significance import randomization_test
from ranksieve.retrieval.feature_names import RELATIVE
from ranksieve.retrieval.runs import Run
from results import save
from retrieval_quality import FIELDS, GRID, NUMBERS, best_feature, cross_validated, places, read_collection, split

DEPTH = 300
FAMILIES = {"neighbours": ("neighbours.",), "opening, expanded": ("opening.", "expanded.")}
COLLECTIONS = ("vaswani", "cranfield")


def grid_of(names: Sequence[str]) -> dict[str, dict]:
    """The grid for these features alone."""
    return {name: {**setting, "features": fnmatch.filter(names, setting["features"])} for name, setting in GRID.items()}


def names_without(data: rs.Dataset, families: tuple[str, ...]) -> list[str]:
    return [name for name in data.feature_names if not name.removeprefix(RELATIVE).startswith(families)]


def data_of(folder: Path, queries: dict[str, str], judgements: dict) -> rs.Dataset:
    fields, numbers = FIELDS[folder.name], NUMBERS.get(folder.name, [])
    with tempfile.TemporaryDirectory() as out:
        index = rs.Index.build(folder / "corpus.jsonl.xz", f"{out}/index", fields=fields, numbers=numbers)
        return rs.retrieval.extract_features(
            index, queries, judgements=judgements, depth=DEPTH, select=["*", "relative.*"]
        )


def measure(folder: Path) -> list[dict]:
    """A row for all features, one for each family left out, one for the best feature alone."""
    queries, judgements = read_collection(folder)
    data = data_of(folder, queries, judgements)
    folds = places(split(list(judgements), 0), data.query_ids.astype(str).tolist())
    ids = np.repeat(data.query_ids.astype(str), data.lists.sizes)

    def learned(left_out: tuple[str, ...]) -> np.ndarray:
        names = names_without(data, left_out)
        return cross_validated(data, folds, best_feature(data, names), grid_of(names))[0]

    best = lambda: best_feature(data).cross_validated(folds, data.lists)  # noqa: E731
    sides = {"all features": lambda: learned(("nothing",)), "the best feature alone": best}
    sides |= {f"without {name}": lambda left_out=prefixes: learned(left_out) for name, prefixes in FAMILIES.items()}
    rows, values = [], {}
    for name, scores in sides.items():
        start = time.process_time()
        run = Run.from_rows(zip(ids, data.lists.doc_ids, scores(), strict=True))
        values[name] = rs.retrieval.evaluate_run({name: run}, judgements, "ndcg@10").per_query()
        row = {"collection": folder.name, "queries": len(queries), "features": name}
        row |= {"ndcg@10": round(float(values[name].mean()), 4), "cpu s": round(time.process_time() - start, 1)}
        if len(values) > 1:
            row["p"] = round(randomization_test(values[name], values["all features"]).p_value, 4)
        rows.append(row)
        print(row, flush=True)
    return rows


def measure_collections(name: str, measure: Callable[[Path], list[dict]], described: str | None) -> None:
    """The command line of a benchmark over collections: rows are saved after each."""
    parser = argparse.ArgumentParser(description=described, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--collection", nargs="+", default=list(COLLECTIONS))
    arguments = parser.parse_args()
    rows: list[dict] = []
    for collection in arguments.collection:
        rows += measure(arguments.folder / collection)
        save(name, rows)


if __name__ == "__main__":
    measure_collections("retrieval_families", measure, __doc__)

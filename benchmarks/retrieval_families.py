"""What families of features add: SelGB by the protocol of retrieval_quality.py, with all features and without some.

    python benchmarks/retrieval_families.py ../shared/data/ir [--collection cranfield …]

A row is one collection without one family, or with all features; p is of its difference from all.
"""

from __future__ import annotations

import argparse
import fnmatch
import tempfile
import time
from pathlib import Path

import numpy as np

import ranksieve as rs
from ranksieve.evaluation.significance import randomization_test
from ranksieve.retrieval.relative import RELATIVE
from ranksieve.retrieval.runs import Run
from results import save
from retrieval_quality import FIELDS, GRID, NUMBERS, START, cross_validated, places, read_collection, split

DEPTH = 300
FAMILIES = {
    "neighbours": ("neighbours.",),
    "opening and expanded": ("opening.", "expanded."),
    "feedback": ("feedback.",),
}
COLLECTIONS = ("cranfield", "vaswani", "esci_us_shrunk", "bugs-ecf")


def grid_without(names: tuple[str, ...], left_out: tuple[str, ...]) -> dict[str, dict]:
    """The grid for features outside some families; nothing starts from a feature that is left out."""
    kept = [name for name in names if not name.removeprefix(RELATIVE).startswith(left_out)] if left_out else names
    grid = {}
    for name, setting in GRID.items():
        grid[name] = {**setting, "features": fnmatch.filter(kept, setting["features"])}
        if START not in kept:
            grid[name].pop("init", None)
    return grid


def measure(folder: Path) -> list[dict]:
    """One row for all features, one for each family left out."""
    queries, judgements = read_collection(folder)
    with tempfile.TemporaryDirectory() as out:
        index = rs.Index.build(
            folder / "corpus.jsonl.xz", f"{out}/index", fields=FIELDS[folder.name], numbers=NUMBERS.get(folder.name, [])
        )
        data = index.features(queries, judgements=judgements, depth=DEPTH, select=["*", "relative.*"])
    folds = places(split(list(judgements), 0), data.query_ids.astype(str).tolist())
    ids = np.repeat(data.query_ids.astype(str), data.lists.sizes)
    rows, whole = [], None
    for family, left_out in {"none": (), **FAMILIES}.items():
        start = time.process_time()
        scores, chosen = cross_validated(data, folds, grid_without(data.feature_names, left_out))
        run = Run.from_rows(zip(ids, data.lists.doc_ids, scores, strict=True))
        values = rs.evaluate_run({"selgb": run}, judgements, "ndcg@10").per_query()
        row = {
            "collection": folder.name,
            "queries": len(queries),
            "left out": family,
            "ndcg@10": round(values.mean(), 4),
        }
        if whole is None:
            whole = values
        else:
            row["p"] = round(randomization_test(values, whole).p_value, 4)
        row["valid"] = round(float(np.mean([choice["valid"] for choice in chosen])), 4)
        rows.append(row | {"cpu s": round(time.process_time() - start, 1)})
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--collection", nargs="+", default=list(COLLECTIONS))
    arguments = parser.parse_args()
    rows: list[dict] = []
    for name in arguments.collection:
        rows += measure(arguments.folder / name)
        save("retrieval_families", rows)


if __name__ == "__main__":
    main()

"""Which rule for who teaches a tree is best on real two-stage lists: five-fold cross-validation on bug localisation.

    python benchmarks/sieve.py ../shared/data/ir [--features FOLDER] [--work FOLDER] [--folds 5]

3,000 bug reports of four projects, pooled: a project alone has 300 to 600 training reports, too few to tell rules
apart, and the features mean the same in all of them. Each report comes with the 300 files BM25F ranks best, in
training, validation and test lists alike: relevant files beyond are dropped, so NDCG is that of the relevant files
retrieved, and reports without any are left out. The sides have two settings each, a variant tried later one; in every
fold a side's setting and its number of trees are those with the best NDCG@10 on the fold's validation lists. Cells
store what they say of test lists, and the table takes that of the chosen cells. CPU seconds are those of all settings
together; the cell of a fold that runs first pays for the bins, LightGBM's cells each for their validation set, and
settings differ in cost, so they say little about sides that are near each other.

A cell (fold, side, setting) is stored when it is done, so an interrupted run goes on with what is missing; the table
is of the folds that are complete. One thread.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np

import ranksieve as rs
from ranksieve.data.binned import Binned, bin_data
from ranksieve.data.pieces import Piece, Pieces
from ranksieve.data.read import read_source
from ranksieve.data.sampling import truncated_rows
from ranksieve.data.splits import fold_queries
from ranksieve.files import atomic_path
from results import save
from retrieval_quality import BUG_FIELDS, read_collection

PROJECTS = ("ecf", "eclipse.jdt.debug", "tomcat70", "eclipse.pde.ui")
DEPTH = 1000  # of the files with features, which other experiments read, too
SELECT = ("[!f]*", "first*")  # all but feedback.*: 149 features for three fields
METRIC = rs.parse_metric("ndcg@10")
COMMON = {
    "trees": 250,
    "early_stopping": 25,
    "learning_rate": 0.1,
    "feature_fraction": 0.3,
    "seed": 0,
}
COMMON |= {"leaves": 16, "min_docs": 50, "l2": 10.0}
OURS = {"gain": "newton", "min_hessian": 0.001}  # as LightGBM has them
LISTS = {
    "full lists": {},
    "lists cut to 100": {"cut": 100},
}  # what a learner without a selection can be given
SIDES: dict[str, dict[str, dict[str, Any]]] = {
    "sieve": {
        "margin 1.5, at most 50%": {"selection": "adaptive", "margin": 1.5, "max_negatives": 0.5, **OURS},
        "margin 0.5, at most 25%": {"selection": "adaptive", "margin": 0.5, "max_negatives": 0.25, **OURS},
    },
    "sieve, every rank": {  # λ of all pairs, not only of those with one of the first 30 ranks
        "margin 1.5, at most 50%": {
            "selection": "adaptive", "margin": 1.5, "max_negatives": 0.5, "truncation": -1, **OURS,
        },
    },
    "SelGB": {f"{share:.0%}": {"algo": "selgb", "negatives": share, **OURS} for share in (0.2, 0.07)},
    "λ-MART": {name: {"algo": "lambdamart", **setting, **OURS} for name, setting in LISTS.items()},
    "LightGBM": LISTS,
}  # fmt: skip


def feature_files(collections: Path, folder: Path, projects: Sequence[str] = PROJECTS) -> list[Path]:
    """The projects' lists with features, made where they are not there."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{project}.parquet" for project in projects]
    for project, file in zip(projects, files, strict=True):
        if not file.exists():
            source = collections / f"bugs-{project}"
            queries, judgements = read_collection(source)
            index = rs.Index.build(
                source / "corpus.jsonl.xz",
                folder / f"{project}.index",
                fields=BUG_FIELDS,
            )
            made = index.features(queries, judgements=judgements, depth=DEPTH, select=SELECT)
            rs.write_parquet(made, file)
            print(file, flush=True)
    return files


def shortened(file: Path, work: Path, depth: int) -> Path:
    """The lists cut to their first documents, as a file."""
    short = work / f"{file.stem}-{depth}.parquet"
    if not short.exists():
        work.mkdir(parents=True, exist_ok=True)
        rs.write_parquet(rs.truncate(rs.read(file), depth, positives="drop"), short)
    return short


@dataclass
class Fold:
    """One fold's lists, as our bins and as LightGBM's data; each is made when first asked for."""

    data: rs.Dataset
    train_queries: np.ndarray
    valid_queries: np.ndarray
    test_queries: np.ndarray

    @cached_property
    def train(self) -> Binned:
        return bin_data(self.data.take_queries(self.train_queries))

    @cached_property
    def valid(self) -> Binned:
        return bin_data(self.data.take_queries(self.valid_queries), binning=self.train.binning)

    @cached_property
    def test(self) -> rs.Dataset:
        return self.data.take_queries(self.test_queries)

    def rows(self, cut: int) -> np.ndarray:
        """Training rows within the first stage's best; positives beyond are dropped, since keeping them misleads."""
        lists, rows = self.data.lists.take_queries(self.train_queries)
        return truncated_rows(lists, self.data.column(self.data.first_stage)[rows], cut, positives="drop")

    def shortened(self, cut: int | None) -> Binned:
        return self.train if cut is None else self.train.take_rows(self.rows(cut))

    @cached_property
    def lightgbm_full(self) -> lightgbm.Dataset:
        part = self.data.take_queries(self.train_queries)
        made = lightgbm.Dataset(
            part.features,
            part.labels,
            group=part.lists.sizes,
            params={"verbose": -1},
            free_raw_data=True,
        )
        return made.construct()

    def lightgbm_shortened(self, cut: int | None) -> lightgbm.Dataset:
        if cut is None:
            return self.lightgbm_full
        part = self.data.take_queries(self.train_queries).take_rows(self.rows(cut))
        return lightgbm.Dataset(part.features, part.labels, group=part.lists.sizes, params={"verbose": -1}).construct()


def train_lightgbm(fold: Fold, setting: dict[str, Any]) -> tuple[float, int, np.ndarray]:
    """The best validation value, its trees, and scores of the test lists; the trees are chosen as ours are."""
    part = fold.data.take_queries(fold.valid_queries)

    def measured(scores: np.ndarray, _: lightgbm.Dataset) -> tuple[str, float, bool]:
        return (
            "ndcg",
            float(np.nanmean(METRIC.per_query(part.labels, scores, part.offsets))),
            True,
        )

    train = fold.lightgbm_shortened(setting.get("cut"))
    valid = train.create_valid(part.features, part.labels, group=part.lists.sizes)
    params = {
        "objective": "lambdarank", "metric": "none", "verbose": -1, "num_threads": 1, "deterministic": True,
        "force_col_wise": True, "lambdarank_truncation_level": 30, "learning_rate": COMMON["learning_rate"],
        "feature_fraction": COMMON["feature_fraction"], "seed": COMMON["seed"], "num_leaves": COMMON["leaves"],
        "min_data_in_leaf": COMMON["min_docs"], "lambda_l2": COMMON["l2"],
    }  # fmt: skip
    stop = lightgbm.early_stopping(COMMON["early_stopping"], verbose=False)
    booster = lightgbm.train(
        params,
        train,
        COMMON["trees"],
        valid_sets=[valid],
        feval=measured,
        callbacks=[stop],
    )
    scores = booster.predict(fold.test.features, num_iteration=booster.best_iteration)
    return booster.best_score["valid_0"]["ndcg"], booster.best_iteration, scores


def train_ours(fold: Fold, setting: dict[str, Any]) -> tuple[float, int, np.ndarray]:
    own = {name: value for name, value in setting.items() if name != "cut"}
    model = rs.train(fold.shortened(setting.get("cut")), valid=fold.valid, threads=1, **COMMON, **own)
    return model.info["best_score"], model.n_trees, model.predict(fold.test)


def run_cell(fold: Fold, side: str, setting: dict[str, Any], path: Path) -> None:
    start = time.process_time()
    valid, trees, scores = (train_lightgbm if side == "LightGBM" else train_ours)(fold, setting)
    cpu = time.process_time() - start
    values = METRIC.per_query(fold.test.labels, scores, fold.test.offsets)
    facts = {"valid": valid, "trees": trees, "cpu s": round(cpu, 1), "setting": setting}
    queries = [str(query) for query in fold.test.lists.query_ids]
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps({**facts, "test": dict(zip(queries, values.tolist(), strict=True))}))
    print(
        f"{path.stem}: valid {valid:.4f}, test {np.nanmean(values):.4f}, {trees} trees, {cpu:.0f} s",
        flush=True,
    )


def cells(n_folds: int, work: Path) -> Iterator[tuple[int, str, str, Path]]:
    """Fold by fold, so that an unfinished run has complete folds."""
    for fold in range(n_folds):
        for side in SIDES:
            for number, name in enumerate(SIDES[side]):
                yield fold, side, name, work / f"{fold}-{side}-{number}.json"


def run(data: rs.Dataset, n_folds: int, work: Path) -> None:
    folds = list(fold_queries(data.n_queries, n_folds, seed=0))
    for number, queries in enumerate(folds):
        fold = Fold(data, *queries)
        for where, side, name, path in cells(n_folds, work):
            if where == number and not path.exists():
                run_cell(fold, side, SIDES[side][name], path)


def table(n_folds: int, work: Path) -> list[dict]:
    """Each side with the settings its validation lists chose, and the randomization tests against the sieve."""
    found = {
        (fold, side, name): json.loads(path.read_text())
        for fold, side, name, path in cells(n_folds, work)
        if path.exists()
    }
    complete = [f for f in range(n_folds) if all((f, s, name) in found for s in SIDES for name in SIDES[s])]
    values: dict[str, dict[str, float]] = {side: {} for side in SIDES}
    rows: list[dict] = [{"what": "complete folds", "folds": len(complete), "of": n_folds}]
    for side in SIDES:
        chosen = {f: max(SIDES[side], key=lambda name, f=f: found[f, side, name]["valid"]) for f in complete}
        for fold, name in chosen.items():
            values[side].update(found[fold, side, name]["test"])
        rows.append(
            {
                "side": side,
                "chosen by fold": list(chosen.values()),
                "trees": [found[fold, side, name]["trees"] for fold, name in chosen.items()],
                "validation NDCG@10": _mean(found[f, side, name]["valid"] for f, name in chosen.items()),
                "cpu s, all settings": round(sum(found[f, side, n]["cpu s"] for f in complete for n in SIDES[side])),
            }
        )
    queries = sorted(values["sieve"])
    found_by = {side: np.array([values[side][query] for query in queries]) for side in SIDES}
    for row in rows[1:]:
        row["NDCG@10"] = _mean(found_by[row["side"]])
    for side in SIDES:
        for other in ("SelGB", "λ-MART", "LightGBM"):
            if side.startswith("sieve"):
                test = rs.randomization_test(found_by[side], found_by[other])
                difference, p = round(test.difference, 4), round(test.p_value, 4)
                rows.append({"side": side, "against": other, "difference": difference, "p": p})
    rows[0]["reports"] = int(np.isfinite(found_by["sieve"]).sum())
    rows.extend(
        {
            "side": side,
            "setting": name,
            "validation NDCG@10": _mean(found[f, side, name]["valid"] for f in complete),
        }
        for side in SIDES
        for name in SIDES[side]
    )
    return rows


def _mean(values: Any) -> float:
    return round(float(np.nanmean(np.array(list(values)))), 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", type=Path, help="folder that holds bugs-ecf, bugs-tomcat70, …")
    parser.add_argument(
        "--features",
        type=Path,
        default=Path("build/bugs"),
        help="where the features are or go",
    )
    parser.add_argument(
        "--work",
        type=Path,
        default=Path("build/sieve"),
        help="where finished cells are kept",
    )
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--depth", type=int, default=300, help="files a report comes with")
    parser.add_argument(
        "--table",
        action="store_true",
        help="only the table of the cells that are there",
    )
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    if not arguments.table:
        files = feature_files(arguments.collections, arguments.features)
        short = [shortened(file, arguments.work, arguments.depth) for file in files]
        data = read_source(Pieces([Piece(file) for file in short]))
        run(data, arguments.folds, arguments.work)
    rows = table(arguments.folds, arguments.work)
    for row in rows:
        print(row)
    save("sieve", rows)


if __name__ == "__main__":
    main()

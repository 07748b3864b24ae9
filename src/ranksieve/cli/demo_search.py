"""The part of `ranksieve demo` that makes a collection of texts, with models and judgements, for the search page."""

from __future__ import annotations

import importlib.util
import json
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranksieve.files import atomic_text
from ranksieve.text_formats import counted

if TYPE_CHECKING:
    from ranksieve.data.dataset import Dataset
    from ranksieve.retrieval.index import Index
    from ranksieve.retrieval.runs import Judgements

METRIC = "ndcg@10"
DEPTH = 200
FIELDS = ("title", "text")
# Features of words and positions: fewer kernels to compile than all features need.
SELECT = ("*.title", "*.text", "*.all", "query.*", "first.*", "number.*")
MODELS = {"lambdamart.txt": "lambdamart", "selgb.txt": "selgb"}


def make_search(folder: Path, *, n_docs: int, n_queries: int, trees: int, seed: int) -> list[str]:
    """Write a collection, its index, and two models trained on half of its queries; returns the lines to show.

    The other half has judgements for the page. A file of judgements that exists is kept, as it may hold grades that
    were given on the page.
    """
    from ranksieve.data.index_features import FIRST_STAGE
    from ranksieve.evaluation.evaluate import evaluate
    from ranksieve.rankers.train import train
    from ranksieve.retrieval.generated import generate_texts
    from ranksieve.retrieval.index import Index

    folder.mkdir(parents=True, exist_ok=True)
    made = generate_texts(n_docs, n_queries, seed=seed)
    ids = list(made.queries)
    past, fresh = ids[: len(ids) // 2], ids[len(ids) // 2 :]
    _write(folder, made, fresh)
    index = Index.build(
        folder / "corpus.jsonl", folder / "index", fields=FIELDS, numbers="rating",
        replace=(folder / "index").exists(),
    )  # fmt: skip
    with index:
        parts = [_features(index, {id: made.queries[id] for id in some}, made.judgements) for some in (past, fresh)]
    models = {}
    for name, algo in MODELS.items():
        models[algo] = train(parts[0], algo=algo, trees=trees, leaves=16, gain="newton", seed=seed, verbose=False)
        models[algo].save(folder / name)
    first = parts[1].features[:, parts[1].feature_names.index(FIRST_STAGE)]
    found = evaluate({"first stage": first, **models}, parts[1], METRIC)
    means = ", ".join(f"{name} {found.mean(name):.4f}" for name in found.values)
    return [
        f"{counted(document=n_docs)} of text in {folder}: {METRIC} on {len(fresh)} new queries: {means}",
        *_command(folder),
    ]


def compile_retrieval() -> None:
    """Index and search a few texts, so that every kernel that `make_search` needs is compiled and kept on disk."""
    from ranksieve.retrieval.generated import generate_texts
    from ranksieve.retrieval.index import Index

    made = generate_texts(20, 2)
    with (
        tempfile.TemporaryDirectory() as folder,
        Index.build(made.documents, f"{folder}/index", fields=FIELDS, numbers="rating") as index,
    ):
        _features(index, made.queries, None)


def _features(index: Index, queries: dict[str, str], judgements: Judgements | None) -> Dataset:
    """Features of candidates, without notes on what these leave out."""
    from ranksieve.retrieval.feature_extractor import FeatureExtractor
    from ranksieve.retrieval.labelling import QueryCandidates, to_dataset
    from ranksieve.retrieval.notes import Notes
    from ranksieve.retrieval.searching import Retriever

    pairs = QueryCandidates(queries, Retriever(index), DEPTH, judgements=judgements)
    return to_dataset(pairs, FeatureExtractor(index, SELECT), Notes())


def _write(folder: Path, made: Any, judged: list[str]) -> None:
    from ranksieve.retrieval.runs import judgement_lines

    with atomic_text(folder / "corpus.jsonl") as file:
        file.writelines(json.dumps(document) + "\n" for document in made.documents)
    with atomic_text(folder / "queries.tsv") as file:
        file.writelines(f"{id}\t{text}\n" for id, text in made.queries.items())
    if not (folder / "judgements.txt").exists():
        with atomic_text(folder / "judgements.txt") as file:
            file.writelines(judgement_lines({id: made.judgements[id] for id in judged}))


def _command(folder: Path) -> list[str]:
    """How to open the page on the collection."""
    called = Path(sys.argv[0])
    is_script = called.name.startswith("ranksieve") and shutil.which("ranksieve") is None
    words = [called if is_script else "ranksieve", "serve", folder / "index"]
    words += [word for name in MODELS for word in ("--model", folder / name)]
    words += ["--judgements", folder / "judgements.txt", "--query-file", folder / "queries.tsv"]
    command = shlex.join(map(str, words))
    if importlib.util.find_spec("fastapi") is None:
        return ["to see both stages side by side: pip install 'ranksieve[serve]', then", f"  {command}"]
    return ["to see both stages side by side, judge and train on a page:", f"  {command}"]

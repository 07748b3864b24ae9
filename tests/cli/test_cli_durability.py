"""A full disk and kill -9, for every command that writes: an output is absent, the old one, or complete."""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from cli_samples import QUICK

import ranksieve as rs
from ranksieve.cli.app import app

resource = pytest.importorskip("resource", reason="limits and signals of POSIX")

TEXTS = ["red wine from Spain", "white wine", "red roses", "a red car and a white car", "wine glasses, red"]
SPEC = """
[data.small]
generate = "cubic"
queries = 12
[[runs]]
algo = "lambdamart"
trees = 2
leaves = 4
threads = 1
"""
COMMANDS = {  # by name: the command line, with what it writes last; in a folder that `inputs` has filled
    "train": ["train", "train.txt", "--quiet", *QUICK, "--out", "new.txt"],
    "train a net": ["train", "train.txt", "--algo", "lambdarank", "--epochs", "2", "--quiet", "--out", "new.json"],
    "predict": ["predict", "model.txt", "train.txt", "--threads", "1", "--out", "scores.txt"],
    "checkpoints": ["train", "train.txt", "--quiet", *QUICK, "--out", "new.txt", "--checkpoint", "state"],
    "tune": ["tune", "train.txt", "--valid", "train.txt", "--trials", "1", "--quiet", "--algo", "lambdamart",
             "--trees", "2", "--threads", "1", "--journal", "new.trials", "--out", "new.txt"],
    "cv": ["cv", "train.txt", "--folds", "3", "--algo", "feature", "--feature", "f1", "--quiet", "--replace",
           "--out", "folds"],
    "values of cv": ["cv", "train.txt", "--folds", "3", "--algo", "feature", "--feature", "f1", "--quiet",
                     "--per-query", "values.tsv"],
    "model card": ["describe", "model.txt", "--card", "--out", "card.md"],
    "evaluate": ["evaluate", "model.txt", "train.txt", "--threads", "1", "--per-query", "values.tsv"],
    "prune": ["prune", "model.txt", "--train", "train.txt", "--rate", "0.5", "--rounds", "1", "--threads", "1",
              "--quiet", "--out", "new.txt"],
    "combine": ["combine", "model.txt", "other.txt", "--data", "train.txt", "--threads", "1", "--out", "new.txt"],
    "the curve of combine": ["combine", "model.txt", "other.txt", "--data", "train.txt", "--threads", "1",
                             "--out", "new.txt", "--curve", "curve.tsv"],
    "interpolate": ["interpolate", "model.txt", "other.txt", "--data", "train.txt", "--threads", "1",
                    "--out", "new.txt"],
    "refit": ["refit", "model.txt", "--data", "train.txt", "--threads", "1", "--out", "new.txt"],
    "convert": ["convert", "model.txt", "--format", "xgboost", "--out", "new.json"],
    "pack": ["pack", "train.txt", "--out", "train.parquet"],
    "sample": ["sample", "truncate", "train.txt", "--k", "3", "--by", "f1", "--out", "few.txt"],
    "synth": ["synth", "cubic", "--queries", "3", "--out", "made.txt"],
    "synth Parquet": ["synth", "cubic", "--queries", "3", "--out", "made.parquet"],
    "feature-log": ["feature-log", "log.json", "--qrels", "qrels.txt", "--out", "logged.txt"],
    "feature-set": ["feature-set", "index", "--out", "features.json"],
    "click judgements": ["clicks", "fit", "clicks.jsonl", "--model", "ctr", "--holdout", "0",
                         "--query-texts", "clicked.tsv", "--qrels", "clicked.txt"],
    "propensities": ["clicks", "propensities", "clicks.jsonl", "--method", "rctr", "--out", "propensities.json"],
    "click lists": ["clicks", "lists", "clicks.jsonl", "--data", "documents.csv", "--out", "clicked.parquet"],
    "click model": ["clicks", "train", "clicks.jsonl", "--data", "documents.csv", "--trees", "2", "--threads", "1",
                    "--out", "clicked.txt"],
    "simulate": ["clicks", "simulate", "train.txt", "--pages", "20", "--ranker", "model.txt", "--out", "made.jsonl"],
    "interleave": ["clicks", "interleave", "a.run", "b.run", "--out", "pages.jsonl"],
    "split": ["split", "train.txt", "--replace", "--out", "parts"],
    "index": ["index", "corpus.jsonl", "--out", "new-index"],
    "index again": ["index", "corpus.jsonl", "--replace", "--out", "index"],
    "retrieve": ["retrieve", "index", "queries.tsv", "--threads", "1", "--out", "new.run"],
    "first stage": ["retrieve", "index", "queries.tsv", "--threads", "1", "--out", "new.run",
                    "--save-stage", "stage.json"],
    "fuse": ["fuse", "a.run", "b.run", "--out", "fused.run"],
    "features": ["features", "index", "queries.tsv", "--qrels", "qrels.txt", "--threads", "1",
                 "--out", "features.parquet"],
    "rerank": ["rerank", "index", "second.txt", "queries.tsv", "--threads", "1", "--out", "new.run"],
    "experiment": ["experiment", "spec.toml", "--jobs", "1", "--quiet", "--out", "results"],
    "report": ["report", "results"],
    "demo": ["demo", "--queries", "6", "--trees", "2", "--out", "demo"],
}  # fmt: skip
SEVERAL = ("the curve of combine", "cv", "click judgements", "split", "experiment", "report")  # files
TIMED = ("new.", "state/", "results/", "demo/")  # with times in them
ELSEWHERE = {  # options that write, and where that is tested
    "serve --judgements": "tests/serve/test_judgement_store.py",
    "serve --trained": "tests/serve/test_training.py",
}
WRITES = re.compile(
    r"^(?!Format|Refuse).*\bwrite\b(?! \?)|\bFolder for\b|\bFile of the trials\b|\bcreates and changes\b"
)  # in help


@pytest.fixture(scope="module")
def inputs(files: Path, model: Path, run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything the commands read."""
    folder = tmp_path_factory.mktemp("inputs")
    shutil.copy(files / "train.txt", folder)
    shutil.copy(model, folder / "model.txt")
    documents = [{"id": f"d{n}", "text": text} for n, text in enumerate(TEXTS)]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, documents)))
    (folder / "queries.tsv").write_text("1\tred wine\n2\twhite car\n")
    (folder / "qrels.txt").write_text("1 0 d0 2\n1 0 d4 1\n2 0 d3 1\n")
    (folder / "spec.toml").write_text(SPEC)
    hits = [{"_id": f"d{n}", "_ltrlog": [{"name": "bm25", "value": n}]} for n in range(3)]
    hits = [{"_id": hit["_id"], "fields": {"_ltrlog": [{"log": hit["_ltrlog"]}]}} for hit in hits]
    (folder / "log.json").write_text(json.dumps({"qid": "1", "hits": {"hits": hits}}))
    orders = [["d0", "d1"], ["d1", "d0"]]
    pages = [{"query": "red", "documents": orders[n % 2], "clicks": [n % 2 if n % 5 else 1 - n % 2]} for n in range(16)]
    (folder / "clicks.jsonl").write_text("\n".join(map(json.dumps, pages)))
    (folder / "documents.csv").write_text("label,qid,docid,bm25\n0,red,d0,1.5\n0,red,d1,0.5\n")
    for name in "ab":
        (folder / f"{name}.run").write_text("".join(f"1 Q0 d{n} {n + 1} {9 - n} {name}\n" for n in range(4)))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for line in (
            ["train", "train.txt", "--algo", "lambdamart", "--trees", "3", "--quiet", "--out", "other.txt"],
            [*COMMANDS["index"][:-1], "index"],
            COMMANDS["features"],
            ["train", "features.parquet", "--trees", "2", "--min-docs", "1", "--quiet", "--out", "second.txt"],
            COMMANDS["experiment"],
        ):
            outcome = run(*line)
            assert outcome.code == 0, outcome.output
    (folder / "features.parquet").unlink()
    return folder


@pytest.fixture(scope="module")
def completed(inputs: Path, run, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, bytes]]:
    """What a command leaves in the folder when nothing happens."""

    @functools.cache
    def complete(name: str) -> dict[str, bytes]:
        folder = prepared(inputs, tmp_path_factory.mktemp("complete") / "folder", name)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            outcome = run(*COMMANDS[name])
        assert outcome.code == 0, outcome.output
        return contents(folder)

    return complete


def prepared(inputs: Path, folder: Path, name: str) -> Path:
    """A copy of the inputs, without what the command makes."""
    shutil.copytree(inputs, folder)
    if name in ("experiment", "report"):
        shutil.rmtree(folder / "results" / "report", ignore_errors=True)
    if name == "experiment":
        shutil.rmtree(folder / "results")
    return folder


@pytest.fixture
def case(request, inputs: Path, completed, tmp_path: Path, monkeypatch) -> tuple[list[str], Path, dict[str, bytes]]:
    """A command line, the folder it works in, and what it writes there when nothing happens."""
    folder = prepared(inputs, tmp_path / "folder", request.param)
    complete = completed(request.param)
    monkeypatch.chdir(folder)
    return COMMANDS[request.param], folder, complete


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check(folder: Path, old: dict[str, bytes], complete: dict[str, bytes]) -> None:
    """Every file is the old one or complete; what is new besides is hidden."""
    for name, found in contents(folder).items():
        if any(part.startswith(".") for part in name.split("/")) or found in (old.get(name), complete.get(name)):
            continue
        assert name in complete
        assert name.startswith(TIMED), name
        if name in ("new.txt", "new.json"):
            assert rs.load(folder / name).predict(np.zeros((1, 5))).shape == (1,)
        elif name.endswith(".json"):
            assert json.loads(found)
    assert old.keys() <= contents(folder).keys()


def test_every_option_that_writes_is_listed() -> None:
    def options(words: list[str], command: Any) -> Iterator[str]:
        for name, one in getattr(command, "commands", {}).items():
            yield from options([*words, name], one)
        for option in command.params:
            if "--out" in option.opts or WRITES.search(getattr(option, "help", None) or ""):
                yield " ".join([*words, max(option.opts, key=len)])

    lines = [line if "--out" in line or line[0] != "report" else [*line, "--out"] for line in COMMANDS.values()]
    commands = [(line[: 2 if line[0] == "clicks" else 1], word) for line in lines for word in line]
    tested = {" ".join([*words, word]) for words, word in commands if word.startswith("--")} | ELSEWHERE.keys()
    written = set(options([], typer.main.get_command(app)))
    assert written <= tested and ELSEWHERE.keys() <= written


@pytest.mark.parametrize("name", COMMANDS)
def test_an_output_that_cannot_be_written_is_refused_before_any_work(inputs: Path, run, monkeypatch, name: str) -> None:
    monkeypatch.chdir(inputs)
    line = [*COMMANDS[name], *(["--out", "out"] if name == "report" else [])]
    target = f"train.txt/new{Path(line[-1]).suffix}"  # a file is in the place of the folder
    outcome = run(*line[:-1], target)
    assert outcome.code == 2
    (shown,) = outcome.output.splitlines()
    assert shown.startswith(f"error: {target}"), shown


@pytest.mark.parametrize("case", COMMANDS, indirect=True)
def test_a_full_disk(case, run) -> None:
    line, folder, complete = case
    old = contents(folder)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, limits[1]))  # Python ignores the signal; writing more fails
    try:
        outcome = run(*line)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert outcome.code == 2, outcome.output
    errors = [text for text in outcome.output.splitlines() if text.startswith("error: ")]
    assert len(errors) == 1 and "File too large" in errors[0], outcome.output
    check(folder, old, complete)
    hidden = [name for name in contents(folder) if "ranksieve-tmp" in name]
    assert not hidden  # a command that could clean up has done so


def run_and_die(line: list[str], folder: str, renames: int) -> None:
    """Run a command in a process that kills itself before the given rename of a file or folder, or at the exchange of
    two folders.
    """
    os.chdir(folder)
    seen = 0

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal seen
        if event == "os.rename" or (event == "ctypes.dlsym" and arguments[1] == "renameat2"):
            seen += 1
            if seen > renames:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    app(line, standalone_mode=False)


@pytest.mark.parametrize(
    ("case", "renames"),
    [(name, n) for name in COMMANDS for n in ((0, 1) if name in SEVERAL else (0,))],
    indirect=["case"],
)
def test_kill_9(case, run, renames: int) -> None:
    line, folder, complete = case
    old = contents(folder)
    context = multiprocessing.get_context("forkserver")
    commands = ["ranksieve.cli.app", "ranksieve.rankers.train", "ranksieve.retrieval.pipeline"]
    context.set_forkserver_preload(["pandas", "pydantic.type_adapter", "pytest", *commands])
    process = context.Process(target=run_and_die, args=(line, str(folder), renames))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    check(folder, old, complete)
    outcome = run(*line, *(["--replace"] if line[0] == "index" and "--replace" not in line else []))
    assert outcome.code == 0, outcome.output
    check(folder, complete, complete)
    left = [name for name in contents(folder) if "ranksieve-tmp" in name]
    assert not left  # the next run of the same command removes what the killed one left

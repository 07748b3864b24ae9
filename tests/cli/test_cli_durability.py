"""A full disk and kill -9, for every command that writes: an output is absent, the old one, or complete."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from cli_samples import QUICK

import ranksieve as rs

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
    "split": ["split", "train.txt", "--out", "parts"],
    "index": ["index", "corpus.jsonl", "--out", "new-index"],
    "index again": ["index", "corpus.jsonl", "--replace", "--out", "index"],
    "retrieve": ["retrieve", "index", "queries.tsv", "--threads", "1", "--out", "new.run"],
    "features": ["features", "index", "queries.tsv", "--qrels", "qrels.txt", "--threads", "1",
                 "--out", "features.parquet"],
    "rerank": ["rerank", "index", "second.txt", "queries.tsv", "--threads", "1", "--out", "new.run"],
    "experiment": ["experiment", "spec.toml", "--jobs", "1", "--quiet", "--out", "results"],
    "report": ["report", "results"],
}  # fmt: skip
SEVERAL = ("the curve of combine", "split", "experiment", "report")  # which write more than one file


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


@pytest.fixture
def case(request, inputs: Path, run, tmp_path: Path, monkeypatch) -> tuple[list[str], Path, dict[str, bytes]]:
    """A command line, the folder it works in, and what it writes there when nothing happens."""
    line = COMMANDS[request.param]
    before, complete = tmp_path / "before", tmp_path / "complete"
    for folder in (before, complete):
        shutil.copytree(inputs, folder)
        if request.param in ("experiment", "report"):
            shutil.rmtree(folder / "results" / "report", ignore_errors=True)
        if request.param == "experiment":
            shutil.rmtree(folder / "results")
    monkeypatch.chdir(complete)
    outcome = run(*line)
    assert outcome.code == 0, outcome.output
    monkeypatch.chdir(before)
    return line, before, contents(complete)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check(folder: Path, old: dict[str, bytes], complete: dict[str, bytes]) -> None:
    """Every file is the old one or complete; what is new besides is hidden."""
    for name, found in contents(folder).items():
        if any(part.startswith(".") for part in name.split("/")) or found in (old.get(name), complete.get(name)):
            continue
        assert name in complete
        if name.startswith("new."):  # models with times in them
            assert rs.load(folder / name).predict(np.zeros((1, 5))).shape == (1,)
        else:
            assert name.startswith("results/"), name
            assert not name.endswith(".json") or json.loads(found)
    assert old.keys() <= contents(folder).keys()


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
    from ranksieve.cli.app import app

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
    context.set_forkserver_preload(["ranksieve.cli.app", "ranksieve.rankers.train", "ranksieve.retrieval.pipeline"])
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

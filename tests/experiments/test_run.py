"""Running experiments: what is stored, going on after an interruption, and that nothing depends on the jobs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from experiment_samples import SPEC, fail_or_die, write_spec

import ranksieve as rs
from ranksieve.errors import DataError
from ranksieve.experiments.data_sets import DataSpec, load, load_values
from ranksieve.experiments.pool import Job, JobError, run_jobs
from ranksieve.experiments.read_spec import load_spec
from ranksieve.experiments.results import Results
from ranksieve.experiments.run import run_experiment
from ranksieve.experiments.run_cell import run_cell


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Results:
    folder = tmp_path_factory.mktemp("experiment")
    return run_experiment(load_spec(write_spec(folder)), folder / "out", jobs=1)


def contents(folder: Path) -> dict[str, bytes]:
    """Everything that must not depend on when and how the cells ran."""
    names = ("model.txt", "queries.parquet", "documents.parquet", "selected.parquet")
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.glob("cells/*/*") if p.name in names}


def test_a_cell_is_what_training_by_hand_gives(results):
    train, _, test = (rs.synth.two_stage(n, n_features=6, start=start) for n, start in ((6, 0), (2, 6), (2, 8)))
    cell = results.cells[2]
    assert cell.label == "SelGB, negatives 0.1"
    np.testing.assert_array_equal(
        cell.model().predict(test),
        rs.train(train, trees=cell.facts["n_trees"], leaves=4, min_docs=2, negatives=0.1, min_negatives=1).predict(
            test
        ),
    )
    evaluation = rs.evaluate(cell.model(), test, ["ndcg@10", "map"])
    queries = cell.table("queries")
    np.testing.assert_array_equal(queries["map"], evaluation.per_query(metric="map"))
    assert cell.facts["test"]["ndcg@10"]["full"] == evaluation.mean()
    early = rs.evaluate(cell.model().first(2), test).per_query()
    np.testing.assert_array_equal(queries["ndcg@10 at 2"], early)
    assert queries["n_docs"].tolist() == test.lists.sizes.tolist()
    curve = cell.table("curve")
    assert curve["test"][cell.facts["n_trees"] - 1] == evaluation.mean()
    assert curve["valid"].max() == cell.facts["valid"]


def test_stored_documents_are_the_best_and_all_positives(results):
    test = rs.synth.two_stage(2, n_features=6, start=8)
    cell = results.cells[0]
    documents = cell.table("documents")
    scores = cell.model().predict(test)
    for q, name in enumerate(test.query_ids.astype(str)):
        rows = np.arange(test.offsets[q], test.offsets[q + 1])
        order = rows[np.argsort(-scores[rows], kind="stable")]
        mine = documents["query"] == name
        shown = {row: rank for rank, row in enumerate(order, 1) if rank <= 20 or test.labels[row] > 0}
        by_document = dict(zip(documents["document"][mine], documents["rank"][mine], strict=True))
        assert by_document == {row - rows[0]: rank for row, rank in shown.items()}
        # the generator sorts lists by the first stage
        np.testing.assert_array_equal(documents["first_stage_rank"][mine], documents["document"][mine] + 1)


def test_selections_and_samples_are_recorded(results):
    by_label = {cell.label: cell for cell in results.cells}
    selected = by_label["SelGB, negatives 0.1"].table("selected")
    assert selected["count"].max() <= by_label["SelGB, negatives 0.1"].facts["n_grown"] - 1
    assert set(selected["query"]) <= set(range(6))
    shared = by_label["plain"].table("shared_leaves")
    train = rs.synth.two_stage(6, n_features=6)
    negatives = np.add.reduceat(train.labels == 0, train.offsets[:-1])
    assert shared["pairs"].sum() == (negatives * (negatives - 1) // 2).sum()
    with pytest.raises(DataError, match="did not record it"):
        by_label["plain"].table("selected")
    assert by_label["plain"].facts["trained_on"]["share"] == 1
    assert 0.2 <= by_label["hard"].facts["trained_on"]["share"] < 0.22
    seeds = [cell.model().info["params"]["seed"] for cell in results.cells if cell.run == "some"]
    assert seeds == [0, 1]


def test_groups_put_seeds_together(results):
    groups = {group.label: group for group in results.groups("web")}
    assert len(groups["some"].cells) == 2
    both = [cell.table("queries")["map"] for cell in groups["some"].cells]
    _, values = groups["some"].per_query("map")
    order = np.argsort(groups["some"].cells[0].table("queries")["query"])
    np.testing.assert_allclose(values, np.mean(both, axis=0)[order])
    assert [group.run for group in results.best("web")] == ["plain", "SelGB", "hard", "some"]
    best = max(results.groups("web", "SelGB"), key=lambda group: group.valid)
    assert results.best("web")[1].label == best.label
    trees, curve = groups["plain"].curve()
    assert len(trees) == len(curve) == 4
    assert results.lists("web")["n_docs"].sum() == rs.synth.two_stage(6, n_features=6).n_docs
    assert results.unfinished == []


def test_workers_make_the_same_cells(results, tmp_path):
    spec = load_spec(results.folder.parent / "small.toml")
    again = run_experiment(spec, tmp_path / "out", jobs=2)
    assert contents(again.folder) == contents(results.folder)


def test_only_unfinished_cells_run_again(results, tmp_path, monkeypatch):
    spec = load_spec(results.folder.parent / "small.toml")
    out = tmp_path / "out"
    ran = []

    def stop_after_two(cell, *args, **options):
        if len(ran) == 2:
            raise KeyboardInterrupt
        run_cell(cell, *args, **options)
        ran.append(cell.label)

    monkeypatch.setattr("ranksieve.experiments.run.run_cell", stop_after_two)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(spec, out, jobs=1)
    assert len(Results.open(out).unfinished) == 4
    (out / "cells" / ".unfinished-x").mkdir()
    monkeypatch.undo()
    calls = []
    run_experiment(spec, out, jobs=1, on_cell=lambda cell, n_done, n_cells: calls.append((cell.label, n_done, n_cells)))
    assert [n for _, n, _ in calls] == [3, 4, 5, 6]
    assert not list(out.glob("cells/.unfinished*"))
    assert contents(out) == contents(results.folder)
    run_experiment(spec, out, jobs=1, on_cell=lambda *done: calls.append(done))
    assert len(calls) == 4


def children_of(pid: int) -> list[str]:
    """Processes that another one started; none where the system does not list them."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return path.read_text().split() if path.exists() else []


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_killed_in_the_middle_it_goes_on_to_the_same_results(tmp_path):
    text = SPEC.replace("negatives = [0.02, 0.1]", "negatives = [0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09]")
    path, out = write_spec(tmp_path, text), tmp_path / "out"
    command = [sys.executable, "-m", "ranksieve", "experiment", str(path), "--out", str(out), "--jobs", "2", "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and len(list(out.glob("cells/*/cell.json"))) < 2:
        time.sleep(0.02)
    workers = children_of(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline, "workers go on without their parent"
        time.sleep(0.05)
    before = {name: content for name, content in contents(out).items() if ".unfinished-" not in name}
    results = run_experiment(load_spec(path), out, jobs=1)
    assert results.unfinished == []
    after = contents(out)
    assert not [name for name in after if ".unfinished-" in name]
    assert {name: after[name] for name in before} == before
    fresh = run_experiment(load_spec(path), tmp_path / "fresh", jobs=1)
    assert contents(fresh.folder) == after


@pytest.mark.parametrize(
    ("payload", "message"), [("fail", "it went wrong"), ("bug", "ZeroDiv"), ("die", "ended unexpectedly")]
)
def test_a_failing_worker_is_reported(payload, message, tmp_path):
    jobs = [Job("a", "a"), Job("b", payload, ("a",)), Job("c", "c", ("b",))]
    done = []
    with pytest.raises(JobError, match=message):
        run_jobs(jobs, fail_or_die, tmp_path, n_workers=2, on_done=lambda job: done.append(job.key))
    assert done == ["a"]
    assert (tmp_path / "a").exists() and not (tmp_path / "c").exists()


def test_the_trace_of_an_unexpected_failure_is_kept_in_a_file(tmp_path):
    with pytest.raises(JobError) as caught:
        run_jobs([Job("b", "bug"), Job("c", "c")], fail_or_die, tmp_path, n_workers=2)
    message, trace = str(caught.value), tmp_path / "b.error.txt"
    assert "b: failed with ZeroDivisionError" in message and str(trace) in message and "Traceback" not in message
    assert "Traceback" in trace.read_text() and "fail_or_die" in trace.read_text()


def test_one_run_at_a_time_in_a_folder(results, tmp_path):
    fcntl = pytest.importorskip("fcntl")
    spec = load_spec(results.folder.parent / "small.toml")
    with open(results.folder / ".lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(DataError, match="another experiment is running"):
            run_experiment(spec, results.folder, jobs=1)
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot be created"):
        run_experiment(spec, tmp_path / "file", jobs=1)


def test_files_split_by_query_and_into_folds(tmp_path):
    data = rs.synth.two_stage(12, n_features=5)
    rs.io.write_parquet(data, tmp_path / "all.parquet")
    (one,) = DataSpec("web", file="all.parquet").checked(tmp_path)
    assert one.has_first_stage()
    loaded = load(one, {"max_bins": 255})
    parts = rs.sampling.split(data)
    for part, expected in zip((loaded.train, loaded.valid, loaded.test), parts, strict=True):
        assert part.binned.lists.query_ids.tolist() == expected.query_ids.tolist()
        assert part.binned.lists.labels.tolist() == expected.labels.tolist()
        np.testing.assert_array_equal(part.first_stage, expected.column("bm25f"))
    folds = DataSpec("web", file="all.parquet", folds=3).checked(tmp_path)
    assert [fold.title for fold in folds] == ["web fold 1", "web fold 2", "web fold 3"]
    tested = [query for fold in folds for query in load(fold, {"max_bins": 255}).test.binned.lists.query_ids]
    assert sorted(tested) == data.query_ids.tolist()


def test_files_share_the_numbers_of_categories(tmp_path):
    brands = {"train": "bcab", "valid": "abcx", "test": "xcba"}
    for name, letters in brands.items():
        rows = [f"{i % 2},{i // 2},{letter},{i}\n" for i, letter in enumerate(letters)]
        (tmp_path / f"{name}.csv").write_text("label,qid,brand,x\n" + "".join(rows))
    files = {name: f"{name}.csv" for name in brands}
    (spec,) = DataSpec("shop", **files, categorical="brand").checked(tmp_path)
    loaded, values = load(spec, {"max_bins": 255}), load_values(spec)
    codes = {"a": 2, "b": 0, "c": 1, "x": 255}  # bins: the most frequent one first
    column = int(np.flatnonzero(loaded.train.binned.binning.features == 0)[0])
    for name, letters in brands.items():
        bins = getattr(loaded, name).binned.bins[:, column].tolist()
        assert bins == [codes[letter] for letter in letters]
        assert [values[name].categories["brand"][int(code)] for code in values[name].features[:, 0]] == list(letters)
    assert list(values["train"].categories["brand"]) == list(values["test"].categories["brand"])


def test_folds_are_pooled(tmp_path):
    data = rs.synth.two_stage(6, n_features=4)
    rs.io.write_parquet(data, tmp_path / "all.parquet")
    text = '[data.web]\nfile = "all.parquet"\nfolds = 3\n[[runs]]\nalgo = "selgb"\ntrees = 2\nleaves = 4\n'
    results = run_experiment(load_spec(write_spec(tmp_path, text)), tmp_path / "out", jobs=1)
    (group,) = results.groups("web")
    assert len(group.cells) == 3
    assert sorted(group.per_query("ndcg@10")[0]) == sorted(data.query_ids.astype(str))


def test_facts_describe_the_run(results):
    facts = json.loads((results.folder / "experiment.json").read_text())
    assert facts["title"] == "small"
    assert facts["versions"]["ranksieve"] == rs.__version__
    assert (results.folder / "spec.toml").read_text() == SPEC
    cell = results.cells[0].facts
    assert set(cell["seconds"]) == {"loading", "training", "measuring", "per_tree", "all", "cpu"}
    assert cell["settings"]["params"]["algo"] == "lambdamart"
    assert "gain" in cell["conventions"][0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give one of generate, file"),
        ({"generate": "cubic", "file": "x"}, "give one of generate, file"),
        ({"train": "x"}, "has no valid file"),
        ({"generate": "cubic", "split": [0.5, 0.5]}, "expected three shares"),
        ({"generate": "cubic", "folds": 5}, "folds need one file"),
        ({"generate": "cubic", "split": [0.5, 0.6, 0.1]}, "add up to 1"),
    ],
)
def test_data_that_cannot_be_is_refused(given, message, tmp_path):
    with pytest.raises(rs.errors.RanksieveError, match=message):
        DataSpec("web", **given).checked(tmp_path)

"""Columns with other names and pipes, in the commands that read data."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer.main
from cli_samples import QUICK
from typer.testing import CliRunner

import ranksieve as rs
from ranksieve.cli.app import app
from ranksieve.data.bin_store import BinStore
from ranksieve.data.binned import bin_data
from ranksieve.data.parquet import write_parquet
from ranksieve.data.read import read
from ranksieve.models.load import load
from ranksieve.retrieval.index import Index

COLUMNS = ("--label", "rel", "--qid", "query")
READERS = ("train", "predict", "evaluate", "explain", "combine", "interpolate", "refit", "prune", "pack", "sample")
READERS += ("split", "describe", "bench", "experiment", "cv")


@pytest.fixture(scope="module")
def tables(files, tmp_path_factory):
    """The files of `files` as Parquet with other names."""
    folder = tmp_path_factory.mktemp("tables")
    for name in ("train", "test"):
        write_parquet(read(files / f"{name}.txt"), folder / "usual.parquet")
        table = pq.read_table(folder / "usual.parquet")
        names = [{"label": "rel", "qid": "query"}.get(column, column) for column in table.column_names]
        pq.write_table(table.rename_columns(names), folder / f"{name}.parquet")
    return folder


def test_every_command_that_reads_data_has_the_same_flags():
    commands = typer.main.get_command(app).commands
    for name in READERS:
        flags = {flag for option in commands[name].params for flag in option.opts}
        assert {"--label", "--qid", "--docid", "--weight", "--ignore"} <= flags, name


def test_columns_with_other_names(files, tables, run, model, tmp_path):
    trained = run("train", tables / "train.parquet", "--out", tmp_path / "m.txt", "--quiet", *QUICK, *COLUMNS)
    assert trained.code == 0, trained.output
    shown = run("evaluate", model, tables / "test.parquet", *COLUMNS).output
    assert shown == run("evaluate", model, files / "test.txt").output
    refused = run("evaluate", model, tables / "test.parquet")
    assert refused.code == 2 and "--label rel" in refused.output
    packed = run("pack", tables / "test.parquet", "--out", tmp_path / "packed.parquet", *COLUMNS)
    assert packed.code == 0 and "packing: 100%" in packed.output
    assert "label" in pq.read_schema(tmp_path / "packed.parquet").names


def test_models_of_text_and_of_tables_are_evaluated_together(files, run, model, tmp_path):
    """Each reads absent features as in its training: as zero, or as missing."""
    data = read(files / "train.txt")
    rows = np.column_stack([data.labels, np.repeat(data.query_ids, data.lists.sizes), data.features])
    header = "label,qid,f1,f2,f3,f4,f5"
    table = tmp_path / "train.csv"
    np.savetxt(table, rows, delimiter=",", header=header, comments="", fmt="%.9g")
    other, gaps = tmp_path / "other.txt", tmp_path / "gaps.txt"
    assert run("train", table, "--out", other, "--quiet", *QUICK).code == 0
    assert [load(one).info["missing"] for one in (model, other)] == ["zero", "nan"]
    lines = (files / "test.txt").read_text().splitlines()
    gaps.write_text("\n".join(line if n % 3 else line.rsplit(" ", 3)[0] for n, line in enumerate(lines)))
    for given in (table, gaps):
        both = run("evaluate", model, other, given)
        assert both.code == 0, both.output
        for one in (model, other):
            value = re.search(r"0\.\d{4}", run("evaluate", one, given).output)[0]
            assert re.search(rf"{one.stem}\.txt .*{value}", both.output), both.output


def test_columns_of_nothing_are_refused(run, model, tmp_path):
    for words in (
        ("bench", model),
        ("evaluate", "--run", "a", "--qrels", "b"),
        ("experiment", "cubic", "--out", tmp_path),
    ):
        outcome = run(*words, "--qid", "query")
        assert outcome.code == 2 and "--qid names a column of data files, and none is given" in outcome.output


def test_experiments_with_columns(tables, run, tmp_path):
    spec = tmp_path / "spec.toml"
    spec.write_text(
        'title = "t"\n[params]\ntrees = 3\nleaves = 4\nmin-docs = 3\n[[runs]]\nname = "a"\nalgo = "lambdamart"\n'
    )
    table = pq.read_table(tables / "train.parquet")
    pq.write_table(table.append_column("title", [["text"] * len(table)]), tmp_path / "data.parquet")
    words = ("experiment", spec, "--data", tmp_path / "data.parquet", "--out", tmp_path / "o", "--jobs", 1, *COLUMNS)
    assert "--ignore title" in run(*words).output
    done = run(*words, "--ignore", "title")
    assert done.code == 0, done.output


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_standard_input_and_output(files, model, name):
    command = [sys.executable, "-m", "ranksieve", "predict", model, name, "--out", "-"]
    with open(files / "test.txt", "rb") as file:
        cat = subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE)
        done = subprocess.run(command, stdin=cat.stdout, capture_output=True, text=True, check=True, env=os.environ)
        cat.stdout.close()
        cat.wait()
    scores = [float(line) for line in done.stdout.splitlines()]
    assert len(scores) == read(files / "test.txt").n_docs


def test_only_predict_writes_to_standard_output(files, run):
    refused = run("train", files / "train.txt", "--out", "-")
    assert refused.code == 2 and "give the name of a file" in refused.output


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends processes without a signal")
def test_nothing_of_a_pipe_is_left_when_the_program_is_ended(tmp_path):
    command = [sys.executable, "-m", "ranksieve", "describe", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=os.environ | {"TMPDIR": str(tmp_path)}) as process:
        while not list(tmp_path.glob("ranksieve-*/stdin")):
            assert process.poll() is None
            time.sleep(0.02)
        process.terminate()
        assert process.wait(60) == 128 + signal.SIGTERM
    assert not list(tmp_path.iterdir())


def test_columns_that_are_not_numbers_are_ignored(files, run, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("label,qid,title,bm25\n1,1,a b,2\n0,1,c,1\n")
    refused = run("pack", path, "--out", tmp_path / "data.parquet")
    assert refused.code == 2 and f"{path}:2: column 'title' holds 'a b'" in refused.output
    assert "leave it out with --ignore title" in refused.output
    done = run("describe", path, "--ignore", "title")
    assert done.code == 0 and "features" in done.output


def test_errors_in_pipes_name_standard_input():
    done = CliRunner().invoke(app, ["describe", "-"], input="1 qid:1 1:x\n")
    assert done.exit_code == 2 and "standard input:1: the value in '1:x'" in done.output
    assert "ranksieve-" not in done.output


@pytest.mark.parametrize("format", ["lightgbm", "ranklib", "quickrank", "xgboost"])
def test_describe_recognises_models_of_every_format(files, run, model, tmp_path, format):
    path = tmp_path / "model"
    load(model).save(path, format=format, missing="never")
    described = run("describe", path)
    importance = "share of splits" if format in ("ranklib", "quickrank") else "share of gain"  # these store no gains
    assert described.code == 0 and importance in described.output, described.output
    assert " 0 of them used" not in described.output and "│ f1 " in described.output
    refused = run("pack", path, "--out", tmp_path / "x.parquet")
    assert refused.code == 2 and f"{path}: is a model, not data" in refused.output


def test_describe_suggests_options_for_a_table_with_other_names(run, tmp_path):
    rows = "".join(f"{query},d{d},{(query + d) % 3},{d / 7:.2f},Red wine {d}\n" for query in (7, 8) for d in range(5))
    (tmp_path / "lists.csv").write_text("query,doc,rel,bm25,title\n" + rows)
    outcome = run("describe", tmp_path / "lists.csv")
    assert outcome.code == 0
    uses = {
        cells[1].strip(): cells[3].strip()
        for cells in (line.split("│") for line in outcome.output.splitlines())
        if len(cells) == 5
    }
    assert uses == {
        "query": "query ids", "doc": "document ids", "rel": "labels", "bm25": "a feature", "title": "not a feature"
    }  # fmt: skip
    (line,) = (line for line in outcome.output.splitlines() if line.startswith("options"))
    options = line.partition(";")[0].split()[1:]
    assert options == ["--label", "rel", "--qid", "query", "--docid", "doc", "--ignore", "title"]
    described = run("describe", tmp_path / "lists.csv", *options)
    assert described.code == 0 and "documents per query  5 to 5" in described.output
    columns = {"qid": [1, 1], "clicked": [0, 1], "name": ["a", "b"], **{f"x{n}": [1.0, 2.0] for n in range(14)}}
    pq.write_table(pa.table(columns), tmp_path / "lists.parquet")
    shown = run("describe", tmp_path / "lists.parquet").output
    assert "--label NAME --ignore name;" in shown and "NAME" in shown and "and 5 features more" in shown
    assert run("describe", tmp_path / "lists.csv", "--label", "none").code == 2
    (tmp_path / "typo.csv").write_text("label,qid,bm25\n1,1,0.5\n0,1,0.2\n0,1,n/a?\n")
    assert "typo.csv:4: column 'bm25' holds 'n/a?'" in run("describe", tmp_path / "typo.csv").output


def test_describe_of_runs_and_judgements(run, tmp_path):
    (tmp_path / "run.txt").write_text("q1 Q0 d7 1 2.5 bm25\nq1 Q0 d9 2 1.5 bm25\nq2 Q0 d1 1 0.5 bm25\n")
    (tmp_path / "qrels.txt").write_text("q1 0 d7 2\nq1 0 d9 0\nq2 0 d1 0\n")
    described = run("describe", tmp_path / "run.txt").output
    assert "1 to 2, mean 1.5" in described and "0.5 to 2.5" in described
    described = run("describe", tmp_path / "qrels.txt").output
    assert "2, 1 of them without a relevant document" in described and "0: 2 (66.67%), 2: 1 (33.33%)" in described


def test_describe_of_documents(run, tmp_path):
    (tmp_path / "documents.jsonl").write_text(
        '{"id": "1", "title": "red car", "price": 2.5, "vector": [null, 0.5, 1]}\n'
        '{"id": "2", "title": "wine", "price": null, "tags": ["a", "b"], "vector": []}\n'
    )
    described = run("describe", tmp_path / "documents.jsonl")
    assert described.code == 0, described.output
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in described.output.splitlines() if "│" in line]
    assert rows == [
        ["id", "text", "100.0%", "1.0"], ["title", "text", "100.0%", "1.5"], ["price", "numbers", "50.0%", ""],
        ["vector", "lists of numbers", "50.0%", ""], ["tags", "text", "50.0%", "2.0"],
    ]  # fmt: skip
    assert "JSON objects  2, not data" in described.output and "ranksieve index (documents)" in described.output


def test_describe_of_trials(run, tmp_path):
    (tmp_path / "tuned.txt.trials").write_text('{"op_code": 0, "study_name": "s"}\n{"op_code": 4}\n')
    described = run("describe", tmp_path / "tuned.txt.trials")
    assert described.code == 0 and "trials of a search" in described.output and "ranksieve tune" in described.output


def test_describe_of_files_that_are_not_described(run, tmp_path):
    contents = {
        "params.toml": (
            "trees = 5\n",
            "is TOML, which describe cannot show; it is for ranksieve train --params",
        ),
        "stage.json": ('{\n "first_stage": {}\n}\n', "is a first stage, for --stage, which cannot be read as a model"),
        "dump.json": ('[{"nodeid": 0, "leaf": 1}]', "is a JSON dump of XGBoost's trees, as Elasticsearch reads it"),
        "model.bin": ("\x08\x09ranksieve\x00:a,b\n", "this is not text"),
    }
    for name, (content, message) in contents.items():
        (tmp_path / name).write_text(content)
        refused = run("describe", tmp_path / name)
        assert refused.code == 2 and f"{name}:" in refused.output and message in refused.output, refused.output


def test_describe_of_an_index(run, tmp_path):
    corpus = [{"id": "a", "title": "red car", "text": "a fast red car"}, {"id": "b", "title": "wine", "text": "roses"}]
    Index.build(corpus, tmp_path / "index")
    described = run("describe", tmp_path / "index", "--verify")
    assert described.code == 0, described.output
    for text in ("documents", "2", "title (", "checksums", "match"):
        assert text in described.output
    assert "ranksieve retrieve, features, rerank and serve" in described.output
    refused = run("describe", tmp_path)
    assert refused.code == 2 and "is a folder that holds index; expected an index, a checkpoint" in refused.output
    (tmp_path / "empty").mkdir()
    assert "is a folder that is empty; expected" in run("describe", tmp_path / "empty").output
    refused = run("describe", tmp_path, "--verify")
    assert refused.code == 2 and "--verify is for index folders" in refused.output
    refused = run("describe", __file__, "--verify")
    assert refused.code == 2 and "--verify is for index folders" in refused.output


def test_describe_of_a_checkpoint(files, run, tmp_path):
    folder = tmp_path / "saved"
    options = ("--valid", files / "valid.txt", "--checkpoint", folder, "--out", tmp_path / "model.txt")
    assert run("train", files / "train.txt", *options, *QUICK, "--trees", 3).code == 0
    described = run("describe", folder)
    assert described.code == 0, described.output
    for text in (
        "--algo selgb",
        "3 trees in ",
        "valid ndcg@10 0.",
        f"ranksieve train command with --checkpoint {folder}",
    ):
        assert text in described.output
    (folder / "checkpoint.npz").write_bytes(b"PK")
    refused = run("describe", folder)
    assert refused.code == 2 and "checkpoint.npz: not a checkpoint" in refused.output


def test_describe_of_results_and_of_bin_files(run, tmp_path, monkeypatch):
    spec = """title = "two sizes"
[data.small]
generate = "cubic"
queries = 30
[[runs]]
algo = "lambdamart"
trees = 3
leaves = [4, 8]
"""
    (tmp_path / "spec.toml").write_text(spec)
    done = run("experiment", tmp_path / "spec.toml", "--out", tmp_path / "results", "--jobs", 1)
    assert done.code == 0, done.output
    described = run("describe", tmp_path / "results").output
    for text in (
        "the experiment two sizes",
        "2 of 2 are finished",
        "small",
        "lambdamart, leaves 4",
        "ranksieve report",
    ):
        assert text in described
    write_parquet(rs.synth.cubic(4), tmp_path / "data.parquet")
    monkeypatch.setattr(BinStore, "fits", lambda *_, **__: False)
    bin_data(tmp_path / "data.parquet", store=BinStore())
    path = tmp_path / "data.parquet.bins"
    for what in (path, tmp_path):
        described = run("describe", what)
        assert f"data.parquet.bins  bins of {tmp_path}/data.parquet, 200 documents, 50 features, " in described.output
    assert "none.bins: no such file" in run("describe", tmp_path / "none.bins").output
    path.write_bytes(b"x")
    refused = run("describe", tmp_path)
    assert refused.code == 2 and f"{path}: the bin file is damaged" in refused.output


def test_describe_does_not_offer_unique_texts_as_categories(run, tmp_path):
    rows = [f"{n // 4},{n % 2},0.{n},red wine {n},{'ab'[n % 2]}" for n in range(12)]
    (tmp_path / "wine.csv").write_text("\n".join(['qid,label,bm25,title,"brand, short"', *rows, ""]))
    shown = " ".join(run("describe", tmp_path / "wine.csv").output.split())
    assert "--ignore 'title,brand[,] short'" in shown
    assert "--categorical 'brand[,] short' instead of --ignore" in shown
    for given in (["--ignore", "title,brand, short"], ["--ignore", "title", "--categorical", "brand, short"]):
        wrong = run("pack", tmp_path / "wine.csv", "--out", tmp_path / "wine.parquet", *given)
        assert wrong.code == 2 and "write [,] for the comma in a name" in wrong.output, wrong.output


def test_describe_finds_ids_by_the_rows(run, tmp_path):
    columns = {
        "search": [1000 + n // 6 for n in range(48)],  # sorted in blocks
        "query text": [f"red wine {n // 6}" for n in range(48)],
        "url": [f"site/{n % 24}" for n in range(48)],  # two lists have the same documents
        "clicked": [n % 3 == 0 for n in range(48)],
        "bm25": [n / 7 for n in range(48)],
        "colour": ["red", "green", "blue"] * 16,
        "title": [f"bottle {n % 40}" for n in range(48)],
        "sku": [f"s{n % 5}" for n in range(48)],
    }
    pq.write_table(pa.table(columns), tmp_path / "lists.parquet")
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "lists.csv").write_text("\n".join(lines))
    for name in ("lists.parquet", "lists.csv"):
        shown = " ".join(run("describe", tmp_path / name).output.split())
        options = "--label NAME --qid search --docid url --ignore 'query text,colour,title,sku';"
        assert options in shown and "--categorical colour,sku instead of --ignore" in shown, shown
        assert "ranksieve index" not in shown
        flags = ("--label", "clicked", "--ignore", "query text,colour,title,sku,url")
        shown = run("describe", tmp_path / name, *flags, "--qid", "search").output
        assert "documents per query  6 to 6" in shown, shown
    (tmp_path / "documents.tsv").write_text("id\ttitle\tbody\n1\tred wine\tgood\n2\tcar\tfast\n")
    assert "or ranksieve index, if these are documents to search" in " ".join(
        run("describe", tmp_path / "documents.tsv").output.split()
    )


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ({"day": 30, "request": 5}, "--qid request"),  # five rows each, within days of 30 rows
        ({"request": 5, "words": 5, "day": 30}, "--qid request"),
        ({"day": 30, "request": 7}, "--qid NAME"),  # requests of two days
    ],
)
def test_describe_finds_query_ids_in_the_smallest_blocks(run, tmp_path, columns, options):
    texts = {name: [f"{name} {n // rows}" for n in range(150)] for name, rows in columns.items()}
    urls = [f"site/{n}" for n in range(150)]
    table = pa.table({"grade": [n % 3 for n in range(150)], **texts, "url": urls, "bm25": [n / 7 for n in range(150)]})
    pq.write_table(table, tmp_path / "lists.parquet")
    shown = " ".join(run("describe", tmp_path / "lists.parquet").output.split())
    assert f"--label grade {options} --docid url --ignore " in shown, shown
    is_clear = "NAME" not in options
    assert ("│ day │ text │ query ids, perhaps │" in shown) != is_clear
    assert ("name the right one; --qid may be day or request" in shown) != is_clear


def test_describe_of_unusual_parquet_files(run, tmp_path):
    lists = {
        "rel": [n % 2 for n in range(20)],
        "query": [n // 4 for n in range(20)],
        "bm25": [n / 3 for n in range(20)],
    }
    dates = pa.array([3_000_000] * 19 + [None], pa.int32()).cast(pa.date32())  # in the year 10183
    odd = {
        "day": dates,
        "raw": pa.array([b"\xff"] * 20),
        "tags": [["a", "b"]] * 20,
        "took": pa.array([7] * 20, pa.duration("s")),
    }
    pq.write_table(pa.table(lists | odd), tmp_path / "odd.parquet")
    described = run("describe", tmp_path / "odd.parquet")
    assert described.code == 0 and "--label rel --qid query --ignore day,raw,tags,took;" in described.output
    names = ["f", "f", "rel"]
    pq.write_table(pa.table([[1] * 20, [2] * 20, lists["rel"]], names=names), tmp_path / "twice.parquet")
    refused = run("describe", tmp_path / "twice.parquet")
    assert refused.code == 2 and "twice.parquet: two columns are named 'f'" in refused.output, refused.output
    usual = pa.table({"label": lists["rel"], "qid": lists["query"], "bm25": lists["bm25"], "title": ["red wine"] * 20})
    pq.write_table(usual, tmp_path / "whole.parquet", use_dictionary=False)
    content = (tmp_path / "whole.parquet").read_bytes()
    for name, damaged in {"page": content[:4] + bytes(40) + content[44:], "cut": content[:-20]}.items():
        (tmp_path / f"{name}.parquet").write_bytes(damaged)
        refused = run("describe", tmp_path / f"{name}.parquet", "--ignore", "title")
        assert refused.code == 2, refused.output
        assert f"{name}.parquet: the Parquet data is damaged or cut short" in refused.output, refused.output


def test_options_for_columns_may_be_repeated(run, tmp_path):
    rows = [f"{n % 3 == 0:d},{n // 8},{n % 5},text {n},{'ab'[n % 2]},{n}" for n in range(80)]
    (tmp_path / "train.csv").write_text("\n".join(["label,qid,bm25,title,brand,url", *rows]))
    (tmp_path / "params.toml").write_text('categorical = ["brand"]\n')
    words = ("train", tmp_path / "train.csv", *QUICK, "--ignore", "title", "--ignore", "url", "--out")
    for options in (["--categorical", "brand"], ["--params", tmp_path / "params.toml"]):
        outcome = run(*words, tmp_path / "model.txt", *options)
        assert outcome.code == 0, outcome.output
        assert load(tmp_path / "model.txt").feature_names == ("bm25", "brand")


def test_models_report_the_missing_feature_and_unknown_columns_to_ignore(run, tmp_path):
    rows = [f"{n % 3 == 0:d},{n // 8},{n % 5},{n % 7},text {n}" for n in range(80)]
    (tmp_path / "train.csv").write_text("\n".join(["label,qid,bm25,age,title", *rows]))
    (tmp_path / "lacks.csv").write_text((tmp_path / "train.csv").read_text().replace("age", "other", 1))
    model = tmp_path / "model.txt"
    trained = run("train", tmp_path / "train.csv", "--ignore", "title", "--out", model, *QUICK)
    assert trained.code == 0, trained.output
    for words in (("predict", "--out", tmp_path / "scores"), ("evaluate",), ("explain",)):
        command, *options = words
        outcome = run(command, model, tmp_path / "train.csv", "--ignore", "titel", *options)
        assert outcome.code == 2 and "no column is named 'titel', which is to be ignored; did you mean 'title'?" in (
            outcome.output
        )
        outcome = run(command, model, tmp_path / "lacks.csv", *options)
        assert outcome.code == 2 and "lacks 1 of the 2 features of the training data (age)" in outcome.output
    features = [line.rpartition(",")[0] for line in (tmp_path / "train.csv").read_text().splitlines()]
    (tmp_path / "no_title.csv").write_text("\n".join(features))
    outcome = run("predict", model, tmp_path / "no_title.csv", "--ignore", "title", "--out", tmp_path / "scores")
    assert outcome.code == 0, outcome.output
    options = ("--ignore", "title", "--out", model, *QUICK)
    for others in (
        ["--test", "no_title.csv"],
        ["--valid", "no_title.csv"],
        ["--valid", "no_title.csv", "--test", "lacks.csv"],
    ):
        files = [one if one.startswith("-") else tmp_path / one for one in others]
        outcome = run("train", tmp_path / "train.csv", *files, *options)
        assert outcome.code == (2 if "lacks.csv" in others else 0), outcome.output
    assert "lacks.csv: lacks 1 of the 2 features of the training data (age)" in outcome.output
    outcome = run("train", tmp_path / "no_title.csv", *options)
    assert outcome.code == 2 and "no column is named 'title', which is to be ignored" in outcome.output

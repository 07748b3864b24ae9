"""`ranksieve train` on a cluster."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import ranksieve as rs
from ranksieve.cli.app import app


@pytest.fixture
def files(tmp_path) -> list[str]:
    names = [str(tmp_path / f"{name}.parquet") for name in ("a", "b", "valid")]
    for i, name in enumerate(names):
        data = rs.synth.cubic(8, start=8 * i)
        rs.io.write_parquet(replace(data, info=replace(data.info, candidates={"index": "all fifty"})), name)
    return names


def run(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_partitions_give_the_same_model_file_on_a_cluster(client, files, tmp_path):
    first, second, valid = files
    common = (
        "train",
        first,
        second,
        "--valid",
        valid,
        "--trees",
        4,
        "--leaves",
        4,
        "--negatives",
        0.3,
        "--min-negatives",
        1,
        "--quiet",
    )
    here = run(*common, "--out", tmp_path / "here.txt")
    assert here.exit_code == 0, here.output
    level = logging.getLogger("distributed.client").level
    there = run(*common, "--cluster", client.scheduler.address, "--no-copies", "--out", tmp_path / "there.txt")
    assert logging.getLogger("distributed.client").level == level, "the level is restored"
    assert there.exit_code == 0, there.output
    assert "validation" in there.output
    assert (tmp_path / "here.txt").read_bytes() == (tmp_path / "there.txt").read_bytes()
    assert "all fifty" in (tmp_path / "there.txt").read_text(), "where the documents come from"


def test_wrong_addresses_and_flags_are_refused(files, tmp_path, monkeypatch):
    monkeypatch.setattr("ranksieve.cluster.connect.CONNECT_TIMEOUT", 0.2)
    alone = ("train", files[0], "--cluster", "tcp://127.0.0.1:1", "--out", tmp_path / "x.txt", "--quiet")
    result = run(*alone, "--trees", 2)
    assert result.exit_code == 2 and "no scheduler answers" in result.output
    result = run(*alone)
    assert result.exit_code == 2 and "no queries are held out on a cluster; give --valid" in result.output
    result = run("train", files[0], "--cluster", "tcp://a:1", "--local-workers", 2, "--out", tmp_path / "x.txt")
    assert result.exit_code == 2 and "mutually exclusive" in result.output
    result = run("train", files[0], "--no-copies", "--out", tmp_path / "x.txt")
    assert result.exit_code == 2 and "--no-copies needs" in result.output
    assert not (tmp_path / "x.txt").exists()

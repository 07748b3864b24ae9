"""`ranksieve serve` as a process: it says when it is ready, ends gracefully, and refuses what it cannot do."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

import ranksieve as rs
from corpus_samples import random_documents
from ranksieve.serve.app import PromptProtocol, bound_socket


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("serve") / "index"
    rs.Index.build(random_documents(40), folder, fields=["title", "body"]).close()
    return folder


def start(index: Path, *options: str) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "ranksieve", "serve", str(index), "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("ready on http://127.0.0.1:"), line
    return process, line.removeprefix("ready on ").partition(";")[0]


def test_the_service_starts_answers_and_ends(index, tmp_path):
    process, address = start(index, "--judgements", str(tmp_path / "grades.txt"))
    with urllib.request.urlopen(f"{address}/health") as answer:
        assert json.load(answer)["documents"] == 40
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


def test_answers_do_not_wait_for_the_client_to_confirm_the_header(monkeypatch):
    def no_delay(connection: socket.socket) -> int:
        return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    class Transport(asyncio.Transport):
        def get_extra_info(self, name: str, default: object = None) -> object:
            return accepted if name == "socket" else default

    monkeypatch.setattr(PromptProtocol.__base__, "connection_made", lambda protocol, transport: None)
    with bound_socket("127.0.0.1", 0) as listening:
        listening.listen()
        with socket.create_connection(listening.getsockname()), listening.accept()[0] as accepted:
            assert not no_delay(accepted)
            PromptProtocol.__new__(PromptProtocol).connection_made(Transport())
            assert no_delay(accepted)


def test_several_processes_share_judgements_and_counts(index, tmp_path):
    command = [sys.executable, "-m", "ranksieve", "serve", str(index), "--port", "0", "--workers", "2"]
    command += ["--judgements", str(tmp_path / "grades.txt")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    address = process.stdout.readline().removeprefix("starting 2 processes on ").partition(";")[0]
    for _ in range(2):
        assert any(line.rstrip().endswith("is ready") for line in iter(process.stderr.readline, ""))
    for number in range(8):
        body = json.dumps({"query": "wing", "document": f"d{number}", "grade": 1}).encode()
        headers = {"Content-Type": "application/json", "Connection": "close"}
        request = urllib.request.Request(f"{address}/judgements", body, headers, method="PUT")
        with urllib.request.urlopen(request) as answer:
            assert json.load(answer)["judged"] == number + 1
    with urllib.request.urlopen(f"{address}/metrics") as answer:
        assert 'method="PUT",route="/judgements",status="200"} 8.0' in answer.read().decode()
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=120)
    assert "Traceback" not in errors
    assert len((tmp_path / "grades.txt").read_text().splitlines()) == 8


def test_what_cannot_be_served_is_one_line(index, run, tmp_path, monkeypatch):
    monkeypatch.delenv("RANKSIEVE_TOKEN", raising=False)

    def refused(line: str, *options: str) -> None:
        outcome = run("serve", *options)
        assert outcome.code == 2
        assert line in outcome.output
        assert "Traceback" not in outcome.output

    refused("is not an index", str(tmp_path))
    refused("--host is 0.0.0.0, which others can reach; give a token with --token", str(index), "--host", "0.0.0.0")
    refused("--token has 1 characters", str(index), "--token", "x")
    refused("No such file", str(index), "--model", str(tmp_path / "none.txt"))
    refused("--query-file needs --judgements", str(index), "--query-file", str(tmp_path / "none.tsv"))
    refused("it has title, body", str(index), "--title", "name")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refused("cannot listen there", str(index), "--port", str(taken.getsockname()[1]))


def test_without_the_extra_the_message_names_it(index, run, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    outcome = run("serve", str(index))
    assert outcome.code == 2
    assert "pip install 'ranksieve[serve]'" in outcome.output

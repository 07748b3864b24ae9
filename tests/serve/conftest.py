"""A small index with two models, and a service on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import ranksieve as rs
from corpus_samples import QUERIES, random_documents
from ranksieve.serve.app import create_app
from ranksieve.serve.settings import Settings

HOSTILE = "<script>alert(1)</script>&\"'"
JUDGEMENTS = {"1": {"d3": 2.0, "d9": 1.0}, "2": {"d4": 1.0, "d20": 1.0}, "7": {"d11": 2.0}}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index and two models; one document has hostile texts and a hostile id."""
    folder = tmp_path_factory.mktemp("serve")
    documents = random_documents(60)
    documents[7] |= {"id": HOSTILE.replace(" ", ""), "title": HOSTILE, "body": f"engine wing {HOSTILE} flow engine"}
    with rs.Index.build(documents, folder / "index", fields=["title", "body:nostem"], numbers=["price"]) as index:
        data = rs.retrieval.extract_features(index, QUERIES, judgements=JUDGEMENTS, depth=50)
    for name, trees in (("one", 8), ("two", 3)):
        rs.train(data, trees=trees, leaves=4, min_docs=1).save(folder / f"{name}.txt")
    return folder


Client = Callable[..., TestClient]


@pytest.fixture
def client(folder: Path, tmp_path: Path) -> Iterator[Client]:
    """A function that starts a service and returns a client for it."""
    with ExitStack() as stack:

        def start(**changes: Any) -> TestClient:
            given = {
                "index": folder / "index",
                "models": (folder / "one.txt", folder / "two.txt"),
                "judgements": tmp_path / "qrels.txt",
                **changes,
            }
            app = create_app(Settings(**given))
            made = TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False)
            return stack.enter_context(made)

        yield start

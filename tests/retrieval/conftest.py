"""The small corpus, indexed."""

from __future__ import annotations

import pytest

from corpus_samples import random_documents
from ranksieve.retrieval.index import Index


@pytest.fixture(scope="session")
def documents() -> list[dict]:
    return random_documents(60)


@pytest.fixture(scope="session")
def index(documents: list[dict], tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.build(
        documents, tmp_path_factory.mktemp("indexes") / "small", fields=["title", "body:nostem"], numbers=["price"]
    )

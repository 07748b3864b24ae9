"""A small corpus for the tests: two text fields, repeated words, empty and missing texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np

WORDS = [
    *("engine", "wing", "flow", "heat", "shock", "wave", "layer", "plate", "speed", "tail"),
    *("getFileName", "file_name", "parseXML", "the", "of", "Running", "runs"),
]


def random_documents(n: int, seed: int = 0) -> list[dict]:
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, len(WORDS) + 1)
    documents = []
    for number in range(n):
        title, body = (" ".join(rng.choice(WORDS, rng.integers(0, most), p=share / share.sum())) for most in (5, 40))
        documents.append({"id": f"d{number}", "title": title, "body": body, "price": float(rng.integers(1, 9))})
    documents[n // 2].pop("title")
    documents[n // 3]["body"] = ""
    return documents


QUERIES = {"1": "engine wing flow", "2": "the getFileName of a running XML", "7": "shock shock wave plate unheard"}


def folder_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}

"""Damaged checkpoints: a ModelError, or training that goes on to a model that scores as the slow truth."""

from __future__ import annotations

import io

import numpy as np
import pytest

import ranksieve as rs
from damage import damaged
from naive_forest import naive_scores
from ranksieve.errors import ModelError
from samples import small_dataset

OPTIONS = {"algo": "selgb", "trees": 3, "leaves": 4, "min_docs": 3, "negatives": 0.3, "min_negatives": 1, "every": 2}


def repacked(content: bytes, seed: int) -> bytes:
    """The checkpoint with damage inside one of its arrays, under a checksum that is right."""
    with np.load(io.BytesIO(content)) as archive:
        arrays = dict(archive)
    name = ("meta", "model", "rows0", "weights0")[seed % 4]
    dtype = arrays[name].dtype
    inner = damaged(arrays[name].tobytes(), seed)
    arrays[name] = np.frombuffer(inner[: len(inner) // dtype.itemsize * dtype.itemsize], dtype)
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


@pytest.mark.parametrize("damage", [damaged, repacked])
def test_damaged_checkpoints_are_refused_or_go_on(tmp_path, fuzz_cases, damage):
    data = small_dataset()
    rs.train(data, checkpoint=tmp_path, **OPTIONS)
    path = tmp_path / "checkpoint.npz"
    content, rows = path.read_bytes(), data.rows(0, 20)
    refused = 0
    for seed, _ in enumerate(fuzz_cases(60)):
        path.write_bytes(damage(content, seed))
        try:
            model = rs.train(data, checkpoint=tmp_path, resume=True, **OPTIONS)
        except ModelError as error:
            assert "checkpoint.npz: " in str(error)
            refused += 1
            continue
        except Exception as error:
            raise AssertionError(f"damage number {seed} by {damage.__name__}: {error!r}") from error
        np.testing.assert_array_equal(model.predict(rows), naive_scores(model, rows))
    assert refused

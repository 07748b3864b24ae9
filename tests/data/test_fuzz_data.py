"""Damaged files give a `DataError` or a valid data set, nothing else. `--fuzz-seconds` sets the time of each test."""

from __future__ import annotations

import gzip
import io
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from damage import damaged
from ranksieve.data.dataset import Dataset
from ranksieve.data.letor import write_letor
from ranksieve.data.parquet import write_parquet
from ranksieve.data.read import read
from ranksieve.errors import DataError, RanksieveWarning


def sample(n_docs=60, *, ids=str):
    rng = np.random.default_rng(1)
    return {
        "label": rng.integers(0, 3, n_docs).astype(float),
        "qid": np.array([f"q{row // 7}" for row in range(n_docs)]) if ids is str else np.arange(n_docs) // 7,
        "docid": np.array([f"d{row}é" for row in range(n_docs)]),
        "bm25": rng.normal(size=n_docs).round(3),
        "fresh": rng.random(n_docs) < 0.5,
        "clicks": np.where(rng.random(n_docs) < 0.3, np.nan, rng.integers(0, 9, n_docs)),
    }


def dataset():
    columns = sample()
    X = np.stack([columns["bm25"], columns["fresh"], columns["clicks"]], axis=1)
    return Dataset.from_arrays(X, columns["label"], columns["qid"], doc_ids=columns["docid"], weights=np.ones(60))


def letor(folder):
    write_letor(dataset(), folder / "valid")
    return (folder / "valid").read_bytes()


def csv(folder):
    return pd.DataFrame(sample()).to_csv(index=False).encode()


def packed(folder):
    write_parquet(dataset(), folder / "valid")
    return (folder / "valid").read_bytes()


def foreign_parquet(folder):
    file = io.BytesIO()
    table = pa.table(sample(ids=int)).set_column(2, "docid", pa.array(sample()["docid"]).dictionary_encode())
    pq.write_table(table, file, row_group_size=16, compression="none")
    return file.getvalue()


def check(data: Dataset) -> None:
    """Raise if a data set does not hold what a data set promises."""
    lists = data.lists
    assert data.n_docs == lists.offsets[-1] == len(lists.labels) and (np.diff(lists.offsets) > 0).all()
    assert data.features.shape == (data.n_docs, data.n_features) and len(data.feature_names) == data.n_features > 0
    assert np.isfinite(lists.labels).all() and (lists.labels >= 0).all() and not np.isinf(data.features).any()
    assert len(set(lists.query_ids.tolist())) == data.n_queries
    assert lists.doc_ids is None or len(lists.doc_ids) == data.n_docs
    assert lists.weights is None or (np.isfinite(lists.weights).all() and (lists.weights >= 0).all())


def test_damaged_side_files_give_data_or_a_data_error(fuzz_cases, tmp_path):
    path = tmp_path / "data"
    path.write_text("".join(f"{row % 3} 1:{row}\n" for row in range(12)))
    contents = {"query": b"3\n4\n5\n", "weight": b"1\n0.5\n2\n"}
    for number, rng in enumerate(fuzz_cases(200)):
        for ending, content in contents.items():
            (tmp_path / f"data.{ending}").write_bytes(damaged(content, rng) if rng.random() < 0.7 else content)
        try:
            check(read(path))
        except DataError as error:
            assert str(path) in str(error), f"case {number}: {error}"
        except BaseException as error:
            raise AssertionError(f"case {number}") from error


@pytest.mark.parametrize("make", [letor, csv, packed, foreign_parquet])
def test_damaged_files_give_data_or_a_data_error(make, fuzz_cases, tmp_path):
    content, path = make(tmp_path), tmp_path / "damaged"
    path.write_bytes(content)
    check(read(path))
    for number, rng in enumerate(fuzz_cases(300)):
        changed = damaged(content, rng)
        if make in (letor, csv) and rng.random() < 0.1:
            changed = damaged(gzip.compress(changed), rng)
        path.write_bytes(changed)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RanksieveWarning)
                check(read(path, missing="nan" if number % 2 else "zero"))
        except DataError as error:
            assert str(path) in str(error), f"case {number}: {error}"
        except BaseException as error:
            raise AssertionError(f"case {number} of {make.__name__}") from error

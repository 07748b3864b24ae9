"""The feature file that benchmarks make of several collections."""

from __future__ import annotations

from pathlib import Path

import ranksieve as rs
from corpus_samples import QUERIES
from ranksieve.retrieval.feature_extractor import FeatureExtractor
from ranksieve.retrieval.labelling import QueryCandidates
from ranksieve.retrieval.searching import Retriever

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_candidates_of_several_indexes_are_one_file(index, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import bugs

    def part(prefix):
        pairs = QueryCandidates({f"{prefix}{id}": text for id, text in QUERIES.items()}, Retriever(index), 5)
        return pairs, FeatureExtractor(index, ["bm25.*", "first.score"])

    bugs._write_pooled([part("a"), part("b")], tmp_path / "pooled.parquet")
    data = rs.read(tmp_path / "pooled.parquet")
    assert data.query_ids.tolist() == [f"{prefix}{id}" for prefix in "ab" for id in QUERIES]
    assert data.feature_names[data.first_stage] == "first.score"

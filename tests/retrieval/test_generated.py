"""The generated collection of texts."""

from __future__ import annotations

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.errors import ParameterError
from ranksieve.retrieval.generated import generate_texts


def test_a_seed_gives_the_same_texts_and_grades():
    one, again, other = generate_texts(200, 20), generate_texts(200, 20), generate_texts(200, 20, seed=1)
    assert one == again
    assert one.documents != other.documents
    ids = {document["id"] for document in one.documents}
    assert len(ids) == 200
    assert all(some.keys() <= ids for some in one.judgements.values())
    assert {grade for some in one.judgements.values() for grade in some.values()} == {1, 2, 3, 4}
    assert one.judgements.keys() == one.queries.keys()


def test_what_is_graded_names_the_subject():
    made = generate_texts(400, 30)
    texts = {document["id"]: f"{document['title']} {document['text']}".lower() for document in made.documents}
    for id, grades in made.judgements.items():
        words = made.queries[id].split()
        for doc, grade in grades.items():
            if grade > 1:
                assert any(word in texts[doc] for word in words)


def test_numbers_out_of_range_are_refused():
    with pytest.raises(ParameterError, match="n_docs is 0"):
        generate_texts(0)
    with pytest.raises(ParameterError, match="n_queries is 1000; there are 576"):
        generate_texts(10, 1000)


def test_a_model_learns_from_them(tmp_path):
    made = generate_texts(1500, 60)
    with rs.Index.build(made.documents, tmp_path / "index", fields=["title", "text"], numbers=["rating"]) as index:
        data = rs.retrieval.extract_features(index, made.queries, judgements=made.judgements, depth=100)
    train, _, test = rs.sampling.split(data)
    model = rs.train(train, trees=20, leaves=8, algo="lambdamart", gain="newton")
    first = np.asarray(test.features[:, test.feature_names.index("first.score")], dtype=float)
    found = rs.evaluate({"first": first, "model": model}, test)
    assert found.mean("model") > found.mean("first") + 0.1

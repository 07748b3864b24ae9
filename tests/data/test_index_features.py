"""Features of an index and users' own features are distinguished by their names."""

from __future__ import annotations

from ranksieve.data.features import RELATIVE
from ranksieve.data.index_features import is_of_index
from ranksieve.retrieval.feature_names import any_features


def test_all_features_of_an_index_are_known():
    names = [feature.name for feature in any_features()]
    assert len(names) > 60 and all(is_of_index(name) and is_of_index(RELATIVE + name) for name in names)
    assert not any(map(is_of_index, ("bm25", "f1", "relative.popularity", "shop.price", "bm25f.title", "relative.")))

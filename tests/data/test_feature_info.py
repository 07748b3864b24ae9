import pytest

from ranksieve.data.features import choose_features, monotone_signs
from ranksieve.errors import ParameterError

NAMES = ("bm25_title", "bm25_body", "pagerank", "3", "tf-idf")


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("*", [0, 1, 2, 3, 4]),
        ("pagerank", [2]),
        ("bm25_*, tf-idf", [0, 1, 4]),
        ("1-2", [0, 1]),
        ("3", [3]),  # a name goes before a number
        ("*,!bm25_*", [2, 3, 4]),
        ("!bm25_body,!5", [0, 2, 3]),
        ("?m25_[tb]*", [0, 1]),
    ],
)
def test_names_globs_numbers_and_what_is_taken_away(text, chosen):
    assert choose_features(text, NAMES).tolist() == chosen


@pytest.mark.parametrize("text", ["0", "6", "4-9", "2-1", "bm26_title", "!*", "x?"])
def test_nothing_is_guessed(text):
    with pytest.raises(ParameterError):
        choose_features(text, NAMES)


def test_signs():
    assert monotone_signs("none", NAMES) is None
    assert monotone_signs("0,0,0,0,0", NAMES) is None
    assert monotone_signs("1,0,-1,0,+1", NAMES).tolist() == [1, 0, -1, 0, 1]
    assert monotone_signs("bm25_*:+1,bm25_body:0,5:-1", NAMES).tolist() == [1, 0, 0, 0, -1]

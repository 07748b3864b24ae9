"""Text to terms."""

from __future__ import annotations

import builtins

import pytest

from ranksieve.errors import MissingExtraError, ParameterError
from ranksieve.retrieval.analysis import Analyzer, Field, parse_field

PLAIN = Analyzer(stem="none", stop="none")


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("getFileName", ["getfilename", "get", "file", "name"]),
        ("XMLParser2go", ["xmlparser2go", "xml", "parser", "2", "go"]),
        ("snake_case_ id__", ["snake_case", "snake", "case", "id"]),
        ("Hello, wörld!", ["hello", "wörld"]),
        ("ÉcoleNormale", ["écolenormale", "école", "normale"]),
        ("漢字 __ IBM", ["漢字", "ibm"]),
        ("cafe\u0301 E\u0301coleNormale", ["café", "écolenormale", "école", "normale"]),  # accents apart
        ("हिन्दी-भाषा, שָׁלוֹם q\u0308x", ["हिन्दी", "भाषा", "שָׁלוֹם", "q\u0308x"]),
        ("", []),
    ],
)
def test_words_split_at_case_and_underscores(text, terms):
    assert PLAIN.terms(text) == terms


def test_every_step_can_be_switched_off():
    text = "The getFileName is Running"
    assert Analyzer().terms(text) == ["getfilenam", "get", "file", "name", "run"]
    assert Analyzer(stem="none").terms(text) == ["getfilename", "get", "file", "name", "running"]
    assert Analyzer(split=False).terms(text) == ["getfilenam", "run"]
    assert Analyzer(lower=False, split=False, stem="none", stop="none").terms(text) == text.split()
    assert Analyzer(stop=("running",), stem="none", split=False).terms(text) == ["the", "getfilename", "is"]


def test_unknown_choices_are_refused():
    with pytest.raises(ParameterError, match="stop is 'klingon'"):
        Analyzer(stop="klingon")
    with pytest.raises(ParameterError, match=r"stem is 'klingon'; expected none or one of .*english"):
        Analyzer(stem="klingon")


def test_without_the_stemmer_the_error_names_the_package(monkeypatch):
    real = builtins.__import__

    def no_stemmer(name, *rest, **named):
        if name == "Stemmer":
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", no_stemmer)
    with pytest.raises(MissingExtraError, match="pip install PyStemmer"):
        Analyzer()
    assert Analyzer(stem="none").terms("fine") == ["fine"]


def test_fields_are_spelled_in_one_line():
    field = parse_field("file:nostem,nopositions=path~[^/]+$")
    assert field == Field("file", "path", "[^/]+$", Analyzer(stem="none"), positions=False)
    assert field.text({"path": "a/b/C.java"}) == "C.java"
    assert field.text({"path": None}) is None
    assert parse_field("text~a:b=c").pattern == "a:b=c"
    assert Field("tags").text({"tags": ["red", 7, None]}) == "red\n7"
    assert Field.from_dict(field.as_dict()) == field


@pytest.mark.parametrize("text", ["", "all", "title:frobnicate", "title~[", "a*b"])
def test_bad_fields_are_refused(text):
    with pytest.raises(ParameterError):
        parse_field(text)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("co\u00adoperate", ["cooperate"]),
        ("1\ufe0f\u20e3", ["1"]),
        ("می\u200cخواهم رفت", ["می\u200cخواهم", "رفت"]),
        ("ශ්\u200dරී ලංකා", ["ශ්\u200dරී", "ලංකා"]),
    ],
)
def test_characters_without_a_shape_do_not_split_words(text, terms):
    assert Analyzer(stem="none").terms(text) == terms

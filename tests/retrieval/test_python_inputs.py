"""Documents, queries, judgements and runs as Python's tables and mappings hold them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ranksieve.errors import DataError, ParameterError
from ranksieve.retrieval.corpus import kind_of_value
from ranksieve.retrieval.first_stage import FirstStage
from ranksieve.retrieval.index import Index
from ranksieve.retrieval.queries import as_queries, read_queries
from ranksieve.retrieval.run_evaluation import evaluate_run
from ranksieve.retrieval.runs import Run, as_judgements, write_run
from ranksieve.retrieval.searching import retrieve


def test_list_columns_lose_no_word(tmp_path):
    words = np.array([f"w{n}" for n in range(1500)], dtype=object)
    frame = pd.DataFrame({"id": ["a", "b"], "tags": [words, words[:1]]})
    index = Index.build(frame, tmp_path / "index", fields="tags:nosplit")
    assert len(retrieve(index, {"q": "w700", "r": "w0"})) == 3


def test_the_first_values_of_a_list_tell_what_it_holds():
    class Values(list):
        def __iter__(self):
            for number, value in enumerate(super().__iter__()):
                assert number < 20
                yield value

    assert kind_of_value(Values([None, *range(1000)])) == "lists of numbers"
    assert kind_of_value(Values([[0.5], None, "a"])) == "lists of different values"
    for type in (np.float32, np.float64, np.int64):
        assert [kind_of_value(np.ones(n, type)) for n in (2, 0)] == ["lists of numbers", ""]
    assert kind_of_value(np.array([None, True])) == "lists of booleans"


def test_missing_values_of_frames_are_none(tmp_path):
    frame = pd.DataFrame(
        {"id": ["a", "b"], "text": ["wine", pd.NA], "tags": [["x", pd.NA], ["y"]], "price": [pd.NA, 3]}
    )
    index = Index.build(frame, tmp_path / "index", numbers="price")
    assert not len(retrieve(index, "na"))
    with pytest.raises(DataError, match="document 0: has no id"):
        Index.build(pd.DataFrame({"id": [pd.NA], "text": ["wine"]}), tmp_path / "other")


def test_arrow_tables_are_documents(tmp_path):
    index = Index.build(pa.table({"id": [1, 2], "text": ["red wine", None]}), tmp_path / "index")
    assert list(index.ids) == ["1", "2"]
    with pytest.raises(ParameterError, match="depth is True"):
        retrieve(index, "wine", depth=True)


def test_whole_numbers_are_ids(tmp_path):
    run = Run.from_lists([(1, np.array([7, 8], dtype=object), np.array([2.0, 1.0]))])
    assert evaluate_run({"a": run}, {1: {7: 1}, "2": {"7": 1}}, "p@1").table() == [{"name": "a", "p@1": 0.5}]
    write_run(run, tmp_path / "run")
    assert (tmp_path / "run").read_text().startswith("1 Q0 7 1 2 ")


@pytest.mark.parametrize("judgements", [[("1", "7", 1)], {"1": ["7"]}])
def test_other_judgements_are_refused(judgements):
    with pytest.raises(DataError, match=r"judgements .*expected a mapping"):
        as_judgements(judgements)
    with pytest.raises(DataError, match="the run a is None"):
        evaluate_run({"a": None}, {"1": {"7": 1}})


@pytest.mark.parametrize("head", ["query-id\ttext", "topic\tquery", "QID\tQuery"])
def test_heads_of_queries_are_no_query(head, tmp_path):
    (tmp_path / "q.tsv").write_text(f"{head}\n3\tred wine\n")
    assert read_queries(tmp_path / "q.tsv") == {"3": "red wine"}


def test_names_of_files_are_no_query(tmp_path):
    (tmp_path / "q.tsv").write_text("3\tred wine\n")
    with pytest.raises(DataError, match=r"is the name of a file; .* Path"):
        as_queries(str(tmp_path / "q.tsv"))


def test_numbers_beyond_the_range_of_floats_are_refused():
    with pytest.raises(ParameterError, match=r"k1 is 10{39}; expected a number from 0"):
        FirstStage(k1=10**400)


def test_ids_with_nul_characters_are_refused(tmp_path):
    """Arrays of text drop NUL characters at the end, so that two ids would be equal."""
    with pytest.raises(DataError, match=r"document 1: the document id 'a\\x00' has a NUL character"):
        Index.build([{"id": "a", "text": "x"}, {"id": "a\0", "text": "y"}], tmp_path / "index")
    with pytest.raises(DataError, match=r"the query id 'q\\x00' has a NUL character"):
        as_queries({"q": "x", "q\0": "y"})
    file = tmp_path / "queries.jsonl"
    file.write_text(r'{"id": "q", "text": "x"}' + "\n" + r'{"id": "q\u0000", "text": "y"}')
    with pytest.raises(DataError, match=r"queries.jsonl:2: the query id 'q\\x00' has a NUL character"):
        read_queries(file)

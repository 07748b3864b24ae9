"""The pages as the service sends them; what they do in a browser is tested in test_browser.py."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

import ranksieve as rs
from corpus_samples import QUERIES
from ranksieve.evaluation.metrics import parse_metric
from ranksieve.retrieval.searching import search
from ranksieve.serve.comparison import Ranked as R
from ranksieve.serve.comparison import disagreement, measured, open_questions

TEXT = QUERIES["1"]
HOSTILE = "<script>alert(1)</script>&\"'"


class Elements(HTMLParser):
    """The start tags of a page, with their attributes."""

    def __init__(self, text: str):
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def all(self, name: str, cls: str = "") -> list[dict]:
        return [
            given for tag, given in self.found if tag == name and cls in [*(given.get("class") or "").split(" "), ""]
        ]


def page(http, path: str, status: int = 200) -> tuple[str, Elements]:
    answer = http.get(path)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    elements = Elements(answer.text)
    for tag, given in elements.found:  # the content security policy would refuse these
        assert "style" not in given
        assert not [name for name in given if name.startswith("on")]
        assert tag != "script" or given.get("src", "").startswith("/static/")
        assert not (given.get("src") or given.get("href") or "/").startswith(("http", "//", "javascript:"))
    return answer.text, elements


def judge(http, grades: dict[str, int], query: str = TEXT) -> None:
    for document, grade in grades.items():
        assert http.put("/judgements", json={"query": query, "document": document, "grade": grade}).status_code == 200


def documents(http, model: str, k: int) -> list[str]:
    hits = http.get("/search", params={"q": TEXT, "k": k, "model": model}).json()["hits"]
    return [hit["document"] for hit in hits]


def test_columns_stand_side_by_side_with_moves(client, folder):
    http = client()
    text, elements = page(http, f"/?q={TEXT}&k=5")
    hits = [given["data-document"] for given in elements.all("li", "hit")]
    by_model = {name: documents(http, name, 5) for name in ("first-stage", "one", "two")}
    assert hits == [*by_model["first-stage"], *by_model["one"], *by_model["two"]]
    everything = documents(http, "first-stage", 50)
    moves = [everything.index(doc) + 1 - rank for name in ("one", "two") for rank, doc in enumerate(by_model[name], 1)]
    shown = re.findall(
        r'class="move (\w+)">\s*<span aria-hidden="true">.</span><span class="hidden">[a-z ]*</span>(\d*)', text
    )
    assert [{"up": 1, "down": -1, "same": 0}[kind] * int(size or 0) for kind, size in shown] == moves
    assert "<mark>" in text


def test_hostile_ids_titles_and_queries_are_escaped(client):
    http = client()
    judge(http, {HOSTILE: 3}, query=HOSTILE + " engine")
    for path in ("/", f"/?q=engine+wing+{HOSTILE.replace('&', '%26')}&k=60", "/queries", "/train", "/docs",
                 "/?q=x&model=<script>alert(1)</script>", "/?k=<script>", "/?w.<script>=1&q=x",
                 "/queries?sort=<script>"):  # fmt: skip
        answer = http.get(path)
        assert "<script>alert" not in answer.text, path
        assert '"<script>' not in answer.text, path
        elements = Elements(answer.text)
        assert [given for tag, given in elements.found if tag == "script"] == [
            {"src": elements.all("script")[0]["src"], "defer": None}
        ]
    _, elements = page(http, f"/?q=engine+wing+{HOSTILE.replace('&', '%26')}&k=60")
    assert HOSTILE in [given["data-document"] for given in elements.all("li", "hit")]


def test_the_address_holds_the_state(client):
    http = client()
    text, elements = page(http, "/?q=wing&model=two&k=7&depth=20&w.title=3")
    assert len(elements.all("section", "column")) == 2
    columns = elements.all("div", "columns")[0]
    assert (columns["data-depth"], json.loads(columns["data-weights"])) == ("20", {"title": 3.0})
    following = next(given["href"] for given in elements.all("a", "button"))
    assert parse_qs(urlsplit(following).query) == {
        "q": ["wing"],
        "model": ["two"],
        "k": ["7"],
        "depth": ["20"],
        "w.title": ["3"],
    }
    assert len(page(http, "/?q=wing&model=")[1].all("section", "column")) == 1
    assert "was trained on" in text  # another depth


@pytest.mark.parametrize(
    ("path", "status", "line"),
    [
        ("/?q=x&k=0", 422, "k is &#39;0&#39;; expected an integer from 1 to 100"),
        ("/?q=x&k=99999999999999999999", 422, "k is"),
        ("/?q=x&depth=x", 422, "depth is"),
        ("/?q=x&w.title=x", 422, "w.title is"),
        ("/?q=x&w.title=-1", 422, "weights is -1"),
        ("/?q=x&w.nope=1", 422, "a field of title, body"),
        ("/?q=x&model=nope", 404, "no model is named"),
        ("/queries?model=nope", 404, "no model is named"),
        ("/?q=" + "x" * 10_001, 422, "at most 10,000"),
    ],
)
def test_bad_addresses_get_a_message(client, path, status, line):
    text, elements = page(client(), path, status)
    assert line in text
    assert elements.all("p", "problem")


def test_grades_show_with_progress_and_metric(client):
    http = client()
    first = [hit["document"] for hit in http.get("/search", params={"q": TEXT, "model": "first-stage"}).json()["hits"]]
    judge(http, {first[0]: 0, first[1]: 3})
    text, elements = page(http, f"/?q={TEXT}")
    shown = len({given["data-document"] for given in elements.all("li", "hit")})
    assert f'<span id="judged">2</span> of {shown} judged' in text
    value = parse_metric("ndcg@10").per_query(np.array([0, 3] + [0] * 8), -np.arange(10.0), np.array([0, 10]))[0]
    assert f"NDCG@10 {value:.3f}" in text
    assert {given["data-grade"] for given in elements.all("li", "hit") if given["data-document"] == first[1]} == {"3"}
    assert 'aria-pressed="true"' in text


def test_the_table_of_queries_has_the_metric_and_p_values(client, folder):
    http = client()
    for text, grades in (("engine wing", {"d3": 3, "d9": 1}), ("shock wave", {"d11": 2}), ("heat", {"d4": 0})):
        judge(http, grades, text)
    text, _ = page(http, "/queries?model=one&model=two")
    heads = [re.sub("<.*?>", "", one).split("▲")[0].strip() for one in re.findall(r"<th scope=\"col\".*?</th>", text)]
    assert heads == ["Query", "Judged", "First stage", "one", "two", "Difference"]
    rows = re.findall(r"<tr><th scope=\"row\">.*?</tr>", text)
    assert len(rows) == 2  # heat has no positive
    differences = [float(re.findall(r"[+\u2212]\d\.\d+", row)[0].replace("\u2212", "-")) for row in rows]
    assert differences == sorted(differences)
    assert text.count("p = ") == 3
    turned = page(http, "/queries?sort=-query")[0]
    assert turned.index("shock wave") < turned.index("engine wing")
    for sort in ("query", "judged", "0", "2", "9", "-difference", "²", "", "-"):
        page(http, f"/queries?sort={sort}")
    assert "No query has a grade above 0 yet" in page(client(judgements=folder.parent / "none.txt"), "/queries")[0]


def test_what_is_not_known_of_training_is_not_claimed(client, folder):
    http = client()
    for text, grades in (("engine wing", {"d3": 3, "d9": 1}), ("shock wave", {"d11": 2}), ("heat", {"d4": 1})):
        judge(http, grades, text)
    assert (
        "It is not known which queries <strong>one</strong> and <strong>two</strong> were trained on"
        in page(http, "/queries")[0]
    )
    service = http.app._app.state.service
    first, second, third = service.store().texts()
    service.settings.trained_folder.mkdir(exist_ok=True)
    for number, seen in (("1", [first]), ("2", [second])):
        model = rs.load(folder / "one.txt")
        made = replace(model, info={**model.info, "judged_queries": {"train": seen, "test": [third]}})
        made.save(service.settings.trained_folder / f"trained-{number}.txt")
    service.models.refresh()
    text = page(http, "/queries?model=one&model=trained-1")[0]
    assert "These are the 2 queries that <strong>trained-1</strong> was not trained on." in text
    assert "It is not known which queries <strong>one</strong> was trained on" in text
    assert text.count('<th scope="row">') == 2
    text = page(http, "/queries?model=one&model=trained-1&unseen=0")[0]
    assert "Some of these queries were used to train <strong>trained-1</strong>" in text
    assert "It is not known which queries <strong>one</strong> was trained on" in text
    assert text.count('<th scope="row">') == 3
    text = page(http, "/queries?model=trained-1&model=trained-2")[0]
    assert "This is the one query that neither <strong>trained-1</strong> nor <strong>trained-2</strong> was" in text
    assert "is not known" not in text


def test_the_start_page_names_the_models(client):
    assert "what the models make of it: one, two." in page(client(), "/")[0]


def test_without_models_or_judgements(client):
    text, _ = page(client(models=(), judgements=None), "/")
    assert "There is no model yet" in text
    http = client(judgements=None)
    text, elements = page(http, f"/?q={TEXT}")
    assert not elements.all("span", "grades")
    assert "started without --judgements FILE" in page(http, "/queries", 409)[0]
    assert "started without --judgements FILE" in page(http, "/train", 409)[0]
    _, elements = page(client(read_only=True), f"/?q={TEXT}")
    assert all("disabled" in given for given in elements.all("button") if "data-grade" in given)


def test_the_next_query_is_the_one_with_most_disagreement(client):
    http = client()
    judge(http, {"d3": 3}, "engine wing")
    judge(http, {"d3": 1}, "shock wave plate")
    answer = http.get("/next?q=engine+wing", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/?q=shock+wave+plate&next=1"
    assert http.get("/next?q=unheard", follow_redirects=False).headers["location"].startswith("/?q=")


def test_static_files_and_nothing_else(client):
    http = client()
    for name in ("page.js", "page.css", "icon.svg"):
        assert http.get(f"/static/{name}").status_code == 200
    for name in ("", "x", "../app.py", "..%2fapp.py", "%2e%2e/app.py", "page.js/"):
        assert http.get(f"/static/{name}", follow_redirects=False).status_code in (404, 307)


def test_disagreement_is_the_spread_of_discounts():
    assert disagreement([1, 1, 1]) == 0
    assert disagreement([1, 3]) == pytest.approx(0.5)
    assert disagreement([None, 1]) == 1
    documents = np.array(["a", "b"], object)
    rankings = {
        "first": {"q": R(documents, np.ones(2)), "r": R(documents, np.ones(2))},
        "model": {"q": R(documents[::-1], np.ones(2)), "r": R(documents, np.ones(2))},
    }
    found = open_questions(rankings, {"q": {"a": 0.0}})
    assert found == {"q": pytest.approx(1 - 1 / np.log2(3)), "r": 0}
    assert measured(rankings, {"q": {"a": 0.0}}) is None
    values = measured(rankings, {"q": {"b": 1.0}, "r": {"b": 1.0}, "s": {"b": 1.0}})
    assert values.per_query("model").tolist() == pytest.approx([1, 1 / np.log2(3)])


def test_the_first_stage_is_that_of_the_library(client, folder):
    http = client()
    service = http.app._app.state.service
    found = [hit.docno for hit in search(service.index, TEXT, 5)]
    _, elements = page(http, f"/?q={TEXT}&k=5&model=")
    assert [given["data-document"] for given in elements.all("li", "hit")] == found

"""Access control of the service."""

from __future__ import annotations

import pytest

from ranksieve.errors import ParameterError
from ranksieve.serve.app import VARIABLE, export_settings, worker_app
from ranksieve.serve.settings import Limits, Settings

TOKEN = "0123456789abcdef"
GRADE = {"query": "wing", "document": "d1", "grade": 1}


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "localhost:8000:1", "[::2]", "127.0.0.2"],
)
def test_other_hosts_are_refused(client, host):
    http = client()
    for path in ("/", "/health", "/search?q=x", "/static/page.js"):
        assert http.get(path, headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:8000", "[::1]:8000", "localhost.", "box:80"])
def test_known_hosts_are_let_in(client, host):
    assert client(allowed_hosts=("box",)).get("/health", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9000"},
        {"origin": "http://localhost:8000"},  # Host is 127.0.0.1:8000
        {"origin": "http://127.0.0.1:8000.evil.example"},
        {"origin": "ftp://127.0.0.1:8000"},
        {"origin": ""},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_pages_of_other_sites_cannot_write_or_compute(client, tmp_path, headers):
    http = client()
    assert http.put("/judgements", json=GRADE, headers=headers).status_code == 403
    assert http.post("/explain", json={}, headers=headers).status_code == 403
    assert not (tmp_path / "qrels.txt").exists()


def test_pages_of_other_sites_may_link_but_not_load(client):
    http = client()
    cross = {"sec-fetch-site": "cross-site"}
    assert http.get("/health", headers=cross | {"sec-fetch-mode": "navigate"}).status_code == 200
    assert http.get("/health", headers=cross | {"sec-fetch-mode": "no-cors"}).status_code == 403
    own = {"origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-origin"}
    answer = http.put("/judgements", json=GRADE, headers=own)
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_forms_cannot_write(client, tmp_path):
    http = client()
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        body = '{"query": "wing", "document": "d1", "grade": 1}'
        assert http.put("/judgements", content=body, headers={"content-type": kind}).status_code == 422
    assert not (tmp_path / "qrels.txt").exists()


def test_writing_needs_the_token(client, tmp_path):
    http = client(host="0.0.0.0", token=TOKEN, allowed_hosts=("127.0.0.1",))
    for given in (None, "", "Bearer", "Bearer x", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", TOKEN):
        headers = {} if given is None else {"authorization": given}
        for method, path in (("PUT", "/judgements"), ("POST", "/training"), ("DELETE", "/training"), ("POST", "/new")):
            answer = http.request(method, path, json=GRADE, headers=headers)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
    assert (
        http.put("/judgements", json=GRADE, headers={"authorization": "Bearer \xe9".encode("latin-1")}).status_code
        == 401
    )
    assert not (tmp_path / "qrels.txt").exists()
    assert http.get("/search?q=wing").status_code == 200
    assert http.put("/judgements", json=GRADE, headers={"authorization": f"bearer {TOKEN}"}).status_code == 200


def test_read_only_refuses_to_write(client, tmp_path):
    http = client(read_only=True)
    assert http.put("/judgements", json=GRADE).status_code == 403
    assert http.post("/training").status_code == 403
    assert http.post("/rerank", json={"query": "wing", "documents": ["d1"]}).status_code == 200
    assert list(tmp_path.iterdir()) == []


def test_without_a_file_nothing_is_judged(client):
    http = client(judgements=None)
    assert http.put("/judgements", json=GRADE).status_code == 409
    assert http.get("/judgements").status_code == 409


def test_every_answer_has_the_headers(client):
    http = client()
    for path, host in (("/health", "localhost"), ("/", "localhost"), ("/nope", "localhost"), ("/health", "evil")):
        headers = http.get(path, headers={"host": host}).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"


def test_others_can_only_be_served_with_a_token(folder):
    index = folder / "index"
    for host in ("0.0.0.0", "::", "192.168.1.2", "example.org"):
        with pytest.raises(ParameterError, match="which others can reach; give a token"):
            Settings(index, host=host)
        Settings(index, host=host, token=TOKEN)
        Settings(index, host=host, read_only=True)
    for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8"):
        assert Settings(index, host=host).is_local
    with pytest.raises(ParameterError, match="token has 5 characters; expected at least 16"):
        Settings(index, token="short")
    assert TOKEN not in repr(Settings(index, token=TOKEN))
    with pytest.raises(ParameterError, match="query_file needs judgements"):
        Settings(index, queries=index)


def test_worker_processes_get_the_same_settings(folder, tmp_path, monkeypatch):
    given = Settings(
        folder / "index", (folder / "one.txt",), tmp_path / "qrels.txt", host="0.0.0.0", token=TOKEN, workers=2,
        allowed_hosts=("box",), limits=Limits(depth=7), training={"trees": 3},
    )  # fmt: skip
    made = []
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.setattr("ranksieve.serve.app.create_app", lambda settings, *_: made.append(settings))
    monkeypatch.setattr("ranksieve.serve.app.log_to_stderr", lambda: None)
    export_settings(given)
    worker_app()
    assert made == [given]


@pytest.mark.parametrize("k", ["0000000010000", "%20%20%20%20%20%20%20%20%205", "99999999999999999999"])
def test_sizes_of_the_page_are_limited(client, k):
    answer = client().get(f"/?q=engine&k={k}")
    assert answer.status_code == (200 if k.endswith("205") else 422)


def test_a_broken_origin_is_refused(client):
    assert client().put("/judgements", json=GRADE, headers={"origin": "http://["}).status_code == 403

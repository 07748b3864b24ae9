"""The page in a real browser: Debian's chromium or another one that is installed; skipped where there is none."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest

import ranksieve as rs
from ranksieve.retrieval.generated import generate_texts
from ranksieve.retrieval.runs import read_judgements

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium is installed: apt-get install chromium")
HOSTILE = "<img/src=x/onerror=alert(1)>\"'"
QUERY = "camping stove clean"


class Served:
    """A service in a process of its own."""

    def __init__(self, folder: Path, *options: str):
        self.folder = folder
        command = [sys.executable, "-m", "ranksieve", "serve", str(folder / "index"), "--port", "0"]
        command += ["--judgements", str(folder / "grades.txt"), "--query-file", str(folder / "queries.tsv"), *options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        ready = next((line for line in iter(self._process.stdout.readline, "") if line.startswith("ready on ")), None)
        assert ready is not None, "the service did not start"
        self.address = ready.removeprefix("ready on ").partition(";")[0]

    def end(self, number: int = signal.SIGTERM) -> None:
        self._process.send_signal(number)
        self._process.wait(60)
        self._process.stdout.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    made = generate_texts(500, 14, seed=3)
    made.documents[0] |= {"id": HOSTILE, "title": f"camping stove {HOSTILE}", "text": f"clean camping stove {HOSTILE}"}
    with rs.Index.build(
        made.documents, folder / "index", fields=["title", "text"], numbers=["rating"], vectors="svd:8"
    ) as index:
        data = rs.retrieval.extract_features(index, made.queries, judgements=made.judgements, depth=100)
    rs.train(data, trees=10, leaves=8).save(folder / "model.txt")
    (folder / "queries.tsv").write_text("".join(f"{id}\t{text}\n" for id, text in made.queries.items()))
    lines = (f"{id} 0 {doc} {grade:g}\n" for id, some in made.judgements.items() for doc, grade in some.items())
    (folder / "given.txt").write_text("".join(lines))
    return folder


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[Served]:
    served = Served(folder, "--model", str(folder / "model.txt"))
    yield served
    served.end()


@pytest.fixture
def served(running: Served) -> Served:
    """The service with the judgements it was given."""
    (running.folder / "grades.txt.queries.tsv").unlink(missing_ok=True)
    shutil.copy(running.folder / "given.txt", running.folder / "grades.txt")
    return running


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    with api.sync_playwright() as playwright:
        sandbox = [] if os.geteuid() else ["--no-sandbox"]  # root has none
        browser = playwright.chromium.launch(executable_path=BROWSER, args=sandbox)
        yield browser
        browser.close()


@pytest.fixture
def page(browser) -> Iterator[object]:
    """A page that may not log, alert, or load anything from elsewhere."""
    page, odd = browser.new_page(viewport={"width": 1280, "height": 900}), []
    page.on("console", lambda message: odd.append(message.text))
    page.on("pageerror", lambda error: odd.append(str(error)))
    page.on("dialog", lambda dialog: (odd.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: odd.append(request.url) if "//127.0.0.1:" not in request.url else None)
    page.set_default_timeout(60_000)
    yield page
    page.close()
    assert odd == []


def search(page, served: Served, query: str = QUERY) -> None:
    page.goto(served.address)
    page.fill("#q", query)
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit")


def grades(served: Served) -> dict[str, float]:
    """The grades of the query that this module types."""
    known = read_judgements(served.folder / "grades.txt")
    return next((dict(some) for id, some in known.items() if id.startswith("q-")), {})


def wait_for(condition) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_search_moves_lines_and_the_address(page, served):
    search(page, served)
    assert page.url == f"{served.address}/?q={quote(QUERY).replace('%20', '+')}"
    assert page.locator(".column").count() == 2
    assert page.locator(".column").nth(1).locator(".move").count() == 10
    assert re.fullmatch(r"[▲▼=](up|down|not moved)\d*", page.locator(".move").first.inner_text().replace("\n", ""))
    assert page.locator("#lines path").count() > 0
    page.locator("summary", has_text="Columns and weights").click()
    page.fill("input[name='w.title']", "5")
    page.fill("input[name=k]", "4")
    page.get_by_role("button", name="Search").click()
    page.wait_for_url("**w.title=5**")
    assert page.locator(".column").first.locator(".hit").count() == 4
    assert "depth=" not in page.url
    page.go_back()
    wait_for(lambda: page.evaluate("document.querySelectorAll('.column .hit').length == 20"))


def test_the_first_stage_is_chosen(page, served):
    search(page, served)
    assert "stage=" not in page.url
    by_words = page.locator(".column").first.locator(".hit .id").all_inner_texts()
    page.locator("summary", has_text="Columns and weights").click()
    page.select_option("select[name=stage]", "dense")
    page.get_by_role("button", name="Search").click()
    page.wait_for_url("**stage=dense**")
    assert "model=" not in page.url
    assert page.locator(".column").first.locator(".hit .id").all_inner_texts() != by_words
    assert page.locator(".column .about").first.inner_text() == "dense"
    page.locator(".column").nth(1).locator(".hit .why").first.click()
    page.locator(".why-panel li").first.wait_for()


def test_why_here_alone_and_compared_with_another(page, served):
    search(page, served)
    hit = page.locator(".column").nth(1).locator(".hit").first
    hit.locator(".why").click()
    panel = hit.locator(".why-panel")
    panel.locator("li").first.wait_for()
    shown = [abs(float(one.replace("−", "-"))) for one in panel.locator(".name span").all_inner_texts()]
    assert shown == sorted(shown, reverse=True)
    widths = [float(one.get_attribute("width")) for one in panel.locator("rect").all()]
    assert widths[0] == pytest.approx(50)
    sentence = r"Score -?[\d.]+: the mean score -?[\d.]+ plus what each feature adds \(SHAP values\)"
    assert re.fullmatch(sentence, panel.locator("p").inner_text())
    assert panel.locator("label").inner_text().split("\n")[:2] == ["Compare with:", "no other document"]
    panel.locator("select").select_option(index=2)
    panel.locator("p", has_text="against").wait_for()
    page.keyboard.press("Escape")  # the select has the focus
    assert panel.is_hidden()
    assert hit.locator(".why").get_attribute("aria-expanded") == "false"
    hit.focus()
    page.keyboard.press("w")
    panel.locator("li").first.wait_for()


def test_grades_survive_a_reload_and_kill_9(page, served):
    victim = Served(served.folder, "--model", str(served.folder / "model.txt"))
    search(page, victim)
    first = page.locator(".column").first.locator(".hit").first
    document = first.get_attribute("data-document")
    first.get_by_role("button", name="3, very relevant").click()
    wait_for(lambda: grades(served) == {document: 3.0})
    page.reload()
    assert page.locator("[data-number='0'] [data-grade='3'][aria-pressed=true]").first.is_visible()
    assert page.locator("#judged").inner_text() == "1"
    victim.end(signal.SIGKILL)
    search(page, served)
    assert page.locator("#judged").inner_text() == "1"
    assert page.locator(".value").count() == 2


def test_judging_with_keys_and_undo(page, served):
    search(page, served)
    page.locator("body").click(position={"x": 5, "y": 5})
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    hits = page.locator(".column").first.locator(".hit")
    second = hits.nth(1).get_attribute("data-document")
    assert page.evaluate("document.activeElement.dataset.document") == second
    page.keyboard.press("4")
    wait_for(lambda: grades(served) == {second: 4.0})
    page.keyboard.press("1")
    wait_for(lambda: grades(served) == {second: 1.0})
    page.reload()
    page.locator("body").click(position={"x": 5, "y": 5})
    page.keyboard.press("u")
    wait_for(lambda: grades(served) == {second: 4.0})
    page.keyboard.press("u")
    wait_for(lambda: grades(served) == {})
    wait_for(lambda: page.evaluate("document.getElementById('undo').disabled"))
    page.keyboard.press("n")
    most = max(float(hit.get_attribute("data-disagreement")) for hit in page.locator(".hit").all())
    assert float(page.evaluate("document.activeElement.dataset.disagreement")) == most
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "q"


def test_train_and_compare(page, served):
    page.goto(f"{served.address}/train")
    page.get_by_role("button", name="Train").click()
    page.locator("strong", has_text="trained-1").wait_for(timeout=120_000)
    page.goto(f"{served.address}/queries")
    heads = page.locator("thead th").all_inner_texts()
    assert [head.split(" ▲")[0] for head in heads] == [
        "Query", "Judged", "First stage", "model", "trained-1", "Difference",
    ]  # fmt: skip
    assert page.get_by_text("p = ").count() == 3
    page.get_by_role("link", name="Show all").click()
    page.wait_for_url("**unseen=0**")
    differences = [float(one.replace("−", "-")) for one in page.locator("tbody td:last-child").all_inner_texts()]
    assert len(differences) == 14
    assert differences == sorted(differences)
    page.locator("thead a", has_text="Query").click()
    page.wait_for_url("**sort=query**")
    texts = page.locator("tbody th").all_inner_texts()
    assert texts == sorted(texts)
    page.locator("tbody a").first.click()
    page.wait_for_selector(".hit")
    assert page.locator("#q").input_value() == texts[0]
    for trained in (served.folder / "grades.txt.models").iterdir():
        trained.unlink()


def test_hostile_ids_are_text(page, served):
    page.goto(f"{served.address}/?q={quote(QUERY + ' ' + HOSTILE)}&k=100")
    hit = page.locator(".column").nth(1).locator(".hit").filter(has_text="onerror").first
    assert hit.get_attribute("data-document") == HOSTILE
    hit.get_by_role("button", name="2, relevant").click()
    wait_for(lambda: grades(served) == {HOSTILE: 2.0})
    hit.locator(".why").click()
    hit.locator(".why-panel li").first.wait_for()
    assert page.locator("img[src=x]").count() == 0
    page.goto(f"{served.address}/queries")
    assert page.locator("tbody a", has_text="onerror").count() == 1


class _Evil(BaseHTTPRequestHandler):
    """A page of another site that tries to grade."""

    target = ""

    def do_GET(self):
        script = f"""
        const body = JSON.stringify({{query: "forged", document: "doc-0001", grade: 4}}), done = [];
        const tries = [["PUT", "cors", "application/json"], ["POST", "no-cors", "text/plain"]];
        Promise.allSettled([...tries.map(([method, mode, kind]) =>
          fetch("{self.target}/judgements", {{method, mode, headers: {{"Content-Type": kind}}, body}})),
          fetch("{self.target}/training", {{method: "POST", mode: "no-cors"}}),
          fetch("{self.target}/judgements", {{mode: "cors"}}).then((answer) => answer.text())])
        .then((all) => {{ document.title = "done " + all.map((one) => one.status).join(" "); }});"""
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(f"<!doctype html><script>{script}</script>".encode())

    def log_message(self, *_):
        pass


def test_pages_of_other_sites_cannot_write_or_read(browser, served):
    before, page = (served.folder / "grades.txt").read_bytes(), browser.new_page()
    training = page.request.get(f"{served.address}/training").json()
    _Evil.target = served.address
    with ThreadingHTTPServer(("127.0.0.1", 0), _Evil) as evil:
        threading.Thread(target=evil.serve_forever, daemon=True).start()
        page.goto(f"http://localhost:{evil.server_port}/")
        wait_for(lambda: page.evaluate("document.title.startsWith('done')"))
        outcome = page.title().split()[1:]
        evil.shutdown()
    assert outcome[0] == outcome[3] == "rejected"
    assert page.request.get(f"{served.address}/training").json() == training
    page.close()
    assert (served.folder / "grades.txt").read_bytes() == before


def test_a_wrong_host_header_is_refused(browser, served):
    page = browser.new_page(extra_http_headers={})
    other = page.request.get(f"{served.address}/", headers={"Host": "evil.example"})
    assert other.status == 421
    assert page.request.get(f"{served.address}/").status == 200
    page.close()


def test_grade_buttons_have_the_same_place_in_every_card(browser, served):
    shutil.copy(served.folder / "model.txt", served.folder / "second.txt")
    two = Served(served.folder, *(f"--model={served.folder / name}" for name in ("model.txt", "second.txt")))
    script = """[...document.querySelectorAll('.hit')].filter((hit) => hit.offsetParent).map((hit) => {
      const card = hit.getBoundingClientRect(), box = hit.querySelector('.grades').getBoundingClientRect();
      const id = hit.querySelector('.id').getBoundingClientRect(), line = box.top < id.bottom;
      return [Math.round(card.right - box.right), Math.round(card.bottom - box.bottom), line].join();
    })"""
    for width in (1280, 1000, 800, 390):
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto(f"{two.address}/?q={quote(QUERY + ' ' + HOSTILE)}&k=20")
        places = page.evaluate(script)
        assert len(places) >= 20 and len(set(places)) == 1, width
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.close()
    two.end()


def test_narrow_screens_show_one_column_at_a_time(browser, served):
    for scheme in ("light", "dark"):
        page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme=scheme)
        for path in ("/", f"/?q={quote(QUERY)}", "/queries", "/train", "/docs"):
            page.goto(served.address + path)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
        page.goto(f"{served.address}/?q={quote(QUERY)}")
        assert page.locator(".column:visible").count() == 1
        page.get_by_role("tab", name="First stage").click()
        assert page.locator(".column:visible h2").inner_text() == "First stage"
        page.close()


def test_everything_is_reachable_by_keyboard(page, served):
    search(page, served)
    page.goto(page.url)
    reached = set()
    for _ in range(90):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("(document.activeElement.textContent || '').trim().slice(0, 12)"))
    text = " ".join(reached)
    for name in ("Skip to cont", "Queries", "Train", "Judge next", "Next query", "Why here?"):
        assert name in text

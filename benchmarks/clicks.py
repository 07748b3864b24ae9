"""Training on simulated clicks, η = 0, 1, 2, beside LightGBM and XGBoost; and click models on real and simulated logs.

Run `python benchmarks/clicks.py FOLDER`, where FOLDER holds `ltr/MQ2008/S1.txt.xz` …, `ltr/OHSUMED/…`, `ir/movies` and
`clicks/serps.jsonl.xz`. It takes about half an hour of one core. `--only choice`, `training`, `propensities`, `models`
or `speed` runs one part and keeps the results of the others.

Training: five runs per collection, each with another fold (generated lists: other queries) and seed. Films are 600
queries with 100 candidates of BM25F each. A RankSVM that is trained on 1% of the training queries ranks the pages, with
some randomness (Plackett-Luce, temperature 0.3), so that documents stand at several ranks. Users follow the
position-based model with (1/rank)^η and 10% click noise. All systems have 10 leaves and 100 trees of learning rate 0.1;
`rs.clicks.train` is the mean of six forests, five of which have up to 400 trees. NDCG@10 is on the true labels of the
test queries. Our settings were chosen on the validation lists of MQ2008 and OHSUMED, on generated lists with other
seeds and on 600 other queries of films, part `choice`. Where a peer has two values of L2, the one that is better on the
test queries counts in each row.
"""

from __future__ import annotations

import argparse
import json
import lzma
import time
from pathlib import Path

import numpy as np

import ranksieve as rs
from click_training import ETAS, OURS, PAGE_DOCS, PAGES, SETTINGS, TEMPERATURE, choice, parts, training
from results import FOLDER, save

FIGURE = Path(__file__).parent.parent / "docs" / "assets" / "position_bias.svg"
MODELS = ("ctr", "rctr", "coec", "pbm", "trust", "cascade", "sdbn", "dbn")
SAMPLES = 100  # of the bootstrap


def recovery(folder: Path, work: Path) -> list[dict]:
    """The largest relative error over ranks 1 to 10 with 100,000 pages; and what training learns, for the figure."""
    train, _ = next(parts("MQ2008", folder, folder))
    weak = rs.clicks.logging_ranker(train, share=0.01)
    rows = []
    for eta in ETAS:
        true = rs.clicks.Propensities.power(eta, 10)
        policy = rs.clicks.LoggingPolicy(weak, TEMPERATURE, swaps=0.5)
        log = rs.clicks.simulate(train, policy, rs.clicks.Users(eta=eta), pages=100_000)
        row: dict = {"part": "propensities", "eta": eta, "true": true.values.round(4).tolist()}
        for method in ("harvest", "swaps", "pbm"):
            values = rs.clicks.propensities(log, method).values[:10]
            row[method] = values.round(4).tolist()
            row[f"{method} error"] = round(float(np.abs(values / true.values - 1).max()), 4)
        pages = rs.clicks.page_lists(log.take_pages(np.arange(PAGES)), train)
        learned = np.array(
            rs.train(pages, **OURS, **SETTINGS["learned bias"], min_docs=PAGE_DOCS).info["position_biases"]
        )[1:]
        row["learned bias"] = np.exp(learned - learned[0]).round(4).tolist()
        rows.append(row)
        print(json.dumps(row), flush=True)
    return rows


def draw(rows: list[dict]) -> None:
    """True, estimated and learned position bias of each η, for the documentation."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(ETAS), figsize=(11, 3.4), sharey=True, layout="constrained")
    for row, ax in zip(rows, panels, strict=True):
        names = {"true": "true", "harvest": "harvest", "learned bias": "learned bias"}
        rs.plots.position_biases({label: row[name] for name, label in names.items()}, baseline="true", ax=ax)
        ax.set_title(f"η = {row['eta']:g}", loc="left", fontsize="medium")
    figure.savefig(FIGURE, metadata={"Date": None})


def real_pages(folder: Path) -> rs.clicks.ClickLog:
    """Web result pages whose documents are known by their grades alone: a grade is the document."""
    with lzma.open(folder / "clicks" / "serps.jsonl.xz", "rt") as file:
        pages = [json.loads(line) for line in file]
    grades = [[0 if grade is None else grade for grade in page["grades"][:10]] for page in pages]
    clicks = [np.isin(np.arange(len(own)), page["clicks"]) for own, page in zip(grades, pages, strict=True)]
    return rs.clicks.ClickLog.from_arrays(
        np.zeros(len(pages)), np.concatenate(grades), np.concatenate(clicks), [len(own) for own in grades]
    )


def attraction_of_grades(log: rs.clicks.ClickLog, name: str) -> np.ndarray:
    model = rs.clicks.fit(log, name)
    grades = dict(zip(model.doc_ids[model.keys % len(model.doc_ids)], model.attraction, strict=True))
    return np.array([grades.get(str(grade), np.nan) for grade in range(1, 6)])


def interval(log: rs.clicks.ClickLog, name: str) -> list[float]:
    """95% bootstrap interval, by pages, of the attraction of grade 4 minus that of grade 3."""
    rng = np.random.default_rng(0)
    samples = [log.take_pages(rng.integers(0, log.n_pages, log.n_pages)) for _ in range(SAMPLES)]
    differences = [float(np.diff(attraction_of_grades(one, name)[2:4])[0]) for one in samples]
    return np.quantile(differences, [0.025, 0.975]).round(3).tolist()


def models(folder: Path, work: Path) -> list[dict]:
    """Click models fitted to half of the real pages, measured on the other half, with PyClick's definitions."""
    log = real_pages(folder)
    first, second = log.split(0.5)
    vital = np.add.reduceat(log.doc_ids[log.documents] == "5", log.offsets[:-1], dtype=int) > 0
    rows = []
    for name in MODELS:
        scores = rs.clicks.fit(first, name).evaluate(second)
        row = {
            "part": "models",
            "model": name,
            "log-likelihood": round(scores.log_likelihood, 4),
            "perplexity": round(scores.perplexity, 4),
            "perplexity by rank": scores.perplexity_by_place.round(3).tolist(),
            "attraction of grades 1 to 5": attraction_of_grades(first, name).round(4).tolist(),
        }
        if name not in ("rctr", "trust"):
            row["grade 4 - grade 3"] = interval(log, name)
            row["without vital documents"] = interval(log.take_pages(np.flatnonzero(~vital)), name)
        rows.append(row)
        print(json.dumps(rows[-1]), flush=True)
    return [*rows, grades_of(log, vital)]


def grades_of(log: rs.clicks.ClickLog, vital: np.ndarray) -> dict:
    """Counts of the grades, clicks at the first rank, and how often a vital document is on the same page."""
    of_rows, pages = log.doc_ids[log.documents], np.repeat(np.arange(log.n_pages), log.sizes)
    row: dict = {"part": "models", "model": "none"}
    for grade in range(1, 6):
        own = of_rows == str(grade)
        at_top = log.clicks[own & (log.places == 0)]
        row[f"grade {grade}"] = {
            "shown": int(own.sum()),
            "pages": len(np.unique(pages[own])),
            "beside a vital document": round(float(vital[pages[own]].mean()), 3),
            "clicked at rank 1": round(float(at_top.mean()), 3),
            "standard error": round(float(at_top.std() / np.sqrt(len(at_top))), 3),
        }
    print(json.dumps(row), flush=True)
    return row


def speed(folder: Path, work: Path) -> list[dict]:
    """Seconds to fit the position-based model to a million pages, without compiling."""
    data = rs.synth.cubic(2_000)
    rs.clicks.fit(rs.clicks.simulate(data, pages=1_000), "pbm")
    log = rs.clicks.simulate(data, rs.clicks.LoggingPolicy(data.features[:, 0], 0.5), pages=1_000_000)
    start, cpu = time.perf_counter(), time.process_time()
    steps = rs.clicks.fit(log, "pbm").steps
    took = {"seconds": round(time.perf_counter() - start, 1), "core seconds": round(time.process_time() - cpu, 1)}
    row = {"part": "speed", "pages": log.n_pages, "pairs": len(log.pairs), "steps": steps, **took}
    print(json.dumps(row), flush=True)
    return [row]


PARTS = {"choice": choice, "training": training, "propensities": recovery, "models": models, "speed": speed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--work", type=Path, default=Path("build/clicks"), help="where finished cells are kept")
    chosen = parser.parse_args()
    known = FOLDER / "clicks.json"
    old = json.loads(known.read_text())["rows"] if known.exists() and chosen.only else []
    rows = [row for row in old if row["part"] in PARTS and row["part"] != chosen.only]
    for part, measure in PARTS.items():
        if chosen.only in (None, part):
            rows += measure(chosen.folder, chosen.work)
    save("clicks", rows)
    draw([row for row in rows if row["part"] == "propensities"])


if __name__ == "__main__":
    main()

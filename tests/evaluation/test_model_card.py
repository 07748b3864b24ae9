"""Model cards: what they say is what the model and the data say."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from datetime import datetime, timezone

import numpy as np
import pytest
from typer.testing import CliRunner

import ranksieve as rs
from ranksieve.cli.app import app
from ranksieve.errors import ModelError
from ranksieve.forest.summary import summarize

QUICK = {"trees": 6, "leaves": 4, "min_docs": 2, "threads": 1}
DATE = datetime(2026, 1, 2, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.random((60, 3)).astype(np.float32)
    y = (3 * X[:, 0]).astype(int)
    return rs.Dataset.from_arrays(X, y, qid=np.repeat(np.arange(6), 10)).with_features(["bm25", "a|b", "<script>"])


@pytest.fixture(scope="module")
def model(data):
    return rs.train(data.take_queries(range(4)), valid=data.take_queries([4, 5]), **QUICK)


def section(card: str, title: str) -> str:
    return re.split(r"^## ", card.partition(f"## {title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def test_the_card_of_a_model(model, data):
    test = data.take_queries([4, 5])
    card = rs.io.model_card(model, {"held_out": test}, metrics=["ndcg@5", "mrr"], title="My *model*", date=DATE)
    assert card.startswith("# My \\*model\\*\n") and "| card made | 2026-01-02 |" in card
    assert "Trained on 4 queries, 40 documents. Validated on valid: 2 queries, 20 documents." in section(card, "Data")
    assert "| documents | 20 |" in section(card, "Data")
    found = rs.evaluate(model, test, ["ndcg@5", "mrr"])
    metrics = section(card, "Metrics")
    assert f"| valid | ndcg@10 | {model.info['best_score']:.4f} |" in metrics
    assert f"| ndcg@5 | {found.mean(metric='ndcg@5'):.4f} |" in metrics and "Measured on held\\_out:" in metrics
    assert f"| mrr | {found.mean(metric='mrr'):.4f} |" in metrics
    assert "| `leaves` | `4` | `16` |" in section(card, "Parameters")
    assert "| `learning_rate` | `0.05` |  |" in section(card, "Parameters")
    shares = rs.importance(model)
    assert f"| `bm25` | {shares[0]:.1%} |" in section(card, "Importance")
    assert f"| trained with ranksieve | {rs.__version__} |" in section(card, "Versions")


def test_names_cannot_break_a_table(data):
    card = rs.io.model_card(rs.train(data, algo="ranksvm"), date=DATE)
    assert "| `a\\|b` |" in card and "| `<script>` |" in card
    widths = [len(re.findall(r"(?<!\\)\|", line)) for line in section(card, "Importance").splitlines() if line]
    assert set(widths) == {3}


def test_the_card_of_a_file_has_its_time_and_the_model_has_none(model, data, tmp_path):
    path = tmp_path / "model.txt"
    model.save(path)
    before = path.read_bytes()
    os.utime(path, (0, 0))
    assert "| file | model.txt, written 1970-01-01 00:00 UTC |" in rs.io.model_card(path)
    rs.load(path).save(path)
    assert path.read_bytes() == before
    rs.io.write_parquet(data, tmp_path / "data.parquet")
    arguments = ["describe", str(path), "--card", "--data", str(tmp_path / "data.parquet"), "--metric", "map"]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    assert f"| map | {rs.evaluate(model, data, 'map').mean():.4f} |" in shown.stdout
    assert shown.stdout.startswith("# model.txt\n") and "Measured on data.parquet:" in shown.stdout
    written = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "card.md")])
    assert written.stdout == f"model card  {tmp_path / 'card.md'}\n"
    assert (tmp_path / "card.md").read_text() == shown.stdout
    refused = CliRunner().invoke(app, ["describe", str(path), "--out", str(tmp_path / "card.md")])
    assert "--out is for model cards; give --card" in refused.stderr


def test_the_card_of_a_model_that_the_search_page_has_trained(model):
    held_out = {"metric": "ndcg@10", "first_stage": 0.25, "model": 0.5, "p_value": 0.125, "n": 12}
    trained = replace(model, info={**model.info, "held_out": held_out})
    metrics = section(rs.io.model_card(trained), "Metrics")
    assert "Tested in training, on 12 queries held out (p = 0.1250):" in metrics
    assert "|  | ndcg@10 |\n|---|---|\n| model | 0.5000 |\n| first stage | 0.2500 |" in metrics
    strange = replace(model, info={**model.info, "held_out": {**held_out, "n": "many"}})
    assert section(rs.io.model_card(strange), "Metrics") == section(rs.io.model_card(model), "Metrics")


def test_the_card_of_a_cross_validated_model(model):
    facts = {"folds": 5, "queries": 30, "rounds": 66, "metric": "ndcg@10", "value": 0.39779}
    trained = replace(model, info={**model.info, "cross_validation": facts})
    shown = "ndcg@10 0.3978 after 66 trees, 5 folds of 30 queries"
    assert f"choose the number of trees: {shown}." in section(rs.io.model_card(trained), "Metrics")
    assert ("validation", f"cross-validated {shown}") in summarize(trained).facts
    strange = replace(model, info={**model.info, "cross_validation": {**facts, "folds": "many"}})
    assert section(rs.io.model_card(strange), "Metrics") == section(rs.io.model_card(model), "Metrics")


@pytest.mark.filterwarnings("ignore:.*no feature beyond 2 occurs")
def test_a_text_file_without_the_last_features_is_measured(model, data, tmp_path):
    lines = []
    for row, (label, values) in enumerate(zip(data.labels, data.features, strict=True)):
        lines.append(f"{label:g} qid:{row // 10} {1 + row % 2}:{values[row % 2]:.9g}")
    (tmp_path / "short.txt").write_text("\n".join(lines) + "\n")
    found = rs.evaluate(model, str(tmp_path / "short.txt"), "map").mean()
    assert f"| map | {found:.4f} |" in rs.io.model_card(model, tmp_path / "short.txt", metrics="map")


@pytest.mark.parametrize("algo", ["ranksvm", "lambdarank", "feature", "mcrank"])
def test_other_models_have_cards(algo, data):
    options = {"feature": {"feature": "bm25"}, "mcrank": {"trees": 2, "leaves": 3}, "lambdarank": {"epochs": 2}}
    model = rs.train(data, algo=algo, **options.get(algo, {}))
    card = rs.io.model_card(model)
    assert "Trained on 6 queries, 60 documents." in card and "None: there was no validation data" in card


def test_a_blend_has_no_importance(model, data):
    linear = rs.train(data, algo="feature", feature="bm25")
    both = rs.combine([model, linear])
    assert "Features have no importance in a model of this kind." in rs.io.model_card(both)
    assert "<b>Blend</b>" in both._repr_html_()


def test_mistakes_are_refused(model, tmp_path, data):
    with pytest.raises(ModelError, match="a dict has no card; give a model of"):
        rs.io.model_card({})
    rs.io.write_parquet(data, tmp_path / "data.parquet")
    model.save(tmp_path / "model.txt")
    runner = CliRunner()
    for arguments, message in (
        (["data.parquet", "--card"], "--card is for model files"),
        (["model.txt", "--metric", "map"], "--metric is for model cards; give --card"),
    ):
        shown = runner.invoke(app, ["describe", str(tmp_path / arguments[0]), *arguments[1:]])
        assert message in shown.output

"""The picture of the README: time per tree against quality, from the rows in results/.

    python benchmarks/picture.py

Times are of `training.py` (0.81 M documents × 220 features), NDCG@10 of `two_stage.py` (600 training queries); both
have lists of up to 5,000 generated candidates.
"""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from results import FOLDER

OUT = Path(__file__).parent.parent / "docs" / "assets" / "time_and_quality.svg"
POINTS = {
    # label: (row of training.py, row of two_stage.py, place of the label beside the point)
    "LightGBM": ("lightgbm lambdarank", "lightgbm", (-9, -22)),
    "λ-MART": ("lambdamart", "lambdamart, newton", (9, 4)),
    "SelGB, 5% of the negatives": ("selgb 5%", "selgb 5%, newton", (9, -24)),
    "SelGB, 1%": ("selgb 1%", "selgb 1%, newton", (9, -20)),
}


def rows(name: str, key: str) -> dict[str, dict]:
    found = json.loads((FOLDER / f"{name}.json").read_text())
    return {row[key]: row for row in (found if isinstance(found, list) else found["rows"]) if key in row}


def main() -> None:
    times, qualities = rows("training", "what"), rows("two_stage", "ranker")
    figure, axes = plt.subplots(figsize=(7.2, 3.4))
    for label, (timed, measured, place) in POINTS.items():
        x, y = times[timed]["ms per tree"], qualities[measured]["ndcg@10"]
        color = "#b3541e" if label == "LightGBM" else "#1f5fa8"
        axes.plot(x, y, "o", color=color, markersize=8)
        side = "left" if place[0] > 0 else "right"
        text = f"{label}\n{x:.0f} ms, {y:.3f}"
        axes.annotate(text, (x, y), place, textcoords="offset points", ha=side, fontsize=8.5, color=color)
    axes.set_xscale("log")
    axes.set_xlim(4, 350)
    axes.set_ylim(0.68, 0.76)
    axes.set_xticks([10, 30, 100, 300], ["10", "30", "100", "300"])
    axes.set_xlabel("milliseconds per tree, two cores (log scale)")
    axes.set_ylabel("NDCG@10 on test lists")
    axes.set_title("Time and quality on generated lists of up to 5,000 candidates", fontsize=10)
    axes.grid(alpha=0.25)
    figure.tight_layout()
    OUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUT, metadata={"Date": None})


if __name__ == "__main__":
    main()

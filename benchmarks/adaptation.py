"""Adapting a background model to a small domain (Wu et al. 2010, tables 2-4), with paired t-tests.

The background domain is `cubic` data. In the adaptation domain the features keep their places, but a share of them is
drawn anew, so that they mean nothing there. Rows: the background model, a model of the small domain alone, the two
interpolated (Powell) and combined (exactly) on its validation lists, and LambdaSMART with all and with 70% of the rows.
"""

from __future__ import annotations

import argparse

import numpy as np

import ranksieve as rs
from results import save

METRICS = ("ndcg@10", "ndcg@3", "ndcg@1")


def shifted(n_queries: int, start: int, every: int) -> rs.Dataset:
    """Lists of the small domain: every so many-th feature is noise."""
    data = rs.cubic(n_queries, start=start)
    features = data.features.copy()
    features[:, ::every] = np.random.default_rng(start).uniform(-1, 1, features[:, ::every].shape)
    return rs.Dataset.from_arrays(features, data.labels, group=data.lists.sizes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--background", type=int, default=2000, help="queries of the background domain")
    parser.add_argument("--train", type=int, default=200, help="queries of the small domain; half as many validate")
    parser.add_argument("--test", type=int, default=1000)
    parser.add_argument("--every", type=int, default=3, help="every so many-th feature is noise in the small domain")
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--threads", type=int, default=0)
    args = parser.parse_args()
    options = {"algo": "lambdamart", "trees": args.trees, "leaves": 20, "learning_rate": 0.1, "threads": args.threads}
    sizes = (args.train, args.train // 2, args.test)
    starts = np.cumsum([args.background, *sizes[:-1]]).tolist()
    train, valid, test = (shifted(n, start, args.every) for n, start in zip(sizes, starts, strict=True))
    background = rs.train(rs.cubic(args.background), **options)
    in_domain = rs.train(train, valid=valid, **options)
    both = [background, in_domain]
    models = {
        "background": background,
        "in-domain": in_domain,
        "interpolated": rs.interpolate(both, valid).model(both),
        "combined": rs.combine(*both, valid).model(*both),
        "LambdaSMART": rs.train(train, valid=valid, init=background, **options),
        "LambdaSMART, 70% of rows": rs.train(train, valid=valid, init=background, row_fraction=0.7, **options),
    }
    result = rs.evaluate(models, test, METRICS)
    rows = []
    for name in models:
        row = {"run": name, "trees": models[name].n_trees, **{m: result.mean(name, m) for m in METRICS}}
        for other in ("background", "in-domain"):
            if name != other:
                row[f"p against {other}"] = result.compare(name, other, test="t").p_value
        rows.append({**row, **vars(args)})
        tests = ", ".join(f"{key} {row[key]:.4f}" for key in row if key.startswith("p against"))
        print(f"{name:26}", *(f"{metric} {row[metric]:.4f}" for metric in METRICS), tests)
    save("adaptation", rows)


if __name__ == "__main__":
    main()

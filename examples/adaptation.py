"""Adapt a model of a large domain to a small one: five ways to use both, compared on lists of the small domain."""

import numpy as np

import ranksieve as rs


def small_domain(n_queries, start):
    """The same documents, but a third of the features means something else here."""
    data = rs.synth.cubic(n_queries, start=start)
    features = data.features.copy()
    features[:, ::3] = np.random.default_rng(start).uniform(-1, 1, features[:, ::3].shape)
    return rs.Dataset.from_arrays(features, data.labels, group=data.lists.sizes)


options = {"algo": "lambdamart", "trees": 100, "leaves": 10, "learning_rate": 0.1}
background = rs.train(rs.synth.cubic(300), **options)
train, valid, test = (small_domain(n, start) for n, start in ((60, 300), (60, 400), (100, 500)))

in_domain = rs.train(train, valid=valid, **options)
adapted = rs.train(train, valid=valid, init=background, row_fraction=0.7, **options)  # LambdaSMART
interpolated = rs.interpolate([background, in_domain], valid).model([background, in_domain])
combined = rs.combine(background, in_domain, valid).model(background, in_domain)  # the same, exactly

models = {"background": background, "in-domain": in_domain, "interpolated": interpolated, "combined": combined}
result = rs.evaluate({**models, "LambdaSMART": adapted}, test, ["ndcg@10", "ndcg@3", "ndcg@1"])
for row in result.table():
    versus = (
        "" if row["name"] == "background" else f"p = {result.compare(row['name'], 'background', test='t').p_value:.3f}"
    )
    print(f"{row['name']:12}", *(f"{metric} {row[metric]:.4f}" for metric in ("ndcg@10", "ndcg@3", "ndcg@1")), versus)

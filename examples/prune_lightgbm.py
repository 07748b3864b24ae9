"""Prune a LightGBM model: half the trees are removed, the others get new weights, and LightGBM loads the result."""

import tempfile
from pathlib import Path

import lightgbm

import ranksieve as rs

train, valid, test = (rs.synth.cubic(40, start=start) for start in (0, 40, 80))
dataset = lightgbm.Dataset(train.features, train.labels, group=train.lists.sizes)
params = {"objective": "lambdarank", "num_leaves": 8, "learning_rate": 0.1, "verbose": -1}
theirs = rs.io.from_model(lightgbm.train(params, dataset, 40))  # or rs.load("model.txt")

pruned = rs.prune(theirs, train, rate=0.5, strategy="quality-loss", valid=valid)
print(rs.evaluate({f"{theirs.n_trees} trees": theirs, f"{pruned.n_trees} trees": pruned}, test).table())

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "pruned.txt")
    pruned.save(path)
    scores = lightgbm.Booster(model_file=path).predict(test.features)
print(f"LightGBM's scores differ by at most {abs(scores - pruned.predict(test)).max()}")

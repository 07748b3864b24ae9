"""A model for the Learning to Rank plugin of Elasticsearch or OpenSearch: the body of its _createmodel request."""

import json
import tempfile
from pathlib import Path

import ranksieve as rs

data = rs.synth.cubic(60)  # features are named as in the plugin's feature set: f1, f2, …
model = rs.train(data, algo="lambdamart", trees=20, leaves=8)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "model.json")
    model.save(path, format="elasticsearch")  # refuses what the plugin cannot score
    trees = path.read_text()

body = {"model": {"name": "ranksieve", "model": {"type": "model/xgboost+json", "definition": trees}}}
print(f"POST _ltr/_featureset/my_features/_createmodel  ({len(json.dumps(body)):,} bytes)")
print(json.dumps(body)[:160], "…")

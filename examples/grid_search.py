"""GridSearchCV over whole queries: a query is never split between training and validation."""

from sklearn import config_context
from sklearn.model_selection import GridSearchCV, GroupKFold

import ranksieve as rs

data = rs.synth.cubic(60)
qid = data.query_ids.repeat(data.lists.sizes)

with config_context(enable_metadata_routing=True):  # scikit-learn hands qid on to fit and score
    ranker = rs.Ranker(algo="lambdamart", trees=15).set_fit_request(qid=True).set_score_request(qid=True)
    grid = {"leaves": [4, 16], "learning_rate": [0.1, 0.3]}
    search = GridSearchCV(ranker, grid, cv=GroupKFold(3))
    search.fit(data.features, data.labels, qid=qid, groups=qid)

print(f"best: {search.best_params_}, mean NDCG@10 {search.best_score_:.4f}")

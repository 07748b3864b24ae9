"""A second stage in a pipeline of pandas frames, as PyTerrier has it: first stage >> features >> learned ranker.

Frames have the columns qid, docno, score, label, features. The ranker is called as PyTerrier's
`pt.ltr.apply_learned_model(ranker, form="ltr")` calls one, and can stand in its pipelines.
"""

import numpy as np
import pandas as pd

import ranksieve as rs


class Stage:
    def __init__(self, run):
        self.run = run

    def __rshift__(self, after):
        return Stage(lambda frame: after.run(self.run(frame)))


data = rs.synth.two_stage(30)
index = pd.DataFrame({"qid": np.repeat(data.query_ids, data.lists.sizes), "label": data.labels})
index["docno"] = [f"d{number}" for number in range(data.n_docs)]
index["score"] = data.column(data.first_stage)


def ordered(frame):
    return frame.sort_values(["qid", "score"], ascending=[True, False])


first_stage = Stage(lambda queries: ordered(index[index.qid.isin(queries)]).groupby("qid").head(500))
features = Stage(lambda frame: frame.assign(features=list(data.features[frame.index])))
candidates = first_stage >> features
train = candidates.run(data.query_ids[:20])
ranker = rs.Ranker(trees=30, negatives=0.1).fit(np.stack(train.features), train.label, qid=train.qid)
second_stage = Stage(lambda frame: ordered(frame.assign(score=ranker.predict(np.stack(frame.features)))))
found = (candidates >> second_stage).run(data.query_ids[20:])
print(found.groupby("qid").head(3).drop(columns="features").to_string(index=False))

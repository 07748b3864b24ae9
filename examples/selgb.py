"""SelGB in ten lines: train a second stage on the few negatives that matter, and compare it with λ-MART."""

import ranksieve as rs

train, valid, test = (rs.synth.two_stage(20, start=start) for start in (0, 20, 40))  # or rs.read("train.txt")
options = {"valid": valid, "trees": 30, "leaves": 16, "learning_rate": 0.1}
models = {
    "λ-MART": rs.train(train, algo="lambdamart", **options),
    "SelGB": rs.train(train, algo="selgb", negatives=0.01, **options),
}
result = rs.evaluate(models, test, metrics=("ndcg@10", "map"))
print(result, result.compare("SelGB", "λ-MART"), sep="\n")

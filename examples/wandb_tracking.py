"""Weights & Biases: metrics after each tree, parameters, and the model as an artifact."""

import wandb

import ranksieve as rs

train, valid, test = (rs.synth.two_stage(20, start=start) for start in (0, 20, 40))  # or rs.read("train.txt")
with wandb.init(project="second-stage") as run:

    def log_metrics(record: rs.callbacks.Record) -> None:
        found = record.evaluations.items()
        run.log({f"{name}/{metric}": value for name, values in found for metric, value in values.items()}, record.step)

    model = rs.train(train, valid=valid, trees=30, callbacks=[log_metrics])
    model.save("model.txt")
    run.config.update(dict(model.info["params"]))
    run.log_artifact("model.txt", type="model")
print(rs.evaluate(model, test))

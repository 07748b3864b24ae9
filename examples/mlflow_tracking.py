"""MLflow: metrics after each tree, parameters, a model card, and the model as a pyfunc model (mlflow 3 or later)."""

import mlflow
import pandas as pd

import ranksieve as rs


def log_metrics(record: rs.callbacks.Record) -> None:
    for name, values in record.evaluations.items():
        for metric, value in values.items():
            mlflow.log_metric(f"{name}/{metric}".replace("@", "_at_"), value, step=record.step)


train, valid, test = (rs.synth.two_stage(20, start=start) for start in (0, 20, 40))  # or rs.read("train.txt")
with mlflow.start_run():
    model = rs.train(train, valid=valid, trees=30, callbacks=[log_metrics])
    model.save("model.txt")
    mlflow.log_params(model.info["params"])
    mlflow.log_text(rs.io.model_card("model.txt", test), "card.md")
    logged = mlflow.pyfunc.log_model(
        name="ranker", loader_module="ranksieve.io", data_path="model.txt", pip_requirements=["ranksieve"]
    )

served = mlflow.pyfunc.load_model(logged.model_uri)  # anything that serves pyfunc models can load it
table = pd.DataFrame(test.rows(0, test.n_docs), columns=test.feature_names)
print(rs.evaluate(served.predict(table), test))

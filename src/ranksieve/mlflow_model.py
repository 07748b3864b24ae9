"""Loads models that MLflow keeps: `mlflow.pyfunc.save_model(path, loader_module=…, data_path="model.txt")`."""

from __future__ import annotations

from typing import Any

from ranksieve.models.load import load


def _load_pyfunc(data_path: str) -> Any:
    """The model of a file; MLflow calls this, then `predict` with a DataFrame."""
    return load(data_path)

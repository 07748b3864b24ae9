"""Training and scoring on a Dask cluster. The model is the same, bit for bit, as on one machine."""

from ranksieve.cluster.prediction import predict
from ranksieve.cluster.training import Cluster, train

__all__ = ["Cluster", "predict", "train"]

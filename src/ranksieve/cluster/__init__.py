"""Training and scoring on a Dask cluster: the model of one machine, bit for bit."""

from ranksieve.cluster.prediction import predict
from ranksieve.cluster.training import train

__all__ = ["predict", "train"]

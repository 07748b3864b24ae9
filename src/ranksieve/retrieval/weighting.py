"""How much a term says, by the number of documents that have it."""

from __future__ import annotations

import numpy as np


def idf(n_docs: int, document_frequency: np.ndarray) -> np.ndarray:
    """Robertson's inverse document frequency, kept positive: `log(1 + (N - df + 0.5) / (df + 0.5))`."""
    return np.log1p((n_docs - document_frequency + 0.5) / (document_frequency + 0.5))

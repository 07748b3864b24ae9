"""Significance tests on per-query values."""

from ranksieve.evaluation.significance import paired_t_test, randomization_test

__all__ = ["paired_t_test", "randomization_test"]

"""Significance tests on per-query values."""

from ranksieve.evaluation.significance import TestResult, paired_t_test, randomization_test

__all__ = ["TestResult", "paired_t_test", "randomization_test"]

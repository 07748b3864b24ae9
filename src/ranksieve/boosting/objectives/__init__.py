"""Objectives: gradients (which way scores should move) and second derivatives.

A rule here is a frozen dataclass whose fields are its parameters; it is called with an `ObjectiveView`. A user's plain
function is called with (labels, scores, offsets). Every module of this package is loaded; to add a rule, add a file.
Kernels are in `ranksieve.kernels` and are imported where the rule is called.
"""

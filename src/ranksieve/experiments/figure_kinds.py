"""The figures and tables that a specification can ask for."""

from __future__ import annotations

# Name and caption; tables have none, as their columns explain them.
FIGURES = {
    "curves": "All trees that were grown, also those after the number that validation lists chose. Means over seeds "
    "and folds.",
    "steps": "The step size that is best for the metric on the lists on which steps are chosen.",
    "table": "",
    "tests": "",
    "sizes": "Above: the mean difference over the queries with lists of this size, with its standard error; above 0 "
    "{first} is better. Pale bars are of fewer than 5 queries. Below: the number of test queries.",
    "heat": "A row is a training query, short lists first; a column is a range of first-stage ranks. Bright: negatives "
    "there were selected for many trees.",
    "cumulative": "The share of all selections of a negative for a tree on first-stage ranks up to each rank.",
    "shared-leaves": "All pairs of negatives of one training query, under each model. Further right, a model "
    "distinguishes negatives less.",
    "shares": "Points are means over samples; the dashed line is the full training set.",
    "efficiency": "The upper left is best: higher quality in less time. Points are choices of the grid.",
    "by-size": "",
    "speed": "",
    "removed": "The forest from its first tree to its last, in groups of consecutive trees: the share removed of each.",
    "weights": "Mean weight of the remaining trees; 1 is the mean before pruning. In the bars: the share removed.",
    "phases": "Rounds are numbered: a circle after a round has grown its trees, a square after it has pruned and "
    "re-weighted them.",
    "costs": "Percentages are of the time of all rounds.",
}

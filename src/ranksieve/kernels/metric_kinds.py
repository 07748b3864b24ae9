"""The kinds of metrics: how the weight of a rank depends on the documents above it; see `metric_table.Definition`."""

WEIGHTED, PRECISION, RECIPROCAL, STOPPING = 0, 1, 2, 3

"""The parts of the boosting loop that work on a GPU: scores, validation sets, training lists and the grower."""

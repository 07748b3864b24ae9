"""The parts of the boosting loop whose data is on a GPU: scores, validation sets, training lists and the grower."""

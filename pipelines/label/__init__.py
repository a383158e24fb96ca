"""Zero-shot labelling: labels for texts from their names, without training data."""

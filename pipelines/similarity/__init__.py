"""Pairs of texts: how similar they are, and why."""

"""Measures of quality over a collection."""

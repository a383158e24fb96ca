"""Duplicates: documents that say the same."""

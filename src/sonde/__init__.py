"""Sonde: search, map, cluster and label a pile of text by meaning."""

"""Readers: files, tables and Python objects become documents."""

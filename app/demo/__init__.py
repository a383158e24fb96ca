"""The demonstration: a real corpus that needs no download, and searches that show what meaning finds."""

"""Bi-encoders: texts become vectors."""

"""Filters: the text of a SQL WHERE clause, checked against the fields there are and compiled to bound parameters."""

from .apply import check_filter, documents_where, empty_hint, explain_filter

__all__ = ["check_filter", "documents_where", "empty_hint", "explain_filter"]

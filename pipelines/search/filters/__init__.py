"""Filters: the text of a SQL WHERE clause, checked against the fields there are and compiled to bound parameters."""

from .compile import CompiledFilter, check_filter, compile_filter, documents_where, run_operands

__all__ = ["CompiledFilter", "check_filter", "compile_filter", "documents_where", "run_operands"]

"""The batch build: documents in, commits out, resumable at any moment."""

from .index import index_documents
from .report import BuildReport, BuildSettings, Estimate
from .source import estimate_source, index_source

__all__ = ["BuildReport", "BuildSettings", "Estimate", "estimate_source", "index_documents", "index_source"]

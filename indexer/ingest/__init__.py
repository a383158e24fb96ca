"""The batch build: documents in, commits out, resumable at any moment.

Each name is imported on first use, so that reading a collection does not load what builds one.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .estimate import Estimate
    from .index import index_documents
    from .report import BuildReport, BuildSettings
    from .source import estimate_source, index_source

_HOMES = {
    "BuildReport": "report",
    "BuildSettings": "report",
    "Estimate": "estimate",
    "estimate_source": "source",
    "index_documents": "index",
    "index_source": "source",
}
__all__ = ["BuildReport", "BuildSettings", "Estimate", "estimate_source", "index_documents", "index_source"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)

"""The lexical index: BM25 over passages with Tantivy, derived from the catalog and rebuildable."""

from .analysis import MAX_TERMS
from .index import LexicalIndex, QueryWords
from .writer import LexicalEntry, LexicalState, LexicalWriter

__all__ = ["MAX_TERMS", "LexicalEntry", "LexicalIndex", "LexicalState", "LexicalWriter", "QueryWords"]

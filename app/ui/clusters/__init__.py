"""The page Clusters and topics: runs that group the documents, looked into, changed and compared."""

from .page import show

__all__ = ["show"]

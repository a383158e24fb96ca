"""Approximate nearest neighbours over the vectors of a collection, through FAISS."""

from .build import build
from .exact import ArraySource, VectorSource, exact_search, to_float32
from .index import AnnIndex, load_index
from .settings import AnnInfo, AnnSettings, Kind
from .storage import checked_info

__all__ = [
    "AnnIndex",
    "AnnInfo",
    "AnnSettings",
    "ArraySource",
    "Kind",
    "VectorSource",
    "build",
    "checked_info",
    "exact_search",
    "load_index",
    "to_float32",
]

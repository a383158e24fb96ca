"""Approximate nearest neighbours over the vectors of a collection, through FAISS."""

from .build import build
from .exact import exact_search
from .index import AnnIndex, load
from .settings import AnnInfo, AnnSettings, Kind
from .source import ArraySource, VectorSource, widen

__all__ = [
    "AnnIndex",
    "AnnInfo",
    "AnnSettings",
    "ArraySource",
    "Kind",
    "VectorSource",
    "build",
    "exact_search",
    "load",
    "widen",
]

"""The ways to search, and to fuse the two halves of a hybrid search."""

from typing import Literal

Mode = Literal["dense", "lexical", "hybrid"]
MODES: tuple[Mode, ...] = ("hybrid", "dense", "lexical")
Fusion = Literal["convex", "rrf"]
FUSIONS: tuple[Fusion, ...] = ("convex", "rrf")

"""Passages that look right and are not: what dense and lexical search find for a query beside its answers."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ...indexer.build.index import index_documents
from ...indexer.collection import Collection
from ...indexer.document import Document
from ...indexer.encoder import Encoder
from ...indexer.progress import Notify, silent
from ..search import SearchSettings, search_many
from .queries import Query

DEPTH = 20
"""Candidates of each half that are looked at."""
SAME = 0.92
"""A candidate this similar to a right passage is taken for right as well, and left out."""
BETTER = 1.05
"""So is one whose similarity to the query exceeds the best right passage's by this factor: most such are unjudged
answers (RocketQA, Qu et al., NAACL 2021)."""


def mine(queries: Sequence[Query], encoder: Encoder, count: int, notify: Notify = silent) -> list[Query]:
    """Return the queries with wrong passages added until each has `count`, or no more are found.

    Args:
        queries: Their passages together are the collection that is searched.
        encoder: A bi-encoder for the dense half and for recognising false negatives.
        count: Wrong passages wanted of each query; its own come first.
        notify: Receives progress.
    """
    texts = list(dict.fromkeys(text for query in queries for text in (*query.right, *query.wrong)))
    places = {text: place for place, text in enumerate(texts)}
    with tempfile.TemporaryDirectory(prefix="sonde-mining-") as folder:
        path = Path(folder) / "passages.sonde"
        documents = (Document(text, key=str(place)) for place, text in enumerate(texts))
        # What the index says of itself is of no interest here: it is gone when the passages are found.
        index_documents(
            documents, path, encoder=encoder, notify=lambda event: None if isinstance(event, str) else notify(event)
        )
        collection = Collection.open(path, encoder=encoder)
        asked = [query.text for query in queries]
        found = [
            [
                [int(hit.id) for hit in hits]
                for hits in search_many(collection, asked, SearchSettings(k=DEPTH, mode=mode))
            ]
            for mode in ("dense", "lexical")
        ]
        collection.close()
    vectors, wanted = encoder.encode_texts(texts), encoder.encode_texts(asked, query=True)
    mined = []
    for number, query in enumerate(queries):
        right = np.array([places[text] for text in query.right])
        taken = {*right.tolist(), *(places[text] for text in query.wrong)}
        both = _interleaved(found[0][number], found[1][number])
        kept = [place for place in both if place not in taken and _wrong(place, right, vectors, wanted[number])]
        added = tuple(texts[place] for place in kept[: max(0, count - len(query.wrong))])
        mined.append(replace(query, wrong=(query.wrong + added)[:count]))
    return mined


def _interleaved(first: list[int], second: list[int]) -> list[int]:
    longest = max(len(first), len(second))
    pairs = (each for place in range(longest) for each in (first[place : place + 1], second[place : place + 1]))
    return list(dict.fromkeys(number for pair in pairs for number in pair))


def _wrong(place: int, right: np.ndarray, vectors: np.ndarray, query: np.ndarray) -> bool:
    if float((vectors[right] @ vectors[place]).max()) >= SAME:
        return False
    return float(vectors[place] @ query) <= BETTER * float((vectors[right] @ query).max())

"""Results, found once for each question and state of the collection."""

from dataclasses import replace
from typing import Any

import streamlit as st

from .....pipelines.results import Results
from ....api import Collection
from ...stamp import stamp
from .asking import WIDE, Asked


def wide(collection: Collection, asked: Asked) -> Results:
    """Return the best hits of the first stage without their texts, for facets, the map and the number of pages.

    Raises:
        SondeError: The search cannot be made.
    """
    settings = replace(asked.settings, k=max(WIDE, asked.settings.k), rerank=False)
    return _found(collection, replace(asked, settings=settings), texts=False)


def page_of(collection: Collection, asked: Asked, number: int) -> Results:
    """Return one page of hits, from 1, with reasons where a query has them.

    Raises:
        SondeError: The search cannot be made.
    """
    offset = (number - 1) * asked.settings.k
    settings = replace(asked.settings, offset=offset, explain=not asked.like)
    return _found(collection, replace(asked, settings=settings), texts=True)


def all_of(collection: Collection, asked: Asked, most: int) -> Results:
    """Return hits without reasons, for a file.

    Raises:
        SondeError: The search cannot be made.
    """
    return _search(collection, replace(asked, settings=replace(asked.settings, k=most)))


def _found(collection: Collection, asked: Asked, *, texts: bool) -> Results:
    return _kept((str(collection.path), stamp(collection), asked.key, texts), collection, asked)


@st.cache_data(show_spinner=False, max_entries=32)
def _kept(key: tuple[Any, ...], _collection: Collection, _asked: Asked) -> Results:
    *_, texts = key
    found = _search(_collection, _asked)
    # A hundred long documents for each question would fill the memory, and nobody reads them there.
    return found if texts else replace(found, hits=tuple(replace(hit, text="") for hit in found))


def _search(collection: Collection, asked: Asked) -> Results:
    given = {name: getattr(asked.settings, name) for name in asked.settings.__slots__}
    if asked.like is not None:
        return collection.similar(asked.like, **given)
    return collection.search(asked.query, **given)

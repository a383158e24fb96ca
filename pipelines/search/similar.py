"""Search by example, with a stored document or a pasted text instead of a query."""

import time
from dataclasses import replace

import numpy as np

from ...indexer.document import Document
from ...indexer.encoder import Encoder
from ...indexer.errors import SondeError, UsageError, as_text
from ...indexer.ingest.chunker import Chunker
from ...indexer.store.collection import StoredCollection
from ...indexer.store.view import View, document_vectors, normalized
from ...indexer.wording import shown_id
from .filters import check_filter
from .first_stage import FirstStage
from .hits import build_results
from .results import Results
from .settings import SearchSettings


def similar(collection: StoredCollection, key: str | int, settings: SearchSettings = SearchSettings()) -> Results:
    """Return the documents most similar to a stored one, which is left out.

    For a document of several passages, the normalised mean of their embeddings is compared.

    Raises:
        SondeError: No document has this id.
        UsageError: A setting or the filter is not valid.
    """
    began, key = time.perf_counter(), as_text(key, "id")
    dense = _checked(collection, settings)
    loading = collection.load(encoder=False)
    with collection.view() as view:
        doc = view.document_number(key)
        if doc is None:
            said = f"there is no document with the id {shown_id(key)} in {collection.named}"
            raise SondeError(said, code="not-found", field="id", value=str(key))
        [vector] = document_vectors(view, [doc])
        return _closest(view, key, vector, dense, (began, loading), without=doc)


def like(collection: StoredCollection, text: str, settings: SearchSettings = SearchSettings()) -> Results:
    """Return the documents most similar to a text, which is treated as a document, not as a query.

    Raises:
        UsageError: The text is empty, or a setting or the filter is not valid.
        SondeError: The collection's model is not available.
    """
    began, text = time.perf_counter(), as_text(text, "text")
    if not text.strip():
        raise UsageError("the example text is empty")
    dense = _checked(collection, settings)
    loading = collection.load()
    encoder = collection.encoder
    vector = _embedded(encoder, text)
    with collection.view() as view:
        if collection.encoder is not encoder:  # the model was changed since the text was embedded
            vector = _embedded(collection.encoder, text)
        return _closest(view, text, vector, dense, (began, loading))


def _embedded(encoder: Encoder, text: str) -> np.ndarray:
    """Return float32 [d]: a text's embedding as a document."""
    [passages] = Chunker(encoder).split([Document(text)])
    mean = encoder.encode([passage.tokens for passage in passages]).mean(axis=0, keepdims=True)
    [vector] = normalized(mean) if encoder.spec.normalize else mean
    return vector


def _checked(collection: StoredCollection, settings: SearchSettings) -> SearchSettings:
    """Return the settings of a search by embeddings only, checked before anything is loaded."""
    if settings.rerank:
        raise UsageError("rerank is for searches: documents that are like another one are compared by their vectors")
    settings.check()
    check_filter(collection, settings.where)
    return replace(settings, mode="dense", explain=False)


def _closest(
    view: View,
    query: str,
    vector: np.ndarray,
    dense: SearchSettings,
    times: tuple[float, float],
    without: int | None = None,
) -> Results:
    stage = FirstStage.over(view, dense, without)
    [ranked] = stage.run([query], vector[None])
    results = build_results(view, stage, query, vector, ranked, (), asked=False)
    began, loading = times
    return replace(results, seconds=time.perf_counter() - began - loading, loading_seconds=loading)

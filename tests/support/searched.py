"""The collection and the queries that searches and their evaluation are tested on."""

from dataclasses import replace
from functools import partial

import pytest
from fake_encoder import FakeEncoder
from kill_corpus import documents

from sonde.app.api import Collection
from sonde.indexer.ann import AnnSettings
from sonde.indexer.ingest import BuildSettings, index_documents

QUERIES = ("apple river cloud", "number 17 winter letter", "the same text again", "music", "coffee bridge 42")


@pytest.fixture(scope="module", params=["exact", "hnsw"])
def collection(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Collection:
    """Documents with tombstones and rows newer than the FAISS index, under two kinds of index."""
    folder = tmp_path_factory.mktemp("search") / "c.sonde"
    corpus = list(documents())
    build = partial(index_documents, folder=folder, encoder=FakeEncoder())  # type: ignore[arg-type]
    asked = BuildSettings(batch=100, language="en", ann=AnnSettings(kind=request.param, target_recall=1.0))
    build([replace(corpus[0], text="replaced later"), *corpus[1:150]], settings=asked)
    build(corpus, settings=BuildSettings(language="en"))
    made = Collection.open(folder, encoder=FakeEncoder())  # type: ignore[arg-type]
    made.delete(["13", "20"])
    assert made.info().tombstones > 0
    return made

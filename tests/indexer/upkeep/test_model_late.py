"""A late index stays with the embeddings of its model: a change leaves it, and the way back finds it again."""

from pathlib import Path

import numpy as np
from model_change import few_queries, fresh, hits  # noqa: F401  (fixture)
from other_encoder import OtherEncoder

from sonde.app.api.collection import Collection


def reranked(collection: Collection) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in collection.search("apple river cloud", k=20, rerank=True)]


def test_a_change_of_model_and_back(tmp_path: Path) -> None:
    collection = fresh(tmp_path)
    assert collection.late().covered == collection.info().passages
    before, plain = reranked(collection), hits(collection)
    found = collection.change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]
    assert "the late index stays with fake: `sonde late` builds one for the new model" in found.notes
    late = collection.info().late
    assert late is not None and late["covered"] == 0, "the other model has other tokens"
    assert collection.verify() == []
    without = reranked(collection)
    assert collection.late().covered == collection.info().passages
    assert collection.verify() == []
    assert [key for key, _ in reranked(collection)][:5] == [key for key, _ in without][:5]
    assert not any("late index" in note for note in collection.undo_model().notes)
    late = collection.info().late
    assert late is not None and late["covered"] == collection.info().passages, "nothing is embedded again"
    assert hits(collection) == plain
    assert [key for key, _ in reranked(collection)] == [key for key, _ in before]
    assert np.allclose([score for _, score in reranked(collection)], [score for _, score in before])
    assert collection.verify() == []


def test_documents_that_changed_before_the_way_back(tmp_path: Path) -> None:
    collection = fresh(tmp_path)
    collection.late()
    collection.change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]
    collection.put([{"id": "new", "text": "apple river cloud in another letter"}])
    collection.delete("7")
    collection.undo_model()
    late = collection.info().late
    assert late is not None and late["covered"] == late["passages"] == collection.info().passages
    assert collection.verify() == []
    assert collection.search("apple river cloud", rerank=True, k=1)[0].id == "new"


def test_a_late_index_that_was_removed_meanwhile_stays_removed(tmp_path: Path) -> None:
    collection = fresh(tmp_path)
    collection.late()
    collection.change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]
    collection.late(remove=True)
    collection.undo_model()
    assert collection.info().late is None
    assert not list((collection.path / "late").glob("*/*"))
    assert collection.verify() == []

"""Another model: the collection answers as if it had been indexed with it, others read and write, and it goes back."""

import errno
import re
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_encoder import FakeEncoder
from model_change import COUNT, QUERIES, built, corpus, few_queries, fresh, hits  # noqa: F401  (fixture)
from other_encoder import OtherEncoder, changed_to, loaded

from sonde.app.api.collection import Collection
from sonde.indexer.document import Document
from sonde.indexer.errors import SondeError, UsageError, WriterBusyError
from sonde.indexer.ingest import BuildSettings, index_documents
from sonde.indexer.progress import Progress
from sonde.indexer.store import exchange, segments
from sonde.indexer.store.catalog import Catalog
from sonde.indexer.store.collection import StoredCollection
from sonde.indexer.store.lock import writer_lock
from sonde.indexer.store.models import model_folder, models_folder
from sonde.indexer.upkeep.model import changing, embed_beside, switch
from sonde.pipelines.search import search as searching
from sonde.pipelines.search.search import search
from sonde.pipelines.search.settings import SearchSettings
from sonde.pipelines.tune.models import MODES


@pytest.fixture
def collection(tmp_path: Path) -> Collection:
    return fresh(tmp_path)


@pytest.mark.parametrize("same", [False, True], ids=["another dimension", "the same dimension"])
def test_it_answers_as_if_indexed_with_the_new_model(collection: Collection, tmp_path: Path, same: bool) -> None:
    before, told = hits(collection), []
    found = collection.change_model(encoder=OtherEncoder(same=same), anyway=True, progress=told.append)  # type: ignore[arg-type]
    twin = built(tmp_path / "twin.sonde", corpus(), OtherEncoder(same=same))
    assert (found.before, found.after, found.switched, collection.model) == ("fake", "other", True, "other")
    assert hits(collection) == hits(twin) != before
    assert len(collection.search("apple", mode="dense", k=1)[0].passage.text) < 24 * 8
    assert (collection.info().passages, found.embedded) == (twin.info().passages, twin.info().passages)
    assert collection.verify() == []
    assert "comparing both models" in told
    shown = {event.stage: (event.done, event.total) for event in told if isinstance(event, Progress)}
    assert {"embedding with fake", "embedding with other"} <= shown.keys()
    done, total = shown["comparing both models"]
    assert found.comparison is not None
    assert done == total == 2 * len(MODES) * found.comparison.queries


def test_what_was_written_meanwhile_is_embedded_before_the_switch(collection: Collection, tmp_path: Path) -> None:
    later = [*corpus()[10:], Document("a late river of music", key="new"), Document("other text", key="11")]
    with changing(collection.path):
        beside = embed_beside(collection.stored, OtherEncoder())  # type: ignore[arg-type]
        settings = BuildSettings(sync=True)
        index_documents(later, collection.path, settings=settings, encoder=FakeEncoder())  # type: ignore[arg-type]
        assert collection.search("late music", k=1)[0].id == "new"
        counted = OtherEncoder()
        switch(collection.stored, beside.folder, lambda: counted)  # type: ignore[arg-type, return-value]
    assert counted.embedded == 2
    twin = built(tmp_path / "twin.sonde", later, OtherEncoder())
    assert hits(collection) == hits(twin)
    assert collection.verify() == []


def test_going_back_embeds_what_changed_since(collection: Collection, tmp_path: Path) -> None:
    collection.change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]
    collection.put([{"id": "new", "text": "a late river of music"}, {"id": "11", "text": "another text"}])
    collection.delete(["3", "4"])
    back = collection.undo_model()
    assert (back.before, back.after, back.switched, collection.model) == ("other", "fake", True, "fake")
    texts = [each for each in corpus() if each.key not in ("3", "4", "11")]
    texts += [Document("another text", key="11"), Document("a late river of music", key="new")]
    assert hits(collection) == hits(built(tmp_path / "twin.sonde", texts, FakeEncoder()))
    assert collection.verify() == []
    forward = collection.undo_model()
    assert (forward.after, collection.model) == ("other", "other")
    assert hits(collection) == hits(built(tmp_path / "other.sonde", texts, OtherEncoder()))


def test_going_back_without_changes_needs_no_model(collection: Collection, tmp_path: Path) -> None:
    before = hits(collection)
    collection.change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]

    def gone(spec: Any, **_: Any) -> Any:
        raise SondeError(f"{spec.name} is gone")

    closed = Collection.open(collection.path, loader=gone)
    assert closed.undo_model().switched
    assert hits(Collection.open(collection.path, loader=loaded)) == before  # type: ignore[arg-type]


def test_a_collection_that_is_open_follows(collection: Collection, tmp_path: Path) -> None:
    twin = built(tmp_path / "twin.sonde", corpus(), OtherEncoder())
    with closing(Collection.open(collection.path, loader=loaded)) as served:  # type: ignore[arg-type]
        old = hits(served)
        with changing(collection.path):
            beside = embed_beside(collection.stored, OtherEncoder())  # type: ignore[arg-type]
            assert hits(served) == old
            with served.stored.view() as view:
                switch(collection.stored, beside.folder, lambda: OtherEncoder())  # type: ignore[arg-type, return-value]
                assert view.generation.spec.name == served.stored.spec.name == "fake"
                assert hits(served) == old  # a view stays what it is
        assert served.model == "other"
        assert hits(served) == hits(twin)
        assert served.put([{"id": "put", "text": "put there"}]).embedded == 1
        assert served.verify() == []


@pytest.mark.parametrize("ask", [lambda c: c.search(QUERIES[0], mode="dense", k=9), lambda c: c.like(QUERIES[0], k=9)])
def test_a_query_is_never_compared_with_embeddings_of_another_model(
    collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Any
) -> None:
    """The model changes between the moment that a query is embedded and the one in which the embeddings are read."""
    served = Collection.open(collection.path, loader=loaded)  # type: ignore[arg-type]
    first = [(hit.id, round(hit.score, 4)) for hit in ask(served)]
    real, left = StoredCollection.view, [1]

    def late(self: StoredCollection) -> Any:
        if self is served.stored and left and served.stored._encoder is not None:
            left.pop()
            changed_to(OtherEncoder(same=True), collection.path)
        return real(self)

    monkeypatch.setattr(StoredCollection, "view", late)
    monkeypatch.setattr(searching, "check_filter", lambda *_: None)  # which opens a view before the query is embedded
    monkeypatch.setattr("sonde.pipelines.search.search.check_filter", lambda *_: None)
    monkeypatch.setattr(StoredCollection, "load", lambda *_, **__: 0.0)
    found = [(hit.id, round(hit.score, 4)) for hit in ask(served)]
    assert left == []
    monkeypatch.undo()
    twin = built(tmp_path / "twin.sonde", corpus(), OtherEncoder(same=True))
    assert sorted(found) == sorted((hit.id, round(hit.score, 4)) for hit in ask(twin)) != sorted(first)


def test_what_is_kept_is_told_and_can_be_forgotten(collection: Collection) -> None:
    found = collection.change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]
    assert found.kept is not None
    [kept] = collection.info().other_models
    assert kept == found.kept.to_dict()
    assert (kept["model"], kept["documents"], kept["previous"]) == ("fake", COUNT, True)
    assert collection.discard_model() == []
    [gone] = collection.forget_model()
    assert (gone.spec.name, collection.info().other_models) == ("fake", ())
    with pytest.raises(SondeError, match="keeps no previous model: there is nothing to undo"):
        collection.undo_model()
    assert [path.name for path in models_folder(collection.path).iterdir()] == ["writer.lock"]


def test_the_third_model_replaces_what_was_kept_of_the_first(collection: Collection) -> None:
    collection.change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]
    collection.change_model(encoder=OtherEncoder(same=True), anyway=True)  # type: ignore[arg-type]
    [kept] = collection.info().other_models
    assert (kept["model"], kept["dimension"]) == ("other", 24)


def test_the_same_model_an_empty_collection_and_no_model_are_refused(collection: Collection) -> None:
    with pytest.raises(UsageError, match=r"c.sonde already has the model fake with these settings: nothing to change"):
        collection.change_model(encoder=FakeEncoder())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="give the new model with to, or an encoder of your own"):
        collection.change_model()
    collection.delete(where="year > 0")
    with pytest.raises(SondeError, match=r"c.sonde holds no documents: index some before you change the model"):
        collection.change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]


def test_only_one_process_changes_the_model_and_others_write(collection: Collection) -> None:
    with changing(collection.path):
        with pytest.raises(WriterBusyError, match=r"the model of .*c.sonde is being changed by another thread of this"):
            collection.change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]
        assert collection.put([{"id": "new", "text": "written meanwhile"}]).added == 1
    busy = pytest.raises(WriterBusyError, match=r"c.sonde is being written to by another thread of this program")
    with writer_lock(collection.path), busy:
        collection.change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]
    assert collection.model == "fake"
    again = collection.change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]
    assert (again.switched, again.embedded) == (True, 0)  # what was embedded is kept


def test_another_writer_leaves_the_files_of_a_change_alone(collection: Collection) -> None:
    with changing(collection.path):
        beside = embed_beside(collection.stored, OtherEncoder())  # type: ignore[arg-type]
        half = beside.folder / "vectors" / ".000009.npy.1234.tmp"
        half.write_bytes(b"half")
        collection.put([{"id": "new", "text": "written meanwhile"}])
        collection.compact()
        assert half.exists()
        switch(collection.stored, beside.folder, OtherEncoder)  # type: ignore[arg-type]
    assert collection.verify() == []


@pytest.mark.long
@pytest.mark.parametrize("where", ["embedding", "linking", "keeping", "committing"])
def test_a_full_disk_leaves_the_old_model(collection: Collection, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    before = hits(collection)

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    module, name = {
        "embedding": (segments, "write_durably"), "linking": (exchange, "link_or_copy"),
        "keeping": (exchange, "fill_documents"), "committing": (exchange, "add_segment"),
    }[where]  # fmt: skip
    monkeypatch.setattr(module, name, full)
    with pytest.raises(SondeError, match=r"the disk is full: .*c.sonde\S* keeps everything that was committed"):
        collection.change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]
    monkeypatch.undo()
    assert (collection.model, hits(collection), collection.verify()) == ("fake", before, [])
    found = collection.change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]
    assert (found.switched, found.embedded == 0) == (True, where != "embedding")
    assert collection.verify() == []


def test_searches_beside_the_change_always_find_one_model(collection: Collection, tmp_path: Path) -> None:
    """A thread searches without a pause while the model changes and goes back: each answer is one model's, whole."""
    twin = built(tmp_path / "twin.sonde", corpus(), OtherEncoder(same=True))
    expected = [[(hit.id, round(hit.score, 4)) for hit in each.search(QUERIES[0], k=8)] for each in (collection, twin)]
    served = Collection.open(collection.path, loader=loaded)  # type: ignore[arg-type]
    seen, done, wrong = set[int](), threading.Event(), []

    def ask() -> None:
        while not done.is_set():
            found = [(hit.id, round(hit.score, 4)) for hit in search(served.stored, QUERIES[0], SearchSettings(k=8))]
            seen.add(expected.index(found)) if found in expected else wrong.append(found)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for _ in range(3):
            changed_to(OtherEncoder(same=True), collection.path)
            changed_to(None, collection.path)
    finally:
        done.set()
        asking.join()
    assert wrong == []
    assert seen == {0, 1}


@pytest.mark.parametrize("gone", [False, True])
def test_damage_of_what_is_kept_is_found_and_repaired_on_the_way_back(collection: Collection, gone: bool) -> None:
    before = hits(collection)
    found = collection.change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]
    assert found.kept is not None
    path = sorted((found.kept.folder / "vectors").iterdir())[0]
    path.unlink() if gone else path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    [finding] = collection.verify()
    said = rf"{path.name} is missing: \d+ vectors" if gone else f"{path.name} does not match its digest"
    assert finding.part == "models"
    assert re.fullmatch(
        f"the embeddings of the previous model: {said}: `sonde model --undo` repairs what it can and switches back, "
        "`sonde model --forget` removes them",
        finding.problem,
    )
    collection.undo_model()
    assert (hits(collection), collection.verify()) == (before, [])


@pytest.mark.parametrize("layout", [False, True], ids=["an empty catalog", "a catalog without a model"])
def test_a_change_that_was_killed_at_its_start_begins_again(collection: Collection, layout: bool) -> None:
    """Two moments that kills at random have found: the catalog is there, and nothing has been written to it."""
    other = OtherEncoder()
    folder = model_folder(collection.path, other.spec.fingerprint)
    (folder / "vectors").mkdir(parents=True)
    if layout:
        Catalog.create(folder / "catalog.db").close()
    else:
        (folder / "catalog.db").touch()
    assert collection.info().other_models == ()
    assert collection.change_model(encoder=other, anyway=True).switched  # type: ignore[arg-type]
    assert collection.verify() == []


@pytest.mark.parametrize(("count", "said"), [(1, "1 document has"), (2, "2 documents have")])
def test_documents_that_the_other_model_lacks_are_counted(count: int, said: str) -> None:
    catalog = Catalog.empty()
    sql = "INSERT INTO documents(doc, key, title, text, length, content, extra) VALUES (?, ?, '', 'x', 1, x'00', x'00')"
    catalog.connection.executemany(sql, [(n, str(n)) for n in range(count)])
    catalog.connection.execute("ATTACH DATABASE ':memory:' AS other")
    for table in ("documents", "passages"):
        catalog.connection.execute(f"CREATE TABLE other.{table} AS SELECT * FROM main.{table} LIMIT 0")
    with pytest.raises(SondeError, match=f"^{said} no embedding of the other model: run the same command again$"):
        exchange._replace_passages(catalog)  # pyright: ignore[reportPrivateUsage]


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

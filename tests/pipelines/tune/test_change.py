"""Another model: the collection answers as if it had been indexed with it, keeps what people said, and goes back."""

import errno
import random
import re
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_encoder import FakeEncoder
from kill_corpus import WORDS
from other_encoder import ContraryEncoder, OtherEncoder, changed_to, loaded

from sonde.app.api.collection import Collection
from sonde.indexer.document import Document
from sonde.indexer.errors import SondeError, UsageError, WriterBusyError
from sonde.indexer.ingest import BuildSettings, index_documents
from sonde.indexer.store import exchange, segments
from sonde.indexer.store.collection import StoredCollection
from sonde.indexer.store.kinds import CLUSTER
from sonde.indexer.store.lock import writer_lock
from sonde.indexer.store.models import models_folder
from sonde.indexer.store.run_writing import NewRun, Snapshot, write_run
from sonde.indexer.upkeep.model import changing, embed_beside, switch
from sonde.pipelines.evaluate.search import evaluate_search, modes
from sonde.pipelines.search import search as searching
from sonde.pipelines.search.search import search
from sonde.pipelines.search.settings import MODES, SearchDefaults, SearchSettings, store_defaults
from sonde.pipelines.tune import change, models

QUERIES = ("apple river cloud", "engine paper silver", "number 17 winter letter")
COUNT = 120


def corpus(count: int = COUNT, salt: int = 0) -> list[Document]:
    chance = random.Random(salt)
    return [
        Document(
            "".join(f"{WORDS[number % 15]} {' '.join(chance.choices(WORDS, k=7))}. " for _ in range(1 + number % 6)),
            title=f"number {number}", key=str(number), metadata={"year": 2000 + number % 20},
        )
        for number in range(count)
    ]  # fmt: skip


def built(folder: Path, documents: Sequence[Document], encoder: FakeEncoder) -> Collection:
    index_documents(documents, folder, settings=BuildSettings(batch=50), encoder=encoder)  # type: ignore[arg-type]
    return Collection.open(folder, loader=loaded)  # type: ignore[arg-type]


@pytest.fixture
def collection(tmp_path: Path) -> Collection:
    return built(tmp_path / "c.sonde", corpus(), FakeEncoder())


def hits(collection: Collection) -> list[list[tuple[str, float, str]]]:
    """Return ids, scores and passages of every mode; equal scores in the order of ids."""
    return [
        sorted((hit.id, round(hit.score, 4), hit.passage.text) for hit in collection.search(query, k=30, mode=mode))
        for query in QUERIES
        for mode in MODES
    ]


@pytest.mark.parametrize("same", [False, True], ids=["another dimension", "the same dimension"])
def test_it_answers_as_if_indexed_with_the_new_model(collection: Collection, tmp_path: Path, same: bool) -> None:
    before, told = hits(collection), []
    found = collection.change_model(encoder=OtherEncoder(same=same), progress=told.append)  # type: ignore[arg-type]
    twin = built(tmp_path / "twin.sonde", corpus(), OtherEncoder(same=same))
    assert (found.before, found.after, found.switched, collection.model) == ("fake", "other", True, "other")
    assert hits(collection) == hits(twin) != before
    assert len(collection.search("apple", mode="dense", k=1)[0].passage.text) < 24 * 8
    assert (collection.info().passages, found.embedded) == (twin.info().passages, twin.info().passages)
    assert collection.verify() == []
    assert "comparing both models" in told


def test_documents_and_what_people_said_are_kept(collection: Collection) -> None:
    collection.tag("good", where="year = 2003")
    collection.judge("apple river", ["3", "4"], 2)
    collection.label(["apple", "river"], name="kinds", engine="similarity")
    collection.correct({"5": "river"}, run="kinds")
    rows = list(collection.rows())
    judged = collection.judgements().qrels
    collection.change_model(encoder=OtherEncoder())  # type: ignore[arg-type]
    assert list(collection.rows()) == rows
    assert collection.judgements().qrels == judged == {"q1": {"3": 2, "4": 2}}
    assert [(each.id, each.labels) for each in collection.corrections("kinds")] == [("5", ("river",))]
    tagged = collection.search("apple", where='"tag:good"', k=50)
    assert {hit.id for hit in tagged} == {"3", "23", "43", "63", "83", "103"}
    runs = {(str(run.kind), run.name): (run.model, run.other_model) for run in collection.runs()}
    assert runs == {
        ("tag", "good"): (None, False), ("label", "kinds"): ("fake", True), ("correction", "kinds"): (None, False),
    }  # fmt: skip


REFUSED = r"the {} run '{}' was made with the model fake, whose embeddings cannot be compared with those of other: make"


def test_what_needs_the_old_embeddings_is_refused_until_the_run_is_made_again(collection: Collection) -> None:
    collection.cluster("k", k=3)
    collection.map("m")
    sizes = collection.item_sizes(collection.run("k").run)
    found = collection.change_model(encoder=OtherEncoder(same=True))  # type: ignore[arg-type]
    assert found.notes[-1].startswith("2 runs were made with another model: documents keep their groups")
    for kind, name, ask in (
        ("cluster", "k", lambda: collection.update_clusters("k")),
        ("cluster", "k", lambda: collection.merge_clusters([0, 1], "k")),
        ("cluster", "k", lambda: collection.clusters_near("apple", "k")),
        ("map", "m", lambda: collection.update_map("m")),
    ):
        with pytest.raises(SondeError, match=REFUSED.format(kind, name)):
            ask()
    assert collection.item_sizes(collection.run("k").run) == sizes
    collection.rename_run("k", "kept")
    assert collection.run("kept").run.other_model
    collection.cluster("kept", k=3, replace=True)
    assert not collection.run("kept").run.other_model
    assert collection.update_clusters("kept").added == 0
    collection.undo_model()
    assert {run.name: run.other_model for run in collection.runs()} == {"kept": True, "m": False}
    with pytest.raises(SondeError, match=r"made with the model other, .* those of fake"):
        collection.update_clusters("kept")


def test_topics_of_another_model_are_shown_but_not_asked(collection: Collection) -> None:
    collection.topics("t", min_size=4, seed=1)
    before = [(topic.number, topic.name, topic.size) for topic in collection.topic_run("t")]
    collection.change_model(encoder=OtherEncoder())  # type: ignore[arg-type]
    topics = collection.topic_run("t")
    assert [(topic.number, topic.name, topic.size) for topic in topics] == before != []
    assert len(topics.documents(0, k=3)) == 3
    for ask in (lambda: topics.search("apple"), lambda: topics.of("apple"), topics.update, lambda: topics.reduce(1)):
        with pytest.raises(SondeError, match=REFUSED.format("topic", "t")):
            ask()
    collection.topics("t", min_size=4, seed=1, replace=True)  # numbered by the documents alone
    assert collection.topic_run("t").search("apple")


def test_a_run_that_the_change_overtakes_belongs_to_the_old_model(collection: Collection) -> None:
    with collection.stored.view() as view:
        snapshot = Snapshot.of(view)
    collection.change_model(encoder=OtherEncoder())  # type: ignore[arg-type]
    docs = snapshot.docs
    write_run(collection.path, NewRun(CLUSTER, "late", {}, assignments=(docs, docs * 0, docs * np.nan)), snapshot)
    assert [(run.name, run.model, run.other_model) for run in collection.runs()] == [("late", "fake", True)]


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
    collection.change_model(encoder=OtherEncoder())  # type: ignore[arg-type]
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
    collection.change_model(encoder=OtherEncoder())  # type: ignore[arg-type]

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
    monkeypatch.setattr("sonde.pipelines.search.similar.check_filter", lambda *_: None)
    monkeypatch.setattr(StoredCollection, "load", lambda *_, **__: 0.0)
    found = [(hit.id, round(hit.score, 4)) for hit in ask(served)]
    assert left == []
    monkeypatch.undo()
    twin = built(tmp_path / "twin.sonde", corpus(), OtherEncoder(same=True))
    assert sorted(found) == sorted((hit.id, round(hit.score, 4)) for hit in ask(twin)) != sorted(first)


def test_tuned_settings_are_dropped_with_a_note_and_come_back(collection: Collection) -> None:
    store_defaults(collection.stored, SearchDefaults(weight=0.3, threshold=0.52))
    found = collection.change_model(encoder=OtherEncoder())  # type: ignore[arg-type]
    assert collection.search_defaults().empty
    assert found.notes[-1] == (
        "the tuned settings (weight 0.3, threshold 0.52) were found with fake and no longer apply: tune again with "
        "`sonde tune`"
    )
    back = collection.undo_model()
    assert back.notes == ("the settings that were tuned with this model apply again: weight 0.3, threshold 0.52",)
    assert collection.search_defaults() == SearchDefaults(weight=0.3, threshold=0.52)


def test_settings_that_the_change_overtakes_are_not_stored(collection: Collection) -> None:
    spec = collection.stored.spec
    collection.change_model(encoder=OtherEncoder())  # type: ignore[arg-type]
    with pytest.raises(SondeError, match="nothing was stored: the collection's model was changed meanwhile"):
        store_defaults(collection.stored, SearchDefaults(threshold=0.5), spec)
    assert collection.search_defaults().empty


def judge_all(collection: Collection) -> None:
    """Judge for 15 queries the documents that begin with the query's word."""
    for word in WORDS:
        documents = [row for row in collection.rows() if row["text"].startswith(word)]
        collection.judge(f"{word}", [row["id"] for row in documents], 1)


def test_both_are_compared_on_the_collections_judgements(collection: Collection, tmp_path: Path) -> None:
    judge_all(collection)
    judged = collection.judgements()
    found = collection.change_model(encoder=OtherEncoder(), dry_run=True).comparison  # type: ignore[arg-type]
    assert found is not None
    assert (found.source, found.queries) == ("15 judged queries of the collection", 15)
    twin = built(tmp_path / "twin.sonde", corpus(), OtherEncoder())
    for mode in ("hybrid", "dense"):
        old, new = (
            evaluate_search(each.stored, judged.queries, judged.qrels, modes([mode], SearchSettings(k=10)))[0].measures
            for each in (collection, twin)
        )
        gain = next(each for each in found.gains if (each.mode, each.measure) == (mode, "ndcg@10"))
        assert (gain.before, gain.after) == pytest.approx((old["ndcg@10"], new["ndcg@10"]))
    assert (found.before.passages, found.after.passages) == (collection.info().passages, twin.info().passages)
    assert found.after.bytes == found.after.passages * 24 * 2
    assert found.before.per_second > 0 < found.after.per_second


def test_a_worse_model_is_not_switched_to_unless_asked(collection: Collection) -> None:
    judge_all(collection)
    before = hits(collection)
    found = collection.change_model(encoder=ContraryEncoder())  # type: ignore[arg-type]
    assert found.comparison is not None
    assert found.comparison.worse
    assert (found.switched, collection.model, found.kept) == (False, "fake", None)
    gain = found.comparison.gains[0]
    assert (gain.mode, gain.measure) == ("hybrid", "ndcg@10")
    assert gain.difference < 0
    assert gain.p < 0.05
    assert hits(collection) == before
    again = collection.change_model(encoder=ContraryEncoder(), anyway=True)  # type: ignore[arg-type]
    assert (again.switched, again.embedded, collection.model) == (True, 0, "other")


def test_without_judgements_they_are_compared_on_queries_made_of_the_texts(collection: Collection) -> None:
    found = collection.change_model(encoder=OtherEncoder(), dry_run=True)  # type: ignore[arg-type]
    assert found.comparison is not None
    assert re.match(r"\d+ queries made of .*, among 120 documents", found.comparison.source)
    assert [(gain.mode, gain.measure) for gain in found.comparison.gains] == [
        ("hybrid", "ndcg@10"), ("hybrid", "mrr@10"), ("dense", "ndcg@10"), ("dense", "mrr@10"),
    ]  # fmt: skip
    assert not found.switched
    [beside] = collection.info().other_models
    assert (beside["model"], beside["documents"], beside["previous"]) == ("other", COUNT, False)
    [gone] = collection.discard_model()
    assert (gone.spec.name, collection.info().other_models) == ("other", ())


def test_hits_that_nobody_judged_are_told() -> None:
    old, new = (models.ModelSide(name, 4, 9, 72, 1.0, share) for name, share in (("a", 0.9), ("b", 0.7)))
    assert list(models._notes(old, new)) == [
        "70% of the first ten hits with b have a judgement, with a 90%: hits without one count as not relevant, so b "
        "may be better than this"
    ]
    assert list(models._notes(new, old)) == []


def test_a_collection_whose_model_is_gone_can_change_it(collection: Collection) -> None:
    def gone(spec: Any, **_: Any) -> Any:
        raise SondeError(f"the model's folder {spec.name} is gone")

    opened = Collection.open(collection.path, loader=gone)
    found = opened.change_model(encoder=OtherEncoder())  # type: ignore[arg-type]
    assert (found.switched, found.comparison) == (True, None)
    assert found.notes[0] == "the models were not compared: the model's folder fake is gone"
    assert opened.search("apple", k=1)


def test_what_is_kept_is_told_and_can_be_forgotten(collection: Collection) -> None:
    found = collection.change_model(encoder=OtherEncoder())  # type: ignore[arg-type]
    assert found.kept is not None
    [kept] = collection.info().other_models
    assert kept == found.kept.to_dict()
    assert (kept["model"], kept["documents"], kept["previous"]) == ("fake", COUNT, True)
    assert collection.discard_model() == []
    [gone] = collection.forget_model()
    assert (gone.spec.name, collection.info().other_models) == ("fake", ())
    with pytest.raises(SondeError, match="keeps no model before other: there is nothing to undo"):
        collection.undo_model()
    assert [path.name for path in models_folder(collection.path).iterdir()] == ["writer.lock"]


def test_the_third_model_replaces_what_was_kept_of_the_first(collection: Collection) -> None:
    collection.change_model(encoder=OtherEncoder())  # type: ignore[arg-type]
    collection.change_model(encoder=OtherEncoder(same=True))  # type: ignore[arg-type]
    [kept] = collection.info().other_models
    assert (kept["model"], kept["dimension"]) == ("other", 24)


def test_the_same_model_an_empty_collection_and_no_model_are_refused(collection: Collection) -> None:
    with pytest.raises(UsageError, match=r"c.sonde has the model fake with these settings already: nothing to change"):
        collection.change_model(encoder=FakeEncoder())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="give the new model with to, or an encoder of your own"):
        collection.change_model()
    collection.delete(where="year > 0")
    with pytest.raises(SondeError, match=r"c.sonde holds no documents: index some before you change the model"):
        collection.change_model(encoder=OtherEncoder())  # type: ignore[arg-type]


def test_only_one_process_changes_the_model_and_others_write(collection: Collection) -> None:
    with changing(collection.path):
        with pytest.raises(WriterBusyError, match=r"the model of .*c.sonde is being changed by another thread of this"):
            collection.change_model(encoder=OtherEncoder())  # type: ignore[arg-type]
        assert collection.put([{"id": "new", "text": "written meanwhile"}]).added == 1
    busy = pytest.raises(WriterBusyError, match=r"c.sonde is being written to by another thread of this program")
    with writer_lock(collection.path), busy:
        collection.change_model(encoder=OtherEncoder())  # type: ignore[arg-type]
    assert collection.model == "fake"
    again = collection.change_model(encoder=OtherEncoder())  # type: ignore[arg-type]
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


@pytest.mark.parametrize("where", ["embedding", "linking", "keeping", "committing"])
def test_a_full_disk_leaves_the_old_model(collection: Collection, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    before = hits(collection)

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    module, name = {
        "embedding": (segments, "write_durably"), "linking": (exchange, "_link"),
        "keeping": (exchange, "fill_documents"), "committing": (exchange, "add_segment"),
    }[where]  # fmt: skip
    monkeypatch.setattr(module, name, full)
    with pytest.raises(SondeError, match=r"the disk is full: .*c.sonde\S* keeps everything that was committed"):
        collection.change_model(encoder=OtherEncoder())  # type: ignore[arg-type]
    monkeypatch.undo()
    assert (collection.model, hits(collection), collection.verify()) == ("fake", before, [])
    found = collection.change_model(encoder=OtherEncoder())  # type: ignore[arg-type]
    assert (found.switched, found.embedded == 0) == (True, where != "embedding")
    assert collection.verify() == []


def test_settings_that_the_new_model_lacks_are_told() -> None:
    old = replace(FakeEncoder.spec, dtype="int8", truncate_dim=8)
    assert list(change._settings(old, FakeEncoder.spec)) == [
        "dtype int8, truncate_dim 8 held for fake alone: fake has dtype float32"
    ]
    assert list(change._settings(FakeEncoder.spec, FakeEncoder.spec)) == []


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


def test_damage_of_what_is_kept_is_found_and_repaired_on_the_way_back(collection: Collection) -> None:
    before = hits(collection)
    found = collection.change_model(encoder=OtherEncoder())  # type: ignore[arg-type]
    assert found.kept is not None
    [path] = (found.kept.folder / "vectors").iterdir()
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    [finding] = collection.verify()
    assert (finding.part, finding.problem) == (
        "models",
        f"the embeddings of the model before: {path.name} does not match its digest: going back with `sonde model "
        "--undo` repairs what it can, `sonde model --forget` removes them",
    )
    collection.undo_model()
    assert (hits(collection), collection.verify()) == (before, [])

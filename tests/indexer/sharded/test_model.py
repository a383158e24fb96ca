"""Another model for a sharded collection: what one collection finds, says and keeps, in one commit for all shards."""

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder
from kill_corpus import WORDS
from model_change import corpus, few_queries  # noqa: F401  (fixture)
from other_encoder import ContraryEncoder, OtherEncoder, loaded
from two_ways import Row, TwoWays, differences, told

from sonde.app.api import Collection, index
from sonde.indexer.errors import SondeError, UsageError, WriterBusyError
from sonde.indexer.sharded import model
from sonde.indexer.sharded.collection import ShardedCollection
from sonde.indexer.sharded.generations import generation_number
from sonde.indexer.store.collection import StoredCollection
from sonde.indexer.store.lock import writer_lock
from sonde.indexer.store.models import models_folder
from sonde.indexer.upkeep.model import changing
from sonde.pipelines.search.settings import SearchDefaults, store_defaults
from sonde.pipelines.tune.change import ModelChange

QUERIES = ("apple river cloud", "number 17 winter letter")


class TwoModels(TwoWays):
    """One collection and a sharded one that may have either model."""

    def _opened(self, name: str) -> Collection:
        return Collection.open(self.folder / f"{name}.sonde", loader=loaded)  # type: ignore[arg-type]

    @property
    def one(self) -> Collection:
        return self._opened("one")

    @property
    def sharded(self) -> Collection:
        return self._opened("sharded")

    @property
    def each(self) -> tuple[Collection, Collection]:
        return self.one, self.sharded

    @property
    def differ(self) -> list[tuple[str, dict[str, Any]]]:
        return differences(self, QUERIES)

    def change(self, encoder: FakeEncoder, **given: Any) -> tuple[ModelChange, ModelChange]:
        one, sharded = (each.change_model(encoder=encoder, **given) for each in self.each)  # type: ignore[arg-type]
        if one.switched:
            self.encoder = encoder
        return one, sharded

    def undo(self, encoder: FakeEncoder) -> tuple[ModelChange, ModelChange]:
        self.encoder = encoder
        one, sharded = (each.undo_model() for each in self.each)
        return one, sharded


def texts(start: int = 0, stop: int = 120, salt: int = 0) -> list[Row]:
    return [
        {"id": each.key, "title": each.title, "text": each.text, "stars": 1 + number % 5}
        for number, each in list(enumerate(corpus(stop, salt)))[start:]
    ]


@pytest.fixture
def both(tmp_path: Path) -> TwoModels:
    made = TwoModels(tmp_path, shards=3)
    made.index(texts())
    return made


def judge_all(collection: Collection) -> None:
    """Judge for 15 queries the documents that begin with the query's word."""
    for word in WORDS:
        collection.judge(word, [row["id"] for row in texts() if row["text"].startswith(word)], 1)


def same(found: tuple[ModelChange, ModelChange]) -> None:
    """Check that both report the same; texts that several shards have are embedded in each."""
    one, sharded = (each.to_dict() for each in found)
    for each in (one, sharded):
        each["kept"] = each["kept"] and {**each["kept"], "bytes": 0}
        if each["comparison"]:
            each["comparison"]["before"]["per_second"] = each["comparison"]["after"]["per_second"] = 0
        each["seconds"] = 0
    assert one == sharded


def test_a_change_and_the_way_back_are_those_of_one_collection(both: TwoModels) -> None:
    for each in both.each:
        judge_all(each)
        each.tag("some", ids=["3", "5", "60"])
        each.cluster(k=3, name="k")
        store_defaults(each.stored, SearchDefaults(weight=0.3))
    number = generation_number(both.sharded.path)
    dry = both.change(OtherEncoder(), dry_run=True)
    same(dry)
    assert dry[1].comparison is not None
    assert (dry[1].switched, both.sharded.model, generation_number(both.sharded.path)) == (False, "fake", number)
    found = both.change(OtherEncoder(), anyway=True)
    same(found)
    assert (found[1].embedded, both.sharded.model) == (0, "other"), "what the dry run has embedded is used"
    assert generation_number(both.sharded.path) == number + 1
    assert both.differ == []
    assert both.sharded.verify() == []
    runs = [[(run.kind, run.name, run.other_model) for run in each.runs()] for each in both.each]
    assert runs[0] == runs[1]
    assert [other for kind, _, other in runs[1] if kind == "cluster"] == [True]
    assert len(both.sharded.judgements().queries) == len(WORDS)
    with pytest.raises(SondeError, match="run 'k' was made with the model fake, whose embeddings"):
        both.sharded.update_clusters("k")

    both.index(texts(100, 140, salt=1))
    both.delete(["7", "9"])
    assert both.differ == []
    same(both.undo(FakeEncoder()))
    assert (both.sharded.model, both.sharded.verify(), both.differ) == ("fake", [], [])
    assert not [run for run in both.sharded.runs() if run.other_model]
    assert both.sharded.info().search_defaults == both.one.info().search_defaults is not None
    both.index(texts(20, 150, salt=2), sync=True)
    same(both.undo(OtherEncoder()))
    assert (both.sharded.model, both.sharded.verify(), both.differ) == ("other", [], [])


def test_a_worse_model_is_not_switched_to(both: TwoModels) -> None:
    for each in both.each:
        judge_all(each)
    found = both.change(ContraryEncoder())
    same(found)
    assert (found[1].switched, both.sharded.model) == (False, "fake")
    [removed] = both.sharded.discard_model()
    assert (removed.spec.name, removed.previous) == ("other", False)
    assert both.sharded.info().other_models == ()


def test_the_way_back_without_changes_needs_no_model_and_can_be_forgotten(both: TwoModels) -> None:
    before = [told(both.sharded.search(query, k=30)) for query in QUERIES]
    both.sharded.change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]

    def gone(*_: Any, **__: Any) -> Any:
        raise SondeError("the model is gone")

    assert Collection.open(both.sharded.path, loader=gone).undo_model().switched
    assert [told(both.sharded.search(query, k=30)) for query in QUERIES] == before
    info = both.sharded.info()
    [kept] = info.other_models
    assert (kept["model"], kept["documents"], kept["previous"]) == ("other", 120, True)
    assert kept["bytes"] == info.bytes["previous_model"]
    assert [each.spec.name for each in both.sharded.forget_model()] == ["other"]
    with pytest.raises(SondeError, match="keeps no previous model: there is nothing to undo"):
        both.sharded.undo_model()
    assert [path.name for path in models_folder(both.sharded.path).iterdir()] == ["writer.lock"]
    with pytest.raises(UsageError, match="already has the model fake with these settings: nothing to change"):
        both.sharded.change_model(encoder=FakeEncoder())  # type: ignore[arg-type]


@pytest.mark.long
def test_others_write_meanwhile_and_read_whole_generations(both: TwoModels) -> None:
    served, path = both.sharded, both.sharded.path
    encoder: Any = OtherEncoder(same=True)
    with changing(path):
        with pytest.raises(WriterBusyError, match="is being changed by another thread of this program"):
            both.sharded.change_model(encoder=encoder)
        beside = model.embed_beside(both.sharded.stored, encoder)
        both.one.change_model(encoder=encoder, dry_run=True)
        both.index([{"id": "new", "text": "a late river of music", "stars": 2}, *texts(5, 9, salt=4)])
        old, counted = told(served.search(QUERIES[0], k=8)), OtherEncoder(same=True)
        with pytest.raises(WriterBusyError), writer_lock(path):
            model.switch(both.sharded.stored, beside.folder, lambda: encoder)
        with served.stored.view() as view:
            model.switch(both.sharded.stored, beside.folder, lambda: counted)  # type: ignore[arg-type, return-value]
            assert view.generation.spec.name == served.stored.spec.name == "fake"
    assert 5 <= counted.embedded < 40, "only what was written meanwhile"
    both.one.change_model(encoder=encoder, anyway=True)
    assert (both.differ, both.sharded.verify()) == ([], [])
    _search_while_it_changes(served, [old, told(served.search(QUERIES[0], k=8))])


def _search_while_it_changes(served: Collection, expected: list[Any]) -> None:
    seen, done, wrong = set[int](), threading.Event(), []

    def ask() -> None:
        while not done.is_set():
            found = told(served.search(QUERIES[0], k=8))
            seen.add(expected.index(found)) if found in expected else wrong.append(found)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for _ in range(2):
            Collection.open(served.path, loader=loaded).undo_model()  # type: ignore[arg-type]
    finally:
        done.set()
        asking.join()
    assert (wrong, seen) == ([], {0, 1})


@pytest.mark.long
def test_shards_that_become_empty_or_get_their_first_documents(tmp_path: Path) -> None:
    both = TwoModels(tmp_path, shards=4)
    both.index(texts(0, 40))
    stored = both.sharded.stored
    assert isinstance(stored, ShardedCollection)
    of_one = [row["id"] for row in texts(0, 40) if stored.sharding.shard_of(row["id"]) == 1]
    both.change(OtherEncoder(), anyway=True)
    both.delete(of_one)
    both.undo(FakeEncoder())
    assert (both.differ, both.sharded.verify()) == ([], [])
    assert stored.stored_generation.shards[1] is None
    both.index(texts(0, 60))
    both.undo(OtherEncoder())
    assert (both.differ, both.sharded.verify()) == ([], [])
    assert stored.stored_generation.shards[1] is not None


def test_a_late_index_stays_with_its_model(both: TwoModels) -> None:
    for each in both.each:
        each.late()
    same(both.change(OtherEncoder(), anyway=True))
    same(both.undo(FakeEncoder()))
    assert both.sharded.info().late == replace_bytes(both.one.info().late, both.sharded.info().late)
    assert both.differ == []


def replace_bytes(one: Any, sharded: Any) -> Any:
    """The sizes of files differ."""
    return {**one, "bytes": sharded["bytes"], "bytes_per_passage": sharded["bytes_per_passage"]}


@pytest.mark.long
@pytest.mark.parametrize("gone", [False, True])
def test_damage_of_what_is_kept_is_found_and_repaired_on_the_way_back(both: TwoModels, gone: bool) -> None:
    before = [told(both.sharded.search(query, k=30)) for query in QUERIES]
    found = both.sharded.change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]
    assert found.kept is not None
    path = sorted(found.kept.folder.glob("shards/*/*/vectors/*.npy"))[0]
    path.unlink() if gone else path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    [finding] = both.sharded.verify()
    said = "is missing" if gone else "does not match"
    assert finding.part == "models"
    assert finding.problem.startswith(f"the embeddings of the previous model: {path.name} {said}")
    both.sharded.undo_model()
    assert ([told(both.sharded.search(query, k=30)) for query in QUERIES], both.sharded.verify()) == (before, [])


@pytest.mark.parametrize("name", ["one", "sharded"])
def test_documents_that_are_put_while_the_model_changes_get_the_new_one(
    both: TwoModels, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collection was refused to the model that it had when the call began."""
    collection, switched = getattr(both, name), list[ModelChange]()
    known = StoredCollection.encoder.fget
    assert known is not None

    def encoder(stored: StoredCollection) -> Any:
        found = known(stored)
        if stored is collection.stored and not switched:
            switched.append(getattr(both, name).change_model(encoder=OtherEncoder(), anyway=True))
        return found

    monkeypatch.setattr(StoredCollection, "encoder", property(encoder))
    assert collection.put([{"id": "new", "text": "apple river cloud"}]).added == 1
    assert switched[0].switched and collection.model == "other"
    assert (getattr(both, name).search("apple river cloud", k=1)[0].id, getattr(both, name).verify()) == ("new", [])


@pytest.mark.long
def test_a_lost_shard_is_built_again_with_the_new_model_and_with_the_one_before(both: TwoModels):
    both.change(OtherEncoder(), anyway=True)
    folder = both.folder / "sharded.sonde"
    shutil.rmtree(folder / "shards" / "01")
    index(texts(), folder, encoder=both.encoder, rebuild=True)  # type: ignore[arg-type]
    assert both.differ == []
    both.undo(FakeEncoder())
    assert both.differ == []
    assert both.sharded.verify() == []

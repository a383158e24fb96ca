"""A long run commits by time, so that a kill costs little, and makes room for writers that wait between two commits."""

import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_encoder import FakeEncoder
from hypothesis import given, settings
from hypothesis import strategies as st
from killed_early import run as run_to_the_end

from sonde.app.api import Collection
from sonde.indexer.document import Document, Skipped
from sonde.indexer.encoder import Tokens
from sonde.indexer.errors import OtherModelError, SondeError
from sonde.indexer.ingest import BuildSettings, index, index_documents, run
from sonde.indexer.ingest.chunker import PassageInput
from sonde.indexer.ingest.plan import Batch, PlannedDocument, Planner
from sonde.indexer.ingest.report import BuildReport
from sonde.indexer.ingest.run import FIRST_TOKENS, GROWTH, SECONDS, Pace
from sonde.indexer.store.catalog import Catalog
from sonde.indexer.store.lock import Patience, is_awaited, patience
from sonde.indexer.store.writing import Identity

COUNT = 12
WAIT = 60.0


class Slow(FakeEncoder):
    """Waits at the second commit until another writer waits, so that the run has to make room after it."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.reached, self.calls = folder, threading.Event(), 0

    def encode(self, tokens: object, **options: object):  # type: ignore[override]
        self.calls += 1
        if self.calls == 2:
            self.reached.set()
            while not is_awaited(self.folder):
                threading.Event().wait(0.01)
        return super().encode(tokens, **options)  # type: ignore[arg-type]


def documents(text: str = "text", **metadata: int) -> Iterator[Document]:
    return (Document(f"{text} {n}", key=f"d{n}", metadata=dict(metadata)) for n in range(COUNT))


def beside(
    folder: Path, other: Callable[[Collection], object], given: Iterator[Document] | None = None, **settings: object
) -> BuildReport:
    """Index in two documents a commit, while another writer does its work after the second commit."""
    encoder, failed = Slow(folder), []

    def wait_and_write() -> None:
        assert encoder.reached.wait(WAIT)
        try:
            with patience(Patience(WAIT)):
                other(Collection.open(folder, encoder=FakeEncoder()))  # type: ignore[arg-type]
        except BaseException as error:
            failed.append(error)

    writer = threading.Thread(target=wait_and_write)
    writer.start()
    try:
        building = BuildSettings(batch=2, **settings)  # type: ignore[arg-type]
        return index_documents(given or documents(), folder, settings=building, encoder=encoder)  # type: ignore[arg-type]
    finally:
        encoder.reached.set()
        writer.join(WAIT)
        assert failed == []


def texts(folder: Path) -> dict[str, str]:
    with Collection.open(folder, encoder=FakeEncoder()) as collection:  # type: ignore[arg-type]
        assert collection.verify() == []
    with closing(Catalog.open(folder / "catalog.db")) as catalog:
        return dict(catalog.connection.execute("SELECT key, text FROM documents"))


OWN = {f"d{n}": f"text {n}" for n in range(COUNT)}


def test_a_document_that_is_put_during_a_run_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    report = beside(folder, lambda collection: collection.put([Document("put meanwhile", key="new")]))
    assert (report.added, report.replaced, report.unchanged) == (COUNT, 0, 0)
    assert texts(folder) == OWN | {"new": "put meanwhile"}


def test_the_run_goes_on_from_where_it_was(tmp_path: Path) -> None:
    """What the other writer changes is as if it had come between two commits: before it, or after."""
    folder = tmp_path / "c.sonde"

    def change(collection: Collection) -> None:
        collection.put([Document("changed", key="d0"), Document("too early", key=f"d{COUNT - 1}")])

    report = beside(folder, change)
    assert (report.added, report.replaced) == (COUNT - 1, 1)
    assert texts(folder) == OWN | {"d0": "changed"}


@pytest.mark.parametrize("compacted", [False, True])
def test_documents_that_are_deleted_during_a_run(tmp_path: Path, compacted: bool) -> None:
    """The run was about to change their metadata only, and finds them gone: it embeds them again."""
    folder = tmp_path / "c.sonde"
    index_documents(documents(), folder, encoder=FakeEncoder())  # type: ignore[arg-type]

    def delete(collection: Collection) -> None:
        collection.delete(["d0", *(f"d{n}" for n in range(6, COUNT))])
        if compacted:
            collection.compact()

    # Documents 0 to 3 are new texts, so that the encoder is asked for them; the others get another value.
    given = (replace(each, text=f"new {each.text}") if n < 4 else each for n, each in enumerate(documents(stars=3)))
    report = beside(folder, delete, given)
    assert (report.replaced, report.added) == (6, 6)
    expected = {key: f"new {text}" if key in ("d1", "d2", "d3") else text for key, text in OWN.items() if key != "d0"}
    assert texts(folder) == expected
    with Collection.open(folder, encoder=FakeEncoder()) as collection:  # type: ignore[arg-type]
        assert collection.search("text 9", k=1)[0].id == "d9"
        assert [*collection.count_by("stars").values] == [(3, COUNT - 1)]


def test_what_is_planned_while_others_write_is_planned_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is compared with the collection just before another writer deletes what it is compared with."""
    folder, encoder = tmp_path / "c.sonde", FakeEncoder()
    index_documents(documents(), folder, encoder=encoder)  # type: ignore[arg-type]
    gap, planned, plan = threading.Event(), threading.Event(), Planner.plan

    def source() -> Iterator[Document]:
        for number, each in enumerate(documents(stars=3)):
            if number == 4:
                assert gap.wait(WAIT)
            yield each

    def noted(self: Planner, gathered: list[Any]) -> Batch:
        found = plan(self, gathered)
        if gap.is_set():
            planned.set()
        return found

    def delete(*_: object) -> None:
        gap.set()
        assert planned.wait(WAIT)
        waits.clear()
        with Collection.open(folder, encoder=encoder) as collection:  # type: ignore[arg-type]
            collection.delete(["d4", "d5"])

    waits = [True]
    monkeypatch.setattr(Planner, "plan", noted)
    monkeypatch.setattr(run, "is_awaited", lambda _: bool(waits))
    monkeypatch.setattr(index, "let_in", delete)
    index_documents(source(), folder, settings=BuildSettings(batch=2), encoder=encoder)  # type: ignore[arg-type]
    assert texts(folder) == OWN
    with Collection.open(folder, encoder=encoder) as collection:  # type: ignore[arg-type]
        assert [collection.search(f"text {n}", k=1)[0].id for n in (4, 5)] == ["d4", "d5"]


def test_two_runs_into_one_collection_take_turns(tmp_path: Path) -> None:
    folder, others = tmp_path / "c.sonde", []

    def index_others(_: Collection) -> None:
        given = (Document(f"other {n}", key=f"e{n}") for n in range(COUNT))
        settings = BuildSettings(batch=2, wait=WAIT)
        others.append(index_documents(given, folder, settings=settings, encoder=FakeEncoder()))  # type: ignore[arg-type]

    assert beside(folder, index_others).added == COUNT
    assert others[0].added == COUNT
    assert texts(folder) == OWN | {f"e{n}": f"other {n}" for n in range(COUNT)}


def test_a_collection_that_is_removed_during_a_run_is_not_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"

    def remove(collection: Collection) -> None:
        with collection.stored.writing():
            pass
        shutil.rmtree(folder)

    with pytest.raises(SondeError, match="was moved or removed while it was being written"):
        beside(folder, remove)
    assert not folder.exists()


def test_another_model_ends_the_run(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"

    def switch(collection: Collection) -> None:
        with collection.stored.writing() as catalog:
            catalog.set("model", replace(FakeEncoder.spec, name="other", digest="1" * 64).to_dict())

    with pytest.raises(OtherModelError, match=r"the model of .*c.sonde was changed during the run: run the same"):
        beside(folder, switch)
    with closing(Catalog.open(folder / "catalog.db")) as catalog:
        assert catalog.counts()[0] == 4


RUNNER = Path(__file__).parents[2] / "support" / "killed_early.py"


@pytest.mark.parametrize("shards", [0, 2], ids=["one", "shards"])
@pytest.mark.parametrize("phase", ["index", "model"])
def test_a_killed_run_embeds_only_the_rest(tmp_path: Path, phase: str, shards: int) -> None:
    folder, whole, log = tmp_path / "c.sonde", tmp_path / "whole.sonde", tmp_path / "log"
    for each in (whole, folder) if phase == "model" else ():
        run_to_the_end("index", shards, each, tmp_path / "before")
    total = run_to_the_end(phase, shards, whole, tmp_path / "whole")
    command = [sys.executable, str(RUNNER), phase, str(shards), str(folder), str(log), "200"]
    assert subprocess.run(command).returncode == -9
    done = log.stat().st_size
    assert 0 < done <= 200
    assert run_to_the_end(phase, shards, folder, log) == total - done


def passage(tokens: int) -> PassageInput:
    return PassageInput(0, 1, "x", Tokens(np.zeros(tokens, np.int32), tokens, False), 0)


def planned(*tokens: int) -> list[PlannedDocument]:
    return [
        PlannedDocument(str(place), Document("x"), Identity(b"", b""), False, [passage(n)])
        for place, n in enumerate(tokens)
    ]


def sizes(given: Pace, batch: Batch, clock: list[float], rate: float) -> list[int]:
    """The tokens of each part, if a model embeds `rate` tokens a second."""
    found = []
    for part in given.parts(batch):
        found.append(sum(len(each.tokens.ids) for planned in part.documents for each in planned.passages or []))
        clock[0] += found[-1] / rate
    return found


@pytest.mark.parametrize(
    ("rate", "documents", "last"), [(100.0, 150, 800), (1_000.0, 800, 8_000), (10_000_000.0, 1_500, 2_048 * 4**2)]
)
def test_a_commit_takes_some_seconds(monkeypatch: pytest.MonkeyPatch, rate: float, documents: int, last: int) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    found = sizes(Pace(), Batch(planned(*[32] * documents), read=documents), clock, rate)
    assert found[0] == FIRST_TOKENS and sum(found) == 32 * documents
    assert found[-2] == last and (last == SECONDS * rate or last == FIRST_TOKENS * GROWTH**2)


def test_parts_hold_all_that_a_batch_holds() -> None:
    batch = Batch(planned(2_000, 100, 5_000, 10), [Skipped("row 1", "the text is empty")], 3, 1, 9)
    parts = list(Pace().parts(batch))
    assert [[each.key for each in part.documents] for part in parts] == [["0", "1"], ["2", "3"]]
    assert [part.read for part in parts] == [7, 2]
    assert [(part.unchanged, part.duplicate_ids, len(part.skipped)) for part in parts] == [(3, 1, 1), (0, 0, 0)]
    [only] = Pace().parts(Batch(unchanged=5, read=5))
    assert (only.unchanged, only.read, only.documents) == (5, 5, [])


IDS = [f"d{n}" for n in range(10)]
TEXTS = ["the battery died", "a late parcel", "the screen is cracked"]
CONTENT = st.tuples(st.sampled_from(TEXTS), st.integers(0, 2))
OTHERS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(IDS), CONTENT),
        st.tuples(st.just("delete"), st.sampled_from(IDS)),
        st.tuples(st.just("compact")),
        st.tuples(st.just("tag"), st.sampled_from(IDS)),
    ),
    max_size=3,
)


def document(id: str, content: tuple[str, int]) -> Document:
    return Document(content[0], key=id, metadata={"stars": content[1]})


def write(collection: Collection, kept: dict[str, tuple[str, int] | None], what: tuple[Any, ...]) -> None:
    """Do what another process does, in the collection and in the dict of what it left of each document."""
    if what[0] == "put":
        collection.put([document(*what[1:])])
        kept[what[1]] = what[2]
    elif what[0] == "compact":
        collection.compact()
    elif not collection.documents(what[1]):
        return
    elif what[0] == "delete":
        collection.delete(what[1])
        kept[what[1]] = None
    else:
        collection.tag("seen", ids=what[1], change="replace")


def found(folder: Path) -> dict[str, tuple[str, int]]:
    with closing(Catalog.open(folder / "catalog.db")) as catalog:
        column = catalog.fields()["stars"].column
        rows = catalog.connection.execute(f"SELECT key, text, {column} FROM documents JOIN metadata USING (doc)")
        return {key: (text, stars) for key, text, stars in rows}


@pytest.mark.long
@settings(max_examples=max(10, settings().max_examples * 2 // 5))
@given(
    before=st.dictionaries(st.sampled_from(IDS), CONTENT),
    source=st.dictionaries(st.sampled_from(IDS), CONTENT, min_size=1),
    between=st.lists(OTHERS, max_size=5),
)
def test_any_writes_between_the_turns(
    before: dict[str, tuple[str, int]], source: dict[str, tuple[str, int]], between: list[list[tuple[Any, ...]]]
) -> None:
    """A document that only one of them wrote is as that one wrote it; of the others, it is as one of them did."""
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        folder, turns = Path(place) / "c.sonde", list(between)
        encoder: Any = FakeEncoder()
        kept: dict[str, tuple[str, int] | None] = {}

        def others(folder: Path) -> None:
            now = turns.pop(0)
            with Collection.open(folder, encoder=encoder) as collection, patch.context() as quiet:
                quiet.setattr(run, "is_awaited", lambda _: False)  # a put is a run too
                for what in now:
                    write(collection, kept, what)

        if before:
            index_documents((document(*each) for each in before.items()), folder, encoder=encoder)
        patch.setattr(run, "is_awaited", lambda _: bool(turns))
        patch.setattr(index, "let_in", others)
        given = (document(*each) for each in source.items())
        index_documents(given, folder, settings=BuildSettings(batch=2), encoder=encoder)
        now = found(folder)
        for id in IDS:
            written = [where[id] for where in (source, kept) if id in where] or [before.get(id)]
            assert now.get(id) in written, id
        with Collection.open(folder, encoder=encoder) as collection:
            assert collection.verify() == []
            for mode in ("dense", "lexical"):
                hits = collection.search("battery parcel screen died", k=20, mode=mode, collapse=False)
                assert {hit.id for hit in hits} == set(now), mode

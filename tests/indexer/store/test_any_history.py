"""Any history of writes, by two writers, with kills between: the collection is what a dictionary says it is.

`SONDE_HISTORIES` is the number of histories, 20 unless given. `make soak` tries thousands.
"""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_encoder import FakeEncoder
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sonde.app.api.collection import Collection
from sonde.indexer.document import Document
from sonde.indexer.errors import NothingToIndexError
from sonde.indexer.ingest import BuildSettings, index_documents
from sonde.indexer.store.fields import stored_text

WORDS = ("apple", "river", "cloud", "winter", "letter", "music", "stone", "garden")
IDS = st.lists(st.integers(0, 11).map(str), min_size=1, max_size=8, unique=True)
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
COLUMNS = ("stars", "place", "day")
VALUES = st.dictionaries(
    st.sampled_from(COLUMNS),
    st.one_of(st.integers(0, 5), st.sampled_from(["x", "y"]), st.floats(0, 1)),
)
CONTENTS = st.tuples(TEXTS, VALUES)
MANY = st.dictionaries(st.integers(0, 11).map(str), CONTENTS, min_size=1, max_size=9)
WRITERS = st.integers(0, 1)
MOMENTS = st.floats(0, 0.12)
"""Seconds after which a writer is killed: most writes of this test take less."""

Content = tuple[str, dict[str, Any]]


def document(id: str, content: Content) -> Document:
    return Document(content[0], key=id, metadata=content[1])


def vectors(texts: Sequence[str]) -> np.ndarray:
    return FakeEncoder().encode_texts(list(texts)).astype(np.float16).astype(np.float32)


def is_stored(content: Content, row: dict[str, Any]) -> bool:
    """Say whether a row has this text, these values, each as given or as text, and no other."""
    text, metadata = content
    values = ((metadata.get(name), row.get(name)) for name in COLUMNS)
    return row["text"] == text and all(kept == given or kept == stored_text(given) for given, kept in values)


class Histories(RuleBasedStateMachine):
    """A collection with two open writers, beside the dictionary that it should equal."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="sonde-history-"))
        self.folder = self.place / "c.sonde"
        self.documents: dict[str, Content] = {}
        self.members: dict[str, set[str]] = {}
        """Of each run that exists, by its name: the documents that it must still have."""
        self.judged: dict[str, tuple[str, int]] = {}
        """Text and grade of each judged document: a judgement counts while the text is the same."""

    @initialize(id=st.sampled_from("ab"), content=CONTENTS)
    def begin(self, id: str, content: Content) -> None:
        self.write({id: content})
        self.open = [self.opened(), self.opened()]

    def opened(self) -> Collection:
        return Collection.open(self.folder, encoder=FakeEncoder())  # type: ignore[arg-type]

    def teardown(self) -> None:
        for collection in getattr(self, "open", []):
            collection.close()
        shutil.rmtree(self.place, ignore_errors=True)

    def write(self, contents: dict[str, Content], sync: bool = False, batch: int = 3) -> None:
        given = [document(id, content) for id, content in contents.items()]
        index_documents(given, self.folder, settings=BuildSettings(batch=batch, sync=sync), encoder=FakeEncoder())  # type: ignore[arg-type]
        self.replaced(contents)
        if sync:
            self.gone([id for id in self.documents if id not in contents])

    def replaced(self, contents: dict[str, Content]) -> None:
        """Runs but tags forget a document whose text changes; other metadata leaves it in all of them."""
        for id, content in contents.items():
            if id in self.documents and self.documents[id][0] != content[0]:
                self.forget([id], but=("odd",))
            self.documents[id] = content

    def gone(self, ids: Sequence[str]) -> None:
        self.forget(ids)
        for id in ids:
            del self.documents[id]

    def forget(self, ids: Sequence[str], but: Sequence[str] = ()) -> None:
        for name, members in self.members.items():
            if name not in but:
                members.difference_update(ids)

    @rule(contents=MANY, batch=st.integers(1, 9))
    def index(self, contents: dict[str, Content], batch: int) -> None:
        self.write(contents, batch=batch)

    @rule(contents=MANY)
    def sync(self, contents: dict[str, Content]) -> None:
        self.write(contents, sync=True)

    @rule()
    def nothing(self) -> None:
        with suppress(NothingToIndexError):
            index_documents([], self.folder, settings=BuildSettings(sync=True), encoder=FakeEncoder())  # type: ignore[arg-type]

    @rule(who=WRITERS, id=st.integers(0, 11).map(str), content=TEXTS)
    def put(self, who: int, id: str, content: str) -> None:
        self.open[who].put([{"id": id, "text": content}])
        self.replaced({id: (content, {})})

    @rule(who=WRITERS, ids=IDS)
    def delete(self, who: int, ids: list[str]) -> None:
        present = [id for id in ids if id in self.documents][: len(self.documents) - 1]
        if present:
            assert self.open[who].delete(present) == len(present)
            self.gone(present)

    @rule(who=WRITERS, ids=IDS)
    def tag(self, who: int, ids: list[str]) -> None:
        present = [id for id in ids if id in self.documents]
        if present:
            self.open[who].tag("odd", ids=present, change="new" if "odd" not in self.members else "add")
            self.members.setdefault("odd", set()).update(present)

    @rule(who=WRITERS, id=IDS, grade=st.integers(0, 1))
    def judge(self, who: int, id: list[str], grade: int) -> None:
        if id[0] in self.documents:
            self.open[who].judge("apple", id[0], grade)
            self.judged[id[0]] = (self.documents[id[0]][0], grade)

    @precondition(lambda self: len(self.documents) >= 4)
    @rule(who=WRITERS)
    def cluster(self, who: int) -> None:
        self.open[who].cluster("clusters", k=2, replace=True)
        self.members["clusters"] = set(self.documents)

    @rule(who=WRITERS)
    def label(self, who: int) -> None:
        self.open[who].label(["apple", "river"], name="words", engine="similarity", replace=True)
        self.members["words"] = set(self.documents)

    @rule(who=WRITERS)
    def compact(self, who: int) -> None:
        self.open[who].compact()

    @rule(who=WRITERS)
    def repair(self, who: int) -> None:
        self.open[who].repair()

    @rule(who=WRITERS)
    def reopen(self, who: int) -> None:
        self.open[who].close()
        self.open[who] = self.opened()

    @rule(contents=MANY, moment=MOMENTS)
    def killed_while_it_indexes(self, contents: dict[str, Content], moment: float) -> None:
        before = dict(self.documents)
        self.killed(lambda: self.write(contents, batch=2), moment)
        for id, row in self.stored().items():
            if id in contents and is_stored(contents[id], row):
                self.replaced({id: contents[id]})
            else:
                assert is_stored(before[id], row), id
        assert set(before) <= set(self.documents)

    @rule(ids=IDS, moment=MOMENTS)
    def killed_while_it_deletes(self, ids: list[str], moment: float) -> None:
        present = [id for id in ids if id in self.documents][: len(self.documents) - 1]
        if present:
            self.killed(lambda: self.opened().delete(present), moment)
            left = [id for id in present if id in self.stored()]
            assert left in ([], present)
            if not left:
                self.gone(present)

    @precondition(lambda self: len(self.documents) >= 4)
    @rule(moment=MOMENTS, how=st.sampled_from(["compact", "repair", "cluster", "tag"]))
    def killed_while_it_works(self, moment: float, how: str) -> None:
        calls: dict[str, Callable[[], object]] = {
            "compact": lambda: self.opened().compact(),
            "repair": lambda: self.opened().repair(),
            "cluster": lambda: self.opened().cluster("clusters", k=2, replace=True),
            "tag": lambda: self.opened().tag("odd", ids=list(self.documents), change="replace"),
        }
        self.killed(calls[how], moment)
        name = {"cluster": "clusters", "tag": "odd"}.get(how)
        if name and self.run_members().get(name, set()) == set(self.documents):
            self.members[name] = set(self.documents)

    def killed(self, call: Callable[[], object], moment: float) -> None:
        """Run a call in a child, and kill it there."""
        child = os.fork()
        if child == 0:
            with suppress(BaseException):
                call()
            os._exit(0)
        time.sleep(moment)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    def stored(self) -> dict[str, dict[str, Any]]:
        return {row["id"]: row for row in self.opened().rows()}

    def run_members(self) -> dict[str, set[str]]:
        collection = self.opened()
        found = {}
        for run in collection.runs():
            with collection.stored.view() as view:
                docs = view.catalog.connection.execute("SELECT doc FROM run_documents WHERE run = ?", (run.number,))
                keys = dict(view.catalog.connection.execute("SELECT doc, key FROM documents"))
                found[run.name] = {keys[doc] for (doc,) in docs}
        return found

    @invariant()
    def is_what_the_dictionary_says(self) -> None:
        if not self.documents:
            return
        for collection in self.open:
            rows = {row["id"]: row for row in collection.rows()}
            assert set(rows) == set(self.documents)
            assert [id for id, content in self.documents.items() if not is_stored(content, rows[id])] == []

    @invariant()
    def runs_have_their_members(self) -> None:
        if self.documents:
            assert {name: ids for name, ids in self.run_members().items() if ids} == {
                name: ids for name, ids in self.members.items() if ids
            }

    @invariant()
    def judgements_count_while_texts_are_the_same(self) -> None:
        if self.documents:
            now = {id: text for id, (text, _) in self.documents.items()}
            kept = {each.id: each.grade for each in self.open[0].judgements().kept}
            assert kept == {id: grade for id, (text, grade) in self.judged.items() if now.get(id) == text}

    @invariant()
    def searches_are_exact(self) -> None:
        if not self.documents:
            return
        ids = list(self.documents)
        truth = vectors([text for text, _ in self.documents.values()]) @ FakeEncoder().encode_texts(["apple river"])[0]
        found = self.open[1].search("apple river", k=20, mode="dense", collapse=False)
        assert {hit.id: hit.score for hit in found} == pytest.approx(
            dict(zip(ids, truth.tolist(), strict=True)), abs=2e-3
        )

    @invariant()
    def is_sound(self) -> None:
        if self.documents:
            assert [finding for finding in self.opened().verify() if finding.part not in ("ann", "lexical")] == []


Histories.TestCase.settings = settings(
    max_examples=int(os.environ.get("SONDE_HISTORIES", "12")),
    stateful_step_count=12,
    deadline=None,
    print_blob=True,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # shrinking a history takes minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestHistories = Histories.TestCase

"""Whatever others write between the turns of a run, the collection has what both wrote."""

import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder
from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.app.api import Collection
from sonde.indexer.document import Document
from sonde.indexer.ingest import BuildSettings, index, index_documents, run
from sonde.indexer.store.catalog import Catalog

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

        def others(folder: Path, _: object) -> None:
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

"""What a collection holds after any history is what a fresh build of the final documents holds."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_line import contents, problems
from fake_encoder import WINDOW, FakeEncoder
from hypothesis import given, settings
from hypothesis import strategies as st
from stored import index, opened

from sonde.indexer.document import Document, Skipped
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.ingest import BuildSettings, index_documents
from sonde.indexer.ingest.plan import unfit
from sonde.indexer.upkeep.delete import compact
from sonde.pipelines.search.settings import MODES

LONG = ". ".join(f"Sentence number {n} speaks about apples, rivers and thing{n}" for n in range(30)) + "."
TEXTS = ("apple", "river stone", "apple river", "the silver garden", "music of the planet", LONG, "  apple\n")
KEYS = tuple("abcdef")

Rows = list[dict[str, object]]
Found = list[list[tuple[str, float, tuple[int, int]]]]


def state(folder: Path) -> tuple[Rows, Found]:
    """Everything that a user sees: documents with metadata, and all hits of all modes with scores and offsets."""
    with closing(opened(folder)) as collection:
        rows = sorted(collection.rows(), key=lambda row: row["id"])
        hits = [
            collection.search(query, k=100, mode=mode, collapse=False)
            for query in ("apple", "silver river thing7", "music")
            for mode in MODES
        ]
    found = [sorted((h.id, round(h.score, 3), (h.passage.start, h.passage.end)) for h in results) for results in hits]
    return [{name: value for name, value in row.items() if value is not None} for row in rows], found


documents = st.builds(
    lambda key, text, title, year, lang: Document(text, title, key, {"year": year, "name": title}, lang),
    st.sampled_from(KEYS),
    st.sampled_from(TEXTS),
    st.sampled_from(("", "A title", "river")),
    st.sampled_from((1999, 2020, None)),
    st.sampled_from((None, "en", "de")),
)


@dataclass(frozen=True)
class Step:
    """One run: what it does, and to which documents."""

    kind: str
    documents: list[Document]


steps = st.lists(
    st.builds(
        Step, st.sampled_from(("index", "sync", "delete", "reorder", "compact")), st.lists(documents, max_size=6)
    ),
    min_size=1,
    max_size=5,
)


def apply(step: Step, folder: Path, held: dict[str, Document]) -> dict[str, Document]:
    """Do to the collection what is done to the dictionary `held`."""
    given = {document.key or "": document for document in step.documents}
    if step.kind in ("index", "sync"):
        if not given:
            return held
        index(step.documents, folder, sync=step.kind == "sync")
        return given if step.kind == "sync" else held | given
    if step.kind == "delete":
        gone = [key for key in given if key in held]
        if gone:
            assert opened(folder).delete(gone) == len(gone)
        return {key: document for key, document in held.items() if key not in gone}
    if step.kind == "reorder" and held:
        report, embedded = index(list(held.values())[::-1], folder)
        assert (report.unchanged, report.changed, embedded) == (len(held), False, 0)
    if step.kind == "compact" and (folder / "catalog.db").exists():
        compact(folder)
        with closing(opened(folder)) as collection:
            assert collection.info().tombstones == 0
    return held


@pytest.mark.long
@settings(max_examples=15)
@given(steps)
def test_any_history_ends_like_a_fresh_build(history: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, fresh = Path(name) / "c.sonde", Path(name) / "fresh.sonde"
        held: dict[str, Document] = {}
        index([Document("apple", key="z")], folder)
        held = {"z": Document("apple", key="z")}
        for step in history:
            held = apply(step, folder, held)
        assert problems(folder) == []
        if held:
            index(list(held.values()), fresh, batch=None)
            assert state(folder) == state(fresh)
            report, embedded = index(list(held.values()), folder)
            assert (report.unchanged, report.changed, embedded) == (len(held), False, 0)
        else:
            assert state(folder)[0] == []


def made(count: int = 10) -> list[Document]:
    return [Document(f"text number {n}", key=str(n), metadata={"year": 2000 + n}) for n in range(count)]


def test_a_rerun_embeds_nothing_and_advances_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    first, embedded = index(made(), folder)
    assert (first.added, first.replaced, first.unchanged, first.deleted, embedded) == (10, 0, 0, 0, 10)
    before, generation = contents(folder), opened(folder).info().generation
    for documents, sync in ((made(), False), (made()[::-1], True), (made(3), False)):
        report, embedded = index(documents, folder, sync=sync)
        assert (report.added, report.replaced, report.unchanged, report.deleted, embedded) == (
            0,
            0,
            len(documents),
            0,
            0,
        )
        assert not report.changed
    assert contents(folder) == before and opened(folder).info().generation == generation


def test_only_what_changed_is_embedded(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    index(made(), folder)
    changed = made()
    changed[4] = Document("another text", key="4", metadata={"year": 2004})
    report, embedded = index([*changed, Document("new", key="10")], folder)
    assert (report.added, report.replaced, report.unchanged, embedded) == (1, 1, 9, 2)
    assert opened(folder).info().tombstones == 1
    report, embedded = index(made(), folder)
    assert (report.replaced, embedded, report.reused) == (1, 0, 1)  # the old text's vector is still there


def test_sync_deletes_what_vanished(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    index(made(), folder)
    report, embedded = index([*made(4), Document("new", key="n")], folder, sync=True)
    assert (report.added, report.unchanged, report.deleted, embedded) == (1, 4, 6, 1)
    assert {row["id"] for row in opened(folder).rows()} == {"0", "1", "2", "3", "n"}
    assert opened(folder).info().tombstones == 6
    assert compact(folder).removed == 6
    assert problems(folder) == []


def test_no_document_gets_the_number_of_a_deleted_one(tmp_path: Path) -> None:
    """Runs keep arrays of document numbers, in which a new document must not look like an old one."""
    folder = tmp_path / "c.sonde"

    def numbers() -> dict[str, int]:
        with opened(folder).stored.view() as view:
            return {key: view.document_number(key) or 0 for key in ("0", "2", "3", "new", "newer")}

    index(made(4), folder)
    before = numbers()
    opened(folder).delete(["3"])
    index([Document("another text", key="new")], folder)
    assert numbers() == before | {"3": 0, "new": before["3"] + 1}
    opened(folder).delete(["new", "2"])
    index([Document("yet another", key="newer"), Document("changed", key="0")], folder)
    assert numbers() == before | {"2": 0, "3": 0, "newer": before["3"] + 2}
    assert problems(folder) == []


def test_sync_deletes_most_documents_only_if_told_so(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    index(made(50), folder)
    said = (
        r"26 of the 50 documents of the collection are not in the source, so nothing was deleted \(added: 1 document\)"
    )
    with pytest.raises(UsageError, match=said):
        index([*made(24), Document("new", key="n")], folder, sync=True)
    assert len(opened(folder)) == 51
    assert index(made(26), folder, sync=True)[0].deleted == 25
    assert index(made(1), folder, sync=True, delete_most=True)[0].deleted == 25


@pytest.mark.parametrize("source", [[], [Document(" ", key="1")], [Skipped("row 1", "broken")]])
def test_sync_with_nothing_deletes_nothing(tmp_path: Path, source: list[Document | Skipped]) -> None:
    folder = tmp_path / "c.sonde"
    index(made(), folder)
    with pytest.raises(SondeError, match="nothing to index"):
        index(source, folder, sync=True)
    assert len(opened(folder)) == 10


def test_a_change_of_metadata_embeds_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    index(made(), folder)
    changed = [Document(d.text, key=d.key, metadata={"year": 1, "new": True}) for d in made()]
    report, embedded = index(changed, folder)
    assert (report.replaced, embedded, report.reused) == (10, 0, 0)
    assert opened(folder).info().tombstones == 0
    assert all(row["year"] == 1 and row["new"] is True for row in opened(folder).rows())
    report, _ = index([Document(d.text, key=d.key) for d in made()], folder)
    assert report.replaced == 10
    assert all(row["year"] is None and row["new"] is None for row in opened(folder).rows())


def test_one_text_under_two_ids_is_two_documents(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    report, embedded = index([Document("same", key="a"), Document("same", key="b")], folder)
    assert (report.added, embedded, report.reused) == (2, 1, 1)
    assert [hit.id for hit in opened(folder).search("same", mode="dense", collapse=False)] == ["a", "b"]
    opened(folder).delete(["a"])
    assert [hit.id for hit in opened(folder).search("same", collapse=False)] == ["b"]


def test_texts_without_ids_that_occur_twice_stay_two_documents(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    source = [Document("same"), Document("other"), Document("same"), Document("same"), Document("last")]
    report, embedded = index(source, folder, batch=2)
    assert (report.added, embedded, len(opened(folder))) == (5, 3, 5)
    before = contents(folder)
    for again in (source, source[::-1]):
        report, embedded = index(again, folder, batch=2)
        assert (report.unchanged, report.changed, embedded) == (5, False, 0)
    assert contents(folder) == before
    report, _ = index(source[1:], folder, sync=True)
    assert (report.unchanged, report.deleted) == (4, 1)


def test_vectors_survive_new_ids(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    index(made(), folder)
    renamed = [Document(d.text, key=f"new-{d.key}", metadata=d.metadata) for d in made()]
    report, embedded = index(renamed, folder, sync=True)
    assert (report.added, report.deleted, report.reused, embedded) == (10, 10, 10, 0)
    assert problems(folder) == []
    best = opened(folder).search("text number 7", k=1, mode="lexical")[0]
    assert best.id == "new-7"


def test_duplicate_ids_the_last_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    source = [Document(f"version {n}", key=str(n % 2)) for n in range(7)]
    report, _ = index(source, folder, batch=3)
    assert (report.added, report.replaced, report.duplicate_ids) == (2, 0, 5)
    assert {row["id"]: row["text"] for row in opened(folder).rows()} == {"0": "version 6", "1": "version 5"}
    report, embedded = index(source, folder, batch=100)
    assert (report.unchanged, report.duplicate_ids, report.changed, embedded) == (2, 5, False, 0)
    index(source, folder, batch=2)
    assert {row["id"]: row["text"] for row in opened(folder).rows()} == {"0": "version 6", "1": "version 5"}
    assert problems(folder) == []


def test_skipped_rows_are_in_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    broken = [Skipped(f"row {n}", "broken") for n in range(30)]
    report, _ = index([Document("good", key="1"), *broken, Document("\0", origin="row 31"), Document("")], folder)
    assert (report.added, report.skipped, len(report.skipped_rows)) == (1, 32, 20)
    assert report.skipped_file == folder / "skipped.jsonl"
    rows = [json.loads(line) for line in (folder / "skipped.jsonl").read_text().splitlines()]
    assert rows[:2] == [{"origin": "row 0", "reason": "broken"}, {"origin": "row 1", "reason": "broken"}]
    assert rows[30:] == [
        {"origin": "row 31", "reason": "the text contains a NUL byte"},
        {"origin": "", "reason": "the text is empty"},
    ]
    report, _ = index([Document("good", key="1"), broken[5]], folder)
    assert report.skipped_file is not None and report.skipped_file.read_text().count("\n") == 1
    report, _ = index([Document("good", key="1")], folder)
    assert report.skipped_file is None and not (folder / "skipped.jsonl").exists()


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (Document("good \ud800"), "the text holds half a surrogate pair at character 6"),
        (Document("good text", "a \ud800 title"), "the title holds half a surrogate pair at character 3"),
        (Document("good text", key="4\ud800"), "the id holds half a surrogate pair at character 2"),
        (Document("good text", "a\0title"), "the title contains a NUL byte"),
    ],
)
def test_a_skipped_document_names_the_part_that_is_wrong(document: Document, reason: str) -> None:
    assert unfit(document) == reason


def paragraphs() -> Iterator[str]:
    for number in range(12):
        yield f"Paragraph {number} begins here. It goes on about topic{number} for some time. " + LONG[number * 7 :]


def test_long_documents_are_found_by_their_best_passage(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    texts = ["\n\n".join(paragraphs()), "A short one about topic5.", "\n".join(reversed(list(paragraphs())))]
    report, embedded = index([Document(text, f"title {n}", key=str(n)) for n, text in enumerate(texts)], folder)
    assert embedded > 30 and report.cut_tokens == 0
    collection = opened(folder)
    for mode in MODES:
        hits = collection.search("topic5", k=3, mode=mode, collapse=False)
        assert len({hit.id for hit in hits}) == len(hits) == 3
        for hit in hits:
            assert hit.text == texts[int(hit.id)]
            assert hit.text[hit.passage.start : hit.passage.end] == hit.passage.text
            assert "topic5" in hit.passage.text
            assert len(hit.passage.text.split()) <= WINDOW
    with collection.stored.view() as view:
        for doc, text in enumerate(texts, 1):
            spans = [(p.start, p.end) for p in view.passages(view.rows_of(doc)).values()]
            held = {place for start, end in spans for place in range(start, end)}
            assert all(place in held or text[place].isspace() for place in range(len(text)))


def test_a_title_alone_is_a_document(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    index([Document("", "Only a title", key="1"), Document(" \n", "Another", key="2")], folder)
    for mode in MODES:
        hit = opened(folder).search("only a title", k=1, mode=mode)[0]
        assert (hit.id, hit.passage.text) == ("1", "")
    assert problems(folder) == []


def test_a_failing_source_keeps_what_was_committed(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"

    def source() -> Iterator[Document]:
        yield from made(7)
        raise RuntimeError("the network is gone")

    chosen = BuildSettings(batch=3, language="en")
    with pytest.raises(RuntimeError, match="the network is gone"):
        index_documents(source(), folder, settings=chosen, encoder=FakeEncoder())  # type: ignore[arg-type]
    assert len(opened(folder)) == 6 and problems(folder) == []
    report, embedded = index(made(), folder)
    assert (report.added, report.unchanged, embedded) == (4, 6, 4)

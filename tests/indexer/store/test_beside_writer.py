"""Readers beside a writer: no error, never half a batch; and a folder that is replaced while it is open."""

import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import problems
from fake_encoder import FakeEncoder
from written_meanwhile import BATCH, PAIRS, pairs

from sonde.app.api import Collection
from sonde.app.api import index as index_rows
from sonde.indexer.document import Document
from sonde.indexer.errors import SondeError
from sonde.indexer.ingest import BuildSettings, index_documents
from sonde.indexer.store import export
from sonde.indexer.store.collection import StoredCollection
from sonde.indexer.store.documents import document_numbers
from sonde.indexer.store.export import part_of, rows, write_export
from sonde.indexer.upkeep.delete import compact
from sonde.pipelines.analysis.selections import delete
from sonde.pipelines.search.results import NOT_CLOSE, NOTHING_ANSWERS, Mode
from sonde.pipelines.search.search import search
from sonde.pipelines.search.settings import MODES, SearchSettings

RUNNER = Path(__file__).parents[2] / "support" / "written_meanwhile.py"
ALL = 2 * PAIRS


def index(documents: Iterator[Document], folder: Path, **settings: bool) -> None:
    index_documents(documents, folder, settings=BuildSettings(batch=BATCH, **settings), encoder=FakeEncoder())  # type: ignore[arg-type]


def whole(ids: list[str]) -> bool:
    return set(Counter(key.split("-")[0] for key in ids).values()) <= {2}


def check_search(collection: StoredCollection, mode: Mode, where: str | None) -> set[int]:
    """Search for a word that every document has; return the versions that were found."""
    settings = SearchSettings(k=ALL, mode=mode, where=where, collapse=False)
    results = search(collection, "apples", settings)
    # The vectors of these tests mean nothing, so neither does their relevance.
    assert [note for note in results.notes if not note.startswith((NOTHING_ANSWERS, NOT_CLOSE))] == []
    assert whole([hit.id for hit in results]), [hit.id for hit in results]
    by_pair: dict[object, set[object]] = {}
    for hit in results:
        by_pair.setdefault(hit.metadata["number"], set()).add(hit.metadata["version"])
        assert f"version{hit.metadata['version']} " in hit.text
        assert hit.text[hit.passage.start : hit.passage.end] == hit.passage.text
    assert all(len(versions) == 1 for versions in by_pair.values()), by_pair
    return {int(str(version)) for versions in by_pair.values() for version in versions}


@pytest.mark.long
def test_searches_all_through_an_update(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    index(pairs(0), folder)
    collection = StoredCollection.open(folder, encoder=FakeEncoder())  # type: ignore[arg-type]
    process = subprocess.Popen([sys.executable, str(RUNNER), str(folder)], stderr=subprocess.PIPE)
    seen: set[int] = set()
    generations: set[int] = set()
    searches = 0
    while process.poll() is None:
        for mode in MODES:
            for where in (None, "number < 50"):
                seen |= check_search(collection, mode, where)
                searches += 1
        with collection.view() as view:
            generations.add(view.generation.number)
            assert view.catalog.counts()[0] % 2 == 0
            assert view.catalog.counts()[1] == view.generation.alive.sum()
        assert whole([row["id"] for row in rows(collection)])
    assert process.stderr is not None
    assert process.returncode == 0, process.stderr.read().decode()
    assert seen == {0, 1, 2}
    assert len(generations) > 5 and searches > 30
    assert check_search(collection, "hybrid", None) == {2}
    assert problems(folder) == []


@pytest.mark.long
def test_threads_that_share_a_collection_beside_a_writer(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    index(pairs(0), folder)
    collection = StoredCollection.open(folder, encoder=FakeEncoder())  # type: ignore[arg-type]
    process = subprocess.Popen([sys.executable, str(RUNNER), str(folder)], stderr=subprocess.PIPE)
    failures: list[BaseException] = []

    def read(mode: Mode) -> None:
        try:
            while process.poll() is None:
                check_search(collection, mode, "number >= 0")
        except BaseException as error:
            failures.append(error)
        finally:
            collection.close()

    threads = [threading.Thread(target=read, args=(mode,)) for mode in MODES * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    process.communicate()
    if failures:
        raise failures[0]


def counted(collection: StoredCollection, mode: Mode, query: str) -> int:
    return len(search(collection, query, SearchSettings(k=ALL, mode=mode, collapse=False)))


@pytest.mark.parametrize("mode", MODES)
def test_what_is_new_is_seen_without_opening_again(tmp_path: Path, mode: Mode) -> None:
    folder = tmp_path / "c.sonde"
    index(pairs(0, 0, 5), folder)
    collection = StoredCollection.open(folder, encoder=FakeEncoder())  # type: ignore[arg-type]
    assert counted(collection, mode, "apples") == 10
    index(pairs(0, 5, 9), folder)
    assert counted(collection, mode, "apples") == 18
    index(pairs(1, 0, 9), folder)
    assert {
        str(hit.metadata["version"])
        for hit in search(collection, "version1", SearchSettings(k=18, mode=mode, collapse=False))
    } == {"1"}
    delete(StoredCollection.open(folder, encoder=FakeEncoder()), where="number < 2")  # type: ignore[arg-type]
    assert counted(collection, mode, "apples") == 14
    compact(folder)
    assert counted(collection, mode, "apples") == 14
    index(pairs(2, 0, 3), folder, sync=True)
    assert counted(collection, mode, "apples") == 6
    fresh = StoredCollection.open(folder, encoder=FakeEncoder())  # type: ignore[arg-type]
    settings = SearchSettings(k=6, mode=mode, collapse=False)
    scores = [[(hit.id, hit.score) for hit in search(c, "pair1 apples", settings)] for c in (collection, fresh)]
    assert scores[0] == scores[1]


def test_a_reader_that_looks_between_two_commits_of_a_run(tmp_path: Path) -> None:
    """Whatever is committed is found in every mode at once, also by a reader that looks at that very moment."""
    folder = tmp_path / "c.sonde"
    index(pairs(0, 0, 5), folder)
    collection = StoredCollection.open(folder, encoder=FakeEncoder())  # type: ignore[arg-type]
    found: list[list[int]] = []

    def changed() -> Iterator[Document]:
        for document in pairs(1, 0, 60):
            yield document
            if len(found) < 40:
                with collection.view():  # the writer's thread commits meanwhile
                    found.append([counted(collection, mode, "apples") for mode in MODES])

    index(changed(), folder)
    assert all(len(set(counts)) == 1 and counts[0] >= 10 and counts[0] % 2 == 0 for counts in found), found
    assert [counted(collection, mode, "apples") for mode in MODES] == [120] * 3


def test_a_view_stays_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    index(pairs(0, 0, 5), folder)
    collection = StoredCollection.open(folder, encoder=FakeEncoder())  # type: ignore[arg-type]
    with collection.view() as view:
        index(pairs(1, 0, 9), folder)
        compact(folder)
        assert view.catalog.counts()[0] == 10
        for mode in MODES:
            hits = search(collection, "apples", SearchSettings(k=ALL, mode=mode, collapse=False))
            assert {str(hit.metadata["version"]) for hit in hits} == {"0"} and len(hits) == 10
    assert counted(collection, "lexical", "apples") == 18


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".parquet"])
def test_a_column_that_a_writer_adds_during_an_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """The names of the columns are read before the rows, which then had a column more."""
    index(pairs(0, 0, 5), tmp_path / "c.sonde")
    collection = StoredCollection.open(tmp_path / "c.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    real = export.column_names

    def overtaken(*given: Any) -> dict[str, str]:
        monkeypatch.setattr(export, "column_names", real)
        index(iter([Document("a red apple", key="x", metadata={"colour": "red"})]), tmp_path / "c.sonde")
        return real(*given)

    monkeypatch.setattr(export, "column_names", overtaken)
    assert write_export(collection, tmp_path / f"out{suffix}") == 10
    assert next(rows(collection))["colour"] is None


def test_a_page_of_documents_reads_the_numbers_once(tmp_path: Path) -> None:
    index(pairs(0, 0, 5), tmp_path / "c.sonde")
    collection = StoredCollection.open(tmp_path / "c.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    every = [row["id"] for row in rows(collection)]
    calls = list[object]()
    choose = part_of(2, 3, lambda catalog: calls.append(catalog) or document_numbers(catalog))
    assert [row["id"] for row in rows(collection, choose=choose)] == every[2:5]
    assert len(calls) == 1


OLD = [{"id": f"old-{number}", "text": f"letter stone {number}"} for number in range(5)]
NEW = [{"id": f"new-{number}", "text": f"winter cloud {number}"} for number in range(7)]


@pytest.fixture(params=[None, 2], ids=["one", "sharded"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Two collections, `c.sonde` with old documents and `n.sonde` with new ones."""
    encoder: Any = FakeEncoder()
    for name, source in (("c", OLD), ("n", NEW)):
        index_rows(source, tmp_path / f"{name}.sonde", encoder=encoder, shards=request.param).close()
    return tmp_path


def opened(folder: Path) -> Collection:
    return Collection.open(folder / "c.sonde", loader=lambda *_, **__: FakeEncoder())  # type: ignore[arg-type]


def moved(folder: Path) -> None:
    (folder / "c.sonde").rename(folder / "o.sonde")
    (folder / "n.sonde").rename(folder / "c.sonde")


def copied(folder: Path) -> None:
    shutil.rmtree(folder / "c.sonde")
    shutil.copytree(folder / "n.sonde", folder / "c.sonde")


def test_a_folder_that_was_away_for_a_moment_is_read_again(pair: Path) -> None:
    """What was asked in between left a closed connection behind: every later search failed until a restart."""
    collection = opened(pair)
    before = [hit.id for hit in collection.search("letter", k=9)]
    for _ in range(2):
        (pair / "c.sonde").rename(pair / "away.sonde")
        for ask in (lambda: collection.search("letter"), lambda: len(collection), collection.info):
            with pytest.raises(SondeError, match=r"c\.sonde"):
                ask()
        (pair / "away.sonde").rename(pair / "c.sonde")
        assert [hit.id for hit in collection.search("letter", k=9)] == before
    (pair / "c.sonde").rename(pair / "away.sonde")
    with pytest.raises(SondeError, match=r"c\.sonde"):
        len(collection)
    (pair / "n.sonde").rename(pair / "c.sonde")
    assert {hit.id for hit in collection.search("winter", k=9)} == {row["id"] for row in NEW}


@pytest.mark.parametrize("replace", [moved, copied])
def test_the_new_collection_is_read_and_written(pair: Path, replace: Any) -> None:
    """The old documents were found for ever, and clusters of the old embeddings were stored with the new documents."""
    collection = opened(pair)
    assert {hit.id for hit in collection.search("letter", k=9)} <= {row["id"] for row in OLD}
    replace(pair)
    assert len(collection) == 7
    assert {hit.id for hit in collection.search("winter", k=9)} == {row["id"] for row in NEW}
    collection.put([{"id": "more", "text": "winter garden"}])
    assert collection.get("more").text == "winter garden"
    collection.cluster("groups", k=2)
    assert {row["id"] for row in collection.rows() if row["cluster:groups"] is not None} == {
        *(row["id"] for row in NEW),
        "more",
    }
    assert collection.verify() == []
    if replace is moved:
        old = Collection.open(pair / "o.sonde", loader=lambda *_, **__: FakeEncoder())  # type: ignore[arg-type]
        assert (len(old), old.verify(), old.runs()) == (5, [], [])


def test_what_was_made_of_the_old_one_is_not_stored_in_the_new_one(pair: Path) -> None:
    collection = opened(pair)
    with collection.stored.view():
        moved(pair)
    said = r"c.sonde was replaced by another collection: run the same command again"
    with pytest.raises(SondeError, match=said), collection.stored.writing():
        pass
    assert collection.verify() == [] and len(collection) == 7

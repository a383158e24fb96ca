"""The late index of a collection: what it covers, what changes keep it in step, damage, and kills."""

import itertools
import shutil
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from fake_encoder import FakeEncoder
from forked import Forked
from kill_corpus import BATCH, COUNT, documents
from thinned import thinned

from sonde.app.api.collection import Collection, index
from sonde.indexer.document import Document
from sonde.indexer.errors import SondeError
from sonde.indexer.ingest import late
from sonde.indexer.late import LateIndex, LateWriter, key
from sonde.indexer.late.writer import due
from sonde.indexer.progress import Notice, Progress
from sonde.indexer.store.collection import StoredCollection
from sonde.indexer.store.lock import Patience, is_awaited, patience
from sonde.indexer.upkeep.delete import compact

RUNNER = Path(__file__).parents[2] / "support" / "killed_run.py"
QUERIES = ("apple river cloud", "a late arrival about music", "number 17 winter letter", "the same text again")


def opened(folder: Path, encoder: FakeEncoder | None = None) -> Collection:
    return Collection(StoredCollection.open(folder, encoder=encoder or FakeEncoder()))  # type: ignore[arg-type]


def made(folder: Path, count: int = COUNT, **options: object) -> Collection:
    given = [document for _, document in zip(range(count), documents(), strict=False)]
    return index(given, folder, encoder=FakeEncoder(), batch=BATCH, **options)  # type: ignore[arg-type]


def packed(folder: Path) -> dict[str, list[bytes]]:
    """The pooled tokens of each document's passages, by its id."""
    with closing(opened(folder)) as collection, collection.stored.view() as view:
        rows = np.flatnonzero(view.generation.alive)
        keys = np.array([key(digest) for digest in view.digests(rows.tolist())], np.int64)
        assert view.late is not None
        found = view.late.read(rows, keys)
        names = dict(view.catalog.connection.execute("SELECT doc, key FROM documents").fetchall())
        owners = view.generation.owners
    by_name: dict[str, list[bytes]] = {}
    for row, each in zip(rows.tolist(), found, strict=True):
        by_name.setdefault(names[int(owners[row])], []).append(b"" if each is None else each.tobytes())
    return by_name


def scores(folder: Path) -> list[list[tuple[str, float]]]:
    with closing(opened(folder)) as collection:
        return [
            [(hit.id, round(hit.scores.rerank or 0, 5)) for hit in collection.search(query, k=20, rerank=True)]
            for query in QUERIES
        ]


def covered(folder: Path) -> tuple[int, int]:
    with closing(opened(folder)) as collection:
        found = collection.info().late
    assert found is not None
    return found["covered"], found["passages"]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus of the kill tests with a late index, built during the run."""
    return made(tmp_path_factory.mktemp("late") / "sound.sonde", late=True).path


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "c.sonde"))


def test_built_during_the_run_or_afterwards_is_the_same(sound: Path, tmp_path: Path) -> None:
    collection = made(tmp_path / "afterwards.sonde")
    assert collection.info().late is None
    report = collection.late()
    assert (report.covered, report.embedded) == (report.passages, report.passages)
    assert packed(collection.path) == packed(sound)
    assert all(all(each) for each in packed(sound).values())
    assert collection.late().embedded == 0
    assert collection.verify() == []


def test_a_passage_is_embedded_once_for_both(tmp_path: Path) -> None:
    plain, both = FakeEncoder(), FakeEncoder()
    index(list(documents()), tmp_path / "a.sonde", encoder=plain, batch=BATCH)  # type: ignore[arg-type]
    made = index(list(documents()), tmp_path / "b.sonde", encoder=both, batch=BATCH, late=True)  # type: ignore[arg-type]
    assert plain.embedded == both.embedded
    assert covered(made.path)[0] == covered(made.path)[1] > COUNT
    a, b = (StoredCollection.open(tmp_path / name) for name in ("a.sonde", "b.sonde"))
    with a.view() as one, b.view() as other:
        rows = np.arange(len(one.generation.owners))
        assert (one.generation.segments.read(rows) == other.generation.segments.read(rows)).all()


def test_others_write_between_two_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A put that comes in the middle is stored before the building ends, and its passages are covered too."""
    collection = made(tmp_path / "c.sonde")
    monkeypatch.setattr(late, "AT_ONCE", 8)
    monkeypatch.setattr(late, "ENOUGH", 600)
    order: list[str] = []

    def put() -> None:
        with patience(Patience(20.0)), closing(opened(collection.path)) as other:
            other.put([{"id": "new", "text": "a zebra among the letters"}])
        order.append("put")

    writer = threading.Thread(target=put)

    def told(event: object) -> None:
        if not isinstance(event, Progress) or order or event.done < 100:
            return
        if writer.ident is None:
            writer.start()
        while writer.is_alive() and not is_awaited(collection.path):
            time.sleep(0.01)

    report = collection.late(progress=told)
    order.append("late")
    writer.join()
    assert order == ["put", "late"]
    assert (report.covered, report.embedded) == (report.passages, report.passages - 1)  # the put has embedded its own
    assert "new" in collection and collection.verify() == []
    assert all(all(each) for each in packed(collection.path).values())


def test_later_runs_puts_and_deletes_keep_it_in_step(folder: Path) -> None:
    with closing(opened(folder)) as collection:
        collection.put([{"id": "3", "text": "music in winter"}, {"id": "new", "text": "a silver bridge"}])
        collection.delete(["5"])
        assert covered(folder) == (collection.info().passages,) * 2
        again = [Document("a cloud of paper", key="more"), Document("the same text again", key="copy")]
        index(again, folder, encoder=FakeEncoder())  # type: ignore[arg-type]
        assert covered(folder) == (collection.info().passages,) * 2
        assert collection.verify() == []
    before, kept = scores(folder), packed(folder)
    encoder = FakeEncoder()
    with closing(opened(folder, encoder)) as collection:
        assert collection.compact().removed > 0
        assert collection.verify() == []
    assert (packed(folder), scores(folder), encoder.embedded) == (kept, before, 0)
    assert covered(folder)[0] == covered(folder)[1]
    assert [path.name for path in (folder / "late").iterdir()] == ["2"]


@pytest.mark.long
def test_many_puts_leave_few_files(folder: Path) -> None:
    with closing(opened(folder)) as collection:
        before = packed(folder)
        for number in range(40):
            collection.put([{"id": f"put{number}", "text": f"garden music {number}"}])
        with collection.stored.view() as view:
            assert view.late is not None and len(view.late.info.segments) <= 16
        after = packed(folder)
        assert {name: after[name] for name in before} == before
        assert len({after[f"put{number}"][0] for number in range(40)}) == 40
        assert collection.verify() == []


def test_removed_it_is_gone_and_forgotten(folder: Path) -> None:
    with closing(opened(folder)) as collection:
        assert collection.late(remove=True).covered == 0
        assert collection.info().late is None
        collection.put([{"id": "new", "text": "a silver bridge"}])
    assert not (folder / "late").exists()


def test_too_few_tokens_to_learn_from_wait(tmp_path: Path) -> None:
    said: list[object] = []
    collection = made(tmp_path / "few.sonde", 2)
    collection.late(progress=said.append)
    assert "the late index has too few tokens to learn from" in str(said[-1])
    assert covered(collection.path)[0] == 0 and collection.verify() == []
    assert [hit.id for hit in collection.search("winter", rerank=True)]
    index(list(documents()), collection.path, encoder=FakeEncoder())  # type: ignore[arg-type]
    assert covered(collection.path)[0] == covered(collection.path)[1] > COUNT


def parts(folder: Path) -> Path:
    return folder / "late" / "1"


def flipped(path: Path, place: int, step: int = 1_000_000) -> None:
    data = bytearray(path.read_bytes())
    for each in range(len(data))[place::step]:
        data[each] ^= 0x55
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


DAMAGE: dict[str, Callable[[Path], object]] = {
    "codes flipped": lambda at: flipped(next(at.glob("*.codes.npy")), 200, 100),
    "codes cut": lambda at: cut(next(at.glob("*.codes.npy"))),
    "codes lost": lambda at: next(at.glob("*.codes.npy")).unlink(),
    "codes empty": lambda at: next(at.glob("*.codes.npy")).write_bytes(b""),
    "table flipped": lambda at: flipped(next(at.glob("*.table.npy")), -9),
    "table cut": lambda at: cut(next(at.glob("*.table.npy"))),
    "table lost": lambda at: next(at.glob("*.table.npy")).unlink(),
    "codec flipped": lambda at: flipped(at / "codec.npy", -4),
    "codec lost": lambda at: (at / "codec.npy").unlink(),
    "rarity cut": lambda at: cut(at / "rarity.npy"),
    "info cut": lambda at: cut(at / "info.json"),
    "info of a later version": lambda at: (at / "info.json").write_text(
        (at / "info.json").read_text().replace('"version": 1', '"version": 2')
    ),
    "info deeply nested": lambda at: (at / "info.json").write_text("[" * 100_000),
    "info of another form": lambda at: (at / "info.json").write_text('{"segments": [{"number": -1}]}'),
    "all lost": lambda at: shutil.rmtree(at),
}


@pytest.mark.parametrize("how", thinned([*DAMAGE]))
def test_damage_is_found_told_and_repaired(folder: Path, how: str) -> None:
    expected, before = scores(folder), packed(folder)
    DAMAGE[how](parts(folder))
    with closing(opened(folder)) as collection, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for query in QUERIES:
            assert len(collection.search(query, k=20, rerank=True)) == 20
        told = {str(each.message) for each in caught if issubclass(each.category, Notice)}
        assert len(told) == (how != "all lost"), told
        assert all("late index" in each and "`sonde repair`" in each for each in told)
        findings = collection.verify()
        assert {finding.part for finding in findings} == {"late"}, findings
        assert all("the late index is damaged: " in finding.problem for finding in findings)
        assert any("for the late index" in line for line in collection.repair())
        assert collection.verify() == []
    assert (scores(folder), packed(folder)) == (expected, before)


def test_an_index_of_another_model_is_not_used(folder: Path) -> None:
    with pytest.raises(SondeError, match="made with another model"):
        LateIndex.open(parts(folder), "another")
    assert LateWriter(parts(folder), "another").codec is None


def test_a_link_in_it_is_refused(folder: Path) -> None:
    file = next(parts(folder).glob("*.codes.npy"))
    file.rename(folder.parent / "elsewhere")
    file.symlink_to(folder.parent / "elsewhere")
    with pytest.raises(SondeError, match=r"codes\.npy is a link: a collection holds only its own files"):
        opened(folder)


@pytest.mark.parametrize(
    ("counts", "merged"),
    [([], 0), ([5] * 7, 0), ([5] * 8, 8), ([900] * 7 + [5], 0), ([9000, *[5] * 8], 8), ([600] * 8, 8)],
)
def test_eight_of_one_size_are_merged(counts: list[int], merged: int) -> None:
    assert due(counts) == merged


KILLS = list(itertools.product([4, 9, 14, 20, 27, 35, 44, 60, 80, 110], ["late", "late-index", "late-compact"]))


def killed(phase: str, folder: Path, log: Path, event: int) -> int | None:
    forked = Forked(RUNNER, phase, folder, log, event)
    forked.communicate()
    return forked.returncode


@pytest.mark.parametrize(("event", "phase"), thinned(KILLS))
def test_killed_at_any_file_it_goes_on(sound: Path, tmp_path: Path, phase: str, event: int) -> None:
    folder = tmp_path / "c.sonde"
    if phase == "late":
        made(folder)
    elif phase == "late-compact":
        shutil.copytree(sound, folder)
        opened(folder).delete(["1", "2", "30"])
    undisturbed = Path(shutil.copytree(folder, tmp_path / "other.sonde")) if folder.exists() else sound
    ended = killed(phase, folder, tmp_path / "log", event)
    assert ended in (0, -9)
    if phase == "late-compact":
        for each in (folder, undisturbed):
            compact(each)
    elif phase == "late":
        for each in (folder, undisturbed):
            opened(each).late()
    else:
        made(folder, late=True)
    with closing(opened(folder)) as collection:
        assert collection.verify() == []
    assert covered(folder)[0] == covered(folder)[1]
    assert packed(folder).keys() == packed(undisturbed).keys()
    if phase == "late-compact":
        assert packed(folder) == packed(undisturbed)
    assert near(scores(folder), scores(undisturbed))


def near(ours: list[list[tuple[str, float]]], theirs: list[list[tuple[str, float]]]) -> bool:
    """Whether the scores of documents that both have differ by little: a codec depends on what it was learned from."""
    pairs = [(dict(a), dict(b)) for a, b in zip(ours, theirs, strict=True)]
    return all(len(a.keys() & b.keys()) >= 15 for a, b in pairs) and all(
        abs(a[name] - b[name]) < 0.05 for a, b in pairs for name in a.keys() & b.keys()
    )


def test_batches_cover_every_place_once_and_begin_evenly_spread() -> None:
    for count in (0, 1, 255, 256, 1_500, 5_000):
        found = list(late.in_late_batches(count))
        assert sorted(place for batch in found for place in batch.tolist()) == list(range(count))
        if count > 2_000:
            assert np.diff(found[0]).min() >= count // (4 * late.AT_ONCE)

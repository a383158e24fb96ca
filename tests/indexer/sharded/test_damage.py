"""What a sharded collection of a stranger, or one on a bad disk, may hold: nothing is lost, messages are one line."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_encoder import FakeEncoder
from other_encoder import OtherEncoder, loaded
from resealed import replaced, resealed
from two_ways import TwoWays, rows

from sonde.app.api import Collection, index
from sonde.indexer.errors import SondeError
from sonde.indexer.ingest import BuildSettings
from sonde.indexer.sharded.build import index_sharded
from sonde.indexer.sharded.generations import committed_generation
from sonde.indexer.sharded.layout import ORDER, read_order
from sonde.indexer.small_files import LARGEST
from sonde.indexer.store.models import models_folder
from sonde.pipelines.search.settings import SearchDefaults, store_defaults


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One collection and a sharded one of 40 documents, which are only copied."""
    place = tmp_path_factory.mktemp("sound")
    TwoWays(place, 3).index(rows(40))
    return place


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    """A sharded collection of 40 documents, beside the same as one collection."""
    shutil.copytree(sound, tmp_path, dirs_exist_ok=True)
    return tmp_path / "sharded.sonde"


def opened(folder: Path) -> Collection:
    return Collection.open(folder, loader=loaded)  # type: ignore[arg-type]


def run(folder: Path, given: list[Any]) -> None:
    index_sharded(given, folder, settings=BuildSettings(), encoder=FakeEncoder())  # type: ignore[arg-type]


def folders(folder: Path) -> dict[str, bytes]:
    """What the versions of the shards and of the runs hold."""
    return {str(path): path.read_bytes() for path in folder.rglob("*/*/*") if path.is_file()}


def refused(work: Callable[[], object], *said: str) -> None:
    """What is done says in one line what is wrong."""
    with pytest.raises(SondeError) as raised:
        work()
    assert "\n" not in str(raised.value)
    for part in said:
        assert part in str(raised.value)


OTHERS = ("notes.txt", "Copy of 000001.json", "zz.json", "999999.json.bak", "000001.json~")


def test_other_files_beside_the_generations_change_nothing(folder: Path) -> None:
    """The versions that the newest generation names were removed as if nothing named them."""
    for name in OTHERS:
        (folder / "generations" / name).write_text("mine")
    run(folder, [{"id": "new", "text": "a new document"}])
    run(folder, [{"id": "newer", "text": "another document"}])
    assert (len(opened(folder)), opened(folder).verify()) == (42, [])
    assert all((folder / "generations" / name).read_text() == "mine" for name in OTHERS)


def test_an_older_generation_that_is_damaged_stops_nothing(folder: Path) -> None:
    run(folder, [{"id": "new", "text": "a new document"}])
    (folder / "generations" / "000001.json").write_text("{")
    for number in range(3):
        run(folder, [{"id": f"n{number}", "text": "another document"}])
    assert (len(opened(folder)), opened(folder).verify()) == (44, [])


@pytest.mark.parametrize("more", [0, 1])
def test_a_collection_that_lost_its_generations_is_not_taken_for_a_new_one(folder: Path, more: int) -> None:
    for number in range(more):
        run(folder, [{"id": f"n{number}", "text": "another document"}])
    shutil.rmtree(folder / "generations")
    before = folders(folder)
    said = ("has lost its generations, but not its shards", "restore the collection from a backup")
    refused(lambda: opened(folder), *said)
    refused(lambda: run(folder, rows(3)), *said)
    assert folders(folder) == before


def test_a_newest_generation_that_is_gone_is_noticed(folder: Path) -> None:
    """The collection was then taken for what it had been before its last change."""
    run(folder, [{"id": "new", "text": "a new document"}])
    assert opened(folder).verify() == []
    path = folder / "generations" / "000002.json"
    content = path.read_bytes()
    path.unlink()
    assert len(opened(folder)) == 40
    [finding] = opened(folder).verify()
    assert finding.problem.startswith("generation 1 is the newest, but a shard has a version of a later one: restore")
    path.write_bytes(content)
    assert (len(opened(folder)), opened(folder).verify()) == (41, [])


def test_a_run_that_was_stopped_before_its_commit_has_lost_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("sonde.indexer.sharded.build.commit", lambda *given: refused_now())
        refused(lambda: run(folder, [{"id": "new", "text": "a new document"}]), "stop")
    assert list(folder.glob("shards/*/000002-*"))
    assert (len(opened(folder)), opened(folder).verify()) == (40, [])
    shutil.rmtree(folder / "work")  # by hand: nothing in it was committed
    assert (len(opened(folder)), opened(folder).verify()) == (40, [])
    with monkeypatch.context() as patched:  # another run removes what that one left, and is stopped while it does
        patched.setattr("sonde.indexer.sharded.build.remove_old_versions", lambda *given: refused_now())
        refused(lambda: run(folder, [{"id": "other", "text": "another one"}]), "stop")
    assert (len(opened(folder)), opened(folder).verify()) == (40, [])
    run(folder, [{"id": "other", "text": "another one"}])
    assert (len(opened(folder)), opened(folder).verify()) == (41, [])


def refused_now() -> None:
    raise SondeError("stop")


def test_a_first_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    """It leaves versions that no generation names, too."""
    folder = tmp_path / "c.sonde"

    def stopped(tasks: Any, encoder: Any, notify: Any) -> Any:
        from sonde.indexer.sharded.shard import build_shard

        yield build_shard(tasks[0], encoder)
        raise SondeError("stopped")

    with pytest.raises(SondeError, match="stopped"):
        index_sharded(rows(9), folder, 3, encoder=FakeEncoder(), runner=stopped)  # type: ignore[arg-type]
    assert list(folder.glob("shards/*/000001-*")) and committed_generation(folder) is None
    shutil.rmtree(folder / "work")
    refused(lambda: opened(folder), "its first `sonde index` was stopped")
    run(folder, rows(9))
    assert (len(opened(folder)), opened(folder).verify()) == (9, [])


def numbers_and_texts(value: Any) -> Any:
    """A value of the same type that differs."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{value}x" if isinstance(value, str) else {"x": 1} if value is None else None


@pytest.mark.parametrize("name", ["collection.json", "generations/000002.json"])
def test_every_change_of_a_file_of_the_whole_is_found(folder: Path, name: str) -> None:
    opened(folder).tag("late", where="stars <= 1")
    path = folder / name
    sound = path.read_bytes()
    for key, value in json.loads(sound).items():
        if key in ("format", "sha256"):
            continue
        for changed in (numbers_and_texts(value), None if value is not None else 1):
            path.write_text(json.dumps(json.loads(sound) | {key: changed}))
            refused(lambda: opened(folder), path.name, "is damaged (")
    for place in range(0, len(sound), 7):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 4]) + sound[place + 1 :])
        try:
            assert json.loads(path.read_bytes()).keys() != json.loads(sound).keys() or not opened(folder)
        except (SondeError, ValueError):
            continue
    path.write_bytes(sound)
    assert opened(folder).verify() == []


DEEP = "[" * 100_000
ODD: tuple[tuple[str, str, str], ...] = (
    ("collection.json", '"language": "en"', '"language": 7'),
    ("collection.json", '"language": null', '"language": 7'),
    ("collection.json", '"seed": 0', '"seed": 1.5'),
    ("collection.json", '"query_prompt": ""', '"query_prompt": "\\ud800"'),
    ("collection.json", '"dtype": "float32"', '"dtype": "float99"'),
    ("generations/000001.json", '"number": 1', '"number": 999999'),
    ("generations/000001.json", '"indexed": 1', f'"indexed": {2**63}'),
    ("generations/000001.json", '"indexed": 1', '"indexed": 2'),
    ("generations/000001.json", '"read": 40', f'"read": {2**63 - 1}'),
    ("generations/000001.json", '"tombstones": 0', '"tombstones": -1'),
    ("generations/000001.json", '"tombstones": 0', '"tombstones": 1e999'),
)


@pytest.mark.parametrize(("name", "old", "new"), ODD)
def test_odd_values_of_a_stranger_are_one_line(folder: Path, name: str, old: str, new: str) -> None:
    if old not in (folder / name).read_text():
        assert "language" in old
        return
    replaced(folder / name, old, new)
    refused(lambda: opened(folder), "is damaged (")
    refused(lambda: run(folder, rows(2)), "is damaged (")


@pytest.mark.parametrize("name", ["collection.json", "generations/000001.json"])
def test_files_that_are_deep_or_huge_are_one_line(folder: Path, name: str) -> None:
    (folder / name).write_text(DEEP)
    refused(lambda: opened(folder), "is damaged (ValueError: it is nested too deeply)")
    os.truncate(folder / name, 3 * 10**9)  # takes no space, until somebody reads it
    refused(lambda: opened(folder), f"is damaged (it is larger than {LARGEST:,} bytes)")
    refused(lambda: run(folder, rows(2)), f"is damaged (it is larger than {LARGEST:,} bytes)")


@pytest.mark.parametrize(
    "note", [b'{"pid": 1e999, "since": "x"}', b"9" * 400, DEEP.encode(), b'{"pid": "x"}', b"[]", b"\xff"]
)
def test_a_note_about_the_writer_that_is_none(folder: Path, note: bytes) -> None:
    (folder / "writer.json").write_bytes(note)
    assert len(opened(folder)) == 40
    run(folder, [{"id": "new", "text": "a new document"}])
    assert len(opened(folder)) == 41


def orders(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"shards/*/*/{ORDER}"))


def test_an_order_that_was_changed_never_gets_a_new_digest(folder: Path) -> None:
    """The next run took it over, and `verify` then found nothing."""
    documents = [each | {"text": "changed"} for each in rows(40)]
    for path in orders(folder):
        content = path.read_bytes()
        path.write_bytes(content[:-40] + bytes([content[-40] ^ 1]) + content[-39:])
        refused(lambda: opened(folder), f"{ORDER} is damaged (its content does not match its digest)")
        refused(
            lambda: run(folder, [each | {"text": "changed"} for each in documents]), ORDER, "restore the collection"
        )
        path.write_bytes(content)
    assert (len(opened(folder)), opened(folder).verify()) == (40, [])


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY\x01\x00", b"\0" * 100])
def test_an_order_that_is_none_is_said_while_documents_are_added(folder: Path, content: bytes) -> None:
    """An empty one was taken for Ctrl-C."""
    for path in orders(folder):
        path.write_bytes(content)
    refused(lambda: run(folder, [{"id": "d1", "text": "changed"}]), f"{ORDER} is damaged (")


def test_an_order_that_is_larger_than_its_shard_is_not_read(folder: Path) -> None:
    path = orders(folder)[0]
    os.truncate(path, 5 * 10**8)
    refused(lambda: opened(folder), f"{ORDER} is damaged (it lists more than the ")


@pytest.mark.parametrize("name", ["/etc/hostname", "../../../collection.json", "shard.json", ""])
def test_a_manifest_that_names_files_outside_is_refused(folder: Path, name: str) -> None:
    [manifest, *_] = sorted(folder.glob("shards/*/*/shard.json"))
    listed = json.loads(manifest.read_bytes())
    listed["files"][name] = "0" * 64
    manifest.write_text(json.dumps(listed))
    _trust(folder, manifest)
    refused(lambda: opened(folder).verify(), "is outside its folder: restore the collection")
    refused(lambda: opened(folder).repair(), "is outside its folder: restore the collection")


@pytest.mark.parametrize("content", [b"[]", b"3", DEEP.encode(), b'{"files": 3}', b'{"files": {"a": 3}}', b"{}"])
def test_a_manifest_that_is_none_is_one_line(folder: Path, content: bytes) -> None:
    [manifest, *_] = sorted(folder.glob("shards/*/*/shard.json"))
    manifest.write_bytes(content)
    _trust(folder, manifest)
    try:
        assert opened(folder).verify()
    except SondeError as error:
        assert "shard.json is damaged (" in str(error)
        assert "\n" not in str(error)


def _trust(folder: Path, manifest: Path) -> None:
    """Let the generation name what a manifest now holds."""
    from sonde.indexer.files import sha256

    path = folder / "generations" / "000001.json"
    shards = json.loads(path.read_bytes())["shards"]
    shards[int(manifest.parent.parent.name)]["sha256"] = sha256(manifest)
    resealed(path, shards=shards)


@pytest.fixture(scope="module")
def sound_and_changed(sound: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sharded collection with another model, which is only copied."""
    folder = tmp_path_factory.mktemp("changed") / "sharded.sonde"
    shutil.copytree(sound / folder.name, folder)
    store_defaults(opened(folder).stored, SearchDefaults(threshold=0.25))
    opened(folder).change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]
    assert opened(folder).verify() == []
    return folder


@pytest.fixture
def changed(sound_and_changed: Path, tmp_path: Path) -> Path:
    """The collection with another model; the folder of the embeddings of the previous one is in `models`."""
    return Path(shutil.copytree(sound_and_changed, tmp_path / "sharded.sonde"))


def kept(folder: Path) -> Path:
    [found] = (path for path in models_folder(folder).iterdir() if path.is_dir())
    return found


@pytest.mark.long
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        DEEP.encode(),
        b"[]",
        b'"x"',
        b'{"threshold": "high"}',
        b'{"search_defaults": {"threshold": [1]}}',
        None,
    ],
)
def test_settings_of_the_previous_model_that_are_none_are_not_taken(changed: Path, content: bytes | None) -> None:
    """They were committed, and the collection could no longer be opened."""
    path = kept(changed) / "tuned.json"
    sound = path.read_bytes()
    if content is None:
        os.truncate(path, 10**9)
    else:
        path.write_bytes(content)
    [finding] = opened(changed).verify()
    assert (finding.part, "tuned.json is damaged (" in finding.problem) == ("models", True)
    before = len(opened(changed))
    refused(opened(changed).undo_model, "tuned.json is damaged (", "remove it")
    assert (len(opened(changed)), opened(changed).model) == (before, "other")
    path.write_bytes(sound)
    assert opened(changed).undo_model().switched
    assert opened(changed).search_defaults().threshold == 0.25
    assert opened(changed).verify() == []


@pytest.mark.parametrize("name", ["collection.json", "generations/*.json", "tuned.json", "shards/*/*/order.npy"])
def test_every_file_of_the_previous_model_is_verified(changed: Path, name: str) -> None:
    for path in sorted(kept(changed).glob(name)):
        sound = path.read_bytes()
        if name.endswith(".json"):
            values = json.loads(sound)
            key = next(key for key in ("seed", "read", "search_defaults") if key in values)
            path.write_text(json.dumps(values | {key: 3 if key != "search_defaults" else {"threshold": 0.75}}))
        else:
            path.write_bytes(sound[:-40] + b"\x07" + sound[-39:])
        [finding] = opened(changed).verify()
        assert (finding.part, f"{path.name} is damaged (" in finding.problem) == ("models", True)
        refused(opened(changed).undo_model, f"{path.name} is damaged (")
        path.write_bytes(sound)
    assert opened(changed).verify() == []


def test_a_generation_of_the_previous_model_that_claims_to_have_read_too_much(changed: Path) -> None:
    [path] = kept(changed).glob("generations/*.json")
    resealed(path, read=2**63 - 1)
    refused(opened(changed).undo_model, f"{path.name} is damaged (")
    run_with_other = [{"id": "new", "text": "a new document"}]
    index_sharded(run_with_other, changed, encoder=OtherEncoder())  # type: ignore[arg-type]
    assert len(opened(changed)) == 41


def test_places_stay_numbers_of_documents(tmp_path: Path) -> None:
    path = tmp_path / ORDER
    for wrong in ([-1, 0], [1, 0], [0, 2**62]):
        np.save(path, np.array(wrong, np.int64))
        refused(lambda: read_order(path, 2), "its places are not those of the passages")
    np.save(path, np.array([0, 0, 5], np.int64))  # as an earlier Sonde wrote it, without a digest
    assert read_order(path, 3).tolist() == [0, 0, 5]


def test_an_error_inside_a_run_is_not_taken_for_a_missing_catalog(folder: Path) -> None:
    class Broken(FakeEncoder):
        def encode(self, tokens: Any) -> Any:
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        index([{"id": "d1", "text": "changed"}], to=folder, encoder=Broken())  # type: ignore[arg-type]
    assert opened(folder).verify() == []


def test_embeddings_are_discarded_without_a_commit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk, nothing could be committed, and so nothing was removed."""
    opened(folder).change_model(encoder=OtherEncoder(), dry_run=True)  # type: ignore[arg-type]
    assert list(models_folder(folder).glob("*/shards"))
    monkeypatch.setattr("sonde.indexer.sharded.runs.publish", lambda *given: pytest.fail("a commit"))
    [removed] = opened(folder).discard_model()
    assert (removed.spec.name, list(models_folder(folder).glob("*/shards"))) == ("other", [])

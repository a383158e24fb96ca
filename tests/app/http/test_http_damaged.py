"""A service over several collections of which one is damaged: the others answer, and a sentence tells what is wrong."""
# ruff: noqa: F811  (fixtures that are imported)

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_encoder import FakeEncoder
from http_service import ROWS, client_of, folder, refused  # noqa: F401  (a fixture)
from other_encoder import loaded

from sonde.app.api import Collection, index
from sonde.app.http.client import RemoteCollection
from sonde.indexer.errors import SondeError

BAD = {"collection": "bad"}


@pytest.fixture
def bad(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "bad.sonde"))


@pytest.mark.parametrize("shards", [None, 2])
def test_vectors_that_are_missing_leave_the_other_collections_listed(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, shards: int | None
) -> None:
    bad = tmp_path / "bad.sonde"
    index(ROWS, bad, id="id", encoder=FakeEncoder(), shards=shards)  # type: ignore[arg-type]
    vectors = next(bad.glob("shards/01/*/vectors" if shards else "vectors"))
    shutil.rmtree(vectors)
    with client_of(folder, bad) as client:
        good, broken = client.get("/collections").json()
        text = client.get("/metrics").text
    own = vectors.parent.relative_to(tmp_path)
    said = f"{own}/vectors/000001.npy is missing: run `sonde repair bad.sonde`"
    assert (good["name"], good["documents"]) == ("reviews", 3)
    assert broken == {"name": "bad", "error": said}
    assert 'sonde_documents{collection="reviews"} 3.0' in text
    assert 'sonde_documents{collection="bad"}' not in text
    assert 'sonde_collection_damaged{collection="bad"} 1.0' in text
    assert 'sonde_collection_damaged{collection="reviews"} 0.0' in text
    assert "Traceback" not in caplog.text


def test_a_catalog_that_is_cut_while_it_is_served(
    folder: Path, bad: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asked = BAD | {"query": "battery"}
    with client_of(folder, bad) as client:
        assert 'sonde_documents{collection="bad"} 3.0' in client.get("/metrics").text
        assert client.post("/search", json=asked).status_code == 200
        os.truncate(bad / "catalog.db", 5_000)
        refused(client.post("/search", json=asked), 500, "the collection is damaged: `GET /collections`")
        answer = client.get("/collections")
        text = client.get("/metrics").text
        assert client.post("/search", json={"query": "battery", "collection": "reviews"}).status_code == 200
    good, broken = answer.json()
    assert (good["name"], good["documents"], list(broken)) == ("reviews", 3, ["name", "error"])
    assert "bad.sonde" in broken["error"] and "malformed" in broken["error"]
    assert str(tmp_path) not in answer.text
    assert 'sonde_documents{collection="bad"}' not in text
    assert 'sonde_collection_damaged{collection="bad"} 1.0' in text
    assert "Traceback" not in caplog.text


def test_what_is_restored_is_counted_again(folder: Path, bad: Path, tmp_path: Path) -> None:
    kept = (bad / "vectors").rename(tmp_path / "kept")
    with client_of(folder, bad) as client:
        assert 'sonde_collection_damaged{collection="bad"} 1.0' in client.get("/metrics").text
        kept.rename(bad / "vectors")
        text = client.get("/metrics").text
    assert 'sonde_documents{collection="bad"} 3.0' in text
    assert 'sonde_collection_damaged{collection="bad"} 0.0' in text


@pytest.mark.parametrize("shards", [None, 2])
@pytest.mark.parametrize("value", [np.nan, np.inf, 7.0])
def test_embeddings_that_are_damaged_are_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, value: float, shards: int | None
) -> None:
    """Their documents were missing from the hits or had a false relevance, and not-a-number ended in a traceback."""
    bad = tmp_path / "bad.sonde"
    index(ROWS, bad, id="id", encoder=FakeEncoder(), shards=shards)  # type: ignore[arg-type]
    for path in bad.rglob("vectors/*.npy"):
        vectors = np.load(path)
        vectors[:, 3] = value
        np.save(path, vectors)
    with client_of(bad) as client:
        refused(client.post("/search", json={"query": "battery", "mode": "dense"}), 500, "the collection is damaged")
    with pytest.raises(SondeError, match=r"bad\.sonde is damaged .* run `sonde verify .*bad\.sonde`") as raised:
        Collection.open(bad, loader=loaded).search("battery", mode="dense")  # type: ignore[arg-type]
    assert raised.value.code == "damaged"
    assert "Traceback" not in caplog.text
    opened = Collection.open(bad, loader=loaded)  # type: ignore[arg-type]
    assert any("does not match its digest" in each.problem for each in opened.verify())


@pytest.mark.parametrize("change", [{"normalize": False}, {"normalize": True, "kind": "static"}])
def test_embeddings_without_length_1_that_are_sound(tmp_path: Path, change: dict[str, Any]) -> None:
    """Those of a model that does not normalise, and the zeros of a text without words."""
    encoder = FakeEncoder()
    encoder.spec = replace(encoder.spec, **change)
    encode, factor = encoder.encode, 1 if change["normalize"] else 3
    encoder.encode = lambda *args, **named: encode(*args, **named) * factor  # type: ignore[method-assign]
    collection = index([*ROWS, {"id": "none", "text": "!?"}], tmp_path / "all", id="id", encoder=encoder)  # type: ignore[arg-type]
    assert len(collection.search("battery", mode="dense", k=4, collapse=False)) == 4
    assert collection.verify() == []


def _until(answers: Callable[[], Any]) -> Any:
    """Return the first true answer."""
    for _ in range(200):
        if answer := answers():
            return answer
        time.sleep(0.05)
    raise AssertionError("no answer")


def _unopenable(bad: Path) -> None:
    (bad / "catalog.db").write_bytes(b"x" * 5_000)


def _unreadable(bad: Path) -> None:
    shutil.rmtree(bad / "vectors")


@pytest.mark.parametrize("damage", [_unopenable, _unreadable])
def test_the_others_are_warmed_and_ready_says_which_is_damaged(
    folder: Path, bad: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], None]
) -> None:
    monkeypatch.setattr("sonde.app.http.service.AGAIN", 0.05)
    kept = shutil.copytree(bad, tmp_path / "kept")
    damage(bad)
    with client_of(bad, folder) as client:
        ready = _until(lambda: (answer := client.get("/ready")).status_code == 200 and answer)
        assert ready.json() == {"status": "ready", "unavailable": {"bad": "damaged"}}
        assert client.app.state.context.hosts.hosted["reviews"].warm  # type: ignore[attr-defined]
        found = client.post("/search", json={"query": "battery", "collection": "reviews", "k": 1})
        assert [hit["id"] for hit in found.json()["hits"]] == ["1"]
        assert next(map(list, client.get("/collections").json())) == ["name", "error"]
        assert 'sonde_collection_damaged{collection="bad"} 1.0' in client.get("/metrics").text
        shutil.rmtree(bad)
        kept.rename(bad)
        _until(lambda: client.get("/ready").json()["unavailable"] == {})
        assert client.post("/search", json=BAD | {"query": "battery"}).status_code == 200


def test_a_service_of_which_nothing_can_be_used_is_not_ready(bad: Path) -> None:
    _unreadable(bad)
    with client_of(bad) as client:
        answer = _until(lambda: "being loaded" not in (answer := client.get("/ready")).text and answer)
    refused(answer, 503, "no collection can be used: bad (damaged)")
    assert answer.json()["code"] == "damaged"


def test_a_service_refuses_to_start_if_all_are_damaged_or_one_does_not_exist(folder: Path, bad: Path) -> None:
    _unopenable(bad)
    with pytest.raises(SondeError, match=r"bad\.sonde is not a Sonde collection: its catalog\.db is damaged"):
        client_of(bad)
    with pytest.raises(SondeError, match=r"there is no collection at .*none\.sonde"):
        client_of(folder, folder.parent / "none.sonde")


@pytest.mark.parametrize("damage", [_unopenable, _unreadable])
def test_every_route_says_that_the_collection_is_damaged(
    folder: Path, bad: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], None]
) -> None:
    damage(bad)
    asks: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/search", {"json": BAD | {"query": "battery"}}),
        ("POST", "/similar", {"json": BAD | {"id": "1"}}),
        ("POST", "/similar", {"json": BAD | {"text": "battery"}}),
        ("GET", "/documents/1", {"params": BAD}),
        ("DELETE", "/documents/1", {"params": BAD}),
        ("PUT", "/documents", {"json": BAD | {"documents": [{"id": "9", "text": "nine"}]}}),
        ("POST", "/rerank", {"json": BAD | {"query": "battery", "texts": ["a text"]}}),
        ("GET", "/runs", {"params": BAD}),
        ("GET", "/clusters", {"params": BAD}),
        ("GET", "/map", {"params": BAD}),
        ("POST", "/read/search", {"json": BAD | {"options": {"query": "battery"}}}),
        ("POST", "/read/info", {"json": BAD}),
        ("POST", "/write/cluster", {"json": BAD | {"options": {"name": "c", "k": 2}}}),
    ]
    with client_of(folder, bad) as client:
        answers = [client.request(method, path, **given) for method, path, given in asks]
        assert client.post("/search", json={"query": "battery", "collection": "reviews"}).status_code == 200
        with pytest.raises(SondeError, match=r"^bad(/| is not)") as raised:
            RemoteCollection(client, "bad").runs()  # type: ignore[arg-type]
    for (_, path, _), answer in zip(asks, answers, strict=True):
        refused(answer, 500)
        assert answer.json()["code"] == "damaged", path
        assert str(tmp_path) not in answer.text and "\n" not in answer.json()["detail"]
    assert raised.value.code == "damaged"
    assert "Traceback" not in caplog.text


def test_shards_that_are_deleted_while_they_are_served(folder: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.sonde"
    index(ROWS, bad, id="id", encoder=FakeEncoder(), shards=2)  # type: ignore[arg-type]
    with client_of(folder, bad) as client:
        _until(lambda: client.get("/ready").status_code == 200)
        shutil.rmtree(bad)
        answer = client.post("/search", json=BAD | {"query": "battery"})
        refused(answer, 503, "the collection is not available: its folder was moved or removed")
        assert client.get("/collections").json()[1] == {
            "name": "bad", "error": "there is no collection at bad.sonde: it was deleted or moved"}  # fmt: skip
        assert client.get("/ready").json()["unavailable"] == {"bad": "no-collection"}
    assert not bad.exists()


def state(client: Any) -> tuple[dict[str, str], str]:
    """What `/ready` and `/metrics` say of the collection that is damaged."""
    unavailable = client.get("/ready").json()["unavailable"]
    [line] = [each for each in client.get("/metrics").text.splitlines() if each.startswith(DAMAGED)]
    return unavailable, line.removeprefix(DAMAGED)


DAMAGED = 'sonde_collection_damaged{collection="bad"} '


def test_ready_and_metrics_agree_on_what_searches_cannot_use_until_it_is_repaired(folder: Path, bad: Path) -> None:
    """The metric was 0 as long as the files could be opened, and `/ready` did not notice the repair."""
    [vectors] = bad.glob("vectors/*.npy")
    sound = np.load(vectors)
    with client_of(folder, bad) as client:
        _until(lambda: client.get("/ready").status_code == 200)
        assert state(client) == ({}, "0.0")
    np.save(vectors, sound * np.nan)
    with client_of(folder, bad) as client:
        _until(lambda: client.get("/ready").status_code == 200)
        assert state(client) == ({"bad": "damaged"}, "1.0")
        Collection.open(bad, loader=loaded).repair()  # type: ignore[arg-type]
        assert client.post("/search", json=BAD | {"query": "battery"}).status_code == 200
        assert state(client) == ({}, "0.0")


def test_ready_says_what_the_last_search_found(folder: Path, bad: Path) -> None:
    with client_of(folder, bad) as client:
        _until(lambda: client.get("/ready").status_code == 200)
        for number in range(3):  # what is served reads its new embeddings
            Collection.open(bad, loader=loaded).put([{"id": str(number), "text": f"new {number}"}])  # type: ignore[arg-type]
        for vectors in bad.glob("vectors/*.npy"):
            np.save(vectors, np.load(vectors) * np.nan)
        refused(client.post("/search", json=BAD | {"query": "battery"}), 500, "the collection is damaged")
        assert state(client) == ({"bad": "damaged"}, "1.0")
        Collection.open(bad, loader=loaded).repair()  # type: ignore[arg-type]
        assert state(client) == ({}, "0.0")


def test_a_shard_that_is_moved_away_and_back(folder: Path, tmp_path: Path) -> None:
    """`/ready` called it "no-collection" until something else asked for the collection."""
    bad = tmp_path / "bad.sonde"
    index(ROWS, bad, id="id", encoder=FakeEncoder(), shards=2)  # type: ignore[arg-type]
    with client_of(folder, bad) as client:
        _until(lambda: client.get("/ready").status_code == 200)
        moved = (bad / "shards").rename(tmp_path / "moved")
        unavailable, metric = state(client)
        assert (list(unavailable), metric) == (["bad"], "1.0")
        moved.rename(bad / "shards")
        assert state(client) == ({}, "0.0")
        assert client.post("/search", json=BAD | {"query": "battery"}).status_code == 200

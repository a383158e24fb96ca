"""A service over several collections of which one is damaged: the others answer, and a sentence tells what is wrong."""
# ruff: noqa: F811  (fixtures that are imported)

import os
import shutil
from pathlib import Path

import pytest
from fake_encoder import FakeEncoder
from http_service import ROWS, client_of, folder, refused  # noqa: F401  (a fixture)

from sonde.app.api import index

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
    said = f"{own}/vectors/000001.npy is missing: run `sonde repair {own}`"
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
        refused(client.post("/search", json=asked), 500, "the service failed: see its log")
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

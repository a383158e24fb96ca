"""A service over a sharded collection: searches as for any other; what is not possible yet is a 422."""

from pathlib import Path

from fake_encoder import FakeEncoder
from http_service import ROWS, client_of, folder, refused  # noqa: F401  (a fixture)

from sonde.app.api import index


def test_a_service_over_shards(tmp_path: Path, folder: Path):  # noqa: F811
    encoder = FakeEncoder()
    index(ROWS, tmp_path / "s.sonde", id="id", shards=2, encoder=encoder)  # type: ignore[arg-type]
    with client_of(tmp_path / "s.sonde") as sharded, client_of(folder) as one:
        asked = {"query": "battery week", "k": 2}
        assert sharded.post("/search", json=asked).json()["hits"] == one.post("/search", json=asked).json()["hits"]
        assert sharded.get("/documents/1").json()["text"] == ROWS[0]["text"]
        assert sharded.get("/ready").status_code == 200
        refused(sharded.get("/runs"), 422, "sharded collections do not support this yet")
        refused(sharded.put("/documents", json={"documents": [{"id": "x", "text": "y"}]}), 422, "do not support")
        assert sharded.delete("/documents/1").json() == {"deleted": 1}
        assert sharded.get("/documents/1").status_code == 404
        assert sharded.get("/collections").json()[0]["documents"] == 2

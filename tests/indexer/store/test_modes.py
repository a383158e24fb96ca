"""Other users may read all of a collection whose folder they may read: a service often has an account of its own."""

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder

from sonde.app.api import index

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")


@pytest.fixture(params=[0o022, 0o027, 0o077], ids=oct)
def mask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.parametrize("shards", [None, 2])
def test_every_file_has_the_modes_that_the_umask_allows(tmp_path: Path, mask: int, shards: int | None) -> None:
    encoder: Any = FakeEncoder()
    folder = tmp_path / "c.sonde"
    collection = index([f"letter stone {n}" for n in range(60)], folder, encoder=encoder, shards=shards)
    collection.put([{"id": "more", "text": "winter garden"}])
    collection.cluster("groups", k=2)
    collection.delete(["more"])
    collection.compact()
    collection.close()
    found = {path.relative_to(folder): stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}
    wanted = {path: (0o777 if (folder / path).is_dir() else 0o666) & ~mask for path in found}
    assert found == wanted and len(found) > 12

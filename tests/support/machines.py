"""Machines that share one object store, which is a folder, so that a test can damage objects."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import obstore
import pytest
from fake_encoder import FakeEncoder
from obstore.store import LocalStore

from sonde.app.api import Collection, index
from sonde.indexer.sharded.bucket import Bucket
from sonde.indexer.sharded.generations import newest_generation

ADDRESS = "s3://shop/reviews.sonde"


class Machines:
    """Machines that share one object store, each with copies of its own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.monkeypatch = folder, monkeypatch
        self.objects = folder / "store"
        self.calls: list[tuple[str, str]] = []
        self.before: Callable[[str], object] = lambda _: None
        monkeypatch.setattr("obstore.store.from_url", lambda _, **__: LocalStore(self.objects, mkdir=True))
        for name in ("put", "copy", "delete"):
            monkeypatch.setattr(obstore, name, self._noted(name, getattr(obstore, name)))
        self.use("one")

    def _noted(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def noted(store: object, *given: Any, **options: Any) -> Any:
            self.before(name)
            self.calls.append((name, str(given[-1] if name == "copy" else given[0])))
            return call(store, *given, **options)

        return noted

    def use(self, machine: str) -> None:
        """Let what follows happen on this machine."""
        self.monkeypatch.setenv("SONDE_CACHE", str(self.folder / machine))

    def index(self, documents: list[dict[str, Any]], **options: Any) -> Collection:
        return index(documents, ADDRESS, encoder=FakeEncoder(), **options)  # type: ignore[arg-type]

    def open(self) -> Collection:
        return Collection.open(ADDRESS, encoder=FakeEncoder())  # type: ignore[arg-type]

    def generation(self) -> int:
        found = newest_generation(Bucket(ADDRESS), Path())
        return found.number if found else 0


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    return Machines(tmp_path, monkeypatch)


class Killed(BaseException):
    """What no code catches, as nothing catches a kill."""

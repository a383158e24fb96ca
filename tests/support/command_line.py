"""The command line run inside the test's process, with a bi-encoder that needs no weights."""

import math
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest
from fake_encoder import FakeEncoder

from sonde.indexer.encoder import DEFAULT_MODEL
from sonde.indexer.store.collection import StoredCollection
from sonde.indexer.upkeep.verify import verify

TABLES = (
    *("documents", "metadata", "fields", "passages", "segments", "properties"),
    *("runs", "run_items", "run_documents", "run_places", "run_arrays"),
)


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> list[str]:
        return self.err.splitlines()

    def refused(self, *words: str, code: int = 1) -> None:
        """Check that it failed with one line on stderr, and that the line holds these words."""
        assert self.err.count("\n") == 1, self.err
        self.failed(*words, code=code)
        assert self.out == ""

    def failed(self, *words: str, code: int = 1) -> None:
        """As `refused`, where sentences about the work before it failed are allowed."""
        assert "Traceback" not in self.err
        assert [line for line in self.said if line.startswith("sonde: ")] == self.said[-1:], self.err
        assert [word for word in words if word not in self.said[-1]] == [], self.err
        assert self.code == code, self.err


Command = Callable[..., Ran]


def inject(monkeypatch: pytest.MonkeyPatch, encoder: FakeEncoder) -> None:
    """Let the default model be `encoder`; any other name is looked up as ever."""
    from sonde.indexer.ingest import index
    from sonde.indexer.store import collection

    real = index.load_encoder
    monkeypatch.setattr(index, "load_encoder", lambda name, **o: encoder if name == DEFAULT_MODEL else real(name, **o))
    for module in (index, collection):
        monkeypatch.setattr(module, "load_encoder_for", lambda spec, **_: encoder)


def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Return a function that runs `sonde` with its arguments; without lines of progress, however slow the machine."""
    from sonde.app.cli import output
    from sonde.app.cli.main import main

    monkeypatch.setattr(output, "PLAIN_SECONDS", math.inf)

    def run(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["sonde", *map(str, arguments)])
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
        written = capsys.readouterr()
        return Ran(code, str(written.out), str(written.err))

    return run


def contents(folder: Path) -> str:
    """Return a digest of everything that a collection holds: every table and every vector that one names."""
    found = sha256()
    connection = sqlite3.connect(f"{folder.absolute().as_uri()}/catalog.db?mode=ro", uri=True)
    for table in TABLES:
        for row in connection.execute(f"SELECT * FROM {table} ORDER BY 1"):
            found.update(repr(row).encode())
    named = [f"{number:06d}.npy" for (number,) in connection.execute("SELECT number FROM segments ORDER BY 1")]
    connection.close()
    for path in (folder / "vectors" / name for name in named):
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()


def problems(folder: Path) -> list[str]:
    """Return what `verify` finds."""
    with closing(StoredCollection.open(folder, encoder=FakeEncoder())) as collection:  # type: ignore[arg-type]
        return [f"{finding.part}: {finding.problem}" for finding in verify(collection)]

"""A small collection with a taxonomy, and all that the catalog says of it."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index
from sonde.indexer.store.kinds import TAXONOMY

WORDS = ("parcel late", "parcel lost", "battery dead", "battery weak")


def made(folder: Path) -> Collection:
    """40 documents in four clusters of ten: d0, d4, d8 … are about late parcels, and so on."""
    rows = [{"id": f"d{n}", "text": f"{WORDS[n % 4]} {n}", "n": n} for n in range(40)]
    shop = index(rows, folder, id="id", text="text", encoder=FakeEncoder())  # type: ignore[arg-type]
    shop.import_taxonomy("name\nlate\nlost\ndead\nweak\n", "csv", documents=_documents(), name="tree")
    return shop


def _documents() -> str:
    return "id,group\n" + "".join(f"d{n},{n % 4}\n" for n in range(40))


def rows_of(folder: Path) -> list[tuple[Any, ...]]:
    """Everything that the catalog says of the taxonomy, apart from its log."""
    with closing(sqlite3.connect(folder / "catalog.db")) as connection:
        [(run,)] = connection.execute("SELECT run FROM runs WHERE kind = ?", (TAXONOMY,)).fetchall()
        found = connection.execute("SELECT * FROM runs WHERE run = ?", (run,)).fetchall()
        for table in ("run_items", "run_documents", "run_arrays"):
            found += connection.execute(f"SELECT * FROM {table} WHERE run = ? ORDER BY 1, 2, 3", (run,)).fetchall()
        parts = (f"run {run}", f"results {run}")
        found += connection.execute("SELECT * FROM checksums WHERE part IN (?, ?) ORDER BY 1", parts).fetchall()
    return found

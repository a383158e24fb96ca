"""A collection with a taxonomy of two named levels and a column of dates, for reports."""

from pathlib import Path

from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index

TABLE = """number,name,parent
0,cards,
1,lost,0
2,late,0
3,cash,
4,late,3
"""
DAYS = ("2026-01-05", "2026-01-06", "2026-01-14", "2026-02-02", "2026-02-03")
INSIDE = (1, 1, 2, 4, 3, 0, 4, 1, None, "unknown")
"""The group of each document; none, or not in the taxonomy."""


def reported(folder: Path, shards: int | None = None) -> Collection:
    """10 documents: cards (0) with lost (1) and late (2), cash (3) with late (4); one in no group, one unknown."""
    rows = [{"id": f"d{n}", "text": f"text {n}", "received": DAYS[n % 5]} for n in range(len(INSIDE))]
    made = index(rows, folder, id="id", text="text", shards=shards, encoder=FakeEncoder())  # type: ignore[arg-type]
    known = [(n, "" if group is None else group) for n, group in enumerate(INSIDE) if group != "unknown"]
    made.import_taxonomy(TABLE, "csv", documents="id,group\n" + "".join(f"d{n},{group}\n" for n, group in known))
    made.edit_taxonomy("rename", level=0, name="Fachbereich")
    made.edit_taxonomy("rename", level=1, name="Anliegen")
    return made

"""A collection with every type of field and kind of run, for tests of linked views; its runs are written by hand."""

from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index
from sonde.indexer.store.kinds import CLUSTER, LABEL, MAP
from sonde.indexer.store.run_writing import NewRun, Snapshot, write_run
from sonde.indexer.store.runs import Item

WORDS = ("parcel late", "battery dead", "screen cracked", "refund slow")


def rows(count: int = 60) -> list[dict[str, Any]]:
    """Return documents: some lack a value, one number is infinite, every id is a text that no other has."""
    found: list[dict[str, Any]] = []
    for n in range(count):
        row: dict[str, Any] = {"id": f"d{n}", "text": f"{WORDS[n % 4]} number {n}", "title": f"Ticket {n}"}
        if n % 7:
            row["stars"] = n % 5 + 1
        if n % 3:
            row["price"] = float("inf") if n == 4 else n / 8
        if n % 5:
            row["shop"] = ("north", "south", "none")[n % 3]
        row["day"] = date(2024, 1 + n % 12, 1 + n % 28) if n % 2 else datetime(2024, 1 + n % 12, 1, 12)
        row["open"] = bool(n % 2)
        row["parts"] = [f"p{n % 4}", "p9"] if n % 6 else []
        found.append(row)
    return found


def linked(path: Path, count: int = 60) -> Collection:
    """Return a collection with two maps, clusters, labels of which a document may have two, and a tag."""
    encoder: Any = FakeEncoder()
    made = index(rows(count), path, id="id", title="title", text="text", encoder=encoder)
    random = np.random.default_rng(5)
    with made.stored.view() as view:
        snapshot = Snapshot.of(view)
    docs = snapshot.docs
    regions = [
        Item(0, "all sorts", {"level": 1, "x": 0.0, "y": 0.0, "size": count}),
        Item(1, "left", {"level": 2, "x": -1.0, "y": 0.0, "size": count // 2}),
    ]
    for name, scale in (("first", 1.0), ("second", 10.0)):
        placed = docs[3:]  # three documents are newer than the maps
        places = random.normal(scale=scale, size=(len(placed), 2))
        write_run(made.stored, NewRun(MAP, name, {}, items=regions, places=(placed, places)), snapshot)
    groups = [Item(n, name, {}) for n, name in enumerate(("parcels", "batteries", "screens", "screens"))]
    every, scores = np.arange(len(docs)), np.ones(len(docs))
    write_run(made.stored, NewRun(CLUSTER, "four", {}, items=groups, assignments=(docs, every % 4, scores)), snapshot)
    named = [Item(0, "late", {}), Item(1, "broken", {})]
    some = np.concatenate([docs[::2], docs[::4]])
    which = np.repeat([0, 1], [len(docs[::2]), len(docs[::4])])
    chances = np.concatenate([np.full(len(docs[::2]), 0.6), np.full(len(docs[::4]), 0.9)])
    labelled = NewRun(LABEL, "kinds", {"multi_label": True}, items=named, assignments=(some, which, chances))
    write_run(made.stored, labelled, snapshot)
    made.tag("few", where="stars <= 2")
    return made

"""Collections with runs for the pages Map, Clusters and Labels; jobs are noted and not started."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from themes import THEMES, rows
from ui_pages import MARKUP, Pages

from sonde.app.api import Collection
from sonde.app.ui.jobs import Job, Jobs
from sonde.indexer.store.kinds import MAP, TOPIC
from sonde.indexer.store.run_writing import NewRun, Snapshot, write_run
from sonde.indexer.store.runs import Item
from sonde.indexer.store.view import document_vectors, normalized
from sonde.pipelines.analysis.terms import Counts, to_arrays
from sonde.pipelines.topics.model import TopicModel

OWN_DEVICE = ["--device", "cpu"]
"""What every job of these pages ends with: the device of their web UI (tests/app/ui/test_ui_device.py)."""


class Started:
    """The commands that pages asked for, without the web UI's own device, and the titles of the jobs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commands: list[list[str]] = []
        self.titles: list[str] = []

    def start(self, title: str, collection: str, command: Any) -> Job:
        del collection
        self.titles.append(title)
        words = [word.rsplit("/", 1)[-1] if word.endswith(".sonde") else word for word in command]
        self.commands.append(words[:-2] if words[-2:] == OWN_DEVICE else words)
        return Job(self.folder / "none", "none", "none", (), 0.0)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Started:
    """Jobs are noted in place of being started."""
    found = Started(tmp_path)
    monkeypatch.setattr(Jobs, "start", lambda _, *arguments: found.start(*arguments))
    return found


def kept_job(
    pages: Pages,
    command: Sequence[str],
    *,
    collection: str = "shop",
    title: str = "Work",
    code: int | None = 0,
    **files: Sequence[Any] | str,
) -> Job:
    """Write the folder of a job without running it.

    Args:
        pages: The shelf.
        command: What it did, or does.
        collection: The collection that it works on.
        title: Its title.
        code: The exit code of its command; None for a job that is running, and never ends.
        files: What it wrote, by the stem of the file: the text of `stderr`, the values of `events` and `stdout`.
    """
    folder = pages.shelf / ".sonde-jobs" / f"{10**13 + time.monotonic_ns() // 1000:015d}-abcdef"
    folder.mkdir(parents=True)
    started = time.time() + (3_600 if code is None else 0)  # it has no process, and is starting until then
    kept = {"title": title, "collection": collection, "command": list(command), "started": started, "pid": 0}
    (folder / "job.json").write_text(json.dumps(kept))
    for stem, content in files.items():
        if isinstance(content, str):
            (folder / f"{stem}.txt").write_text(content)
        else:
            (folder / f"{stem}.jsonl").write_text("".join(f"{json.dumps(value)}\n" for value in content))
    if code is not None:
        (folder / "exit").write_text(str(code))
    return Job.read(folder)


def shop(pages: Pages, name: str = "shop", hostile: bool = False) -> Collection:
    """120 documents of four themes; with `hostile`, the first one's text and title are markup."""
    made = rows()
    if hostile:
        made[0] = made[0] | {"title": MARKUP, "text": MARKUP + " " + made[0]["text"], "theme": MARKUP}
    return pages.collection(name, made)


def topics(collection: Collection, name: str = "topics") -> None:
    """Write a topic run without fitting one: each theme is a topic."""
    with collection.stored.view() as view:
        snapshot = Snapshot.of(view)
        vectors = normalized(document_vectors(view, snapshot.docs))
    numbers = np.arange(len(snapshot.docs)) % 4
    means = normalized(np.stack([vectors[numbers == number].mean(axis=0) for number in range(4)]))
    counts = Counts.of_rows([{place: 10} for place in range(4)], sorted(THEMES))
    model = TopicModel.of(means, np.full(4, -2, np.float32), counts)
    arrays = {"vectors": model.vectors, "thresholds": model.thresholds, "tree": model.tree, **to_arrays(counts)}
    items = [
        Item(number, theme, {"size": 30, "leaves": [number], "terms": [[theme, 1.0]], "keywords": [], "named": theme,
                             "representatives": [f"{theme}-0"]})
        for number, theme in enumerate(THEMES)
    ]  # fmt: skip
    report = {"fitted": 120, "carried": 0, "topics": 4, "outliers": 0}
    given = (snapshot.docs, numbers, np.ones(120))
    write_run(
        collection.stored,
        NewRun(TOPIC, name, {}, report=report, items=items, assignments=given, arrays=arrays),
        snapshot,
    )


def mapped(collection: Collection, name: str = "map", regions: str = "a region") -> np.ndarray:
    """Write a map: document n lies at (n, n % 4), so that a row holds a theme; return the places."""
    with collection.stored.view() as view:
        snapshot = Snapshot.of(view)
    numbers = np.arange(len(snapshot.docs))
    places = np.stack([numbers, numbers % 4], axis=1).astype(float)
    item = Item(0, regions, {"level": 1, "x": 5.0, "y": 1.0, "size": 3, "terms": [], "centre": [5.0, 1.0], "within": 0})
    write_run(collection.stored, NewRun(MAP, name, {}, items=[item], places=(snapshot.docs, places)), snapshot)
    return places


def box(left: float, low: float, right: float, high: float) -> str:
    """A box as the address of the map has it."""
    return f"{left},{low};{right},{low};{right},{high};{left},{high}"

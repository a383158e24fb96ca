"""A run over a sharded collection that is killed: run by test_kill.py in a process of its own.

usage: killed_shards.py index|update|delete FOLDER LOG EVENT
At the EVENT-th time that it touches a file of the collection (0: never), the process sends itself SIGKILL. EVENT may
also be a step of publishing, such as "create:before:generations" or "rename:after:shards/02": before or after a file or
folder whose name in the collection begins so gets its name. At the end, it prints how many files it touched.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from fake_encoder import FakeEncoder
from kill_corpus import BATCH, changed, documents

from sonde.indexer.document import Document
from sonde.indexer.ingest import BuildSettings
from sonde.indexer.sharded.build import index_sharded
from sonde.indexer.sharded.collection import ShardedCollection
from sonde.pipelines.analysis.corpus import delete

EVENTS = {"open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree"}
met = 0


def kill_at(number: int, folder: Path) -> None:
    """Die at the `number`-th file operation inside `folder`, and count them all."""

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        global met
        if event in EVENTS and arguments and str(arguments[0]).startswith(str(folder)):
            met += 1
            if met == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def kill_around(step: str, folder: Path) -> None:
    """Die before or after a name is given by `os.link` ("create") or `os.rename`."""
    kind, when, wanted = step.split(":")
    name = "link" if kind == "create" else "rename"
    real: Callable[..., Any] = getattr(os, name)

    def dying(source: Any, target: Any, **options: Any) -> None:
        here = str(target).startswith(str(folder / wanted))
        if here and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        real(source, target, **options)
        if here:
            os.kill(os.getpid(), signal.SIGKILL)

    setattr(os, name, dying)


def rows(given: list[Document]) -> list[dict[str, Any]]:
    """The corpus as a source."""
    return [{"id": each.key, "title": each.title, "text": each.text, **each.metadata} for each in given]


def run(phase: str, folder: Path, encoder: FakeEncoder) -> None:
    """Run one phase of the corpus' life."""
    given: Any = encoder
    if phase == "delete":
        collection = ShardedCollection.open(folder, encoder=given)
        present = [key for key in DELETED if collection_has(collection, key)]
        if present:
            delete(collection, present)
        return
    settings = BuildSettings(batch=BATCH, sync=phase == "update")
    source = documents() if phase == "index" else changed()
    index_sharded(rows(list(source)), folder, SHARDS, settings=settings, encoder=given)


SHARDS = 3
DELETED = [each.key or "" for each in documents() if each.key][5:25]


def collection_has(collection: ShardedCollection, key: str) -> bool:
    """Whether a document is there."""
    with collection.view() as view:
        return view.document_number(key) is not None


if __name__ == "__main__":
    place, event = Path(sys.argv[2]), sys.argv[4]
    kill_around(event, place) if ":" in event else kill_at(int(event), place)
    run(sys.argv[1], place, FakeEncoder(Path(sys.argv[3]), seconds=0.0005))
    print(met)

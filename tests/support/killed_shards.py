"""A run over a sharded collection that is killed: run by test_kill.py in a process of its own.

usage: killed_shards.py index|cluster|tag|update|delete|compact|late|model|undo FOLDER LOG EVENT
At the EVENT-th time that it touches a file of the collection (0: never), the process sends itself SIGKILL. EVENT may
also be a step of publishing, such as "create:before:generations" or "rename:after:shards/02": before or after a file or
folder whose name in the collection begins so gets its name. "sql:5" is the fifth statement for the catalog of runs. At
the end, it prints how many files it touched, and how many such statements there were.
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
from other_encoder import OtherEncoder, loaded

from sonde.indexer.document import Document
from sonde.indexer.ingest import BuildSettings
from sonde.indexer.sharded.build import index_sharded
from sonde.indexer.sharded.collection import ShardedCollection
from sonde.indexer.sharded.late import build_late_sharded
from sonde.indexer.sharded.upkeep import compact_sharded
from sonde.indexer.store import catalog
from sonde.pipelines.analysis.selections import delete, tag

EVENTS = {"open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree"}
met = 0
statements = 0


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


def kill_at_statement(number: int) -> None:
    """Die before a statement for the catalog of runs that is being written, and count them."""
    real = catalog._open

    def traced(path: Path, mode: str) -> Any:
        connection = real(path, mode)
        if path.parent.name == "runs":
            connection.set_trace_callback(count)
        return connection

    def count(_: str) -> None:
        global statements
        statements += 1
        if statements == number:
            os.kill(os.getpid(), signal.SIGKILL)

    catalog._open = traced


def rows(given: list[Document]) -> list[dict[str, Any]]:
    """The corpus as a source."""
    return [{"id": each.key, "title": each.title, "text": each.text, **each.metadata} for each in given]


def run(phase: str, folder: Path, encoder: FakeEncoder) -> None:
    """Run one phase of the corpus' life."""
    given: Any = encoder
    if phase in ("model", "undo"):
        change_model(folder, encoder if phase == "model" else None)
        return
    if phase not in ("index", "update"):
        _on_an_existing_one(phase, ShardedCollection.open(folder, encoder=given))
        return
    settings = BuildSettings(batch=BATCH, sync=phase == "update")
    source = documents() if phase == "index" else changed()
    index_sharded(rows(list(source)), folder, SHARDS, settings=settings, encoder=given)


def _on_an_existing_one(phase: str, collection: ShardedCollection) -> None:
    if phase == "cluster":
        from sonde.pipelines.cluster.clustering import cluster
        from sonde.pipelines.cluster.settings import ClusterSettings

        cluster(collection, ClusterSettings(k=4, refits=0, names="terms"), name="k", replace=True)
    elif phase == "tag":
        tag(collection, "some", where='"cluster:k" IN (0, 2)', change="replace")
    elif phase == "compact":
        compact_sharded(collection)
    elif phase == "late":
        build_late_sharded(collection)
    elif present := [key for key in DELETED if collection_has(collection, key)]:
        delete(collection, present)


def change_model(folder: Path, encoder: FakeEncoder | None) -> None:
    """Give a sharded collection another model, if it does not have it; None goes back to the model before."""
    from sonde.indexer.sharded.model import bring_up_to_date, embed_beside, previous_beside, switch
    from sonde.indexer.upkeep.model import changing

    collection: Any = ShardedCollection.open(folder, loader=loaded)  # type: ignore[arg-type]
    with changing(folder):
        if encoder is None:
            other, spec = previous_beside(collection)
            bring_up_to_date(collection, other, lambda: loaded(spec))  # type: ignore[arg-type, return-value]
            switch(collection, other, lambda: loaded(spec))  # type: ignore[arg-type, return-value]
        elif collection.spec.name != encoder.spec.name:
            given: Any = encoder
            switch(collection, embed_beside(collection, given).folder, lambda: given)
    collection.close()


SHARDS = 3
DELETED = [each.key or "" for each in documents() if each.key][5:25]


def collection_has(collection: ShardedCollection, key: str) -> bool:
    """Whether a document is there."""
    with collection.view() as view:
        return view.document_number(key) is not None


if __name__ == "__main__":
    place, event = Path(sys.argv[2]), sys.argv[4]
    kill_at_statement(int(event[4:]) if event.startswith("sql:") else 0)
    if ":" not in event:
        kill_at(int(event), place)
    elif not event.startswith("sql:"):
        kill_around(event, place)
    kind = OtherEncoder if sys.argv[1] == "model" else FakeEncoder
    run(sys.argv[1], place, kind(Path(sys.argv[3]), seconds=0.0005))
    print(met, statements)

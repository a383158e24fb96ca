"""A writer that is killed: run by test_kill.py and test_late_index.py in a process of its own.

usage: killed_run.py index|update|compact|late|late-index|late-compact|model|undo FOLDER LOG EVENT
At the EVENT-th time that it touches a file of the collection (0: never), the process sends itself SIGKILL. EVENT may
also be before:NAME or after:NAME, for a function of indexer/store/exchange.py.
"""

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from fake_encoder import FakeEncoder
from kill_corpus import BATCH, changed, documents
from other_encoder import OtherEncoder, changed_to

from sonde.indexer.ingest import BuildSettings, index_documents
from sonde.indexer.ingest.late import build_late
from sonde.indexer.store import exchange
from sonde.indexer.store.collection import StoredCollection
from sonde.indexer.upkeep.delete import compact

EVENTS = {"open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree"}


def kill_at(number: int, folder: Path) -> None:
    """Die at the `number`-th file operation inside `folder`."""
    met = 0

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal met
        if event in EVENTS and arguments and str(arguments[0]).startswith(str(folder)):
            met += 1
            if met == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def kill_around(moment: str) -> None:
    """Die before or after a function of the exchange."""
    when, _, name = moment.partition(":")
    real = getattr(exchange, name)

    def dying(*given: object) -> object:
        found = real(*given) if when == "after" else None
        os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(exchange, name, dying)


def main(phase: str, folder: Path, log: Path, event: str) -> None:
    """Run one phase of the corpus' life."""
    if ":" in event:
        kill_around(event)
    elif int(event):
        kill_at(int(event), folder)
    encoder = FakeEncoder(log, seconds=0.0005)
    if phase == "index":
        index_documents(documents(), folder, settings=BuildSettings(batch=BATCH), encoder=encoder)  # type: ignore[arg-type]
    elif phase == "late-index":
        index_documents(documents(), folder, settings=BuildSettings(batch=BATCH, late=True), encoder=encoder)  # type: ignore[arg-type]
    elif phase == "late":
        build_late(StoredCollection.open(folder, encoder=encoder))  # type: ignore[arg-type]
    elif phase == "update":
        settings = BuildSettings(batch=BATCH, sync=True)
        index_documents(changed(), folder, settings=settings, encoder=encoder)  # type: ignore[arg-type]
    elif phase in ("model", "undo"):
        changed_to(OtherEncoder(log, seconds=0.0005) if phase == "model" else None, folder)
    else:
        compact(folder)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])

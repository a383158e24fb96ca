"""A writer that is killed: run by test_kill.py and test_late_index.py in a process of its own.

usage: killed_run.py index|update|compact|late|late-index|late-compact FOLDER LOG EVENT
At the EVENT-th time that it touches a file of the collection (0: never), the process sends itself SIGKILL.
"""

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from fake_encoder import FakeEncoder
from kill_corpus import BATCH, changed, documents

from sonde.indexer.ingest import BuildSettings, index_documents
from sonde.indexer.ingest.late import build_late
from sonde.indexer.store.collection import StoredCollection
from sonde.indexer.upkeep.delete import compact

EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree"}


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


def main(phase: str, folder: Path, log: Path, event: int) -> None:
    """Run one phase of the corpus' life."""
    if event:
        kill_at(event, folder)
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
    else:
        compact(folder)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))

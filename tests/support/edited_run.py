"""Edits a taxonomy in a process of its own, which is killed while it does.

usage: edited_run.py FOLDER OPERATION MOMENT

OPERATION is "rename", "update", "refit" or "undo". With MOMENT n of 1 and up, the process kills itself at the n-th
checksum that it stores: of the taxonomy, of its documents, of the log, of the log's documents, of the small tables.
With 0, it prints "here" when the work begins, and "done" when all is written.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from fake_encoder import FakeEncoder

from sonde.app.api import Collection
from sonde.indexer.store import catalog, run_editing

EDITS: dict[str, Callable[[Collection], Any]] = {
    "rename": lambda shop: shop.edit_taxonomy("rename", groups=[0], name="parcels"),
    "update": lambda shop: shop.update_taxonomy(),
    "refit": lambda shop: shop.refit_taxonomy(k=3),
    "undo": lambda shop: shop.undo_taxonomy(2),
}


def opened(folder: Path) -> Collection:
    """Return the collection with an encoder that needs no weights."""
    encoder: Any = FakeEncoder()
    return Collection.open(folder, encoder=encoder)


def _die_at(moment: int) -> None:
    """Make the functions that store checksums kill the process at the given call of any of them."""
    met = 0

    def dying(real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*given: Any, **more: Any) -> Any:
            nonlocal met
            met += 1
            if met == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*given, **more)

        return wrapped

    run_editing.store, run_editing.change = dying(run_editing.store), dying(run_editing.change)
    catalog.seal = dying(catalog.seal)


if __name__ == "__main__":
    if int(sys.argv[3]):
        _die_at(int(sys.argv[3]))
    shop = opened(Path(sys.argv[1]))
    print("here", flush=True)
    EDITS[sys.argv[2]](shop)
    print("done", flush=True)

"""SIGKILL while a taxonomy is edited, updated, refitted or an edit is undone: the state before, or the one after."""

import signal
import time
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from edited import made, rows_of
from edited_run import EDITS, opened
from forked import Forked

from sonde.app.api import Collection
from sonde.indexer.upkeep.verify import verify

RUNNER = Path(__file__).parents[2] / "support" / "edited_run.py"
LIBRARIES = ("sonde.app.api.taxonomy", "sonde.pipelines.taxonomy.refit", "sklearn.cluster")


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A taxonomy with three edits, of a collection with documents that it does not know."""
    shop = made(tmp_path_factory.mktemp("kill") / "shop.sonde")
    shop.edit_taxonomy("move", ids=["d0", "d1"], to=3)
    shop.edit_taxonomy("merge", groups=[2, 3])
    shop.edit_taxonomy("add", name="Shipping")
    shop.put([{"id": f"x{n}", "text": f"screen flicker {n}"} for n in range(40)])
    shop.stored.close()
    return shop.path


def state_of(shop: Collection) -> tuple[Any, ...]:
    """Return what the catalog says of the taxonomy, and its log."""
    return rows_of(shop.path), [entry.said for entry in shop.taxonomy_log(k=100)]


def check_whole(folder: Path, operation: str, before: tuple[Any, ...]) -> bool:
    """Check that a taxonomy is as before or after an edit, and can be edited on; return whether the edit was made."""
    shop = opened(folder)
    assert verify(shop.stored) == []
    now = state_of(shop)
    ended = len(now[1]) > len(before[1])
    if not ended:
        assert now == before
        EDITS[operation](shop)
    steps = 1 if operation != "undo" else 0
    if steps:
        shop.undo_taxonomy(steps)
        assert rows_of(shop.path) == before[0]
    assert verify(shop.stored) == []
    shop.stored.close()
    return ended


@pytest.mark.parametrize("moment", [1, 2, 3, 5])
@pytest.mark.parametrize("operation", EDITS)
def test_a_death_inside_the_transaction_leaves_the_state_before(
    edited: Path, tmp_path: Path, operation: str, moment: int
) -> None:
    folder = copytree(edited, tmp_path / "shop.sonde")
    before = state_of(opened(folder))
    forked = Forked(RUNNER, folder, operation, moment, libraries=LIBRARIES)
    out, errors = forked.communicate()
    assert (forked.returncode, out) == (-signal.SIGKILL, "here\n"), errors
    assert not check_whole(folder, operation, before)


@pytest.mark.parametrize("operation", ["rename", "update", pytest.param("refit", marks=pytest.mark.long)])
def test_a_kill_at_any_time_leaves_the_state_before_or_after(edited: Path, tmp_path: Path, operation: str) -> None:
    seconds, ended = 0.0, []
    for place in range(5):  # the first run is not killed: it says how long the work takes
        folder = copytree(edited, tmp_path / f"{place}.sonde")
        before = state_of(opened(folder))
        process = Forked(RUNNER, folder, operation, 0, libraries=LIBRARIES)
        assert process.stdout.readline() == "here\n"
        began = time.monotonic()
        if place:
            time.sleep(seconds * place / 5)
            process.kill()
        process.communicate()
        seconds = seconds or time.monotonic() - began
        ended.append(check_whole(folder, operation, before))
    assert ended[0]

"""Updates and refits: locks, rules and numbers survive; what is new is proposed."""

import os
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index
from sonde.app.api import open as open_collection
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.upkeep.verify import verify
from sonde.pipelines.taxonomy.places import STRANGE
from sonde.pipelines.taxonomy.refit import matched

WORDS = ("parcel late delivery", "refund money back", "battery dead phone", "login password wrong")
NEW = "screen flicker broken"


def rows(start: int, stop: int) -> list[dict[str, object]]:
    return [{"id": f"d{n}", "text": f"{WORDS[n % 4]} {n}", "metadata": {"n": n}} for n in range(start, stop)]


@pytest.fixture
def shop(tmp_path: Path) -> Collection:
    """160 documents in four groups, of which d0, d1, d2 and d3 are locked in wrong ones."""
    source = [{"id": row["id"], "text": row["text"], "n": n} for n, row in enumerate(rows(0, 160))]
    made = index(source, tmp_path / "shop.sonde", id="id", text="text", encoder=FakeEncoder())  # type: ignore[arg-type]
    documents = "id,group\n" + "".join(f"d{n},{n % 4}\n" for n in range(160))
    made.import_taxonomy("name\nlate\nrefund\nbattery\nlogin\n", "csv", documents=documents)
    for n in range(4):
        made.edit_taxonomy("move", ids=[f"d{n}"], to=(n + 1) % 4)
    return made


def groups_of(shop: Collection) -> dict[str, int]:
    return {one.id: one.number for one in shop.assignments("taxonomy")}


def change(shop: Collection) -> None:
    """Delete a fifth, and add as many of the same kinds and 40 of a new one."""
    shop.delete([f"d{n}" for n in range(4, 160, 5)])
    more = [{"id": f"x{n}", "text": f"{NEW} {n}"} for n in range(40)]
    shop.put([*rows(160, 192), *more])


@pytest.mark.parametrize("step", ["update", "refit"])
def test_locked_documents_and_numbers_survive_and_what_is_new_is_proposed(shop: Collection, step: str) -> None:
    change(shop)
    found = shop.update_taxonomy() if step == "update" else shop.refit_taxonomy()
    now = groups_of(shop)
    assert [now[f"d{n}"] for n in range(4)] == [1, 2, 3, 0]
    assert found.locked == 4 and found.kept == (4, 4)
    assert [(number, size) for number, _, size in found.proposed] == [(4, 40)]
    assert {now[f"x{n}"] for n in range(40)} == {4}
    old = [n for n in range(4, 192) if f"d{n}" in now]
    assert np.mean([now[f"d{n}"] == n % 4 for n in old]) > 0.95
    assert found.added == 72 and set(now) == {row["id"] for row in shop.rows()}
    group = shop.taxonomy()[4]
    assert group.proposed and set(group.name.replace(",", "").split()) <= set(NEW.split())
    assert group.source == "new documents" and all(text.startswith("screen") for text in group.examples)
    assert shop.taxonomy_log()[0].said == f"{step}: 72 documents added, {found.moved:,} moved, 1 group proposed"
    assert verify(shop.stored) == []


def test_an_update_moves_nothing_that_it_knows(shop: Collection) -> None:
    before = groups_of(shop)
    assert shop.update_taxonomy().added == 0
    assert shop.taxonomy().edits == 5  # no entry: nothing was different
    change(shop)
    assert shop.update_taxonomy().moved == 0
    now = groups_of(shop)
    assert {id: number for id, number in now.items() if id in before} == {
        id: number for id, number in before.items() if id in now
    }


def test_new_documents_like_the_old_ones_are_not_proposed(shop: Collection) -> None:
    shop.put(rows(160, 220))
    found = shop.update_taxonomy()
    assert found.proposed == () and found.added == 60
    assert found.outside <= 3  # a share of STRANGE is expected
    assert STRANGE == 0.01


def test_what_is_far_from_all_groups_is_in_none(shop: Collection) -> None:
    shop.put([{"id": "odd", "text": "quantum violin mountain"}])
    found = shop.update_taxonomy()
    assert (found.added, found.outside, groups_of(shop)["odd"]) == (1, 1, -1)
    shop.edit_taxonomy("move", ids=["odd"], to=2)
    shop.refit_taxonomy()
    assert groups_of(shop)["odd"] == 2


def test_a_lock_survives_another_text_and_a_deletion(shop: Collection) -> None:
    shop.delete(["d0"])
    shop.put([{"id": "d1", "text": "something quite different"}])
    assert {"d0", "d1"} & set(groups_of(shop)) == set()  # as in every run, until the update
    shop.put([{"id": "d0", "text": "parcel late delivery 0"}])
    assert shop.update_taxonomy().locked == 4
    assert (groups_of(shop)["d0"], groups_of(shop)["d1"]) == (1, 2)


def test_rules_fill_their_groups_at_each_update(shop: Collection) -> None:
    shop.edit_taxonomy("rule", groups=["battery"], where="n >= 150")
    shop.put([*rows(160, 168), {"id": "b", "text": "battery dead phone", "metadata": {"n": 1}}])
    found = shop.update_taxonomy()
    now = groups_of(shop)
    assert {now[f"d{n}"] for n in range(150, 168)} == {2}
    assert now["b"] != 2 and now["d6"] != 2  # neither matches the rule
    assert now["d1"] == 2  # locked there
    assert found.conflicts == ()


def test_of_two_rules_the_first_wins_and_it_is_said(shop: Collection) -> None:
    shop.edit_taxonomy("rule", groups=["login"], where="n >= 156")
    shop.edit_taxonomy("rule", groups=["refund"], where="n >= 158")
    found = shop.update_taxonomy()
    assert {groups_of(shop)[f"d{n}"] for n in (158, 159)} == {1}
    [conflict] = found.conflicts
    assert (conflict.first, conflict.second, conflict.documents) == (1, 3, 2)
    assert conflict.said == "the rules of the groups 1 and 3 both match 2 documents (d158, d159): group 1 gets them"


def test_proposed_groups_are_accepted_or_rejected(shop: Collection) -> None:
    change(shop)
    shop.update_taxonomy()
    shop.edit_taxonomy("accept", groups=[4])
    assert not shop.taxonomy()[4].proposed
    shop.undo_taxonomy()
    entry = shop.edit_taxonomy("reject", groups=[4])
    assert entry and entry.documents == 40
    assert [one.number for one in shop.taxonomy().groups] == [0, 1, 2, 3]
    assert -1 not in {groups_of(shop)[f"x{n}"] for n in range(40)}
    shop.put([{"id": f"y{n}", "text": f"{NEW} {n + 100}"} for n in range(10)])
    assert shop.update_taxonomy().proposed == ()  # old texts lie there now


def test_a_refit_corrects_groups_and_keeps_locked_ones(shop: Collection) -> None:
    shop.edit_taxonomy("lock", groups=["login"])
    wrong = [f"d{n}" for n in range(20, 60) if n % 4 != 3]
    shop.edit_taxonomy("move", ids=wrong, to="late", lock=False)
    before = groups_of(shop)
    found = shop.refit_taxonomy()
    now = groups_of(shop)
    assert [now[id] for id in wrong] == [int(id[1:]) % 4 for id in wrong]
    assert [now[f"d{n}"] for n in range(4)] == [1, 2, 3, 0]
    assert {id for id, number in before.items() if number == 3} == {id for id, number in now.items() if number == 3}
    assert found.moved == len([id for id in wrong if int(id[1:]) % 4])


def test_a_refit_with_another_number_of_groups_proposes_the_rest(shop: Collection) -> None:
    shop.edit_taxonomy("merge", groups=["late", "refund"])
    found = shop.refit_taxonomy(k=4)
    now = groups_of(shop)
    assert len(found.proposed) == 1 and found.kept[1] == 3
    assert len({now[f"d{n}"] for n in range(4, 160, 4)}) == len({now[f"d{n}"] for n in range(5, 160, 4)}) == 1
    assert now["d4"] != now["d5"] and found.proposed[0][0] in (now["d4"], now["d5"])
    assert now["d0"] == 0  # moved by hand to what is now a part of group 0
    with pytest.raises(UsageError, match="k is 0: give 1 to 160, the number of different texts"):
        shop.refit_taxonomy(k=0)


def test_learned_groups_are_matched_where_they_share_most() -> None:
    learned = np.array([0, 0, 0, 1, 1, 2, 2, -1])
    old = np.array([2, 2, 1, 1, 1, 1, -1, 0])
    assert matched(learned, old, 3, 3).tolist() == [2, 1, -1]


def test_an_edit_in_the_meantime_is_not_lost(shop: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("sonde.pipelines.taxonomy.update")

    real = module.finish

    def late(*given: object) -> object:
        shop.edit_taxonomy("rename", groups=[0], name="another")
        return real(*given)  # type: ignore[arg-type]

    change(shop)
    monkeypatch.setattr(module, "finish", late)
    with pytest.raises(SondeError, match="the taxonomy 'taxonomy' was edited in the meantime: run the command again"):
        shop.update_taxonomy()
    assert shop.taxonomy()[0].name == "another" and shop.taxonomy().unknown == 72


def test_documents_that_change_in_the_meantime_are_left_out(shop: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("sonde.pipelines.taxonomy.update")

    real = module.finish

    def late(*given: object) -> object:
        shop.delete(["d160"])
        shop.put([{"id": "d161", "text": "other words"}])
        return real(*given)  # type: ignore[arg-type]

    shop.put(rows(160, 170))
    monkeypatch.setattr(module, "finish", late)
    shop.update_taxonomy()
    assert {f"d{n}" for n in range(160, 170)} & set(groups_of(shop)) == {f"d{n}" for n in range(162, 170)}
    assert verify(shop.stored) == []


def test_another_model_keeps_the_taxonomy(shop: Collection) -> None:
    """No embedding is stored in it: an update reads those that the collection has."""
    run = shop.run("taxonomy").run
    assert not run.kind.embedded and run.model is None and not run.other_model


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from fake_encoder import FakeEncoder
import sonde
from sonde.indexer.store import run_editing
from sonde.indexer.store.catalog import Catalog

moment, met = int(sys.argv[3]), 0
def dying(real):
    def wrapped(*given, **more):
        global met
        met += 1
        if met == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*given, **more)
    return wrapped
run_editing.store = dying(run_editing.store)
run_editing.change = dying(run_editing.change)
from sonde.indexer.store import catalog
catalog.seal = dying(catalog.seal)
shop = sonde.open(sys.argv[1])
shop.stored.use(FakeEncoder())
shop.edit_taxonomy("merge", groups=[0, 1])
"""
"""Dies at the n-th checksum: of the taxonomy, of its documents, of the log, of the log's documents, of the tables."""


@pytest.mark.parametrize("moment", [1, 2, 3, 4, 5])
def test_a_killed_edit_leaves_all_or_nothing(shop: Collection, tmp_path: Path, moment: int) -> None:
    before, edits = groups_of(shop), shop.taxonomy().edits
    path = shop.path
    shop.stored.close()
    support = str(Path(__file__).parents[2] / "support")
    ran = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), support, str(moment)],
        env=os.environ,
        capture_output=True,
        check=False,
    )
    assert ran.returncode == -signal.SIGKILL, ran.stderr.decode()
    again = open_collection(path)
    again.stored.use(FakeEncoder())  # type: ignore[arg-type]
    assert groups_of(again) == before and again.taxonomy().edits == edits
    assert verify(again.stored) == []
    entry = again.edit_taxonomy("merge", groups=[0, 1])
    assert entry and entry.number == edits + 1 and verify(again.stored) == []

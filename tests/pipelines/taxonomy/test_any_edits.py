"""Any edits of a taxonomy, then as many undos, give the first state, bit for bit."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from edited import WORDS, rows_of
from fake_encoder import FakeEncoder
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from sonde.app.api import index
from sonde.app.api import open as open_collection
from sonde.indexer.errors import SondeError
from sonde.indexer.upkeep.verify import verify


class Edited(RuleBasedStateMachine):
    """Any edits, then as many undos: the taxonomy is what it was, bit for bit, and so is its checksum."""

    base: Path
    folder: Path

    @initialize()
    def begin(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.base, self.folder)
        self.shop = open_collection(self.folder)
        self.shop.stored.use(FakeEncoder())  # type: ignore[arg-type]
        self.first = rows_of(self.folder)
        self.states = [self.first]

    def edit(self, operation: Any, **given: Any) -> None:
        try:
            entry = self.shop.edit_taxonomy(operation, **given)
        except SondeError:
            assert rows_of(self.folder) == self.states[-1]
            return
        if entry is None:
            assert rows_of(self.folder) == self.states[-1]
        else:
            self.states.append(rows_of(self.folder))

    groups = st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True)
    ids = st.lists(st.integers(0, 11).map(lambda n: f"d{n}"), min_size=1, max_size=4)

    @rule(name=st.text(max_size=4), to=st.sampled_from(["top", 0, 1, 4, 5]))
    def add(self, name: str, to: int | str) -> None:
        self.edit("add", name=name, to=to)

    @rule(group=st.integers(0, 9), name=st.text(max_size=4))
    def rename(self, group: int, name: str) -> None:
        self.edit("rename", groups=[group], name=name)

    @rule(group=st.integers(0, 9), text=st.text(max_size=4))
    def describe(self, group: int, text: str) -> None:
        self.edit("describe", groups=[group], description=text)

    @rule(groups=groups)
    def merge(self, groups: list[int]) -> None:
        self.edit("merge", groups=groups)

    @rule(groups=groups, to=st.sampled_from(["top", 0, 1, 2, 3, 4, 5]))
    def move(self, groups: list[int], to: int | str) -> None:
        self.edit("move", groups=groups, to=to)

    @rule(ids=ids, to=st.sampled_from(["none", 0, 1, 2, 3, 4, 5]), lock=st.booleans())
    def assign(self, ids: list[str], to: int | str, lock: bool) -> None:
        self.edit("move", ids=ids, to=to, lock=lock)

    @rule(groups=groups)
    def remove(self, groups: list[int]) -> None:
        self.edit("remove", groups=groups)

    @rule(groups=groups, operation=st.sampled_from(["lock", "unlock"]))
    def lock(self, groups: list[int], operation: str) -> None:
        self.edit(operation, groups=groups)

    @rule(ids=ids, operation=st.sampled_from(["lock", "unlock"]))
    def lock_documents(self, ids: list[str], operation: str) -> None:
        self.edit(operation, ids=ids)

    @rule(group=st.integers(0, 9), low=st.integers(0, 12))
    def split(self, group: int, low: int) -> None:
        self.edit("split", groups=[group], where=f"n >= {low}", name="part")

    @rule(group=st.integers(0, 9), low=st.one_of(st.none(), st.integers(0, 12)))
    def give_rule(self, group: int, low: int | None) -> None:
        self.edit("rule", groups=[group], **({} if low is None else {"where": f"n >= {low}"}))

    @rule(level=st.integers(0, 2), name=st.text(max_size=3))
    def rename_level(self, level: int, name: str) -> None:
        self.edit("rename", level=level, name=name)

    @precondition(lambda self: len(self.states) > 1)
    @rule(data=st.data())
    def undo(self, data: Any) -> None:
        steps = data.draw(st.integers(1, len(self.states) - 1))
        self.shop.undo_taxonomy(steps)
        del self.states[-steps:]
        assert rows_of(self.folder) == self.states[-1]

    @invariant()
    def tree_is_whole(self) -> None:
        if hasattr(self, "shop"):
            found = self.shop.taxonomy()
            numbers = {one.number for one in found.groups}
            assert {one.parent for one in found.groups} <= {*numbers, None}
            assert found.documents == 12 and sum(one.documents for one in found.groups) + found.outside == 12

    def teardown(self) -> None:
        if len(self.states) > 1:
            self.shop.undo_taxonomy(len(self.states) - 1)
        assert rows_of(self.folder) == self.first
        assert verify(self.shop.stored) == []
        self.shop.stored.close()


def test_any_edits_and_as_many_undos_give_the_first_state(tmp_path: Path) -> None:
    rows = [{"id": f"d{n}", "text": f"{WORDS[n % 4]} {n}", "n": n} for n in range(12)]
    shop = index(rows, tmp_path / "base.sonde", id="id", text="text", encoder=FakeEncoder())  # type: ignore[arg-type]
    documents = "id,group\n" + "".join(f"d{n},{n % 4}\n" for n in range(12))
    shop.import_taxonomy("name,parent\nlate,\nlost,late\ndead,\nweak,dead\n", "csv", documents=documents)
    shop.stored.close()

    machine: Callable[[], RuleBasedStateMachine] = type(
        "Machine", (Edited,), {"base": tmp_path / "base.sonde", "folder": tmp_path / "work.sonde"}
    )
    some = settings(
        max_examples=12, stateful_step_count=15, deadline=None, derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )  # fmt: skip
    run_state_machine_as_test(machine, settings=some)

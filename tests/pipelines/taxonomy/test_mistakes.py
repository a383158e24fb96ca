"""Mistakes that people make with taxonomies: each is refused or said, and nothing is lost."""

from pathlib import Path
from typing import Any

import pytest
from edited import made, rows_of

from sonde.app.api import Collection
from sonde.indexer.errors import SondeError, UsageError


@pytest.fixture
def shop(tmp_path: Path) -> Collection:
    return made(tmp_path / "shop.sonde")


def groups_of(shop: Collection) -> dict[str, int]:
    return {row["id"]: row["taxonomy:tree"] for row in shop.rows()}


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("rule", {"groups": [0], "where": "nope > 1"}, "the rule of the group 0 'late': there is no field 'nope'"),
    ("rule", {"groups": [0], "near": 0.5}, "near is the cosine to examples: give examples too"),
    ("rename", {"groups": [True], "name": "x"}, "groups has True: give numbers, names or paths"),
]


@pytest.mark.parametrize(("operation", "given", "said"), REFUSED, ids=[said for _, _, said in REFUSED])
def test_a_mistake_changes_nothing(shop: Collection, operation: str, given: dict[str, Any], said: str) -> None:
    shop.edit_taxonomy("rule", groups=[0], where="n < 4")
    before = rows_of(shop.path)
    with pytest.raises(SondeError) as refused:
        shop.edit_taxonomy(operation, **given)  # type: ignore[arg-type]
    assert said in str(refused.value) and "\n" not in str(refused.value)
    assert rows_of(shop.path) == before and shop.taxonomy()[0].rule == "n < 4"


@pytest.mark.parametrize("way", [{"k": 2}, {"where": "n < 9"}, {"examples": ["d1"]}], ids=["k", "where", "examples"])
def test_a_split_of_an_empty_group_names_the_groups_under_it(shop: Collection, way: dict[str, Any]) -> None:
    shop.edit_taxonomy("add", name="Shipping")
    with pytest.raises(UsageError, match=r"^the group 4 'Shipping' has no documents of its own$"):
        shop.edit_taxonomy("split", groups=[4], **way)
    shop.edit_taxonomy("move", groups=["late", "lost"], to="Shipping")
    said = "the group 4 'Shipping' has no documents of its own: split a group under it: 0 'late', 1 'lost'$"
    with pytest.raises(UsageError, match=said):
        shop.edit_taxonomy("split", groups=[4], **way)


def test_a_group_in_a_new_taxonomy_says_so(shop: Collection) -> None:
    entry = shop.edit_taxonomy("add", "trea", name="Shipping")
    assert entry and entry.said == "added 0 'Shipping' in the new taxonomy 'trea'"
    entry = shop.edit_taxonomy("add", "trea", name="Billing")
    assert entry and entry.said == "added 1 'Billing'"


def test_a_rule_says_which_documents_it_does_not_get(shop: Collection) -> None:
    shop.edit_taxonomy("move", ids=["d0"], to="lost")
    shop.edit_taxonomy("rule", groups=["dead"], where="n = 1")
    entry = shop.edit_taxonomy("rule", groups=["weak"], where="n < 3")
    assert entry and entry.documents == 1  # d2
    assert entry.said == "gave 3 'weak' the rule: n < 3; 2 matching documents are locked or held by another rule"


def test_a_rule_leaves_documents_in_the_groups_under_it(shop: Collection) -> None:
    """The rule of a group took the documents of its own subgroups."""
    before = groups_of(shop)
    shop.edit_taxonomy("add", name="everything")
    number = next(one.number for one in shop.taxonomy().groups if one.name == "everything")
    shop.edit_taxonomy("move", groups=["dead"], to="everything")
    dead = next(one.number for one in shop.taxonomy().groups if one.name == "dead")
    inside = [id for id, group in before.items() if group == dead]
    entry = shop.edit_taxonomy("rule", groups=["everything"], where="n >= 0")
    assert entry and entry.documents == len(before) - len(inside)
    said = f"gave {number} 'everything' the rule: n >= 0; {len(inside)} matching documents stay in groups under it"
    assert entry.said == said
    now = groups_of(shop)
    assert all(now[id] == before[id] for id in inside)
    assert {group for id, group in now.items() if id not in inside} == {number}


def test_of_rules_of_which_one_lies_under_the_other_the_lower_one_wins(shop: Collection) -> None:
    shop.edit_taxonomy("add", name="everything")
    shop.edit_taxonomy("rule", groups=["everything"], where="n < 10")
    shop.edit_taxonomy("move", groups=["everything"], to="dead")
    shop.edit_taxonomy("rule", groups=["dead"], where="n < 20")
    numbers = {one.name: one.number for one in shop.taxonomy().groups}
    now = groups_of(shop)
    assert {now[f"d{n}"] for n in range(10)} == {numbers["everything"]}
    assert {now[f"d{n}"] for n in range(10, 20)} == {numbers["dead"]}
    assert shop.update_taxonomy().conflicts == ()


def test_an_update_with_only_empty_groups_is_refused(shop: Collection) -> None:
    shop.import_taxonomy("name\nparcels\nbatteries\n", "csv", "few")
    said = "no group of the taxonomy 'few' has documents, so none can be near to one: move some there, give rules"
    with pytest.raises(UsageError, match=said):
        shop.update_taxonomy("few")
    assert shop.taxonomy("few").unknown == 40
    shop.edit_taxonomy("move", "few", ids=["d0"], to="parcels")
    shop.edit_taxonomy("move", "few", ids=["d2"], to="batteries")
    assert shop.update_taxonomy("few").added == 38


def test_a_move_by_a_filter_says_what_locked_groups_keep(shop: Collection) -> None:
    inside = {group.number: group.total for group in shop.taxonomy().groups}
    shop.edit_taxonomy("lock", groups=[0, 1])
    entry = shop.edit_taxonomy("move", where="n >= 0", to=3)
    assert entry and entry.documents == inside[2]
    kept = f"locked groups keep {inside[0] + inside[1]} of {sum(inside.values())} documents: "
    moved = f"moved {inside[2]} documents to 3 'weak'; {inside[3]} were there already"
    assert entry.said.startswith(f"{moved}; {kept}")
    assert f"0 'late' ({inside[0]})" in entry.said and f"1 'lost' ({inside[1]})" in entry.said
    assert entry.said.endswith("; to move them too, unlock these groups first")
    before = rows_of(shop.path)
    for given in ({"where": "n >= 0", "ids": ["d0"]}, {"where": '"taxonomy:tree" = 0'}):
        with pytest.raises(UsageError, match=r"^nothing was moved: locked groups keep "):
            shop.edit_taxonomy("move", to=3, **given)  # type: ignore[arg-type]
    assert rows_of(shop.path) == before
    entry = shop.edit_taxonomy("move", where="n >= 0", to=0)
    said = f"moved {inside[2] + inside[3]} documents to 0 'late'; {inside[0]} were there already; "
    assert entry and entry.said.startswith(said), "may join"

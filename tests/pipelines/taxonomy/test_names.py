"""Names of groups that nobody could use: refused from a person, changed when a run or a file brings them."""

import re
from pathlib import Path
from typing import Any

import pytest
from edited import made, rows_of

from sonde.app.api import Collection
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.upkeep.verify import verify
from sonde.pipelines.taxonomy.changes import State
from sonde.pipelines.taxonomy.groups import Group
from sonde.pipelines.taxonomy.making import without_chains


@pytest.fixture
def shop(tmp_path: Path) -> Collection:
    return made(tmp_path / "shop.sonde")


def names(shop: Collection, taxonomy: str | None = None) -> dict[int, str]:
    return {one.number: one.path for one in shop.taxonomy(taxonomy).groups}


REFUSED = [
    ("add", {"name": " 12 "}, "the name '12' would be read as the number of a group: add a word, such as 'group 12'"),
    ("rename", {"groups": [0], "name": "3"}, "the name '3' would be read as the number of a group"),
    ("add", {"name": "None"}, "the name 'None' stands for documents in no group: add a word, such as 'group None'"),
    ("rename", {"groups": [0], "name": "TOP"}, "the name 'TOP' stands for the top of the tree: add a word"),
    ("add", {"name": "no group"}, "the name 'no group' stands for documents in no group: add a word"),
    ("split", {"groups": [0], "where": "n < 9", "name": "none"}, "the name 'none' stands for documents in no group"),
    ("add", {"name": "a > b"}, "the name 'a > b' contains ' > ', which separates the names of a path: use another"),
    ("add", {"name": "late"}, "group 0 'late' at the top level already has this name: give another name"),
    ("rename", {"groups": [1], "name": "late"}, "group 0 'late' at the top level already has this name"),
    ("split", {"groups": [0], "where": "n < 9", "name": "7"}, "the name '7' would be read as the number of a group"),
    ("move", {"groups": [4], "to": "top"}, "group 0 'late' at the top level already has this name: rename 4 or 0"),
    ("move", {"groups": [2], "to": 2}, "the group 2 'dead' cannot lie under itself: give another group, or top"),
    ("move", {"groups": [1], "to": 4}, "the group 1 'lost' cannot move under 4 'late', which lies under it: move 4"),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "options", "said"), REFUSED, ids=[said[:40] for *_, said in REFUSED])
def test_a_person_is_refused(shop: Collection, operation: Any, options: dict[str, Any], said: str) -> None:
    shop.edit_taxonomy("add", name="late", to=1)
    before = rows_of(shop.path)
    with pytest.raises(UsageError) as refused:
        shop.edit_taxonomy(operation, **options)
    assert said in str(refused.value)
    assert rows_of(shop.path) == before


def test_a_rename_to_the_own_name_and_equal_names_elsewhere_are_allowed(shop: Collection) -> None:
    assert shop.edit_taxonomy("rename", groups=[0], name="late") is None
    shop.edit_taxonomy("add", name="late", to=1)
    assert names(shop)[4] == "lost > late"


def test_a_name_that_several_groups_have_is_refused_with_their_numbers_and_paths(shop: Collection) -> None:
    shop.edit_taxonomy("add", name="late", to=0)
    said = "several groups are named 'late': 0 (at the top), 4 (late > late); give a number or a path"
    with pytest.raises(UsageError, match=re.escape(said)) as refused:
        shop.edit_taxonomy("rename", groups=["late"], name="too late")
    assert refused.value.alternatives == ("0", "4")
    shop.edit_taxonomy("rename", groups=["late > late"], name="too late")
    assert names(shop)[4] == "late > too late"
    for number in range(7):
        shop.edit_taxonomy("add", name="other", to=number)
    with pytest.raises(UsageError, match=re.escape("8 (weak > other), 9 (late > too late > other) and 2 more; give")):
        shop.edit_taxonomy("remove", groups=["other"])


def test_groups_that_come_together_get_different_names(shop: Collection) -> None:
    shop.edit_taxonomy("add", name="late", to=1)
    shop.edit_taxonomy("add", name="late", to=2)
    entry = shop.edit_taxonomy("remove", groups=[1])
    assert entry and entry.said == "removed 1 'lost'; moved 4 'late' to the top; renamed 4 'late' to 'late (2)'"
    shop.edit_taxonomy("remove", groups=[2])
    assert names(shop) == {0: "late", 3: "weak", 4: "late (2)", 5: "late (3)"}
    shop.undo_taxonomy(2)
    assert names(shop) == {0: "late", 1: "lost", 2: "dead", 3: "weak", 4: "lost > late", 5: "dead > late"}
    assert verify(shop.stored) == []


def test_names_in_files_and_labels_are_changed_and_the_log_says_so(shop: Collection) -> None:
    table = "number,name,parent\n0,2024,\n1,a > b,0\n2,x,0\n3,x,0\n4,x (2),0\n"
    told: list[Any] = []
    shop.import_taxonomy(table, "csv", "years", progress=told.append)
    assert names(shop, "years") == {
        0: "group 2024", 1: "group 2024 > a / b", 2: "group 2024 > x", 3: "group 2024 > x (2)",
        4: "group 2024 > x (2) (2)",
    }  # fmt: skip
    said = shop.taxonomy_log("years")[0].said
    assert said.startswith(
        "imported 5 groups, 0 documents; renamed 0 '2024' to 'group 2024'; renamed 1 'a > b' to 'a / b'"
    )
    assert "note: renamed 3 'x' to 'x (2)'" in told
    again = shop.export_taxonomy("csv", "years")
    shop.import_taxonomy(again, "csv", "again")
    assert names(shop, "again") == names(shop, "years")


def test_words_for_places_are_changed_in_files(shop: Collection) -> None:
    shop.import_taxonomy("name\nnone\nTop\nNo group\nnone of these\n", "csv", "words")
    assert names(shop, "words") == {0: "group none", 1: "group Top", 2: "group No group", 3: "none of these"}


def test_chains_of_one_group_are_one_group() -> None:
    import numpy as np

    groups = {
        0: Group(0, "cards"), 1: Group(1, "cash"), 2: Group(2, "cards", parent=0), 3: Group(3, "cash", parent=1),
        4: Group(4, "cards", parent=2, examples=("a card",)), 5: Group(5, "lost", parent=3),
        6: Group(6, "late", parent=3), 7: Group(7, "other name", parent=8), 8: Group(8, "one"),
    }  # fmt: skip
    state = State(groups, np.arange(4), np.array([4, 5, 6, 7]), np.zeros(4))
    found = without_chains(state)
    assert {n: (one.name, one.parent) for n, one in found.groups.items()} == {
        0: ("cards", None), 1: ("cash", None), 5: ("lost", 1), 6: ("late", 1), 7: ("other name", 8), 8: ("one", None),
    }  # fmt: skip
    assert found.groups[0].examples == ("a card",)
    assert found.numbers.tolist() == [0, 5, 6, 7]


def test_a_concept_with_two_broader_ones_is_reported(shop: Collection) -> None:
    pytest.importorskip("rdflib")
    text = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
<urn:a> a skos:Concept ; skos:prefLabel "animals" .
<urn:b> a skos:Concept ; skos:prefLabel "pets" .
<urn:c> a skos:Concept ; skos:prefLabel "cats" ; skos:broader <urn:b>, <urn:a> .
"""
    told: list[Any] = []
    shop.import_taxonomy(text, "ttl", "zoo", progress=told.append)
    note = "'cats' has 2 broader concepts: it lies under 'animals', not under 'pets'"
    assert f"note: {note}" in told
    assert shop.taxonomy_log("zoo")[0].said == f"imported 3 groups, 0 documents; {note}"


def test_without_a_taxonomy_the_message_says_how_to_make_one(shop: Collection) -> None:
    shop.delete_run("tree")
    with pytest.raises(
        SondeError, match=r"make one from a run with `sonde taxonomy C --from RUN`, or begin with an empty"
    ):
        shop.taxonomy()

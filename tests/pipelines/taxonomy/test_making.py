"""A taxonomy of a topic run that people edited: it keeps their names, merges and splits."""

from typing import Any

import pytest
from extras import needs
from themes import collection, rows

from sonde.app.api import Collection
from sonde.indexer.store.runs import Item
from sonde.pipelines.taxonomy.making import with_edits

COARSE = [[0, 1, 2], [3, 4]]
MIDDLE = [[0], [1, 2], [3], [4]]
FINE = [[leaf] for leaf in range(5)]


def item(number: int, leaves: list[int], parent: int | None = None, name: str = "", **data: Any) -> Item:
    """A group of ten documents for each leaf, named by a person if a name is given."""
    own = {"leaves": leaves, "named": str(leaves), "size": 10 * len(leaves), **data}
    return Item(number, name or str(leaves), own | ({} if parent is None else {"parent": parent}))


def levels() -> list[list[Item]]:
    coarse = [item(number, leaves) for number, leaves in enumerate(COARSE)]
    middle = [item(number, leaves, int(leaves[0] > 2)) for number, leaves in enumerate(MIDDLE)]
    return [coarse, middle, [item(leaf, [leaf], [0, 1, 1, 2, 3][leaf]) for leaf in range(5)]]


def shown(found: list[list[Item]]) -> list[list[tuple[str, Any]]]:
    return [[(each.name, each.data.get("parent")) for each in level] for level in found]


def test_nothing_changes_without_an_edit() -> None:
    for place, topics in enumerate(levels()):
        assert shown(with_edits(levels(), place, topics)) == shown(levels())
        assert shown(with_edits(levels(), None, topics)) == shown(levels())


def test_a_name_is_kept_on_every_level_with_the_same_documents() -> None:
    topics = levels()[1]
    topics[0] = item(0, [0], 0, "Stolen phone")
    found = shown(with_edits(levels(), 1, topics))
    assert (found[1][0], found[2][0]) == (("Stolen phone", 0), ("Stolen phone", 0))
    own = levels()
    own[1][1] = item(1, [1, 2], 0, "Of the level")
    assert shown(with_edits(own, 1, topics))[1][:2] == [("Stolen phone", 0), ("Of the level", 0)]


def test_a_merge_inside_a_larger_group() -> None:
    parts = [{"number": 0, "name": "Stolen phone", "data": {"leaves": [0], "named": "[0]"}}]
    topics = [item(0, [0, 1, 2], name="Phones", parts=parts), *levels()[1][2:]]
    coarse, middle, fine = shown(with_edits(levels(), 1, topics))
    assert coarse == [("Phones", None), ("[3, 4]", None)]
    assert middle == [("Phones", 0), ("[3]", 1), ("[4]", 1)]
    assert fine == [("Stolen phone", 0), ("[1]", 0), ("[2]", 0), ("[3]", 2), ("[4]", 3)]


def test_a_merge_across_larger_groups_lies_where_most_of_it_is() -> None:
    topics = [levels()[1][0], item(1, [1, 2, 3]), item(3, [4], 1)]
    coarse, middle, fine = shown(with_edits(levels(), 1, topics))
    assert coarse == [("[0, 1, 2]", None), ("[3, 4]", None)]
    assert middle == [("[0]", 0), ("[1, 2, 3]", 0), ("[4]", 1)]
    assert [parent for _, parent in fine] == [0, 1, 1, 1, 3]


@pytest.mark.parametrize(("name", "left"), [("", []), ("Kept", [("Kept", None)])])
def test_a_larger_group_without_topics_is_left_out_unless_a_person_named_it(name: str, left: list[Any]) -> None:
    own = levels()
    own[0][1] = item(1, [3, 4], name=name)
    topics = [item(0, [0, 1, 2, 3, 4])]
    assert shown(with_edits(own, 1, topics))[:2] == [[("[0, 1, 2, 3, 4]", None), *left], [("[0, 1, 2, 3, 4]", 0)]]
    fine = [item(0, [0, 1, 2, 3]), item(4, [4])]
    assert shown(with_edits(levels(), 2, fine)) == [
        [("[0, 1, 2, 3]", None), ("[3, 4]", None)], [("[0, 1, 2, 3]", 0), ("[4]", 1)],
        [("[0, 1, 2, 3]", 1), ("[4]", 3)],
    ]  # fmt: skip


def test_a_split_of_a_coarse_topic() -> None:
    topics = [item(0, [0]), levels()[0][1], item(2, [1, 2])]
    coarse, middle, _ = shown(with_edits(levels(), 0, topics))
    assert [name for name, _ in coarse] == ["[0]", "[3, 4]", "[1, 2]"]
    assert [parent for _, parent in middle] == [0, 2, 1, 1]


@pytest.fixture
def shop(tmp_path: Any) -> Collection:
    """Topics of four themes, two of which have finer groups."""
    made = collection(tmp_path / "shop.sonde", rows())
    made.topics()
    return made


@needs("bertopic", "evoc")
def test_names_and_merges_of_a_topic_run(shop: Collection) -> None:
    shop.rename_run("topics", "Stolen phone", item=1)
    merged = [documents.id for number in (0, 2) for documents in shop.topic_run().documents(number, 99)]
    shop.topic_run().merge([0, 2])
    shop.rename_run("topics", "Late and dead", item=0)
    found = shop.make_taxonomy("topics")
    top = [group for group in found.groups if group.level == 0]
    assert [group.name for group in top] == ["Late and dead", "Stolen phone", shop.topic_run()[2].name]
    assert [group.total for group in top] == [60, 30, 30]
    assert found.levels[:1] == ("coarse",)
    inside = shop.matching("\"taxonomy:taxonomy name\" = 'Late and dead'", k=99)[1]
    assert sorted(each.id for each in inside) == sorted(merged)
    assert shop.verify() == []


@needs("bertopic", "evoc")
def test_merged_topics_of_the_finest_level(tmp_path: Any) -> None:
    made = collection(tmp_path / "shop.sonde", rows())
    made.topics(level="fine")
    size = sum(topic.size for topic in made.topic_run()[:2])
    made.topic_run().merge([0, 1])
    found = made.make_taxonomy("topics")
    assert sum(group.documents for group in found.groups) == found.documents == 120
    assert made.topic_run()[0].name in [group.name for group in found.groups if group.total == size]

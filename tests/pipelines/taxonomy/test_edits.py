"""Edits of a taxonomy: what each does, that each is one entry of the log, and that each can be undone."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from edited import made, rows_of
from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.store.kinds import EDIT
from sonde.indexer.upkeep.verify import verify


@pytest.fixture
def shop(tmp_path: Path) -> Collection:
    return made(tmp_path / "shop.sonde")


def tree(shop: Collection) -> list[tuple[int, str, int | None, int]]:
    return [(one.number, one.name, one.parent, one.documents) for one in shop.taxonomy().groups]


def groups_of(shop: Collection, *ids: str) -> list[int]:
    found = {one.id: one.number for one in shop.assignments("tree")}
    return [found[id] for id in ids]


def test_groups_keep_their_numbers(shop: Collection) -> None:
    edit = shop.edit_taxonomy
    assert tree(shop) == [(0, "late", None, 10), (1, "lost", None, 10), (2, "dead", None, 10), (3, "weak", None, 10)]
    entry = edit("add", name=" Shipping ", description="by post")
    assert entry and (entry.number, entry.said, entry.groups, entry.documents) == (2, "added 4 'Shipping'", 1, 0)
    edit("move", groups=["late", 1], to="Shipping")
    edit("merge", groups=[1, 0])
    edit("remove", groups=["Shipping"])
    edit("add", name="new", to=2)
    assert tree(shop) == [(1, "lost", None, 20), (2, "dead", None, 10), (5, "new", 2, 0), (3, "weak", None, 10)]
    shop.undo_taxonomy(2)
    edit("add", name="later")
    assert [one.number for one in shop.taxonomy().groups] == [2, 3, 4, 1, 6]  # 5 is never used again
    assert shop.taxonomy()[1].path == "Shipping > lost" and shop.taxonomy()[4].total == 20
    assert verify(shop.stored) == []


def test_merging_takes_what_lies_under(shop: Collection) -> None:
    edit = shop.edit_taxonomy
    edit("move", groups=[1, 2], to=0)
    edit("move", groups=[3], to=2)
    edit("merge", groups=[2, 0])
    assert tree(shop) == [(2, "dead", None, 20), (1, "lost", 2, 10), (3, "weak", 2, 10)]


def test_a_merge_says_what_came_along(shop: Collection) -> None:
    edit = shop.edit_taxonomy
    edit("add", name="a")
    edit("add", name="b", to=4)
    edit("move", groups=[0], to="b")
    edit("move", groups=[1], to=2)
    entry = edit("merge", groups=[3, 2])
    assert (
        entry
        and entry.said == "merged 2 'dead' into 3 'weak'; moved 10 documents and 1 group under it with 10 documents"
    )
    assert entry.documents == 10 and shop.taxonomy()[3].total == 30
    entry = edit("merge", groups=[3, 4])
    assert entry and entry.said == "merged 4 'a' into 3 'weak'; moved 2 groups under it with 10 documents"
    entry = edit("merge", groups=[0, 5, 3])  # all lies above the first, or under it
    assert entry and entry.said == (
        "merged 5 'b', 3 'weak' into 0 'late'; moved 20 documents and 1 group under them with 10 documents"
    )
    assert tree(shop) == [(0, "late", None, 30), (1, "lost", 0, 10)]


def test_a_removal_says_where_the_groups_under_it_went(shop: Collection) -> None:
    edit = shop.edit_taxonomy
    edit("add", name="a")
    edit("add", name="b", to=4)
    edit("move", groups=[0, 1, 2, 3], to="b")
    entry = edit("remove", groups=["b"])
    assert entry and entry.said == "removed 5 'b'; moved 0 'late', 1 'lost', 2 'dead' and 1 more under 4 'a'"
    entry = edit("remove", groups=[4, 3])
    assert entry and entry.said == "removed 4 'a', 3 'weak'; moved 0 'late', 1 'lost', 2 'dead' to the top"
    entry = edit("remove", groups=[2])
    assert entry and entry.said == "removed 2 'dead'"


def test_groups_are_found_without_regard_to_case(shop: Collection) -> None:
    edit = shop.edit_taxonomy
    edit("rename", groups=["LATE"], name="Überweisungen")
    edit("add", name="Straße", to="überweisungen")
    edit("describe", groups=["ÜBERWEISUNGEN > STRASSE"], description="x")
    edit("add", name="LOST")
    edit("remove", groups=["lost"])  # the one with exactly this name
    edit("add", name="Lost")
    assert [one.name for one in shop.taxonomy().groups] == ["Überweisungen", "Straße", "dead", "weak", "LOST", "Lost"]
    with pytest.raises(UsageError, match=r"several groups are named 'lost': 5 \(at the top\), 6 \(at the top\); give"):
        edit("remove", groups=["lost"])
    for given, meant in {
        "uberweisungen": "Überweisungen",
        "ueberweisungen": "Überweisungen",
        "strase": "Straße",
    }.items():
        with pytest.raises(SondeError, match=f"^the taxonomy has no group '{given}': did you mean '{meant}'\\?$"):
            edit("remove", groups=[given])


def test_a_removed_group_leaves_its_documents_to_the_one_above(shop: Collection) -> None:
    shop.edit_taxonomy("move", groups=[1], to=0)
    shop.edit_taxonomy("remove", groups=[1])
    assert groups_of(shop, "d0", "d1") == [0, 0]
    shop.edit_taxonomy("remove", groups=[0])
    assert groups_of(shop, "d0", "d1", "d2") == [-1, -1, 2]
    assert shop.taxonomy().outside == 20
    [first, *_] = shop.rows()
    assert (first["taxonomy:tree"], first["taxonomy:tree name"]) == (-1, "no group")
    assert shop.matching("\"taxonomy:tree name\" = 'dead'", k=0)[0] == 10
    assert not any(name.startswith("edit:") for name in first)


def test_moved_documents_are_locked(shop: Collection) -> None:
    entry = shop.edit_taxonomy("move", ids=["d0", "d1"], where="n >= 38", to="weak")
    assert entry and entry.said == "moved 3 documents to 3 'weak'; 1 was there already" and entry.documents == 3  # d39
    assert groups_of(shop, "d0", "d1", "d38", "d39") == [3, 3, 3, 3] and shop.taxonomy().locked == 4
    shop.edit_taxonomy("move", ids=["d2"], to="none", lock=False)
    assert groups_of(shop, "d2") == [-1] and shop.taxonomy().locked == 4
    shop.edit_taxonomy("unlock", ids=["d0"])
    assert shop.taxonomy().locked == 3
    shop.edit_taxonomy("merge", groups=[2, 3])
    assert shop.edit_taxonomy("lock", ids=["d1"]) is None  # the lock went with the document


def test_what_is_locked_in_no_group_stays_there(shop: Collection) -> None:
    shop.edit_taxonomy("move", ids=["d0"], to="none")
    shop.edit_taxonomy("move", ids=["d1"], to="late")
    shop.edit_taxonomy("merge", groups=[1, 2])
    shop.edit_taxonomy("remove", groups=["late"])  # its documents are free
    assert shop.taxonomy().locked == 1
    assert shop.edit_taxonomy("lock", ids=["d0"]) is None
    shop.refit_taxonomy()
    assert groups_of(shop, "d0") == [-1] and groups_of(shop, "d1") != [-1]


DEEP = """
WITH RECURSIVE n(i) AS (SELECT 101 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
INSERT INTO run_items (run, item, name, data) SELECT o.run, i, 'g' || i, json_set(o.data, '$.parent', i - 1) FROM n,
(SELECT * FROM run_items WHERE item = 0) o UNION ALL SELECT run, 100, 'g', data FROM run_items WHERE item = 0
"""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE run_items SET data = '{\"rule\": 5}' WHERE item = 0", ".*"),
        ("UPDATE run_items SET data = json_set(data, '$.parent', 0) WHERE item = 0", ".* lies under itself, or .*"),
        ("UPDATE run_items SET data = json_set(data, '$.parent', 999) WHERE item = 0", ".* 999, which does not exist"),
        (DEEP, "it has more than 100 levels"),
    ],
)
def test_a_damaged_taxonomy_costs_one_line(shop: Collection, change: str, said: str) -> None:
    with closing(sqlite3.connect(shop.path / "catalog.db")) as connection:
        connection.execute(change)
        connection.commit()
    with pytest.raises(SondeError, match=rf"the taxonomy 'tree' is damaged \({said}\): run `sonde verify`"):
        shop.taxonomy()


def test_what_is_locked_is_not_edited(shop: Collection) -> None:
    edit = shop.edit_taxonomy
    edit("move", groups=[1], to=0)
    edit("lock", groups=[0])
    refused: list[tuple[Any, dict[str, Any]]] = [
        ("rename", {"groups": [0], "name": "x"}), ("describe", {"groups": [0], "description": "x"}),
        ("merge", {"groups": [2, 0]}), ("remove", {"groups": [0]}), ("split", {"groups": [0], "k": 2}),
        ("move", {"groups": [0], "to": 2}), ("rule", {"groups": [0], "where": "n > 1"}),
    ]  # fmt: skip
    for operation, given in refused:
        with pytest.raises(UsageError, match=r"the group 0 'late' cannot be .*: it is locked; unlock that first"):
            edit(operation, **given)
    with pytest.raises(UsageError, match="'lost' cannot be renamed: the group 0 'late' above it is locked; unlock"):
        edit("rename", groups=["lost"], name="x")
    with pytest.raises(UsageError, match=r"nothing was moved: locked groups keep 1 of 1 document: 0 'late' \(1\)"):
        edit("move", ids=["d1"], to=2)
    edit("move", ids=["d2"], to=0)  # documents may join
    edit("unlock", groups=[0])
    edit("rename", groups=[1], name="x")
    assert shop.taxonomy().edits == 6


def test_levels_have_names_and_locks(shop: Collection) -> None:
    shop.edit_taxonomy("move", groups=[1], to=0)
    shop.edit_taxonomy("rename", level=1, name="themes")
    assert shop.taxonomy().levels == ("level 0", "themes")
    shop.edit_taxonomy("lock", level=0)
    assert [one.locked for one in shop.taxonomy().groups] == [True] * 4
    with pytest.raises(UsageError, match="level is 2: the taxonomy has the levels 0 to 1"):
        shop.edit_taxonomy("rename", level=2, name="x")


def test_a_split_by_meaning_makes_groups_under_the_group(shop: Collection) -> None:
    shop.edit_taxonomy("merge", groups=[0, 2])
    shop.edit_taxonomy("lock", ids=["d0", "d2"])
    shop.edit_taxonomy("split", groups=[0], k=2)
    found = shop.taxonomy()
    assert [(one.number, one.documents, one.total) for one in found.groups[:3]] == [
        (0, 0, 20),
        (4, 10, 10),
        (5, 10, 10),
    ]
    assert {one for n in range(0, 40, 4) for one in groups_of(shop, f"d{n}")} != set(groups_of(shop, "d2"))
    assert found.locked == 2 and shop.edit_taxonomy("lock", ids=["d0", "d2"]) is None
    assert {one.source for one in found.groups[1:3]} == {"split of 0"}


def test_a_split_by_a_run_and_by_a_filter(shop: Collection) -> None:
    shop.edit_taxonomy("merge", groups=[0, 1, 2, 3])
    shop.cluster("four", k=4, refits=0)
    shop.edit_taxonomy("split", groups=[0], run="four")
    assert [(one.parent, one.documents) for one in shop.taxonomy().groups[1:]] == [(0, 10)] * 4
    assert {one.name for one in shop.taxonomy().groups[1:]} == {one.name for one in shop.run("four").items}
    first = shop.taxonomy().groups[1].number
    shop.edit_taxonomy("split", groups=[first], where="n < 20", name="early")
    early = shop.taxonomy().groups[2]
    assert (early.name, early.parent, early.documents) == ("early", first, 5)
    with pytest.raises(UsageError, match=r"the split moves no document out of the group .*"):
        shop.edit_taxonomy("split", groups=[early.number], where="n > 100", name="late ones")


def test_a_mistake_in_the_filter_of_a_split_comes_first(shop: Collection) -> None:
    shop.edit_taxonomy("add", name="empty")
    with pytest.raises(UsageError, match="nn"):
        shop.edit_taxonomy("split", groups=["empty"], where="nn > 3")
    with pytest.raises(UsageError, match="the group 4 'empty' has no documents of its own"):
        shop.edit_taxonomy("split", groups=["empty"], where="n > 3")


def test_a_rule_fills_its_group(shop: Collection) -> None:
    entry = shop.edit_taxonomy("rule", groups=["weak"], where="n < 4")
    assert entry and entry.said == "gave 3 'weak' the rule: n < 4" and entry.documents == 3
    assert groups_of(shop, "d0", "d1", "d2", "d3", "d4") == [3, 3, 3, 3, 0]
    shop.edit_taxonomy("rule", groups=["dead"], examples=["d1"], near=0.99)
    assert groups_of(shop, "d1") == [2]  # the rule of group 2 comes before that of group 3
    assert shop.taxonomy()[2].rule == "cosine of at least 0.99 to d1"
    assert shop.edit_taxonomy("rule", groups=["weak"]) is not None and shop.taxonomy()[3].rule == ""


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("paint", {}, "operation is 'paint': use add, rename, describe, merge, split, move, remove, lock, unlock, rule"),
    ("rename", {"name": "x"}, "rename needs groups or level"),
    ("rename", {"groups": [0], "level": 1, "name": "x"}, "and only one of them"),
    ("rename", {"groups": [0, 1], "name": "x"}, "rename takes one group at a time"),
    ("rename", {"groups": [0], "name": " "}, "' ' is not a valid group name: use printable characters"),
    ("rename", {"groups": ["9" * 5000], "name": "x"}, "the taxonomy has no group 99999"),
    ("rename", {"groups": [0], "name": "n" * 10**6}, "has 1,000,000 characters; the maximum is 1,000"),
    ("describe", {"groups": [0], "description": "\ud800"}, "is not valid Unicode: write it in UTF-8"),
    ("add", {"name": "x", "description": "\ud800"}, "is not valid Unicode: write it in UTF-8"),
    ("add", {"name": "x", "by": "\ud800"}, "is not valid Unicode: write it in UTF-8"),
    ("rename", {"groups": [7], "name": "x"}, "the taxonomy has no group 7"),
    ("rename", {"groups": ["lats"], "name": "x"}, "the taxonomy has no group 'lats': did you mean 'late'"),
    ("rename", {"groups": [0], "name": "x", "k": 3}, "rename takes no k: give groups, level, name"),
    ("merge", {"groups": [0]}, "merging needs at least two groups"),
    ("merge", {"groups": "0,1"}, "groups is '0,1': give a list"),
    ("move", {"groups": [0]}, "move needs to: a group, top or none"),
    ("move", {"to": 0}, "move needs groups or ids"),
    ("move", {"ids": ["nobody"], "to": 0}, "there is no document with the id 'nobody': nothing was changed"),
    (
        "move",
        {"ids": ["d0,d1"], "to": 0},
        "the id 'd0,d1', but its parts are ids: give each by itself, ids=['d0', 'd1']",
    ),
    ("rule", {"groups": [0], "examples": ["d3, d4, d5"]}, "ids: give each by itself, examples=['d3', 'd4']"),
    ("lock", {"ids": ["d0,x"]}, "there is no document with the id 'd0,x': nothing was changed"),
    ("move", {"where": "n > 99", "to": 0}, "no document passes the filter 'n > 99'"),
    ("move", {"groups": [0], "to": 0}, "the group 0 'late' cannot lie under itself: give another group, or top"),
    ("split", {"groups": [0]}, "split needs one of k, run, and where or examples"),
    ("split", {"groups": [0], "k": 11}, "k is 11: give 2 to 10, the number of different texts in the group"),
    ("rule", {"groups": [0], "where": "n > 1", "near": 2}, "near is 2: give a cosine, -1 to 1"),
    ("rule", {"groups": [0], "where": "nope > 1"}, "nope"),
    ("accept", {"groups": [0]}, "the group 0 'late' is not proposed"),
]


@pytest.mark.parametrize(("operation", "given", "said"), REFUSED, ids=[said for _, _, said in REFUSED])
def test_what_is_refused_changes_nothing(shop: Collection, operation: str, given: dict[str, Any], said: str) -> None:
    before = rows_of(shop.path)
    with pytest.raises(SondeError) as refused:
        shop.edit_taxonomy(operation, **given)  # type: ignore[arg-type]
    assert said in str(refused.value) and "\n" not in str(refused.value)
    assert rows_of(shop.path) == before and shop.taxonomy().edits == 1


def test_the_log_says_who_when_and_what(shop: Collection) -> None:
    shop.edit_taxonomy("rename", groups=[0], name="very late", by="Ann")
    assert shop.edit_taxonomy("rename", groups=[0], name="very late") is None
    [undone] = shop.undo_taxonomy(by="Bob")
    assert undone.said == "renamed 0 'late' to 'very late'"
    last, renamed, first = shop.taxonomy_log()
    assert (last.by, last.operation, last.undoes) == ("Bob", "undo", 2)
    assert last.said == "undid 2: renamed 0 'late' to 'very late'"
    assert (renamed.by, renamed.undone, first.operation) == ("Ann", True, "make")
    assert last.at >= renamed.at >= first.at
    with pytest.raises(UsageError, match="the taxonomy 'tree' has no edit that can be undone"):
        shop.undo_taxonomy()
    with pytest.raises(UsageError, match="steps is 0: give 1 or more"):
        shop.undo_taxonomy(0)
    shop.edit_taxonomy("lock", groups=[0])
    with pytest.raises(UsageError, match="the taxonomy 'tree' has 1 edit that can be undone"):
        shop.undo_taxonomy(2)


def test_the_log_belongs_to_the_taxonomy(shop: Collection) -> None:
    shop.rename_run("tree", "bush")
    assert shop.run("bush", EDIT).items[0].name == "imported 4 groups, 40 documents"
    with pytest.raises(UsageError, match="the edit run 'bush' is a part of the taxonomy run 'bush': delete that run"):
        shop.delete_run("bush", kind="edit")
    with pytest.raises(UsageError, match="has a log of its edits: rename its groups with `sonde taxonomy rename`"):
        shop.rename_run("bush", "x", item=0)
    shop.delete_run("bush")
    assert shop.runs() == [] and shop.runs("edit") == []
    with pytest.raises(SondeError, match="there is no taxonomy in this collection: make one from a run with"):
        shop.taxonomy()


def test_undoing_leaves_deleted_documents_alone(shop: Collection) -> None:
    shop.edit_taxonomy("move", ids=["d0", "d1"], to=3)
    shop.delete(["d0"])
    shop.put([{"id": "other", "text": "parcel late 99"}])  # may get the number of a deleted document
    shop.undo_taxonomy()
    found = {one.id: one.number for one in shop.assignments("tree")}
    assert found["d1"] == 1 and "d0" not in found and "other" not in found
    assert shop.taxonomy().locked == 0 and verify(shop.stored) == []


def test_a_rule_that_is_replaced_is_named(shop: Collection) -> None:
    shop.edit_taxonomy("rule", groups=["weak"], where="n = 1")
    entry = shop.edit_taxonomy("rule", groups=["weak"], where="n = 2")
    assert entry and entry.said == "replaced the rule of 3 'weak': n = 2; it was: n = 1"


def test_labels_that_a_taxonomy_leaves_out_are_counted(shop: Collection) -> None:
    shop.label({"parcels": "a parcel", "batteries": "a battery"}, multi_label=True, threshold=0.01)
    said: list[object] = []
    shop.make_taxonomy("labels", "several", progress=said.append)
    several = [row["label:labels"] for row in shop.rows() if len(row["label:labels"] or ()) > 1]
    many = len(several)
    assert said == [
        f"note: {many} documents have several labels, and each belongs to the group of its likeliest one: {many} "
        "labels left out"
    ]
    assert shop.taxonomy_log("several")[-1].said.endswith("left out")


def test_a_taxonomy_of_a_run_of_labels(shop: Collection) -> None:
    shop.label({"parcels": "a parcel", "batteries": "a battery"}, engine="similarity")
    found = shop.make_taxonomy("labels", "of labels")
    assert [(one.name, one.description) for one in found.groups] == [
        ("parcels", "a parcel"),
        ("batteries", "a battery"),
    ]
    assert found.documents == 40
    with pytest.raises(UsageError, match="the taxonomy run 'of labels' already exists"):
        shop.make_taxonomy("labels", "of labels")
    shop.tag("odd", ids=["d1"])
    with pytest.raises(UsageError, match="the tag run 'odd' has no groups: give a cluster, topic or label run"):
        shop.make_taxonomy("odd", "x")
    copied = shop.make_taxonomy("tree", "copy", kind="taxonomy")
    assert [(one.number, one.documents) for one in copied.groups] == [(0, 10), (1, 10), (2, 10), (3, 10)]


def test_an_empty_collection_of_groups_grows(tmp_path: Path) -> None:
    shop = index([{"id": "a", "text": "x"}], tmp_path / "s.sonde", id="id", encoder=FakeEncoder())  # type: ignore[arg-type]
    shop.edit_taxonomy("add", name="one")
    assert [entry.said for entry in shop.taxonomy_log()] == ["added 0 'one'", "made empty"]
    assert shop.taxonomy().unknown == 1


def test_an_entry_is_small_and_names_documents_by_id(shop: Collection) -> None:
    shop.edit_taxonomy("merge", groups=[0, 1])
    with shop.stored.view() as view:
        from sonde.pipelines.taxonomy.stored import load, read_change

        stored = load(view.catalog)
        change = read_change(view.catalog, stored, 2)
    assert change.docs.tolist() == sorted(shop.numbers(f"d{n}" for n in range(1, 40, 4)).values())
    assert (change.before[0].tolist(), change.after[0].tolist()) == ([1] * 10, [0] * 10)
    assert list(change.groups) == [1] and change.groups[1][1] is None
    assert json.loads(json.dumps(shop.taxonomy_log()[0].to_dict()))["documents"] == 10

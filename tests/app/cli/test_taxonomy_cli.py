"""`sonde taxonomy`: what it prints, keeps and refuses."""

import json
from pathlib import Path

import pytest
from command_line import Command
from small_reviews import encoder, lines, sonde  # noqa: F401  (fixtures)

WORDS = ("parcel late", "refund money", "battery dead", "login wrong")


@pytest.fixture
def shop(sonde: Command, tmp_path: Path) -> Path:  # noqa: F811
    rows = [{"id": f"d{n}", "text": f"{WORDS[n % 4]} {n}", "n": n} for n in range(40)]
    source, folder = lines(tmp_path / "shop.jsonl", rows), tmp_path / "shop.sonde"
    assert sonde("index", source, "--to", folder).code == 0
    assert sonde("cluster", folder, "-k", "4", "--name", "words", "--names", "terms").code == 0
    return folder


def test_from_a_run_to_an_undone_edit(sonde: Command, shop: Path) -> None:  # noqa: F811
    ran = sonde("taxonomy", shop, "--from", "words")
    assert ran.code == 0, ran.err
    names = [line.split(maxsplit=2)[2] for line in ran.out.splitlines()]
    assert [line.split()[:2] for line in ran.out.splitlines()] == [[str(n), "10"] for n in range(4)]
    assert ran.said == ["taxonomy: 4 groups, 40 documents"]
    assert sonde("taxonomy", "add", shop, "Orders").said == ["2: added 4 'Orders'"]
    said = sonde("taxonomy", "move", shop, "0", names[1], "--to", "Orders").said
    assert said == [f"3: moved 0 {names[0]!r}, 1 {names[1]!r} under 4 'Orders'"]
    assert sonde("taxonomy", "rename", shop, "2", "power supply").code == 0
    moved = sonde("taxonomy", "move", shop, "--id", "d0", "--id", "d1", "--to", "power supply")
    assert moved.said == ["5: moved 2 documents to 2 'power supply'"]
    shown = sonde("taxonomy", shop)
    assert shown.out.splitlines()[:2] == ["    2         12  power supply", f"    3         10  {names[3]}"]
    assert shown.out.splitlines()[2].split() == ["4", "18", "Orders"]
    assert shown.out.splitlines()[3].endswith(f"  9    {names[0]}")
    assert shown.said == ["taxonomy: 5 groups, 40 documents, 2 documents locked"]
    assert sonde("taxonomy", "undo", shop, "--steps", "2").said == [
        "undid 5: moved 2 documents to 2 'power supply'", f"undid 4: renamed 2 {names[2]!r} to 'power supply'",
    ]  # fmt: skip
    log = sonde("taxonomy", "log", shop, "-k", "3").out.splitlines()
    assert log[0].startswith("    7  20") and log[0].endswith(f"undid 4: renamed 2 {names[2]!r} to 'power supply'")
    assert log[2].endswith("moved 2 documents to 2 'power supply'  (undone)")
    told = json.loads(sonde("taxonomy", "show", shop, "--json").out)
    assert (told["name"], told["documents"], told["edits"]) == ("taxonomy", 40, 7)


def test_updates_say_what_is_new(sonde: Command, shop: Path, tmp_path: Path) -> None:  # noqa: F811
    sonde("taxonomy", shop, "--from", "words")
    rows = [{"id": f"x{n}", "text": f"screen flicker {n}"} for n in range(30)]
    assert sonde("index", lines(tmp_path / "more.jsonl", rows), "--to", shop).code == 0
    assert sonde("taxonomy", shop).said[-1] == "30 documents are not in this taxonomy yet: run `sonde taxonomy update`"
    ran = sonde("taxonomy", "update", shop)
    assert ran.code == 0, ran.err
    assert ran.out.split()[:2] == ["4", "30"] and ran.out.rstrip().endswith("[proposed]")
    assert ran.said[-1] == ("taxonomy: 30 documents added, 0 moved, 1 group proposed; all groups kept their documents")
    assert sonde("taxonomy", shop).out.splitlines()[-1].endswith("[proposed]")
    assert sonde("taxonomy", "accept", shop, "4").code == 0
    assert "[proposed]" not in sonde("taxonomy", shop).out
    told = json.loads(sonde("taxonomy", "refit", shop, "--json").out)
    assert (told["added"], told["proposed"], told["kept"]) == (0, [], [5, 5])
    assert sonde("runs", "update", shop, "taxonomy").out == "taxonomy: 0 documents added, 0 moved\n"
    cells = sonde("export", shop, "--to", tmp_path / "all.csv")
    assert cells.code == 0
    head = (tmp_path / "all.csv").read_text().splitlines()[0].split(",")
    assert head[-4:] == [f"taxonomy:taxonomy{more}" for more in ("", " name", " path", " level 0")]


def test_files_go_out_and_in(sonde: Command, shop: Path, tmp_path: Path) -> None:  # noqa: F811
    sonde("taxonomy", shop, "--from", "words")
    whole, groups, documents = (tmp_path / name for name in ("t.json", "t.csv", "d.csv"))
    assert sonde("taxonomy", "export", shop, "--to", whole).said == [f"wrote {whole}"]
    assert sonde("taxonomy", "export", shop, "--to", groups, "--documents", documents).code == 0
    ran = sonde("taxonomy", "import", shop, groups, "--documents", documents, "--name", "again")
    assert ran.said[0] == "again: 4 groups, 40 documents"
    sonde("taxonomy", "import", shop, whole).refused("the taxonomy run 'taxonomy' already exists", code=2)
    assert sonde("taxonomy", "import", shop, whole, "--replace").code == 0
    (tmp_path / "few.csv").write_text("name\nparcels\nbatteries\n")
    ran = sonde("taxonomy", "import", shop, tmp_path / "few.csv", "--name", "few")
    assert (
        ran.said[-1]
        == "the table holds groups only: give the table of documents with --documents, or add --label to label the "
        "documents by the groups"
    )
    assert sonde("taxonomy", "export", shop, "--to", tmp_path / "t.ttl", "--name", "few").code == 0
    assert 'skos:prefLabel "parcels"' in (tmp_path / "t.ttl").read_text()


def test_what_is_wrong_is_said_in_one_line(sonde: Command, shop: Path, tmp_path: Path) -> None:  # noqa: F811
    sonde("taxonomy", shop).failed(
        "there is no taxonomy in this collection: make one from a run with `sonde taxonomy C --from RUN`", code=1
    )
    sonde("taxonomy", shop, "--from", "nope").failed("there is no run 'nope' in this collection", code=1)
    sonde("taxonomy", shop, "--from", "words")
    again = sonde("taxonomy", shop, "--from", "words")
    assert "a taxonomy run 'taxonomy' already exists, so the new run is named 'taxonomy-2'" in again.err
    newest = "commands without --name now use 'taxonomy-2', the newest taxonomy; to use the other: --name taxonomy"
    assert again.said[-1] == newest
    third = sonde("taxonomy", shop, "--from", "words", "--name", "my tree")
    assert third.said[-1].endswith("use 'my tree', the newest taxonomy; to use another: --name taxonomy-2")
    assert "newest" not in sonde("taxonomy", shop, "--from", "words", "--name", "my tree", "--replace").err
    sonde("runs", "delete", shop, "my tree")
    refused = {
        ("taxonomy", shop, "--replace"): "--kind, --replace and --flat need --from",
        ("taxonomy", "rename", shop, "2", "two", "words"): "give the group and its new name; put a name with spaces in",
        ("taxonomy", "merge", shop, "1"): "merging needs at least two groups",
        ("taxonomy", "move", shop, "1", "--id", "d1", "--to", "2"): "move needs GROUP or ID, and only one of them",
        ("taxonomy", "split", shop, "1"): "split needs one of -k, --run, and --where or --examples",
        ("taxonomy", "export", shop, "--to", tmp_path / "x.doc"): "x.doc",
        ("taxonomy", "import", shop, tmp_path / "x.doc"): "x.doc does not end in a taxonomy format: use .json, .csv",
        ("runs", "merge", shop, "taxonomy", "1", "2"): "has a log of its edits: merge its groups with `sonde taxonomy",
    }
    for words, said in refused.items():
        sonde(*words).refused(said, code=2)
    sonde("taxonomy", "rename", shop, "9", "x").failed("the taxonomy 'taxonomy-2' has no group 9", code=1)


def test_tables_of_spreadsheets_are_read(sonde: Command, shop: Path, tmp_path: Path) -> None:  # noqa: F811
    table = tmp_path / "few.csv"
    table.write_text("name\tdescription\nParzelle\tgrün\n", encoding="utf-16")
    ran = sonde("taxonomy", "import", shop, table)
    assert (ran.code, ran.out) == (0, "    0          0  Parzelle\n")
    assert ran.said[:2] == [
        "taxonomy: 1 group, 0 documents",
        "40 documents are not in this taxonomy yet",
    ]  # an update would not help


def test_tables_of_excel_in_germany_are_read(sonde: Command, shop: Path, tmp_path: Path) -> None:  # noqa: F811
    groups, documents = tmp_path / "few.csv", tmp_path / "documents.csv"
    groups.write_text("Bezeichnung;Oberbegriff;locked\nMüll;;WAHR\nGrün;Müll;\n;;\n", encoding="cp1252")
    documents.write_text("ID;Gruppe;score\nd0;Grün;0,5\n", encoding="cp1252")
    named = ("--column", "name=bezeichnung", "--column", "parent=Oberbegriff", "--column", "group=Gruppe")
    ran = sonde("taxonomy", "import", shop, groups, "--documents", documents, *named)
    assert ran.code == 0, ran.err
    assert ran.out.splitlines() == ["    0          1  Müll  [locked]", "    1          1    Grün  [locked]"]
    assert ran.said == [
        *(f"note: {file} is not UTF-8: it was read as cp1252" for file in (groups, documents)),
        "taxonomy: 2 groups, 1 document", "39 documents are not in this taxonomy yet: run `sonde taxonomy update`",
    ]  # fmt: skip
    said = "the table of groups has no column 'name': there are Bezeichnung, Oberbegriff, locked; if one of them is "
    refused = {
        (): f"{said}the name, use --column name=COLUMN",
        ("--column", "name"): "--column 'name' is not NAME=COLUMN: write, for example, --column name=Title",
        ("--column", "name=a", "--column", "name=b"): "--column gives 'name' two columns, 'a' and 'b': give it one",
        ("--column", "name=Titel"): "the table of groups has no column 'Titel': there are Bezeichnung, Oberbegriff",
    }
    for words, told in refused.items():
        sonde("taxonomy", "import", shop, groups, "--name", "x", *words).refused(told, code=2)
    (tmp_path / "few.csv").write_bytes(b"name\n\xd6l\n")
    sonde("taxonomy", "import", shop, groups, "--name", "x").failed(
        "it is not UTF-8 (byte 6): save it as UTF-8", code=1
    )


def test_level_names_that_a_file_does_not_hold_are_noted(sonde: Command, shop: Path, tmp_path: Path) -> None:  # noqa: F811
    sonde("taxonomy", shop, "--from", "words")
    table, whole = tmp_path / "t.csv", tmp_path / "t.json"
    assert sonde("taxonomy", "export", shop, "--to", table).said == [f"wrote {table}"]
    sonde("taxonomy", "rename", shop, "--level", "0", "themes")
    assert sonde("taxonomy", "export", shop, "--to", whole).said == [f"wrote {whole}"]
    note = "note: .csv files do not hold the names of the levels; .json files do"
    assert sonde("taxonomy", "export", shop, "--to", table, "--yes").said == [f"wrote {table}", note]


def test_upper_levels_are_shown_with_the_groups_under_them(sonde: Command, shop: Path, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "t.csv").write_text("name,parent,locked\na,,yes\nb,a,\nc,b,\nd,b,\ne,,\n")
    ran = sonde("taxonomy", "import", shop, tmp_path / "t.csv", "--depth", "1")
    tree = ["    0          0  a  [locked; 3 groups under it]", "    4          0  e"]
    assert (ran.out.splitlines(), ran.said[0]) == (tree, "taxonomy: 5 groups, 0 documents")
    assert sonde("taxonomy", shop, "--depth", "1").out.splitlines() == tree
    assert (
        sonde("taxonomy", shop, "--depth", "2").out.splitlines()[1]
        == "    1          0    b  [locked; 2 groups under it]"
    )
    assert sonde("taxonomy", shop, "--depth", "9").out == sonde("taxonomy", shop).out
    sonde("taxonomy", shop, "--depth", "0").refused("--depth is 0: give 1 or more", code=2)
    sonde("taxonomy", shop, "--depth", "1", "--json").refused(
        "--depth cuts the tree, and --json has all groups", code=2
    )


def test_the_log_says_how_many_edits_it_does_not_show(sonde: Command, shop: Path) -> None:  # noqa: F811
    sonde("taxonomy", shop, "--from", "words")
    for number in range(3):
        sonde("taxonomy", "add", shop, f"new {number}")
    assert sonde("taxonomy", "log", shop, "-k", "2").said == ["2 earlier edits: -k 4"]
    assert sonde("taxonomy", "log", shop, "-k", "3").said == ["1 earlier edit: -k 4"]
    assert sonde("taxonomy", "log", shop).said == []


def test_an_import_says_that_commands_use_the_new_taxonomy(sonde: Command, shop: Path, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "t.csv").write_text("name\na\n")
    table = ("taxonomy", "import", shop, tmp_path / "t.csv", "--name")
    assert "newest" not in sonde(*table, "js").err
    said = "commands without --name now use 'my js', the newest taxonomy; to use the other: --name js"
    assert said in sonde(*table, "my js").said
    assert "newest" not in sonde(*table, "my js", "--replace").err


def test_a_refit_says_how_to_undo_it(sonde: Command, shop: Path) -> None:  # noqa: F811
    sonde("taxonomy", shop, "--from", "words")
    for number in range(3):
        sonde("taxonomy", "move", shop, "--id", f"d{number}", "--to", "3", "--no-lock")
    ran = sonde("taxonomy", "refit", shop, "-k", "2")
    moved = int(ran.said[-1].split()[0])
    assert moved > 0
    assert ran.said[-1].endswith(f" in another group than before; to undo this: sonde taxonomy undo {shop}")
    assert sonde("taxonomy", "undo", shop).code == 0
    assert sonde("taxonomy", shop).out.count("\n") == 4


def test_groups_without_documents_say_where_documents_come_from(sonde: Command, shop: Path, tmp_path: Path) -> None:  # noqa: F811
    sonde("taxonomy", shop, "--from", "words")
    for name in ("t.ttl", "t.csv"):
        sonde("taxonomy", "export", shop, "--to", tmp_path / name)
    pytest.importorskip("rdflib")
    ran = sonde("taxonomy", "import", shop, tmp_path / "t.ttl", "--name", "a")
    assert ran.said[-1] == (
        "a .ttl file holds groups only: add --label to label the documents by the groups; "
        "a .json file of Sonde holds documents too"
    )


def test_documents_in_no_group_can_be_listed(sonde: Command, shop: Path) -> None:  # noqa: F811
    sonde("taxonomy", shop, "--from", "words")
    sonde("taxonomy", "move", shop, "--id", "d0", "--id", "d4", "--to", "none")
    said = f"to list the documents in no group: sonde runs show {shop} taxonomy -1"
    assert sonde("taxonomy", shop).said[-1] == said
    listed = sonde(*said.partition(": sonde ")[2].split()).out
    assert [line.split()[-1] for line in listed.splitlines()[::2]] == ["d0", "d4"]


def test_an_update_says_how_to_list_documents_in_no_group(sonde: Command, shop: Path, tmp_path: Path) -> None:  # noqa: F811
    sonde("taxonomy", shop, "--from", "words")
    sonde("index", lines(tmp_path / "more.jsonl", [{"id": "x", "text": "zebra quagga okapi"}]), "--to", shop)
    ran = sonde("taxonomy", "update", shop)
    assert ran.said[-2].endswith("all groups kept their documents, 1 new document is in no group")
    assert ran.said[-1] == f"to list the documents in no group: sonde runs show {shop} taxonomy -1"


def test_of_several_taxonomies_the_edited_one_is_named(sonde: Command, shop: Path) -> None:  # noqa: F811
    tree = sonde("taxonomy", shop, "--from", "words", "--name", "old").out.splitlines()
    names = [line.split(maxsplit=2)[2] for line in tree]
    assert sonde("taxonomy", "rename", shop, "1", "Late").said == [f"2: renamed 1 {names[1]!r} to 'Late'"]
    sonde("taxonomy", shop, "--from", "words", "--name", "new")
    assert sonde("taxonomy", "rename", shop, "0", "Lost").said == [f"new: 2: renamed 0 {names[0]!r} to 'Lost'"]
    again = ("taxonomy", "describe", shop, "0", "")
    assert sonde(*again).said == ["new: nothing to change: the taxonomy is already like this"]
    assert sonde("taxonomy", "lock", shop, "0", "--name", "old").said[0].startswith("old: 3: locked 0 ")
    assert sonde("taxonomy", "undo", shop).said == [f"new: undid 2: renamed 0 {names[0]!r} to 'Lost'"]
    said = "the taxonomy 'new' has no group 'Late'; such a group is in 'old'"
    sonde("taxonomy", "merge", shop, "Late", "2").failed(said, code=1)
    sonde("taxonomy", "split", shop, "Late", "-k", "2").failed(said, code=1)
    sonde("taxonomy", "rename", shop, "77", "x").failed("the taxonomy 'new' has no group 77", code=1)
    sonde("taxonomy", "move", shop, "--id", "d0", "--to", "3", "--no-lock")
    refitted = sonde("taxonomy", "refit", shop)
    assert refitted.code == 0
    assert [line for line in refitted.said if "new" not in line] == ["learning the groups"]


def test_a_split_prints_the_new_groups(sonde: Command, shop: Path) -> None:  # noqa: F811
    sonde("taxonomy", shop, "--from", "words")
    assert (
        sonde("taxonomy", "split", shop, "0", "--where", "n < 8", "--part", "early").out
        == "    4          2    early\n"
    )
    ran = sonde("taxonomy", "split", shop, "0", "-k", "2")
    found = [line.split(maxsplit=2) for line in ran.out.splitlines()]
    assert [number for number, _, _ in found] == ["5", "6"] and sum(int(size) for _, size, _ in found) == 8
    shown = sonde("taxonomy", shop).out.splitlines()
    assert [line for line in shown if line.split()[0] in ("5", "6")] == ran.out.splitlines()
    assert ran.said[-1].endswith("into 2 groups (8 documents moved)")
    sonde("taxonomy", "split", shop, "0", "--where", "nn < 8").refused("nn", code=2)


def test_merges_count_what_comes_along(sonde: Command, shop: Path) -> None:  # noqa: F811
    sonde("taxonomy", shop, "--from", "words")
    sonde("taxonomy", "rename", shop, "1", "late")
    for name, parent in (("x", "LATE"), ("y", "x")):
        sonde("taxonomy", "add", shop, name, "--to", parent)
    sonde("taxonomy", "move", shop, "2", "--to", "y")
    [said] = sonde("taxonomy", "merge", shop, "3", "1").said
    assert said.endswith("; moved 10 documents and 3 groups under it with 10 documents")
    assert sonde("taxonomy", "merge", shop, "3", "0").said[0].endswith(" (10 documents moved)")


def test_ids_in_one_word_are_taken_apart(sonde: Command, shop: Path) -> None:  # noqa: F811
    sonde("taxonomy", shop, "--from", "words")
    said = "there is no document with the id 'd0,d1', but its parts are ids: give each by itself, --id d0 --id d1"
    sonde("taxonomy", "move", shop, "--id", "d0,d1", "--to", "3").failed(said, code=1)

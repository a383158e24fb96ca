"""Tables as a spreadsheet in another country writes them: other words, commas, separators and names of columns."""

from pathlib import Path
from typing import Any

import pytest
from edited import WORDS, made
from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index
from sonde.indexer.errors import SondeError, UsageError


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    return made(tmp_path_factory.mktemp("tables") / "shop.sonde")


def read(shop: Collection, groups: str, **options: Any) -> list[tuple[int, str, bool, int]]:
    found = shop.import_taxonomy(groups, "csv", "read", replace=True, **options)
    return [(one.number, one.name, one.locked, one.documents) for one in found.groups]


def refused(shop: Collection, groups: str, **options: Any) -> str:
    with pytest.raises(SondeError) as error:
        shop.import_taxonomy(groups, "csv", "wrong", **options)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("yes", ["yes", "True", "x", "1", "ja", "WAHR", "Oui", "VRAI", "si", "Sí", "verdadero"])
def test_words_for_yes(shop: Collection, yes: str) -> None:
    assert read(shop, f"name;locked\na;{yes}\nb;\n") == [(0, "a", True, 0), (1, "b", False, 0)]


@pytest.mark.parametrize("no", ["no", "FALSE", "0", "Nein", "FALSCH", "non", "faux", "falso"])
def test_words_for_no(shop: Collection, no: str) -> None:
    assert read(shop, f"name;locked\na;{no}\n") == [(0, "a", False, 0)]


def test_other_words_are_refused_with_their_row(shop: Collection) -> None:
    said = "row 3 of the table of groups has the locked 'vielleicht': give yes or no"
    assert refused(shop, "name,locked\na,ja\nb,vielleicht\n") == said
    said = "row 2 of the table of groups has the proposed 'maybe': give yes or no"
    assert refused(shop, "name,proposed\na,maybe\n") == said
    said = "row 2 of the table of documents has the locked 'on': give yes or no"
    assert refused(shop, "name\na\n", documents="id,group,locked\nd0,0,on\n") == said


def test_locks_of_documents_are_read_in_german(shop: Collection) -> None:
    table = "id;group;score;locked\nd0;0;0,75;WAHR\nd1;0;,5;FALSCH\nd2;0;-1;\n"
    found = shop.import_taxonomy("name\na\n", "csv", "read", documents=table, replace=True)
    assert found.locked == 1
    exported = shop.export_taxonomy("documents", "read").splitlines()
    assert exported == ["id,group,path,score,locked,name", "d0,0,a,0.75,yes,a", "d1,0,a,0.5,,a", "d2,0,a,-1.0,,a"]


def test_numbers_with_decimal_commas(shop: Collection) -> None:
    found = shop.import_taxonomy("name;examples;near\na;d1;0,65\n", "csv", "read", replace=True)
    assert found.groups[0].rule == "cosine of at least 0.65 to d1"
    said = "row 2 of the table of groups has the near '1.000,5': give a number"
    assert refused(shop, "name;examples;near\na;d1;1.000,5\n") == said


def test_near_is_written_for_rules_with_examples_only(shop: Collection) -> None:
    shop.import_taxonomy("name;where;examples\na;n = 4;\nb;;d1\n", "csv", "read", replace=True)
    assert shop.export_taxonomy("csv", "read").splitlines()[1:] == ["0,a,,,,,n = 4,,,,a,0", "1,b,,,,,,d1,0.7,,b,0"]


def test_blank_rows_are_skipped(shop: Collection) -> None:
    table = ";;\nname;parent;locked\na;;ja\n;;\n\nb;a;\n ; ;\n;;\n"
    documents = "id;group\nd0;a\n;\nd1;b\n;\n"
    assert read(shop, table, documents=documents) == [(0, "a", True, 1), (1, "b", True, 1)]
    said = "row 4 of the table of groups: '' is not a valid group name: use printable characters"
    assert refused(shop, "name;parent\na;\n;\n;a\n") == said


def test_columns_in_other_cases(shop: Collection) -> None:
    table = " NAME ;Parent;LOCKED\na;;ja\nb;a;\n"
    assert read(shop, table, documents="ID;Group\nd0;b\n") == [(0, "a", True, 0), (1, "b", True, 1)]


def test_a_missing_column_is_listed_with_the_others(shop: Collection) -> None:
    said = "the table of groups has no column 'name': there are Nummer, Bezeichnung, Ober; if one of them is the name, "
    said += "use columns={'name': 'COLUMN'}"
    assert refused(shop, "Nummer;Bezeichnung;Ober\n0;a;\n") == said
    said = "the table of documents has no column 'group': there are id, Gruppe; if one of them is the group, use "
    assert refused(shop, "name\na\n", documents="id;Gruppe\nd0;0\n") == said + "columns={'group': 'COLUMN'}"


def test_columns_can_be_named(shop: Collection) -> None:
    columns = {"name": "Bezeichnung", "parent": "Oberbegriff", "locked": "Gesperrt", "group": "gruppe"}
    table = "Bezeichnung;name;Oberbegriff;Gesperrt\nKarten;x;;WAHR\nVerlust;y;Karten;\n"
    found = read(shop, table, documents="id;Gruppe;locked\nd0;Verlust;ja\n", columns=columns)
    assert found == [(0, "Karten", True, 0), (1, "Verlust", True, 1)]
    assert shop.taxonomy("read").locked == 1


MISTAKES = [
    ({"nam": "a"}, UsageError, "'nam' is not a column that a taxonomy has: use number, name, parent, description, "),
    ({"name": "Titel"}, UsageError, "the table of groups has no column 'Titel': there are a, b"),
    ("name", UsageError, "columns is 'name': give a mapping such as {'name': 'Title'}"),
    ({"name": 3}, UsageError, "columns is {'name': 3}: give a mapping such as {'name': 'Title'}"),
    ({"name": "a", "parent": "c"}, UsageError, "no table has the column 'c', given as the parent: there are a, b"),
]  # fmt: skip


@pytest.mark.parametrize(("columns", "kind", "said"), MISTAKES, ids=[said[:30] for *_, said in MISTAKES])
def test_columns_that_are_named_wrongly(shop: Collection, columns: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind) as error:
        shop.import_taxonomy("a;b\nx;y\n", "csv", "wrong", columns=columns)
    assert said in str(error.value)


def test_only_tables_have_columns(shop: Collection) -> None:
    said = "a json file has no columns: columns={'name': 'COLUMN'} is for tables (csv)"
    with pytest.raises(UsageError) as error:
        shop.import_taxonomy(shop.export_taxonomy(), "json", "wrong", columns={"name": "x"})
    assert str(error.value) == said


def test_the_documents_may_have_the_column_of_the_collection(tmp_path: Path) -> None:
    rows = [{"message_id": f"m{n}", "text": f"{WORDS[n % 4]} {n}"} for n in range(8)]
    shop = index(rows, tmp_path / "s.sonde", id="message_id", text="text", encoder=FakeEncoder())  # type: ignore[arg-type]
    found = shop.import_taxonomy("name\na\n", "csv", documents="Message_ID;group\nm0;0\nm1;a\n")
    assert found.groups[0].documents == 2
    said = "the table of documents has no column id (or 'message_id'): there are nr, group; if one of them is the id, "
    with pytest.raises(UsageError) as error:
        shop.import_taxonomy("name\na\n", "csv", "x", documents="nr;group\nm0;0\n")
    assert str(error.value) == said + "use columns={'id': 'COLUMN'}"

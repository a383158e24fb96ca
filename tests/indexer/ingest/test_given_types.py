"""Types that the user gives to columns, in the collection: remembered, changed later, and kept to."""

from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from command_line import Command
from fake_encoder import FakeEncoder
from stored import opened

from sonde import ReadOptions, UsageError
from sonde.app.api import Collection, index
from sonde.indexer.document import Document
from sonde.indexer.ingest import index_documents
from sonde.indexer.ingest.columns import KnownColumns
from sonde.indexer.store.catalog import ID_COLUMN, Catalog

DIRTY = "id,text,n,day,version\n" + "".join(
    f"{n},Text number {n} is here,{'unknown' if n == 3 else n},0{1 + n % 9}/04/2024,1.{n}0\n" for n in range(12)
)
TYPES = {"n": "integer", "day": "date:%d/%m/%Y", "version": "text"}


def run(folder: Path, content: str = DIRTY, types: dict[str, str] | None = None, **given: Any) -> list[str]:
    """Index a table; return what was said."""
    (folder / "t.csv").write_text(content)
    said: list[str] = []
    encoder: Any = FakeEncoder()
    reading = ReadOptions(type=types or {})
    index(
        folder / "t.csv",
        folder / "t.sonde",
        read=reading,
        encoder=encoder,
        progress=lambda each: said.append(str(each)),
        **given,
    ).close()
    return [
        sentence for sentence in said if "changes from" in sentence or "stays" in sentence or "left out" in sentence
    ]


def fields(folder: Path) -> dict[str, str]:
    with Collection.open(folder / "t.sonde") as collection:
        assert collection.verify() == []
        return dict(collection.info().fields)


@pytest.mark.parametrize("shards", [None, 2])
def test_types_are_given_and_remembered(tmp_path: Path, shards: int | None) -> None:
    what = "1 of 12 values of 'n' does not fit the type integer and was left out: 'unknown' (row 4)"
    left_out = f"note: {tmp_path / 't.csv'}: {what}"
    assert run(tmp_path, types=TYPES, shards=shards) == [left_out]
    assert fields(tmp_path) == {"n": "integer", "day": "date", "version": "text"}
    with Collection.open(tmp_path / "t.sonde") as collection:
        assert [collection.matching(where)[0] for where in ("n >= 10", "n IS NULL")] == [2, 1]
        assert collection.get("0").metadata == {"n": 0, "day": date(2024, 4, 1), "version": "1.00"}
    assert run(tmp_path) == [left_out]
    more = "id,text,n,day,version\n90,Another text,many,28/02/2024,2\n"
    assert run(tmp_path, more)[0].endswith(
        "1 of 1 value of 'n' does not fit the type integer and was left out: 'many' (row 1). Check the type"
    )
    assert fields(tmp_path) == {"n": "integer", "day": "date", "version": "text"}
    with Collection.open(tmp_path / "t.sonde") as collection:
        assert collection.get("90").metadata == {"day": date(2024, 2, 28), "version": "2"}


def test_a_filter_recommends_only_a_type_that_the_column_can_have(tmp_path: Path) -> None:
    cells = [("oui", "1.234,50 €", "Nîmes"), ("non", "8,00 €", "Orléans"), ("non", "gratuit", "Metz")]
    rows = "".join(f'{n},Text number {n},{paid},"{sum}",{city}\n' for n, (paid, sum, city) in enumerate(cells))
    (tmp_path / "t.csv").write_text("id,text,Payé,Montant,Ville\n" + rows)
    encoder: Any = FakeEncoder()
    with index(tmp_path / "t.csv", tmp_path / "t.sonde", encoder=encoder) as made:
        for where, said in (
            ("Payé", r"; or index the file again with a type, such as read=.*{'Payé': 'boolean'}\)$"),
            ("Ville", r"compare it with a value, as in: \"?Ville\"? = '…'$"),
            ("Montant > 5", r"index the file again with a type, such as .*{'Montant': 'real'}"),
            ("Montant > 5.5", r"index the file again with a type, such as .*{'Montant': 'real'}"),
            ("Ville > 5", r"cannot be compared as a number: compare it with a text"),
        ):
            with pytest.raises(UsageError, match=said):
                made.matching(where)
    types = {"Payé": "boolean", "Montant": "real"}
    with index(tmp_path / "t.csv", tmp_path / "t.sonde", encoder=encoder, read=ReadOptions(type=types)) as made:
        assert [made.matching(where)[0] for where in ("Payé", "NOT Payé", "Montant > 5.5")] == [1, 2, 2]


def test_a_field_gets_another_type_later(tmp_path: Path) -> None:
    run(tmp_path)
    assert fields(tmp_path) == {"n": "text", "day": "text", "version": "real"}
    said = run(tmp_path, types=TYPES)
    assert sorted(said[:3]) == [
        "note: day changes from type text to date, as set",
        "note: n changes from type text to integer, as set",
        "note: version changes from type real to text, as set",
    ]
    assert fields(tmp_path) == {"n": "integer", "day": "date", "version": "text"}
    assert list(opened(tmp_path / "t.sonde").rows())[11]["version"] == "1.110"
    run(tmp_path, types={"n": "real"})
    assert fields(tmp_path)["n"] == "real"
    assert run(tmp_path, types={"n": "text"})[0] == "note: n changes from type real to text, as set"
    assert run(tmp_path) == []
    assert list(opened(tmp_path / "t.sonde").rows())[3]["n"] == "unknown"


def test_a_document_that_does_not_fit_is_named(tmp_path: Path) -> None:
    run(tmp_path)
    others = "id,text,n,day,version\n0,Text number 0 is here,0,01/04/2024,1\n"
    said = "note: n stays text, because 'unknown' of document '3' is not an integer: index its file again, or correct "
    assert run(tmp_path, others, {"n": "integer"}) == [said + "that document"]
    with Collection.open(tmp_path / "t.sonde", device="cpu") as collection:
        collection.delete(["3"])
    assert run(tmp_path, others) == ["note: n changes from type text to integer, as set"]
    assert fields(tmp_path)["n"] == "integer"


@pytest.mark.parametrize("shards", [None, 2])
def test_the_format_of_dates_that_was_found_is_kept(tmp_path: Path, shards: int | None) -> None:
    """In a small file of the next week, day and month can be either way round."""
    run(tmp_path, "id,text,day\n1,A text,25/12/2023\n2,Another,03/04/2024\n", {"day": "date"}, shards=shards)
    for types in ({}, {"day": "date"}):
        run(tmp_path, "id,text,day\n3,A third text,05/06/2024\n", types)
    with Collection.open(tmp_path / "t.sonde") as collection:
        assert [collection.get(id).metadata["day"] for id in "23"] == [date(2024, 4, 3), date(2024, 6, 5)]


def test_shards_keep_the_types_that_they_were_given(tmp_path: Path) -> None:
    run(tmp_path, types=TYPES, shards=2)
    said = "t.sonde is in shards, whose columns keep the types that they were given when it was made: leave out type"
    with pytest.raises(UsageError, match=said):
        run(tmp_path, types={"n": "real"})
    run(tmp_path, types={"n": "integer"})
    assert fields(tmp_path) == {"n": "integer", "day": "date", "version": "text"}


FIRST = 'id,text,amount\n1,A text,"1.234,50"\n2,Another,"17,25"\n'
SECOND = "id,text,amount\n3,A third text,1.500\n4,A fourth,2.000\n"


@pytest.mark.parametrize("shards", [None, 2])
@pytest.mark.parametrize("types", [{}, {"amount": "real"}, {"amount": "real:,"}])
def test_a_later_file_is_read_with_the_decimal_separator_of_the_first(
    tmp_path: Path, types: dict[str, str], shards: int | None
) -> None:
    """1.500 became one and a half."""
    run(tmp_path, FIRST, types, shards=shards)
    run(tmp_path, SECOND)
    with Collection.open(tmp_path / "t.sonde") as collection:
        assert [collection.get(id).metadata["amount"] for id in "1234"] == [1234.5, 17.25, 1500, 2000]


def test_so_is_the_second_file_of_one_run(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(FIRST)
    (tmp_path / "b.csv").write_text(SECOND.replace("amount", "amount,channel").replace("00\n", "00,web\n"))
    encoder: Any = FakeEncoder()
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    reading = ReadOptions(type={"channel": "list"})
    with pytest.raises(UsageError, match=r"no value of the column 'channel' is a list as JSON writes it, such as \["):
        index(paths, tmp_path / "t.sonde", read=reading, encoder=encoder)
    with index(paths, tmp_path / "t.sonde", read=ReadOptions(type={"channel": "text"}), encoder=encoder) as made:
        assert (made.get("4").metadata["amount"], made.get("4").metadata["channel"]) == (2000, "web")
        assert made.report and made.report.left_out == {}


def test_what_other_files_have_stored_is_read_as_the_given_type(tmp_path: Path) -> None:
    """The values of the other file were called wrong."""
    first, second = 'id,text,ok,amount\n1,A text,yes,"1,5"\n', 'id,text,ok,amount\n2,Another,no,"2,25"\n'
    for content in (first.replace("yes", "who knows"), second.replace('"2,25"', '"2,25 EUR"'), second):
        run(tmp_path, content)
    assert fields(tmp_path) == {"ok": "text", "amount": "real"}
    assert run(tmp_path, first, {"ok": "boolean"}) == ["note: ok changes from type text to boolean, as set"]
    with Collection.open(tmp_path / "t.sonde") as collection:
        assert [collection.get(id).metadata["ok"] for id in "12"] == [True, False]


def test_shards_say_which_value_made_a_column_text(tmp_path: Path) -> None:
    run(tmp_path, "id,text,n\n1,A text,5\n", shards=2)
    why = "because 'many' of document '2' does not fit: filters now compare it as text"
    assert run(tmp_path, "id,text,n\n2,Another,many\n") == [f"note: n changes from type integer to text, {why}"]


def test_the_report_counts_what_was_left_out(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(DIRTY)
    encoder: Any = FakeEncoder()
    for shards in (None, 2):
        folder = tmp_path / f"{shards}.sonde"
        with index(tmp_path / "t.csv", folder, read=ReadOptions(type=TYPES), encoder=encoder, shards=shards) as made:
            assert made.report and made.report.left_out == {"n": 1}


def test_on_the_command_line(tmp_path: Path, sonde: Command) -> None:
    (tmp_path / "t.csv").write_text(DIRTY)
    index_it = ("index", tmp_path / "t.csv", "--to", tmp_path / "t.sonde", "--type")
    said = "--type 'integer' is not COLUMN=TYPE: write, for example, --type stars=integer"
    sonde(*index_it, "integer").refused(said, code=2)
    sonde(*index_it, "n=integer", "--type", "n=real").refused("gives 'n' two types, integer and real", code=2)
    sonde(*index_it, "m=integer").refused("there is no column 'm' to give a type", code=2)
    assert not (tmp_path / "t.sonde").exists()


def test_a_stored_word_for_nothing_becomes_a_missing_value(tmp_path: Path) -> None:
    run(tmp_path, "id,text,n\n1,A text,5\n2,Another,n/a\n3,A third,x\n")
    assert run(tmp_path, "id,text,n\n3,A third,7\n", {"n": "integer"}) == [
        "note: n changes from type text to integer, as set"
    ]
    assert fields(tmp_path) == {"n": "integer"}
    with Collection.open(tmp_path / "t.sonde") as collection:
        assert [collection.get(id).metadata.get("n") for id in "123"] == [5, None, 7]


def test_an_export_of_numbers_with_commas_is_read_as_it_is_written(tmp_path: Path) -> None:
    """17.125 became seventeen thousand."""
    run(tmp_path, 'id,text,amount\n1,A text,"1.234,5"\n2,Another,"17,125"\n', {"amount": "real:,"})
    with Collection.open(tmp_path / "t.sonde") as collection:
        collection.export(tmp_path / "e.csv")
        run(tmp_path, (tmp_path / "e.csv").read_text())
        assert [collection.get(id).metadata["amount"] for id in "12"] == [1234.5, 17.125]


def test_what_is_remembered_is_written_with_the_model(tmp_path: Path) -> None:
    """Killed between the two, a repeated first run had no column of ids."""
    seen: list[bool] = []
    encoder: Any = FakeEncoder()

    def remember(catalog: Catalog) -> None:
        seen.append(catalog.connection.in_transaction)

    index_documents([Document("a text", key="1")], tmp_path / "c.sonde", encoder=encoder, remember=remember)
    assert seen[0]


def test_of_two_first_runs_the_one_that_waited_keeps_the_id_column_of_the_other(tmp_path: Path) -> None:
    run(tmp_path)
    with closing(Catalog.open(tmp_path / "t.sonde" / "catalog.db", write=True)) as catalog:
        KnownColumns(new=True, id="number").remember(catalog)
        assert catalog.get(ID_COLUMN) == "id"

"""An update keeps what identifies the documents, and what people said of them."""

from pathlib import Path
from typing import Any, cast
from unicodedata import normalize

import pytest
from command_line import Command
from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index
from sonde.indexer.document import Document
from sonde.indexer.errors import UsageError
from sonde.indexer.ingest import estimate_source
from sonde.indexer.sharded.build import columns_of_shards
from sonde.indexer.sharded.layout import Sharding

HEAD = "ticket_id,text,month\n"
ROWS = [f"T-{number},The card number {number} was lost,2026-0{1 + number % 9}\n" for number in range(40)]


@pytest.fixture(params=[None, 2], ids=["one", "sharded"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A collection of 40 tickets, whose ids are in a column that is named like one."""
    run(tmp_path, "".join(ROWS), shards=request.param)
    return tmp_path


def run(folder: Path, rows: str, head: str = HEAD, **given: Any) -> Collection:
    (folder / "t.csv").write_text(head + rows)
    encoder: Any = FakeEncoder()
    return index(folder / "t.csv", folder / "t.sonde", encoder=encoder, **given)


@pytest.mark.parametrize(
    ("more", "counts"),
    [(",,\n", (0, 0, 40, 0, 1)), (ROWS[3], (0, 0, 40, 1, 0)), ("T-40,A new one,\n", (1, 0, 40, 0, 0))],
    ids=["an empty row", "a repeated row", "a new row"],
)
def test_a_row_more_leaves_the_ids_in_their_column(made: Path, more: str, counts: tuple[int, ...]) -> None:
    """One empty row, as spreadsheets leave behind, added all documents again, under hashes of their texts."""
    report = run(made, "".join(ROWS) + more).report
    assert report is not None
    got = (report.added, report.replaced, report.unchanged, report.duplicate_ids, report.skipped)
    assert got == counts


def test_the_first_run_finds_the_ids_beside_empty_and_repeated_rows(tmp_path: Path) -> None:
    made = run(tmp_path, "".join(ROWS) + ",,\n" + ROWS[7])
    assert (len(made), made.get("T-7").text) == (40, "The card number 7 was lost")


def test_an_id_for_two_texts_is_refused(made: Path) -> None:
    with pytest.raises(UsageError, match="the id column 'ticket_id' has repeated values, so 1 row of 41 would replace"):
        run(made, "".join(ROWS) + "T-3,Another text,\n")


def test_a_table_without_the_column_is_refused(made: Path) -> None:
    """A renamed column added all documents again."""
    said = "has no column 'ticket_id', from which this collection takes its ids, so texts that are there already"
    with pytest.raises(UsageError, match=said):
        run(made, "".join(ROWS), head="Ticket No,text,month\n")
    assert len(Collection.open(made / "t.sonde")) == 40
    report = run(made, "".join(ROWS), head="Ticket No,text,month\n", id="Ticket No").report
    assert report and (report.added, report.unchanged) == (0, 40)


@pytest.mark.parametrize("name", ["pmid", "doi", "id"])
def test_another_column_that_is_named_like_an_id_is_refused_unless_it_has_ids_of_the_collection(
    made: Path, name: str
) -> None:
    """It added all documents again, since only a table in which nothing looked like an id was refused."""
    head, others = f"{name},text,month\n", "".join(row.replace("T-", "X-") for row in ROWS)
    advice = r'name the column with the ids \(id COLUMN\); or, if all its texts are new, .* \(id=""\)$'
    with pytest.raises(UsageError, match=f"t.csv has no column 'ticket_id', from which .*: {advice}"):
        run(made, others, head=head)
    assert len(Collection.open(made / "t.sonde")) == 40
    renamed = run(made, "".join(ROWS[:20]) + others, head=head).report
    assert renamed and (renamed.added, renamed.unchanged) == (40, 20), "as an export, whose ids are in the column id"
    new = run(made, others.replace("X-", "Y-"), head=head, id=name).report
    assert new and new.added == 40


def test_a_table_of_titles_and_texts_alone_is_refused_too(made: Path) -> None:
    """Without any column of metadata, it was taken for a list of texts, and added all documents again."""
    with pytest.raises(UsageError, match=r"t\.csv has no column 'ticket_id', from which this collection takes its ids"):
        run(made, "".join(f"A title,{row.split(',')[1]}\n" for row in ROWS), head="title,text\n")
    assert len(Collection.open(made / "t.sonde")) == 40


def test_several_files_are_checked_one_by_one(tmp_path: Path) -> None:
    encoder: Any = FakeEncoder()
    (tmp_path / "a.csv").write_text(HEAD + "".join(ROWS[:20]))
    (tmp_path / "b.csv").write_text(HEAD.replace("ticket_id", "doi") + "".join(ROWS[20:]))
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for _ in range(2):  # the same command again changes nothing
        assert len(index(files, tmp_path / "t.sonde", encoder=encoder)) == 40
    (tmp_path / "b.csv").write_text(HEAD.replace("ticket_id", "doi") + "".join(ROWS[20:]).replace("T-", "U-"))
    with pytest.raises(UsageError, match=r"b\.csv has no column 'ticket_id', .* \(id COLUMN, for this file alone\)"):
        index(files, tmp_path / "t.sonde", encoder=encoder)


def test_row_numbers_that_happen_to_be_ids_are_refused(tmp_path: Path) -> None:
    """Each text came to lie under the id of another one."""
    rows = [row.removeprefix("T-") for row in ROWS]
    run(tmp_path, "".join(rows))
    numbered = "".join(f"{number},{row}" for number, row in enumerate(reversed(rows)))
    with pytest.raises(UsageError, match="has no column 'ticket_id'"):
        run(tmp_path, numbered, head="id,case,text,month\n")


def test_a_file_of_several_that_lost_its_ids_is_refused(tmp_path: Path) -> None:
    encoder: Any = FakeEncoder()
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for head, found in (("ticket_id", 40), ("case", None), ("", None)):
        files[0].write_text(HEAD + "".join(ROWS[:20]))
        rows = ROWS[20:] if head else [row.partition(",")[2] for row in ROWS[20:]]
        files[1].write_text((HEAD.replace("ticket_id", head) if head else "text,month\n") + "".join(rows))
        if found:
            assert len(index(files, tmp_path / "t.sonde", encoder=encoder)) == found
            continue
        with pytest.raises(UsageError, match=r"b\.csv has no column 'ticket_id', .* for this file alone"):
            index(files, tmp_path / "t.sonde", encoder=encoder)


@pytest.mark.parametrize("choice", [{"id": ""}, {}])
def test_an_export_of_hashes_keeps_them(tmp_path: Path, choice: dict[str, str]) -> None:
    """An edited document was added beside the one it came from."""
    rows = ROWS if choice else [row.partition(",")[2] for row in ROWS]
    made = run(tmp_path, "".join(rows), head=HEAD if choice else "text,month\n", **choice)
    export = tmp_path / "e.csv"
    made.export(export)
    export.write_text(export.read_text().replace("number 7 was lost", "number 7 was found"))
    encoder: Any = FakeEncoder()
    again = index(export, tmp_path / "t.sonde", encoder=encoder)
    assert again.report and (again.report.added, again.report.new_texts, len(again)) == (0, 1, 40)


def test_of_several_files_only_one_has_ids(tmp_path: Path) -> None:
    """What holds for the first file must not take the ids of the second when the same command is repeated."""
    encoder: Any = FakeEncoder()
    (tmp_path / "a.csv").write_text("text,month\n" + "".join(row.partition(",")[2] for row in ROWS[:20]))
    (tmp_path / "b.csv").write_text(HEAD + "".join(ROWS[20:]))
    for _ in range(2):
        made = index([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "t.sonde", encoder=encoder)
        assert len(made) == 40 and made.get("T-30").text == "The card number 30 was lost"


def test_a_table_without_ids_that_gains_some_keeps_its_hashes(tmp_path: Path) -> None:
    run(tmp_path, "".join(row.partition(",")[2] for row in ROWS), head="text,month\n")
    assert len(run(tmp_path, "".join(ROWS))) == 40


def test_an_export_of_a_folder_keeps_its_paths(tmp_path: Path) -> None:
    """The path was taken as the id, and lost as metadata: the next export had no ids."""
    (tmp_path / "d").mkdir()
    for number in range(12):
        (tmp_path / "d" / f"f{number}.md").write_text(f"# Letter {number}\nThe printer {number} is out of order.\n")
    encoder: Any = FakeEncoder()
    for source in ("d", "a.csv", "b.csv"):
        with index(tmp_path / source, tmp_path / "t.sonde", encoder=encoder) as made:
            assert len(made) == 12 and "path" in made.fields()
            made.export(tmp_path / {"d": "a.csv", "a.csv": "b.csv"}.get(source, "c.csv"))


def test_capitals_and_spaces_of_a_column_of_codes_do_not_matter(tmp_path: Path) -> None:
    head = "Vorgang,text,month\n"
    run(tmp_path, "".join(ROWS), head=head)
    report = run(tmp_path, "".join(ROWS), head=head.replace("Vorgang", " VORGANG ")).report
    assert report and report.added == 0


def test_ids_in_another_form_are_noticed_by_their_texts(tmp_path: Path, sonde: Command) -> None:
    """The same column with other ids added every text again without a word. A shard knows only its own texts."""
    run(tmp_path, "".join(ROWS))
    (tmp_path / "t.csv").write_text(HEAD + "".join(ROWS).replace("T-", "t-") + "new,A new one,\n")
    ran = sonde("index", tmp_path / "t.csv", "--to", tmp_path / "t.sonde")
    note = "note: 40 of the 41 documents added have texts that were already there under other ids. If the ids of the"
    assert note in ran.err and ran.out.startswith(f"{tmp_path / 't.sonde'}: 41 added")
    again = sonde("index", tmp_path / "t.csv", "--to", tmp_path / "t.sonde", "--sync", "--delete-most")
    assert again.out.startswith(f"{tmp_path / 't.sonde'}: 41 unchanged, 40 deleted") and "other ids" not in again.err


def test_repeated_texts_of_one_source_are_not_noticed(tmp_path: Path) -> None:
    made = run(tmp_path, "".join(f"T-{number},The same text,\n" for number in range(40)))
    assert made.report and (made.report.added, made.report.known_texts) == (40, 0)


def test_texts_without_columns_may_be_added(made: Path) -> None:
    encoder: Any = FakeEncoder()
    assert len(index(["A text", "Another"], made / "t.sonde", encoder=encoder)) == 42


@pytest.mark.parametrize("shards", [None, 2], ids=["one", "sharded"])
def test_hashes_that_took_the_place_of_a_wrong_column_stay(tmp_path: Path, shards: int | None) -> None:
    """One empty id, then filled in, added all documents again."""
    rows = [row.removeprefix("T-3") if row.startswith("T-3,") else row for row in ROWS]
    assert len(run(tmp_path, "".join(rows), shards=shards)) == 40
    report = run(tmp_path, "".join(ROWS)).report
    assert report and (report.added, report.unchanged + report.replaced) == (0, 40)


def test_a_table_without_the_column_may_get_hashes(made: Path) -> None:
    assert len(run(made, "".join(ROWS), head="Ticket No,text,month\n", id="")) == 80


@pytest.mark.parametrize("shards", [None, 2])
def test_hashes_that_were_chosen_stay(tmp_path: Path, shards: int | None) -> None:
    """A later file with a column that is named like an id added its texts a second time."""
    run(tmp_path, "".join(ROWS), id="", shards=shards)
    report = run(tmp_path, "".join(ROWS), head="id,text,month\n").report
    assert report and (report.added, report.replaced) == (0, 40)  # the column `id` is new metadata
    assert len(run(tmp_path, ROWS[0], head="id,text,month\n", id="id")) == 41


def test_a_row_without_an_id_is_named(tmp_path: Path) -> None:
    run(tmp_path, "".join(ROWS))
    said: list[str] = []
    run(tmp_path, "".join(ROWS) + ",A new card is late,\n", progress=lambda each: said.append(str(each)))
    who, what = "note: 1 row without a value in 'ticket_id' (first: row 41)", "a hash of the text is the id."
    assert [each for each in said if each.startswith("note: ")] == [
        f"{who}: {what} If you fill in an id later, that row becomes a new document"
    ]


def test_columns_that_a_later_table_lacks_are_named(tmp_path: Path) -> None:
    run(tmp_path, "".join(ROWS))
    said: list[str] = []
    narrow = "".join(row.rpartition(",")[0] + "\n" for row in ROWS[:3])
    run(tmp_path, narrow, head="ticket_id,text\n", progress=lambda each: said.append(str(each)))
    note = "t.csv has no values for month, so 3 documents that it replaced lost theirs"
    assert said[-1].startswith("note: ") and said[-1].endswith(note)
    said.clear()
    run(tmp_path, narrow, head="ticket_id,text\n", progress=lambda each: said.append(str(each)))
    assert not any(each.endswith(note) for each in said)


def test_tags_and_corrections_stay_when_a_text_changes(made: Path, sonde: Command) -> None:
    """A corrected typo removed a document from the tag that a person gave it, without a word."""
    collection = run(made, "".join(ROWS))
    collection.tag("mine", ids=["T-1", "T-2"])
    collection.label(["card", "cash"], name="kinds")
    collection.correct({"T-2": "cash"}, run="kinds")
    collection.cluster("groups", k=2)
    changed = ROWS[2].replace("number 2", "No. 2").replace("2026", "2025")
    ran = sonde("index", made / "t.csv", "--to", made / "t.sonde")
    assert ran.out.startswith(f"{made / 't.sonde'}: 40 unchanged")
    (made / "t.csv").write_text(HEAD + "".join([*ROWS[:2], changed, ROWS[3].replace("2026", "2025"), *ROWS[4:]]))
    ran = sonde("index", made / "t.csv", "--to", made / "t.sonde")
    assert ran.out.startswith(f"{made / 't.sonde'}: 2 replaced (1 with a new text), 38 unchanged;")
    assert (
        f"note: the changed documents are not yet in 1 run (groups): `sonde runs update {made / 't.sonde'}" in ran.err
    )
    opened = Collection.open(made / "t.sonde")
    assert [row["id"] for row in opened.rows() if row["tag:mine"]] == ["T-1", "T-2"]
    assert [row["id"] for row in opened.rows() if row["correction:kinds"] == "cash"] == ["T-2"]
    assert [row["id"] for row in opened.rows() if row["cluster:groups"] is None] == ["T-2"]
    assert opened.verify() == []
    opened.delete(["T-1"])
    assert [row["id"] for row in opened.rows() if row["tag:mine"]] == ["T-2"]


def test_an_estimate_reads_the_ids_as_the_run_does(made: Path) -> None:
    (made / "t.csv").write_text("Ticket No,text,month\n" + "".join(ROWS))
    sharding, encoder = Sharding.read(made / "t.sonde"), cast(Any, FakeEncoder())
    known = columns_of_shards(made / "t.sonde", sharding) if sharding else None
    with pytest.raises(UsageError, match="has no column 'ticket_id', from which this collection takes its ids"):
        estimate_source(made / "t.csv", made / "t.sonde", encoder=encoder, known=known)


def test_accents_that_are_written_in_two_ways_are_the_same_id_column_and_value(tmp_path: Path) -> None:
    """Files that a Mac writes have an "é" of two characters: they gave a second document, column and value."""
    encoder: Any = FakeEncoder()
    rows = "Réf,text,Ville\nété-1,On a payé deux fois,Nîmes\nété-2,Rien reçu,Orléans\n"
    for form in ("NFC", "NFD"):
        (tmp_path / "t.csv").write_text(normalize(form, rows))
        made = index(tmp_path / "t.csv", tmp_path / "t.sonde", encoder=encoder, id="Réf")
        assert (len(made), list(made.fields()), made.report and made.report.skipped) == (2, ["Ville"], 0)
        assert made.get(normalize("NFD", "été-1")).metadata == {"Ville": "Nîmes"}
    assert made.get("été-1").text == normalize("NFD", "On a payé deux fois")
    made.put([{"id": normalize("NFD", "été-2"), "text": "Rien reçu", "metadata": {normalize("NFD", "Ville é"): "x"}}])
    assert (len(made), list(made.fields())) == (2, ["Ville", "Ville é"])
    assert made.matching("\"Ville é\" = 'x'")[0] == 1
    assert made.delete([normalize("NFD", "été-2")]) == 1


def test_ids_that_differ_only_in_the_form_of_their_accents_are_told_from_others(tmp_path: Path) -> None:
    """They look the same, and were called repeated without another word."""
    encoder: Any = FakeEncoder()
    one, other = (normalize(form, "été-1") for form in ("NFC", "NFD"))
    rows = [{"id": one, "text": "On a payé"}, {"id": other, "text": "Rien reçu"}, {"id": "b", "text": "Un autre"}]
    said = r"the first repeated ids are 'été-1'; ids such as 'été-1' occur in two Unicode forms that look the same"
    for given in (rows, [Document(row["text"], key=row["id"]) for row in rows]):
        with pytest.raises(UsageError, match=said):
            index(given, tmp_path / "t.sonde", encoder=encoder)
    with pytest.raises(UsageError, match=r"the first repeated ids are 'été-1': choose another column"):
        index([rows[0], rows[1] | {"id": one}, rows[2]], tmp_path / "t.sonde", encoder=encoder)
    made = index(rows, tmp_path / "t.sonde", encoder=encoder, keep="last")
    found = made.documents([other, "b", one])
    assert {id: document.text for id, document in found.items()} == {
        other: "Rien reçu", one: "Rien reçu", "b": "Un autre"}  # fmt: skip
    assert [document.id for document in found.values()] == [one, one, "b"]


def test_a_file_whose_name_has_decomposed_accents_is_found_as_it_is_typed(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / normalize("NFD", "Réclamation_été.txt")).write_text("On a payé deux fois")
    (tmp_path / "texts" / "b.txt").write_text("Rien")
    encoder: Any = FakeEncoder()
    made = index(tmp_path / "texts", tmp_path / "t.sonde", encoder=encoder)
    assert made.get("Réclamation_été.txt").metadata["path"] == "Réclamation_été.txt"


def test_decomposed_ids_and_columns_of_an_earlier_version_stay(tmp_path: Path, monkeypatch: Any) -> None:
    """They are found in both forms, and a run over the same source adds nothing beside them and deletes nothing."""
    encoder, old = cast("Any", FakeEncoder()), normalize("NFD", "été")
    with monkeypatch.context() as patched:
        patched.setattr("sonde.indexer.readers.reading.with_composed_names", lambda document: document)
        patched.setattr("sonde.indexer.readers.values.composed", lambda text: text)
        given = [Document("Rien reçu", key=f"{old}-{n}", metadata={old: n}) for n in range(3)]
        index(given, tmp_path / "t.sonde", encoder=encoder)
    made = index([*given], tmp_path / "t.sonde", encoder=encoder, sync=True)
    report = made.report
    assert report is not None
    assert (report.added, report.unchanged, report.deleted, list(made.fields())) == (0, 3, 0, [old])
    assert (made.get("été-1").id, made.get(f"{old}-1").id) == (f"{old}-1", f"{old}-1")
    assert made.matching("été = 1")[0] == 1

"""Everyday mistakes, word for word: what is printed, the exit code, and that the collections stay as they were."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Command, contents
from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index

CATEGORIES = ("App", "Card", "Mobile App")
TICKETS = [
    {"Ticket": f"TCK-{n}", "Message": f"My card {n} was declined", "category": CATEGORIES[n % 3], "stars": n % 5}
    for n in range(12)
]  # fmt: skip


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, three tables with mistakes, a workbook of three sheets, and two collections."""
    folder = tmp_path_factory.mktemp("shop")
    csv(folder / "tickets.csv", TICKETS)
    repeated = [row | {"Ticket": "TCK-3"} if n in (7, 9) else row for n, row in enumerate(TICKETS)]
    csv(folder / "repeated.csv", repeated)
    csv(folder / "blank.csv", [row | {"Message": "" if n < 9 else row["Message"]} for n, row in enumerate(TICKETS)])
    csv(folder / "numbers.csv", [{"a": n, "b": n * 2.5} for n in range(5)])
    (folder / "binary.csv").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(range(20)) * 40)
    (folder / "empty.txt").write_text("\n \n")
    (folder / "texts").mkdir()
    (folder / "texts" / "a.txt").write_text("A text.")
    long = "A text" + " is long" * 500
    csv(folder / "articles.csv", [{"title": n, "text": long if n else "short"} for n in range(3)])
    workbook(folder / "book.xlsx")
    encoder: Any = FakeEncoder()
    index(folder / "tickets.csv", folder / "tickets.sonde", encoder=encoder).cluster(k=2, refits=0)
    index(["A text.", "Another text."], folder / "notes.sonde", encoder=encoder)
    return folder


def csv(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in (rows[0].keys(), *(r.values() for r in rows))))


def workbook(path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "Read me"
    book.active.append(["Exported by the help desk"])
    sheets = {"Tickets": TICKETS, "Codes": [{"code": f"C{n}", "meaning": f"meaning {n}"} for n in range(4)]}
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in (rows[0].keys(), *(r.values() for r in rows)):
            sheet.append(list(row))
    book.save(path)


VALUES = "App, Card, Mobile App"
REFUSED: dict[str, tuple[str, int]] = {
    "search ticket.sonde card": ("there is no collection at ticket.sonde: did you mean tickets.sonde?", 1),
    "search data/tickets.sonde card": ("there is no collection at data/tickets.sonde: there is no folder data", 1),
    "search tickets.csv card": ("tickets.csv is a file, not a collection: did you mean tickets.sonde?", 1),
    "info blank.csv": (
        "blank.csv is a file, not a collection: index it first, into blank.sonde", 1,
    ),
    "search 'late card' tickets.sonde -k 3": (
        "'late card' is not a collection; put the collection first: sonde search tickets.sonde 'late card' -k 3", 1,
    ),
    "get TCK-3 tickets.sonde": (
        "'TCK-3' is not a collection; put the collection first: sonde get tickets.sonde TCK-3", 1,
    ),
    "serve gone tickets.sonde": (
        "there is no collection at gone; here are: notes.sonde, tickets.sonde", 1,
    ),
    "mcp gone.sonde tickets.sonde": (
        "there is no collection at gone.sonde; here are: notes.sonde, tickets.sonde", 1,
    ),
    "search gone.sonde tickets.sonde": (
        "there is no collection at gone.sonde; here are: notes.sonde, tickets.sonde", 1,
    ),
    "serch tickets.sonde card": ("No such command 'serch'. Did you mean 'search', 'serve'?: see `sonde --help`", 2),
    "search tickets.sonde card --were 'stars > 2'": (
        "No such option: --were (Possible options: --queries, --where): see `sonde search --help`", 2,
    ),
    "search tickets.sonde my lost card -k 3": (
        "put the words in quotes: sonde search tickets.sonde 'my lost card' -k 3", 2,
    ),
    "ask tickets.sonde where is it": ("put the words in quotes: sonde ask tickets.sonde 'where is it'", 2),
    "runs mrge tickets.sonde kmeans 0 1": ("there is no command 'mrge' of `sonde runs`: did you mean 'merge'?", 2),
    "runs tickets.sonde show kmeans": ("put the command first: sonde runs show tickets.sonde kmeans", 2),
    "taxonomy moev news.sonde 3": ("there is no command 'moev' of `sonde taxonomy`: did you mean 'move'?", 2),
    "taxonomy tickets.sonde moev 3 --to top": (
        "there is no command 'moev' of `sonde taxonomy`: did you mean 'move'? "
        "sonde taxonomy move tickets.sonde 3 --to top", 2,
    ),
    "runs tickets.sonde mrge kmeans 0 1": (
        "there is no command 'mrge' of `sonde runs`: did you mean 'merge'? "
        "sonde runs merge tickets.sonde kmeans 0 1", 2,
    ),
    "search tickets.sonde card --mode lexcal": (
        "there is no mode 'lexcal' (did you mean 'lexical'?): use hybrid, dense, lexical", 2,
    ),
    "serve kye --name A": ("there is no command 'kye' of `sonde serve`: did you mean 'key'?", 2),
    "tune threshhold tickets.sonde": (
        "there is no command 'threshhold' of `sonde tune`: did you mean 'threshold'?", 2,
    ),
    "evaluate tickets.sonde search": ("put the command first: sonde evaluate search tickets.sonde", 2),
    "tickets.sonde search card": ("put the command first: sonde search tickets.sonde card", 2),
    "runs move --help": (
        "there is no command 'move' of `sonde runs`; its commands are list, show, draw, name, merge, split, update, "
        "correct, delete", 2,
    ),
    "tune frob tickets.sonde": ("there is no command 'frob' of `sonde tune`; its commands are search, threshold", 2),
    "search tickets.sonde card --where stars '<=' 2": (
        'put the filter in quotes: sonde search tickets.sonde card --where "stars <= 2"', 2,
    ),
    "cluster tickets.sonde --where category like App% -k 3": (
        "put the filter in quotes: sonde cluster tickets.sonde --where \"category like 'App%'\" -k 3", 2,
    ),
    "count tickets.sonde --where category = 'Mobile App' and stars '<' 3": (
        "put the filter in quotes: sonde count tickets.sonde --where \"category = 'Mobile App' and stars < 3\"", 2,
    ),
    "index tickets.csv --id stars --id Ticket": ("--id is given twice: give it once", 2),
    "runs show tickets.sonde kmeans 0 -k 1 -k 2 -k 3": ("-k is given 3 times: give it once", 2),
    "search tickets.sonde card --where 'category = App'": (
        "'App' is not a field: put text in single quotes, as in: category = 'App'", 2,
    ),
    "tag tickets.sonde mine --ids empty.txt": ("empty.txt holds no id: write one id on each line", 2),
    "search tickets.sonde card --where 'category IN (App, Card)'": (
        "'App' is not a field: put text in single quotes, as in: 'App'", 2,
    ),
    "search tickets.sonde card --where 'category = Mobile-App'": (
        "'Mobile - App' is not a value: put text in single quotes", 2,
    ),
    "search tickets.sonde card --where 'categry = 1'": (
        "there is no field 'categry' to filter by (did you mean 'category'?); "
        "the fields are: id, title, text, length, language, Ticket, category, stars", 2,
    ),
    "cluster tickets.sonde --where \"category = 'card'\"": (
        "no document passes the filter \"category = 'card'\": category is never 'card': did you mean 'Card'? "
        f"values: {VALUES}", 1,
    ),
    "index ticket.csv --to new.sonde": ("ticket.csv does not exist (did you mean 'tickets.csv'?): check the path", 1),
    "index tickets.csv --to new.sonde --text mesage": (
        "tickets.csv: the text column 'mesage' does not exist (did you mean 'Message'?); "
        "there are Ticket (text), Message (text), category (text), stars (integer)", 2,
    ),
    "index numbers.csv --to new.sonde": (
        "numbers.csv: no text column among a (integer), b (real): choose one with --text", 2,
    ),
    "index repeated.csv --to new.sonde --id Ticket": (
        "repeated.csv: the id column 'Ticket' has repeated values, so 2 rows of 12 would replace another row with the "
        "same id; the first repeated ids are 'TCK-3': choose another column with --id "
        "(--id '' for a hash of the text), or keep the last row of each "
        "id with --keep last", 2,
    ),
    "index book.xlsx --to new.sonde --sheet tickts": (
        "book.xlsx has no sheet 'tickts' (did you mean 'Tickets'?); it has 'Read me', 'Tickets', 'Codes'", 2,
    ),
    "index tickets.csv --to tickets.csv": (
        "tickets.csv is a file: name a folder for the collection, such as tickets.sonde", 2,
    ),
    "count tickets.sonde --by Category": (
        "there is no column 'Category' (did you mean 'category'?): there are category, stars, cluster:kmeans, "
        "cluster:kmeans name", 2,
    ),
    "similar tickets.sonde TCK-99": (
        "there is no document with the id 'TCK-99' in tickets.sonde: to search by a text, use --text", 1,
    ),
    "search tickets.sonde card --limit 3": ("there is no option --limit of `sonde search`: did you mean -k?", 2),
    "search tickets.sonde card --queries nothere.jsonl": (
        "give a query, or a file of queries with --queries, not both", 2,
    ),
    "index tickets.csv --to new.sonde --sheet Q3": ("tickets.csv is not a workbook: leave out --sheet", 2),
    "index texts --to new.sonde --text body": ("texts holds texts without columns: leave out --text", 2),
    "index texts --to new.sonde --delimiter ;": ("texts is not a CSV file: leave out --delimiter", 2),
    "index tickets.csv --to new.sonde --delimiter ;": (
        "the delimiter ';' does not occur in the first line of tickets.csv: leave out --delimiter to detect it", 2,
    ),
    "index binary.csv --to new.sonde": (
        "binary.csv is not a text file: it contains NUL bytes; save it as text in UTF-8", 1,
    ),
    "index articles.csv --to new.sonde --id text": (
        f"articles.csv: the id column 'text' has repeated values, so 1 row of 3 would replace another row with "
        f"the same id; the first repeated ids are 'A text{' is long' * 6} is lo…': choose another column with --id "
        "(--id '' for a hash of the text), or "
        "keep the last row of each id with --keep last", 2,
    ),
    "--install-completion zsh": (
        "--install-completion takes no value: run it in the shell that it is for, without 'zsh'", 2,
    ),
    "runs show tickets.sonde kmean": ("there is no run 'kmean' in this collection: there is only kmeans (cluster)", 1),
    "evaluate search tickets.sonde": (
        "no hit has been judged relevant here: use `sonde judge`, or give --queries and --qrels", 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("line", REFUSED)
def test_one_line_says_what_to_do(shop: Path, sonde: Command, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    import shlex

    monkeypatch.chdir(shop)
    before = contents(shop / "tickets.sonde")
    message, code = REFUSED[line]
    ran = sonde(*shlex.split(line))
    assert (ran.said[-1], ran.code, ran.out) == (f"sonde: {message}", code, "")
    assert [each for each in ran.said[:-1] if not each.startswith(("tickets.csv: text", "book.xlsx: text"))] == []
    assert contents(shop / "tickets.sonde") == before
    assert not (shop / "new.sonde").exists()


def test_a_collection_may_have_a_name_like_a_command(
    shop: Path, sonde: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import shutil

    monkeypatch.chdir(tmp_path)
    shutil.copytree(shop / "tickets.sonde", "shows")
    assert sonde("runs", "shows").out.startswith("cluster  kmeans")


LONG = "x" * 100_000
CUT = "x" * 500 + "…"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("search tickets.sonde {} {}", f"put the words in quotes: sonde search tickets.sonde '{CUT}'"),
        ("search tickets.sonde a --where {} = 3",
         f'put the filter in quotes: sonde search tickets.sonde a --where "{CUT}"'),
        ("search {} tickets.sonde", f"File name too long: {'x' * 200}…"),
        ("taxonomy tickets.sonde moev {}",
         "there is no command 'moev' of `sonde taxonomy`: did you mean 'move'? "
         f"sonde taxonomy move tickets.sonde '{CUT}'"),
        ("info tickets.sonde {}", f"Got unexpected extra argument(s) ({CUT}): see `sonde info --help`"),
        ("search tickets.sonde a --mode {}",
         f"there is no mode '{CUT}': use hybrid, dense, lexical"),
    ],
)  # fmt: skip
def test_a_long_argument_is_cut(
    shop: Path, sonde: Command, monkeypatch: pytest.MonkeyPatch, line: str, said: str
) -> None:
    monkeypatch.chdir(shop)
    ran = sonde(*(word.format(LONG) for word in line.split()))
    assert ran.err == f"sonde: {said}\n"


LANGUAGE = "no document has a language of its own, from a column `language` of its source; the language of the collecti"


def test_there_are_twenty() -> None:
    assert len(REFUSED) >= 20


@pytest.mark.parametrize(
    ("line", "note"),
    [
        (
            "search {} card --where \"category = 'app'\"",
            f"category is never 'app': did you mean 'App'? values: {VALUES}",
        ),
        ("search {} card --where \"category = 'xyz'\"", f"category is never 'xyz'; values: {VALUES}"),
        (
            "search {} card --where \"stars >= 0 AND category IN ('mobile app')\"",
            f"category is never 'mobile app': did you mean 'Mobile App'? values: {VALUES}",
        ),
        (
            "search {} card --where \"text = 'card'\"",
            "text is never 'card': for a part of the text, write text ILIKE '%card%'",
        ),
        ("count {} --where \"category = 'app'\"", f"category is never 'app': did you mean 'App'? values: {VALUES}"),
        ("delete {} --where \"category = 'app'\"", f"category is never 'app': did you mean 'App'? values: {VALUES}"),
        (
            "similar {} TCK-1 --where \"id = 'tck-1'\"",
            "id is never 'tck-1': did you mean 'TCK-1'? values: TCK-0, TCK-1,",
        ),
        ("count {} --where \"NOT language = 'en'\"", LANGUAGE),
        ("search {} card --where \"language ILIKE 'en%' AND stars > 0\"", LANGUAGE),
    ],
)
def test_a_value_that_no_document_has(
    shop: Path, sonde: Command, monkeypatch: pytest.MonkeyPatch, line: str, note: str
) -> None:
    import shlex

    monkeypatch.chdir(shop)
    before = contents(shop / "tickets.sonde")
    ran = sonde(*shlex.split(line.format("tickets.sonde")))
    assert ran.code == 0
    assert ran.said[0].startswith(f"note: no document passes the filter: {note}")
    assert contents(shop / "tickets.sonde") == before


def test_a_filter_that_no_document_passes_for_another_reason(
    shop: Path, sonde: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop)
    ran = sonde("search", "tickets.sonde", "card", "--where", "stars > 9 AND category = 'App'")
    assert (ran.code, ran.said[0]) == (0, "note: no document passes the filter")


def test_what_to_try_can_be_typed_as_it_stands(sonde: Command, tmp_path: Path, shop: Path) -> None:
    path = tmp_path / "my <b>tickets.sonde"
    printed = sonde("index", shop / "tickets.csv", "--to", path).out
    assert f"try: sonde search '{path}' \"what you are looking for\"" in printed


def test_a_wrong_file_with_sync_changes_nothing(sonde: Command, tmp_path: Path) -> None:
    csv(tmp_path / "s.csv", [{"id": f"A-{n}", "text": f"Text number {n}"} for n in range(40)])
    csv(tmp_path / "wrong.csv", [{"id": f"B-{n}", "text": f"Other text {n}", "extra": n} for n in range(40)])
    target = tmp_path / "new.sonde"
    sonde("index", tmp_path / "s.csv", "--to", target)
    before = contents(target)
    said = "40 of the 40 documents of the collection are not in the source, so nothing was changed: check the source"
    sonde("index", tmp_path / "wrong.csv", "--to", target, "--sync").failed(said, code=2)
    assert contents(target) == before


def test_the_largest_sheet_is_read_and_the_others_are_named(sonde: Command, tmp_path: Path, shop: Path) -> None:
    ran = sonde("index", shop / "book.xlsx", "--to", tmp_path / "new.sonde", "--json")
    assert ran.code == 0 and json.loads(ran.out)["added"] == 12
    read = "read as: sheet 'Tickets', the largest; not read: 'Read me' (0 rows), 'Codes' (4 rows)"
    assert any(line.endswith(read) for line in ran.said), ran.err
    ran = sonde("index", shop / "book.xlsx", "--to", tmp_path / "codes.sonde", "--sheet", "Codes", "--json")
    assert json.loads(ran.out)["added"] == 4


def test_mostly_unusable_input_ends_with_1(sonde: Command, tmp_path: Path, shop: Path) -> None:
    target = tmp_path / "new.sonde"
    ran = sonde("index", shop / "blank.csv", "--to", target)
    assert ran.code == 1
    assert ran.said[-1] == (
        "sonde: 9 of 12 rows cannot be used: no text and no title: empty (9); the other 3 are stored, "
        f"and {target}/skipped.jsonl lists the skipped rows"
    )
    assert len(Collection.open(target)) == 3


def test_a_run_gets_the_next_number(shop: Path, sonde: Command, tmp_path: Path) -> None:
    import shutil

    path = shutil.copytree(shop / "tickets.sonde", tmp_path / "c.sonde")
    assert sonde("runs", "name", path, "kmeans", 0, "mine").code == 0
    for name in ("kmeans-2", "kmeans-3"):
        ran = sonde("cluster", path, "-k", 2, "--refits", 0)
        assert (ran.code, ran.said[0]) == (
            0,
            f"a cluster run 'kmeans' already exists, so the new run is named {name!r} (--replace replaces the old run)",
        )
    labelled = ("label", path, "--labels", "App,Card", "--engine", "similarity", "--name", "kind")
    assert sonde(*labelled).code == 0
    assert "the new run is named 'kind-2'" in sonde(*labelled).err
    opened = Collection.open(path)
    assert [run.name for run in opened.runs()] == ["kmeans", "kmeans-2", "kmeans-3", "kind", "kind-2"]
    assert opened.run("kmeans").items[0].name == "mine"
    assert sonde("cluster", path, "-k", 2, "--refits", 0, "--name", "kmeans-2", "--replace").code == 0
    assert [run.name for run in opened.runs("cluster")] == ["kmeans", "kmeans-3", "kmeans-2"]


def test_values_with_commas_are_quoted_one_by_one(sonde: Command, encoder: FakeEncoder, tmp_path: Path) -> None:
    rows = [{"id": str(n), "text": f"text {n}", "topic": name} for n, name in enumerate(["models, large", "speech"])]
    index(rows, tmp_path / "t.sonde", encoder=encoder).close()  # type: ignore[arg-type]
    ran = sonde("count", tmp_path / "t.sonde", "--where", "topic = 'xyz' OR topic = '“quoted”'")
    assert ran.said == [
        "note: no document passes the filter: topic is never 'xyz'; values: 'models, large', 'speech'"
    ], "curly quotes within straight ones are text"

"""The documentation is true: help pages, examples of the command line and of Python."""

import doctest
import gzip
import importlib
import importlib.util
import inspect
import json
import re
import runpy
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from command_line import Command, command, inject
from default_model import default_model
from fake_encoder import FakeEncoder
from other_encoder import OtherEncoder, changed_to
from survey import survey
from themes import collection
from themes import rows as texts_of_themes

CHECKOUT = Path(__file__).resolve().parent.parent
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md"))]
MAKER = CHECKOUT / "docs" / "make_cli.py"


def test_the_command_line_page_is_what_the_commands_say() -> None:
    page = (CHECKOUT / "docs" / "cli.md").read_text(encoding="utf-8")
    if f"Typer {typer.__version__};" not in page:
        pytest.skip(f"docs/cli.md was made with another version than Typer {typer.__version__}")
    assert page == runpy.run_path(str(MAKER))["page"](), "run: python docs/make_cli.py"


def test_every_command_has_an_example() -> None:
    page = (CHECKOUT / "docs" / "cli.md").read_text(encoding="utf-8")
    lacking = [section.partition("\n")[0] for section in page.split("\n## ")[1:] if "Examples:" not in section]
    assert lacking == ["sonde"]


@pytest.mark.parametrize("page", ["searching", "http", "cli"])
def test_relevance_is_comparable_only_under_one_filter(page: str) -> None:
    text = " ".join((CHECKOUT / "docs" / f"{page}.md").read_text(encoding="utf-8").split())
    [caveat] = re.findall(r"You can compare (?:it|relevance) between searches([^.]*)\.", text)
    assert re.fullmatch(r" with the same (filter|--where)[;,] (a filter|which) can change it", caveat)


@dataclass(frozen=True)
class Example:
    """A `sonde` command in the documentation: its words, its standard input and where it is first."""

    words: tuple[str, ...]
    stdin: str
    where: str = field(compare=False)

    def __str__(self) -> str:
        return shlex.join(("sonde", *self.words))


def examples() -> Iterator[Example]:
    """Every line of a code block that runs `sonde`."""
    for page in PAGES:
        if not page.exists():
            continue
        for block in re.findall(r"^```\w*\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            for line in block.splitlines():
                found = re.match(r"\s*\$?\s*((?:zcat [^|]*\| *)?sonde (?!\[|\{|—).*)", line)
                if found and "[OPTIONS]" not in line:
                    yield example(found[1], page.name)


def example(line: str, where: str) -> Example:
    before, _, after = line.rpartition("| sonde ") if "| sonde " in line else ("", "", line.removeprefix("sonde "))
    words, stdin = shlex.split(after, comments=True), before.removeprefix("zcat ").strip()
    for sign in ("<", ">"):
        if sign in words:
            place = words.index(sign)
            stdin = words[place + 1] if sign == "<" else stdin
            del words[place : place + 2]
    return Example(tuple(words), stdin, where)


EXAMPLES = list(dict.fromkeys(examples()))
NEEDS_DEFAULT = {
    "train", "model", "texts similarity", "texts bitext", "evaluate sts", "evaluate models", "evaluate bitext",
}  # fmt: skip
"""Commands that begin with the default model and not with a collection, whose model is faked."""
MODULES_OF_DEFAULT = {
    *(
        f"sonde.app.api.{part}"
        for part in ("checks", "collection", "search", "groups", "labels", "taxonomy", "upkeep", "texts", "looks")
    ),
    *(f"sonde.app.api.{part}" for part in ("selections", "models", "evaluate")),
    "sonde.pipelines.similarity.similarity",
    "sonde.pipelines.similarity.bitext",
}
UNSAFE = ("demo", "--on", "--model", "--device", "--dtype", "--version", "--help", "intfloat/multilingual-e5-small")
SERVERS = ("serve", "mcp")
"""Commands that run until they are stopped, unless a word such as `key` follows. `ui` only becomes its server."""


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 20
    assert {example.words[0] for example in EXAMPLES} >= {"index", "search", "similar", "export", "delete", "evaluate"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example.where}: {example}")
def test_an_example_parses(example: Example) -> None:
    words, parser = list(example.words), every_command()
    context = None
    while (inner := getattr(parser, "commands", {}).get(words[0] if words else "")) is not None:
        context = parser.make_context(parser.name, words[:1], parent=context, resilient_parsing=True)
        parser, words = inner, words[1:]
    parser.make_context(parser.name, words, parent=context)


@cache
def every_command() -> Any:
    from sonde.app.cli.main import app_for

    return typer.main.get_command(app_for())


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files and collections that the examples speak of, small."""
    from sonde.app.api import index

    folder = tmp_path_factory.mktemp("examples")
    papers, tickets = tables(folder)
    judged_queries(folder)
    pairs_of_texts(folder)
    encoder: Any = FakeEncoder()
    index(folder / "reviews.csv", folder / "reviews.sonde", id="id", encoder=encoder)
    index(papers, folder / "papers.sonde", text="abstract", title="title", id="arxiv_id", encoder=encoder)
    changed_to(OtherEncoder(), folder / "papers.sonde")
    changed_to(None, folder / "papers.sonde")
    kinds = [{"text": f"Remove a folder {n}.", "package": "shutil", "kind": "function"} for n in range(4)]
    index(kinds, folder / "demo.sonde", text="text", encoder=encoder)
    index(folder / "mail.mbox", folder / "mail.sonde", encoder=encoder)
    index([folder / "scopus.ris", folder / "pubmed.nbib"], folder / "review.sonde", encoder=encoder)
    overview(folder)
    shutil.copytree(folder / "news.sonde", folder / "shop.sonde")
    edited(folder)
    index(texts_of_themes(), folder / "large.sonde", text="text", id="", encoder=encoder, shards=4).topics()
    known_answers(folder, encoder)
    judged: Any = index(folder / "reviews.csv", folder / "judged.sonde", id="id", encoder=encoder)
    judged.judge("late delivery", ["4711"])
    themes: Any = index(folder / "reviews.csv", folder / "themes.sonde", id="id", encoder=encoder)
    for name, k in (("kmeans", 3), ("other", 2)):
        themes.cluster(name, k=k, refits=0)
    themes.tag("unhappy", where="stars <= 2")
    for name in ("tickets.sonde", "cacm.sonde"):
        index(tickets, folder / name, encoder=encoder).label("open,spam", engine="similarity")
    checked_and_watched(folder / "tickets.sonde", encoder)
    survey(folder, encoder)
    return folder


def checked_and_watched(folder: Path, encoder: Any) -> None:
    """Add dates to a collection, a run that does not know its newest documents, a check and a watch."""
    from sonde.app.api import index

    texts = [*(f"The parcel was late, case {n}" for n in range(1, 8)), "n/a"]
    rows = [{"id": f"w{n}", "text": texts[n - 1], "sent": date(2026, 10, n)} for n in range(1, 9)]
    tickets: Any = index(rows, folder, id="id", text="text", encoder=encoder)
    tickets.cluster("october", k=2, refits=0)
    new = [row | {"id": f"n{row['id']}", "sent": date(2026, 11, 23)} for row in rows[:4]]
    tickets = index(new, folder, id="id", text="text", encoder=encoder)
    tickets.check()
    tickets.watch("2026-11-01")


def tables(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Write the tables and texts to index; return the rows of papers and of tickets."""
    days = ("2019-05-06", "2024-03-04", "2024-07-08")
    reviews = [
        {"id": 4710 + n, "title": f"Review {n}", "text": f"The battery died, a noisy fan, late delivery {n}",
         "stars": 1 + n % 5, "date": days[n % 3]}
        for n in range(12)
    ]  # fmt: skip
    (folder / "reviews.csv").write_text(csv(reviews))
    typed = {"age": "1", "opened": "03/04/2024", "version": "1.10"}
    (folder / "tickets.csv").write_text(csv([{"id": 900, "text": "a ticket"} | typed]))
    (folder / "more.csv").write_text(csv([row | {"id": row["id"] + 100} for row in reviews]))
    papers = [{"arxiv_id": f"a{n}", "title": f"Paper {n}", "abstract": f"Graph neural networks, part {n}",
               "categories": ["cs.LG", "stat.ML"], "year": 2018 + n} for n in range(6)]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(papers), folder / "papers.parquet")
    pq.write_table(pa.Table.from_pylist(papers), folder / "huge.parquet")
    tickets = [{"id": n, "text": f"My parcel number {n} is late", "status": ("open", "spam")[n % 2]} for n in range(6)]
    with gzip.open(folder / "tickets.jsonl.gz", "wt") as stream:
        stream.writelines(json.dumps(ticket) + "\n" for ticket in tickets)
    (folder / "docs").mkdir()
    (folder / "docs" / "a.md").write_text("# A page\n\nOf some words.")
    (folder / "letter.txt").write_text("Arrived broken.")
    mail = "From a@x.org Thu Jan  1 09:00:00 2026\nFrom: a@x.org\nTo: ann@example.org\nSubject: Payment\n"
    (folder / "mail.mbox").write_text(f"{mail}Date: Fri, 02 Jan 2026 09:00:00 +0100\n\nIt is delayed.\n")
    (folder / "scopus.ris").write_text("TY  - JOUR\nTI  - Sleep\nAB  - Memory.\nAN  - S1\nDO  - 10.1000/a\nER  - \n")
    (folder / "pubmed.nbib").write_text("PMID- 1\nTI  - Coffee\nAB  - Sleep.\nMH  - Humans\nDP  - 2019 May\n")
    (folder / "labels.txt").write_text("refund: the customer wants money back\npraise\n")
    return papers, tickets


def judged_queries(folder: Path) -> None:
    queries = [{"_id": "1", "text": "late parcel"}, {"_id": "2", "text": "spam"}]
    for opened, name in ((open, "queries.jsonl"), (gzip.open, "queries.jsonl.gz")):
        with opened(folder / name, "wt") as stream:  # type: ignore[operator]
            stream.writelines(json.dumps(query) + "\n" for query in queries)
    for name in ("corrections.csv", "truth.csv"):
        (folder / name).write_text("id,label\n2,open\n")
    (folder / "qrels.tsv").write_text("1\t1\t1\n1\t4711\t1\n2\t3\t1\n")


def pairs_of_texts(folder: Path) -> None:
    pairs = [
        {"premise": f"Parcel {n} is late", "hypothesis": "It came on time", "label": "contradiction"} for n in range(4)
    ]
    answers = [{"query": f"parcel {n}", "passage": f"Parcel {n} is late again."} for n in range(12)]
    for name, rows in (("pairs.jsonl", pairs), ("answers.jsonl", answers)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    scored = ["A dog barks.,A dog is barking.,4.8", "A dog barks.,Rain fell.,0.2", "It rains.,Rain fell.,3.5"]
    (folder / "sts.csv").write_text("\n".join(scored))
    sick = ["1\tA dog barks.\tA dog is barking.\t4.8", "2\tA dog barks.\tRain fell.\t1.0", "3\tRain.\tIt rains.\t3"]
    (folder / "sick.tsv").write_text("\n".join(["id\tsentence_A\tsentence_B\trelatedness_score", *sick]))
    german, english = ["Ein Hund bellt.", "Es regnet.", "Guten Tag!"], ["A dog barks.", "Rain.", "Hello!"]
    for language, lines in (("german", german), ("english", english)):
        (folder / f"{language}.txt").write_text("\n".join(lines))
    (folder / "german-english.tsv").write_text("\n".join(map("\t".join, zip(german, english, strict=True))))


def known_answers(folder: Path, encoder: Any) -> None:
    """Questions and answers, articles with judged queries and clicks, and examples of labels."""
    from sonde.app.api import index

    things = ("battery", "parcel", "screen", "refund", "garden", "music", "kettle", "lamp", "chair", "oven", "shoe")
    faq = [{"id": n, "question": f"How do I return a {thing}?", "answer": f"Send the {thing} back."}
           for n, thing in enumerate(things)]  # fmt: skip
    (folder / "faq.csv").write_text(csv(faq))
    index(folder / "faq.csv", folder / "faq.sonde", text="question", id="id", encoder=encoder)
    (folder / "answered.csv").write_text(csv([{"question": f"return a {t}", "id": n} for n, t in enumerate(things)]))
    (folder / "unanswerable.txt").write_text("".join(f"who wrote novel {n} about whales\n" for n in range(12)))
    said = "It lasted for a week or so and then it stopped, and nobody in the shop could say why it had stopped at all."
    articles = [
        {"id": n, "title": f"My {things[n % 11]} {n}", "text": f"The {things[n % 11]}. {said}"} for n in range(30)
    ]
    index(articles, folder / "articles.sonde", title="title", id="id", encoder=encoder)
    judged = [{"_id": str(n), "text": f"{things[n % 11]} {n} stopped"} for n in range(24)]
    (folder / "judged.jsonl").write_text("".join(json.dumps(query) + "\n" for query in judged))
    (folder / "judged.tsv").write_text("".join(f"{n}\t{n}\t1\n" for n in range(24)))
    (folder / "clicks.csv").write_text(csv([{"query": row["text"], "id": row["_id"]} for row in judged]))
    labelled = [{"text": f"{word} {n}", "label": label}
                for label, word in (("late", "late delivery"), ("broken", "noisy fan")) for n in range(8)]  # fmt: skip
    (folder / "labelled.csv").write_text(csv(labelled))


def overview(folder: Path) -> None:
    """A collection with topics, a map and a curve."""
    told = [{"desk": row.pop("theme"), "date": row.pop("day"), **row} for row in texts_of_themes()]
    news = collection(folder / "news.sonde", told)
    news.topics()
    news.map()
    news.cluster(refits=0)


def edited(folder: Path) -> None:
    """A collection with a taxonomy that was edited, another one, and files to import."""
    told = [{**row, "date": row["day"], "id": str(4711 + n), "stars": 1 + n % 5, "year": 2020 + n % 6}
            for n, row in enumerate(texts_of_themes())]  # fmt: skip
    desk, names = collection(folder / "desk.sonde", told), ("other", "Shipping", "complaints", "Late parcels")
    desk.topics()
    groups = [{"number": n, "name": names[n] if n < len(names) else f"group {n}"} for n in range(9)]
    groups += [{"number": 23, "name": "something new", "proposed": True}]
    placed = [{"id": row["id"], "group": (3, 3, 5, 8, 23)[n % 5]} for n, row in enumerate(told)]
    text = json.dumps({"form": "sonde taxonomy 1", "name": "taxonomy", "groups": groups, "documents": placed})
    desk.import_taxonomy(text)
    for number in (5, 6, 7):
        desk.edit_taxonomy("describe", groups=[number], description="more")
    for name in ("desk.json", "groups.json"):
        (folder / name).write_text(text.replace('"taxonomy"', '"from a file"'))
    (folder / "groups.csv").write_text("name\nlate\nbroken\n")
    (folder / "titles.csv").write_text("Title;Belongs to\nlate;\nvery late;late\n")
    (folder / "documents.csv").write_text("id,group\n4711,late\n")
    collection(folder / "other.sonde", [{**row, "id": f"o{n}"} for n, row in enumerate(texts_of_themes())])


def csv(rows: list[dict[str, Any]]) -> str:
    return "\n".join([",".join(rows[0]), *(",".join(f'"{value}"' for value in row.values()) for row in rows)])


RUNNABLE = [
    pytest.param(example, marks=pytest.mark.long) if example.words[0] == "train" else example
    for example in EXAMPLES
    if not any(word in UNSAFE or word.startswith("s3://") for word in example.words)
    and (example.words[0] not in SERVERS or example.words[1:2] == ("key",))
]


@pytest.mark.parametrize("example", RUNNABLE, ids=lambda example: f"{example.where}: {example}")
def test_an_example_runs(
    prepared: Path,
    tmp_path: Path,
    example: Example,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "here"
    shutil.copytree(prepared, folder, ignore=lambda _, names: unused(example, names))
    monkeypatch.chdir(folder)
    inject(monkeypatch, FakeEncoder())
    monkeypatch.setattr("sonde.app.ui.launch.launch", lambda *_: None)
    sonde: Command = command(capsys, monkeypatch)
    if NEEDS_DEFAULT & {example.words[0], " ".join(example.words[:2])} and not default_model():
        pytest.skip("this command takes the default model, whose package is not installed")
    if example.stdin:
        monkeypatch.setattr(sys, "stdin", standard_input(folder / example.stdin))
    if example.words[:2] == ("runs", "split"):
        number = example.words[4]
        assert sonde("runs", "merge", *example.words[2:4], number, "1" if number == "0" else "0").code == 0
    if example.words[0] == "ui" or (example.words[:2] == ("serve", "key") and "--name" not in example.words):
        sonde("serve", "key", "keys.json", "--name", "reader")
    ran = sonde(*shortened(example.words))
    assert ran.code == 0, ran.err


def unused(example: Example, names: list[str]) -> list[str]:
    """Return the collections that a command with a collection does not name: to copy all takes longer than most run."""
    named = [word.rstrip("/") for word in example.words if word.rstrip("/").endswith(".sonde")]
    return [name for name in names if name.endswith(".sonde") and named and name not in named]


def shortened(words: tuple[str, ...]) -> list[str]:
    """Return a command that trains for two steps, not for minutes, and takes any free port."""
    if words[0] == "ui":
        return [*words, "--port", "0"]
    return ["0.02" if before == "--epochs" else word for before, word in zip(("", *words), words, strict=False)]


def standard_input(path: Path) -> Any:
    return (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8")


def modules() -> Iterator[str]:
    """The modules that hold an example, by their name under `sonde`."""
    for package in ("app", "indexer", "pipelines"):
        for path in sorted((CHECKOUT / package).rglob("*.py")):
            if ">>> " in path.read_text(encoding="utf-8"):
                parts = path.relative_to(CHECKOUT).with_suffix("").parts
                yield ".".join(("sonde", *(part for part in parts if part != "__init__")))


def test_all_public_functions_have_an_example() -> None:
    import sonde

    api = importlib.import_module("sonde.app.api")
    methods = inspect.getmembers(api.Collection, inspect.isfunction)
    public = [api.open, api.index, api.classify, api.entail, api.Collection]
    public += [value for name, value in methods if not name.startswith("_") and name != "close"]
    assert len(public) > 25
    assert [each.__name__ for each in public if ">>> " not in (each.__doc__ or "")] == []
    assert [name for name in sonde.__all__ if not (getattr(sonde, name).__doc__ or "").strip()] == []


class Finder(doctest.DocTestFinder):
    """Finds the examples of functions that another one wraps where they are written."""

    def _from_module(self, module: Any, object: Any) -> bool:
        return super()._from_module(module, inspect.unwrap(object))  # type: ignore[misc]

    def _find_lineno(self, obj: Any, source_lines: Any) -> int | None:
        return super()._find_lineno(inspect.unwrap(obj), source_lines)  # type: ignore[misc]


@pytest.mark.parametrize("name", [*modules()])
def test_docstring_examples(name: str, tmp_path: Path) -> None:
    """Examples of a module run in the order in which they stand, each seeing what those before it made."""
    import sonde

    if name in MODULES_OF_DEFAULT and not default_model():
        pytest.skip("the default model is not in this checkout: make weights")
    module = importlib.import_module(name)
    found = Finder(exclude_empty=True).find(module, name)
    shared: dict[str, Any] = {**vars(module), "sonde": sonde, "folder": tmp_path}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    output: list[str] = []
    for test in sorted((test for test in found if test.examples), key=lambda test: test.lineno or 0):
        test.globs = shared
        runner.run(test, out=output.append, clear_globs=False)
    assert runner.summarize(verbose=False).attempted > 0
    assert runner.failures == 0, "".join(output)

"""Queries and options that are wrong, or only large: one line, or an answer, and the collection as it was."""

import json
import sys
from pathlib import Path

import pytest
from command_line import Command, command
from small_reviews import ROWS, lines, written

MISTAKES: dict[str, tuple[tuple[object, ...], int, tuple[str, ...]]] = {
    "k of 0": (("search", "battery", "-k", 0), 2, ("k is 0",)),
    "k below 0": (("search", "battery", "-k", -3), 2, ("k is -3",)),
    "k of words": (("search", "battery", "-k", "ten"), 2, ("-k",)),
    "offset below 0": (("search", "battery", "--offset", -1), 2, ("offset is -1",)),
    "empty query": (("search", ""), 2, ("query is empty",)),
    "blank query": (("search", " \t "), 2, ("query is empty",)),
    "query of broken bytes": (("search", "caf\udce9"), 2, ("UTF-8",)),
    "no query": (("search",), 2, ("give a query", "--queries")),
    "query twice": (("search", "battery", "--queries", "q.jsonl"), 2, ("give a query",)),
    "run without queries": (("search", "battery", "--run", "r.trec"), 2, ("--queries",)),
    "unknown mode": (("search", "battery", "--mode", "fuzzy"), 2, ("'fuzzy'", "hybrid", "dense", "lexical")),
    "unknown fusion": (("search", "battery", "--fusion", "max"), 2, ("'max'", "convex", "rrf")),
    "weight above 1": (("search", "battery", "--weight", 1.5), 2, ("weight is 1.5",)),
    "weight that is no number": (("search", "battery", "--weight", "nan"), 2, ("weight is nan",)),
    "unknown column": (("search", "battery", "--where", "star > 2"), 2, ("star", "stars")),
    "unknown operator": (("search", "battery", "--where", "stars @> 2"), 2, ()),
    "broken filter": (("search", "battery", "--where", "stars >"), 2, ("stars >",)),
    "filter of broken bytes": (("search", "battery", "--where", "title = 'caf\udce9'"), 2, ("UTF-8",)),
    "injection": (("search", "battery", "--where", "1=1; DROP TABLE documents"), 2, ()),
    "unknown option": (("search", "battery", "--fuzzy"), 2, ("--fuzzy",)),
    "unknown id": (("similar", "4711"), 1, ("'4711'",)),
    "id of broken bytes": (("similar", "caf\udce9"), 1, ("no document with the id",)),
    "similar to nothing": (("similar",), 2, ("id", "--text")),
    "similar to an empty text": (("similar", "--text", " "), 2, ("empty",)),
    "similar, k of 0": (("similar", "1", "-k", 0), 2, ("k is 0",)),
    "delete nothing": (("delete",), 2, ("ids", "--where")),
    "delete an unknown id": (("delete", "1", "4711", "4712"), 1, ("'4711'", "1 more", "nothing was changed")),
    "delete broken bytes": (("delete", "caf\udce9"), 1, ("no document with the id",)),
    "delete by a wrong filter": (("delete", "--where", "colour = 'red'"), 2, ("colour", "stars")),
    "export to an unknown format": (("export", "--to", "r.docx"), 2, (".xlsx", ".csv", ".parquet", ".jsonl")),
    "export to a missing folder": (("export", "--to", "no/such/r.csv"), 1, ("no/such",)),
    "missing queries": (("search", "--queries", "no.jsonl"), 1, ("no.jsonl",)),
}


OUTPUTS: dict[str, tuple[str, int]] = {
    "export C --to .": (
        "cannot export to '.': it is a folder; give a file, whose name must end in .xlsx, .csv, ",
        2,
    ),
    "export C --to r.docx": (
        "cannot export to 'r.docx': the name must end in .xlsx, .csv, .parquet, .jsonl or .ris",
        2,
    ),
    "export C --to nodir/x.csv": ("cannot write nodir/x.csv: the folder nodir does not exist", 1),
    "duplicates C --to .": (
        "cannot export to '.': it is a folder; give a file, whose name must end in .xlsx, .csv",
        2,
    ),
    "map C --to .": ("cannot draw '.': it is a folder; give a file, whose name must end in .html, .png or .svg", 2),
    "correct C --to .": (
        "cannot write corrections to '.': it is a folder; give a file, whose name must end in .csv ",
        2,
    ),
    "correct C --to nodir/x.csv": ("cannot write nodir/x.csv: the folder nodir does not exist", 1),
    "judgements C --to .": ("cannot write '.': it is a folder; give a file", 2),
    "judgements C --to a/x.tsv": ("cannot write a/x.tsv: the folder a does not exist", 1),
    "judgements C --to same.x --queries ./same.x": ("--to and --queries are both same.x: give two different files", 2),
    "bitext a.txt b.txt --to .": (
        "cannot write pairs to '.': it is a folder; give a file, whose name must end in .ts",
        2,
    ),
    "evaluate bitext a.tsv --map m.png --histogram m.png": (
        "--histogram and --map are both m.png: give two differe",
        2,
    ),
    "search C --queries q.jsonl --run q.jsonl": ("--queries and --run are both q.jsonl: give two different files", 2),
    "search C --queries q.jsonl --run a/r.trec": ("cannot write a/r.trec: the folder a does not exist", 1),
    "key nodir/keys.json --name A": ("cannot write nodir/keys.json: the folder nodir does not exist", 1),
    "key meta.jsonl --name A": ("meta.jsonl exists and is not a key file: give another name", 1),
    "tune C --reset --dry-run": ("--reset removes what was tuned, and --dry-run changes nothing: choose one", 2),
    "tune C --seed -1": ("--seed is -1: give 0 or more", 2),
    "tune C --count -1": ("--count is -1: give a whole number from 20", 2),
    "tune threshold C --answered a.txt --unanswerable a.txt --seed -1": ("--seed is -1: give 0 or more", 2),
    "cluster C -k--5": ("-k is '--5': give a whole number, or auto", 2),
    "label C --labels a,b --budget ²": (
        "the budget '²' is neither a number of judgements nor a time: give 5000, 90s, 5m or 1h",
        2,
    ),
    "similarity --pairs p.csv --columns 1,²": ("p.csv has no column '²'; it has the columns first, second", 2),
    "correct C --unsure -k 0": ("-k is 0: show 1 document or more", 2),
    "cluster C --labels a --name a": ("'a' is the only label, so every text would get it: give two or more", 2),
    "label C --labels a": ("'a' is the only label, so every text would get it: give two or more, or --multi-label", 2),
    "index a.csv --to n.sonde --recall 2": ("--recall is 2.0: give a number above 0 and at most 1", 2),
    "index a.csv --to n.sonde --memory -1": ("--memory is -1: give a number of MB, 1 or more", 2),
    "evaluate search C --modes foo": ("there is no mode 'foo': use hybrid, dense, lexical or rerank", 2),
    "search C q --threshold 0,4": ("--threshold is '0,4': write 0.4", 2),
    "search C q --weight 10%": ("--weight is '10%': write a number such as 0.5", 2),
    "search C q -k zehn": ("-k is 'zehn': write a whole number", 2),
    "info review": ("there is no collection at review: did you mean reviews.sonde?", 1),
    "info x.sonde": ("there is no collection at x.sonde; here are: reviews.sonde", 1),
}


@pytest.mark.parametrize("words", OUTPUTS)
def test_a_mistake_word_for_word(sonde: Command, unchanged: Path, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    monkeypatch.chdir(unchanged.parent)
    written(Path("meta.jsonl"), b'{"id": 1}\n')
    written(Path("p.csv"), b"first,second\none text,another text\n")
    written(Path("a.txt"), b"".join(b"question %d\n" % n for n in range(10)))
    said, code = OUTPUTS[words]
    before = {path.name for path in Path().iterdir()}
    ran = sonde(*(unchanged if word == "C" else word for word in words.split()))
    ran.refused(code=code)
    assert ran.err.startswith(f"sonde: {said}")
    assert {path.name for path in Path().iterdir()} == before


def test_a_folder_of_many_collections(sonde: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in "abcdef":
        (tmp_path / f"{name}.sonde").mkdir()
    said = "there is no collection at zz; here are: a.sonde, b.sonde, c.sonde, d.sonde, e.sonde, …"
    assert sonde("info", "zz").said == [f"sonde: {said}"]


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake(sonde: Command, unchanged: Path, name: str) -> None:
    (first, *rest), code, words = MISTAKES[name]
    sonde(first, unchanged, *rest).refused(*words, code=code)


def test_a_filter_on_an_unknown_column_names_those_that_exist(sonde: Command, unchanged: Path) -> None:
    sonde("search", unchanged, "x", "--where", "price > 2").refused("price", "stars", "title", "length", code=2)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ("has no queries",)),
        (b'{"_id": "1", "text": "battery"}\n{"_id": "2"}\n', ("line 2",)),
        (b'{"_id": "1", "text": "battery"}\nnot json\n', ("line 2",)),
        (b"[1, 2]\n", ("line 1",)),
        (b'{"_id": "1", "text": "a"}\n{"_id": "1", "text": "b"}\n', ("'1'", "more than once")),
        (b'{"_id": "1", "text": "caf\xe9"}\n', ("q.jsonl",)),
        (b'{"_id": "1", "text": "a"}\n{"_id": "2", "text": " "}\n', ("line 2", "the query '2' is empty")),
        (b'{"_id": "1", "text": null}\n', ("line 1",)),
    ],
)
def test_broken_queries(
    sonde: Command, unchanged: Path, tmp_path: Path, content: bytes, words: tuple[str, ...]
) -> None:
    queries = written(tmp_path / "q.jsonl", content)
    ran = sonde("search", unchanged, "--queries", queries, "--run", tmp_path / "r.trec")
    ran.refused(*words, code=2 if words[-1].endswith("empty") else 1)
    assert not (tmp_path / "r.trec").exists()


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--ann", "hsnw", ("hnsw", "ivf")),
        ("--recall", "1.5", ("1.5",)),
        ("--memory", "-1", ("memory",)),
        ("--memory", "0", ("memory",)),
        ("--dtype", "float8", ("float8", "float16")),
        ("--format", "cvs", ("'cvs'", "csv")),
        ("--encoding", "utf-9", ("utf-9",)),
        ("--delimiter", "ab", ("ab",)),
        ("--language", "klingon", ("klingon",)),
    ],
)
def test_an_option_of_index_that_cannot_be(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    option: str,
    value: str,
    words: tuple[str, ...],
) -> None:
    source = lines(tmp_path / "s.jsonl", ROWS)
    ran = command(capsys, monkeypatch)("index", source, "--to", tmp_path / "new.sonde", option, value)
    ran.failed(*words, code=2)
    assert not (tmp_path / "new.sonde").exists()


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
@pytest.mark.parametrize("k", [4, 10**6, 10**18])
def test_k_beyond_the_collection_returns_all(sonde: Command, unchanged: Path, mode: str, k: int) -> None:
    ran = sonde("search", unchanged, "the battery, the phone, a day", "-k", k, "--mode", mode, "--json")
    assert ran.code == 0, ran.err
    assert {json.loads(line)["id"] for line in ran.out.splitlines()} == {"1", "2", "3"}
    ran = sonde("search", unchanged, "the battery", "--offset", k, "--mode", mode)
    assert ran.code == 0, ran.err


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
def test_a_query_of_100_000_characters(sonde: Command, unchanged: Path, mode: str) -> None:
    query = "battery " * 12_500
    ran = sonde("search", unchanged, query, "-k", 1, "--mode", mode, "--json", "--explain")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["id"] == "1"
    if mode != "lexical":
        assert "note: the query has 12,500 tokens; the model reads the first 64" in ran.err
    words = " ".join(f"word{number}" for number in range(11_000)) + " battery"
    assert sonde("search", unchanged, words, "--mode", mode).code == 0


def test_an_example_of_broken_bytes(
    unchanged: Path, sonde: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stream = written(tmp_path / "letter.txt", b"caf\xe9 battery").open(encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", stream)
    sonde("similar", unchanged, "--text", "-").refused("UTF-8", code=2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("index a.csv", "stopped; the same command continues after the last commit, if there was one"),
        ("train nli p.jsonl --to m", "stopped; the same command continues after the last checkpoint, if there was one"),
        ("label c --labels a,b --engine nli", "the same command continues after the last judgement, if there was one"),
        (
            "label c --labels a,b --engine=reranker",
            "the same command continues after the last judgement, if there was one",
        ),
        ("label c --labels a,b", "stopped; nothing was stored or changed"),
        ("label --text t --labels a,b --engine nli", "stopped; nothing was stored or changed"),
        ("cluster c", "stopped; nothing was stored or changed"),
        ("search c x", "stopped; nothing was stored or changed"),
        ("late c", "stopped; the same command continues after the last batch, if there was one"),
        ("compact c", "stopped; what was compacted stays, and the same command compacts the rest"),
        ("repair c", "stopped; what was repaired stays, and the same command repairs the rest"),
        ("serve c", "stopped"),
    ],
)
def test_ctrl_c_says_what_is_left(sonde: Command, monkeypatch: pytest.MonkeyPatch, words: str, said: str) -> None:
    from sonde.app.cli import main

    monkeypatch.setattr(main, "app_for", lambda _: lambda **_: main.INTERRUPTED)
    ran = sonde(*words.split())
    assert ran.code == 130
    assert ran.err.endswith(f"{said}\n")
    assert ran.err.count("\n") == 1


def test_progress_tells_no_pace_that_it_does_not_know(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from sonde.app.cli import output
    from sonde.indexer.progress import Progress

    now = [0.0]
    monkeypatch.setattr(output.time, "monotonic", lambda: now[0])
    monkeypatch.delenv("SONDE_PROGRESS", raising=False)
    with output.progress() as tell:
        now[0] = 20
        tell(Progress("shard 1 of 2: lexical index", 0, None, "passages"))
        for seconds, done in ((20, 0), (40, 5), (60, 100), (80, 200)):
            now[0] = seconds
            tell(Progress("embedding", done, 200, "passages", estimated=done == 5))
        now[0] = 100
        tell(Progress("FAISS index", 1, 1, "steps"))
    assert capsys.readouterr().err.splitlines() == [
        "embedding: 0 of 200 passages",
        "embedding: 5 of about 200 passages, 0.25/s, 780 s left",
        "embedding: 100 of 200 passages, 2.5/s, 40 s left",
        "embedding: 200 of 200 passages",
        "FAISS index: 1 of 1 steps",
    ]

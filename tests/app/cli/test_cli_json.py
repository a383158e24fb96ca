"""`--json`: the names of DESIGN's contract with scripts, nothing but JSON lines on stdout, all else on stderr."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Command, Ran, command, inject
from fake_encoder import FakeEncoder

ROWS = [
    {"id": "1", "title": "Phone", "text": "The battery died after a week.", "stars": 1, "day": "2024-05-06"},
    {"id": "2", "title": "Lamp", "text": "Great light, lasts for days.", "stars": 5, "day": "2024-05-07"},
    {"id": "3", "title": "", "text": "The screen broke on the first day. ü", "stars": 2, "day": None},
]
HIT = {"rank", "id", "relevance", "weak", "score", "title", "text", "metadata", "scores"}


@pytest.fixture
def sonde(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    inject(monkeypatch, FakeEncoder())
    return command(capsys, monkeypatch)


@pytest.fixture
def folder(sonde: Command, tmp_path: Path) -> Path:
    source = tmp_path / "s.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in [*ROWS, {"id": "4", "text": " "}]))
    ran = sonde("index", source, "--to", tmp_path / "c.sonde", "--id", "id", "--json")
    [report] = objects(ran)
    assert {name: report[name] for name in ("added", "replaced", "unchanged", "deleted", "skipped")} == {
        "added": 3, "replaced": 0, "unchanged": 0, "deleted": 0, "skipped": 1,
    }  # fmt: skip
    assert report["skipped_rows"] == [{"origin": "line 4", "reason": report["skipped_rows"][0]["reason"]}]
    assert {"duplicate_ids", "embedded", "reused", "tokens", "cut_tokens", "seconds", "skipped_file"} <= set(report)
    assert "s.jsonl: text: text" in ran.err
    return tmp_path / "c.sonde"


def objects(ran: Ran) -> list[dict[str, Any]]:
    """What a command printed; every line is a JSON object, in strict JSON."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no JSON")

    assert ran.code == 0, ran.err
    found = [json.loads(line, parse_constant=refuse) for line in ran.out.splitlines()]
    assert all(isinstance(each, dict) for each in found)
    return found


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
def test_search(sonde: Command, folder: Path, mode: str) -> None:
    ran = sonde("search", folder, "Phone: the battery died after a week", "--mode", mode, "--json")
    first = objects(ran)[0]
    assert set(first) == HIT | {"passage", "excerpt", "copies"}
    assert set(first["scores"]) == {"dense", "lexical", "rerank"}
    assert (first["rank"], first["id"], first["title"]) == (1, "1", "Phone")
    assert first["text"] == ROWS[0]["text"] and first["metadata"] == {"stars": 1, "day": "2024-05-06"}
    assert (first["scores"]["dense"] is None, first["scores"]["lexical"] is None) == (
        mode == "lexical",
        mode == "dense",
    )
    assert first["passage"] == {"start": 0, "end": len(ROWS[0]["text"]), "text": ROWS[0]["text"]}  # type: ignore[arg-type]
    assert (first["excerpt"], first["copies"]) == (first["passage"], [])
    assert ran.err == ""


def test_a_filter_an_explanation_and_a_note(sonde: Command, folder: Path) -> None:
    [hit] = objects(sonde("search", folder, "the screen", "--where", "stars = 2", "--explain", "--json"))
    assert hit["id"] == "3" and hit["text"].endswith("ü") and hit["metadata"] == {"stars": 2}
    assert set(hit["why"]) == {"terms", "title_terms", "sentences"}
    assert set(hit["why"]["sentences"][0]) == {"start", "end", "text", "similarity"}
    ran = sonde("search", folder, "battery", "--threshold", 5, "--json")
    assert objects(ran) == [] and ran.err.startswith("note: nothing similar enough")


def test_many_queries(sonde: Command, folder: Path, tmp_path: Path) -> None:
    queries = tmp_path / "q.jsonl"
    queries.write_text('{"_id": "a", "text": "battery"}\n{"_id": "b", "text": "screen"}\n')
    hits = objects(sonde("search", folder, "--queries", queries, "-k", 1, "--json"))
    assert [(hit["query"], hit["id"], set(hit) >= HIT) for hit in hits] == [("a", "1", True), ("b", "3", True)]
    ran = sonde("search", folder, "--queries", queries, "--run", tmp_path / "r.trec", "--json")
    assert objects(ran) == [] and "6 hits of 2 queries" in ran.err
    assert (tmp_path / "r.trec").read_text().splitlines()[0].split()[:4] == ["a", "Q0", "1", "1"]


def test_similar(sonde: Command, folder: Path) -> None:
    hits = objects(sonde("similar", folder, "1", "--json"))
    assert {hit["id"] for hit in hits} == {"2", "3"} and set(hits[0]) >= HIT
    assert (
        objects(sonde("similar", folder, "--text", "Phone: the battery died after a week", "-k", 1, "--json"))[0]["id"]
        == "1"
    )


def test_info(sonde: Command, folder: Path) -> None:
    [info] = objects(sonde("info", folder, "--json"))
    assert (info["documents"], info["passages"], info["model"], info["dimension"]) == (3, 3, "fake", 16)
    assert {"kind", "recall", "latency_ms"} <= set(info["ann"])
    assert info["fields"] == {"stars": "integer", "day": "date"}
    assert {"tombstones", "newer", "model_settings", "language", "lexical", "bytes", "generation", "path"} <= set(info)


def test_evaluate(sonde: Command, folder: Path, tmp_path: Path) -> None:
    queries, qrels = tmp_path / "q.jsonl", tmp_path / "qrels.tsv"
    queries.write_text('{"_id": "a", "text": "battery"}\n{"_id": "b", "text": "screen"}\n')
    qrels.write_text("a\t1\t1\nb\t3\t1\n")
    found = objects(sonde("evaluate", "search", folder, "--queries", queries, "--qrels", qrels, "--json"))
    assert [each["mode"] for each in found] == ["dense", "lexical", "hybrid"]
    assert all(
        {"ndcg@10", "recall@100", "mrr@10", "map@100", "queries", "interval", "p"} <= set(each) for each in found
    )
    assert found[1]["ndcg@10"] == found[1]["recall@100"] == 1.0


def test_upkeep(sonde: Command, folder: Path, tmp_path: Path) -> None:
    assert objects(sonde("verify", folder, "--json")) == []
    assert objects(sonde("repair", folder, "--json")) == []
    exported = objects(sonde("export", folder, "--vectors"))
    assert [set(row) for row in exported] == [{"id", "title", "text", "stars", "day", "vector"}] * 3
    assert objects(sonde("export", folder, "--to", tmp_path / "e.csv", "--json")) == [
        {"documents": 3, "path": str(tmp_path / "e.csv")}
    ]
    assert objects(sonde("delete", folder, "2", "--json")) == [{"deleted": 1}]
    [report] = objects(sonde("compact", folder, "--json"))
    assert (report["removed"], report["segments"]) == (1, 1)
    (folder / "lexical").rename(tmp_path / "lexical")
    ran = sonde("verify", folder, "--json")
    assert ran.code == 1 and json.loads(ran.out) == {
        "part": "lexical",
        "problem": "the lexical index is missing or damaged",
    }
    assert objects(sonde("repair", folder, "--json")) == [{"done": "rebuilt the lexical index"}]


def test_an_infinite_number_is_no_json(sonde: Command, tmp_path: Path) -> None:
    source = tmp_path / "s.csv"
    source.write_text("text,score\nbattery,inf\nscreen,1.5\n")
    assert sonde("index", source, "--to", tmp_path / "c.sonde", "--text", "text").code == 0
    objects(sonde("search", tmp_path / "c.sonde", "battery", "--json"))
    objects(sonde("export", tmp_path / "c.sonde"))


def test_estimate(sonde: Command, folder: Path, tmp_path: Path) -> None:
    [expected] = objects(sonde("index", tmp_path / "s.jsonl", "--to", folder, "--estimate", "--json"))
    assert {"documents", "passages", "seconds", "memory", "disk"} <= set(expected)
    assert objects(sonde("index", tmp_path / "s.jsonl", "--to", tmp_path / "new.sonde", "--estimate", "--json"))
    assert not (tmp_path / "new.sonde").exists()


def test_errors_are_on_stderr(sonde: Command, folder: Path) -> None:
    sonde("search", folder, "x", "-k", 0, "--json").refused("k is 0", code=2)
    sonde("info", folder / "none", "--json").refused("no collection")

"""`sonde late`, `sonde index --late` and what `info` and `verify` say of the late index."""

import json
import re
from pathlib import Path

import pytest
from command_line import Command, problems
from kill_corpus import documents
from small_reviews import lines

from sonde.indexer.encoder.assembly import STATIC_WINDOW
from sonde.indexer.ingest import estimate
from sonde.indexer.late import token_rows
from sonde.indexer.late.index import LINE


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    rows = [{"id": each.key or "", "title": each.title, "text": each.text} for each in documents()]
    return lines(tmp_path / "corpus.jsonl", rows[:60])


def test_it_is_built_shown_continued_and_removed(sonde: Command, corpus: Path, tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    assert sonde("index", corpus, "--to", folder).code == 0
    assert "late" not in sonde("info", folder).out
    ran = sonde("late", folder)
    assert ran.code == 0
    count = json.loads(sonde("info", folder, "--json").out)["passages"]
    assert ran.out.startswith(f"late index: {count} of {count} passages, ") and f"; {count} embedded in " in ran.out
    assert f"  late       {count} of {count} passages, " in sonde("info", folder).out
    assert "; 0 embedded in " in sonde("late", folder).out
    assert sonde("search", folder, "winter river", "--rerank").code == 0
    codes = next((folder / "late").rglob("*.codes.npy"))
    codes.write_bytes(codes.read_bytes()[:-5])
    ran = sonde("verify", folder)
    assert ran.code == 1 and ran.out.startswith("late: the late index is damaged: ")
    assert f"embedded the tokens of {count} passages again for the late index" in sonde("repair", folder).out
    assert problems(folder) == []
    assert sonde("late", folder, "--remove").out == f"removed the late index of {folder}\n"
    assert not (folder / "late").exists()
    again = sonde("late", folder, "--remove")
    assert (again.code, again.out, again.err) == (0, "", f"nothing to remove: {folder} has no late index\n")


@pytest.mark.parametrize("shards", [(), ("--shards", 2)])
def test_a_long_run_says_once_what_it_will_take(
    sonde: Command, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: tuple[str, ...]
) -> None:
    folder = tmp_path / "c.sonde"
    assert sonde("index", corpus, "--to", folder, *shards).code == 0
    monkeypatch.setattr(estimate, "PROBED_OF", 0.5)
    monkeypatch.setattr(estimate, "LONG_RUN_SECONDS", 0.0)
    count = json.loads(sonde("info", folder, "--json").out)["passages"]
    told = [line for line in sonde("late", folder).err.splitlines() if "estimate" in line]
    assert [re.sub(r"[\d.]+ (s|k?B)", "N", line) for line in told] == [f"estimate: {count} passages: N, N of disk"]
    assert "estimate" not in sonde("late", folder).err, "nothing is left to embed"


def test_index_with_late_covers_what_was_there_before(sonde: Command, corpus: Path, tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    assert sonde("index", corpus, "--to", folder).code == 0
    more = lines(tmp_path / "more.jsonl", [{"id": "new", "text": "a silver bridge in winter"}])
    assert sonde("index", more, "--to", folder, "--late").code == 0
    found = json.loads(sonde("info", folder, "--json").out)
    assert found["late"]["covered"] == found["late"]["passages"] == found["passages"] > 60
    assert found["bytes"]["late"] == found["late"]["bytes"] > 0
    report = json.loads(sonde("late", folder, "--json").out)
    assert (report["covered"], report["embedded"]) == (found["passages"], 0)


def test_a_collection_that_is_not_there_is_refused(sonde: Command, tmp_path: Path) -> None:
    sonde("late", tmp_path / "none.sonde").refused("there is no collection at")


def test_too_few_tokens_are_told(sonde: Command, reviews: Path) -> None:
    ran = sonde("late", reviews)
    assert ran.code == 0 and "the late index has too few tokens to learn from" in ran.err
    assert ran.out == ""


@pytest.mark.parametrize(("model", "window", "most"), [("default", 256, 4.5), ("static", STATIC_WINDOW, 9)])
def test_help_states_the_largest_passage_of_each_model(sonde: Command, model: str, window: int, most: float) -> None:
    widest = 49  # bytes of a pooled token, for embeddings of any dimension: see test_codec
    assert 0.97 * most < (token_rows(window) * widest + LINE) / 1000 <= most
    said = " ".join(sonde("late", "--help").out.split())
    assert f"{most} kB with the {model} model" in said
    assert "at most 4.5 kB for every 256 tokens" in said

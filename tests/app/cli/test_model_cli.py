"""`sonde model`: what it prints, what it refuses, and how it ends."""

import json
import re
from pathlib import Path

import pytest
from command_line import Command, problems
from fake_encoder import FakeEncoder
from kill_corpus import WORDS
from other_encoder import ContraryEncoder, OtherEncoder, loaded
from small_reviews import lines

from sonde.app.api import Collection
from sonde.app.stopped import after_stop
from sonde.indexer.errors import UsageError
from sonde.indexer.store import collection as stored
from sonde.pipelines.tune import models


@pytest.fixture
def letters(sonde: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A collection with judgements; the names other and contrary are models."""
    rows = [{"id": str(n), "text": f"{WORDS[n % 15]} {WORDS[n // 15]} number {n}", "page": n} for n in range(60)]
    assert sonde("index", lines(tmp_path / "letters.jsonl", rows), "--to", tmp_path / "c.sonde").code == 0  # type: ignore[arg-type]
    models = {"other": OtherEncoder, "contrary": ContraryEncoder, "all-MiniLM-L6-v2": FakeEncoder}

    def load(name: str, **_: object) -> FakeEncoder:
        if name not in models:
            raise UsageError(f"unknown model {name!r}")
        return models[name]()

    monkeypatch.setattr("sonde.indexer.encoder.loading.load_encoder", load)
    monkeypatch.setattr(stored, "load_encoder_for", loaded)
    collection = Collection.open(tmp_path / "c.sonde")
    for word in WORDS:
        collection.judge(f"{word} letter", [row["id"] for row in rows if word in str(row["text"])])
    collection.cluster("k", k=2)
    collection.close()
    return tmp_path / "c.sonde"


def test_it_embeds_compares_and_switches(sonde: Command, letters: Path) -> None:
    shown = sonde("model", letters)
    assert shown.out == "model: fake, 16 dimensions, float32\n"
    ran = sonde("model", letters, "--to", "other")
    assert ran.code == 0
    first, *table, last, kept = ran.out.splitlines()
    assert re.fullmatch(r"embedded 60 passages with other in \d+\.\d s", first)
    assert table[0] == "compared on 15 judged queries of the collection"
    assert table[1].split() == ["fake", "other", "difference", "95", "%", "interval", "p"]
    assert [line.split("  ")[0] for line in table[2:]] == [
        "hybrid ndcg@10", "hybrid mrr@10", "dense ndcg@10", "dense mrr@10", "passages", "dimensions",
        "size of embeddings", "passages a second",
    ]  # fmt: skip
    assert re.fullmatch(
        r"hybrid ndcg@10 +0\.\d{3} +0\.\d{3} +[+-]0\.\d{3} +[+-]0\.\d{3} to [+-]0\.\d{3} +[01]\.\d{3}", table[2]
    )
    assert table[7].split() == ["dimensions", "16", "24"]
    assert last == f"{letters} now uses other instead of fake"
    assert re.fullmatch(
        rf"the embeddings of fake are kept \(\S+ kB\): `sonde model {letters} --undo` switches back, "
        "--forget removes them",
        kept,
    )
    assert "note: 1 run was made with another model" in ran.err
    assert sonde("runs", letters).out.rstrip().endswith("  made with fake")
    assert "  model      fake: the collection now has another" in sonde("runs", letters, "k").out
    described = json.loads(sonde("runs", letters, "k", "--json").out)
    assert (described["model"], described["other_model"]) == ("fake", True)
    sonde("cluster", letters, "--update", "k").refused("the cluster run 'k' was made with the model fake")
    assert re.search(r"models +previous: fake, \S+ kB \(`sonde model --undo` switches back", sonde("info", letters).out)
    assert problems(letters) == []
    undone = sonde("model", letters, "--undo")
    assert (undone.code, undone.out.splitlines()[0]) == (0, f"{letters} now uses fake instead of other")
    assert "made with" not in sonde("runs", letters).out
    assert sonde("model", letters, "--forget").out.startswith("removed the embeddings of other: ")
    sonde("model", letters, "--undo").refused("keeps no previous model: there is nothing to undo")


def test_a_model_that_is_not_better_is_switched_to_with_a_warning(sonde: Command, letters: Path) -> None:
    said = r"note: searches are not significantly better with other \(hybrid ndcg@10 \+0\.000, 95 % .*, p 1\.000\): "
    dry = sonde("model", letters, "--to", "other", "--dry-run")
    unless = "unless you need its languages, size or speed, "
    assert re.search(f"{said}{unless}keep the current model", dry.err)
    ran = sonde("model", letters, "--to", "other")
    assert (ran.code, ran.out.splitlines()[-2]) == (0, f"{letters} now uses other instead of fake")
    assert re.search(f"{said}{unless}switch back with `sonde model --undo`", ran.err)
    found = json.loads(sonde("model", letters, "--undo", "--json").out)
    assert not [note for note in found["notes"] if "significantly" in note], "the way back is not compared"


def test_a_significantly_worse_model_that_is_forced_has_the_warning_too(sonde: Command, letters: Path) -> None:
    ran = sonde("model", letters, "--to", "contrary", "--anyway")
    assert ran.code == 0
    assert re.search(
        r"note: searches are significantly worse with other \(hybrid ndcg@10 -0\.\d+, 95 % .*, p <0\.001", ran.err
    )


def test_a_worse_model_is_refused_with_the_way_on(sonde: Command, letters: Path) -> None:
    ran = sonde("model", letters, "--to", "contrary")
    assert ran.code == 1
    assert re.search(
        rf"{letters} keeps fake: searches are significantly worse with other \(hybrid ndcg@10 -0\.\d+, 95 % .*\); "
        "--anyway switches, --discard removes the new embeddings",
        ran.out,
    )
    assert re.search(
        r"models +not in use: other, all documents, \S+ kB \(`sonde model --to other` continues, "
        r"--discard removes it\)",
        sonde("info", letters).out,
    )
    assert sonde("model", letters, "--to", "contrary", "--anyway").code == 0
    assert sonde("info", letters, "--json").out.count('"name": "other"') == 1


def test_models_that_cannot_be_compared_are_refused_with_the_way_on(
    sonde: Command, letters: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models.ModelComparison, "blind", True)
    ran = sonde("model", letters, "--to", "other")
    assert ran.code == 1
    assert re.search(
        rf"{letters} keeps fake: the queries made from these texts find almost nothing with either model \(.*\), so "
        "they cannot compare them: judge the hits of 10 queries with `sonde judge`; --anyway switches, ",
        ran.out,
    )
    assert sonde("model", letters, "--to", "other", "--anyway").code == 0


def test_a_dry_run_changes_nothing(sonde: Command, letters: Path) -> None:
    ran = sonde("model", letters, "--to", "other", "--dry-run", "--json")
    assert ran.code == 0
    found = json.loads(ran.out)
    assert (found["before"], found["after"], found["switched"], found["kept"]) == ("fake", "other", False, None)
    assert found["comparison"]["queries"] == 15
    assert set(found["comparison"]["gains"][0]) == {
        "mode",
        "measure",
        "before",
        "after",
        "low",
        "high",
        "p",
        "difference",
    }
    assert found["comparison"]["refusal"] is None
    assert Collection.open(letters).model == "fake"
    assert sonde("model", letters, "--discard").out.startswith("removed the embeddings of other: ")
    assert sonde("model", letters, "--discard").err == "nothing to remove\n"


def test_mistakes(sonde: Command, letters: Path) -> None:
    for arguments, words, code in (
        (["--to", "other", "--undo"], ["--to cannot be combined with --undo"], 2),
        (["--discard", "--forget"], ["--discard cannot be combined with --forget"], 2),
        (["--dry-run"], ["need --to: name the new model"], 2),
        (["--dtype", "int8"], ["need --to: name the new model"], 2),
        (["--to", "other", "--dry-run", "--anyway"], ["--dry-run cannot be combined with --anyway"], 2),
        (["--to", "nope"], ["unknown model 'nope'"], 2),
        (["--to", "all-MiniLM-L6-v2"], ["already has the model fake with these settings: nothing to change"], 2),
    ):
        sonde("model", letters, *arguments).refused(*words, code=code)
    sonde("model", letters.with_name("none.sonde"), "--to", "other").refused("there is no collection")


def test_a_stopped_change_goes_on() -> None:
    said = "stopped; the same command continues after the last commit, if there was one"
    assert after_stop(["model", "c.sonde", "--to", "static"]) == said

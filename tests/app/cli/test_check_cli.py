"""`sonde check`: what it prints, keeps and refuses."""

import json
from pathlib import Path

import pytest
from command_line import Command
from small_reviews import encoder, lines, sonde  # noqa: F401  (fixtures)


@pytest.fixture
def shop(sonde: Command, tmp_path: Path) -> Path:  # noqa: F811
    rows = [{"id": str(n), "text": f"The parcel with number {n} was late", "part": ("a", "b")[n % 2]} for n in range(8)]
    rows[3]["text"] = "Broken."
    rows[5]["text"] = "Write to ann@example.org about the battery"
    source, folder = lines(tmp_path / "shop.jsonl", rows), tmp_path / "shop.sonde"
    assert sonde("index", source, "--to", folder).code == 0
    return folder


def test_a_check_prints_counts_and_the_worst_and_is_kept(sonde: Command, shop: Path) -> None:  # noqa: F811
    ran = sonde("check", shop, "--only", "short,cut,personal data")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines() == [
        "     1  very short",
        "        3 · 0.67 · 1 word ·  Broken.",
        "     0  cut off",
        "     1  personal data",
        "        5 · 1.00 · e-mail address ·  Write to ann@example.org about the battery",
    ]
    assert ran.said[-1].startswith("check: 2 of 8 documents have a finding · ")
    shown = sonde("runs", "show", shop, "check", "2").out.splitlines()
    assert shown[0].strip() == "1. 1.000  5"
    assert [line.strip() for line in shown[1:3]] == ["e-mail address", "Write to ann@example.org about the battery"]
    found = sonde("search", shop, "parcel", "--where", "'very short' IN \"check:check\"", "--json")
    assert [json.loads(line)["id"] for line in found.out.splitlines()] == ["3"]


def test_non_answers_are_said_found_and_left_out(sonde: Command, tmp_path: Path) -> None:  # noqa: F811
    rows = [
        {"id": str(n), "text": text, "wave": 1}
        for n, text in enumerate(("Nothing", "n/a", "-", "late trams", "late again"))
    ]
    folder = tmp_path / "survey.sonde"
    assert (
        "3 of 5 documents look like non-answers"
        in sonde("index", lines(tmp_path / "a.jsonl", rows), "--to", folder).err
    )
    found = sonde("check", folder, "--only", "non-answer", "--name", "empty")
    assert found.out.splitlines()[:2] == ["     3  no answer", "        0 · 1.00 · says nothing ·  Nothing"]
    rest = ("--where", "NOT 'no answer' IN \"check:empty\"")
    assert "2 documents" in sonde("count", folder, "--by", "wave", *rest).out
    assert sonde("tag", folder, "no answer", "--where", "'no answer' IN \"check:empty\"").code == 0
    assert "2 documents" in sonde("count", folder, "--by", "wave", "--where", 'NOT "tag:no answer"').out


def test_a_check_as_json(sonde: Command, shop: Path) -> None:  # noqa: F811
    told = json.loads(sonde("check", shop, "--kinds", "short", "--json").out)
    assert told == {
        "name": "check", "documents": 8, "notes": [],
        "found": {"short": [{"id": "3", "score": 0.6667, "why": "1 word"}]},
    }  # fmt: skip
    again = sonde("check", shop, "--only", "short", "-k", "0")
    assert again.out == "     1  very short\n"
    assert "a check run 'check' already exists, so the new run is named 'check-2'" in again.err


def test_what_cannot_be_checked_is_said(sonde: Command, shop: Path) -> None:  # noqa: F811
    sonde("check", shop, "--only", "spelling").refused("'spelling' is not a kind of check: use label, leak", code=2)
    sonde("check", shop, "--label", "nope").failed("the column 'nope' of --label does not exist", code=2)
    sonde("check", shop, "--only", "leak").refused("needs a column: give it with --split", code=2)
    sonde("check", shop, "-k", "-1").refused("-k is -1: give a whole number, 0 or more", code=2)
    assert sonde("runs", shop).said == ["no runs: make one with `sonde cluster`"]


def test_what_to_give_is_said_as_an_option(sonde: Command, tmp_path: Path) -> None:  # noqa: F811
    rows = [{"id": "a", "text": "Call 020 7946 0958"}, {"id": "b", "text": "nothing"}]
    sonde("index", lines(tmp_path / "shop.jsonl", rows), "--to", tmp_path / "shop.sonde")
    said = sonde("check", tmp_path / "shop.sonde", "--only", "personal data").said
    assert "note: phone numbers without a country code were not looked for: give --region" in said


def test_the_label_that_is_more_likely_is_never_cut(sonde: Command, tmp_path: Path) -> None:  # noqa: F811
    long = "a_transfer_that_was_refused_without_a_reason", "a_card_payment_that_appears_twice_in_the_list"
    rows = [
        {"id": f"{name}-{n}", "text": f"{word} {word} with the number {n}", "kind": name}
        for name, word in zip(long, ("apple", "winter"), strict=True)
        for n in range(30)
    ]
    rows[3]["kind"] = long[1]
    sonde("index", lines(tmp_path / "shop.jsonl", rows), "--to", tmp_path / "shop.sonde")
    out = sonde("check", tmp_path / "shop.sonde", "--label", "kind", "--only", "doubtful label").out
    assert f"{long[1]}; more likely: {long[0]}" in out

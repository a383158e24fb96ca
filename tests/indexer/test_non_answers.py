"""Texts that say nothing or are blank: which are found, which are not, and the note of an index run."""

import csv
import gzip
import json
import os
from pathlib import Path

import pytest
from fake_encoder import FakeEncoder

from sonde.indexer.document import Document, is_blank
from sonde.indexer.ingest import index_documents
from sonde.indexer.non_answers import NonAnswersMet, non_answer

DATA = Path(os.environ.get("SONDE_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
SAID = ("nothing", "N/A", "n.a.", "Don’t know!", "see above", "x", "None.", "same as above", "nada", "Nichts", "rien",
        "weiß nicht", "k. A.", "No sé", "Weet ik niet", "NS/NC", "nulla")  # fmt: skip
ANSWERS = ("no", "nothing works", "wifi", "the app", "see above the door", "price", "né", "1 more tram", "不知道", "so")


def test_a_text_that_says_nothing_is_found_as_a_whole_only() -> None:
    assert [non_answer(text) for text in SAID] == ["says nothing"] * len(SAID)
    assert [non_answer(text) for text in ("-", "?", "😡😡", "0049", "3-4", "")] == ["no letter"] * 6
    assert [text for text in ANSWERS if non_answer(text)] == []


def test_a_title_can_be_the_answer() -> None:
    assert [non_answer("n/a", "Good product"), non_answer("n/a", "-"), non_answer("-", "  ")] == [
        None, "says nothing", "no letter"
    ]  # fmt: skip


def texts() -> dict[str, list[str]]:
    fields = {
        "topics/stackoverflow": "text",
        "topics/trec6": "text",
        "qa/medquad": "question",
        "qa/squad_dev": "passage",
    }
    found = {}
    for name, field in fields.items():
        with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            found[name] = [json.loads(line)[field] for line in lines if line.strip()]
    with (DATA / "topics" / "banking77_train.csv").open(encoding="utf-8", newline="") as lines:
        found["banking77"] = [row["text"] for row in csv.DictReader(lines)]
    return found


@pytest.mark.skipif(not DATA.is_dir(), reason="no development data")
def test_questions_and_passages_are_no_non_answers() -> None:
    for name, some in texts().items():
        assert len(some) > 2_000 and [text for text in some if non_answer(text)] == [], name


def met(*said: str) -> NonAnswersMet:
    found = NonAnswersMet()
    for text in said:
        found.see(Document(text=text))
    return found


def test_a_note_counts_them_if_there_are_three_and_one_in_a_hundred() -> None:
    note = met("Nothing.", "nothing", "-", "late").note(Path("c.sonde"))
    assert note == (
        "3 of 4 documents look like non-answers, such as 'nothing', '-': `sonde check c.sonde --only non-answer` "
        "finds them"
    )
    assert met("nothing", "-", "late").note(Path("c.sonde")) is None
    assert met(*["-"] * 3, *["late"] * 298).note(Path("c.sonde")) is None


@pytest.mark.parametrize("text", ["", " \t\n", "\u200b", "\ufeff\u2060 \u00ad", "\u2003\u2028"])
def test_nothing_to_read(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["a", " . ", "\u200b语\u200b", "🙂", "\u0301"])
def test_something_to_read(text: str) -> None:
    assert not is_blank(text)


def test_a_text_without_width_is_skipped(tmp_path: Path) -> None:
    texts = [Document("a late parcel", key="1"), Document("\u200b\u200b", key="2")]
    report = index_documents(texts, tmp_path / "c.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    assert (report.added, report.skipped) == (1, 1)

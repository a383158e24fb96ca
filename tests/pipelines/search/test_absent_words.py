"""Words of a query that no document has: which are named, and which similar ones are suggested."""

from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder

from sonde.app.api import index


def test_words_that_no_document_has_are_named(tmp_path: Path) -> None:
    rows = [{"id": str(n), "text": f"the battery of phone {n} died"} for n in range(199)]
    encoder: Any = FakeEncoder()
    opened = index(rows, tmp_path / "c.sonde", id="id", text="text", encoder=encoder)
    assert not any("no document has" in note for note in opened.search("did the zorblax die?").notes), "199 are too few"
    opened.put([{"id": "199", "text": "a parcel came"}])
    assert "no document has the word 'zorblax'" in opened.search("did the zorblax die?").notes
    [note] = [note for note in opened.search("one, two, three, four, five phones").notes if "no document" in note]
    assert note == "no document has the words 'one', 'two', 'three', 'four', …"
    assert opened.search("zorblax", mode="lexical").notes == ("no document has any of these words",)
    for quiet in (opened.search("batteries died"), opened.similar("3"), opened.like("zorblax")):
        assert not any("no document has" in note for note in quiet.notes)


def test_a_similar_word_is_suggested_for_one_that_no_document_has(tmp_path: Path) -> None:
    rows = [{"id": str(n), "title": "Care", "text": f"the battery of phone {n} died"} for n in range(199)]
    rows += [{"id": "199", "title": "Leukemia", "text": "a disease; so is asthma, and a lek is none"}]
    encoder: Any = FakeEncoder()
    opened = index(rows, tmp_path / "c.sonde", id="id", text="text", title="title", encoder=encoder)
    for query, note in (
        ("what is lukemia", "no document has the word 'lukemia' (did you mean 'leukemia'?)"),
        ("leuke", "no document has the word 'leuke' (did you mean 'leukemia'?)"),
        ("batery", "no document has the word 'batery' (did you mean 'battery'?)"),
        ("zorblax astma", "no document has the words 'zorblax', 'astma' (did you mean 'asthma'?)"),
        ("dye4", "no document has the word 'dye4'"),
    ):
        assert [each for each in opened.search(query).notes if each.startswith("no document has")] == [note]
    assert opened.search("batery", mode="lexical").notes == (
        "no document has the word 'batery' (did you mean 'battery'?)",
    )


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense"])
def test_words_in_quotes_are_no_phrase_and_the_filter_for_one_is_named(tmp_path: Path, mode: Any) -> None:
    encoder: Any = FakeEncoder()
    rows = [{"id": "1", "text": "on the other hand, it's red"}, {"id": "2", "text": "a hand on the other one"}]
    opened = index(rows, tmp_path / "c.sonde", id="id", text="text", encoder=encoder)
    said = "quotes do not make a phrase: the filter text ILIKE '%other hand, it''s%' keeps the texts that have it"
    assert opened.search('is it "other hand, it\'s" red', mode=mode).notes[-1] == said
    assert [hit.id for hit in opened.search("hand", where="text ILIKE '%other hand, it''s%'")] == ["1"]
    for plain in ('"hand"', 'a 5" screen and a 7" one', "the 'other hand'", "other hand"):
        assert not any("phrase" in note for note in opened.search(plain, mode=mode).notes)


@pytest.mark.parametrize(
    ("query", "operator"),
    [
        ("battery AND NOT phone", "AND"),
        ("batt* died", "*"),
        ("battery w/5 phone", "w/5"),
        ("sender:ann died", "sender:"),
    ],
)
def test_operators_of_other_programs_are_noted(tmp_path: Path, query: str, operator: str) -> None:
    encoder: Any = FakeEncoder()
    opened = index([{"text": "the battery died"}], tmp_path / "c.sonde", text="text", encoder=encoder)
    said = f"{operator} is no operator in a query, which is compared by meaning and words: a filter combines conditions"
    assert any(note.startswith(said) for note in opened.search(query).notes)
    for quiet in (
        "THE BATTERY AND PHONE DIED",
        "either and or not",
        "at 10:30 http://x.org/a",
        "AND the battery",
        "re: it",
    ):
        assert not any("is no operator" in note for note in opened.search(quiet).notes)

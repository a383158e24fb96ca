"""Excerpts show the sentence that has the query's words, whatever the passage begins with."""

from pathlib import Path

import pytest
from fake_encoder import FakeEncoder
from hypothesis import given
from hypothesis import strategies as st

import sonde
from sonde.pipelines.search.excerpts import LENGTH, Excerpts
from sonde.pipelines.search.results import Passage, Sentence

FILLER = "Extraordinarily comfortable summerhouses surround the neighbouring garden everywhere. "
ANSWER = "A worn gasket makes the pump leak at its lower joint. "
LONG = FILLER * 4 + ANSWER + FILLER * 2


@pytest.fixture(scope="module")
def manual(tmp_path_factory: pytest.TempPathFactory) -> sonde.Collection:
    rows = [{"id": "pump", "text": LONG}, {"id": "short", "text": "The pump is blue."}]
    rows += [{"id": f"filler {n}", "text": FILLER} for n in range(20)]
    folder = tmp_path_factory.mktemp("excerpts") / "manual.sonde"
    return sonde.index(rows, folder, encoder=FakeEncoder())  # type: ignore[arg-type]


def test_the_sentence_that_answers_is_shown(manual: sonde.Collection) -> None:
    hit = next(hit for hit in manual.search("why does the pump leak", collapse=False) if hit.id == "pump")
    assert ANSWER.strip() in hit.excerpt.text
    assert len(hit.excerpt.text) <= LENGTH
    assert hit.text[hit.excerpt.start : hit.excerpt.end] == hit.excerpt.text
    assert hit.shown == f"… {hit.excerpt.text} …"


def test_a_short_passage_is_shown_whole(manual: sonde.Collection) -> None:
    hit = next(hit for hit in manual.search("blue pump") if hit.id == "short")
    assert hit.excerpt == hit.passage
    assert hit.shown == "The pump is blue."


def test_the_beginning_is_shown_if_no_word_matches(manual: sonde.Collection) -> None:
    hit = next(hit for hit in manual.search("zeppelin", mode="dense", collapse=False, k=30) if hit.id == "pump")
    assert hit.excerpt.start == hit.passage.start
    assert hit.excerpt.text == (FILLER * 3).strip()


def test_rare_words_count_more_than_frequent_ones(manual: sonde.Collection) -> None:
    hit = next(hit for hit in manual.search("comfortable garden gasket", k=30, collapse=False) if hit.id == "pump")
    assert ANSWER.strip() in hit.excerpt.text
    with manual.stored.view() as view:
        rarity = Excerpts.over(view, "a garden gasket").rarity
    assert sorted(rarity) == ["garden", "gasket"]
    assert rarity["gasket"] > rarity["garden"] > 0


def test_a_close_sentence_counts_besides_the_words(manual: sonde.Collection) -> None:
    with manual.stored.view() as view:
        excerpts = Excerpts.over(view, "zeppelin")
    start = len(FILLER) * 4
    passage = Passage(0, len(LONG), LONG)
    other = [Sentence(len(FILLER) * n, len(FILLER) * (n + 1), FILLER, 0.2) for n in (1, 2)]
    chosen = excerpts.choose(passage, "en", [Sentence(start, start + len(ANSWER), ANSWER, 0.9), *other])
    assert chosen.text.startswith(ANSWER)


def test_a_long_sentence_is_cut_around_its_matches(manual: sonde.Collection) -> None:
    words = "and so on " * 60
    passage = Passage(10, 10 + len(words) * 2 + 7, f"{words}gasket {words}")
    with manual.stored.view() as view:
        chosen = Excerpts.over(view, "gasket").choose(passage, "en")
    assert "gasket" in chosen.text and len(chosen.text) <= LENGTH
    assert chosen.text == passage.text[chosen.start - 10 : chosen.end - 10]
    assert passage.text[chosen.start - 11] == " " and not chosen.text.startswith(" ")


@given(st.text(st.sampled_from("ab. \n日。gasket pump"), max_size=1_500), st.sampled_from(["gasket", "日 pump", "a b"]))
def test_an_excerpt_is_a_part_of_its_passage(manual: sonde.Collection, text: str, query: str) -> None:
    with manual.stored.view() as view:
        chosen = Excerpts.over(view, query).choose(Passage(7, 7 + len(text), text), None)
    assert len(chosen.text) <= LENGTH
    assert text[chosen.start - 7 : chosen.end - 7] == chosen.text


def test_excerpts_are_the_same_at_every_door(manual: sonde.Collection) -> None:
    results = manual.search("why does the pump leak", k=1)
    assert results[0].to_dict()["excerpt"] == {
        "start": results[0].excerpt.start, "end": results[0].excerpt.end, "text": results[0].excerpt.text,
    }  # fmt: skip
    assert results[0].shown in results._repr_html_()


def test_batches_for_measures_choose_no_excerpts_and_find_the_same(
    manual: sonde.Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [("a", "why does the pump leak"), ("b", "zeppelin")]
    shown = manual.search_queries(asked, k=5, collapse=False)
    monkeypatch.setattr(Excerpts, "choose", lambda *_: pytest.fail("an excerpt was chosen"))
    found = manual.search_queries(asked, k=5, run=tmp_path / "run.trec")
    for (_, before), (_, after) in zip(shown, found, strict=True):
        assert [(hit.id, hit.score) for hit in before] == [(hit.id, hit.score) for hit in after]
        assert before.notes == after.notes
        assert all(hit.excerpt == hit.passage for hit in after)
    manual.evaluate_search(asked, {"a": {"pump": 1}})

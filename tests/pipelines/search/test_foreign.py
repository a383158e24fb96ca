"""Texts in languages that the default model was not trained on: what is left out, and what is said."""

from collections import Counter
from pathlib import Path

import pytest
from cluster_corpus import made
from default_model import default_model
from small_reviews import ROWS

from sonde.app.api import Collection, index
from sonde.indexer.ingest import BuildSettings
from sonde.indexer.languages import script_languages
from sonde.pipelines.search.foreign import Languages, Trained, languages_of, named

MODEL = "all-MiniLM-L6-v2"
KOREAN = [
    "늦어서 미안해.", "계속 걱정했어.", "걔들이 순진했어.", "후회하지 않아.", "기계가 고장났다.", "좋은하루 되세요.",
    "계속 걱정했어!",
]  # fmt: skip
ENGLISH = ["The parcel came late.", "Nobody answered the phone.", "The parcel came too late."]
RELEVANCE = (
    f"which the model {MODEL} was not trained on: relevance is unreliable. A search by words alone (mode lexical)"
)
ASK_IN_ENGLISH = (
    f"which the model {MODEL} was not trained on: relevance is unreliable. Ask in English, or change the model "
    "(`sonde model`)"
)
needs_model = pytest.mark.skipif(not default_model(), reason="the default model is not installed")


def indexed(folder: Path, texts: list[str], language: str | None = None, model: str = MODEL) -> Collection:
    rows = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
    settings = BuildSettings(model=model, language=language)
    return index(rows, folder / "c.sonde", id="id", text="text", settings=settings)


@pytest.mark.parametrize(
    ("text", "languages"),
    [
        ("battery", ()), ("42 €", ()), ("", ()), ("배터리", ("ko",)), ("電池がすぐ切れる", ("ja",)),
        ("电池没电了", ("zh",)),
        ("ｂａｔｔｅｒｙ", ()), ("トムは親切だ", ("ja",)), ("κινητό", ("el",)), ("API 错误 返回 码", ("zh",)),
        ("the API returns 错误", ()), ("עברית", ("he", "yi")),
    ],
)  # fmt: skip
def test_the_script_of_a_text_tells_its_languages(text: str, languages: tuple[str, ...]) -> None:
    assert script_languages(text) == languages


def test_a_text_is_foreign_by_its_script_its_own_language_or_that_of_the_collection() -> None:
    english, german = Trained(MODEL, frozenset({"en"}), None), Trained(MODEL, frozenset({"en"}), "de")
    assert [english.foreign(text) for text in ("배터리", "Akku", "电池")] == ["ko", None, "zh"]
    assert [german.foreign(text) for text in ("Akku", "배터리", "42")] == ["de", "ko", "de"]
    assert [german.foreign("x", own) for own in ("en", "fr", None)] == [None, "fr", "de"]
    assert english.foreign("Привет", "uk") == "uk", "the script alone tells only that it is not Latin"
    assert english.foreign("배터리", "en") == "ko", "what the document states is wrong"
    assert Trained(MODEL, frozenset({"en"}), "ja").foreign("battery") is None
    assert Trained("multilingual", None, "ko").foreign("배터리") is None
    assert Trained("chinese", frozenset({"zh"}), None).foreign("电池") is None
    long = (
        "Der Akku war nach einer Woche leer, und niemand hat mir am Telefon weitergeholfen, obwohl ich täglich "
        "angerufen habe, weil ich ein neues Gerät brauche."
    )
    assert [english.foreign(long), english.unread(long), english.unread("배터리")] == ["de", None, "ko"]


@pytest.mark.parametrize(
    ("query", "language"),
    [
        ("meine Karte ist noch nicht angekommen", "de"), ("ma carte n'est pas arrivée", "fr"),
        ("mi tarjeta no ha llegado todavía", "es"), ("배터리", "ko"), ("my card has not arrived", None),
        ("what is die casting", None), ("pas de deux", "fr"), ("Karte", None), ("", None),
        ("Symptômes du diabète de type 2", "fr"),
        ("is the film die hard a remake", None),
    ],
)  # fmt: skip
def test_the_language_of_a_query_is_told_by_its_script_or_its_function_words(query: str, language: str | None) -> None:
    assert Trained(MODEL, frozenset({"en"}), "en").asked(query) == language
    assert Trained(MODEL, None, "en").asked(query, query.split()) is None
    assert Trained(MODEL, frozenset({"en", "de", "fr", "es", "ko"}), "en").asked(query) is None


@pytest.mark.parametrize(
    ("query", "language"),
    [
        ("meine Karte wurde gestohlen", "de"), ("ma carte a été volée", "fr"), ("karta nie dotarła jeszcze", "pl"),
        ("zorblax quux frobnicate", None), ("kubernetes ingress nginx", None), ("hyperparathyroidism", None),
    ],
)  # fmt: skip
def test_the_language_of_a_query_of_unseen_words_is_detected(query: str, language: str | None) -> None:
    english = Trained(MODEL, frozenset({"en"}), "en")
    assert english.asked(query, query.split()) == language
    assert english.asked(query, query.split()[:2]) is None, "most words are known"


def test_languages_are_named_and_mixtures_found() -> None:
    assert named(["ko"]) == "Korean"
    assert named(["ko", "ja", "ko"]) == "Korean and Japanese"
    assert named(["ko", "ja", "zh", "th", "he"]) == "Korean, Japanese, Chinese and 2 other languages"
    trained = Trained(MODEL, frozenset({"en"}), None)
    assert Languages(trained, Counter(ko=60, ja=40), 100).mixed
    assert Languages(trained, Counter(ko=85), 100).mixed
    assert not Languages(trained, Counter(ko=95), 100).mixed
    assert not Languages(trained, Counter(ko=50), 100).mostly_foreign


@needs_model
def test_duplicates_by_meaning_leave_out_texts_that_the_model_cannot_read(tmp_path: Path) -> None:
    opened = indexed(tmp_path, [*KOREAN, *ENGLISH])
    found = opened.duplicates(meaning=0.9, pairs=3)
    groups = {group.representative: [(each.id, each.kind) for each in group.duplicates] for group in found.groups}
    assert groups == {"1": [("6", "exact")], "7": [("9", "meaning")]}
    assert found.pairs[0][:2] == ("7", "9")
    assert not {id for pair in found.pairs for id in pair[:2]} & set("0123456")
    assert found.notes == (
        f"7 texts in Korean are compared by words only, because the model {MODEL} cannot read them: `sonde model` "
        "changes the model",
    )
    assert opened.duplicates(kinds=("exact", "near")).notes == ()
    checked = opened.check()
    assert [each.id for each in checked.found["duplicate"]] == ["6"]
    assert [note for note in checked.notes if "Korean" in note] == list(found.notes)
    only = opened.check("o", kinds=("outlier",))
    assert [note for note in only.notes if "Korean" in note] == list(found.notes)


@needs_model
def test_a_search_says_that_relevance_says_little(tmp_path: Path) -> None:
    korean = indexed(tmp_path / "ko", KOREAN)
    [note] = [note for note in korean.search("걱정", k=2).notes if "trained on" in note]
    assert note.startswith(f"the texts are in Korean, {RELEVANCE}")
    assert [RELEVANCE in note for note in korean.similar("1").notes] == [True]
    assert not any("trained on" in note for note in korean.search("걱정", k=2, mode="lexical").notes)
    english = indexed(tmp_path / "en", ENGLISH)
    assert not any("trained on" in note for note in english.search("late parcel").notes)
    for found, beginning in (
        (english.search("소포"), "the query is in Korean"),
        (english.like("소포가 늦게"), "the query is in Korean"),
        (english.search("mein Paket ist noch nicht da"), "the query seems to be in German"),
    ):
        [note] = [note for note in found.notes if "trained on" in note]
        assert note == f"{beginning}, {ASK_IN_ENGLISH}"
    english.put([{"id": f"k{number}", "text": text} for number, text in enumerate(KOREAN)])
    assert any(note.startswith("most texts are in Korean, ") for note in english.search("late parcel").notes)


@needs_model
def test_groups_of_several_languages_may_not_be_subjects(tmp_path: Path) -> None:
    told: list[object] = []
    mixed = indexed(tmp_path / "mixed", [*KOREAN, "電池がすぐ切れる。", "画面が割れた。"])
    mixed.cluster(k=2, progress=told.append)
    notes = [str(each) for each in told if str(each).startswith("note: ")]
    assert notes == [
        f"note: the texts are in Korean and Japanese, which the model {MODEL} was not trained on: the groups may be "
        "languages rather than subjects. `sonde model` changes the model"
    ]
    told.clear()
    indexed(tmp_path / "ko", KOREAN).cluster(k=2, progress=told.append)
    assert any("not trained on: the groups may not be subjects. " in str(each) for each in told)
    told.clear()
    indexed(tmp_path / "en", ENGLISH).cluster(k=2, progress=told.append)
    assert not any("trained on" in str(each) for each in told)


def test_nothing_is_said_of_a_model_whose_languages_are_not_known(tmp_path: Path) -> None:
    opened = made([*ROWS, {"id": "4", "text": "배터리"}], tmp_path / "c.sonde")
    assert not any("trained on" in note for note in opened.search("배터리").notes)
    assert opened.duplicates().notes == ()
    with opened.stored.view() as view:
        assert languages_of(view) is languages_of(view), "read once per generation"
        assert languages_of(view).read == 0

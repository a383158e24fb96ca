"""A note where the model was not trained on the language of the texts."""

from pathlib import Path

import pytest
from fake_encoder import FakeEncoder
from small_reviews import ROWS

from sonde.indexer.document import Document
from sonde.indexer.encoder import ModelSpec, models
from sonde.indexer.encoder.models import DEFAULT_MODEL
from sonde.indexer.ingest import BuildSettings, index_documents, report
from sonde.indexer.ingest.report import SAMPLE, LanguagesMet
from sonde.indexer.languages import english_name

ENGLISH = "The battery died after a week and nobody answered when I called the support line. Number {}."
GERMAN = "Der Akku war nach einer Woche leer, und niemand hat mir am Telefon weitergeholfen. Nummer {}."
FOLDER = Path("c.sonde")


def spec(name: str = DEFAULT_MODEL) -> ModelSpec:
    return ModelSpec(name, None, "0" * 64, 16, 64, "", "", True, "float32", None, "cosine", "transformer")


def met(*documents: Document) -> LanguagesMet:
    found = LanguagesMet()
    for document in documents:
        found.see(document)
    return found


def test_languages_that_documents_name_are_counted() -> None:
    documents = [Document("x", language="de")] * 1_204 + [Document("x", language="en")] * 296
    assert met(*documents).note(spec(), FOLDER, None, False) == (
        "1,204 of 1,500 documents are in German; the model all-MiniLM-L6-v2 was trained on English: "
        "`sonde model c.sonde --to intfloat/multilingual-e5-small` changes the model"
    )
    several = met(*documents[:1_300], *[Document("x", language="fr")] * 100)
    assert (several.note(spec(), FOLDER, None, False) or "").startswith("1,304 of 1,400 documents are in German or Fr")
    one = met(Document("x", language="de"), *[Document("x", language="en")] * 4)
    assert (one.note(spec(), FOLDER, None, False) or "").startswith("1 of 5 documents is in German; ")
    assert met(Document("x", language="de")).note(spec("static"), FOLDER, None, False) == (
        "the document is in German; the model static was trained on English: "
        "`sonde model c.sonde --to intfloat/multilingual-e5-small` changes the model"
    )


def test_languages_beyond_three_are_counted() -> None:
    documents = [Document("x", language=code) for code in ("fr", "fr", "ja", "ja", "ar", "ar", "de", "ko")]
    note = met(*documents).note(spec(), FOLDER, None, False) or ""
    assert note.startswith("8 of 8 documents are in French, Japanese, Arabic or 2 other languages; ")
    note = met(*documents[:7]).note(spec(), FOLDER, None, False) or ""
    assert note.startswith("7 of 7 documents are in French, Japanese, Arabic or 1 other language; ")


def test_few_documents_and_known_languages_need_no_note() -> None:
    few = met(*[Document("x", language="de")] * 9, *[Document("x", language="en")] * 91)
    assert few.note(spec(), FOLDER, None, False) is None
    assert met(*[Document(ENGLISH.format(n)) for n in range(50)]).note(spec(), FOLDER, "en", False) is None
    assert met().note(spec(), FOLDER, "de", True) is None


def test_the_language_of_unnamed_texts_is_estimated_from_a_sample() -> None:
    texts = [Document((GERMAN if n % 2 else ENGLISH).format(n)) for n in range(1_000)]
    note = met(*texts).note(spec(), FOLDER, None, False) or ""
    share = int(note.removeprefix("about ").split("%")[0])
    assert 35 <= share <= 65
    assert note.startswith(f"about {share}% of 1,000 documents are in German; ")
    # An English collection that gets German texts.
    assert met(*texts[1::2]).note(spec(), FOLDER, "en", False) == (
        "500 of 500 documents are in German; the model all-MiniLM-L6-v2 was trained on English: "
        "`sonde model c.sonde --to intfloat/multilingual-e5-small` changes the model"
    )


def test_a_small_run_and_a_given_language_need_no_detection(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_: object) -> None:
        raise AssertionError("detected")

    monkeypatch.setattr(report, "detect", never)
    small = met(*[Document(GERMAN.format(n)) for n in range(19)])
    assert (small.note(spec(), FOLDER, "de", False) or "").startswith("19 of 19 documents are in German")
    assert small.note(spec(), FOLDER, None, False) is None
    large = met(*[Document(GERMAN.format(n)) for n in range(50)])
    assert (large.note(spec(), FOLDER, "de", True) or "").startswith("50 of 50 documents are in German")
    assert large.note(spec("fake"), FOLDER, "de", False) is None


def test_every_text_has_the_same_chance_to_be_in_the_sample() -> None:
    found = met(*[Document(str(n)) for n in range(10_000)])
    numbers = [int(text) for text in found.sample]
    assert (len(numbers), len(set(numbers))) == (SAMPLE, SAMPLE)
    assert 4_000 < sum(numbers) / SAMPLE < 6_000
    assert found.sample == met(*[Document(str(n)) for n in range(10_000)]).sample


@pytest.mark.parametrize(
    ("card", "known"),
    [
        ("---\nlanguage: de\n---\n# A model", {"de"}),
        ("---\nlanguage:\n- en\n- zh-CN\n---\n", {"en", "zh"}),
        ("---\nlanguage: multilingual\n---\n", None),
        ("---\nlanguage:\n- en\n- code\n---\n", None),
        ("---\nlicense: mit\n---\n", None),
        ("---\nlanguage: [\n---\n", None),
        ("---\n- a\n---\n", None),
        ("# Nothing\n", None),
        ("\xff", None),
    ],
)
def test_a_models_card_says_which_languages_it_knows(tmp_path: Path, card: str, known: set[str] | None) -> None:
    (tmp_path / "README.md").write_bytes(card.encode("latin-1"))
    assert models.known_languages(spec(str(tmp_path))) == known
    assert models.known_languages(spec(f"static:{tmp_path}")) == known


def test_models_without_a_card_are_unknown(tmp_path: Path) -> None:
    for name in (str(tmp_path), str(tmp_path / "gone"), "fake", "nobody/nothing"):
        assert models.known_languages(spec(name)) is None
    assert models.known_languages(spec()) == models.known_languages(spec("static")) == {"en"}


def test_an_index_run_ends_with_the_note(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "README.md").write_text("---\nlanguage: en\n---\n")
    encoder = FakeEncoder()
    encoder.spec = spec(str(tmp_path / "model"))  # type: ignore[misc]
    told: list[object] = []
    german = [Document(GERMAN.format(n), key=str(n)) for n in range(30)]
    folder = tmp_path / "a b.sonde"
    index_documents(german, folder, encoder=encoder, notify=told.append)  # type: ignore[arg-type]
    note = (
        f"note: 30 of 30 documents are in German; the model {tmp_path / 'model'} was trained on English: "
        f"`sonde model '{folder}' --to intfloat/multilingual-e5-small` changes the model"
    )
    assert told[-1] == note
    told.clear()
    index_documents(german, folder, encoder=encoder, notify=told.append)  # type: ignore[arg-type]
    assert note not in told  # nothing was embedded
    english = [Document(str(row["text"]), key=str(row["id"])) for row in ROWS]
    other = tmp_path / "english.sonde"
    settings = BuildSettings(language="en")
    index_documents(english, other, settings=settings, encoder=encoder, notify=told.append)  # type: ignore[arg-type]
    assert [each for each in told if "trained on" in str(each)] == []


def test_languages_have_english_names() -> None:
    names = [english_name(code) for code in ("de", "zh", "lo", "et", "id", "xx")]
    assert names == ["German", "Chinese", "Lao", "Estonian", "Indonesian", "xx"]


def test_the_card_of_a_hub_model_without_an_owner_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "README.md").write_text("---\nlanguage: [de, fr]\n---\n")
    monkeypatch.setattr(models, "cached", lambda name, _: tmp_path if name == "distilbert-german" else None)
    assert models.known_languages(spec("distilbert-german")) == {"de", "fr"}
    assert models.known_languages(spec("another")) is None

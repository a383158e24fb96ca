"""Documents with the same text are one hit; others are left alone."""

import random

import numpy as np
import pytest
from command_line import command, inject
from fake_encoder import FakeEncoder
from hypothesis import given, settings
from hypothesis import strategies as st
from kill_corpus import WORDS

import sonde
from sonde.pipelines.search import collapse

QUERY = "how does a heat pump work in winter"
ARTICLE = (
    "A heat pump moves heat from a cold place to a warm one. In winter it takes heat from the outside air, which "
    "holds energy even below zero. The compressor raises the pressure of the refrigerant, and so its temperature. "
    "Inside the house the refrigerant condenses and gives its heat to the water of the radiators."
)
FORMATS = [
    {"id": "a.txt", "text": ARTICLE},
    {"id": "a.pdf", "text": "Page 1\n" + ARTICLE.replace(" ", "\n", 9).replace("temperature", "tempera-\nture")},
    {"id": "a.html", "text": ARTICLE.replace(". ", ".\n\n").replace("A heat", "“A heat”")},
]
OTHERS = [
    {"id": "b", "text": "A heat pump costs more than a boiler, but less in winter over its whole life."},
    {"id": "c", "text": "How does a water pump work in a deep well, and what does it cost in a dry summer?"},
]


def indexed(rows: list[dict[str, str]], tmp_path_factory: pytest.TempPathFactory, name: str) -> sonde.Collection:
    return sonde.index(rows, tmp_path_factory.mktemp(name) / "c.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def pumps(tmp_path_factory: pytest.TempPathFactory) -> sonde.Collection:
    return indexed([*OTHERS, *FORMATS], tmp_path_factory, "formats")


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
def test_one_text_in_three_formats_is_one_hit(pumps: sonde.Collection, mode: str) -> None:
    every = pumps.search(QUERY, mode=mode, collapse=False)  # type: ignore[arg-type]
    found = pumps.search(QUERY, mode=mode)  # type: ignore[arg-type]
    order = [hit.id for hit in every if hit.id.startswith("a.")]
    [one] = [hit for hit in found if hit.id.startswith("a.")]
    assert len(order) == 3
    assert (one.id, one.copies) == (order[0], tuple(order[1:]))
    assert one.score == next(hit.score for hit in every if hit.id == one.id)
    assert {hit.id for hit in found} - {one.id} == {"b", "c"}
    assert [hit.rank for hit in found] == [1, 2, 3]
    assert all(hit.copies == () for hit in every)


def test_a_text_that_repeats_only_one_of_an_earlier_batch(tmp_path_factory: pytest.TempPathFactory) -> None:
    """It was compared without being read: a KeyError, in a search over 63 mails from one template."""
    mail = "Dear customer, we are sorry that the parcel arrived late and will refund the delivery cost. Kind regards."
    late = mail.replace("arrived late", "was delayed") + " Reference number 4711."
    texts = [mail] * 62 + [late] + [f"parcel {word} {number}" for number, word in enumerate(WORDS[:8] * 4)]
    mails = indexed([{"id": str(n), "text": text} for n, text in enumerate(texts)], tmp_path_factory, "mails")
    for k in range(1, 36):
        every = mails.search("parcel arrived late refund delivery cost", mode="dense", k=k)
        assert (every[0].id, len({hit.id for hit in every})) == ("0", len(every))
        assert set(every[0].copies) <= {str(number) for number in range(1, 62)}
        assert len(every) == k or len(every) > 32


@pytest.mark.parametrize("upper", [True, False])
def test_a_product_that_rounds_otherwise_the_other_way_round(
    pumps: sonde.Collection, monkeypatch: pytest.MonkeyPatch, upper: bool
) -> None:
    """Such a pair just at the limit was a KeyError: one of the two texts was not read."""
    exact = collapse._products

    def rounded(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        found = exact(first, second)
        down = np.triu(np.ones_like(found, bool), 1) if upper else np.tril(np.ones_like(found, bool), -1)
        return np.where(down, -1.0, found)

    monkeypatch.setattr(collapse, "_products", rounded)
    found = pumps.search(QUERY, mode="dense")
    assert {"b", "c"} < {hit.id for hit in found}
    assert all(set(hit.copies) <= {"a.txt", "a.pdf", "a.html"} for hit in found)


def test_explain_names_the_copies(
    pumps: sonde.Collection, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    inject(monkeypatch, FakeEncoder())
    run = command(capsys, monkeypatch)
    [one] = [hit for hit in pumps.search(QUERY, explain=True) if hit.copies]
    shown = run("search", pumps.path, QUERY, "--explain").out
    assert f"     the same text: {', '.join(one.copies)}\n" in shown
    assert "and 2 more\n" in shown
    assert "the same text" not in run("search", pumps.path, QUERY, "--explain", "--no-collapse").out


def test_search_by_example_shows_copies(pumps: sonde.Collection) -> None:
    assert {hit.id for hit in pumps.similar("a.txt", k=2)} == {"a.pdf", "a.html"}


def test_a_filter_decides_which_copies_there_are(pumps: sonde.Collection) -> None:
    [one] = [hit for hit in pumps.search(QUERY, where="id IN ('a.pdf', 'a.html', 'b')") if hit.id.startswith("a.")]
    assert {one.id, *one.copies} == {"a.pdf", "a.html"}


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("What is the exchange rate?", "what is the exchange rate", True),
        ("Top-up failed.", "Top up failed", True),
        ("My card payment was declined in a shop", "My card payment was declined in a shop late last night", False),
        ("Order 17 arrived", "Order 18 arrived", False),
        ("The train left on 3 May with 12 people on board", "The train left on 4 June with 19 people on board", False),
    ],
)  # fmt: skip
def test_which_short_texts_are_the_same(
    first: str, second: str, same: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = indexed([{"id": "1", "text": first}, {"id": "2", "text": second}], tmp_path_factory, "two").search(first)
    assert [(hit.id, hit.copies) for hit in found] == ([("1", ("2",))] if same else [("1", ()), ("2", ())])


def test_titles_tell_short_texts_apart(tmp_path_factory: pytest.TempPathFactory) -> None:
    rows = [{"id": str(n), "title": f"{city} station in the morning", "text": "Closed."} for n, city in enumerate("AB")]
    found = indexed(rows, tmp_path_factory, "titles").search("station in the morning")
    assert [hit.copies for hit in found] == [(), ()]


def test_a_text_that_fills_the_first_places_hides_no_other(tmp_path_factory: pytest.TempPathFactory) -> None:
    rows = [{"id": f"copy {n}", "text": "The parcel is late again and nobody answers"} for n in range(400)]
    rows += [{"id": f"other {n}", "text": f"A parcel of {word}s came late"} for n, word in enumerate(WORDS[:5])]
    found = indexed(rows, tmp_path_factory, "many").search("the parcel is late again", k=10)
    assert sorted(hit.id for hit in found if not hit.copies) == [f"other {n}" for n in range(5)]
    [copied] = [hit for hit in found if hit.copies]
    assert len({copied.id, *copied.copies}) == 400


@settings(max_examples=8)
@given(seed=st.integers(0, 10_000), size=st.sampled_from([3, 7]))
def test_pages_fit_together_and_lose_nothing(seed: int, size: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    chance = random.Random(seed)
    made = [" ".join(chance.choices(WORDS, k=8)) for _ in range(15)]
    rows = [{"id": str(n), "text": chance.choice(made)} for n in range(40)]
    collection = indexed(rows, tmp_path_factory, "pages")
    query = " ".join(chance.choices(WORDS, k=3))
    every = [hit.id for hit in collection.search(query, k=40, collapse=False)]
    text = {row["id"]: row["text"] for row in rows}
    first = list(dict.fromkeys(text[key] for key in every))
    pages = [hit for at in range(0, 40, size) for hit in collection.search(query, k=size, offset=at)]
    assert [text[hit.id] for hit in pages] == first
    assert sorted(key for hit in pages for key in (hit.id, *hit.copies)) == sorted(every)
    assert np.all(np.diff([hit.score for hit in pages]) <= 0)


@pytest.mark.parametrize("rerank", [pytest.param(False, marks=pytest.mark.long), True])
def test_pages_beyond_the_first_depth_fit_together(rerank: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Copies pushed documents into a page whose rank a deeper search changes: later pages repeated them."""
    chance = random.Random(3)
    made = [" ".join(chance.choices(WORDS, k=12)) for _ in range(400)]
    rows = [{"text": text + "." * copy} for text in made for copy in range(chance.choice([1, 1, 2, 4]))]
    collection = indexed([{"id": str(n), **row} for n, row in enumerate(rows)], tmp_path_factory, "deep")
    for query in made[:3]:
        query = " ".join(query.split()[:3])
        long = [hit.id for hit in collection.search(query, k=120, rerank=rerank)]
        pages = [hit.id for at in range(0, 120, 10) for hit in collection.search(query, offset=at, rerank=rerank)]
        assert pages == long
        assert len(set(pages)) == 120

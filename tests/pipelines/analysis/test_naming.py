"""Names of groups: phrases as people write them, readers, the choice, and what no name may hold."""

from collections import Counter

import numpy as np
import pytest

from sonde.pipelines.analysis.naming.choice import Evidence, NameAccuracy, _Beliefs, bm25, choose, right, right_among
from sonde.pipelines.analysis.naming.names import Naming, Sample, rows_to_read
from sonde.pipelines.analysis.naming.phrases import Phrase, ReadTexts, alike, candidates
from sonde.pipelines.analysis.naming.words import BREAK, STOP, Reader, plain

PETS = ["The dog barks at the postman.", "A dog eats its bones.", "Dogs bark at night.", "My dog buries bones.",
        "Our dog barks and eats bones."]  # fmt: skip
PHONES = ["The phone has a dead battery.", "Phones with a weak battery.", "My phone needs a charger.",
          "The battery of the phone is dead.", "A phone charger broke."]  # fmt: skip


def naming(*groups: list[str], languages: tuple[str, ...] = ("en",)) -> Naming:
    """Name groups of texts without a model."""
    texts = [text for group in groups for text in group]
    of_text = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    return Naming(Sample(texts, of_text, len(groups), languages))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Rates &amp;amp; fees of 5&nbsp;%", "Rates & fees of 5 %"),
        ("a &lt;b&gt;late&lt;/b&gt; parcel", "a  late  parcel"),
        (r"let $\alpha_1$ be \mathrm{x}", "let \n be \n{x}"),
        ("see https://example.org/a?b=1 or mail a@example.org", "see \n or mail \n"),
        ("from $5 to $10", "from $5 to $10"),
    ],
)
def test_plain_text_has_no_markup(text: str, shown: str) -> None:
    assert plain(text) == shown


@pytest.mark.parametrize("part", ["a@", "<!--", "$x_", "<b ", "www.a", "http://"])
def test_a_long_word_costs_no_more_than_its_length(part: str) -> None:
    """Patterns that tried every part of it took minutes."""
    assert len(plain(part * 100_000)) <= len(part) * 100_000


def test_words_have_stems_and_breaks() -> None:
    found = [(token.stem, token.form) for token in Reader(["en"]).tokens("Mr Smith's 3 cards, the C++ of 2024")]
    kept = [(stem, form) for stem, form in found if stem not in (STOP, BREAK)]
    assert kept == [("smith", "Smith"), ("card", "cards")]
    assert next(stem for stem, _ in found) == BREAK and (STOP, "the") in found


def test_phrases_do_not_cross_punctuation_or_stop_words_but_links() -> None:
    read = ReadTexts(["Proof of identity, the source of funds. Cards and funds"], ["en"], np.array([True]))
    shown = {" ".join(key) for key in read.keys(0)}
    assert {"proof  ident", "sourc  fund", "card", "fund"} <= shown
    assert not {"ident sourc", "card  fund", "fund card"} & shown


def test_a_phrase_has_the_form_that_people_write_most() -> None:
    texts = ["we use SharePoint daily", "our SharePoint server", "a sharepoint list", "SharePoint is slow",
             "New York is far", "in New York we met"]  # fmt: skip
    read = ReadTexts(texts, ["en"], np.ones(6, bool))
    key = ("sharepoint",)
    york = ("new", "york")
    assert york in read.keys(5) and york not in read.keys(4)  # a capital letter at the beginning says nothing
    found = read.phrases(range(6), {key, york})
    assert found[key].text == "SharePoint" and found[york].text == "New York"


@pytest.mark.parametrize(
    ("language", "texts", "form"),
    [
        ("de", ["Schöne Grüße", "es ist schon gut, von Grüßen war die Rede"], "schöne Grüße"),
        ("de", ["Kündigung erhalten", "mit zwei Kündigungen"], "Kündigung erhalten"),
        ("en", ["Late delivery again", "of deliveries that came"], "late delivery"),
    ],
)
def test_a_phrase_at_the_beginning_of_a_sentence_keeps_its_words(language: str, texts: list[str], form: str) -> None:
    read = ReadTexts(texts, [language], np.ones(2, bool))
    forms = {phrase.text for phrase in read.phrases(range(2), read.keys(0)).values()}
    assert form in forms and not forms & {"schon Grüßen", "Kündigungen erhalten", "late deliveries"}


@pytest.mark.parametrize(("one", "other", "same"), [
    ("fee", "fee", True), ("reserv", "reservat", True), ("top-up", "topup", True), ("auto-top", "auto", True),
    ("card", "care", False),
])  # fmt: skip
def test_forms_of_a_word_are_alike(one: str, other: str, same: bool) -> None:
    assert alike(one, other) is same


def test_candidates_tell_a_group_from_the_others() -> None:
    counts = [Counter({("card",): 9, ("fee",): 8}), Counter({("card",): 9, ("parcel",): 7})]
    assert candidates(counts, np.array([10, 10])) == [[("fee",)], [("parcel",)]]


def test_a_piece_of_a_phrase_is_no_candidate() -> None:
    counts = [Counter({("los",): 9, ("angel",): 9, ("los", "angel"): 9}), Counter({("new",): 5})]
    assert candidates(counts, np.array([10, 10]))[0] == [("los", "angel")]


def test_siblings_decide_what_tells_where_parents_are_given() -> None:
    counts = [Counter({("card",): 10, ("fee",): 4}), Counter({("card",): 10, ("visa",): 4}), Counter({("parcel",): 9}),
              Counter({("letter",): 9})]  # fmt: skip
    sizes = np.full(4, 10)
    assert candidates(counts, sizes)[0][0] == ("card",)
    assert candidates(counts, sizes, [0, 0, 1, 1])[0] == [("fee",)]


def test_bm25_is_that_of_the_formula() -> None:
    found = bm25([Counter({"a": 1}), Counter({"b": 1, "z": 4})], [["a", "b"], ["b"]])
    damp = [1.2 * (0.25 + 0.75 * length / 1.5) for length in (2, 1)]
    rare = {"a": np.log1p(1.5 / 1.5), "b": np.log1p(0.5 / 2.5)}
    expected = [
        [rare["a"] * 2.2 / (1 + damp[0]), 0],
        [rare["b"] * 2.2 / (1 + damp[0]), rare["b"] * 2.2 / (1 + damp[1])],
    ]
    assert np.allclose(found, expected)


def test_a_reader_who_cannot_tell_guesses() -> None:
    scores = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 2.0]])
    assert right(scores, np.array([0, 0, 0])).tolist() == [1.0, 0.5, 0.0]
    assert right_among(np.zeros((4, 30)), np.arange(4), 10).tolist() == [0.1] * 4


def test_accuracy_is_the_mean_of_the_readers() -> None:
    scores = {"one": np.array([[1.0, 0], [1, 0]]), "two": np.array([[1.0, 0], [0, 1]])}
    found = NameAccuracy.of(scores, np.array([0, 1]), 3)
    assert found == NameAccuracy(0.75, (1.0, 0.5, None), {"one": 0.5, "two": 1.0}, 2)
    assert NameAccuracy.of({}, np.zeros(0, np.int64), 1) == NameAccuracy(None, (None,), {}, 0)


def test_names_tell_groups_apart() -> None:
    made = naming(PETS, PHONES)
    names = made.choose()
    assert "dog" in names[0].lower() and "phone" in names[1].lower()
    accuracy = made.measure(names)
    assert accuracy.whole == 1.0 and accuracy.texts == 2 and accuracy.readers == {"BM25": 1.0}
    assert made.measure(["phone", "dog"]).whole == 0.0


def test_no_name_repeats_a_stem_or_another_name() -> None:
    fees = ["a fee", "the fees are high", "charged fee", "fees charged", "charging a fee"]
    names = naming(fees, fees, PHONES).choose()
    for name in names:
        stems = [token.stem for token in Reader(["en"]).tokens(name) if token.stem not in (STOP, BREAK)]
        assert len(set(stems)) == len(stems), name
    assert len(set(names)) == 3


def test_a_phrase_is_in_one_name_only() -> None:
    texts = [Counter(words.split()) for words in (*["model agent"] * 4, *["model arabic"] * 4, "dog", "dog")]
    phrases = [Phrase(text, frozenset([text])) for text in ("model", "agent", "arabic", "dog")]
    evidence = Evidence.of(texts, np.repeat([0, 1, 2], [4, 4, 2]), phrases)
    assert choose(evidence, [[0, 1], [0, 2], [3]], phrases, 3, {}, [frozenset()] * 3) == [[1], [2], [3]]


def test_groups_of_the_same_words_share_a_phrase_rather_than_have_no_name() -> None:
    names = naming(["refund"] * 5, ["refund"] * 5, PHONES).choose()
    assert names[0] == "refund" and names[2]


@pytest.mark.parametrize("often", ["top-up", "topup", "web site", "websites"])
def test_a_name_has_a_word_in_its_most_frequent_spelling_only(often: str) -> None:
    seldom = {"top-up": "topup", "topup": "top-up", "web site": "website", "websites": "web sites"}[often]
    texts = [often] * 12 + [seldom] * 8 + ["wallet"] * 5 + ["fee"] * 5
    name = naming(texts, PHONES * 5).choose()[0].split(", ")
    assert often in name and seldom not in name and len(name) == 3, name


def test_children_do_not_repeat_their_parent() -> None:
    cards = [["lost card", "my card is lost", "card lost abroad"], ["new card", "order a card", "card order"]]
    names = naming(*cards, PHONES).choose(parents=[(0, "cards"), (0, "cards"), (1, "electronics")])
    assert not any("card" in name.lower() for name in names[:2]) and names[0] and names[1]


def test_names_that_stay_are_not_changed() -> None:
    names = naming(PETS, PHONES).choose({0: "My own name"})
    assert names[0] == "My own name" and names[1] != ""


def test_a_name_that_is_used_elsewhere_is_not_given_again() -> None:
    made = naming(PETS, PHONES)
    first, second = made.choose()
    again = made.choose(taken=[first.upper()])
    assert again[0].casefold() != first.casefold() and again[0] and again[1] == second


def test_held_out_texts_make_no_name() -> None:
    made = naming([*PETS, *(f"zebra{n} stripe" for n in range(20))], PHONES)
    assert made.held_out.sum() == 3
    held = [made.sample.texts[row] for row in np.flatnonzero(made.held_out).tolist()]
    seen = {text for text in made.sample.texts if text not in held}
    assert all(any(word.lower() in text.lower() for text in seen) for some in made.phrases() for word in some)


@pytest.mark.parametrize(("language", "texts", "word"), [
    ("zh", ["客户服务很好", "客户服务电话", "客户服务在哪里", "请问客户服务", "客户服务真慢"], "客户服务"),
    ("ja", ["カードが届く", "カードを作る", "カードは便利", "新しいカード"], "カード"),
    ("ar", ["خدمة العملاء سريعة", "خدمة العملاء بطيئة", "أين خدمة العملاء", "رقم خدمة العملاء"], "العملاء"),
    ("de", ["Die Rechnung ist falsch", "Eine Rechnung fehlt", "Wo ist die Rechnung", "Rechnung bezahlt"], "Rechnung"),
])  # fmt: skip
def test_other_languages_and_scripts_get_names(language: str, texts: list[str], word: str) -> None:
    assert word in naming(texts, PHONES, languages=(language, "en")).choose()[0]


def test_texts_without_a_usable_word_give_no_name() -> None:
    assert naming(["12 34", "5 6", "7 8"], PETS).choose()[0] == ""


def test_a_group_without_a_phrase_is_named_by_a_typical_text() -> None:
    """Groups called "topic 146" told nobody anything."""
    texts = ["What is the fee?", "What is the fee on my statement, and why was it charged to me?", "1234"]
    made = naming(texts, texts[::-1], ["1", "2"])
    assert made.or_quoted(["", "fee", ""]) == ["“What is the fee?”", "fee", ""]
    assert made.or_quoted(["", "", ""]) == ["“What is the fee?”", "", ""]  # no two groups have one name
    assert naming(texts[1:]).or_quoted([""]) == ["“What is the fee on my statement, and …”"]
    vectors = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]], np.float32)
    near = Naming(
        Sample(["Cards", "Cash withdrawals abroad", "Cash withdrawals"], np.zeros(3, int), 1, ["en"], vectors)
    )
    assert near.or_quoted([""]) == ["“Cards”"]  # the shortest of the five nearest


def test_a_sample_leaves_out_outliers_and_keeps_small_groups() -> None:
    groups = np.concatenate([np.full(10_000, 0), np.full(30, 1), np.full(50, -1)])
    rows = rows_to_read(groups, 0, 1_000)
    assert (groups[rows] == 1).sum() == 30 and (groups[rows] == -1).sum() == 0 and 900 <= len(rows) <= 1_100


def test_beliefs_are_summed_as_if_from_nothing() -> None:
    random = np.random.default_rng(0)
    own = np.arange(50) % 5
    beliefs, each = _Beliefs(own, 5), np.ones((50, 5))
    for turn in range(200):
        group, column = turn % 5, np.exp(random.random(50).astype(np.float32) * 50)
        beliefs.put(group, column)
        each[:, group] = column
    columns = np.exp(random.random((50, 3)).astype(np.float32) * 10)
    naive = []
    for column in columns.T:
        changed = each.copy()
        changed[:, 2] = column
        naive.append(
            (changed[range(50), own] / changed.sum(axis=1)).mean() - (each[range(50), own] / each.sum(axis=1)).mean()
        )
    assert np.allclose(beliefs.gains(2, columns), naive, atol=1e-6)

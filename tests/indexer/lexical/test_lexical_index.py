"""The lexical index against BM25 computed by hand, with and without a filter, and its commits, deletes and ties."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.indexer.errors import SondeError
from sonde.indexer.lexical import MAX_TERMS, LexicalEntry, LexicalIndex, LexicalState
from sonde.indexer.lexical.analysis import query_counts
from sonde.indexer.lexical.index import UNION_ROWS

ENTRIES = [
    LexicalEntry(0, "", "The battery died after a week", "en"),
    LexicalEntry(1, "Akku", "Die Batterien waren leer, schöne Häuser", "German"),
    LexicalEntry(2, "", "電池がすぐに切れました。", "ja"),
    LexicalEntry(3, "Battery life", "C++ (2003) AND: foo", None),
    LexicalEntry(4, "", "电池不好 iPhone电池", "zh-Hans"),
    LexicalEntry(5, "", "", "en"),
]


def made(folder, entries, through=None):
    index = LexicalIndex.create(folder)
    with index.writer() as writer:
        writer.add(entries)
        writer.commit(len(entries) if through is None else through)
    return index


def bm25(texts, query, k1=1.2, b=0.75):
    """BM25 as Robertson and Zaragoza write it, over texts of lowercase words; float64 [len(texts)]."""
    documents = [Counter(text.split()) for text in texts]
    average = sum(map(Counter.total, documents)) / len(documents)
    scores = np.zeros(len(texts))
    for term in query.split():
        matching = sum(term in document for document in documents)
        idf = math.log(1 + (len(texts) - matching + 0.5) / (matching + 0.5))
        for number, document in enumerate(documents):
            length = k1 * (1 - b + b * document.total() / average)
            scores[number] += idf * document[term] * (k1 + 1) / (document[term] + length)
    return scores


def naive_best(scores, k, allowed=None):
    rows = [row for row in range(len(scores)) if scores[row] > 0 and (allowed is None or allowed[row])]
    return sorted(rows, key=lambda row: (-scores[row], row))[:k]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    return made(tmp_path_factory.mktemp("mixed") / "lexical", ENTRIES)


WORDS = [f"w{number}" for number in range(12)]


@pytest.fixture(scope="module")
def random_texts(tmp_path_factory):
    rng = np.random.default_rng(7)
    share = 1 / np.arange(1, len(WORDS) + 1)
    share /= share.sum()
    texts = [" ".join(rng.choice(WORDS, size=rng.integers(1, 30), p=share)) for _ in range(5_000)]
    entries = [LexicalEntry(row, "", text) for row, text in enumerate(texts)]
    return texts, made(tmp_path_factory.mktemp("random") / "lexical", entries)


@pytest.mark.parametrize("query", ["w11", "w3 w7", "w0 w1 w2 w11 w11", "w5 nowhere"])
def test_scores_are_bm25(random_texts, query):
    texts, index = random_texts
    expected = bm25(texts, query)
    scores, rows = index.search(query, 50)
    np.testing.assert_allclose(scores, expected[rows], rtol=1e-4)
    assert scores.dtype == np.float32
    assert rows.dtype == np.int64
    worst = scores[-1]
    assert (np.sort(expected)[::-1][:50] >= worst * 0.9999).all(), "nothing better was left out"
    np.testing.assert_allclose(index.score_rows(query, range(5_000)), expected, rtol=1e-4)


def test_order_is_by_score_and_then_by_row(random_texts):
    _, index = random_texts
    every = index.score_rows("w2 w9", np.arange(5_000))
    for k in (1, 7, 100, 5_000):
        scores, rows = index.search("w2 w9", k)
        assert rows.tolist() == naive_best(every, k)
        assert (scores == every[rows]).all()


def test_equal_passages_come_in_the_order_of_their_rows(tmp_path):
    index = made(tmp_path / "x", [LexicalEntry(row, "", "same words") for row in reversed(range(3_000))])
    assert index.search("same words", 5)[1].tolist() == [0, 1, 2, 3, 4]
    allowed = np.ones(3_000, dtype=bool)
    allowed[[0, 2]] = False
    assert index.search("words", 3, allowed=allowed)[1].tolist() == [1, 3, 4]


@pytest.mark.parametrize("size", [0, 1, 5, 300, UNION_ROWS, UNION_ROWS + 1, 4_000, 5_000])
@pytest.mark.parametrize("k", [1, 20, 5_000])
def test_filtered_search_never_returns_too_few(random_texts, size, k):
    _, index = random_texts
    every = index.score_rows("w1 w10", np.arange(5_000))
    allowed = np.zeros(5_000, dtype=bool)
    allowed[np.random.default_rng(size).choice(5_000, size, replace=False)] = True
    scores, rows = index.search("w1 w10", k, allowed=allowed)
    assert rows.tolist() == naive_best(every, k, allowed)
    assert (scores == every[rows]).all()


def test_filter_that_only_the_worst_hits_pass(random_texts):
    _, index = random_texts
    every = index.score_rows("w0", np.arange(5_000))
    allowed = np.zeros(5_000, dtype=bool)
    allowed[naive_best(every, 5_000)[-2_100:]] = True
    assert index.search("w0", 9, allowed=allowed)[1].tolist() == naive_best(every, 9, allowed)


def test_rows_past_the_end_of_the_filter_are_not_found(mixed):
    assert mixed.search("battery Batterie", 9, allowed=np.ones(1, dtype=bool))[1].tolist() == [0]


@settings(max_examples=40)
@given(st.text(max_size=60), st.integers(1, 8))
def test_any_text_is_a_query(mixed, query, k):
    scores, rows = mixed.search(query, k)
    assert rows.tolist() == naive_best(mixed.score_rows(query, range(6)), k)
    assert (scores > 0).all()


@pytest.mark.parametrize("query", ["", "   ", "\0", "😀", "\ud800", "x" * 100_000, "+-*/()[]\"'"])
def test_queries_without_terms_find_nothing(mixed, query):
    scores, rows = mixed.search(query, 5)
    assert (len(scores), len(rows)) == (0, 0)
    assert mixed.score_rows(query, [0, 1]).tolist() == [0, 0]
    assert mixed.matches(query, "The battery died") == []


def test_query_syntax_is_text(mixed):
    assert mixed.search("C++ (2003) AND: foo", 5)[1].tolist() == [3]
    assert mixed.search('text:battery^9 OR row:1 "life" -week', 1)[1].tolist() == [3]


def test_stop_words_count_only_alone(tmp_path):
    texts = ["to be or not to be", "the band is on the bill"]
    index = made(tmp_path / "x", [LexicalEntry(row, "", text, "en") for row, text in enumerate(texts)])
    assert index.terms("the bands") == ["band"]
    assert index.search("not the bands", 5)[1].tolist() == [1]
    assert index.terms("To be or not") == ["to", "be", "or", "not"]
    assert index.search("To be or not", 5)[1].tolist() == [0]


def test_stop_words_are_those_of_the_querys_language():
    languages = ("en", "de", "und")
    assert query_counts("is the dog going to die", languages) == {"dog": 1, "go": 1, "going": 1, "die": 1}
    assert query_counts("wie ist der Hund gestorben", languages) == {"hund": 1, "gestorben": 1, "gestorb": 1}
    assert query_counts("die", languages) == {"die": 1}


def test_a_long_query_is_cut_to_its_first_terms(tmp_path):
    index = made(
        tmp_path / "x", [LexicalEntry(0, "", "t0"), LexicalEntry(1, "", "t1023"), LexicalEntry(2, "", "t1024")]
    )
    query = " ".join(f"t{number}" for number in range(30_000))
    assert len(query) > 100_000
    assert len(index.terms(query)) == MAX_TERMS
    assert index.search(query, 5)[1].tolist() == [0, 1]
    assert sum(query_counts(query, ("en", "de", "und")).values()) <= MAX_TERMS


def test_each_language_is_stemmed_in_its_own_way(mixed):
    assert mixed.languages == ("en", "de", "ja", "und", "zh"), "the commonest first"
    assert mixed.search("batteries", 5)[1].tolist() == [0, 1]
    assert mixed.search("schöner HÄUSER", 5)[1].tolist() == [1]
    assert mixed.search("schöner HÄUSER", 5, language="en")[1].tolist() == []
    assert mixed.search("batteries", 5, language="Japanese")[1].tolist() == []
    assert mixed.search("电池", 5)[1].tolist() == [4]
    assert mixed.search("電", 5)[1].tolist() == [2]
    assert mixed.search("iphone", 5)[1].tolist() == [4]


def test_a_new_language_needs_no_new_index(tmp_path):
    index = made(tmp_path / "x", ENTRIES[:1])
    with index.writer() as writer:
        writer.add([LexicalEntry(1, "", "De longues négociations", "fr")])
        writer.commit(2)
    assert index.languages == ("en", "fr")
    assert index.search("négociation", 5)[1].tolist() == [1]


def test_absent_words_are_those_that_no_passage_has_in_any_form(mixed):
    assert mixed.absent("Which batteries died in Prague, and why PRAGUE?") == ["PRAGUE"]
    assert mixed.absent("die leere Batterie von zorblax-7") == ["zorblax", "7"]
    assert mixed.absent("how are they") == ["how", "are", "they"]  # nothing but stop words: they count
    assert mixed.absent("电池 坏了") == ["坏了"]
    assert mixed.absent("") == mixed.absent("?!") == []


def test_a_title_counts_twice(tmp_path):
    entries = [LexicalEntry(0, "", "storage fire fire word"), LexicalEntry(1, "fire", "storage word")]
    scores = made(tmp_path / "x", entries).score_rows("fire", [0, 1])
    np.testing.assert_allclose(scores, [math.log(1.2) * 2 * 2.2 / 3.2] * 2, rtol=1e-4)


def test_matches_are_the_words_that_the_query_hit(mixed):
    def words(query, row):
        text = ENTRIES[row].text
        return [text[start:end] for start, end in mixed.matches(query, text, ENTRIES[row].language)]

    assert words("the batteries dying weeks", 0) == ["battery", "died", "week"]
    assert words("Batterie Haus", 1) == ["Batterien", "Häuser"]
    assert words("電池", 2) == ["電池"]
    assert words("c foo", 3) == ["C", "foo"]
    assert words("電池 电池", 4) == ["电池", "电池"]
    assert mixed.matches("naïve", "a na\u0308ive nai\u0308ve 😀 naïve", "en") == [(2, 8), (9, 15), (18, 23)]


def test_stop_words_match_only_alone_and_ranking_does_not_know(tmp_path):
    texts = ["how to read words from files, having read them", "a dog that died, die in the box"]
    index = made(tmp_path / "x", [LexicalEntry(row, "", text, "en") for row, text in enumerate(texts)])

    def words(query, text, index=index):
        return [text[start:end] for start, end in index.matches(query, text, "en")]

    assert words("how do I read From files?", texts[0]) == ["read", "files", "read"]
    assert "from" in index.terms("how do I read from files"), "BM25 counts it as before"
    assert words("from having", texts[0]) == ["from", "having"], "nothing else"
    assert words("have wills", "he will have wills") == ["wills"], "of the text too, where stems are the same"
    entries = [LexicalEntry(row, "", texts[1], code) for row, code in enumerate(("en", "en", "de"))]
    mixed = made(tmp_path / "y", entries)
    assert words("when did the dog die", texts[1], mixed) == ["dog", "died", "die"], 'German\'s "die" is not meant'


@settings(max_examples=40)
@given(st.text(max_size=80))
def test_every_match_lies_in_the_text(mixed, text):
    spans = mixed.matches(text, text, "en")
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert spans == sorted(spans)


def test_score_rows_keeps_order_and_repeats(mixed):
    scores = mixed.score_rows("battery", np.array([3, 99, 0, 0, 1]))
    assert scores[1] == 0
    assert scores[2] == scores[3] > 0
    assert scores[0] == mixed.search("battery", 1)[0][0]
    assert mixed.score_rows("battery", []).shape == (0,)


def test_commits_deletes_and_refresh(tmp_path):
    index = LexicalIndex.create(tmp_path / "x")
    other = LexicalIndex.open(tmp_path / "x")
    assert (index.rows, index.state, index.languages) == (0, LexicalState(0, 0), ())
    assert index.search("anything", 3)[1].tolist() == []
    with index.writer() as writer:
        assert writer.add(ENTRIES) == 6
        assert index.rows == 0, "nothing is visible before the commit"
        assert writer.commit(6, settled=4) == LexicalState(6, 4)
        writer.delete([0, 77])
        writer.add([LexicalEntry(0, "", "a new battery", "en")])
        writer.delete_from(4)
        writer.add([LexicalEntry(4, "", "battery again", "en")])
        writer.commit(5, settled=5)
    assert (index.rows, index.state) == (5, LexicalState(5, 5))
    assert sorted(index.search("new again 电池", 9)[1].tolist()) == [0, 4]
    assert other.rows == 0, "a reader keeps the commit that it opened"
    other.refresh()
    assert (other.rows, other.state) == (5, LexicalState(5, 5))
    assert other.search("battery", 9)[1].tolist() == index.search("battery", 9)[1].tolist()


def test_what_is_not_committed_is_dropped(tmp_path):
    index = made(tmp_path / "x", ENTRIES[:2])
    with pytest.raises(RuntimeError, match="stop"), index.writer() as writer:
        writer.add(ENTRIES[2:])
        raise RuntimeError("stop")
    assert (LexicalIndex.open(tmp_path / "x").rows, index.state.through_row) == (2, 2)
    with index.writer() as writer:
        writer.commit(2, 9)
    assert LexicalIndex.open(tmp_path / "x").rows == 2


def test_an_error_of_the_callers_generator_is_not_the_indexs(tmp_path):
    def entries():
        yield ENTRIES[0]
        raise ValueError("row 1 is bad")

    with pytest.raises(ValueError, match="row 1 is bad"), made(tmp_path / "x", []).writer() as writer:
        writer.add(entries())


def test_one_writer_at_a_time(tmp_path):
    index = made(tmp_path / "x", ENTRIES)
    with index.writer(), pytest.raises(SondeError, match="another process is writing to the lexical index"):
        LexicalIndex.open(tmp_path / "x").writer()
    with index.writer():
        pass

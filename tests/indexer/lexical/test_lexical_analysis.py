"""Analysis and languages: the terms of texts in many scripts, names of languages, and detecting one."""

import csv
import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.indexer import languages
from sonde.indexer.languages import detect, normalise
from sonde.indexer.lexical.analysis import STEMMERS, analyzer, query_counts

CASES = [
    ("en", "Running batteries' naïve CAFÉ's", ["run", "batteri", "naiv", "cafe", "s"]),
    ("en", "e-mail max_tokens C++ 3.14", ["e", "mail", "max", "token", "c", "3", "14"]),
    ("de", "Häuser Straßen", ["haus", "strass"]),
    ("fr", "L'élève étudiait", ["l", "elev", "etudi"]),
    ("ru", "книгами", ["книг"]),
    ("tr", "evlerimizden", ["ev"]),
    ("und", "Running café", ["running", "cafe"]),
    ("pl", "książkami", ["ksiazkami"]),
    ("hi", "हिन्दी भाषा", ["हिन्दी", "भाषा"]),
    ("zh", "好电池iPhone", ["好", "电", "池", "好电", "电池", "iphone"]),
    ("ja", "本 カタカナ", ["本", "カ", "タ", "カ", "ナ", "カタ", "タカ", "カナ"]),
    ("ko", "한국", ["한", "국", "한국"]),
    ("th", "แมว", ["แ", "ม", "ว", "แม", "มว"]),
    ("en", "cafe\u0301 \uff21\uff22\uff23 \ufb01nd", ["cafe", "abc", "find"]),
    ("en", "\0 \ud800 😀 " + "x" * 101, []),
]


@pytest.mark.parametrize(("language", "text", "expected"), CASES)
def test_terms(language, text, expected):
    assert analyzer(language).terms(text) == expected


def test_query_terms_take_only_pairs_of_longer_runs():
    assert query_counts("电池好", ("zh",)) == {"电池": 1, "池好": 1}
    assert query_counts("猫", ("zh",)) == {"猫": 1}
    assert query_counts("dog dogs Dog cat", ("en",)) == {"dog": 3, "cat": 1}


@pytest.mark.parametrize("language", sorted({*STEMMERS, "und", "zh"}))
@given(text=st.text(max_size=60))
def test_a_query_for_a_texts_own_words_has_its_terms(language, text):
    assert set(analyzer(language).query_terms(text)) <= set(analyzer(language).terms(text))


@pytest.mark.parametrize("language", sorted({*STEMMERS, "und", "zh"}))
@given(text=st.text(max_size=60) | st.text("aĖé.'İi\u0307و الب ب日本 \u3000\x1c", max_size=60))
def test_terms_word_by_word_are_those_of_the_whole_text(language: str, text: str) -> None:
    made = analyzer(language)
    assert made.terms(text) == made._analysed(text)


@given(text=st.text(st.characters(max_codepoint=0x7F)), wanted=st.frozensets(st.text("abc1", min_size=1, max_size=2)))
def test_words_of_ascii_are_where_the_regular_expression_of_all_scripts_finds_them(
    text: str, wanted: frozenset[str]
) -> None:
    among_others = [(start - 2, end - 2) for start, end in analyzer("und").spans("é " + text, wanted)]
    assert list(analyzer("und").spans(text, wanted)) == among_others


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("en", "en"), ("EN", "en"), ("en-US", "en"), ("pt_BR.UTF-8", "pt"), ("eng", "en"), ("English", "en"),
        ("english (US)", "en"), ("Deutsch", "de"), ("ger", "de"), ("deu", "de"), ("zh-Hant-TW", "zh"), ("中文", "zh"),
        ("nb", "no"), ("Norwegian Bokmål", "no"), ("  fr ", "fr"), ("Klingon", None), ("", None), (None, None),
    ],
)  # fmt: skip
def test_normalise(name, code):
    assert normalise(name) == code


def test_no_name_stands_for_two_languages():
    entries = [entry.split() for entry in languages._TABLE.replace("\n", "|").split("|") if entry]
    names = [name for entry in entries for name in entry]
    assert len(names) == len(set(names))
    assert {*STEMMERS} <= {entry[0] for entry in entries}


@pytest.mark.parametrize(
    ("texts", "code"),
    [
        (["Nobody answered when I called the support line", "the battery died after a week"], "en"),
        (["Die Batterie war nach einer Woche leer und niemand hat mir geholfen"], "de"),
        (["中文搜索很好用。今天天气不错，我们去公园吧"], "zh"),
        (["これは日本語の文章です。電池がすぐに切れました。"], "ja"),
        ([], None),
        (["", "   ", "12:45", "x = 3"], None),
        (["hello"], None),
        (["John Smith", "Maria Garcia", "Wei Chen", "Anna Müller"] * 20, None),
    ],
)
def test_detect(texts, code):
    assert detect(texts) == code


@pytest.mark.parametrize(
    ("file", "code"),
    [("afr", "af"), ("ara", "ar"), ("cmn", "zh"), ("deu", "de"), ("fra", "fr"), ("ita", "it"), ("jpn", "ja"),
     ("kor", "ko"), ("nld", "nl"), ("pol", "pl"), ("por", "pt"), ("rus", "ru"), ("spa", "es"), ("tam", "ta"),
     ("tur", "tr")],
)  # fmt: skip
def test_detect_on_real_sentences(shared_data, file, code):
    lines = (shared_data / f"parallel/tatoeba-{file}-eng.tsv").read_text(encoding="utf-8").splitlines()
    assert detect([line.split("\t")[0] for line in lines]) == code


def test_detect_on_short_english_questions_and_on_a_mixture(shared_data):
    with (shared_data / "topics/banking77_test.csv").open(newline="", encoding="utf-8") as stream:
        assert detect([row[0] for row in csv.reader(stream)]) == "en"
    halves = [
        line.split("\t")[0]
        for code in ("deu", "spa")
        for line in (shared_data / f"parallel/tatoeba-{code}-eng.tsv").read_text(encoding="utf-8").splitlines()[:500]
    ]
    assert detect(halves) is None


@pytest.mark.parametrize(("name", "least"), [("cisi", 0.38), ("cacm", 0.48), ("lisa", 0.465)])
def test_ranking_quality_on_real_queries(shared_data, tmp_path, name, least):
    measures = pytest.importorskip("ir_measures")
    from sonde.indexer.lexical import LexicalEntry, LexicalIndex

    def records(file):
        with gzip.open(shared_data / f"retrieval/{name}/{file}.jsonl.gz", "rt", encoding="utf-8") as stream:
            return [json.loads(line) for line in stream]

    corpus = records("corpus")
    index = LexicalIndex.create(tmp_path / "lexical")
    with index.writer() as writer:
        writer.add(LexicalEntry(row, entry["title"], entry["text"], "en") for row, entry in enumerate(corpus))
        writer.commit(len(corpus))
    lines = (shared_data / f"retrieval/{name}/qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]
    judged = [measures.Qrel(query, document, int(grade)) for query, document, grade in map(str.split, lines)]
    run = [
        measures.ScoredDoc(query["_id"], corpus[row]["_id"], float(score))
        for query in records("queries")
        for score, row in zip(*index.search(query["text"], 100), strict=True)
    ]
    assert measures.calc_aggregate([measures.nDCG @ 10], judged, run)[measures.nDCG @ 10] > least


@pytest.mark.parametrize(
    ("language", "query", "text"),
    [
        *((language, query, text) for language in ("tr", "en", "und") for query, text in (
            ("istanbul", "İSTANBUL"), ("istanbul", "İstanbul"), ("İSTANBUL", "istanbul"), ("sipariş", "SİPARİŞ"),
            ("İstanbul", "i\u0307stanbul"),
        )),
        ("ar", "بطارية", "البطارية"), ("ar", "البطارية", "بطارية"), ("ar", "بطارية", "والبطارية"),
        ("ar", "بطارية", "البطاريه"), ("ar", "كتاب", "بكتاب"), ("ar", "فاتورة", "بالفاتورة"),
        ("ar", "المدرسه", "مدرسة"),
    ],
)  # fmt: skip
def test_a_query_finds_a_word_in_capitals_or_with_an_article(language: str, query: str, text: str) -> None:
    found = analyzer(language)
    assert found.query_terms(query).keys() & set(found.terms(text))
    assert list(found.spans(text, frozenset(found.query_terms(query)))) == [(0, len(text))]

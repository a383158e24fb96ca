"""Relevance and the fusion's weight: worked out by hand, stored, and shown by the command line."""

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Command
from default_model import default_model
from fake_encoder import FakeEncoder
from kill_corpus import WORDS

import sonde as package
from sonde.indexer.encoder.scale import DEFAULT_SCALE, REFERENCE, SimilarityScale, measured_scale
from sonde.indexer.lexical import LexicalEntry, LexicalIndex
from sonde.indexer.lexical.analysis import FUNCTION_WORD, query_weights
from sonde.pipelines.search.relevance import WEAK, Calibration, Surroundings, fitted, lexical_relevance, relevance
from sonde.pipelines.search.weighting import LEAST, FusionWeight

SCALE = SimilarityScale(0.2, 0.6)


def chance(odds: Any) -> Any:
    return 1 / (1 + np.exp(-np.asarray(odds)))


def test_similarities_of_all_models_fall_on_one_scale() -> None:
    assert SCALE.standard(np.array([0.2, 0.4, 0.6])) == pytest.approx([0, 0.5, 1])
    assert SimilarityScale(0.75, 0.85).standard(np.array([0.75, 0.8])) == pytest.approx([0, 0.5])
    assert np.isfinite(SimilarityScale(0.5, 0.5).standard(np.array([0.5, 1.0]))).all(), "a model without meaning"


class ByHand:
    """Question n has the vector n, its passage leans to the next one; all share a direction of length `common`."""

    def __init__(self, common: float) -> None:
        self.common = common

    def encode_texts(self, texts: list[str], query: bool = False) -> np.ndarray:
        own = np.eye(len(texts), len(texts) + 1)
        leaning = own if query else 0.8 * own + 0.6 * np.roll(own, 1, axis=0)
        return np.hstack([leaning * math.sqrt(1 - self.common), np.full((len(texts), 1), math.sqrt(self.common))])


@pytest.mark.parametrize("common", [0.0, 0.7])
def test_a_models_two_levels_are_measured_on_reference_texts(common: float) -> None:
    encoder: Any = ByHand(common)
    scale = measured_scale(encoder)
    assert scale.related == pytest.approx(common + 0.8 * (1 - common))
    assert scale.unrelated == pytest.approx(common + 0.6 * (1 - common))
    halfway = np.array([common + 0.7 * (1 - common)])
    assert scale.standard(halfway) == pytest.approx([0.5]), "whatever the texts of the model have in common"


@pytest.mark.skipif(not default_model(), reason="the default model is not installed")
def test_the_default_models_levels_are_those_that_are_written_down() -> None:
    from sonde.indexer.encoder import DEFAULT_MODEL, load_encoder

    measured = measured_scale(load_encoder(DEFAULT_MODEL, device="cpu"))
    assert measured.unrelated == pytest.approx(DEFAULT_SCALE.unrelated, abs=0.01)
    assert measured.related == pytest.approx(DEFAULT_SCALE.related, abs=0.01)
    assert len({question for question, _ in REFERENCE}) == len(REFERENCE)


def test_the_surroundings_of_a_query() -> None:
    vectors = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    few = Surroundings.of(np.array([0.6, 0.4, 0.2]), vectors, 3, SCALE)
    assert few.best == pytest.approx(1.0), "of three passages only the best counts"
    assert few.crowding == pytest.approx((1.0 + -0.5) / 2), "cosines 0.6 and 0 on the common scale"
    many = Surroundings.of(np.array([0.6, 0.4, 0.2]), vectors, 81, SCALE)
    assert many.best == pytest.approx(0.5), "of 81 passages the best three"
    assert Surroundings.of(np.array([0.4]), vectors[:1], 1, SCALE).best == pytest.approx(0.5)


def test_evidence_is_less_where_passages_are_crowded_and_more_where_words_match() -> None:
    assert Surroundings(1.0, 1.42).evidence(0.0) == pytest.approx(1.0)
    assert Surroundings(1.0, 1.82).evidence(0.0) == pytest.approx(0.8)
    assert Surroundings(1.0, 0.0).evidence(1.0) == pytest.approx(1.13)


def test_relevance_is_the_chance_of_an_answer_times_that_of_the_hit() -> None:
    around = Surroundings(0.9, 0.0)
    found = relevance(around, np.array([1.0, 0.5]), np.array([1.0, 0.6]), np.array([0.0, 0.0]), 0.5)
    assert found[0] == pytest.approx(chance(7.75 * 0.38) * chance(0.35))
    assert found[1] == pytest.approx(chance(7.75 * 0.38) * chance(0.35 - (4 + 5.5 * 0.5**4) * 0.4 - 0.74 * 0.5))
    far = relevance(Surroundings(0.1, 0.0), np.array([0.2]), np.array([1.0]), np.array([0.0]), 0.0)
    assert far[0] == pytest.approx(chance(7.75 * -0.42) * chance(0.35 + 0.58 * -0.8)) and far[0] < WEAK < found[0]
    assert len(relevance(around, np.empty(0), np.empty(0), np.empty(0), 0.0)) == 0


def test_a_hit_that_says_the_same_in_other_words_is_as_good_as_the_best() -> None:
    """Otherwise, one exact match made "My card still hasn't been delivered" weak for "my card has not arrived"."""
    cosines, standing, words = np.array([0.937, 0.867, 0.723]), np.array([1.0, 0.76, 0.69]), np.array([1.0, 0.2, 0.7])
    found = relevance(Surroundings(1.5, 1.3), DEFAULT_SCALE.standard(cosines), standing, words, 1.0)
    assert found[0] > found[1] > 0.9 * found[0] and found[2] < WEAK, found
    far = relevance(Surroundings(0.1, 0.0), np.array([2.0, 2.0]), np.array([1.0, 0.5]), np.zeros(2), 0.0)
    assert far[1] < far[0] < WEAK, "nor is it an answer if the best one is none"


def test_the_best_hits_relevance_never_falls_as_similarities_rise() -> None:
    best = [
        relevance(Surroundings(s, 0.0), np.array([s]), np.array([1.0]), np.array([0.3]), 0.3)[0]
        for s in np.linspace(-1, 3, 200)
    ]
    assert (np.diff(best) > 0).all() and 0 <= best[0] < best[-1] <= 1


def test_relevance_of_words_alone() -> None:
    found = lexical_relevance(np.array([0.9, 0.5]))
    assert found[0] == pytest.approx(chance(5.4 * 0.47) * chance(0.35))
    assert found[1] == pytest.approx(chance(5.4 * 0.47) * chance(0.35 - 9.5 * 0.4))
    assert lexical_relevance(np.array([0.1]))[0] < WEAK and len(lexical_relevance(np.empty(0))) == 0


def test_hits_that_all_have_the_words_still_differ() -> None:
    """Scores above that of one passage of average length were all taken as equal: 200 hits with the same relevance."""
    found = lexical_relevance(np.array([2.0, 1.8, 1.2]))
    assert found == pytest.approx(chance(5.4 * 0.57) * chance(0.35 - 9.5 * np.array([0.0, 0.1, 0.4])))
    assert found[0] > WEAK > found[2]


def test_a_users_own_questions_replace_the_estimate() -> None:
    similarities = np.array([0.9, 0.8, 0.7, 0.6, 0.3, 0.2, 0.1, 0.0])
    found = fitted(similarities, similarities > 0.5, 0.45)
    assert found.middle == pytest.approx(0.45) and found.weak == pytest.approx(0.5)
    # Platt's targets are 5/6 and 1/6, so separated questions do not get a chance of 1.
    assert 0.7 < found.chances(np.array([0.9]))[0] < 1 and found.chances(np.array([0.0]))[0] < 0.3
    useless = fitted(similarities, similarities < 0.5, 0.45)
    assert useless.slope > 0, "relevance never falls with similarity"


def test_the_weight_of_the_dense_half() -> None:
    usual = FusionWeight.of(round(math.e**2), 0.6, 0.5)
    assert usual.dense == pytest.approx(chance(0.65 - 1.3 * (math.log(7) - 2)))
    assert FusionWeight.of(3, 0.05, 0.9).dense > 0.9, "bake and bread are in no text"
    assert FusionWeight.of(40, 0.6, 0.5).dense == LEAST < FusionWeight.of(4, 1.0, 0.5).dense
    assert FusionWeight.of(1, 1.0, 0.8).dense == pytest.approx(chance(0.65 + 2.6 - 2.4 * 0.4 - 10 * 0.15))
    assert FusionWeight.of(1, 1.0, 1.0).dense == LEAST, "a part number"
    assert str(FusionWeight(0.8, 1, 0.5, 0.75)) == (
        "meaning counts 0.80 and words 0.20: the query has 1 content word of rarity 0.75, and one text has 50% of them"
    )
    assert str(FusionWeight(0.5, 2, 1.0, 0.5, chosen=False)) == "meaning counts 0.50 and words 0.50, as set"


def test_function_words_count_little_unless_there_is_nothing_else() -> None:
    assert query_weights("how do I bake bread bread", ("en",)) == {
        "how": FUNCTION_WORD, "do": FUNCTION_WORD, "i": FUNCTION_WORD, "bake": 1.0, "bread": 2.0
    }  # fmt: skip
    assert query_weights("how do I", ("en",)) == {"how": 1.0, "do": 1.0, "i": 1.0}
    assert set(query_weights("wie backe ich ein Brot", ("de",))) == {"back", "brot"}


def test_what_the_words_of_a_query_tell(tmp_path: Path) -> None:
    index = LexicalIndex.create(tmp_path / "x")
    with index.writer() as writer:
        writer.add([LexicalEntry(row, "", text, "en") for row, text in enumerate(("red car", "red bus", "red tram"))])
        writer.commit(3)
    told = index.words("how red car")
    idf = {count: math.log(1 + (3 - count + 0.5) / (count + 0.5)) for count in (0, 1, 3)}
    assert told.count == 2
    assert told.information == pytest.approx(idf[3] + idf[1] + FUNCTION_WORD * idf[0])
    assert told.rarity == pytest.approx((idf[3] / idf[1] + 1) / 2)
    [score] = index.score_rows("red car", [0])
    assert score == pytest.approx(idf[3] + idf[1], rel=1e-4), "two words, once each, in a passage of average length"


def test_function_words_do_not_lead(tmp_path: Path) -> None:
    texts = ["How do I change my address? How do I?", "The oven for bread is broken", "My card was stolen"]
    rows = [{"id": str(n), "text": text} for n, text in enumerate(texts)]
    encoder: Any = FakeEncoder()
    tickets = package.index(rows, tmp_path / "t.sonde", id="id", encoder=encoder)
    assert tickets.search("how do I bake bread", mode="lexical")[0].id == "1"


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
def test_every_hit_has_a_relevance(sonde: Command, reviews: Path, mode: str) -> None:
    ran = sonde("search", reviews, "the battery died", "--mode", mode, "--json")
    hits = [json.loads(line) for line in ran.out.splitlines()]
    assert [list(hit)[:4] for hit in hits] == [["rank", "id", "relevance", "weak"]] * len(hits)
    assert all(0 <= hit["relevance"] <= 1 and hit["weak"] == (hit["relevance"] < WEAK) for hit in hits)
    assert hits[0]["id"] == "1" and not hits[0]["weak"]


def test_a_page_of_hits_has_the_relevance_that_the_whole_list_has(reviews: Path, encoder: FakeEncoder) -> None:
    opened = package.open(reviews)
    for mode in ("hybrid", "dense", "lexical"):
        every = {hit.id: hit.relevance for hit in opened.search("battery screen phone", k=3, mode=mode)}
        pages = [opened.search("battery screen phone", k=1, offset=n, mode=mode) for n in range(len(every))]
        assert {hit.id: hit.relevance for page in pages for hit in page} == every


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
def test_relevance_does_not_depend_on_how_many_hits_are_wanted(
    mode: Any, tmp_path: Path, encoder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In dense mode, deeper searches gave the same hit a higher relevance: 0.18, 0.25 and 0.32."""
    monkeypatch.setattr("sonde.pipelines.search.first_stage.known_scale", lambda _: SimilarityScale(0.0, 1.5))
    chosen = random.Random(1)
    texts = [" ".join(chosen.choices(WORDS, k=10)) for _ in range(900)]
    collection = package.index(texts, tmp_path / "c", encoder=encoder)
    few, many = (list(collection.search(" ".join(WORDS[:3]), k=k, mode=mode)) for k in (10, 400))
    assert [(hit.id, hit.relevance) for hit in few] == [(hit.id, hit.relevance) for hit in many[:10]]
    assert len(many) > 200 or mode == "lexical"
    assert all(0 <= hit.relevance <= many[0].relevance for hit in many[200:])


def test_that_nothing_answers_is_said_first(sonde: Command, reviews: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strong = sonde("search", reviews, "the battery died")
    assert strong.out.startswith("  1. 0.") and " weak " not in strong.out.splitlines()[0]
    monkeypatch.setattr("sonde.pipelines.search.first_stage.WEAK", 0.99)
    weak = sonde("search", reviews, "the battery exploded")
    first, second = weak.out.splitlines()[:2]
    assert first.startswith("nothing here seems to answer this: the highest relevance is 0.")
    assert first.endswith(", and hits below 0.99 are weak") and " weak  3  (fusion 0." in second
    given = sonde("search", reviews, "the battery exploded", "--json")
    assert given.err.startswith("note: nothing here seems to answer this") and given.out.startswith('{"rank": 1')
    assert "nothing here" not in sonde("similar", reviews, "1").out, "nobody asked"


def test_a_weak_hit_is_shown_below_the_threshold(
    sonde: Command, reviews: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = json.loads(sonde("search", reviews, "the battery died", "--json").out.splitlines()[0])["relevance"]
    best, below = math.floor(100 * found) / 100, math.ceil(100 * found) / 100
    for threshold in (found + 1e-6, below):  # which both were shown as the relevance was
        monkeypatch.setattr("sonde.pipelines.search.first_stage.WEAK", threshold)
        note, hit = sonde("search", reviews, "the battery died").out.splitlines()[:2]
        assert f": the highest relevance is {best:.2f}, and hits below {below:.2f} are weak" in note
        assert f"1. {best:.2f} weak" in hit


def test_weak_hits_that_have_all_words_are_not_denied(
    sonde: Command, reviews: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sonde.pipelines.search.first_stage.WEAK", 0.99)
    first = sonde("search", reviews, "the battery died").out.splitlines()[0]
    assert first.startswith("no hit is close to this in meaning: the highest relevance is 0.")
    assert first.endswith(", and hits below 0.99 are weak. But 1 hit has all the words of the query")
    lasts = sonde("search", reviews, "day days").out.splitlines()[0]
    assert lasts.endswith(". But 2 hits have all the words of the query"), "day and days are one word"
    by_words = sonde("search", reviews, "the battery died", "--mode", "lexical").out.splitlines()[0]
    assert by_words.startswith("  1. 0."), "words were all that it compared, and all were found"
    some = sonde("search", reviews, "the battery exploded", "--mode", "lexical").out.splitlines()[0]
    assert some.startswith("nothing here seems to answer this")


def test_explain_says_what_the_weight_was_and_why(sonde: Command, reviews: Path) -> None:
    told = sonde("search", reviews, "the battery died", "--explain").out.splitlines()[0]
    assert told.startswith("fusion: meaning counts 0.") and "the query has 2 content words of rarity 1.00" in told
    given = sonde("search", reviews, "the battery died", "--explain", "--weight", "0.3").out.splitlines()[0]
    assert given == "fusion: meaning counts 0.30 and words 0.70, as set"
    assert "fusion:" not in sonde("search", reviews, "the battery died", "--explain", "--mode", "dense").out


def test_a_stored_threshold_marks_weak_hits(sonde: Command, reviews: Path, encoder: FakeEncoder) -> None:
    from sonde.pipelines.search.settings import SearchDefaults, store_defaults

    opened = package.open(reviews)
    store_defaults(opened.stored, SearchDefaults(threshold=0.6, slope=10.0, middle=0.5))
    own = Calibration(10.0, 0.5, 0.6)
    for hit in opened.search("the battery died"):
        assert hit.scores.dense is not None
        assert hit.relevance == pytest.approx(own.chances(np.array([hit.scores.dense]))[0], abs=1e-6)
        assert hit.weak == (hit.scores.dense < 0.6)

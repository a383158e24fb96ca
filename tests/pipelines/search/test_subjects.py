"""Queries that ask for a subject: which documents are read, how neighbours count, and the words of the query."""

from pathlib import Path

import numpy as np
import pytest
from fake_encoder import FakeEncoder

import sonde
from sonde.indexer.encoder import load_encoder
from sonde.pipelines.search.fusion import Ranked
from sonde.pipelines.search.rerank import SecondStage
from sonde.pipelines.search.rerank.late import LateInteraction, Rarity
from sonde.pipelines.search.rerank.stage import asks_for_a_subject
from sonde.pipelines.search.weighting import FusionWeight


def test_function_words_and_signs_count_half() -> None:
    encoder, query = load_encoder(), "What is the battery of the Enterprise?"
    [asked] = encoder.token_vectors(encoder.tokenize([query], query=True))
    rarity = Rarity.of([asked.ids])
    ranker = LateInteraction(encoder, rarity, languages=("en",))
    shares = (ranker.weights(query, asked) / rarity(asked.ids)).round(6)
    assert shares.tolist() == [0.5, 0.5, 0.5, 1.0, 0.5, 0.5, 1.0, 0.5]
    [idle] = encoder.token_vectors(encoder.tokenize(["what is it"], query=True))
    assert ranker.weights("what is it", idle).tolist() == rarity(idle.ids).tolist()
    german = LateInteraction(encoder, rarity, languages=("de",))
    assert (german.weights(query, asked) / rarity(asked.ids)).round(6).tolist()[:3] == [1.0, 1.0, 1.0]


class Alike:
    """Finds that all passages are equally good, and averages with neighbours."""

    name, kind, unit, weight, agreement = "alike", "late interaction", "similarity", 0.4, 0.4

    def score(self, query: str, passages: list[str]) -> np.ndarray:
        return np.ones(len(passages))

    def matches(self, query: str, passage: str) -> list[object]:
        return []


def test_a_document_among_the_good_ones_is_read_although_its_own_score_is_low(tmp_path: Path) -> None:
    # Twelve texts about basil; one does not have the word of the query, and is the last of all but one.
    texts = [*[f"basil likes sun {n}" for n in range(11)], "likes sun", *[f"engine price {n}" for n in range(8)]]
    rows = [{"id": str(n), "text": text} for n, text in enumerate(texts)]
    made = sonde.index(rows, tmp_path / "m.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    scores = np.array([*np.linspace(1, 0.9, 11), *np.linspace(0.6, 0.5, 8), 0.4])
    order = np.array([*range(11), *range(12, 20), 11])
    with made.stored.view() as view:
        after, done = SecondStage(view, Alike(), 12).run("basil", Ranked(order, scores, None, None, 20))  # type: ignore
        certain = Ranked(order, scores, None, None, 20, weight=FusionWeight(0.5, 1, 1.0, 0.5))
        kept, _ = SecondStage(view, Alike(), 12).run("basil", certain)  # type: ignore[arg-type]
    assert done.depth == 12
    assert sorted(after.rows[:12]) == list(range(12)) and after.rows[12:].tolist() == list(range(12, 20))
    assert kept.rows[:12].tolist() == order[:12].tolist() and kept.rows[12:].tolist() == order[12:].tolist()
    assert kept.scores[:12].tolist() == pytest.approx(0.5 + 0.5 * 0.6 * (scores[:12] - 0.6) / 0.4)


@pytest.mark.parametrize(
    ("dense", "expected"),
    [
        (np.linspace(0.6, 0.3, 50), 1.0),  # many documents are about as good
        (np.array([0.8, *np.linspace(0.4, 0.3, 49)]), 0.0),  # one stands out
        (
            np.array([0.5, 0.48, 0.45, 0.42, 0.41, *np.linspace(0.4, 0.2, 45)]),
            0.5,
        ),  # half-way
        (np.array([0.9, *np.linspace(0.4, 0.3, 8)]), 1.0),  # too few to tell
        (np.full(50, 0.5), 1.0),
        (None, 1.0),
    ],
)
def test_neighbours_count_if_a_query_asks_for_a_subject(dense: np.ndarray | None, expected: float) -> None:
    assert asks_for_a_subject(dense) == pytest.approx(expected, abs=1e-6)
    # A text with all words of the query is a certain text.
    assert asks_for_a_subject(dense, 0.75) == pytest.approx(expected, abs=1e-6)
    assert asks_for_a_subject(dense, 0.85) == pytest.approx(expected / 2, abs=1e-6)
    assert asks_for_a_subject(dense, 0.95) == asks_for_a_subject(dense, 1.0) == 0
    if dense is not None:
        assert asks_for_a_subject(dense[::-1]) == asks_for_a_subject(dense)

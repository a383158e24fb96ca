"""The second stage over a late index, and over the cache where there is none: scores, one scale, staleness, bounds."""

import shutil
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_encoder import FakeEncoder
from kill_corpus import documents

import sonde
from sonde.indexer.encoder import Tokens, TokenVectors
from sonde.indexer.store.collection import StoredCollection
from sonde.pipelines.search.rerank import late as late_module
from sonde.pipelines.search.rerank.late import TokenCache, late_scores, maxsim
from sonde.pipelines.search.rerank.stage import StoredPassages

QUERIES = ("apple river cloud", "winter letter music", "silver planet", "number 17 coffee bridge")


class Counting(FakeEncoder):
    """Counts the passages whose tokens were embedded."""

    passages = 0

    def token_vectors(self, tokens: Sequence[Tokens]) -> list[TokenVectors]:
        self.passages += sum(not text.query for text in tokens)
        return super().token_vectors(tokens)


def opened(folder: Path, encoder: FakeEncoder | None = None) -> sonde.Collection:
    return sonde.Collection(StoredCollection.open(folder, encoder=encoder or FakeEncoder()))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same documents without and with a late index."""
    folder = tmp_path_factory.mktemp("late")
    plain = sonde.index(list(documents()), folder / "plain.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    opened(Path(shutil.copytree(plain.path, folder / "late.sonde"))).late()
    return plain.path, folder / "late.sonde"


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch) -> TokenCache:
    cache = TokenCache()
    monkeypatch.setattr(late_module, "CACHE", cache)
    return cache


def scores(collection: sonde.Collection, query: str) -> dict[str, float]:
    found = collection.search(query, k=50, rerank=True)
    return {hit.id: hit.scores.rerank for hit in found if hit.scores.rerank is not None}


@pytest.mark.parametrize("query", QUERIES)
def test_scores_are_near_those_of_uncompressed_tokens(both: tuple[Path, Path], query: str) -> None:
    """Passages here have up to 64 tokens of 15 words: they are pooled to 32, and rounded to 4 bits a number."""
    plain, late = (scores(opened(path), query) for path in both)
    assert plain.keys() == late.keys() and len(plain) == 50
    ours, theirs = (np.array([each[name] for name in plain]) for each in (late, plain))
    assert np.abs(ours - theirs).max() < 0.06
    assert np.corrcoef(ours, theirs)[0, 1] > 0.97


def test_with_the_index_no_passage_is_embedded(both: tuple[Path, Path]) -> None:
    encoder = Counting()
    collection = opened(both[1], encoder)
    assert len(scores(collection, QUERIES[0])) == 50
    assert encoder.passages == 0
    assert collection.search(QUERIES[0], k=3, rerank=True, explain=True)[0].why is not None
    assert encoder.passages == 3  # the words that matched are looked up in the hits that are shown


def test_passages_that_the_index_lacks_score_as_if_it_held_them(both: tuple[Path, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(both[1], tmp_path / "c.sonde"))
    expected = {query: scores(opened(folder), query) for query in QUERIES}
    view_of = opened(folder).stored
    with view_of.view() as view:
        assert view.late is not None
        rows = [segment.rows.copy() for segment in view.late._segments]
    part = folder / "late" / "1"
    from sonde.indexer.late import LateIndex, LateWriter

    index = LateIndex.open(part, FakeEncoder.spec.fingerprint)
    halves = [(each.rows[::2].copy(), each.keys[::2].copy()) for each in index._segments]
    kept = [index.read(*half) for half in halves]
    shutil.rmtree(part)
    writer = LateWriter(part, FakeEncoder.spec.fingerprint)
    writer.begin(index.codec)
    for (some, keys), packed in zip(halves, kept, strict=True):
        writer.add(some, keys, [each for each in packed if each is not None])
    encoder = Counting()
    collection = opened(folder, encoder)
    late = collection.info().late
    assert late is not None and late["covered"] == sum(len(each[::2]) for each in rows) < late["passages"]
    found = {query: scores(collection, query) for query in QUERIES}
    assert encoder.passages > 0
    for query in QUERIES:
        assert found[query] == pytest.approx(expected[query], abs=1e-6)


def test_without_the_index_the_passages_read_last_are_not_embedded_again(both: tuple[Path, Path]) -> None:
    encoder = Counting()
    collection = opened(both[0], encoder)
    first = scores(collection, QUERIES[0])
    embedded = encoder.passages
    assert 0 < embedded <= 50  # equal texts are embedded once
    assert scores(collection, QUERIES[0]) == first
    assert encoder.passages == embedded


def test_the_cache_never_gives_the_tokens_of_an_older_text(tmp_path: Path) -> None:
    texts = [{"id": str(n), "text": text} for n, text in enumerate(["apple river", "cloud winter", "music paper"] * 3)]
    collection = sonde.index(texts, tmp_path / "c.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    scores(collection, "apple river")
    collection.put([{"id": "1", "text": "apple river stone"}])
    changed = scores(collection, "apple river")
    late_module.CACHE = TokenCache()
    assert scores(opened(collection.path), "apple river") == changed
    assert changed["1"] > changed["4"]


def test_another_encoder_object_has_tokens_of_its_own(both: tuple[Path, Path]) -> None:
    class Reversed(FakeEncoder):
        def token_vectors(self, tokens: Sequence[Tokens]) -> list[TokenVectors]:
            found = super().token_vectors(tokens)
            return (
                [replace(each, vectors=each.vectors[:, ::-1].copy()) for each in found]
                if not tokens[0].query
                else found
            )

    one, other = opened(both[0]), opened(both[0], Reversed())
    assert scores(one, QUERIES[1]) != scores(other, QUERIES[1])


def test_the_cache_keeps_what_was_asked_for_last_within_its_bound() -> None:
    cache = TokenCache(1_000)
    for number in range(10):
        cache.put((0, "", bytes([number])), (np.zeros(100, np.uint8),))
    assert cache.bytes == 1_000
    assert cache.get((0, "", b"\x00")) is not None
    cache.put((0, "", b"new"), (np.zeros(150, np.uint8),))
    assert cache.bytes <= 1_000
    assert cache.get((0, "", b"\x00")) is not None
    assert [cache.get((0, "", bytes([number]))) is None for number in (1, 2, 3)] == [True, True, False]
    assert cache.get((0, "codec", b"new")) is None
    cache.put((0, "", b"huge"), (np.zeros(2_000, np.uint8),))
    assert cache.bytes == 0


def test_scores_from_similarities_are_those_of_maxsim() -> None:
    chance = np.random.default_rng(2)
    query, weights = chance.standard_normal((5, 8)), chance.random(5)
    passages = [chance.standard_normal((n, 8)) for n in (3, 1, 7)]
    given = [chance.random(len(each)) for each in passages]
    given[1][:] = 0
    expected = []
    for passage, own in zip(passages, given, strict=True):
        similar = query @ passage.T
        own = own if own.any() else np.ones(len(own))
        forward = similar.max(axis=1) @ weights / weights.sum()
        expected.append((forward + 0.3 * (similar.max(axis=0) @ own / own.sum())) / 1.3)
    assert maxsim(query, passages, weights, given, 0.3) == pytest.approx(np.array(expected), abs=1e-6)
    together = query @ np.concatenate(passages).T
    found = late_scores(together, [3, 1, 7], weights, np.concatenate(given), 0.3)
    assert found == pytest.approx(np.array(expected), abs=1e-6)


def test_tuning_and_evaluation_read_the_index_too(both: tuple[Path, Path]) -> None:
    from sonde.pipelines.search.rerank.models import reranker_for
    from sonde.pipelines.tune.tuning import Remembering

    encoder = Counting()
    with closing(opened(both[1], encoder)) as collection, collection.stored.view() as view:
        remembering = Remembering(reranker_for(view, "late"))
        passages = StoredPassages(view, np.arange(20))
        first = remembering.score(QUERIES[0], passages)
        assert remembering.score(QUERIES[0], passages.take([3, 4])).tolist() == first[3:5].tolist()
        assert encoder.passages == 0


class Static(FakeEncoder):
    """A model whose tokens have no context."""

    spec = replace(FakeEncoder.spec, kind="static")


@pytest.mark.parametrize(("encoder", "noted"), [(Static(), True), (FakeEncoder(), False)])
def test_late_interaction_with_a_static_model_is_noted(tmp_path: Path, encoder: FakeEncoder, noted: bool) -> None:
    texts = ["an apple by the river", "a cloud over the river"]
    made = sonde.index(texts, tmp_path / "c.sonde", encoder=encoder)  # type: ignore[arg-type]
    said = "late interaction rarely improves the order with a static model"
    assert any(note.startswith(said) for note in made.search("river", rerank=True).notes) is noted
    assert not any(note.startswith(said) for note in made.search("river").notes)

"""Tuning: queries with known answers, settings that are chosen on one half, checked on the other, and used after."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Command, command, inject
from fake_encoder import DIMENSION, FakeEncoder

import sonde as package
from sonde.indexer.ann import AnnSettings
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.store.collection import StoredCollection
from sonde.indexer.store.lock import writer_lock
from sonde.indexer.upkeep.delete import compact
from sonde.pipelines.search.search import search, search_many
from sonde.pipelines.search.settings import PROPERTY, SearchDefaults, SearchSettings, store_defaults, stored_defaults
from sonde.pipelines.tune import TuneSettings, forget_defaults, tune_search, tuning
from sonde.pipelines.tune.queries import KnownQuery, clicked, judged, made
from sonde.pipelines.tune.tuning import Remembering, TuneTrial

TOPICS = ("battery", "parcel", "screen", "refund", "garden", "music")


class Noise(FakeEncoder):
    """Vectors that say nothing, so that only words find anything."""

    spec = replace(FakeEncoder.spec, digest="4" * 64)  # similarities of another scale, which is kept per model

    def encode(self, tokens: Any, *, on_batch: Any = None) -> np.ndarray:
        found = np.empty((len(tokens), DIMENSION), np.float32)
        for place, each in enumerate(tokens):
            seed = int(np.asarray(each.ids, np.int64).sum()) + 7 * int(each.query)
            found[place] = np.random.default_rng(seed).standard_normal(DIMENSION)
        return found / np.linalg.norm(found, axis=1, keepdims=True)


def rows() -> list[dict[str, str]]:
    return [
        {
            "id": str(n),
            "title": f"word{n} {TOPICS[n % 6]}",
            "text": f"This {TOPICS[n % 6]} has a word{n} and a word{n + 200}. It has other{n % 7} things to say. "
            f"Nobody answers when {TOPICS[(n + 1) % 6]} number{n} is late, and that is all.",
        }
        for n in range(80)
    ]


@pytest.fixture
def noisy(tmp_path: Path) -> StoredCollection:
    encoder: Any = Noise()
    return package.index(rows(), tmp_path / "c.sonde", title="title", id="id", encoder=encoder).stored


@pytest.fixture
def asked(tmp_path: Path) -> tuple[Path, Path]:
    queries = [{"_id": f"q{n}", "text": f"a {TOPICS[n % 6]} with a word{n + 200} of this"} for n in range(60)]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries))
    (tmp_path / "qrels.tsv").write_text("".join(f"q{n}\t{n}\t1\n" for n in range(60)))
    return tmp_path / "q.jsonl", tmp_path / "qrels.tsv"


def scores(collection: StoredCollection, **settings: Any) -> list[float]:
    return [hit.score for hit in search(collection, "a parcel with a word201", SearchSettings(k=5, **settings))]


def test_what_is_better_for_sure_is_stored_and_heeded_by_those_who_read_already(
    noisy: StoredCollection, asked: tuple[Path, Path]
) -> None:
    reader = StoredCollection.open(noisy.path, encoder=noisy.encoder)
    before, plain = scores(reader), search(reader, "a parcel with a word201").fusion
    assert plain is not None and plain.chosen
    chosen = plain.dense
    found = tune_search(noisy, queries=asked[0], qrels=asked[1])
    assert found.stored is not None and found.stored.weight == found.chosen["weight"]
    assert found.stored.weight is not None and found.stored.weight < 0.5
    first = found.gains[0]
    assert (first.measure, first.examples, first.sure) == ("first stage ndcg@10", 30, True)
    assert scores(reader) == scores(reader, weight=found.stored.weight, depth=found.stored.depth)
    assert before == scores(reader, weight=chosen, depth=50) != scores(reader)
    assert scores(reader, fusion="rrf") == scores(reader, fusion="rrf", weight=0.5)  # tuned for the other fusion
    assert forget_defaults(noisy).weight == found.stored.weight
    assert scores(reader) == before
    assert noisy.get(PROPERTY) is None


def test_the_stored_gain_is_that_of_the_other_half(noisy: StoredCollection, asked: tuple[Path, Path]) -> None:
    found = tune_search(noisy, TuneSettings(keep=False), queries=asked[0], qrels=asked[1])
    assert stored_defaults(noisy).empty and found.stored is None
    other = judged(*asked).halves(0)[1]
    values = []
    for weight, depth in ((None, 50), (found.chosen["weight"], int(found.chosen["depth"] or 0))):
        hits = search_many(noisy, other.texts, SearchSettings(weight=weight, depth=depth))
        ranks = [
            next((hit.rank for hit in results if hit.id in truth), None)
            for results, truth in zip(hits, other.truth, strict=True)
        ]
        values.append(np.mean([1 / np.log2(rank + 1) if rank else 0.0 for rank in ranks]))
    assert (found.gains[0].before, found.gains[0].after) == (pytest.approx(values[0]), pytest.approx(values[1]))


def ndcg(collection: StoredCollection, asked: KnownQuery) -> float:
    """Return nDCG@10 of the search as it is now; each query has one right document."""
    values = []
    for results, truth in zip(search_many(collection, asked.texts, SearchSettings()), asked.truth, strict=True):
        rank = next((hit.rank for hit in results if hit.id in truth), None)
        values.append(1 / np.log2(rank + 1) if rank else 0.0)
    return float(np.mean(values))


@pytest.mark.parametrize(
    "before",
    [
        SearchDefaults(weight=0.37, depth=30, rerank_depth=20),
        *(
            pytest.param(other, marks=pytest.mark.long)
            for other in (
                SearchDefaults(weight=0.9, threshold=0.5),
                SearchDefaults(weight=0.1, depth=25),
                SearchDefaults(depth=200),
            )
        ),
    ],
)
def test_tuning_again_starts_from_the_settings_in_force_and_stores_what_it_measured(
    noisy: StoredCollection, asked: tuple[Path, Path], before: SearchDefaults
) -> None:
    store_defaults(noisy, before)
    other = judged(*asked).halves(0)[1]
    was = ndcg(noisy, other)
    found = tune_search(noisy, queries=asked[0], qrels=asked[1])
    now, [gain] = ndcg(noisy, other), found.gains
    assert gain.before == pytest.approx(was)
    assert now == pytest.approx(gain.after if found.stored else was)
    assert now >= was
    after = stored_defaults(noisy)
    kept = (after.threshold, after.rerank_depth, after.rerank_weight)
    assert kept == (before.threshold, before.rerank_depth, before.rerank_weight)


def test_a_weight_for_each_query_can_win_over_a_stored_one(noisy: StoredCollection, asked: tuple[Path, Path]) -> None:
    with noisy.view() as view:
        vectors = noisy.encoder.encode(noisy.encoder.tokenize(judged(*asked).texts, query=True))
        trial = TuneTrial(view, judged(*asked), vectors)
        plain = trial.values(SearchDefaults())
        store_defaults(noisy, SearchDefaults(weight=1.0))
    with noisy.view() as view:
        trial = TuneTrial(view, judged(*asked), vectors)
        assert trial.values(SearchDefaults()).tolist() == plain.tolist()
        assert trial.values(SearchDefaults(weight=1.0)).mean() < plain.mean()


def test_a_stored_weight_is_removed_if_one_for_each_query_is_better(
    noisy: StoredCollection, asked: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    store_defaults(noisy, SearchDefaults(weight=1.0, threshold=0.5))
    monkeypatch.setattr(tuning, "WEIGHTS", (1.0,))
    found = tune_search(noisy, queries=asked[0], qrels=asked[1])
    assert found.chosen["weight"] is None and found.gains[0].sure
    assert (stored_defaults(noisy).weight, stored_defaults(noisy).threshold) == (None, 0.5)
    assert found.notes == ("the stored weight was removed: the weight is chosen for each query again",)


def test_the_second_stage_is_tuned_over_the_first_stage_that_is_kept(
    noisy: StoredCollection, asked: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[SearchDefaults] = []
    learn = judged(*asked).halves(0)[0].texts

    def values(self: TuneTrial, defaults: SearchDefaults, reranker: Any = None) -> np.ndarray:
        if reranker is not None:
            tried.append(defaults)
        best = reranker is None and self.asked.texts == learn and defaults.weight == 0.7
        return np.full(len(self.asked), 1.0 if best else 0.5)

    store_defaults(noisy, SearchDefaults(weight=0.3, depth=25))
    monkeypatch.setattr(TuneTrial, "values", values)
    settings = TuneSettings(rerank=True, rerank_model="late")
    found = tune_search(noisy, settings, queries=asked[0], qrels=asked[1])
    assert (found.chosen["weight"], found.stored) == (0.7, None)
    assert {(each.weight, each.depth) for each in tried} == {(0.3, 25)}


def test_nothing_is_stored_where_nothing_is_gained(tmp_path: Path, asked: tuple[Path, Path]) -> None:
    encoder: Any = FakeEncoder()
    easy = [{"id": str(n), "text": f"{TOPICS[n % 6]} with a word{n + 200}"} for n in range(60)]
    collection: Any = package.index(easy, tmp_path / "easy.sonde", id="id", encoder=encoder).stored
    found = tune_search(collection, queries=asked[0], qrels=asked[1])
    assert found.stored is None
    said = "nothing was stored: no gain on the other half is significant, so the settings stay as they are"
    assert found.notes == (said,)
    assert collection.get(PROPERTY) is None


def test_made_queries_are_titles_and_their_texts_are_searched_without_them(noisy: StoredCollection) -> None:
    queries, documents = made(noisy, count=40)
    by_key = {document.key: document for document in documents}
    assert (len(queries), len(documents)) == (40, 80)
    for text, truth in zip(queries.texts, queries.truth, strict=True):
        [key] = truth
        assert text == rows()[int(key)]["title"]
        assert (by_key[key].title, by_key[key].text) == ("", rows()[int(key)]["text"])
    assert "titles" in queries.source


@pytest.mark.long
def test_made_queries_that_find_almost_nothing_choose_no_settings(tmp_path: Path) -> None:
    encoder: Any = Noise()
    lines = [{"id": str(n), "title": f"aa{n} bb{n}", "text": f"c{n} d{n} e{n} f{n} g{n} h{n}"} for n in range(120)]
    collection: Any = package.index(lines, tmp_path / "c.sonde", title="title", id="id", encoder=encoder).stored
    found = tune_search(collection)
    assert max(found.gains[0].before, found.gains[0].after) < 0.1
    assert (found.chosen, found.stored, stored_defaults(collection).empty) == ({}, None, True)
    [note] = found.notes
    assert note.startswith("the queries made from these texts find almost nothing (ndcg@10 0.0")
    assert "so they cannot choose settings, and nothing was stored: give at least 20 queries" in note


def test_titles_of_short_texts_ask_for_them(tmp_path: Path) -> None:
    encoder: Any = FakeEncoder()
    short = [
        {"id": str(n), "title": f"Error {n} in the lift", "text": f"The door {n} opens and closes without stopping"}
        for n in range(25)
    ]
    short += [{"id": f"same {n}", "title": f"Note {n} again", "text": f"note {n} again"} for n in range(25)]
    collection: Any = package.index(short, tmp_path / "c.sonde", id="id", title="title", encoder=encoder).stored
    queries, _ = made(collection)
    assert sorted(queries.texts) == sorted(row["title"] for row in short[:25]), "a text that only repeats its title"
    assert all(len(row["text"]) < 100 for row in short)


def test_without_titles_a_sentence_is_taken_out_and_asked_for(tmp_path: Path) -> None:
    encoder: Any = FakeEncoder()
    untitled = [{"id": row["id"], "text": row["text"]} for row in rows()]
    collection: Any = package.index(untitled, tmp_path / "c.sonde", id="id", encoder=encoder).stored
    queries, documents = made(collection, count=30)
    by_key = {document.key: document.text for document in documents}
    for text, truth in zip(queries.texts, queries.truth, strict=True):
        [key] = truth
        original = untitled[int(key)]["text"]
        [gone] = [sentence for sentence in original.split(". ") if sentence.rstrip(".") not in by_key[key]]
        assert len(text.split()) <= 8
        assert all(word in gone for word in text.split())


def test_made_queries_tune_a_collection_of_their_own_and_leave_the_texts_alone(noisy: StoredCollection) -> None:
    before = [hit.id for hit in search(noisy, "word3 refund", SearchSettings(weight=0.5))]
    found = tune_search(noisy, TuneSettings(queries=60))
    assert found.source.endswith("among 80 documents")
    assert [hit.id for hit in search(noisy, "word3 refund", SearchSettings(weight=0.5))] == before
    assert found.stored is None or found.stored.weight == found.chosen["weight"]


def test_clicks_are_judgements(tmp_path: Path, noisy: StoredCollection) -> None:
    log = tmp_path / "clicks.csv"
    log.write_text("query,id\n" + "".join(f"word{n} things,{n}\n" for n in range(20)) + "word3 things,5\n")
    found = clicked(log)
    assert (len(found), found.truth[3], found.texts[3]) == (20, {"3": 1, "5": 1}, "word3 things")
    assert tune_search(noisy, TuneSettings(keep=False), clicks=log).gains[0].examples == 10


def test_the_second_stage_is_tuned_from_scores_that_are_made_once(
    noisy: StoredCollection, asked: tuple[Path, Path]
) -> None:
    asked_for: list[tuple[str, str]] = []

    class Words:
        """Scores by shared words."""

        name, kind, unit, weight, agreement = "words", "late interaction", "similarity", 0.0, 0.0

        def score(self, query: str, passages: Any) -> np.ndarray:
            asked_for.extend((query, text) for text in passages)
            return np.array([len(set(query.split()) & set(text.replace(".", " ").split())) for text in passages], float)

        def matches(self, query: str, passage: str) -> list[Any]:
            return []

    queries = judged(*asked)
    with noisy.view() as view:
        vectors = noisy.encoder.encode(noisy.encoder.tokenize(queries.texts, query=True))
        trial, second = TuneTrial(view, queries, vectors), Remembering(Words())  # type: ignore[arg-type]
        plain = SearchDefaults(weight=1.0, rerank_depth=50, rerank_weight=0.0)
        worst = trial.values(plain, second).mean()
        count = len(asked_for)
        best = trial.values(replace(plain, rerank_weight=1.0), second).mean()
    assert best > worst + 0.2
    assert len(asked_for) == count == len(set(asked_for))


def test_the_share_of_the_second_stage_can_be_set(noisy: StoredCollection) -> None:
    plain = scores(noisy, rerank=True)
    assert plain == scores(noisy, rerank=True, rerank_weight=0.4) != scores(noisy, rerank=True, rerank_weight=0.0)
    store_defaults(noisy, SearchDefaults(rerank_weight=0.0, rerank_depth=20))
    assert scores(noisy, rerank=True) == scores(noisy, rerank=True, rerank_weight=0.0, rerank_depth=20)
    with pytest.raises(UsageError, match=r"rerank_weight is 2"):
        scores(noisy, rerank=True, rerank_weight=2)


def test_the_breadth_of_an_approximate_index_is_tuned_on_the_queries(tmp_path: Path) -> None:
    encoder: Any = FakeEncoder()
    texts = [{"id": str(n), "text": f"{TOPICS[n % 6]} word{n} other{n % 13} thing{n % 29}"} for n in range(1200)]
    collection: Any = package.index(
        texts, tmp_path / "c.sonde", id="id", encoder=encoder, ann=AnnSettings(kind="hnsw")
    ).stored
    log = tmp_path / "clicks.csv"
    log.write_text("query,id\n" + "".join(f"word{n} thing{n % 29},{n}\n" for n in range(40)))
    found = tune_search(collection, clicks=log)
    gain = next(gain for gain in found.gains if gain.measure == "recall@10 of the index")
    assert gain.after >= 0.9
    store_defaults(collection, SearchDefaults(breadth=1))
    with collection.view() as view:
        ann = view.generation.ann
    assert ann is not None and ann.info.breadth != 1
    assert len(package.Collection(collection).search("word7 thing7", k=5)) == 5
    wide = [hit.id for hit in package.Collection(collection).search("word7 thing7", k=5, mode="dense", breadth=500)]
    with collection.view() as view:
        vector = encoder.encode(encoder.tokenize(["word7 thing7"], query=True))
        order = np.argsort(-(view.generation.segments.read(np.arange(1200)) @ vector[0]), kind="stable")[:5]
    assert wide == [str(n) for n in order]


def test_defaults_survive_compaction_and_need_the_lock(noisy: StoredCollection) -> None:
    store_defaults(noisy, SearchDefaults(weight=0.3, threshold=0.6))
    compact(noisy.path)
    assert stored_defaults(StoredCollection.open(noisy.path)).chosen == {"weight": 0.3, "threshold": 0.6}
    with writer_lock(noisy.path), pytest.raises(SondeError, match="is being written"):
        store_defaults(noisy, SearchDefaults())


def test_defaults_of_a_newer_version_are_passed_over() -> None:
    found = SearchDefaults.of({"weight": 0.3, "temperature": 9})
    assert (found.weight, str(found)) == (0.3, "weight 0.3")
    assert SearchDefaults.of(None).empty


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("query,id\n" + "a,1\n" * 20, r"1 can be used, but at least 20"),
        ("question,page\na,1\n", r"must have the columns query and id, not question, page"),
        ("query,id\n" + "".join(f"q{n},x{n}\n" for n in range(20)), r"0 of 20 queries have a right document"),
    ],
)
def test_a_log_that_cannot_be_used_is_one_line(
    noisy: StoredCollection, tmp_path: Path, content: str, says: str
) -> None:
    (tmp_path / "clicks.csv").write_text(content)
    with pytest.raises(SondeError, match=says):
        tune_search(noisy, clicks=tmp_path / "clicks.csv")


def test_queries_need_judgements(noisy: StoredCollection, asked: tuple[Path, Path]) -> None:
    with pytest.raises(UsageError, match="give queries with qrels, or clicks"):
        tune_search(noisy, queries=asked[0])
    with pytest.raises(SondeError, match="at least 20"):
        made(noisy, count=5)


def test_halves_are_disjoint_and_whole() -> None:
    asked = KnownQuery(tuple(f"q{n}" for n in range(21)), tuple({str(n): 1} for n in range(21)), "")
    one, other = asked.halves(3)
    assert (len(one), len(other)) == (11, 10)
    assert set(one.texts) | set(other.texts) == set(asked.texts)


def test_the_commands(
    noisy: StoredCollection,
    asked: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoder: Any = Noise()
    inject(monkeypatch, encoder)
    sonde: Command = command(capsys, monkeypatch)
    ran = sonde("tune", noisy.path, "--queries", asked[0], "--qrels", asked[1], "--json")
    said = json.loads(ran.out)
    assert ran.code == 0 and said["gains"][0]["sure"] is True
    weight = said["stored"]["weight"]
    assert f"weight {weight:g}" in sonde("info", noisy.path).out
    assert json.loads(sonde("info", noisy.path, "--json").out)["search_defaults"]["weight"] == weight
    assert (said["chosen_on"], said["checked_on"]) == (30, 30)
    shown = sonde("tune", noisy.path, "--queries", asked[0], "--qrels", asked[1], "--dry-run").out.splitlines()
    assert shown[0] == "chosen on 30 queries, checked on 30 others: judged queries of q.jsonl"
    assert shown[2].startswith("on the others: first stage ndcg@10 ")
    plain = sonde("search", noisy.path, "a parcel with a word201", "--json").out
    given = sonde("search", noisy.path, "a parcel with a word201", "--weight", str(weight), "--json").out
    assert plain == given != sonde("search", noisy.path, "a parcel with a word201", "--weight", "0.5", "--json").out
    assert f"weight {weight:g}" in sonde("tune", "search", noisy.path, "--reset").out
    assert "tuned" not in sonde("info", noisy.path).out

"""What a change of model keeps, what it refuses, and how both models are compared."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_encoder import FakeEncoder
from kill_corpus import WORDS
from model_change import COUNT, built, corpus, fresh, hits
from other_encoder import ContraryEncoder, OtherEncoder

from sonde.app.api.collection import Collection
from sonde.indexer.errors import SondeError
from sonde.indexer.store.kinds import CLUSTER
from sonde.indexer.store.run_writing import NewRun, Snapshot, write_run
from sonde.pipelines.evaluate.search import evaluate_search, gain, modes
from sonde.pipelines.search.settings import SearchDefaults, SearchSettings, store_defaults
from sonde.pipelines.tune import change, models


@pytest.fixture
def collection(tmp_path: Path) -> Collection:
    return fresh(tmp_path)


def judge_all(collection: Collection) -> None:
    """Judge for 15 queries the documents that begin with the query's word."""
    for word in WORDS:
        documents = [row for row in collection.rows() if row["text"].startswith(word)]
        collection.judge(f"{word}", [row["id"] for row in documents], 1)


def test_both_are_compared_on_the_collections_judgements(collection: Collection, tmp_path: Path) -> None:
    judge_all(collection)
    judged = collection.judgements()
    found = collection.change_model(encoder=OtherEncoder(), dry_run=True).comparison  # type: ignore[arg-type]
    assert found is not None
    assert (found.source, found.queries) == ("15 judged queries of the collection", 15)
    twin = built(tmp_path / "twin.sonde", corpus(), OtherEncoder())
    for mode in ("hybrid", "dense"):
        old, new = (
            evaluate_search(each.stored, judged.queries, judged.qrels, modes([mode], SearchSettings(k=10)))[0].measures
            for each in (collection, twin)
        )
        gain = next(each for each in found.gains if (each.mode, each.measure) == (mode, "ndcg@10"))
        assert (gain.before, gain.after) == pytest.approx((old["ndcg@10"], new["ndcg@10"]))
    assert (found.before.passages, found.after.passages) == (collection.info().passages, twin.info().passages)
    assert found.after.bytes == found.after.passages * 24 * 2
    assert found.before.per_second > 0 < found.after.per_second


def test_copies_count_as_in_an_evaluation(collection: Collection) -> None:
    """A comparison left copies out and `sonde evaluate search` did not: one measure had two values."""
    rows = list(collection.rows())
    collection.put([{"id": f"copy-{row['id']}", "text": row["text"]} for row in rows[::2]])
    judge_all(collection)
    judged = collection.judgements()
    found = collection.change_model(encoder=OtherEncoder(), dry_run=True).comparison  # type: ignore[arg-type]
    settings = modes(["hybrid"], SearchSettings(k=10))
    [measured] = evaluate_search(collection.stored, judged.queries, judged.qrels, settings)
    assert found is not None
    gain = next(each for each in found.gains if (each.mode, each.measure) == ("hybrid", "ndcg@10"))
    assert gain.before == pytest.approx(measured.measures["ndcg@10"])


def test_a_worse_model_is_not_switched_to_unless_asked(collection: Collection) -> None:
    judge_all(collection)
    before = hits(collection)
    found = collection.change_model(encoder=ContraryEncoder())  # type: ignore[arg-type]
    assert found.comparison is not None
    assert found.comparison.worse
    assert (found.switched, collection.model, found.kept) == (False, "fake", None)
    gain = found.comparison.gains[0]
    assert (gain.mode, gain.measure) == ("hybrid", "ndcg@10")
    assert gain.difference < 0
    assert gain.p < 0.05
    assert hits(collection) == before
    again = collection.change_model(encoder=ContraryEncoder(), anyway=True)  # type: ignore[arg-type]
    assert (again.switched, again.embedded, collection.model) == (True, 0, "other")


def test_without_judgements_they_are_compared_on_queries_made_of_the_texts(collection: Collection) -> None:
    found = collection.change_model(encoder=OtherEncoder(), dry_run=True)  # type: ignore[arg-type]
    assert found.comparison is not None
    assert re.match(r"\d+ queries made of .*, among 120 documents", found.comparison.source)
    assert [(gain.mode, gain.measure) for gain in found.comparison.gains] == [
        ("hybrid", "ndcg@10"), ("hybrid", "mrr@10"), ("dense", "ndcg@10"), ("dense", "mrr@10"),
    ]  # fmt: skip
    assert not found.switched
    [beside] = collection.info().other_models
    assert (beside["model"], beside["documents"], beside["previous"]) == ("other", COUNT, False)
    [gone] = collection.discard_model()
    assert (gone.spec.name, collection.info().other_models) == ("other", ())


def test_made_queries_that_find_almost_nothing_compare_nothing() -> None:
    old, new = (models.ModelSide(name, 8, 40, 640, 9.0, None) for name in ("old", "new"))
    gain = models.ModelGain("hybrid", "ndcg@10", 0.031, 0.008, -0.03, -0.01, 0.01)
    found = models.ModelComparison("40 queries made of sentences", 40, (gain,), old, new, ())
    assert found.blind
    assert not found.worse
    assert found.doubt == (
        "the queries made from these texts find almost nothing with either model (hybrid ndcg@10 0.031 and 0.008), so "
        "they cannot compare them: judge the hits of 10 queries with `sonde judge`"
    )
    assert found.refusal == found.doubt
    assert change._advice(found, True) == "; switch back with `sonde model --undo`"
    assert change._advice(found, False) == ""
    judged = replace(found, before=replace(found.before, judged=0.5))
    assert (judged.blind, judged.worse) == (False, True)


@pytest.mark.long
def test_models_that_cannot_be_compared_are_not_switched(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "FINDS", 1.1)
    found = collection.change_model(encoder=OtherEncoder())  # type: ignore[arg-type]
    assert found.comparison is not None and found.comparison.blind
    assert (found.switched, collection.model, found.notes) == (False, "fake", ())
    assert str(found.comparison.to_dict()["refusal"]).endswith("judge the hits of 10 queries with `sonde judge`")
    forced = collection.change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]
    assert (forced.switched, collection.model) == (True, "other")
    assert forced.notes[0].endswith("with `sonde judge`; switch back with `sonde model --undo`")


def gain_of(mode: str, differences: list[float]) -> models.ModelGain:
    found = gain("ndcg@10", np.full(len(differences), 0.5), 0.5 + np.array(differences))
    test = models.randomisation(differences)
    return models.ModelGain(mode, "ndcg@10", found.before, found.after, found.low, found.high, test)


def test_few_queries_without_a_significant_loss_are_no_reason_to_switch() -> None:
    """Eleven queries switched to a random model, because its loss was not significant."""
    old, new = (models.ModelSide(name, 8, 40, 640, 9.0, 0.5) for name in ("old", "new"))
    hybrid, dense = gain_of("hybrid", [0.01] * 11), gain_of("dense", [-0.2, 0.1, 0.0] * 3 + [-0.1, 0.1])
    assert dense.p > 0.05 and not dense.safe and hybrid.safe
    found = models.ModelComparison("11 judged queries", 11, (hybrid, dense), old, new, ())
    assert not found.worse
    assert found.refusal == (
        f"searches may be worse with new ({dense}): 11 queries do not rule out a loss of more than 0.02"
    )
    assert re.fullmatch(r"dense ndcg@10 -0\.027, 95 % interval -0\.\d+ to \+0\.\d+, p 0\.\d+", str(dense))
    many = replace(found, gains=(hybrid, gain_of("dense", [0.02, -0.02] * 500)))
    assert many.refusal is None, "a small difference, known well"


def test_a_model_that_may_be_worse_is_not_switched_to(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    judge_all(collection)
    monkeypatch.setattr(models, "bootstrap", lambda values: (-0.05, 0.05))
    monkeypatch.setattr(models, "SURE", 0.0)
    found = collection.change_model(encoder=OtherEncoder())  # type: ignore[arg-type]
    assert found.comparison is not None and not found.comparison.worse
    assert (found.switched, collection.model) == (False, "fake")
    forced = collection.change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]
    assert forced.switched
    assert forced.notes[0].startswith("searches may be worse with other (hybrid ndcg@10 ")


def test_hits_that_nobody_judged_are_told() -> None:
    old, new = (models.ModelSide(name, 4, 9, 72, 1.0, share) for name, share in (("a", 0.9), ("b", 0.7)))
    assert list(models._notes(old, new)) == [
        "70% of the first ten hits with b have a judgement, and 90% with a: hits without one count as not relevant, so "
        "b may be better than shown"
    ]
    assert list(models._notes(new, old)) == []


def test_a_collection_whose_model_is_gone_can_change_it(collection: Collection) -> None:
    def gone(spec: Any, **_: Any) -> Any:
        raise SondeError(f"the model's folder {spec.name} is gone")

    opened = Collection.open(collection.path, loader=gone)
    found = opened.change_model(encoder=OtherEncoder())  # type: ignore[arg-type]
    assert (found.switched, found.comparison) == (True, None)
    assert found.notes[0] == "the models were not compared: the model's folder fake is gone"
    assert opened.search("apple", k=1)


def test_tuned_settings_are_dropped_with_a_note_and_come_back(collection: Collection) -> None:
    store_defaults(collection.stored, SearchDefaults(weight=0.3, threshold=0.52))
    found = collection.change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]
    assert collection.search_defaults().empty
    assert found.notes[-1] == (
        "the tuned settings (weight 0.3, threshold 0.52) were found with fake and no longer apply: tune again with "
        "`sonde tune`"
    )
    back = collection.undo_model()
    assert back.notes == ("the settings that were tuned with this model apply again: weight 0.3, threshold 0.52",)
    assert collection.search_defaults() == SearchDefaults(weight=0.3, threshold=0.52)


def test_settings_that_the_change_overtakes_are_not_stored(collection: Collection) -> None:
    spec = collection.stored.spec
    collection.change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]
    with pytest.raises(SondeError, match="nothing was stored: the collection's model was changed meanwhile"):
        store_defaults(collection.stored, SearchDefaults(threshold=0.5), spec)
    assert collection.search_defaults().empty


def test_settings_that_the_new_model_lacks_are_told() -> None:
    old = replace(FakeEncoder.spec, dtype="int8", truncate_dim=8)
    assert list(change._settings(old, FakeEncoder.spec)) == [
        "dtype int8, truncate_dim 8 applied only to fake: fake has dtype float32"
    ]
    assert list(change._settings(FakeEncoder.spec, FakeEncoder.spec)) == []


REFUSED = r"the {} run '{}' was made with the model fake, whose embeddings cannot be compared with those of other: make"


def test_documents_and_what_people_said_are_kept(collection: Collection) -> None:
    collection.tag("good", where="year = 2003")
    collection.judge("apple river", ["3", "4"], 2)
    collection.label(["apple", "river"], name="kinds", engine="similarity")
    collection.correct({"5": "river"}, run="kinds")
    rows = list(collection.rows())
    judged = collection.judgements().qrels
    collection.change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]
    assert list(collection.rows()) == rows
    assert collection.judgements().qrels == judged == {"q1": {"3": 2, "4": 2}}
    assert [(each.id, each.labels) for each in collection.corrections("kinds")] == [("5", ("river",))]
    tagged = collection.search("apple", where='"tag:good"', k=50)
    assert {hit.id for hit in tagged} == {"3", "23", "43", "63", "83", "103"}
    runs = {(str(run.kind), run.name): (run.model, run.other_model) for run in collection.runs()}
    assert runs == {
        ("tag", "good"): (None, False), ("label", "kinds"): ("fake", True), ("correction", "kinds"): (None, False),
    }  # fmt: skip


def test_what_needs_the_old_embeddings_is_refused_until_the_run_is_made_again(collection: Collection) -> None:
    collection.cluster("k", k=3)
    collection.map("m")
    sizes = collection.item_sizes(collection.run("k").run)
    found = collection.change_model(encoder=OtherEncoder(same=True), anyway=True)  # type: ignore[arg-type]
    assert found.notes[-1].startswith("2 runs were made with another model: documents keep their groups")
    for kind, name, ask in (
        ("cluster", "k", lambda: collection.update_clusters("k")),
        ("cluster", "k", lambda: collection.merge_clusters([0, 1], "k")),
        ("cluster", "k", lambda: collection.clusters_near("apple", "k")),
        ("map", "m", lambda: collection.update_map("m")),
    ):
        with pytest.raises(SondeError, match=REFUSED.format(kind, name)):
            ask()
    assert collection.item_sizes(collection.run("k").run) == sizes
    collection.rename_run("k", "kept")
    assert collection.run("kept").run.other_model
    collection.cluster("kept", k=3, replace=True)
    assert not collection.run("kept").run.other_model
    assert collection.update_clusters("kept").added == 0
    collection.undo_model()
    assert {run.name: run.other_model for run in collection.runs()} == {"kept": True, "m": False}
    with pytest.raises(SondeError, match=r"made with the model other, .* those of fake"):
        collection.update_clusters("kept")


@pytest.mark.long
def test_topics_of_another_model_are_shown_but_not_asked(collection: Collection) -> None:
    collection.topics("t", min_size=4, seed=1)
    before = [(topic.number, topic.name, topic.size) for topic in collection.topic_run("t")]
    collection.change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]
    topics = collection.topic_run("t")
    assert [(topic.number, topic.name, topic.size) for topic in topics] == before != []
    assert len(topics.documents(0, k=3)) == 3
    for ask in (lambda: topics.search("apple"), lambda: topics.of("apple"), topics.update, lambda: topics.reduce(1)):
        with pytest.raises(SondeError, match=REFUSED.format("topic", "t")):
            ask()
    collection.topics("t", min_size=4, seed=1, replace=True)  # numbered by the documents alone
    assert collection.topic_run("t").search("apple")


def test_a_run_that_the_change_overtakes_belongs_to_the_old_model(collection: Collection) -> None:
    with collection.stored.view() as view:
        snapshot = Snapshot.of(view)
    collection.change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]
    docs = snapshot.docs
    write_run(collection.stored, NewRun(CLUSTER, "late", {}, assignments=(docs, docs * 0, docs * np.nan)), snapshot)
    assert [(run.name, run.model, run.other_model) for run in collection.runs()] == [("late", "fake", True)]

"""`check`: each kind finds what was put there and nothing else, and the run is kept like any other."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster_corpus import made
from fake_encoder import FakeEncoder
from hypothesis import given
from hypothesis import strategies as st

from sonde.app.api import Collection, index
from sonde.indexer.errors import UsageError
from sonde.indexer.store.kinds import CHECK
from sonde.pipelines.check import KINDS, CheckSettings
from sonde.pipelines.check.embeddings import DOUBTFUL, FOLDS, doubts, outliers
from sonde.pipelines.check.personal import personal
from sonde.pipelines.check.wording import Finding, boilerplate, cut, foreign, short

ENGLISH = (
    "The parcel came three days late and nobody in the shop could tell me where it had been in all that time, which is "
    "why I am asking for my money back."
)
GERMAN = (
    "Das Paket kam drei Tage zu spät an und niemand im Laden konnte mir sagen, wo es in dieser ganzen Zeit war, "
    "und deshalb möchte ich mein Geld zurück."
)


def blobs(count: int, groups: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of length 1 around the means of groups, and the number of each one's group."""
    chance = np.random.default_rng(seed)
    labels = np.arange(count) % groups
    vectors = 5 * chance.normal(size=(groups, 16))[labels] + chance.normal(size=(count, 16))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32), labels


def places(found: Iterable[Finding]) -> list[int]:
    return [place for place, _, _ in found]


@pytest.mark.parametrize("seed", range(3))
def test_flipped_labels_are_doubted_first(seed: int) -> None:
    vectors, labels = blobs(300, 4, seed)
    flipped = np.sort(np.random.default_rng(seed).choice(300, 15, replace=False))
    given = labels.copy()
    given[flipped] = (given[flipped] + 1) % 4
    found = doubts(vectors, given)
    assert sorted(np.argsort(-found.doubt)[:15].tolist()) == flipped.tolist()
    flagged = found.flagged()
    assert set(flagged) <= set(flipped)
    assert len(flagged) >= 7
    assert (found.suggested[flagged] == labels[flagged]).all()
    assert (np.diff(found.doubt[flagged]) <= 0).all()
    assert found.relative[flagged].max() <= DOUBTFUL


def test_doubts_are_the_same_every_time_and_whatever_the_names_of_the_labels() -> None:
    vectors, labels = blobs(200, 3)
    labels[::17] = (labels[::17] + 1) % 3
    first = doubts(vectors, labels)
    assert np.array_equal(first.doubt, doubts(vectors, labels).doubt)
    swapped = doubts(vectors, 2 - labels)
    assert np.array_equal(2 - swapped.suggested, first.suggested)


def test_every_classifier_is_reported_so_that_the_time_left_can_be_told() -> None:
    vectors, labels = blobs(100, 3)
    said: list[Any] = []
    doubts(vectors, labels, notify=said.append)
    assert [event.done for event in said] == [*range(6), *range(5, 11), *range(10, 16)]
    assert {(event.stage, event.total, event.unit) for event in said} == {("checking labels", 15, "classifiers")}


def test_a_rare_label_and_a_text_without_one_are_not_judged() -> None:
    vectors, labels = blobs(100, 2)
    labels[: FOLDS - 1], labels[10:20] = 7, -1
    found = doubts(vectors, labels)
    out = np.r_[np.arange(FOLDS - 1), np.arange(10, 20)]
    assert np.isnan(found.doubt[out]).all()
    assert (found.suggested[out] == -1).all()
    assert not np.isnan(np.delete(found.doubt, out)).any()


@given(st.integers(0, 30), st.integers(1, 4))
def test_any_small_set_of_labels_can_be_judged(count: int, groups: int) -> None:
    vectors, labels = blobs(count, groups)
    found = doubts(vectors, labels)
    judged = ~np.isnan(found.doubt)
    assert ((found.doubt[judged] >= 0) & (found.doubt[judged] <= 1)).all()
    assert judged.sum() in (0, count) or groups > count / FOLDS


def test_a_text_far_from_all_others_is_an_outlier() -> None:
    vectors, _ = blobs(200, 2)
    far = np.zeros((2, 16), np.float32)
    far[0, 3], far[1, 9] = 1, -1
    rows, scores = outliers(np.concatenate([vectors, far]).astype(np.float32))
    assert {200, 201} <= set(rows.tolist())
    assert len(rows) <= 6
    assert (np.diff(scores) <= 0).all()
    assert outliers(vectors[:20])[0].tolist() == []


def test_short_texts() -> None:
    texts = ["Broken.", "It broke at once", "!!! 123", "电池今天坏了", "坏了", "", "Very bad"]
    assert {place: why for place, _, why in short(texts)} == {
        0: "1 word", 2: "no word", 4: "1 word", 5: "no word", 6: "2 words"
    }  # fmt: skip


def test_texts_that_were_cut() -> None:
    whole = ["Short enough.", "So I waited ...", "x" * 90 + " and so …", *["y" * 100] * 3]
    assert {place: why for place, _, why in cut(whole)} == {
        2: "ends with an ellipsis", **dict.fromkeys((3, 4, 5), "ends at 100 characters, as 2 others do")
    }  # fmt: skip
    assert places(cut(["z" * 100, "z" * 100, "more […]"])) == [2], "two of one length are chance"


def test_texts_in_another_language() -> None:
    texts = [ENGLISH, GERMAN, "Kaputt!", ENGLISH]
    assert list(foreign(texts, [None] * 4, "en")) == [(1, 1.0, "de")]
    assert list(foreign(texts, [None] * 4, None)) == [(1, 1.0, "de")], "most are English"
    assert places(foreign(texts, [None, "en", "fr", None], "en")) == [2], "what a column says counts"
    assert list(foreign([], [], None)) == []


def test_sentences_that_many_texts_have() -> None:
    footer = "Please consider the environment before printing this mail."
    texts = [f"Message number {n} says something else.\n{footer}" for n in range(6)]
    found = list(boilerplate([*texts, "Nothing of that kind is here. Not at all."]))
    assert places(found) == [0, 1, 2, 3, 4, 5]
    assert {why for _, _, why in found} == {f"6 texts have {footer!r}"}
    assert found[0][1] == pytest.approx(8 / 14)
    assert list(boilerplate([texts[0]] * 9)) == [], "copies of a whole text are duplicates"
    assert list(boilerplate(texts[:4])) == []


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("Write to ann.lee+shop@mail.example.com today", "e-mail address"),
        ("Schreiben Sie an jürgen.müller@bäckerei-groß.de.", "e-mail address"),
        ("iban: de89 3704 0044 0532 0130 00", "bank account"),
        ("AT61 1904 3002 3457 3201 bitte überweisen", "bank account"),
        ("Konto at611904300234573201 danke", "bank account"),
        ("DE89-3704-0044-0532-0130-00", "bank account"),
        ("Call +44 20 7946 0958 after noon", "phone number"),
        ("My IBAN is DE89 3704 0044 0532 0130 00.", "bank account"),
        ("Card 4111 1111 1111 1111, please", "payment card"),
        ("It came from 8.8.8.8 at night", "IP address"),
        ("ann@example.org or +49 30 901820", "e-mail address, phone number"),
    ],
)
def test_personal_data_is_named_and_not_repeated(text: str, kinds: str) -> None:
    assert list(personal(["nothing here", text])) == [(1, 1.0, kinds)]


@pytest.mark.parametrize(
    "text",
    [
        "Order 4111 1111 1111 1112 was late",  # no card: its check digit is wrong
        "DE89 3704 0044 0532 0130 01 is no account",
        "version 1.2.3.4.5, host 192.168.0.1",
        "reach me @home, or at a@b",
        "1234567890123456789012345",
        "Call 020 7946 0958",  # a number without its country
    ],
)
def test_what_only_looks_like_personal_data(text: str) -> None:
    assert list(personal([text])) == []


def test_the_region_says_how_national_numbers_are_read() -> None:
    text = "Call (650) 253-0000 now"
    assert (places(personal([text])), places(personal([text], "us"))) == ([], [0])
    with pytest.raises(UsageError, match="'Europe' is not a region: give a country code of two letters"):
        CheckSettings(region="Europe").check()


@pytest.fixture
def shop(tmp_path: Path) -> Collection:
    things = ("parcel", "battery", "screen")
    rows = [
        {"id": f"d{n}", "text": f"{things[n % 3]} {things[n % 3]} trouble number{n} word{n * 7}",
         "about": things[n % 3], "part": "train" if n < 50 else "test"}
        for n in range(60)
    ]  # fmt: skip
    rows[4]["about"] = "parcel"
    rows[59]["text"] = rows[2]["text"]
    rows[7]["text"] += " ann@example.org"
    rows[9]["text"] = "parcel"
    return made(rows, tmp_path / "shop.sonde")


def test_a_check_finds_each_mistake_and_stores_it_as_a_run(shop: Collection) -> None:
    checked = shop.check(
        label="about",
        split="part",
        near=1.0,
        meaning=1.0,
        kinds=["label", "leak", "duplicate", "short", "personal data"],
    )
    found = {kind: {each.id: each.why for each in some} for kind, some in checked.found.items()}
    assert found["label"]["d4"] == "parcel; more likely: battery"
    assert found["leak"] == {"d2": "train; test: d59", "d59": "test; train: d2"}
    assert found["duplicate"] == {"d59": "exact: d2"}
    assert found["short"] == {"d9": "1 word"}
    assert found["personal data"] == {"d7": "e-mail address"}
    details = shop.run("check")
    assert details.run.kind is CHECK
    assert [(item.name, item.data["size"]) for item in details.items] == [
        ("doubtful label", len(found["label"])), ("in several parts", 2), ("duplicate", 1), ("very short", 1),
        ("personal data", 1),
    ]  # fmt: skip
    rows = {row["id"]: row["check:check"] for row in shop.rows()}
    assert rows["d59"] == ["duplicate", "in several parts"] or rows["d59"] == ["in several parts", "duplicate"]
    assert rows["d0"] is None
    assert [hit.id for hit in shop.search("parcel", where="'very short' IN \"check:check\"")] == ["d9"]
    assert json.loads(json.dumps(checked.to_dict()))["found"]["short"] == [
        {"id": "d9", "score": 0.6667, "why": "1 word"}
    ]


def test_the_order_of_the_documents_changes_nothing(shop: Collection, tmp_path: Path) -> None:
    rows = list(shop.rows())
    turned = made([{k: v for k, v in row.items() if k != "title"} for row in rows[::-1]], tmp_path / "turned.sonde")
    first = shop.check(label="about", split="part")
    second = turned.check(label="about", split="part")
    for kind in set(KINDS) - {"duplicate", "leak"}:  # of two copies, the one that was stored first stays
        assert {each.id for each in first.found[kind]} == {each.id for each in second.found[kind]}, kind


def test_a_check_keeps_what_is_taken_and_replaces_on_request(shop: Collection) -> None:
    shop.check(kinds=["short"])
    with pytest.raises(UsageError, match="the check run 'check' already exists"):
        shop.check(kinds=["short"])
    assert shop.check(kinds=["short"], replace=True).name == "check"
    assert len(shop.runs(CHECK)) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "abuot"}, r"the column 'abuot' of label does not exist: there .*about"),
        ({"kinds": ["labels"]}, "'labels' is not a kind of check: use label, leak, duplicate"),
        ({"kinds": ["label"]}, "a check of kind 'label' needs a column: give it with label"),
        ({"kinds": ["leak"]}, "a check of kind 'leak' needs a column: give it with split"),
        ({"near": 0.0}, "near is 0.0: give a similarity above 0"),
        ({"seed": -1}, "seed is -1: give a whole number from 0"),
        ({"region": "XX"}, "'XX' is not a region"),
    ],
)
def test_a_check_that_cannot_be_made_changes_nothing(shop: Collection, options: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        shop.check(**options)
    assert shop.runs() == []


def test_labels_that_cannot_be_judged_are_said(shop: Collection) -> None:
    for id in ("d0", "d3"):
        shop.put([{"id": id, "text": f"refund of {id}", "metadata": {"about": "refund", "part": "test"}}])
    checked = shop.check(label="about", kinds=["label"])
    assert checked.notes == ("labels with fewer than 5 documents were not checked: 'refund'",)
    shop.put([{"id": "d1", "text": "refund", "metadata": {"about": "refund", "one": "same"}}])
    assert shop.check("one", label="one", kinds=["label"]).notes == (
        "labels with fewer than 5 documents were not checked: 'same'",
        "one has fewer than two labels to choose between: none was checked",
    )


def test_without_columns_labels_and_leaks_are_left_out() -> None:
    assert CheckSettings().chosen == KINDS[2:]
    assert CheckSettings(label="a", split="b").chosen == KINDS
    assert CheckSettings(kinds=["short"]).chosen == ("short",)  # type: ignore[arg-type]


@pytest.mark.parametrize("shards", [None, 2])
def test_nothing_of_deleted_documents_is_left_after_compact(tmp_path: Path, shards: int | None) -> None:
    signed = "Regards, Ann Brontosaurus of 12 Linden Avenue"
    rows = [
        {"id": f"{'ann' if n < 10 else 'd'}-{n}", "text": f"My parcel number{n} is late word{n * 7}."}
        for n in range(40)
    ]
    for row in rows[:10]:
        row["text"] += f"\n{signed}."
    shop = index(rows, tmp_path / "shop.sonde", id="id", encoder=FakeEncoder(), shards=shards)  # type: ignore[arg-type]
    shop.check(kinds=["boilerplate"])
    shop.cluster("two", k=2)
    assert len(shop.run("check").items[0].data["why"]) == 10
    assert shop.delete(where="id LIKE 'ann-%'") == 10
    shop.compact()
    assert shop.run("check").items[0].data["why"] == {}
    representatives = [id for item in shop.run("two").items for id in item.data["representatives"]]
    assert representatives and not any(id.startswith("ann") for id in representatives)
    files = [path.read_bytes() for path in shop.path.rglob("*") if path.is_file()]
    assert not any(word in content for content in files for word in (b"12 Linden", b"ann-"))
    assert shop.verify() == []


def test_phone_numbers_that_are_not_looked_for_are_told(tmp_path: Path) -> None:
    shop = made([{"id": "a", "text": "Call 020 7946 0958"}, {"id": "b", "text": "nothing"}], tmp_path / "shop.sonde")
    told = shop.check(kinds=["personal data"]).notes
    said = "phone numbers without a country code were not looked for: give region"
    assert [str(note) for note in told] == [said]
    there = shop.check(kinds=["personal data"], region="GB", replace=True)
    assert (there.notes, [each.id for each in there.found["personal data"]]) == ((), ["a"])

"""The cluster, topic or labels of each document, as the exported columns say them."""

from pathlib import Path

import pytest
from fake_encoder import FakeEncoder

import sonde

TEXTS = ["parcel late", "parcel lost", "parcel broken", "battery dead", "battery weak", "battery hot"]


@pytest.fixture
def shop(tmp_path: Path) -> sonde.Collection:
    made = sonde.index(TEXTS, tmp_path / "shop.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    made.cluster("two", k=2)
    return made


def test_assignments_are_those_of_the_exported_column(shop: sonde.Collection) -> None:
    found = shop.assignments("two")
    assert {each.id: each.number for each in found} == {row["id"]: row["cluster:two"] for row in shop.rows()}
    assert {each.id: each.name for each in found} == {row["id"]: row["cluster:two name"] for row in shop.rows()}
    best = [member.score for member in shop.members("two", 0)]
    assert sorted((each.score for each in found if each.number == 0), reverse=True) == best  # type: ignore[type-var]


def test_a_document_with_two_labels_comes_twice(shop: sonde.Collection) -> None:
    shop.label(["parcel", "battery"], name="goods", multi_label=True, threshold=0.0, engine="similarity")
    found = shop.assignments("goods", "label")
    assert len(found) == 2 * len(TEXTS)
    scores = [each.score or 0.0 for each in found]
    assert all(one >= other for one, other in zip(scores[::2], scores[1::2], strict=True)), "best first"


def test_an_unknown_run_is_refused(shop: sonde.Collection) -> None:
    with pytest.raises(sonde.SondeError, match=r"there is no run 'three'.*only two \(cluster\)"):
        shop.assignments("three")


def test_a_run_of_another_kind_is_named_with_its_kinds(shop: sonde.Collection) -> None:
    shop.label(["parcel", "battery"], name="two", engine="similarity")
    said = """'two' is a cluster run and a label run, not a map run: give kind="cluster" or kind="label"$"""
    with pytest.raises(sonde.SondeError, match=said) as it:
        shop.run("two", "map")
    assert (it.value.code, it.value.value) == ("not-found", "two")

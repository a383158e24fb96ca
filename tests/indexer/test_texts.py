"""One string is one id, one query or one text, and an integer is its digits; anything else is refused by its value."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_encoder import FakeEncoder

import sonde
from sonde.app.api import Collection, classify, index
from sonde.indexer.errors import UsageError, as_text, as_texts
from sonde.pipelines.duplicates import DuplicateSettings
from sonde.pipelines.label import Label, make_labels
from sonde.pipelines.label.corrections import forget_corrections
from sonde.pipelines.similarity.bitext import mine_bitext
from sonde.pipelines.topics import TopicSettings

ROWS = [{"id": key, "text": f"the letter {key}"} for key in ("1", "2", "12", "3", "4", "34")]
ENCODER: Any = FakeEncoder()


@pytest.fixture
def shop(tmp_path: Path) -> Collection:
    index(ROWS, tmp_path / "shop.sonde", id="id", encoder=ENCODER)
    return Collection.open(tmp_path / "shop.sonde", encoder=ENCODER)


def ids(shop: Collection) -> list[str]:
    return [row["id"] for row in shop.rows()]


@pytest.mark.parametrize(
    "given", ["12", 12, 12.0, np.int64(12), np.float64(12), ["12"], (12,), {"12"}, iter(["12"]), np.array(["12"])]
)
def test_one_id_is_one_id(shop: Collection, given: Any) -> None:
    assert shop.delete(given) == 1
    assert ids(shop) == ["1", "2", "3", "4", "34"]


@pytest.mark.parametrize("value", [1.5, float("nan"), b"12", {"12": 1}, True, [None], ["1", 2.5]])
def test_what_is_no_id_is_refused_by_its_value(shop: Collection, value: Any) -> None:
    shown = repr(value[-1] if isinstance(value, list) else value)
    with pytest.raises(UsageError, match=r"is not a valid id: give a string") as caught:
        shop.delete(value)
    assert str(caught.value).startswith(shown)
    assert len(ids(shop)) == 6


def test_ids_of_tags_judgements_and_corrections(shop: Collection) -> None:
    assert shop.tag("odd", ids="34").documents == 1
    assert [row["id"] for row in shop.rows() if row["tag:odd"]] == ["34"]
    assert shop.judge("a letter", 12, grade=1) == 1  # type: ignore[arg-type]
    assert shop.judgements().qrels == {"q1": {"12": 1}}
    assert shop.correct({12: "long", "34": "long"}, run="sizes").total == 2  # type: ignore[dict-item]
    assert forget_corrections(shop.stored, "34", "sizes") == 1
    assert [row["id"] for row in shop.rows() if row["correction:sizes"]] == ["12"]
    with pytest.raises(UsageError, match=r"^None is not a valid label: give a string or a list of strings$"):
        shop.correct({"12": None}, run="sizes")  # type: ignore[dict-item]
    with pytest.raises(UsageError, match=r"^'12' is not a valid correction: give labels by id"):
        shop.correct("12", run="sizes")  # type: ignore[arg-type]


def test_queries(shop: Collection) -> None:
    assert [found.query for found in shop.search_many("battery")] == ["battery"]
    assert [hit.id for hit in shop.similar(12, k=1)] == [hit.id for hit in shop.similar("12", k=1)]
    calls: list[Callable[[Any], Any]] = [shop.search, shop.search_many, shop.like, shop.ask, shop.similar]
    for call in calls:
        with pytest.raises(
            UsageError, match=r"^(None is not a valid (id|query)|(query|text|question) is None): give a string"
        ):
            call(None)


def test_labels_and_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sonde.pipelines.similarity.bitext.embed_texts", lambda encoder, texts, _: encoder.encode_texts(texts)
    )
    settings = sonde.LabelSettings(engine="similarity")
    one = classify("the letter 12", ["letter", "number"], settings=settings, encoder=ENCODER)
    assert one == classify(["the letter 12"], ["letter", "number"], settings=settings, encoder=ENCODER)
    assert make_labels(Label("yes"), several=True) == (Label("yes"),)
    assert make_labels([1, 2]) == (Label("1"), Label("2"))  # type: ignore[list-item]
    for wrong in (None, 1.5, b"ab", ["a", None], {"a": 1.5}):
        with pytest.raises(UsageError, match=r"is not a valid (label|description): give a string"):
            make_labels(wrong)  # type: ignore[arg-type]
    found = mine_bitext("the letter 12", ["the letter 12", "rain"], encoder=ENCODER, k=1)
    assert [(pair.first, pair.second) for pair in found] == [("the letter 12", "the letter 12")]
    with pytest.raises(UsageError, match=r"^premise is None: give a string$"):
        sonde.entail(None, "rain")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^1\.5 is not a valid text: give a string$"):
        sonde.similarity(1.5, "rain")  # type: ignore[arg-type]


def test_comparisons_and_settings(shop: Collection) -> None:
    for name in ("where", "queries", "runs", "clusters"):
        with pytest.raises(UsageError, match=r"^1 \w+ \(ab\) cannot be compared: give two clusters, "):
            shop.compare(**{name: "ab"})  # type: ignore
    assert DuplicateSettings(kinds="exact").kinds == ("exact",)  # type: ignore[arg-type]
    assert TopicSettings(seed_words=("price", ("late", "lost"))).seed_words == (("price",), ("late", "lost"))  # type: ignore[arg-type]


def test_the_shared_functions() -> None:
    assert (as_text("12", "id"), as_text(12, "id"), as_texts((), "id")) == ("12", "12", [])
    with pytest.raises(UsageError, match=r"^b'12' is not a valid id: give a string or a list of strings$"):
        as_texts(b"12", "id")

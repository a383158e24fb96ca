"""Hits as a DataFrame, a notebook's table, CSV and JSON lines; the metadata beside hits, in a form that people read."""

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index
from sonde.indexer.store.tabular import frame_of
from sonde.pipelines.search.results import Hit, Passage, Results, Scores
from sonde.pipelines.search.tables import BEFORE, hit_columns, shown_metadata, telling_fields, to_csv, to_jsonl

SCRIPT = "<script>alert('x')</script>"
ROWS = [
    {"id": "1", "title": SCRIPT, "text": f"battery {SCRIPT}", "stars": 4, "pages": 12, "score": "own"},
    {"id": "2", "title": "", "text": "battery " * 200, "stars": 2, "score": None},
]


@pytest.fixture
def results(tmp_path: Path) -> Results:
    made: Collection = index(ROWS, tmp_path / "c.sonde", id="id", title="title", text="text", encoder=FakeEncoder())  # type: ignore[arg-type]
    return made.search("battery")


def test_a_data_frame_has_scores_and_metadata(results: Results) -> None:
    frame = results.to_pandas()
    assert list(frame.columns) == [*BEFORE, "stars", "pages", "metadata.score"]
    assert frame["id"].tolist() == [hit.id for hit in results] and frame["rank"].tolist() == [1, 2]
    assert frame["score"].tolist() == [hit.score for hit in results]
    assert frame["relevance"].tolist() == [hit.relevance for hit in results]
    assert dict(zip(frame["id"], frame["stars"], strict=True)) == {"1": 4, "2": 2}
    assert frame.set_index("id").loc["1", "metadata.score"] == "own"
    assert str(frame["pages"].dtype) == "Int64"


def test_integers_and_booleans_stay_beside_missing_values() -> None:
    frame = frame_of([{"stars": 2**60 + 1, "new": True, "all": 1, "price": 2}, {"all": 2, "new": None, "price": 0.5}])
    assert frame.dtypes.astype(str).tolist() == ["Int64", "boolean", "int64", "float64"]
    assert frame["stars"].tolist()[0] == 2**60 + 1


def test_a_result_without_hits_has_the_columns(results: Results, tmp_path: Path) -> None:
    nothing = Collection.open(tmp_path / "c.sonde", encoder=FakeEncoder()).search("battery", where="stars > 9")  # type: ignore[arg-type]
    assert list(nothing.to_pandas().columns) == list(BEFORE) and len(nothing.to_pandas()) == 0
    assert "<tbody></tbody>" in nothing._repr_html_()


def test_a_notebook_gets_a_table_without_markup_of_the_texts(results: Results) -> None:
    html = results._repr_html_()
    assert html.startswith('<div class="tex2jax_ignore mathjax_ignore">'), "dollar signs are no formulas"
    assert "<script" not in html and html.count("&lt;script&gt;") == 2
    assert "<td>2</td>" in html and "…</td>" in html
    for hit in results:
        assert f"<td>{hit.relevance:.2f}" in html


def test_files_have_all_columns_or_those_that_are_chosen(tmp_path: Path) -> None:
    rows = [{"id": "1", "text": "a late parcel", "stars": 1, "score": 7, "title": 'a "b", c'},
            {"id": "2", "text": "a lost parcel", "stars": 2, "score": 8, "title": "Ticket 2"}]  # fmt: skip
    made: Collection = index(rows, tmp_path / "d.sonde", id="id", encoder=FakeEncoder())  # type: ignore[arg-type]
    found = made.search("parcel")
    lines = to_csv(found).decode().splitlines()
    assert lines[0] == "rank,id,title,relevance,score,dense,lexical,rerank,passage,text,stars,metadata.score"
    assert lines[0].split(",") == hit_columns(made.fields())
    assert '"a ""b"", c"' in "".join(lines)
    assert [json.loads(line)["id"] for line in to_jsonl(found).splitlines()] == [hit.id for hit in found]
    some = ["metadata.score", "id", "title"]
    assert sorted(to_csv(found, some).decode().splitlines()) == [
        '7,1,"a ""b"", c"', "8,2,Ticket 2", "metadata.score,id,title",
    ]  # fmt: skip
    assert {tuple(json.loads(line).items()) for line in to_jsonl(found, some).splitlines()} == {
        (("metadata.score", 7), ("id", "1"), ("title", 'a "b", c')),
        (("metadata.score", 8), ("id", "2"), ("title", "Ticket 2")),
    }


def hit(id: str, **metadata: Any) -> Hit:
    passage = Passage(0, 4, "text")
    return Hit(1, id, 1.0, "", "text", metadata, Scores(), passage, passage)


def test_fields_in_which_hits_differ_are_shown() -> None:
    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    hits = [
        hit("a.txt", path="a.txt", lang="en", stars=1, bytes=17, modified=early),
        hit("b.txt", path="b.txt", lang="en", stars=None, bytes=18, modified=late),
    ]
    assert telling_fields(hits) == ["stars"]
    assert telling_fields(hits[:1]) == ["lang", "stars"]
    assert telling_fields([]) == []


def test_lists_of_objects_are_left_out() -> None:
    hits = [hit("1", asked=['{"id": 1}'], tags=["a"]), hit("2", asked=['{"id": 2}'], tags=["b"])]
    assert telling_fields(hits) == telling_fields(hits[:1]) == ["tags"]


def test_types_tell_values_apart() -> None:
    assert telling_fields([hit("1", code=1), hit("2", code="1")]) == ["code"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (datetime(2026, 11, 23, 7, 58, 30, 123456), "2026-11-23 07:58"),
        (datetime(2026, 11, 23), "2026-11-23"),
        (date(2026, 11, 23), "2026-11-23"),
        (True, "true"),
        (1234567, "1,234,567"),
        (2024, "2024"),
        (0.1 + 0.2, "0.3"),
        (["a", "b"], "a, b"),
        ("x" * 100, "x" * 80 + " …"),
    ],
)
def test_values_are_short(value: Any, said: str) -> None:
    assert shown_metadata({"field": value}, ["field"]) == [("field", said)]


def test_empty_values_are_left_out() -> None:
    assert shown_metadata({"a": None, "b": "", "c": [], "d": 0}, ["a", "b", "c", "d", "e"]) == [("d", "0")]

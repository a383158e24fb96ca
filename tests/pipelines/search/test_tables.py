"""Hits as a DataFrame, as a notebook's table, and as CSV and JSON lines."""

import json
from pathlib import Path

import pytest
from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index
from sonde.indexer.store.tabular import frame_of
from sonde.pipelines.search.results import Results
from sonde.pipelines.search.tables import BEFORE, hit_columns, to_csv, to_jsonl

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

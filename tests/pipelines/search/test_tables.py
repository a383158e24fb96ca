"""Hits as a DataFrame and as a notebook's table."""

from pathlib import Path

import pytest
from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index
from sonde.indexer.store.tabular import frame_of
from sonde.pipelines.search.results import Results
from sonde.pipelines.search.tables import BEFORE

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

"""The Search page: what it finds, filters, keeps and puts into its address, and what it says where it cannot go on."""

# ruff: noqa: F811  (a fixture that is imported)

import html
import json
import re
import shutil
from datetime import date
from typing import Any

import pytest
from fake_encoder import FakeEncoder
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest
from ui_overview import kept_job, shop, topics
from ui_pages import MARKUP, Pages, pages, shown, unread  # noqa: F401  (pages is a fixture)

from sonde.app.api import Collection, index
from sonde.app.ui import search
from sonde.app.ui.hits import lit
from sonde.app.ui.query import _fields
from sonde.indexer.errors import SondeError
from sonde.indexer.store.kinds import COARSE, FINE, TOPIC
from sonde.indexer.store.lock import writer_lock
from sonde.indexer.store.run_writing import NewRun, Snapshot, write_run
from sonde.indexer.store.runs import assignments_of, find_run, items_of
from sonde.pipelines.analysis.describe import example_queries
from sonde.pipelines.search.facets import Facet, choices_among, facets
from sonde.pipelines.search.filters import documents_where
from sonde.pipelines.search.filters.compile import among, between, containing, every

DAYS = [
    {"id": str(n), "text": f"Parcel number {n} came late to the door.", "title": f"Ticket {n}", "stars": n % 5,
     "price": n / 4, "day": date(2024, 1 + n % 12, 3), "ok": n % 3 == 0, "tags": ["a", "b"] if n % 2 else ["b"],
     "code": f"code {n}", "kind": ("post", "courier")[n % 2]}
    for n in range(240)
]  # fmt: skip


def hits(page: AppTest) -> list[str]:
    """Return the titles of the hits, in their order."""
    rows = [each.value for each in page.html if "<div class='sonde-hit'>" in each.value]
    return [re.sub("<[^>]*>", "", row.split("sonde-title'>")[1].split("<span")[0]) for row in rows]


def test_before_a_query(pages: Pages) -> None:
    pages.collection()
    page = pages.open("search")
    assert "3 documents in 3 passages" in shown(page).replace("\\", "")
    assert hits(page) == []
    page.button(key="example0").click().run()
    assert page.text_input(key="q").value == page.query_params["q"]
    assert len(hits(page)) > 0


def test_filters_without_a_query_list_what_passes(pages: Pages) -> None:
    """A link such as "duplicate: 177" of a check led to an empty page."""
    pages.collection("days", DAYS)
    page = pages.open("search", where="stars = 2")
    said = shown(page)
    assert "48 documents with these filters, in the order added." in said
    texts = [line for line in said.splitlines() if line.startswith("Parcel number")]
    assert texts == [f"Parcel number {n} came late to the door." for n in range(2, 50, 5)]
    page = pages.open("search", where="stars = 9")
    assert "No document passes the filters." in shown(page)
    unread(page)


@pytest.mark.parametrize("mode", ["hybrid", "lexical"])
def test_what_to_try_where_nothing_is_found_fits_the_mode(pages: Pages, mode: str) -> None:
    pages.collection("days", DAYS)
    page = pages.open("search", q="zzz", mode=mode, where="stars = 9")
    assert ("hybrid or dense mode" in shown(page)) == (mode == "lexical")
    assert "Try other words" in shown(page) and "a filter" in shown(page)


@pytest.mark.parametrize(("command", "seen"), [("index", 1), ("label", 0)])
def test_an_index_run_is_seen_beside_the_hits(pages: Pages, command: str, seen: int) -> None:
    pages.collection()
    job = kept_job(pages, [command, "reviews.sonde"], collection="reviews", code=None)
    page = pages.open("search", q="battery died")
    assert [button.key for button in page.button].count(f"cancel-{job.id}") == seen
    assert len(hits(page)) > 0


def test_hits_with_their_reasons(pages: Pages) -> None:
    collection = pages.collection()
    page = pages.open("search", q="battery died")
    expected = collection.search("battery died")
    assert hits(page) == [hit.title for hit in expected]
    assert expected[0].id == "1"
    first = next(each.value for each in page.html if "sonde-excerpt'" in each.value)
    assert "<mark class='sonde'>battery</mark>" in first
    assert "sonde-closest" in first
    assert "The battery died after a week." in shown(page)
    assert "stars 1" in shown(page)
    assert not page.dataframe
    page.session_state["why:1"] = True
    page.run()
    table = page.dataframe[0].value
    assert table["part"].tolist() == [
        "Relevance", "Score for sorting", "Cosine of query and passage", "BM25"
    ]  # fmt: skip
    assert table["value"].tolist()[:2] == [f"{expected[0].relevance:.3f}", f"{expected[0].score:.3f}"]


def test_a_hit_without_a_title_is_not_headed_by_a_hash(pages: Pages) -> None:
    text = "The battery died after a week."
    index([{"text": text}, {"text": "Great phone."}], pages.shelf / "bare.sonde", encoder=pages.encoder)  # type: ignore[arg-type]
    page = pages.open("search", collection="bare", q="battery died")
    assert hits(page) == ["", ""]
    [id] = [hit.id for hit in Collection.open(pages.shelf / "bare.sonde", encoder=pages.encoder).search("battery", k=1)]  # type: ignore[arg-type]
    assert len(id) == 32 and id not in shown(page)
    page = pages.open("search", collection="bare", like=id)
    assert text in page.info[0].value.replace("\\", "") and id not in page.info[0].value
    pages.collection("own", [{"id": "T-1007", "text": text}])
    assert hits(pages.open("search", collection="own", q="battery")) == ["T-1007"]


def test_relevance_leads_and_weak_hits_are_marked(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    collection = pages.collection()
    [first, *_] = collection.search("battery died")
    page = pages.open("search", q="battery died")
    assert any(f"<span class='sonde-score'>{first.relevance:.2f}</span>" in each.value for each in page.html)
    assert "Nothing here seems to answer this" not in shown(page)
    monkeypatch.setattr("sonde.pipelines.search.first_stage.WEAK", 1.1)
    page = pages.open("search", q="the battery exploded")
    assert page.info[0].value.startswith("Nothing here seems to answer this")
    page = pages.open("search", q="the battery died")
    assert page.info[0].value.startswith("No hit is close to this in meaning")
    assert "But 1 hit has all the words of the query" in page.info[0].value.replace("\\", "")
    assert any("<span class='sonde-score'>weak 0." in each.value for each in page.html)


def test_the_address_is_the_whole_state(pages: Pages) -> None:
    collection = pages.collection(rows=DAYS)
    page = pages.open("search", q="parcel", mode="lexical", where="stars = 1", k="20", threshold="0.01")
    expected = collection.search("parcel", k=20, mode="lexical", where="stars = 1", threshold=0.01)
    assert hits(page) == [hit.title for hit in expected]
    assert (page.segmented_control(key="mode").value, page.selectbox(key="k").value) == ("lexical", 20)
    page.segmented_control(key="mode").set_value("dense").run()
    assert hits(page) == [hit.title for hit in collection.search("parcel", k=20, mode="dense", where="stars = 1")]


def test_filters_follow_the_types(pages: Pages) -> None:
    collection = pages.collection(rows=DAYS)
    page = pages.open("search", q="parcel", filters="true")
    page.slider(key="f.stars").set_range(1, 2).run()
    page.text_input(key="f.code").input("code 1").run()
    choice = next(each for each in page.multiselect if each.label == "kind")
    assert choice.options == ["courier (120)", "post (120)"]
    choice.set_value(["post"]).run()
    where = "(stars >= 1 AND stars <= 2) AND (code ILIKE '%code 1%' ESCAPE '\\') AND (kind = 'post')"
    assert [each.value for each in page.code] == [where]
    with collection.stored.view() as view:
        passed = {DAYS[doc - 1]["title"] for doc in documents_where(view.catalog, where).tolist()}
    assert 0 < len(hits(page)) <= 10 and set(hits(page)) <= passed
    assert page.query_params["f.kind"] in ("post", ["post"])
    bound = {"f.stars": ["1", "2"], "f.code": "code 1"}  # what a browser puts into the address itself
    again = pages.open("search", **dict(page.query_params.items()) | bound)
    assert [each.value for each in again.code] == [where]
    again.button(key="clear").click().run()
    assert [each.value for each in again.code] == []
    assert "f.kind" not in again.query_params


def test_a_facet_filters(pages: Pages) -> None:
    pages.collection(rows=DAYS)
    page = pages.open("search", q="parcel")
    [post] = [button for button in page.button if button.label.startswith("post")]
    post.click().run()
    assert [each.value for each in page.code] == ["kind = 'post'"]
    assert pages.again("search", page).code[0].value == "kind = 'post'"


def test_paging(pages: Pages) -> None:
    collection = pages.collection(rows=DAYS)
    expected = [hit.title for hit in collection.search("parcel late", k=30)]
    page = pages.open("search", q="parcel late", page="2")
    assert hits(page) == expected[10:20]
    page.pagination[0].set_value(3).run()
    assert hits(page) == expected[20:30]
    assert hits(pages.again("search", page)) == expected[20:30]
    page.text_input(key="q").input("door").run()
    assert "page" not in page.query_params


def test_judging(pages: Pages) -> None:
    collection = pages.collection()
    page = pages.open("search", q="battery died")
    best = collection.search("battery died")[0].id
    page.button(key=f"good:{best}").click().run()
    page.button(key="bad:3").click().run()
    assert collection.judgements().of("battery died") == {best: 1, "3": 0}
    assert "Tablet" not in hits(page)
    assert "1 hit on this page hidden: you judged them not relevant." in shown(page)
    page.toggle(key="hidden").set_value(True).run()
    assert "Tablet" in hits(page)
    page.button(key="bad:3").click().run()
    assert collection.judgements().of("battery died") == {best: 1}


def test_judging_while_the_collection_is_written(pages: Pages) -> None:
    collection = pages.collection()
    with writer_lock(collection.path):
        page = pages.open("search", q="battery")
        page.button(key="good:1").click().run()
        assert not page.error
    assert collection.judgements().of("battery") == {"1": 1}


def test_more_like_this(pages: Pages) -> None:
    collection = pages.collection()
    page = pages.open("search", q="battery")
    page.button(key="like:1").click().run()
    assert page.query_params["like"] in ("1", ["1"])
    expected = [hit.title for hit in collection.similar("1")]
    assert hits(page) == expected == hits(pages.again("search", page))
    page.button(key="back").click().run()
    assert "like" not in page.query_params
    assert len(hits(page)) == 3


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ({"q": "battery", "where": "stars <"}, "the filter 'stars <' cannot be read"),
        ({"q": "battery", "where": "sters = 1"}, "did you mean 'stars'"),
        ({"q": "battery", "where": "stars = 9"}, "No document passes the filter."),
        ({"q": "xyzzy", "mode": "lexical"}, "No document has any of these words."),
        ({"q": "battery", "threshold": "7.5"}, "Nothing similar enough"),
        ({"like": "99"}, "there is no document with the id '99'"),
        ({"q": "battery", "mode": "magic", "k": "-1", "page": "99999999999999999999"}, "3 hits"),
        ({"q": " ".join(["battery"] * 200)}, "the model reads the first 64"),
    ],
)
def test_what_cannot_be_asked_is_a_sentence(pages: Pages, address: dict[str, str], said: str) -> None:
    pages.collection()
    assert said.lower() in shown(pages.open("search", **address)).replace("\\", "").lower()


def test_a_missing_model_is_a_sentence(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    pages.collection()

    def gone(spec: Any, **_: Any) -> Any:
        raise SondeError("the model fake cannot be had")

    monkeypatch.setattr("sonde.app.ui.workspace.load_encoder_for", gone)
    assert "the model fake cannot be had" in shown(pages.open("search", q="battery"))
    assert hits(pages.open("search", q="battery", mode="lexical")) == ["Phone"]


def test_an_empty_collection(pages: Pages) -> None:
    collection = pages.collection()
    collection.delete(["1", "2", "3"])
    assert "This collection is empty" in shown(pages.open("search", q="battery"))


def test_text_stays_text(pages: Pages) -> None:
    row = {"id": MARKUP, "title": MARKUP, "text": f"battery {MARKUP}", MARKUP: MARKUP, "kind": MARKUP}
    collection = pages.collection(
        rows=[row, {"id": "2", "text": "battery two", "title": "x", MARKUP: "b", "kind": "c"}]
    )
    collection.judge("battery", ["2"], 0)
    for address in ({"q": "battery", "filters": "true"}, {"like": MARKUP}, {"q": MARKUP}, {"q": "a", "where": MARKUP}):
        page = pages.open("search", **address)
        unread(page)
    page = pages.open("search", q="battery", filters="true")
    assert f"battery {MARKUP}" in shown(page)
    assert any("&lt;script&gt;" in each.value for each in page.html)


def test_hits_on_the_map(pages: Pages) -> None:
    collection = pages.collection(rows=DAYS)
    collection.map()
    page = pages.open("search", q="parcel")
    figure = json.loads(page.get("plotly_chart")[0].proto.spec)  # type: ignore[attr-defined]
    assert [trace["type"] for trace in figure["data"]] == ["scattergl", "scattergl"]
    assert len(figure["data"][1]["text"]) == 100


def test_the_columns_of_exported_hits_are_chosen(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    pages.collection(rows=[row | {"score": 7} for row in DAYS[:9]])
    asked: list[Any] = []
    monkeypatch.setattr(search, "to_csv", lambda _, columns: asked.append(columns) or b"")
    offered: dict[str, Any] = {}
    monkeypatch.setattr(search.st, "download_button", lambda label, data, *_, **__: offered.update({label: data}))
    page = pages.open("search", q="parcel")
    box = page.multiselect(key="hits_columns")
    assert (box.value, box.placeholder) == ([], "All columns")
    assert box.options[:3] == ["rank", "id", "title"] and box.options[-1] == "metadata.score"
    offered["CSV"]()
    box.set_value(["id", "stars"]).run()
    offered["CSV"]()
    assert asked == [None, ["id", "stars"]]


def test_a_note_names_the_page_and_not_the_command(pages: Pages) -> None:
    shutil.rmtree(pages.collection().path / "lexical")
    said = shown(pages.open("search", q="parcel")).replace("\\", "")
    assert "meaning alone: Repair (Data page, Health) rebuilds it." in said and "sonde repair" not in said


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    return index(DAYS, tmp_path_factory.mktemp("days") / "days.sonde", id="id", encoder=FakeEncoder())  # type: ignore[arg-type]


def test_facets(days: Collection) -> None:
    days.tag("few", ids=["1", "2"], change="replace" if days.runs("tag") else "new")
    with days.stored.view() as view:
        found = {facet.name: facet for facet in facets(view)}
        among_two = choices_among(view, ["1", "2"], found.values())
    assert found["stars"] == Facet("stars", "integer", 240, 0, 4)
    assert (found["price"].low, found["price"].high) == (0.0, 59.75)
    assert (found["day"].low, found["day"].high) == (date(2024, 1, 3), date(2024, 12, 3))
    assert found["ok"].choices == ((False, 160), (True, 80))
    assert found["tags"].choices == (("b", 240), ("a", 120))
    assert (found["code"].documents, found["code"].choices) == (240, ())
    assert found["tag:few"].choices == ((False, 238), (True, 2))
    assert among_two["kind"] == [("courier", 1), ("post", 1)]
    assert among_two["tags"] == [("b", 2), ("a", 1)]
    assert among_two["tag:few"] == [(True, 2)]


def test_example_queries_come_from_the_texts(days: Collection) -> None:
    with days.stored.view() as view:
        found = example_queries(view)
        assert found == example_queries(view)
    assert found
    words = {word for row in DAYS for word in f"{row['title']} {row['text']}".lower().replace(".", "").split()}
    assert {word for query in found for word in query.lower().split()} <= words


def test_conditions_mean_what_they_say(days: Collection) -> None:
    conditions = {
        among("kind", "text", ["post"]): lambda row: row["kind"] == "post",
        among("kind", "text", ["post", "x'y"]): lambda row: row["kind"] == "post",
        among("tags", "list", ["a", "c"]): lambda row: "a" in row["tags"],
        among("ok", "boolean", [False]): lambda row: not row["ok"],
        among("ok", "boolean", [False, True]): lambda row: True,
        between("stars", 1, 3): lambda row: 1 <= row["stars"] <= 3,
        between("price", None, 2.5): lambda row: row["price"] <= 2.5,
        between("day", date(2024, 2, 3), date(2024, 4, 2)): lambda row: 2 <= row["day"].month <= 3,
        containing("code", "E 12"): lambda row: "code 12" in row["code"],
        containing("code", "%"): lambda row: False,
        every(["stars = 1", " ", "ok OR NOT ok"]) or "": lambda row: row["stars"] == 1,
    }
    with days.stored.view() as view:
        for where, passes in conditions.items():
            found = documents_where(view.catalog, where).tolist()
            assert [doc - 1 for doc in found] == [n for n, row in enumerate(DAYS) if passes(row)], where


@given(value=st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=1, max_size=20))
def test_any_value_can_be_asked_for(days: Collection, value: str) -> None:
    with days.stored.view() as view:
        for where in (among("code", "text", [value, "code 7"]), f"{containing('code', value)} OR code = 'code 7'"):
            found = {DAYS[doc - 1]["code"] for doc in documents_where(view.catalog, where).tolist()}
            assert "code 7" in found
            assert found <= {"code 7"} | {row["code"] for row in DAYS if value.lower() in row["code"]}


@given(text=st.text(max_size=40), spans=st.lists(st.tuples(st.integers(-3, 45), st.integers(-3, 45)), max_size=4))
def test_highlighting_changes_no_text(text: str, spans: list[tuple[int, int]]) -> None:
    shown = lit(text, 0, spans, spans[:1])
    read = html.unescape(re.sub(r"</?(?:mark|span)[^>]*>", "", shown))
    assert read == text.replace("\f", " ")  # a page break is shown as a space


def test_filters_leave_no_empty_cell_and_no_group_twice() -> None:
    whole = Facet("topic:t name", "text", 9, choices=(("late", 9),), run=True)
    shown = [
        Facet("stars", "integer", 9, 1, 5), Facet("day", "date", 9, date(2024, 1, 1), date(2024, 1, 2)),
        Facet("note", "text", 9), whole,
    ]  # fmt: skip
    left_out = [
        Facet("same", "integer", 9, 7, 7), Facet("one day", "date", 9, date(2024, 1, 1), date(2024, 1, 1)),
        Facet("infinite", "real", 9), Facet("list", "list", 9), Facet("nothing", "text", 0),
    ]  # fmt: skip
    assert _fields([*left_out, *shown]) == shown


def test_a_level_with_the_groups_of_its_topics_is_one_filter(pages: Pages) -> None:
    made = shop(pages)
    topics(made)
    with made.stored.view() as view:
        snapshot, found = Snapshot.of(view), find_run(view.catalog, TOPIC, "topics")
        docs, numbers, scores = assignments_of(view.catalog, found)
        items = items_of(view.catalog, found)
    for kind, those in ((COARSE, numbers), (FINE, (numbers + 1) % 4 // 3)):
        write_run(made.stored, NewRun(kind, "topics", {}, items=items, assignments=(docs, those, scores)), snapshot)
    same = {facet.name: facet.same for facet in made.facets() if facet.run}
    assert same == {"topic:topics name": "", "coarse:topics name": "topic:topics name", "fine:topics name": ""}
    page = pages.open("search", filters="true")
    assert [one.label.replace("\\", "") for one in page.multiselect if "topics" in one.label] == [
        "topic:topics name", "fine:topics name"
    ]  # fmt: skip

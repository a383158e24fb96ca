"""Answers of the MCP server that could mislead an assistant, or fill all that it can read."""

from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcp_client import call

from sonde.app.api import Collection, index
from sonde.app.mcp import server_of
from sonde.indexer.store.kinds import TOPIC
from sonde.indexer.store.run_writing import NewRun, Snapshot, write_run
from sonde.indexer.store.runs import Item

Ask = Callable[..., Any]
LONG = "The parcel came late. " * 2_000
DAYS = 120
TOPICS = 60


def rows() -> list[dict[str, Any]]:
    """Return a document for each of many days; one text is long, and one value too."""
    found = [
        {"id": str(number), "text": f"Parcel {number} was late.", "title": f"Ticket {number}",
         "day": date(2026, 1, 1) + timedelta(days=number), "minutes": number * 7 % 101, "answer": f"Answer {number}.",
         "priority": "high" if number % 3 else "low"}
        for number in range(DAYS)
    ]  # fmt: skip
    found[3]["text"], found[4]["answer"], found[5]["text"] = LONG, "x" * 5_000, "The screen is broken."
    return found


@pytest.fixture(scope="module")
def assistant(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    path = tmp_path_factory.mktemp("limits") / "tickets.sonde"
    collection = index(rows(), path, id="id", text="text", title="title", model="static")
    with collection.stored.view() as view:
        taken = Snapshot.of(view)
    items = [
        Item(number, f"topic {number}", {"terms": [[f"word{each}", 0.5] for each in range(20)], "leaves": [1, 2],
                                         "representatives": [str(number), "gone"]})
        for number in range(TOPICS)
    ]  # fmt: skip
    assigned = taken.docs, np.arange(DAYS) % TOPICS, np.ones(DAYS)
    write_run(collection.stored, NewRun(TOPIC, "topics", {}, items=items, assignments=assigned), taken)
    server = server_of(Collection.open(path))
    return lambda tool, **arguments: call(server, tool, **arguments)


def test_a_count_of_many_days_is_by_month_and_none_is_missing(assistant: Ask) -> None:
    found = assistant("count", by="day")
    expected = Counter(f"{row['day']:%Y-%m}" for row in rows())
    assert {each["value"]: each["documents"] for each in found["values"]} == expected
    assert (found["period"], found["low"], found["high"]) == ("month", "2026-01-01", "2026-04-30")


def test_values_that_are_not_listed_are_counted(assistant: Ask) -> None:
    found = assistant("count", by="minutes")
    distinct = len({row["minutes"] for row in rows()})
    assert found["distinct"] == distinct and len(found["values"]) == 50
    assert found["others"]["values"] == distinct - 50
    assert found["others"]["documents"] + sum(each["documents"] for each in found["values"]) == DAYS
    values = [each["value"] for each in assistant("count", by="answer")["values"]]
    assert max(map(len, values)) <= 302


def test_a_value_that_never_occurs_is_said(assistant: Ask) -> None:
    assert assistant("count", where="priority = 'High'") == {
        "documents": 0,
        "notes": ["no document passes the filter: priority is never 'High': did you mean 'high'? values: high, low"],
    }
    assert "priority is never 'urgent'" in assistant("count", by="day", where="priority = 'urgent'")["notes"][0]


def test_a_trend_needs_an_order(assistant: Ask) -> None:
    said = assistant("trends", run="topics", by="priority")
    assert said == "'priority' is no column of dates or numbers, so its values have no order: `count` counts them"
    said = assistant("trends", run="topics", by="minutes")
    assert said == "'minutes' has too many different numbers for a trend: `compare` two parts, such as minutes < 10"
    found = assistant("trends", run="topics", by="day")
    assert sum(found["total"].values()) == DAYS
    assert len(found["items"]) == 50 and found["items_with_less_change"] == TOPICS - 50
    assert found["items"][0]["change"] >= found["items"][-1]["change"]


def test_lists_of_groups_are_short_and_one_group_is_whole(assistant: Ask) -> None:
    found = assistant("list_topics", k=20)
    assert (found["groups"], len(found["items"]), found["next_offset"]) == (TOPICS, 20, 20)
    words = [f"word{number}" for number in range(6)]
    assert found["items"][0] == {"number": 0, "name": "topic 0", "documents": 2, "terms": words}
    last = assistant("list_topics", k=20, offset=40)
    assert [each["number"] for each in last["items"]] == list(range(40, 60)) and "next_offset" not in last
    group = assistant("list_topics", number=7)["group"]
    assert len(group["terms"]) == 20
    assert group["typical"] == [{"id": "7", "title": "Ticket 7", "text": "Parcel 7 was late."}], "none that is gone"
    assert assistant("list_topics", number=99).startswith("there is no group 99")
    assert assistant("list_topics", offset=-1) == "offset is -1: give 0 or more"


def test_a_long_text_comes_in_parts(assistant: Ask) -> None:
    first = assistant("get_document", id="3")
    assert (len(first["text"]), first["characters"], first["next_offset"]) == (20_000, len(LONG), 20_000)
    text, at = first["text"], first["next_offset"]
    while at:
        part = assistant("get_document", id="3", offset=at)
        text, at = text + part["text"], part.get("next_offset")
    assert text == LONG
    assert assistant("get_document", id="3", offset=4, length=6)["text"] == LONG[4:10]
    assert assistant("get_document", id="3", length=0) == "length is 0: give 1 to 20,000"


def test_hits_and_members_are_short(assistant: Ask) -> None:
    [hit] = [each for each in assistant("search", query="parcel 4 late", k=50)["hits"] if each["id"] == "4"]
    assert hit["metadata"]["answer"] == "x" * 300 + " …"
    documents = assistant("members", run="topics", number=3)["documents"]
    assert [each["id"] for each in documents] == ["3", "63"]
    assert documents[0]["text"] == LONG[:300].rstrip() + " …"
    assert assistant("members", run="topics", number=3, k=1)["next_offset"] == 1


def test_an_answer_names_its_document(assistant: Ask) -> None:
    found = assistant("ask", question="Is the screen broken?", threshold=0.3)
    assert (found["id"], found["answer"], found["title"]) == ("5", "Answer 5.", "Ticket 5")
    assert found["excerpt"] == "The screen is broken." and 0 <= found["relevance"] <= 1


def test_the_id_of_a_document_is_no_query(assistant: Ask) -> None:
    found = assistant("search", query="17")
    assert found["notes"][0] == "the query is the id of a document: `get_document` returns it"
    assert found["hits"]


def test_words_that_chance_explains_are_not_listed(assistant: Ask) -> None:
    found = assistant("compare", first="minutes < 50 AND id != '3'", second="minutes >= 50")
    assert [part["terms"] for part in found["parts"]] == [[], []]


def test_errors_name_no_folder(assistant: Ask, tmp_path: Path) -> None:
    assert assistant("similar", id="nope") == "there is no document with the id 'nope' in tickets.sonde"
    assert str(tmp_path.parent) not in assistant("members", run="other", number=1)


def test_a_search_of_all_collections_is_ordered_by_relevance(tmp_path: Path) -> None:
    made = {}
    for name, text in (("fruit", "Apples and pears are fruit."), ("cars", "The car needs fuel.")):
        index([{"id": "1", "text": text, name: 1}], tmp_path / f"{name}.sonde", id="id", text="text", model="static")
        made[name] = Collection.open(tmp_path / f"{name}.sonde")
    server = server_of(*made.values())
    hits = call(server, "search", query="fuel of a car", collection="all", k=2)["hits"]
    alone = {name: round(each.search("fuel of a car")[0].relevance, 4) for name, each in made.items()}
    expected = sorted(alone.items(), key=lambda pair: -pair[1])
    assert [(hit["collection"], hit["relevance"]) for hit in hits] == expected
    part = call(server, "search", query="fuel", collection="all", where="cars = 1")
    assert [hit["collection"] for hit in part["hits"]] == ["cars"]
    assert "fuel" in part["hits"][0]["excerpt"] and "fruit: there is no field 'cars'" in str(part["notes"])
    foreign = call(server, "search", query="the capital of Mongolia", collection="all")
    assert foreign["notes"] == ["nothing here seems to answer this: every hit is weak"]
    assert all(hit["weak"] for hit in foreign["hits"]) and len(foreign["hits"]) == 2
    none = call(server, "search", query="Mongolia", collection="all", mode="lexical")
    assert none == {"notes": [f"{name}: no document has any of these words" for name in made], "hits": []}
    assert call(server, "search", query=" ", collection="all").startswith("the query is empty")
    assert call(server, "search", query="fuel") == "name the collection: there are fruit, cars"


def test_labels_as_a_list(assistant: Ask) -> None:
    found = assistant("label", texts=["the parcel is late"], labels=["parcel", "weather"])
    assert found["labels"] == ["parcel"] and 0 <= found["none"][0] <= 1

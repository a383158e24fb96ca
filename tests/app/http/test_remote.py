"""A remote collection is the local one: each test runs over both, with the same results and the same errors."""
# ruff: noqa: F811  (fixtures that are imported)

import re
import threading
import time
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_encoder import FakeEncoder
from fastapi.testclient import TestClient
from http_service import client, client_of, folder, local, refused  # noqa: F401  (fixtures)

import sonde
from sonde.app.api import Collection
from sonde.app.http.client import RemoteCollection
from sonde.app.http.remote import ABSENT, OF_RUNS, READING, WRITING
from sonde.indexer.errors import NothingToIndexError, SondeError, UsageError, WriterBusyError
from sonde.indexer.store.documents import DocumentText
from sonde.indexer.store.lock import writer_lock
from sonde.indexer.store.runs import Item, Run
from sonde.pipelines.evaluate.judgements import Judgements


@pytest.fixture(params=["local", "remote"])
def either(request: pytest.FixtureRequest, client: TestClient, local: Collection) -> Collection:
    """The same collection: opened here, and behind a service."""
    return local if request.param == "local" else RemoteCollection(client)  # type: ignore[arg-type]


@pytest.fixture
def both(client: TestClient, local: Collection) -> tuple[Collection, Collection]:
    return local, RemoteCollection(client)  # type: ignore[arg-type]


def test_a_collection_shows_itself_without_a_call() -> None:
    with sonde.connect("http://127.0.0.1:1/", collection="so") as remote:
        assert repr(remote) == "RemoteCollection('http://127.0.0.1:1', collection='so')"


def test_every_public_method_is_there_under_the_same_name(client: TestClient) -> None:
    remote = RemoteCollection(client)  # type: ignore[arg-type]
    here = {name for name in dir(Collection) if not name.startswith("_")}
    there = {name for name in dir(remote) if not name.startswith("_") and getattr(remote, name, 0) != 0}
    assert here - there == set(ABSENT)
    said = r"^a remote collection has no 'export': .* use to_pandas\(\) or rows\(\), and write the file here$"
    with pytest.raises(AttributeError, match=said):
        remote.export("a.csv")
    with pytest.raises(AttributeError, match=r"^a remote collection has no 'nonsense'$"):
        remote.nonsense  # type: ignore[attr-defined]  # noqa: B018
    assert set(READING) & set(WRITING) == set()


def test_the_documentation_lists_what_a_remote_collection_lacks() -> None:
    text = (Path(__file__).parents[3] / "docs" / "http.md").read_text("utf-8")
    _, table = text.split("| a remote collection lacks | why, and what to use |")
    rows = [line.split("|")[1] for line in table.split("\n\n")[0].splitlines()[2:]]
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(named) == sorted(ABSENT)


def test_searches(both: tuple[Collection, Collection]) -> None:
    for ask in (
        lambda c: c.search("battery died", 2, explain=True),
        lambda c: c.search("phone", settings=sonde.SearchSettings(mode="lexical", k=2), offset=1),
        lambda c: c.search("phone", weight=0.1, depth=2, fusion="rrf"),
        lambda c: c.similar("a/b", k=2),
        lambda c: c.like("the screen broke", where="stars < 5"),
        lambda c: next(iter(c.search_many(["battery", "screen"], k=1, mode="dense"))),
    ):
        here, there = (ask(each) for each in both)
        assert list(there) == list(here)
        assert (there.mode, there.strategy, there.notes) == (here.mode, here.strategy, here.notes)
    assert [len(found) for found in both[1].search_many("battery")] == [3]


def test_an_answer_or_none(both: tuple[Collection, Collection]) -> None:
    here, there = (each.ask("the battery died after a week", 0.1) for each in both)
    assert (there.answer, there.hit, there.threshold) == (here.answer, here.hit, here.threshold)
    assert [each.ask("who won", 2.0).answer for each in both] == [None, None]


def test_clusters_and_their_runs(either: Collection) -> None:
    found = either.cluster("two", k=2, seed=3)
    assert (found.run, [type(item) for item in found.clusters]) == ("two", [Item, Item])
    (run,) = either.runs("cluster")
    assert isinstance(run, Run)
    assert (run.kind, run.kind.groups, run.name, run.documents) == ("cluster", True, "two", 3)
    assert [item.number for item in either.run("two").items] == [0, 1]
    with pytest.raises(UsageError, match="the cluster run 'two' already exists"):
        either.cluster("two", k=2)
    assert either.cluster("two", k=2, replace=True).run == "two"
    assert either.cluster_run().run.name == "two"
    assert either.evaluate_clusters("two", truth="stars").documents == 3
    either.rename_run("two", "pair")
    either.rename_run("pair", "phones", item=0)
    assert either.run("pair").items[0].name == "phones"
    assert either.update_clusters("pair").added == 0
    either.delete_run("pair")
    assert either.runs() == []
    with pytest.raises(SondeError, match="there is no run 'pair' in this collection"):
        either.run("pair")


def test_what_a_person_says(either: Collection) -> None:
    assert either.tag("bad", where="stars <= 2").documents == 2
    assert either.tag("bad", ids="2", change="add").documents == 3
    assert [hit.id for hit in either.search("phone", where='NOT "tag:bad"')] == []
    assert either.judge("battery", "1", 2) == 1
    said = either.judgements()
    assert isinstance(said, Judgements) and said.qrels == {"q1": {"1": 2}}
    assert either.label(["phone", "tablet"], engine="similarity", name="kinds").counts.keys() == {"phone", "tablet"}
    assert "belongs to no document: '9'" in either.evaluate_labels("kinds", {"1": "phone", "9": ["phone"]}).notes[-2]
    assert either.correct({"1": "tablet"}, run="kinds").to_dict() == {"run": "kinds", "documents": 1, "total": 1}
    assert "1" not in [each.id for each in either.unsure("kinds")]
    with pytest.raises(UsageError, match="car"):
        either.correct({"1": "car"}, run="kinds")


def test_parts_and_duplicates(both: tuple[Collection, Collection]) -> None:
    here, there = (each.compare(where=("stars <= 2", "stars > 2")) for each in both)
    assert there == here
    assert both[1].duplicates(kinds=("exact",)).groups == both[0].duplicates(kinds=("exact",)).groups == ()
    with pytest.raises(UsageError, match="compare has no option 'filter'"):
        both[1].compare(filter=("a", "b"))  # type: ignore


def test_documents(both: tuple[Collection, Collection]) -> None:
    here, there = both
    assert there.get("a/b") == here.get("a/b")
    assert there.facets() == here.facets()
    few = {"kind": "range", "column": "stars", "low": 1, "high": 2}
    selection = {"parts": [few, {"kind": "query", "query": "the battery died", "k": 1, "not": True}]}
    assert [each.select(selection).tolist() for each in both] == [list(here.numbers("a/b").values())] * 2
    assert there.numbered(there.select(selection).tolist()) == [here.get("a/b")]
    assert there.embed("late", query=True).tolist() == here.embed("late", query=True).tolist()
    assert there.example_queries() == here.example_queries()
    report = there.put([{"id": "9", "text": "New.", "metadata": {"stars": 4}}, {"id": "1", "text": "Other."}])
    assert (report.added, report.replaced, report.unchanged) == (1, 1, 0)
    assert here.put([{"id": "9", "text": "New.", "metadata": {"stars": 4}}]).unchanged == 1
    assert here.get("9").metadata["stars"] == there.get("9").metadata["stars"] == 4
    for each in both:
        with pytest.raises(UsageError, match="needs an id and a text"):
            each.put([{"text": "no id"}])
        with pytest.raises(UsageError, match="there is no column 'star': there"):
            each.select({"parts": [few | {"column": "star"}]})
        with pytest.raises(SondeError, match="there is no document with the id 'nope'"):
            each.get("nope")


def test_metadata_has_the_types_of_the_collection(both: tuple[Collection, Collection]) -> None:
    made = {
        "id": "9",
        "text": "New screen.",
        "metadata": {"bought": date(2024, 5, 6), "at": datetime(2024, 5, 6, 7, 8)},
    }
    assert both[1].put([made]).added == 1
    asked = (
        lambda c: c.search("new screen", 1).hits,
        lambda c: c.like("New screen.", 1).hits,
        lambda c: c.similar("a/b", where="bought > '2024-01-01'").hits,
        lambda c: next(c.search_many("new screen", 1)).hits,
    )
    for ask in asked:
        here, there = (ask(each) for each in both)
        assert there == here
        assert there[0].metadata["bought"] == date(2024, 5, 6)
        assert isinstance(there[0].metadata["bought"], date)
    assert both[1].get("9") == both[0].get("9")


def test_arguments_of_many_kinds(both: tuple[Collection, Collection]) -> None:
    here, there = both
    for ask in (
        lambda c: c.search("battery", k=np.int64(2)).hits,
        lambda c: c.search("battery", rerank=True, rerank_model="late").hits[0].scores,
        lambda c: c.search("battery", k=None, settings=sonde.SearchSettings(k=1)).hits,
        lambda c: c.documents(np.array(["1", "2"])),
        lambda c: c.documents(np.array(["1", "2"], object)),
        lambda c: c.documents(np.array([1, 2])),
        lambda c: c.documents(each for each in ("2", "a/b")),
        lambda c: [found.hits for found in c.search_many(text for text in ("battery", "screen"))],
        lambda c: c.embed(np.array(["battery"])).tolist(),
        lambda c: c.embed(text for text in ["battery"]).tolist(),
        lambda c: c.matching("stars > 1", k=1, length=5),
        lambda c: c.texts(["1", "2"], 5),
        lambda c: [c.model, c.generation, c.export_notes(), c.uncounted_runs()],
        lambda c: c.contrast(["stars <= 2", "stars > 2"]),
    ):
        assert ask(there) == ask(here)
    assert [type(each) for each in there.matching("stars > 1")[1]] == [DocumentText] * 2
    labels = [sonde.Label("phone", "it rings"), sonde.Label("tablet")]
    assert there.label(labels, engine="similarity", name="objects").counts.keys() == {"phone", "tablet"}
    run = here.uncounted_runs()[0]
    assert (there.items(run), there.counted_run(run)) == (here.items(run), here.counted_run(run))
    assert there.put(document for document in [{"id": "9", "text": "New."}]).added == 1  # type: ignore[arg-type]
    there.cluster("two", k=2)
    there.cluster("three", k=3)
    assert there.compare_runs("two", "three") == here.compare_runs("two", "three")


def test_nothing_to_index_and_a_busy_writer(either: Collection, folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sonde.app.http.writes.WAIT", 0.2)
    with pytest.raises(NothingToIndexError, match=r"^there is nothing to index: no usable documents \(0 skipped\)$"):
        either.put([])
    with writer_lock(folder), pytest.raises(WriterBusyError, match=r"is being written to by|is writing"):
        either.delete("1")


def test_a_write_over_http_waits_for_another_writer(client: TestClient, folder: Any) -> None:
    remote = RemoteCollection(client)  # type: ignore[arg-type]
    for write in (lambda: remote.delete("1"), lambda: remote.put([{"id": "1", "text": "a battery"}]).added):
        held = threading.Event()
        threading.Thread(target=_hold, args=(folder, held)).start()
        assert held.wait(10)
        assert write() == 1


def _hold(folder: Any, held: threading.Event) -> None:
    with writer_lock(folder):
        held.set()
        time.sleep(0.5)


def test_text_that_is_not_unicode(client: TestClient) -> None:
    remote = RemoteCollection(client)  # type: ignore[arg-type]
    for call in (remote.search, remote.like, remote.embed, lambda text: remote.put([{"id": "1", "text": text}])):
        with pytest.raises(UsageError, match=r"^'a\\ud800b' is not valid Unicode: write it in UTF-8$"):
            call("a\ud800b")
    with pytest.raises(UsageError, match=r"^ids is .*: values of the type object cannot be sent to a service$"):
        remote.documents(object())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^documents is .*: values of the type object cannot be sent to a service$"):
        remote.put([{"id": "1", "text": "a", "metadata": {"made": object()}}])
    with pytest.raises(UsageError, match=r"^model cannot be chosen over HTTP: the service decides it$"):
        remote.classify("a", ["b", "c"], model="/etc")


def test_looking_after_it(either: Collection) -> None:
    assert len(either) == 3
    assert either.info().documents == 3
    assert either.verify() == []
    assert either.repair() == []
    assert [row["id"] for row in either.rows()] == ["1", "2", "a/b"]
    assert [row["id"] for row in either.rows(start=1, count=1)] == ["2"]
    vectors = [row["vector"] for row in either.rows(vectors=True)]
    assert [vector.dtype for vector in vectors] == [np.float32] * 3
    assert either.to_pandas().id.tolist() == ["1", "2", "a/b"]
    assert either.delete("1") == 1
    assert either.delete(where="stars > 4") == 1
    assert either.compact().removed == 2
    with pytest.raises(SondeError, match="nope"):
        either.delete("nope")
    assert len(either) == 1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda c: c.search("phone", tresh=1), UsageError, "search has no option 'tresh': did you mean 'threshold'?"),
        (lambda c: c.search("phone", where="star <= 2"), UsageError, "star"),
        (lambda c: c.search(" "), UsageError, "^the query is empty: say what to look for$"),
        (lambda c: c.search(""), UsageError, "^the query is empty: say what to look for$"),
        (lambda c: c.search("a", where=""), UsageError, "^the filter is empty: write a condition"),
        (lambda c: c.search("a", k="2"), UsageError, "^k is '2': give a whole number$"),
        (lambda c: c.search("a", rerank="late"), UsageError, "^rerank is 'late': give True or False$"),
        (
            lambda c: c.search("a", settings={"k": 1}),
            UsageError,
            "^settings is a dict: search takes sonde.Search",
        ),
        (lambda c: c.ask("a", settings=sonde.MapSettings()), UsageError, "^settings is a MapSettings: ask takes"),
        (lambda c: c.map(settings={"k": 1}), UsageError, "^settings is a dict: map takes sonde.MapSettings$"),
        (lambda c: c.like(" "), UsageError, "^the example text is empty$"),
        (lambda c: c.rows(count=-1), UsageError, "^count is -1: give a whole number, 0 or more$"),
        (lambda c: c.rows(start=float("nan")), UsageError, "^start is nan: give a whole number$"),
        (lambda c: c.put(["a"]), UsageError, "^'a' is not a valid document: give {'id': …, 'text': …}$"),
        (lambda c: c.embed(3.5), UsageError, "^3.5 is not a valid text: give a string or a list of strings$"),
        (lambda c: c.similar("nope"), SondeError, "there is no document with the id 'nope'"),
        (lambda c: c.delete(), UsageError, "say which documents to delete"),
        (lambda c: c.delete(3.5), UsageError, "3.5 is not a valid id"),
        (lambda c: c.tag("bad"), UsageError, "say which documents"),
        (lambda c: c.runs("clusters"), UsageError, "'clusters' is not a kind of run"),
        (lambda c: c.cluster(k=9), UsageError, "k is 9"),
        (lambda c: c.judge("battery", "nope"), SondeError, "nope"),
    ],
)
def test_mistakes_are_the_same(either: Collection, call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as raised:
        call(either)
    assert type(raised.value) is error


@pytest.fixture
def shop(tmp_path: Any) -> Iterator[tuple[Collection, Collection]]:
    words = ["parcel late", "parcel lost", "battery dead", "battery weak"]
    rows = [{"id": str(n), "text": f"{words[n % 4]} {n}"} for n in range(64)]
    sonde.index(rows, tmp_path / "shop.sonde", id="id", encoder=FakeEncoder())  # type: ignore[arg-type]
    opened = Collection.open(tmp_path / "shop.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    with client_of(tmp_path / "shop.sonde") as client:
        yield opened, RemoteCollection(client)  # type: ignore[misc]


def test_levels_of_topics(shop: tuple[Collection, Collection]) -> None:
    here, there = shop
    made, known = there.topics(names="terms"), here.topic_run()
    assert (made.levels, made.suggested, made.level) == (known.levels, known.suggested, known.level)
    assert made.inside() == known.inside()
    fine = there.topic_run("fine:topics")
    assert fine.name == "fine:topics" and len(fine) == made.levels["fine"]
    assert list(fine) == list(here.topic_run("fine:topics"))
    assert fine.documents(0, k=3) == here.topic_run("fine:topics").documents(0, k=3)
    assert there.assignments("fine:topics") == here.assignments("fine:topics")


def test_topics_and_maps(shop: tuple[Collection, Collection]) -> None:
    here, there = shop
    made = there.topics(min_size=10, names="terms", seed=1)
    known = here.topic_run("topics")
    assert list(made) == list(known)
    assert len(made) >= 2
    assert (made.name, made.outliers, made.newer) == (known.name, known.outliers, known.newer)
    assert made.tree() == known.tree()
    assert made.documents(made[0].number, k=3) == known.documents(known[0].number, k=3)
    assert made.search("battery", 1)[0][0] == known.search("battery", 1)[0][0]
    assert [topic.number for topic in made.merge([made[0].number, made[1].number])] == [
        topic.number for topic in here.topic_run()
    ]
    there.map(neighbours=5)
    drawn, stored = there.map_run(), here.map_run()
    assert drawn.update(notify=print).name == "map"
    assert drawn.places.tolist() == stored.places.tolist()
    assert (len(drawn), drawn.newer, drawn.regions) == (64, 0, stored.regions)
    whose = "RemoteCollection('http://127.0.0.1:8080')"
    assert repr(drawn) == f"RemoteMap('map', {whose})"
    assert repr(made) == f"RemoteTopics('topics', {len(made)} topics, {whose})"
    assert set(dir(drawn)) >= {name for names in OF_RUNS["map_run"] for name in names}
    assert set(dir(made)) >= {name for names in OF_RUNS["topic_run"] for name in names}
    assert made.topics == list(made)
    with pytest.raises(AttributeError, match=r"^a remote map has no 'draw': there are name, newer, places, regions"):
        drawn.draw("map.html")
    with pytest.raises(
        AttributeError, match=r"^remote topics have no 'draw_tree': there are by, documents, inside, level"
    ):
        made.draw_tree("tree.html")  # type: ignore[arg-type]


def test_a_request_chooses_no_model_no_folder_and_no_other_method(client: TestClient) -> None:
    for option in ("model", "device", "dtype", "settings", "progress"):
        body = {"options": {"labels": ["a", "b"], option: "/etc"}}
        refused(client.post("/write/label", json=body), 422, option, "the service decides it", field=option)
    for method in ("cluster", "topics"):
        body = {"options": {"namer": "http://localhost:1/v1", "namer_model": "m"}}
        refused(client.post(f"/write/{method}", json=body), 422, "the service decides it", field="namer")
    refused(client.post("/read/close", json={}), 404, "there is no method 'close'")
    refused(client.post("/read/open_catalog", json={}), 404, "there is no method")
    refused(client.post("/read/delete", json={"options": {"ids": ["1"]}}), 404, "there is no method 'delete'")
    refused(client.post("/read/topic_run/model", json={}), 404, "there is no method 'model'")
    refused(client.post("/read/stored/get", json={}), 404, "'stored' opens no run: use")


@pytest.mark.parametrize(
    ("path", "options", "field", "words"),
    [
        ("read/run", {}, "name", "missing a required argument: 'name'"),
        ("read/run", {"name": "a", "nope": 1}, "nope", "got an unexpected keyword argument 'nope'"),
        ("read/search_many", {"queries": ["a"], "k": 10**9}, "k", "the maximum is 1,000"),
        ("read/rows", {"count": 10**9}, "count", "the maximum is 1,000"),
        ("read/documents", {"ids": {"$array": ["a"], "dtype": "S1000000000"}}, "options", "is not a number type"),
        ("read/documents", {"ids": {"$date": "soon"}}, "options", "invalid options"),
        ("read/documents", {"ids": {"$result": "Path"}}, "options", "does not know the result 'Path'"),
        ("read/documents", {"ids": {"$result": "Hit", "x": 1}}, "options", "invalid options"),
        ("read/example_queries", {"most": "x" * 200_000}, "most", "the maximum is 100,000"),
    ],
)
def test_options_that_are_not_valid(
    client: TestClient, path: str, options: dict[str, Any], field: str | None, words: str
) -> None:
    refused(client.post(f"/{path}", json={"options": options}), 422, words, field=field)


def test_no_message_names_a_folder_of_the_server(client: TestClient, folder: Any) -> None:
    answer = client.post("/read/run", json={"options": {"name": "none"}})
    refused(answer, 404, "there is no run 'none'")
    assert str(folder.parent) not in client.post("/read/info", json={}).text
    assert client.post("/read/info", json={}).json()["result"]["path"] == "reviews"


def test_a_key_that_may_read_writes_nothing(folder: Any, tmp_path: Any) -> None:
    from sonde.app.http.guard import add_key

    key = add_key(tmp_path / "keys.json", "reader", "read")
    with client_of(folder, keys=tmp_path / "keys.json") as client:
        client.headers["Authorization"] = f"Bearer {key}"
        assert client.post("/read/info", json={}).status_code == 200
        refused(client.post("/write/delete", json={"options": {"ids": ["1"]}}), 403, "may only read")
        refused(client.post("/write/topic_run/merge", json={}), 403, "may only read")

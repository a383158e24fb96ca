"""The HTTP service: answers as the Python API gives them, and a problem that names the field for everything else."""
# ruff: noqa: F811  (fixtures that are imported)

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_encoder import FakeEncoder
from fastapi.testclient import TestClient
from http_service import client, client_of, folder, local, refused  # noqa: F401  (fixtures)
from small_reviews import lines
from tiny_pairs import build_pairs

from sonde.app.api import Collection, index
from sonde.app.http.client import RemoteCollection
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.store.kinds import CLUSTER, MAP
from sonde.indexer.store.lock import writer_lock
from sonde.indexer.store.run_writing import NewRun, Snapshot, write_run
from sonde.indexer.store.runs import Item
from sonde.pipelines.label import LabelSettings, NliJudge, classify, entail
from sonde.pipelines.pairs import PairModel


@pytest.mark.parametrize("settings", [{}, {"mode": "dense", "k": 2}, {"mode": "lexical"}, {"where": "stars <= 2"},
                                      {"explain": True}, {"offset": 1, "k": 1}, {"threshold": 0.99}])  # fmt: skip
def test_search_answers_as_the_python_api(client: TestClient, local: Collection, settings: dict[str, Any]) -> None:
    answer = client.post("/search", json={"query": "battery died", **settings})
    expected = local.search("battery died", **settings)
    assert answer.status_code == 200
    found = answer.json()
    assert [hit["id"] for hit in found["hits"]] == [hit.id for hit in expected]
    assert found["hits"] == [_as_json(hit.to_dict()) for hit in expected]
    assert (found["strategy"], tuple(found["notes"])) == (expected.strategy, expected.notes)


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _as_json(each) for name, each in value.items()}
    return [_as_json(each) for each in value] if isinstance(value, list | tuple) else value


def test_relevance_and_that_nothing_answers(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    found = client.post("/search", json={"query": "battery died"}).json()
    assert list(found["hits"][0])[:4] == ["rank", "id", "relevance", "weak"] and found["notes"] == []
    assert found["fusion"]["chosen"] and found["fusion"]["why"].startswith("meaning counts 0.")
    monkeypatch.setattr("sonde.pipelines.search.first_stage.WEAK", 1.1)
    weak = client.post("/search", json={"query": "battery exploded"}).json()
    assert weak["notes"][0].startswith("nothing here seems to answer this: ")
    assert [hit["weak"] for hit in weak["hits"]] == [True] * len(found["hits"])
    assert client.post("/search", json={"query": "battery", "mode": "dense"}).json()["fusion"] is None
    names = client.get("/openapi.json").json()["components"]["schemas"]["FoundHit"]["required"]
    assert {"rank", "id", "relevance", "weak", "score"} <= set(names)


def test_similar_by_id_and_by_text(client: TestClient, local: Collection) -> None:
    by_id = client.post("/similar", json={"id": "a/b", "k": 2}).json()
    assert [hit["id"] for hit in by_id["hits"]] == [hit.id for hit in local.similar("a/b", k=2)]
    by_text = client.post("/similar", json={"text": "screen broke", "where": "stars < 5"}).json()
    assert [hit["id"] for hit in by_text["hits"]] == [hit.id for hit in local.like("screen broke", where="stars < 5")]


@pytest.mark.parametrize(("path", "body"), [("/search", {"query": "battery"}), ("/similar", {"id": "1"})])
def test_hits_without_their_texts(client: TestClient, path: str, body: dict[str, Any]) -> None:
    whole = client.post(path, json=body).json()["hits"]
    short = client.post(path, json=body | {"texts": False}).json()["hits"]
    assert all(hit["text"] and hit["passage"]["text"] for hit in whole)
    for hit in whole:
        hit["text"] = hit["passage"]["text"] = ""
    assert short == whole and all(hit["excerpt"]["text"] for hit in short)


def test_a_large_answer_is_compressed_for_who_takes_it(client: TestClient) -> None:
    body = {"query": "battery", "explain": True}
    plain = client.post("/search", json=body, headers={"accept-encoding": "identity"})
    small = client.post("/search", json=body, headers={"accept-encoding": "br, gzip"})
    assert (plain.headers.get("content-encoding"), small.headers["content-encoding"]) == (None, "gzip")
    assert plain.headers["vary"] == small.headers["vary"] == "Accept-Encoding"
    assert int(small.headers["content-length"]) < len(plain.content) / 2
    assert small.json()["hits"] == plain.json()["hits"]
    refusing = client.post("/search", json=body, headers={"accept-encoding": "gzip;q=0"})
    assert "content-encoding" not in refusing.headers
    assert "content-encoding" not in client.get("/documents/1").headers


def test_searches_that_come_together_are_answered_together(folder: Path, local: Collection) -> None:
    batches: list[int] = []
    with client_of(folder) as client:
        host = client.app.state.context.hosts.find(None)  # type: ignore[attr-defined]
        work, gate = host.searches.quick._work, threading.Event()

        def counted(jobs: Any) -> Any:
            batches.append(len(jobs))
            if len(batches) == 1:
                gate.wait(5)
            return work(jobs)

        host.searches.quick._work = counted
        queries = ["battery", "screen", "phone", "day"]
        answers: dict[str, list[str]] = {}

        def ask(query: str) -> None:
            found = client.post("/search", json={"query": query}).json()
            answers[query] = [hit["id"] for hit in found["hits"]]

        threads = [threading.Thread(target=ask, args=[query]) for query in queries]
        threads[0].start()
        while not batches:
            pass
        for thread in threads[1:]:
            thread.start()
        while host.searches.waiting < 3:
            pass
        gate.set()
        for thread in threads:
            thread.join()
    assert batches == [1, 3]
    assert answers == {query: [hit.id for hit in local.search(query)] for query in queries}


def test_one_wrong_query_does_not_spoil_those_beside_it(folder: Path) -> None:
    from sonde.app.http.hosted import SearchJob, _searcher
    from sonde.pipelines.search.results import Results
    from sonde.pipelines.search.settings import SearchSettings

    collection = Collection.open(folder, encoder=FakeEncoder())  # type: ignore[arg-type]
    right, wrong = SearchSettings(k=1), SearchSettings(k=1, where="no_such_column = 1")

    def first(results: Results) -> bytes:
        return results[0].id.encode()

    [two] = _searcher(lambda: collection)([SearchJob("screen", wrong, first)])
    one, three, four = _searcher(lambda: collection)(
        [SearchJob(text, right, first) for text in ("battery", " ", "screen")]
    )
    assert (one, four) == (b"1", b"a/b")
    assert "no_such_column" in str(two)
    assert "empty" in str(three)


def test_a_full_queue_is_said_with_when_to_come_again(folder: Path) -> None:
    with client_of(folder, queue=1) as client:
        host = client.app.state.context.hosts.find(None)  # type: ignore[attr-defined]
        work, gate, began = host.searches.quick._work, threading.Event(), threading.Event()
        host.searches.quick._work = lambda jobs: began.set() or (gate.wait(5) and work(jobs))
        answers: list[Any] = []
        threads = [
            threading.Thread(target=lambda: answers.append(client.post("/search", json={"query": "battery"})))
            for _ in range(2)
        ]
        threads[0].start()
        assert began.wait(5)
        threads[1].start()
        while not host.searches.waiting:
            pass
        full = client.post("/search", json={"query": "battery"})
        gate.set()
        for thread in threads:
            thread.join()
    refused(full, 503, "try again")
    assert full.headers["retry-after"] == "1"
    assert [answer.status_code for answer in answers] == [200, 200]


def test_an_answer_that_takes_too_long_is_given_up(folder: Path) -> None:
    with client_of(folder, timeout=0.2) as client:
        gate = threading.Event()
        client.app.state.context.hosts.find(None).searches.quick._work = lambda _: gate.wait(5) and []  # type: ignore[attr-defined]
        late = client.post("/search", json={"query": "battery"})
        gate.set()
    refused(late, 503, "took too long")


def test_a_text_field_holds_other_values_as_text_whichever_way_they_come(client: TestClient, folder: Path) -> None:
    values: dict[str, Any] = {
        "n": 5,
        "r": 5.5,
        "b": True,
        "l": ["a", 1],
        "d": "2024-05-06",
        "z": "2024-05-06T10:00:00+02:00",
    }
    first = {"id": "8", "text": "First.", "metadata": {"kind": "phone"}}
    assert client.put("/documents", json={"documents": [first]}).json()["added"] == 1
    put = [{"id": key, "text": key, "metadata": {"kind": value}} for key, value in values.items()]
    assert client.put("/documents", json={"documents": put}).json()["added"] == len(values)
    read = [{"id": f"{key} again", "text": key, "kind": value} for key, value in values.items()]
    index(lines(folder.parent / "more.jsonl", read), folder, id="id", encoder=FakeEncoder())  # type: ignore[arg-type]
    for key, text in (
        ("n", "5"),
        ("r", "5.5"),
        ("b", "true"),
        ("l", '["a", 1]'),
        ("d", values["d"]),
        ("z", values["z"]),
    ):
        found = [client.get("/documents", params={"id": id}).json() for id in (key, f"{key} again")]
        assert [each["metadata"]["kind"] for each in found] == [text, text], key


def test_documents_are_put_got_searched_and_deleted(client: TestClient) -> None:
    new = {"id": "x/1", "text": "Headphones hum.", "title": "Sound", "metadata": {"stars": 3, "when": "2024-05-06"}}
    put = client.put("/documents", json={"documents": [new, {"id": "1", "text": "The battery is fine."}]})
    assert put.json() == {"added": 1, "replaced": 1, "unchanged": 0, "duplicate_ids": 0, "skipped": []}
    assert client.put("/documents", json={"documents": [new]}).json()["unchanged"] == 1
    twice = client.put("/documents", json={"documents": [new | {"text": "Not kept."}, new]}).json()
    assert twice == {"added": 0, "replaced": 0, "unchanged": 1, "duplicate_ids": 1, "skipped": []}
    assert client.get("/documents/x/1").json() == new
    [hit] = client.post("/search", json={"query": "hum", "mode": "lexical", "where": "\"when\" > '2024-01-01'"}).json()[
        "hits"
    ]
    assert hit["id"] == "x/1"
    assert client.delete("/documents/x/1").json() == {"deleted": 1}
    refused(client.get("/documents/x/1"), 404, "no document with the id 'x/1'", field="id")
    refused(client.delete("/documents/x/1"), 404, "no document", field="id")


def test_a_write_beside_another_process_is_a_conflict(client: TestClient, folder: Path) -> None:
    with writer_lock(folder):
        refused(
            client.put("/documents", json={"documents": [{"id": "9", "text": "new"}]}),
            409,
            "another process is writing",
        )
    assert client.put("/documents", json={"documents": [{"id": "9", "text": "new"}]}).json()["added"] == 1


def test_what_another_process_commits_is_found(client: TestClient, folder: Path) -> None:
    index([{"id": "7", "text": "A zebra crossed."}], folder, id="id", encoder=FakeEncoder())  # type: ignore[arg-type]
    [hit] = client.post("/search", json={"query": "zebra", "mode": "lexical"}).json()["hits"]
    assert hit["id"] == "7"


def test_embed(client: TestClient) -> None:
    found = client.post("/embed", json={"texts": ["battery", "screen broke"]}).json()
    assert (found["model"], found["dimension"]) == ("fake", 16)
    expected = FakeEncoder().encode_texts(["battery", "screen broke"])
    np.testing.assert_allclose(found["vectors"], expected, atol=1e-6)


def test_label(client: TestClient, local: Collection) -> None:
    body = {"texts": ["the battery died", "screen broke"], "labels": {"battery": "", "screen": "it broke"}}
    found = client.post("/label", json=body).json()["texts"]
    expected = classify(body["texts"], body["labels"], encoder=local.stored.encoder)
    assert [each["label"] for each in found] == ["battery", "screen"] == [each.label for each in expected]
    assert found[0]["scores"] == pytest.approx(dict(expected[0].scores))
    remote = RemoteCollection(client)  # type: ignore[arg-type]
    assert remote.classify(**body) == expected
    listed = client.post("/label", json=body | {"labels": ["battery", "screen: it broke"]})
    assert listed.json()["texts"] == found
    refused(client.post("/label", json=body | {"labels": ["a", "A"]}), 422, "'A' repeats label 1", field="labels")
    refused(client.post("/label", json=body | {"labels": ["a", 1]}), 422, field="labels")
    for wrong, field in (
        ({"labels": {}}, "labels"),
        ({"labels": []}, "labels"),
        ({"labels": {"a": ""}}, "labels"),
        ({"texts": [" "]}, "texts.0"),
    ):
        refused(client.post("/label", json=body | wrong), 422, field=field)
    many = {str(n): "" for n in range(10_000)}
    refused(client.post("/label", json=body | {"labels": many}), 422, "10,000 entries", field="labels")


def test_labels_and_entailment_by_nli(client: TestClient) -> None:
    model, tokenizer = build_pairs("bert")
    judge = NliJudge(PairModel(model, tokenizer, name="tiny"))
    client.app.state.context.models._nli = judge  # type: ignore[attr-defined]
    texts, labels = ["the battery died", "refund"], {"battery": "", "screen": ""}
    found = client.post("/label", json={"texts": texts, "labels": labels, "engine": "nli"}).json()["texts"]
    expected = classify(texts, labels, LabelSettings(engine="nli"), encoder=FakeEncoder(), judge=judge)  # type: ignore[arg-type]
    assert found == [_as_json(each.to_dict()) for each in expected]
    assert found[0]["model"] == "tiny"
    pair = {"premise": "The battery died.", "hypothesis": "a refund"}
    assert (
        client.post("/entail", json=pair).json() == entail(pair["premise"], pair["hypothesis"], judge.pairs).to_dict()
    )
    refused(client.post("/entail", json={"premise": " ", "hypothesis": "a"}), 422, "empty", field="premise")


def test_rerank(client: TestClient, local: Collection) -> None:
    found = client.post("/search", json={"query": "battery died", "rerank": True, "rerank_depth": 2}).json()
    expected = local.search("battery died", rerank=True, rerank_depth=2)
    assert [hit["id"] for hit in found["hits"]] == [hit.id for hit in expected]
    assert found["hits"][0]["reranker"]["depth"] == 2
    remote = RemoteCollection(client).search("battery", rerank=True, explain=True)  # type: ignore[arg-type]
    assert [hit.why for hit in remote] == [hit.why for hit in local.search("battery", rerank=True, explain=True)]
    texts = ["nothing of it", "the battery died", "battery"]
    ordered = client.post("/rerank", json={"query": "the battery died", "texts": texts}).json()
    assert ordered["unit"] == "similarity"
    assert ordered["texts"][0] == {"place": 1, "score": pytest.approx(1.0, abs=0.01)}
    wrong = {"query": "a", "rerank": True, "rerank_budget": "5 parsecs"}
    refused(client.post("/search", json=wrong), 422, "5 parsecs", field="rerank_budget")
    late = {"query": "battery died", "rerank": True, "rerank_model": "late"}
    assert client.post("/search", json=late).json()["hits"][0]["reranker"]["model"]
    refused(client.post("/search", json=late | {"rerank_model": "/etc"}), 422, field="rerank_model")


def test_runs(client: TestClient, folder: Path, local: Collection) -> None:
    with local.stored.view() as view:
        taken = Snapshot.of(view)
    items = [Item(0, "power", {"terms": ["battery"]}), Item(1, "rest", {"terms": []})]
    assigned = taken.docs, np.array([0, 1, 1]), np.ones(3)
    write_run(local.stored, NewRun(CLUSTER, "two", {"k": 2}, items=items, assignments=assigned), taken)
    write_run(local.stored, NewRun(MAP, "m", {}, places=(taken.docs, np.arange(6.0).reshape(3, 2))), taken)
    found = client.get("/clusters").json()
    assert [(item["name"], item["documents"], item["terms"]) for item in found["items"]] == [
        ("power", 1, ["battery"]), ("rest", 2, [])]  # fmt: skip
    page = client.get("/map", params={"offset": 1, "limit": 1}).json()
    assert (page["total"], page["points"]) == (3, [{"id": "2", "x": 2.0, "y": 3.0}])
    assert [run["name"] for run in client.get("/runs").json()] == ["two", "m"]
    refused(client.get("/topics"), 404, "no topic run", field="run")
    refused(client.get("/clusters?run=three"), 404, "'three'", "there is only two", field="run")


def test_metrics_and_readiness(client: TestClient) -> None:
    client.post("/search", json={"query": "battery"})
    client.get("/nothing")
    text = client.get("/metrics").text
    assert 'sonde_requests_total{route="/search",status="200"} 1.0' in text
    assert 'sonde_requests_total{route="unknown",status="404"} 1.0' in text
    assert 'sonde_documents{collection="reviews"} 3.0' in text
    assert client.get("/health").json() == {"status": "alive"}
    assert client.get("/ready").status_code == 200
    [info] = client.get("/collections").json()
    assert (info["name"], info["documents"], "path" in info) == ("reviews", 3, False)


def test_several_collections(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.sonde"
    index(["one text"], other, encoder=FakeEncoder())  # type: ignore[arg-type]
    with client_of(folder, other) as client:
        refused(client.post("/search", json={"query": "a"}), 422, "reviews, other", field="collection")
        found = client.post("/search", json={"query": "text", "collection": "other"}).json()
        assert [hit["text"] for hit in found["hits"]] == ["one text"]
        assert client.get("/documents/1", params={"collection": "reviews"}).json()["title"] == "Phone"


def test_the_service_answers_as_a_local_collection(client: TestClient, local: Collection) -> None:
    remote = RemoteCollection(client, "reviews")  # type: ignore[arg-type]
    each: list[dict[str, Any]] = [{}, {"explain": True}, {"where": "stars = 1"}]
    for settings in each:
        found, expected = remote.search("battery", **settings), local.search("battery", **settings)
        assert found.hits == expected.hits
    assert remote.similar("1", k=1).hits == local.similar("1", k=1).hits
    assert remote.like("screen").hits == local.like("screen").hits
    assert remote.put([{"id": "9", "text": "new"}]).added == 1
    assert (len(remote), remote.get("9").text, remote.delete(["9"]), len(local)) == (4, "new", 1, 3)
    with pytest.raises(UsageError, match="k is 0"):
        remote.search("a", k=0)
    with pytest.raises(SondeError, match="no document with the id 'nobody'"):
        remote.similar("nobody")


def test_one_string_is_one_id_to_the_client_too(client: TestClient) -> None:
    remote = RemoteCollection(client, "reviews")  # type: ignore[arg-type]
    remote.put([{"id": key, "text": f"number {key}"} for key in ("12", "5")])
    assert remote.get(12).text == "number 12"
    assert remote.delete("12") == 1
    assert remote.delete(5) == 1
    assert len(remote) == 3
    assert remote.embed("battery").shape == (1, 16)
    assert len(remote.classify("the battery died", "battery,screen")) == 1
    for call in (remote.search, remote.similar, remote.like, remote.get, remote.embed):
        with pytest.raises(UsageError, match=r"^(None is not a valid (query|id|text)|text is None): give a string"):
            call(None)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="say which documents to delete"):
        remote.delete(None)
    with pytest.raises(UsageError, match=r"^\{'id': '1'\} is not a list of documents: give \[\{'id': …, "):
        remote.put({"id": "1"})  # type: ignore[arg-type]

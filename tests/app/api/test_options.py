"""Every method takes its settings one by one, as an object, or both; a mistyped option names the nearest one."""
# pyright: reportCallIssue=false

from collections.abc import Callable
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder
from fastapi.testclient import TestClient
from http_service import client, folder, local  # noqa: F401  (fixtures)

import sonde
from sonde.app.api import Collection, classify, index
from sonde.app.http.client import RemoteCollection
from sonde.indexer.errors import UsageError

ENCODER: Any = FakeEncoder()
SEARCH = sonde.SearchSettings(k=2, mode="dense")


def ids(results: Any) -> list[str]:
    return [hit.id for hit in results]


def test_settings_as_an_object_and_options_that_override_them(local: Collection) -> None:  # noqa: F811
    plain = local.search("battery", k=2, mode="dense")
    assert (local.search("battery", settings=SEARCH).hits, len(plain)) == (plain.hits, 2)
    assert local.search("battery", settings=SEARCH, mode="lexical").mode == "lexical"
    assert local.search("battery", 1, settings=SEARCH).hits == plain.hits[:1]
    assert len(local.search("battery", settings=sonde.SearchSettings())) == 3
    assert [each.hits for each in local.search_many("battery", settings=SEARCH)] == [plain.hits]
    assert ids(local.similar("1", settings=SEARCH)) == ids(local.similar("1", 2))
    assert ids(local.like("battery", settings=SEARCH)) == ids(local.like("battery", 2))
    asked = sonde.AskSettings(threshold=2.0)
    assert local.ask("battery", settings=asked).answer is None
    assert local.ask("battery", -1.0, settings=asked).answer == local.ask("battery", threshold=-1.0).answer is not None
    labels = sonde.LabelSettings(engine="similarity", name="mine")
    assert local.label(["battery", "screen"], settings=labels, name="own").name == "own"
    clusters = sonde.ClusterSettings(k=3, refits=0)
    assert len(local.cluster(settings=clusters, k=2).clusters) == 2
    assert local.duplicates(settings=sonde.DuplicateSettings(kinds=("exact",)), keep="longest").groups == ()
    assert classify("screen", ["battery", "screen"], settings=labels, encoder=ENCODER)[0].label == "screen"


def test_the_client_takes_settings_too(client: TestClient, local: Collection) -> None:  # noqa: F811
    remote = RemoteCollection(client)  # type: ignore[arg-type]
    assert remote.search("battery", settings=SEARCH).hits == local.search("battery", settings=SEARCH).hits
    assert len(remote.search("battery", 1, settings=SEARCH)) == 1
    with pytest.raises(UsageError, match=r"^like has no option 'wher': did you mean 'where'\?"):
        remote.like("a", wher="stars > 1")


TYPOS: dict[str, tuple[Callable[[Collection], object], str]] = {
    "search": (lambda c: c.search("a", tresh=1), "search has no option 'tresh': did you mean 'threshold'?"),
    "search_many": (lambda c: c.search_many("a", wheer=""), "search_many has no option 'wheer': did you mean 'where'?"),
    "similar": (lambda c: c.similar("1", ofset=1), "similar has no option 'ofset': did you mean 'offset'?"),
    "like": (lambda c: c.like("a", mod="dense"), "like has no option 'mod': did you mean 'mode'?"),
    "ask": (lambda c: c.ask("a", feild="x"), "ask has no option 'feild': did you mean 'field'?"),
    "cluster": (lambda c: c.cluster(outlier="keep"), "cluster has no option 'outlier': did you mean 'outliers'?"),
    "cluster, own": (lambda c: c.cluster(replcae=True), "cluster has no option 'replcae': did you mean 'replace'?"),
    "topics": (lambda c: c.topics(minsize=3), "topics has no option 'minsize': did you mean 'min_size'?"),
    "map": (lambda c: c.map(sampel=3), "map has no option 'sampel': did you mean 'sample'?"),
    "label": (lambda c: c.label(["a", "b"], engin="nli"), "label has no option 'engin': did you mean 'engine'?"),
    "duplicates": (lambda c: c.duplicates(meanin=1), "duplicates has no option 'meanin': did you mean 'meaning'?"),
    "compare": (lambda c: c.compare(query=("a", "b")), "compare has no option 'query': did you mean 'queries'?"),
    "index": (lambda c: index(["a"], c.path, devise="cpu"), "index has no option 'devise': did you mean 'device'?"),
    "classify": (lambda _: classify("a", "b,c", modle=""), "classify has no option 'modle': did you mean 'model'?"),
    "far from all": (lambda c: c.duplicates(q=1), "duplicates has no option 'q': it has kinds, near, meaning, keep, "),
    "of another type": (
        lambda c: c.search("a", settings=sonde.LabelSettings()),  # type: ignore[arg-type]
        "settings is a LabelSettings: search takes sonde.SearchSettings",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TYPOS)
def test_a_mistyped_option_names_the_nearest_one(local: Collection, name: str) -> None:  # noqa: F811
    run, message = TYPOS[name]
    with pytest.raises(UsageError) as caught:
        run(local)
    assert str(caught.value).startswith(message)


def test_progress_has_one_name_everywhere(tmp_path: Path) -> None:
    methods = ("cluster", "update_clusters", "topics", "topic_run", "map", "label", "duplicates", "delete", "compact")
    for call in (index, classify, Collection.repair, *(getattr(Collection, name) for name in methods)):
        parameters = signature(call).parameters
        assert parameters["progress"].kind is Parameter.KEYWORD_ONLY
        assert "notify" not in parameters
    said: list[object] = []
    made = index(["one text", "another text"], tmp_path / "c.sonde", encoder=ENCODER, progress=said.append)
    made.cluster(k=2, refits=0, progress=said.append)
    assert said

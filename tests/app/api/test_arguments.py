"""Arguments of the Python API are what their annotations say, or one line names the argument and what it takes."""

import traceback
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fake_encoder import FakeEncoder
from http_service import folder, local  # noqa: F401  (fixtures)

import sonde
from sonde.app.api import Collection, arguments, index
from sonde.app.api.arguments import conformed
from sonde.indexer.errors import SondeError, UsageError

ENCODER: Any = FakeEncoder()

WRONG: dict[str, tuple[Callable[[Any], object], str]] = {
    "a string is true": (lambda c: c.cluster(k=2, replace="no"), "replace is 'no': give True or False"),
    "a string is a list of letters": (
        lambda c: c.topics(seed_words="rate,bank"), "seed_words is 'rate,bank': give a list"
    ),
    "also in settings": (
        lambda c: c.topics(settings=sonde.TopicSettings(seed_words="rate")),  # type: ignore[arg-type]
        "seed_words is 'rate': give a list of groups of words",
    ),
    "or inside a list": (
        lambda c: c.topics(seed_words=[3.5]),
        "3.5 is not a valid seed word: give a string or a list of strings",
    ),
    "clusters": (lambda c: c.merge_clusters("0,1"), "numbers is '0,1': give a list"),
    "a filter": (lambda c: c.search("battery", where=3), "where is 3: give a string"),
    "a filter of a deletion": (lambda c: c.delete(where=3), "where is 3: give a string"),
    "a name": (lambda c: c.cluster(5, k=2), "name is 5: give a string"),
    "a number": (lambda c: c.search("battery", k="3"), "k is '3': give a whole number"),
    "half a hit": (lambda c: c.search("battery", k=2.5), "k is 2.5: give a whole number"),
    "a share": (lambda c: c.label(["a", "b"], threshold="0.5"), "threshold is '0.5': give a number"),
    "yes": (lambda c: c.label(["a", "b"], multi_label="yes"), "multi_label is 'yes': give True or False"),
    "a seed": (lambda c: c.cluster(seed="a"), "seed is 'a': give a whole number"),
    "settings made before": (
        lambda c: c.search("battery", settings=sonde.SearchSettings(k="3")),  # type: ignore[arg-type]
        "k is '3': give a whole number",
    ),
    "a negative count": (lambda c: c.example_queries(-1), "most is -1: give a whole number, 0 or more"),
    "documents to show": (lambda c: c.matching("stars > 0", k=-1), "k is -1: give a whole number, 0 or more"),
    "characters": (lambda c: c.texts("1", length=-1), "length is -1: give a whole number, 0 or more"),
    "a question": (lambda c: c.ask(5), "question is 5: give a string"),
    "documents": (lambda c: c.put(["just text"]), "'just text' is not a valid document: give {'id': …, 'text': …}"),
    "too many fits": (
        lambda c: c.cluster(k=2, restarts=10**30), f"restarts is {10**30}: give a whole number up to 1,000"
    ),
    "half a character": (
        lambda c: c.search("a\ud800b"), "'a\\ud800b' is not valid Unicode: write it in UTF-8"
    ),
    "pairs of queries": (
        lambda c: c.search_queries(["d1"]), "'d1' is not a valid query: give an id and a text, as ('q1', 'late parcel')"
    ),
    "columns to leave out": (lambda c: c.export("x.csv", without="a b"), "without is 'a b': give a list"),
    "a reserved label": (
        lambda c: c.label(["None of these", "b"]),
        "'None of these' is what Sonde calls a text that no label fits: leave it out, and use none",
    ),
    "nothing to compare": (lambda c: c.compare(), "give two clusters, two filters, two queries or two runs"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_value_of_another_type_is_one_line(local: Collection, name: str) -> None:  # noqa: F811
    call, message = WRONG[name]
    before = local.counts()
    with pytest.raises(UsageError) as caught:
        call(local)
    assert str(caught.value) == message
    assert local.counts() == before


def test_a_string_for_sync_deletes_nothing(local: Collection) -> None:  # noqa: F811
    with pytest.raises(UsageError, match=r"^sync is 'no': give True or False$"):
        index([{"id": "1", "text": "one"}], to=local.path, encoder=ENCODER, sync="no")  # type: ignore
    assert len(local) == 3
    with pytest.raises(UsageError, match=r"^id is 0: give a string$"):
        index([["a"]], to=local.path.with_name("new.sonde"), encoder=ENCODER, id=0)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^unknown device 'foo': give auto, cpu, cuda"):
        sonde.open(local.path, device="foo")


def test_settings_of_the_reader_are_given_as_such(local: Collection) -> None:  # noqa: F811
    rows, to = [{"a": "one", "b": "two"}], local.path.with_name("new.sonde")
    with pytest.raises(UsageError, match=r"^leave_out is a setting of the reader: give read=sonde.ReadOptions\(leave"):
        index(rows, to=to, encoder=ENCODER, leave_out=("b",))  # type: ignore
    with pytest.raises(UsageError, match=r"^text and read both name columns: give read=sonde.ReadOptions\(text=…\) al"):
        index(rows, to=to, encoder=ENCODER, text="a", read=sonde.ReadOptions())
    assert not to.exists()


def test_numbers_of_numpy_are_numbers(local: Collection) -> None:  # noqa: F811
    local.cluster(k=np.int64(2), refits=0)  # type: ignore
    assert local.run("kmeans").run.parameters["k"] == 2
    assert local.members("kmeans", np.int64(1)) == local.members("kmeans", 1) != []  # type: ignore[arg-type]
    assert len(local.search("battery", np.int64(2))) == 2  # type: ignore[arg-type]
    assert local.merge_clusters(np.array([0, 1])).number == 0  # type: ignore[arg-type]
    with pytest.raises(SondeError, match=r"^the cluster run 'kmeans' has no cluster 99$"):
        local.members("kmeans", 99)


def test_one_string_is_one_id_when_documents_are_read(local: Collection) -> None:  # noqa: F811
    assert list(local.documents("1")) == list(local.texts("1")) == list(local.numbers("1")) == ["1"]
    assert list(local.documents([1, "2"])) == ["1", "2"]
    assert local.texts("1", length=2**31)["1"].text == local.get("1").text


def test_put_takes_numpy_and_refuses_what_would_make_text_of_a_field(local: Collection) -> None:  # noqa: F811
    typed = [{"id": "d", "text": "dated", "metadata": {"day": date(2024, 3, 1), "stars": 4}}]
    local.put(typed)
    local.put([{"id": "n", "text": "new", "metadata": {"stars": np.int64(5), "day": pd.NaT}}])
    assert local.get("n").metadata == {"stars": 5} | {name: None for name in local.get("n").metadata if name != "stars"}
    types = local.fields()
    assert (types["stars"], types["day"]) == ("integer", "date")
    message = (
        r"^day of document 'm' is 'soon', and the collection's day is of type date: give a value of this type, or leave"
    )
    with pytest.raises(UsageError, match=message):
        local.put([{"id": "m", "text": "z", "metadata": {"day": "soon"}}])
    assert local.fields() == types
    local.put([{"id": "e", "text": "later", "metadata": {"day": "2024-03-09"}}])
    assert local.get("e").metadata["day"] == date(2024, 3, 9)
    assert local.matching("day = '2024-03'")[0] == 2


def test_put_does_not_make_a_collection_that_was_removed(local: Collection, tmp_path: Path) -> None:  # noqa: F811
    local.path.rename(tmp_path / "elsewhere")
    with pytest.raises(SondeError, match=r"^there is no collection at "):
        local.put([{"id": "q", "text": "q"}])
    assert not local.path.exists()


def test_a_collection_closes_itself(local: Collection) -> None:  # noqa: F811
    with sonde.open(local.path) as opened:
        assert len(opened) == 3


@pytest.mark.parametrize(
    ("annotation", "value", "kept"),
    [
        (int | None, None, None),
        (float, 3, 3),
        (float, np.float32(0.5), 0.5),
        (str | Path | None, Path("a"), Path("a")),
        (tuple[str, ...], ("a",), ("a",)),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (Callable[[], None], 3, 3),
        (Any, object, object),
    ],
)
def test_what_fits_is_kept(annotation: Any, value: Any, kept: Any) -> None:
    assert conformed("x", value, annotation) == kept


class OutOfMemoryError(RuntimeError):
    """As PyTorch's is called."""


def unexpected(error: Exception) -> Callable[..., Any]:
    def failing(*_: Any, **__: Any) -> Any:
        raise error

    return failing


@pytest.mark.parametrize("error", [MemoryError(), OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")])
def test_a_lack_of_memory_is_one_line_and_no_check(
    local: Collection,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    monkeypatch.setattr("sonde.indexer.sharded.upkeep.verify", unexpected(AssertionError("the collection was checked")))
    monkeypatch.setattr(local.stored, "view", unexpected(error))
    with pytest.raises(SondeError, match=r"^not enough memory: free some memory, or process fewer texts at once$"):
        local.get("1")


def test_a_large_collection_is_not_checked_for_an_unexpected_error(
    local: Collection,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checked: list[Any] = []
    monkeypatch.setattr("sonde.indexer.upkeep.verify.verify", lambda stored: checked.append(stored) or [])
    monkeypatch.setattr(local.stored, "view", unexpected(ZeroDivisionError("a fault")))
    with pytest.raises(ZeroDivisionError, match=r"^a fault$"):
        local.get("1")
    assert local.stored in checked
    checked.clear()
    monkeypatch.setattr(arguments, "CHECKED", 0)
    with pytest.raises(ZeroDivisionError) as raised:
        local.get("1")
    assert checked == []
    path = local.path
    assert raised.value.__notes__ == [f"to check the collection for damage, run `sonde verify {path}`"]


def test_a_call_without_an_argument_names_the_method_and_no_class(tmp_path):
    collection = index([{"id": "1", "text": "a parcel"}], tmp_path / "c.sonde", id="id", encoder=FakeEncoder())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^search: missing a required argument: 'query'$"):
        collection.search()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^counts: too many positional arguments$"):
        collection.counts(1, 2)  # type: ignore[call-arg]


@pytest.mark.parametrize("notebook", [True, False])
def test_a_notebook_shows_no_frames_of_ours(
    local: Collection,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    notebook: bool,
) -> None:
    if notebook:
        monkeypatch.setattr("builtins.__IPYTHON__", True, raising=False)
    with pytest.raises(UsageError, match="there is no field 'strs'") as caught:
        local.search("late", where="strs > 3")
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert (len(frames) == 2) == notebook, frames

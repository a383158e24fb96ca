"""One mistake, met in Python, on the command line, over HTTP and on a page: each names arguments its own way."""
# ruff: noqa: F811  (fixtures that are imported)

import ast
from pathlib import Path
from typing import Any

import pytest
import typer
from command_line import Command, command
from fastapi.testclient import TestClient
from http_service import client, folder, local  # noqa: F401  (fixtures)

from sonde.app.api import Collection
from sonde.app.cli.main import app_for
from sonde.app.cli.output import OTHERS, in_options, option
from sonde.app.http.client import RemoteCollection
from sonde.app.ui import page
from sonde.indexer.errors import Message, SondeError, UsageError, arg, out_of_range

LABEL = "is the only label, so every text would get it: give two or more, or"
TEMPLATE = "the template 'about' must hold {} once, where the label goes: 'This example is {}.'"
TRIPLES: dict[str, tuple[Any, tuple[str, ...], tuple[str, dict[str, Any]], str, str, tuple[str, str]]] = {
    "one label": (
        lambda c: c.label(["refund"]), ("label", "--labels", "refund"),
        ("/label", {"texts": ["a"], "labels": {"refund": ""}}),
        f"'refund' {LABEL} multi_label", f"'refund' {LABEL} --multi-label", ("too-few", "labels"),
    ),
    "template": (
        lambda c: c.label(["a", "b"], template="about"), ("label", "--labels", "a,b", "--template", "about"),
        ("/label", {"texts": ["a"], "labels": {"a": "", "b": ""}, "template": "about"}),
        TEMPLATE, TEMPLATE, ("bad-template", "template"),
    ),
    "filter": (
        lambda c: c.search("a", where="star > 1"), ("search", "a", "--where", "star > 1"),
        ("/search", {"query": "a", "where": "star > 1"}),
        "there is no field 'star' to filter by (did you mean 'stars'?)",
        "there is no field 'star' to filter by (did you mean 'stars'?)", ("not-found", "where"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRIPLES)
def test_three_interfaces_tell_the_same_mistake(
    client: TestClient, local: Collection, folder: Path,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str,
) -> None:  # fmt: skip
    call, (verb, *rest), (path, body), said, on_command_line, (code, field) = TRIPLES[name]
    with pytest.raises(UsageError) as caught:
        call(local)
    assert str(caught.value).startswith(said)
    assert (caught.value.code, caught.value.field) == (code, field)
    command(capsys, monkeypatch)(verb, folder, *rest).refused(on_command_line, code=2)
    answer = client.post(path, json=body)
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["detail"]) == (422, code, str(caught.value))
    assert problem["errors"] == [{"field": field, "problem": str(caught.value)}]


@pytest.mark.parametrize(
    ("call", "arguments", "said", "on_command_line", "code"),
    [
        (lambda c: c.search("a", k=0), ("search", "a", "-k", 0), "k is 0: ask", "-k is 0: ask", "out-of-range"),
        (
            lambda c: c.topics(reduce_to=0), ("topics", "--reduce-to", 0),
            "reduce_to is 0: give a whole number from 1", "--reduce-to is 0: give a whole number from 1",
            "out-of-range",
        ),
        (
            lambda c: c.cluster(method="density", k=3), ("cluster", "--method", "density", "-k", 3),
            "density finds the number of clusters itself: leave out k, or use method kmeans",
            "density finds the number of clusters itself: leave out -k, or use --method kmeans",
            "conflict",
        ),
        (
            lambda c: c.duplicates(keep="first", date="day"), ("duplicates", "--keep", "first", "--date", "day"),
            "a date column only serves to keep the newest: use keep newest",
            "a date column only serves to keep the newest: use --keep newest",
            "conflict",
        ),
    ],
)  # fmt: skip
def test_python_and_the_command_line(
    local: Collection, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    call: Any, arguments: tuple[object, ...], said: str, on_command_line: str, code: str,
) -> None:  # fmt: skip
    with pytest.raises(UsageError) as caught:
        call(local)
    assert str(caught.value).startswith(said)
    assert caught.value.code == code
    verb, *rest = arguments
    command(capsys, monkeypatch)(verb, folder, *rest).refused(on_command_line, code=2)


def test_a_taken_name_and_a_missing_run(
    local: Collection, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    local.cluster("two", k=2, refits=0)
    sonde: Command = command(capsys, monkeypatch)
    with pytest.raises(UsageError, match=r"already exists: choose another name, or replace it$"):
        local.cluster("two", k=2)
    ran = sonde("cluster", folder, "--name", "two", "-k", 2, "--refits", 0)
    assert (ran.code, ran.said[0]) == (
        0,
        "a cluster run 'two' already exists, so the new run is named 'two-2' (--replace replaces the old run)",
    )
    local.delete_run("two-2")
    with pytest.raises(SondeError) as caught:
        local.update_clusters("three")
    assert (caught.value.code, caught.value.field, caught.value.alternatives) == ("not-found", "run", ("two",))


def test_a_page_names_fields_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(page.st, "error", shown.append)
    with page.sentences():
        raise out_of_range("reduce_to", 0, "give 1")
    assert shown == [page.escape_markdown("Topics is 0: give 1")]


def test_notices_name_options_on_the_command_line() -> None:
    assert in_options(Message(f"{arg('min_size')} is small")) == "--min-size is small"
    assert in_options("as it is") == "as it is"


def options_of(group: Any) -> set[str]:
    """Return every option of every command."""
    below = {name for each in getattr(group, "commands", {}).values() for name in options_of(each)}
    return below | {name for parameter in group.params for name in (*parameter.opts, *parameter.secondary_opts)}


def test_names_in_messages_are_options_of_the_command_line(checkout: Path) -> None:
    named = {
        str(call.args[0].value)
        for folder in ("indexer", "pipelines")
        for file in (checkout / folder).rglob("*.py")
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "arg"
        and isinstance(call.args[0], ast.Constant)
    }  # fmt: skip
    only_python = {"max_chars", "known"}
    known = options_of(typer.main.get_command(app_for()))
    assert {name for name in named - only_python if option(name) not in known | set(OTHERS.values())} == set()
    assert len(named) > 30


def test_a_wrong_call_is_the_same_error_over_http(local: Collection, client: TestClient) -> None:
    for collection in (local, RemoteCollection(client)):  # type: ignore[arg-type]
        with pytest.raises(UsageError, match=r"^facets: too many positional arguments$") as caught:
            collection.facets("group")  # type: ignore[call-arg]
        assert caught.value.code == "wrong-call"

"""The frame of the web UI: who may come in, how the server is started, names of collections, text as text."""
# ruff: noqa: F811  (a fixture that is imported)

import ast
import html
import importlib
import json
import logging
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from selectolax.lexbor import LexborHTMLParser
from ui_overview import kept_job
from ui_pages import MARKUP, Pages, pages, shown, unread  # noqa: F401  (pages: a fixture)

from sonde.app.http.guard import add_key
from sonde.app.ui.launch import VARIABLE, UiSettings, server_options, settings_for
from sonde.app.ui.page import MARK, NOTHING, escape_markdown, joined_markdown, marked
from sonde.app.ui.workspace import Workspace
from sonde.indexer.errors import SondeError, UsageError


def test_the_server_listens_where_it_is_told_and_tells_nobody() -> None:
    options = server_options("127.0.0.1", 8501)
    wanted = {
        "server.address": "127.0.0.1",
        "server.port": 8501,
        "browser.gatherUsageStats": False,
        "client.showErrorDetails": "none",
        "logger.hideWelcomeMessage": True,
        "server.fileWatcherType": "none",
        "server.headless": True,
        "global.developmentMode": False,
        "server.enableXsrfProtection": True,
        "server.enableCORS": True,
    }
    assert {name: options[name] for name in wanted} == wanted


def test_every_flag_is_one_that_streamlit_knows() -> None:
    from streamlit import config

    known = config.get_config_options()
    assert [name for name in server_options("127.0.0.1", 1) if name not in known] == []


def test_settings_reach_the_script_through_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = UiSettings("/a b/ü", "x", "/keys.json", "cpu", False)
    for name, value in settings.variable().items():
        monkeypatch.setenv(name, value)
    assert UiSettings.load() == settings
    monkeypatch.delenv(VARIABLE)
    assert UiSettings.load() == UiSettings()


def test_a_place_is_a_collection_or_a_folder_of_them(pages: Pages, tmp_path: Path) -> None:
    path = pages.collection("fruit").path
    assert settings_for(path, None, "cpu", local=True) == UiSettings(str(path.parent), "fruit", None, "cpu", True)
    assert settings_for(tmp_path, None, "auto", local=False) == UiSettings(str(tmp_path), None, None, "auto", False)
    with pytest.raises(SondeError, match=r"there is no folder .*nothing: name a collection, or a folder"):
        settings_for(tmp_path / "nothing", None, "auto", local=True)
    path.rename(path.with_name("fruit"))
    with pytest.raises(SondeError, match=r"lacks the ending \.sonde: rename it"):
        settings_for(path.with_name("fruit"), None, "auto", local=True)
    with pytest.raises(SondeError, match=r"cannot read the keys in .*no: No such file"):
        settings_for(tmp_path, tmp_path / "no", "auto", local=True)


NAMES = [
    "",
    " ",
    ".",
    "..",
    ".x",
    "a/b",
    "../a",
    "/etc/passwd",
    "a\\b",
    "a\0",
    "a\n",
    " a",
    "a ",
    "x" * 300,
    "a:b",
    "\ud800",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_could_leave_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="is not a valid collection name: use letters, digits, spaces, - and _"):
        Workspace(UiSettings(str(tmp_path))).path(name)


@given(st.text(max_size=300))
def test_no_name_leaves_the_folder(name: str) -> None:
    shelf = Workspace(UiSettings("/shelf"))
    try:
        path = shelf.path(name)
    except UsageError:
        return
    assert path.parent == Path("/shelf")
    assert path.name == f"{name}.sonde"
    assert len(path.name.encode()) < 256


def test_the_shelf_lists_and_opens_what_is_there(pages: Pages) -> None:
    pages.collection("b")
    made = pages.collection("a")
    (pages.shelf / "no.sonde").mkdir()
    (pages.shelf / "file.sonde").write_text("")
    (pages.shelf / "other").mkdir()
    shelf = Workspace(UiSettings(str(pages.shelf), device="cpu"))
    assert shelf.names() == ["a", "b"]
    assert len(shelf.open("a")) == 3
    assert shelf.open("a") is shelf.open("a")
    assert shelf.open("a").stored.encoder is shelf.open("b").stored.encoder
    with pytest.raises(UsageError, match="there is no collection 'no'"):
        shelf.open("no")
    with pytest.raises(UsageError, match="there is no collection 'c'"):
        shelf.open("c")
    before = shelf.open("b")
    made.close()
    before.close()
    shutil.rmtree(pages.shelf / "b.sonde")
    pages.collection("b", [{"id": "9", "text": "made anew"}])
    assert len(shelf.open("b")) == 1


def test_an_address_that_names_no_collection_says_so_and_shows_no_other(pages: Pages) -> None:
    pages.collection("reviews")
    page = pages.open("data", collection=MARKUP)
    assert "There is no collection" in shown(page)
    assert page.sidebar.selectbox(key="collection").value is None
    unread(page)
    for name in ("../../etc", "/etc/passwd", "a\0b", ".", "x" * 5000):
        page = pages.open("search", collection=name)
        assert "Choose another one in the sidebar." in shown(page)
        assert page.query_params["collection"] == name
    page.sidebar.selectbox(key="collection").set_value("reviews").run()
    assert page.query_params["collection"] == "reviews"
    assert "There is no collection" not in shown(page)


def locked(pages: Pages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A server that asks for a key, and its keys to read and to write."""
    keys = tmp_path / "keys.json"
    found = add_key(keys, "reader", "read"), add_key(keys, "writer", "write")
    settings = {"shelf": str(pages.shelf), "keys": str(keys), "device": "cpu", "local": False}
    monkeypatch.setenv(VARIABLE, json.dumps(settings))
    return found


def test_without_a_key_nothing_is_shown(pages: Pages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages.collection("secret")
    read, write = locked(pages, tmp_path, monkeypatch)
    page = pages.open("data", collection="secret")
    assert "secret" not in shown(page)
    assert not page.sidebar.selectbox
    for wrong in ("", "sonde_wrong", read[:-1], "é\u2028"):
        page.text_input[0].set_value(wrong)
        page.button[0].click().run()
        assert page.error[0].value == "This key is not valid for this server."
        assert not page.sidebar.selectbox
    page.text_input[0].set_value(f" {write} ")
    page.button[0].click().run()
    assert page.sidebar.selectbox(key="collection").value == "secret"
    assert "New collection" in str(page.get("button_group"))


def test_a_key_that_may_read_sees_nothing_that_writes(
    pages: Pages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages.collection("reviews")
    read, _ = locked(pages, tmp_path, monkeypatch)
    for address in ({}, {"do": "Delete"}, {"do": "New collection"}, {"do": "Health"}, {"do": "Add texts"}):
        page = pages.open("data", **address)
        page.text_input[0].set_value(read)
        page.button[0].click().run()
        assert "3" in shown(page)
        assert "Your key is read-only." in shown(page)
        assert [button.label for button in page.button] == []
        assert not page.get("file_uploader")
        assert not page.text_input


SPANS = st.lists(st.tuples(st.integers(-5, 60), st.integers(-5, 60)), max_size=6)


@given(st.text(max_size=50) | st.just(MARKUP), SPANS)
def test_a_browser_shows_exactly_the_text(text: str, spans: list[tuple[int, int]]) -> None:
    text = text.replace("\0", "").replace("\r", "")  # no HTML can hold a NUL; a browser reads CR as a line end
    text = text.replace("\f", " ")  # a page break is shown as a space
    found = marked(text, spans)
    tree = LexborHTMLParser(f"<div>{found}</div>")
    node = tree.css_first("div")
    assert node is not None
    assert node.text() == text
    assert {child.tag for child in node.css("*")} <= {"div", "mark"}
    begin, end = MARK.split("{}")
    assert html.unescape(found.replace(begin, "").replace(end, "")) == text or "mark" in text


@given(SPANS, st.integers(0, 60))
def test_spans_are_joined_and_inside(spans: list[tuple[int, int]], length: int) -> None:
    found = joined_markdown(spans, length)
    covered = {place for begin, end in spans for place in range(max(0, begin), min(end, length))}
    assert {place for begin, end in found for place in range(begin, end)} == covered
    assert all(begin < end for begin, end in found)
    assert all(found[n][1] < found[n + 1][0] for n in range(len(found) - 1))


PIECES = (
    *(":", "www", ".", "http", "//", "@", "<", "-", ">", "=", "~", " ", "material", "_home", "streamlit", "+1", "a"),
    *("[", "]", "(", ")", "{", "}", "*", "_", "`", "$", "\\", "#", "1", "!", "|", "&lt;", "red", "small", ":small[]"),
)
"""What Markdown, or Streamlit after it, may make something of."""
REPLACED = re.compile(
    r":[\w+-]+:|(^|\s)(<->|->|<-|--|>=|<=|~=)(\s|$)|(https?://|www\.)|[-.\w+]+@[-\w]+\.[-\w]", re.IGNORECASE
)
"""What Streamlit replaces in a piece of text that Markdown left as it is: icons, emoji, signs, addresses."""


@given(
    st.text(max_size=80)
    | st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
    | st.sampled_from([MARKUP, "1. one", "# x", "- a", "> q", "a  \nb", "www.x.org", ":smile:", "~~~"])
)
@example(":streamlit:")
@example(":material_home:")
@example("see https://x.org")
@example("stars >= 2")
@example("<->")
@example("a@b.org")
def test_escaped_markdown_shows_the_text_and_nothing_else(text: str) -> None:
    text = "".join(c for c in text if c.isprintable() or c in "\n\t ").replace("\ue000", "")
    parser = MarkdownIt("commonmark", {"linkify": False}).enable(["table", "strikethrough"])
    rendered = parser.render(escape_markdown(text).replace(NOTHING, "\ue000"))
    node = LexborHTMLParser(f"<div>{rendered}</div>").css_first("div")
    assert node is not None
    pieces = node.text().removesuffix("\n").split("\ue000")
    assert "".join(pieces) == " ".join(text.split())
    assert [piece for piece in pieces if REPLACED.search(piece)] == []
    assert {child.tag for child in node.css("*")} <= {"div", "p"}


@pytest.mark.parametrize("name", ["month_name", "tag:to_do", "label:labels", "topic:topics name", "late-2"])
def test_an_ordinary_name_is_not_escaped(name: str) -> None:
    """Streamlit puts the label of a widget, as it is given, into its `aria-label`."""
    assert escape_markdown(name) == name


@pytest.mark.parametrize("name", ["tag:red", "tag:blue-badge", "tag:small", "a:b:c", "_a_", "a__b", "1. a"])
def test_a_name_in_which_streamlit_reads_something_is_escaped(name: str) -> None:
    assert "\\" in escape_markdown(name)


def test_what_streamlit_reads_besides_markdown_is_escaped() -> None:
    for text in (":red[x]", "$x$", ":material/home:", "<b>", "http://x.org", "a@b.org", "~~x~~", "==x=="):
        escaped = escape_markdown(text).replace(NOTHING, "")
        assert all(f"\\{sign}" in escaped for sign in set(text) & set(":[]$<>@~=/."))


def test_a_folder_that_the_pages_would_not_make_is_opened_and_one_that_cannot_be_shown_is_left_out(
    pages: Pages,
) -> None:
    pages.collection("**x**")
    pages.collection("\x1b[2J")
    page = pages.open("data", collection="**x**")
    assert page.sidebar.selectbox[0].options == ["**x**"]
    assert "An unexpected error occurred" not in shown(page)


def test_a_damaged_collection_and_one_being_made_are_sentences(pages: Pages) -> None:
    path = pages.collection("reviews").path
    for each in path.glob("catalog.db*"):
        each.unlink()
    (path / "catalog.db").write_bytes(b"no database" * 1000)
    for name in ("evaluate", "data"):
        page = pages.open(name, collection="reviews")
        assert "its catalog.db is damaged" in page.error[0].value.replace("\\", "")
        assert "Health" in shown(page)


@pytest.mark.parametrize(
    ("endpoint", "error", "logged"),
    [
        ("_websocket_endpoint", RuntimeError("WebSocket is not connected"), False),
        ("_websocket_endpoint", ValueError("another mistake"), True),
        ("elsewhere", RuntimeError("another mistake"), True),
    ],
)
def test_a_page_that_is_closed_while_it_is_sent_is_not_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, endpoint: str, error: Exception, logged: bool
) -> None:
    importlib.import_module("sonde.app.ui.main")
    log = logging.getLogger("uvicorn.error")
    # A server that another test started in this process keeps uvicorn's records from the root, where caplog listens.
    monkeypatch.setattr(log, "handlers", [caplog.handler])
    monkeypatch.setattr(log, "disabled", False)
    monkeypatch.setattr(log, "propagate", False)
    monkeypatch.setattr(log, "level", logging.INFO)
    names: dict[str, Any] = {"error": error}
    exec(f"def {endpoint}():\n    raise error", names)
    try:
        names[endpoint]()
    except Exception:
        log.exception("Exception in ASGI application")
    assert bool(caplog.records) is logged


def test_an_error_names_no_folder_of_the_server(pages: Pages) -> None:
    path = pages.collection("reviews").path
    (path / "catalog.db").write_bytes(b"no database at all")
    said = shown(pages.open("search", collection="reviews"))
    assert "reviews.sonde" in said.replace("\\", "")
    assert str(pages.shelf) not in said.replace("\\", "").replace(":small[]", "")


def test_a_click_on_a_download_does_not_draw_the_page(checkout: Path) -> None:
    """Streamlit forgets the file of a button as soon as the page is drawn again, and the browser asks for it then."""
    calls = [
        (path.name, {each.arg: ast.unparse(each.value) for each in node.keywords})
        for path in (checkout / "app" / "ui").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "download_button"
    ]
    assert len(calls) >= 5
    assert [name for name, given in calls if given.get("on_click") != "'ignore'"] == []


def test_while_the_first_collection_is_indexed_the_pages_say_so(pages: Pages) -> None:
    assert "No collection yet" in shown(pages.open("clusters"))
    kept_job(pages, ["index", "rows.csv"], collection="rows", code=None)
    said = shown(pages.open("clusters"))
    assert "The first collection is being indexed." in said and "No collection yet" not in said


def test_a_finished_job_of_another_collection_is_no_card(pages: Pages) -> None:
    pages.collection("shop")
    pages.collection("other")
    job = kept_job(pages, ["verify", "other.sonde"], collection="other")
    keys = [button.key for button in pages.open("data", collection="shop").button]
    assert f"forget-{job.id}" not in keys and "forget-earlier" in keys
    assert f"forget-{job.id}" in [button.key for button in pages.open("data", collection="other").button]

"""A collection full of markup in a real Chromium: every page shows it as the text that it is, and runs none of it."""

# ruff: noqa: F811  (fixtures that are imported)

import csv
import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from hostile import MARKUP, hostile
from in_chromium import chromium  # noqa: F401  (fixture)
from playwright.sync_api import Browser, ConsoleMessage, Dialog, expect
from served_ui import Server, Visit, server  # noqa: F401  (fixture)
from ui_overview import box

NAME = "# shop **zqbold** $x$ [x](y) :streamlit: www.evil.example".replace(":", ";")
"""Of the collection: a folder's name may not hold what some file systems refuse."""
DRAWN = r"""
() => {
  const made = [], texts = [];
  const walk = (root) => {
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) walk(element.shadowRoot);
      const own = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data).join("");
      const link = new URL(element.href ?? element.src ?? "", location.href);
      const away = ![location.host, ""].includes(link.host) || link.protocol === "javascript:";
      const words = /zq(bold|em|del|code|red|b)\\b/.exec(element.textContent);
      const plain = element.textContent.trim().replace(/^[^z]*/, "") === (words ?? [])[0];
      if (away || element.matches(".katex, [alt='Streamlit logo'], [aria-label='home icon']")
          || (words && plain && element.matches("b, strong, em, del, code, h1, h2, h4, h5, a, span[style*=color]")))
        made.push(element.outerHTML.slice(0, 200));
      if (!element.matches("script, style")) texts.push(own, element.value ?? "");
    }
  };
  walk(document);
  return [made, `${document.body.textContent} ${texts.join(" ")}`];
}
"""
"""What was made of the markup, and the page's text with that of its fields and of the chart of the map."""


@pytest.fixture
def visit(chromium: Browser, server: Server) -> Iterator["Hostile"]:
    found = Hostile(chromium, server)
    try:
        yield found
        found.check()
    finally:
        found.context.close()


class Hostile(Visit):
    """A window in which dialogs and errors on the console fail the test too."""

    def __init__(self, browser: Browser, server: Server) -> None:
        super().__init__(browser, server)
        self.page.on("dialog", self._dialog)
        self.page.on("console", self._console)

    def _dialog(self, dialog: Dialog) -> None:
        self.failed.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _console(self, message: ConsoleMessage) -> None:
        where = message.location["url"]
        if message.type == "error" and "/_stcore/" not in where:  # Streamlit looks for its own address below each page
            self.failed.append(f"console: {message.text} {where}")

    def look(self, part: str, expected: str = "", /, **address: str) -> str:
        """Open a page and check it once it shows a text; return its whole text, spaces as a browser shows them."""
        self.go(f"/{part}?{urlencode({'collection': NAME, **address})}")
        if part == "map":
            self.page.locator("[data-drawn]").wait_for()
        until = time.monotonic() + 60  # a chart is drawn after its page
        while expected not in (found := self.read()) and time.monotonic() < until:
            self.settle()
        return found

    def read(self) -> str:
        """Check what the page shows; return its text."""
        self.page.wait_for_timeout(500)
        assert self.page.evaluate("window.owned") is None
        made, text = self.page.evaluate(DRAWN)
        assert made == []
        self.check()
        return " ".join(text.split())


COLUMN, LABELLED, PART = f"column {MARKUP}", f"labels {MARKUP}", MARKUP[:15]
"""PART is what a chart, which shortens names, shows at least."""
CLUSTERS, TOPICS = ({"run": f"{kind}:{kind}s {MARKUP}"} for kind in ("cluster", "topic"))
PAGES: list[tuple[str, dict[str, str], str]] = [
    ("search", {}, COLUMN),
    ("search", {"q": "script owned", "filters": "true"}, f"title {MARKUP}"),
    ("search", {"like": f"0 {MARKUP}"}, f"Documents similar to 0 {MARKUP}, by meaning."),
    ("search", {"q": "parcel", "where": MARKUP}, MARKUP),
    ("map", {}, "a region <script>"),
    ("map", {"area": box(-0.5, -0.5, 60, 5), "color": COLUMN, "q": "parcel"}, f"one {MARKUP}"),
    ("map", {"area": box(-0.5, -0.5, 60, 5), "do": "apart"}, f"title {MARKUP}"),
    ("clusters", CLUSTERS | {"part": "groups"}, MARKUP),
    ("clusters", CLUSTERS | {"part": "documents"}, MARKUP),
    ("clusters", CLUSTERS | {"part": "by column", "column": COLUMN}, COLUMN),
    ("clusters", CLUSTERS | {"part": "compare"}, MARKUP),
    ("clusters", TOPICS | {"part": "groups"}, f"parcel {MARKUP}"),
    ("clusters", TOPICS | {"part": "hierarchy"}, f"parcel {PART}"),
    ("clusters", TOPICS | {"part": "by column", "column": "day"}, f"parcel {PART}"),
    ("labels", {"part": "labels"}, LABELLED),
    ("labels", {"part": "documents by label"}, f"parcel {MARKUP}"),
    ("labels", {"part": "review"}, f"parcel {MARKUP}"),
    ("labels", {"part": "against a column", "truth": COLUMN}, COLUMN),
    ("explain", {"a": "parcel", "id": f"0 {MARKUP}"}, MARKUP),
    ("evaluate", {"what": "Search"}, "Queries"),
    ("evaluate", {"what": "Labels", "truth": COLUMN}, f"Labels {LABELLED} against the column {COLUMN}."),
    ("evaluate", {"what": "Clusters", "truth": COLUMN}, f"topics {MARKUP}"),
    ("data", {"do": "About"}, COLUMN),
    ("data", {"do": "Delete", "delete-where": MARKUP}, NAME),
    ("data", {"do": "Health"}, NAME),
]
"""A page's address, and what it shows."""


def job(shelf: Path, number: int, command: list[str], code: int, out: str) -> None:
    """Leave a job of a hostile title that has ended."""
    folder = shelf / ".sonde-jobs" / f"{number:015d}-abcdef"
    folder.mkdir(parents=True)
    kept = {"title": f"job {MARKUP}", "collection": NAME, "command": command, "started": 1, "pid": 0}
    (folder / "job.json").write_text(json.dumps(kept))
    (folder / "stdout.jsonl").write_text(out)
    (folder / "stderr.txt").write_text(f"sonde: error {MARKUP}")
    (folder / "exit").write_text(str(code))


@pytest.mark.parametrize("pages", [PAGES[::3], pytest.param(PAGES, marks=pytest.mark.long)], ids=["some", "all"])
def test_no_page_reads_markup_in_what_a_stranger_wrote(
    visit: Hostile, server: Server, pages: list[tuple[str, dict[str, str], str]]
) -> None:
    made = hostile(server.shelf / f"{NAME}.sonde", MARKUP)
    found = made.evaluate_labels(LABELLED, COLUMN)
    job(server.shelf, 1, ["evaluate", "labels"], 0, json.dumps(found.to_dict()))
    job(server.shelf, 2, ["index", MARKUP], 1, "")
    missing = [(part, more, shown) for part, more, shown in pages if shown not in visit.look(part, shown, **more)]
    assert [(part, *(value[:20] for value in more.values()), shown[:40]) for part, more, shown in missing] == []


def test_a_failed_job_and_an_uploaded_file(visit: Hostile, server: Server) -> None:
    hostile(server.shelf / f"{NAME}.sonde", MARKUP)
    job(server.shelf, 2, ["index", MARKUP], 1, "")
    from sonde.app.ui.words import in_pages, without_paths

    assert without_paths(in_pages(f"error {MARKUP}")) in visit.look("data", do="New collection")
    table = io.StringIO()
    csv.writer(table).writerows([["text", COLUMN], [f"parcel {MARKUP}", MARKUP]] * 3)
    name = MARKUP.replace("/", ";")[:180]
    content = table.getvalue().encode()
    upload = {"name": f"{name}.csv", "mimeType": "text/csv", "buffer": content}
    visit.page.locator("input[type=file]").set_input_files(upload)  # type: ignore[arg-type]
    expect(visit.page.get_by_text("rows", exact=False).first).to_be_visible()
    until = time.monotonic() + 60  # the file is read in a process of its own
    while COLUMN not in visit.read() and time.monotonic() < until:
        visit.settle()
    assert COLUMN in visit.read()


@pytest.mark.parametrize("color", [None, COLUMN])
def test_a_map_as_a_page_runs_nothing(chromium: Browser, tmp_path: Path, color: str | None) -> None:
    made = hostile(tmp_path / "c.sonde", MARKUP)
    made.map_run().draw(tmp_path / "map.html", color=color)
    page = chromium.new_page()
    failed: list[str] = []
    page.on("dialog", lambda dialog: failed.append(dialog.message))
    page.on("pageerror", lambda error: failed.append(str(error)))
    page.on("request", lambda request: failed.append(request.url) if request.url.startswith("http") else None)
    page.goto((tmp_path / "map.html").as_uri())
    page.locator(".annotation").first.wait_for()
    drawn = page.locator("#plot").evaluate("plot => plot.textContent")
    assert "a region <script>owned=1" in drawn
    assert page.locator("#plot").locator("a, img, script").count() == 0
    assert page.evaluate("window.owned") is None
    assert failed == []
    page.close()

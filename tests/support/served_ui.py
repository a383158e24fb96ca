"""`sonde ui` in a process of its own, and a browser window that looks at it.

A test takes the fixtures `server`, `visit` and, from in_chromium.py, `chromium`.
"""

# ruff: noqa: F811  (fixtures that are imported)

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from in_chromium import PATIENCE, activate, chromium  # noqa: F401  (fixture)
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Request, ViewportSize, expect


def weightless() -> dict[str, str]:
    """An environment in which Python takes the encoder without weights."""
    paths = [str(Path(__file__).with_name("weightless")), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


class Server:
    """`sonde ui` in a process of its own, with the encoder without weights."""

    def __init__(self, shelf: Path, port: int, log: Path) -> None:
        self.shelf, self.port, self.log = shelf, port, log
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def hold(self) -> Path:
        """As long as this file exists, a job embeds no more than its first batch."""
        return self.log.with_name("hold")

    def start(self) -> None:
        environment = weightless() | {"SONDE_HOLD": str(self.hold)}
        script = "from sonde.app.cli.main import main; main()"
        command = [sys.executable, "-c", script, "ui", str(self.shelf), "--port", str(self.port), "--device", "cpu"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        end = time.monotonic() + PATIENCE / 1000
        while not self.healthy():
            assert time.monotonic() < end, self.log.read_text()
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.1)

    def healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=2) as answer:
                return answer.status == 200
        except (OSError, urllib.error.URLError):
            return False

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
            self.process.kill()
            self.process.wait()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path) as server:
        yield server


@contextmanager
def serving(place: Path) -> Iterator[Server]:
    """A server over the folder `shelf` in a place; its jobs end with it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shelf = place / "shelf"
    shelf.mkdir(exist_ok=True)
    server = Server(shelf, port, place / "log")
    try:
        server.start()
        yield server
    finally:
        server.stop()
        for process in psutil.process_iter(["cmdline"]):
            if str(shelf) in " ".join(process.info["cmdline"] or []):
                process.kill()


@pytest.fixture(scope="module")
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """One for the pages of all tests of a file, in which Streamlit's scripts are read and compiled once."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    yield context
    context.close()


@contextmanager
def visiting(context: BrowserContext, server: Server) -> Iterator["Visit"]:
    """A window of a context that others share."""
    visit = Visit(context, server)
    try:
        yield visit
    finally:
        visit.page.close()


class Visit:
    """A browser window, and what must not happen in it."""

    def __init__(self, browser: Browser | BrowserContext, server: Server) -> None:
        """Open a window in a context of its own, or in the one given: a module's, of which only the page is its own."""
        own = isinstance(browser, Browser)
        size: ViewportSize = {"width": 1280, "height": 800}
        self.context = browser.new_context(viewport=size, accept_downloads=True) if own else browser
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.server = server
        self.left: list[str] = []
        self.failed: list[str] = []
        self.page.on("request", self._request)
        self.page.on("pageerror", lambda error: self.failed.append(str(error)))

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self.server.url, "data:", "blob:", self.server.url.replace("http", "ws"))):
            self.left.append(request.url)

    def go(self, address: str) -> Page:
        self.page.goto(f"{self.server.url}{address}")
        self.settle()
        return self.page

    def settle(self) -> None:
        """Wait until the page is drawn."""
        expect(self.page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")

    def check(self) -> None:
        """Nothing left this machine, nothing failed, and no page showed what only a programmer reads."""
        text = self.page.inner_text("body")
        assert "Traceback" not in text
        assert "An unexpected error occurred" not in text
        assert self.left == []
        assert self.failed == []
        said = self.server.log.read_text()
        assert "Traceback" not in said, said[said.index("Traceback") :][:3_000]

    def go_by_menu(self, title: str) -> None:
        activate(self.page.get_by_test_id("stSidebarNav").get_by_role("link", name=title, exact=True))
        expect(self.page.get_by_test_id("stMain").get_by_role("heading", name=title).first).to_be_visible()
        self.settle()

    def fill(self, label: str, text: str) -> None:
        box = self.page.get_by_label(label, exact=True)
        box.fill(text)
        box.press("Enter")
        self.settle()

    def press(self, name: str | re.Pattern[str]) -> None:
        activate(self.page.get_by_role("button", name=name).first)
        self.settle()

    def open(self, name: str, inside: Locator) -> Locator:
        """Open a popover; a click that did no more than close another one is repeated, as a person would.

        One that is open and still empty after that is closed before it is opened again: a click alone would close it.
        """
        for _ in range(6):
            if not self.page.get_by_test_id("stPopoverBody").first.is_visible():
                self.press(re.compile(f"^{name}$"))
            elif not inside.is_visible():
                self.page.keyboard.press("Escape")
                self.press(re.compile(f"^{name}$"))
            with suppress(AssertionError):
                expect(inside).to_be_visible(timeout=PATIENCE / 6)
                break
        expect(inside).to_be_visible()
        return inside


@pytest.fixture
def visit(chromium: Browser, server: Server) -> Iterator[Visit]:
    visit = Visit(chromium, server)
    try:
        yield visit
        visit.check()
    finally:
        visit.context.close()

"""Screenshots of every page of the web UI, light and dark, into docs/images/.

usage: make_screenshots.py SHELF, a folder with a collection `papers.sonde` that has a map, clusters `kmeans`, topics
and labels: texts that may be shown, such as titles and abstracts of arXiv (their metadata is CC0), and a column `area`.
The UI is started on it; it measures its clusters once, for the page Evaluate, and changes nothing else.
Needs Chromium, as tests/app/ui/test_ui_browser.py does.
"""

import io
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
SIZE = {"width": 1280, "height": 800}
PAGES: dict[str, dict[str, str]] = {
    "data": {},
    "search": {"q": "robots that learn from human demonstrations"},
    "map": {"q": "robots that learn"},
    "clusters": {},
    "labels": {},
    "explain": {"a": "how do robots learn to grasp", "b": "A robot arm learns to pick up objects."},
    "evaluate": {"what": "Clusters", "run": "kmeans", "truth": "area"},
}
WARM, FAST = 12, 500
"""Searches before the pictures, at most, and the milliseconds below which one counts as fast."""
SETTLED = "() => document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'"


def main(shelf: Path, collection: str = "papers") -> None:
    """Take all of them."""
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    from browser import launch

    IMAGES.mkdir(exist_ok=True)
    port = _free()
    script = "from sonde.app.cli.main import main; main()"
    server = subprocess.Popen([sys.executable, "-c", script, "ui", str(shelf), "--port", str(port)])
    try:
        _wait(port)
        with sync_playwright() as playwright:
            browser = launch(playwright)
            _warm(browser.new_page(), f"http://127.0.0.1:{port}/search?collection={collection}&q=anything")
            for scheme in ("light", "dark"):
                page = browser.new_page(viewport=SIZE, color_scheme=scheme)  # type: ignore[arg-type]
                for name, address in PAGES.items():
                    _take(page, f"http://127.0.0.1:{port}/{name}", {"collection": collection, **address}, scheme)
            browser.close()
    finally:
        server.terminate()
        server.wait()


def _warm(page: Page, url: str) -> None:
    """Search with other words until a search is fast: the time that a page shows is not that of loading the model."""
    for number in range(WARM):
        page.goto(f"{url}+{number}")
        said = page.get_by_text("The best 100 hits ·")
        said.wait_for(timeout=120_000)
        if _milliseconds(said.inner_text()) < FAST:
            page.close()
            return
    raise SystemExit("searches stay slow: try again on an idle machine")


def _milliseconds(said: str) -> int:
    """Return the time at the end of a line such as "The best 100 hits · hybrid · 1,234 ms"."""
    return int(said.rsplit("·", 1)[1].replace("ms", "").replace(",", ""))


def _take(page: Page, url: str, address: dict[str, str], scheme: str) -> None:
    page.goto(f"{url}?{urlencode(address)}")
    page.wait_for_selector("[data-testid=stMain] h1")
    quiet = 0
    while quiet < 6:  # pages draw in several runs, charts after them
        page.wait_for_timeout(500)
        quiet = quiet + 1 if page.evaluate(SETTLED) else 0
    if (
        page.get_by_role("button", name="Measure", exact=True).is_visible()
        and not page.get_by_text("Without true classes").is_visible()
    ):
        page.get_by_role("button", name="Measure", exact=True).click()
        page.get_by_text("Without true classes").wait_for(timeout=120_000)
        page.goto(page.url)  # without the message that it is done
        page.get_by_text("Without true classes").wait_for()
    path = IMAGES / f"ui-{url.rpartition('/')[2]}-{scheme}.png"
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    image.save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size // 1000} kB", flush=True)


def _free() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait(port: int) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the UI did not start")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

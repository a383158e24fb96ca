"""Chromium for tests/app/ui/test_ui_browser.py: where it is, and how it comes to a machine that has none.

Run as a script (`make test` does), it sees to it as far as it can, and says what it found.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

try:
    from playwright.sync_api import Browser, Error, Playwright, sync_playwright
except ModuleNotFoundError:
    sys.exit("Playwright is not installed: run `make test`, or .venv/bin/python -m pip install -e '.[all,test]'")

VARIABLE = "SONDE_CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--enable-unsafe-swiftshader", "--use-angle=swiftshader",  # WebGL without a graphics card
    "--disable-gpu-compositing",  # but the page itself without it: SwiftShader draws each frame several times slower
    "--force-prefers-reduced-motion",  # a spinner that turns is drawn 60 times a second for as long as a test waits
]  # fmt: skip
MINUTES = 10


def find() -> str | None:
    """Return the path of a browser of this machine, None where there is only Playwright's own, or none."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def launch(playwright: Playwright) -> Browser:
    """Start a browser without a window.

    Raises:
        Error: There is none.
    """
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    flags = [*FLAGS, *(["--no-sandbox"] if root else [])]
    return playwright.chromium.launch(executable_path=find(), args=flags)


def works() -> str:
    """Return the browser's version, "" where none can be started."""
    try:
        with sync_playwright() as playwright:
            browser = launch(playwright)
            try:
                return browser.version
            finally:
                browser.close()
    except Error:
        return ""


def install() -> None:
    """Get a browser: Playwright's own, or, for root on Debian and Ubuntu, the distribution's."""
    if run(sys.executable, "-m", "playwright", "install", "chromium") and works():
        return
    if shutil.which("apt-get") and hasattr(os, "geteuid") and os.geteuid() == 0:
        run("apt-get", "update")
        run("apt-get", "install", "-y", "--no-install-recommends", "chromium")


def run(*command: str) -> bool:
    """Run a command that may have to download something; return whether it went well."""
    print("running", " ".join(command), flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        return subprocess.run(command, env=environment, timeout=MINUTES * 60, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def main() -> None:
    """See to it that there is a browser; without one, the tests that need it say so."""
    version = works()
    if not version:
        install()
        version = works()
    where = find() or "Playwright's own"
    if version:
        print(f"browser: Chromium {version} ({Path(where).name})")
    else:
        print(f"browser: none. Install Chromium, or name one in {VARIABLE}; the tests that need it are skipped.")


if __name__ == "__main__":
    main()

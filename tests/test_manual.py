"""The manual as a site: links lead to pages and headings, every page is in the menu, nothing comes from outside."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

MENU = re.compile(r"[\w/]+\.md")


@pytest.fixture(scope="module")
def site(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=checkout, env=quiet, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stdout + built.stderr) == (0, "")
    return folder


def test_it_has_the_readme_and_the_pages_outside_docs(site: Path) -> None:
    assert "Which command for what" in (site / "index.html").read_text(encoding="utf-8")
    for name in ("architecture", "benchmarks", "changelog", "tutorials/faq", "decisions/index"):
        assert (site / f"{name}.html").exists()


def test_no_page_loads_anything_from_another_server(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(
            r"<(?:script|img|iframe)[^>]+src=\"([^\"]+)|<link[^>]+href=\"([^\"]+)", page.read_text("utf-8")
        )
        assert [one or other for one, other in loaded if (one or other).startswith(("http:", "https:", "//"))] == [], (
            page
        )


def test_every_page_is_in_the_menu(checkout: Path) -> None:
    menu = set(MENU.findall(yaml.dump(yaml.safe_load((checkout / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])))
    docs = checkout / "docs"
    pages = {page.relative_to(docs).as_posix() for page in docs.rglob("*.md") if page.parent.name != "decisions"}
    assert pages <= menu


def test_messages_of_the_troubleshooting_page_are_sondes(checkout: Path) -> None:
    page = (checkout / "docs/troubleshooting.md").read_text("utf-8")
    messages = page.partition("## Messages")[2].partition("## Other problems")[0]
    packages = ("app", "indexer", "pipelines")
    code = "\n".join(path.read_text("utf-8") for name in packages for path in (checkout / name).rglob("*.py"))
    quoted = [part.strip(" .…'[]") for bold in re.findall(r"\*\*(.+?)\*\*", messages) for part in bold.split("…")]
    said = [part for part in quoted if part]
    assert len(said) > 10
    joined = re.sub(r'"\s*\n\s*f?"', "", code)  # sentences that are written on several lines
    assert [part for part in said if part not in joined] == []

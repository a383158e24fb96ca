"""For `make docs`: the manual also has pages that are not in docs/, and their links lead to each other."""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

OUTSIDE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks.md",
}
"""Files of the repository that are not in docs/, and the pages that they become."""
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#:]*)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/."""
    root = Path(config.config_file_path).parent
    for source, page in OUTSIDE.items():
        files.append(File.generated(config, page, content=(root / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links between files of the repository into links between pages; a file that is no page loses its link."""
    here = page.file.src_uri
    source = next((name for name, made in OUTSIDE.items() if made == here), f"docs/{here}")

    def linked(found: re.Match[str]) -> str:
        picture, text, target, anchor = found[1], found[2], found[3], found[4] or ""
        if not target:
            return found[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        page = OUTSIDE.get(path, path.removeprefix("docs/") if path.startswith("docs/") else None)
        if page is None:
            return text
        return f"{picture}[{text}]({posixpath.relpath(page, posixpath.dirname(here) or '.')}{anchor})"

    return _LINK.sub(linked, markdown)

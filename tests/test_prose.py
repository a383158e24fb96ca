"""What people read is spelled correctly and uses plain words: documentation, docstrings, comments, messages."""

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

PACKAGES = ("app", "indexer", "pipelines")
LISTS = ("stop_words.py", "words.py", "analysis.py", "languages.py", "non_answers.py")
"""Files with lists of words of the language, which are data."""


@pytest.fixture(scope="module")
def documents(checkout: Path) -> list[Path]:
    pages = [path for path in checkout.glob("docs/**/*.md") if "decisions" not in path.parts]
    return [*checkout.glob("*.md"), *pages]


@pytest.fixture(scope="module")
def modules(checkout: Path) -> list[Path]:
    return [path for package in PACKAGES for path in (checkout / package).rglob("*.py") if path.name not in LISTS]


@pytest.fixture(scope="module")
def swaps(checkout: Path) -> dict[str, str]:
    return yaml.safe_load((checkout / ".vale/Sonde/Plain.yml").read_text("utf-8"))["swap"]


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines of a document outside code, or of the docstrings, comments and texts of a module."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        text = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.M | re.S)
        yield from enumerate((re.sub(r"`[^`]*`", "", line) for line in text.split("\n")), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT) and " " in token.string:
            for place, line in enumerate(token.string.split("\n")):
                yield token.start[0] + place, re.sub(r"\{[^{}]*\}|^\s*\w+:", "", line)  # no names of variables


def found_in(paths: list[Path], swaps: dict[str, str]) -> list[str]:
    """Each use of a word that a plainer one replaces."""
    words = re.compile("|".join(rf"(?P<w{place}>\b(?:{word})\b)" for place, word in enumerate(swaps)), re.I)
    better = list(swaps.values())
    return [
        f"{path.name}:{number}: {match[0]!r}: write {better[int(str(match.lastgroup)[1:])]!r}"
        for path in paths
        for number, line in prose(path)
        for match in words.finditer(line)
    ]


def test_documents_use_plain_words(documents: list[Path], swaps: dict[str, str]) -> None:
    assert found_in(documents, swaps) == []


def test_modules_use_plain_words(modules: list[Path], swaps: dict[str, str]) -> None:
    assert found_in(modules, swaps) == []


def test_a_word_of_the_list_is_found(tmp_path: Path, swaps: dict[str, str]) -> None:
    (tmp_path / "a.md").write_text("Read `anew`.\n\n```\nanew\n```\n\nThe index is built anew.\n")
    (tmp_path / "b.py").write_text('"""Mends it."""\n\nsaid = "x"\nline = f"{said} it"\n# it goes by the name\n')
    assert found_in([tmp_path / "a.md", tmp_path / "b.py"], swaps) == [
        "a.md:7: 'anew': write 'again'",
        "b.py:1: 'Mends': write 'fix'",
        "b.py:5: 'goes by': write 'use'",
    ]


def test_spelling(checkout: Path, documents: list[Path], modules: list[Path]) -> None:
    command = [sys.executable, "-m", "codespell_lib", *documents, *modules]
    ran = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    assert ran.stdout == ""

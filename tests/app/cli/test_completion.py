"""Completion in a shell: commands, options and collections, in a real bash."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from thinned import thinned

BASH = shutil.which("bash")
COMMAND = f"""#!{sys.executable}
import sys
sys.argv[0] = "sonde"
from sonde.app.cli.main import main
main()
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with `bin/sonde`, collections, and a file that is none."""
    home = tmp_path_factory.mktemp("home")
    (home / "bin").mkdir()
    (home / "bin" / "sonde").write_text(COMMAND)
    (home / "bin" / "sonde").chmod(0o755)
    for name in ("reviews.sonde", "papers.sonde", "data/tickets.sonde"):
        (home / name).mkdir(parents=True)
        (home / name / "catalog.db").touch()
    (home / "notes.sonde").mkdir()
    (home / "reviews.csv").touch()
    return home


def bash(home: Path, script: str) -> str:
    assert BASH
    kept = {name: value for name, value in os.environ.items() if name in ("PYTHONPATH", "LANG")}
    environment = {**kept, "HOME": str(home), "PATH": f"{home / 'bin'}:/usr/bin:/bin"}
    ran = subprocess.run(
        [BASH, "--norc", "-c", script], cwd=home, env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stderr == ""
    return ran.stdout


def completed(home: Path, line: str) -> list[str]:
    """What bash proposes after the words of a line, the last of which may be empty."""
    words = shlex.split(line) + ([""] if line.endswith(" ") else [])
    script = f"""
eval "$(_SONDE_COMPLETE=source_bash sonde)"
COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}
_sonde_completion sonde
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    return bash(home, script).split()


pytestmark = pytest.mark.skipif(BASH is None, reason="bash is not installed")


@pytest.mark.parametrize(
    ("line", "found"),
    thinned([
        ("sonde se", ["search", "serve"]),
        ("sonde to", ["topics"]),
        ("sonde search ", ["papers.sonde", "reviews.sonde"]),
        ("sonde search rev", ["reviews.sonde"]),
        ("sonde info ./p", ["./papers.sonde"]),
        ("sonde info da", ["data/tickets.sonde"]),
        ("sonde info data/", ["data/tickets.sonde"]),
        ("sonde search reviews.sonde query --rerank-", ["--rerank-model", "--rerank-depth", "--rerank-budget"]),
        ("sonde runs me", ["merge"]),
        ("sonde runs rev", ["reviews.sonde"]),
        ("sonde runs show p", ["papers.sonde"]),
        ("sonde serve papers.sonde r", ["reviews.sonde"]),
        ("sonde serve k", ["key"]),
        ("sonde tune rev", ["reviews.sonde"]),
        ("sonde evaluate search p", ["papers.sonde"]),
        ("sonde label p", ["papers.sonde"]),
        ("sonde texts s", ["similarity"]),
    ], 3),
)  # fmt: skip
def test_bash_completes(home: Path, line: str, found: list[str]) -> None:
    assert completed(home, line) == found


def test_a_file_is_left_to_the_shell(home: Path) -> None:
    assert completed(home, "sonde index rev") == []  # bash then proposes files: `complete -o default`


def test_an_absolute_path(home: Path) -> None:
    assert completed(home, f"sonde info {home}/rev") == [f"{home}/reviews.sonde"]


def test_bash_is_set_up_by_one_option(home: Path) -> None:
    said = bash(home, "sonde --install-completion; true")
    assert said.splitlines() == [
        f"bash completion installed in {home}/.bash_completions/sonde.sh",
        "Completion will take effect once you restart the terminal",
    ]
    script = bash(home, "sonde --show-completion; true")
    assert script.strip() == (home / ".bash_completions" / "sonde.sh").read_text().strip()
    assert "complete -o default -F _sonde_completion sonde" in script
    line = "COMP_WORDS=(sonde inf); COMP_CWORD=1; _sonde_completion sonde; echo ${COMPREPLY[@]}"
    assert bash(home, f"source ~/.bashrc; {line}") == "info\n"


def test_zsh_gets_the_same_names(home: Path) -> None:
    def answered(words: str) -> str:
        return bash(home, f"_TYPER_COMPLETE_ARGS={shlex.quote(words)} _SONDE_COMPLETE=complete_zsh sonde")

    assert '"info":' in answered("sonde inf")
    assert answered("sonde info rev") == "_arguments '*: :((\"reviews.sonde\"))'\n"
    assert "#compdef sonde" in bash(home, "_SONDE_COMPLETE=source_zsh sonde")

"""Writes docs/cli.md from the help of every command: python docs/make_cli.py."""

from collections.abc import Iterator
from pathlib import Path

import typer
from typer.testing import CliRunner

from sonde.app.cli.main import app_for

WIDTH = 110
HEAD = f"""<!-- made by docs/make_cli.py with Typer {typer.__version__}; tests/test_docs.py compares -->

# The command line

Every command ends with exit code 0 (done), 1 (failed; the reason is one line) or 2 (bad usage). `sonde watch --alert`
ends with 3 if something changed. A command that is stopped ends with 130 (Ctrl-C) or 143 (SIGTERM) and says what it
keeps; `serve` and `ui` end with 0. With `--json`, standard output holds JSON lines and nothing else; progress and
notes go to standard error.

Control characters in texts, ids and names are printed as escapes such as `\\u001b`, so that no text can send commands
to your terminal. A JSON line with such an escape holds the same value. `sonde export` writes its JSON lines unchanged
to a file or a pipe.

`sonde --install-completion` sets up your shell (bash, zsh, fish or PowerShell) to complete commands, options and the
paths of collections when you press Tab. Start a new shell afterwards.

Old names of commands still work:

| old | new |
|---|---|
| `sonde correct` | `sonde runs correct` |
| `sonde topic C NUMBER`, `--search`, `--text`, `--tree` | `sonde runs show C RUN NUMBER`, the same options |
| `sonde topic C --over COLUMN` or `--by COLUMN` | `sonde runs show C RUN --by COLUMN` |
| `sonde topic C --to FILE` with `--tree`, `--over` or `--by` | `sonde runs draw C RUN --to FILE` |
| `sonde topic C --merge 3,7`, `--reduce-to N` | `sonde runs merge C RUN 3 7`, `--reduce-to N` |
| `sonde topic C --split N` | `sonde runs split C RUN N` |
| `sonde curve C --run RUN` | `sonde runs show C RUN --curve`, `sonde runs draw C RUN` |
| `sonde runs C RUN --rename`, `--item`, `--merge`, `--delete` | `sonde runs name`, `merge`, `delete` |
| `sonde runs C RUN --by COLUMN` | `sonde runs show C RUN --by COLUMN` |
| `sonde similarity`, `sonde entail`, `sonde bitext` | `sonde texts similarity`, `entail`, `bitext` |
| `sonde judgements C` | `sonde judge C` |
| `sonde key` | `sonde serve key` |
"""


def commands() -> Iterator[list[str]]:
    """Yield the words after `sonde` of every command but old names, groups before what they hold."""
    waiting = [([], typer.main.get_command(app_for()))]
    while waiting:
        words, command = waiting.pop(0)
        yield words
        inner = {name: each for name, each in getattr(command, "commands", {}).items() if not each.hidden}
        waiting = [([*words, name], inner[name]) for name in inner] + waiting


def help_of(words: list[str]) -> str:
    """Return what `sonde WORDS --help` prints, at a fixed width."""
    environment = {"COLUMNS": str(WIDTH), "TERMINAL_WIDTH": str(WIDTH), "NO_COLOR": "1"}
    app = app_for(words)  # not all modules: their commands take a quarter of a second to put together
    ran = CliRunner().invoke(app, [*words, "--help"], prog_name="sonde", env=environment, terminal_width=WIDTH)
    if ran.exit_code:
        raise SystemExit(f"sonde {' '.join(words)} --help failed: {ran.output}")
    return "\n".join(line.rstrip() for line in ran.output.strip("\n").splitlines())


def page() -> str:
    """Return the whole page."""
    sections = [f"## {' '.join(['sonde', *words])}\n\n```\n{help_of(words)}\n```\n" for words in commands()]
    return "\n".join([HEAD, *sections])


if __name__ == "__main__":
    Path(__file__).with_name("cli.md").write_text(page(), encoding="utf-8")

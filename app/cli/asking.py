"""Questions before something is deleted or replaced: a person at a terminal is asked, a script is not."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ...indexer.errors import SondeError

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def is_asked(yes: bool) -> bool:
    """Return whether there is a person to ask: standard input and error are a terminal, and --yes is not given."""
    return not yes and sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: str, otherwise: str = "nothing was deleted") -> None:
    """Ask a question, to which "y" or "yes" means to go on; `otherwise` is what to say to another answer.

    Raises:
        SondeError: The answer is another one.
    """
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise SondeError(otherwise)


def ask_to_replace(yes: bool, *files: Path | None) -> None:
    """Ask before files that a command is to write are replaced; those that do not exist need no question.

    Raises:
        SondeError: The person does not want that.
    """
    there = [str(file) for file in files if file is not None and file.is_file()]
    if there and is_asked(yes):
        said = "exists. Replace it?" if len(there) == 1 else "exist. Replace them?"
        ask(f"{' and '.join(there)} {said}", "nothing was written")

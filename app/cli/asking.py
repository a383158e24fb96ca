"""Questions before something is deleted that cannot be made again: a person at a terminal is asked, a script is not."""

import sys
from typing import Annotated

import typer

from ...indexer.errors import SondeError

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def is_asked(yes: bool) -> bool:
    """Return whether there is a person to ask: standard input and error are a terminal, and --yes is not given."""
    return not yes and sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: str) -> None:
    """Ask a question, to which "y" or "yes" means to go on.

    Raises:
        SondeError: The answer is another one.
    """
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise SondeError("nothing was deleted")

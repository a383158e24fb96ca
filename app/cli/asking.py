"""Questions before something is deleted or replaced: a person at a terminal is asked, a script is not."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...indexer.errors import SondeError
from ...indexer.store.kinds import TAXONOMY
from ...indexer.wording import counted

if TYPE_CHECKING:
    from ..api import Collection

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


def ask_to_replace_edits(opened: "Collection", name: str, yes: bool) -> None:
    """Ask before a taxonomy that a person has edited is replaced; its log goes with it, so no undo brings it back.

    Raises:
        SondeError: The person does not want that.
    """
    if is_asked(yes) and name in [run.name for run in opened.uncounted_runs(TAXONOMY)]:
        edits = opened.taxonomy(name).edits - 1  # the first entry says how it was made
        if edits > 0:
            ask(f"the taxonomy {name!r} has {counted(edits, 'edit')}. Replace it and its log?", "nothing was changed")

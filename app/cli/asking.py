"""Before something is replaced or deleted: a question to the person at the terminal, or another name for a run."""

import sys
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...indexer.errors import SondeError
from ...indexer.store.kinds import TAXONOMY
from ...indexer.wording import counted
from .output import say

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


def free_name(opened: "Collection", kind: str, name: str, replace: bool) -> str:
    """Return the name of a new run: the given one or, if a run has it, the next one with a number.

    Args:
        opened: The collection.
        kind: The kind of run.
        name: The name that was asked for.
        replace: Whether a run of this name is to be replaced. An unfinished run always is.
    """
    taken = {run.name for run in opened.uncounted_runs(kind) if run.complete}
    if replace or name not in taken:
        return name
    return next(f"{name}-{number}" for number in count(2) if f"{name}-{number}" not in taken)


def say_name(kind: str, asked: str, given: str) -> None:
    """Say that a run has another name than the one that was asked for."""
    if given != asked:
        say(
            f"a {kind} run {asked!r} already exists, so the new run is named {given!r} (--replace replaces the old run)"
        )

"""`sonde texts`: commands that compare texts and need no collection."""

import typer

from .bitext import bitext
from .groups import Named
from .label import entail
from .similarity import similarity


def register(app: typer.Typer) -> None:
    """Add the group, and the old names of its commands."""
    group = typer.Typer(cls=Named, no_args_is_help=True, rich_markup_mode=None)
    group.callback()(_keep_group)
    lines = {
        similarity: "Compare two texts, or pairs in a file.",
        entail: "Check whether one sentence follows from another.",
        bitext: "Find translations among the sentences of two files.",
    }
    for command, line in lines.items():
        group.command(command.__name__, short_help=line)(command)
        app.command(command.__name__, hidden=True)(command)
    app.add_typer(group, name="texts")


def _keep_group() -> None:
    """Compare texts that are not in a collection.

    \b
    Examples:
      sonde texts similarity "He bought a car from her." "She sold him a car." --nli none
      sonde texts entail "A man is playing a guitar." "Somebody makes music."
      sonde texts bitext german.txt english.txt
    """

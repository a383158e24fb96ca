"""The commands of `sonde`, and the module that adds each: a command line imports only the module that it needs."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated

import typer
from typer.core import TyperCommand

from ..stopped import SERVERS
from .groups import HELP, Panels
from .once import Once
from .output import say

ADDS: Mapping[str, Sequence[str]] = {
    "index": ["index"],
    "search": ["search", "similar"],
    "tune": ["tune", "ask"],
    "demo": ["demo"],
    "cluster": ["cluster"],
    "topics": ["topics"],
    "map": ["map", "curve"],
    "label": ["label"],
    "compare": ["compare"],
    "texts": ["texts", "similarity", "entail", "bitext"],
    "runs": ["runs", "correct"],
    "taxonomy": ["taxonomy"],
    "documents": ["get", "count"],
    "topic": ["topic"],
    "check": ["check"],
    "watch": ["watch"],
    "duplicates": ["duplicates"],
    "evaluate": ["evaluate"],
    "train": ["train"],
    "serve": ["serve", "key", "mcp", "ui"],
    "upkeep": ["info", "verify", "repair", "compact", "late", "delete", "export"],
    "model": ["model"],
    "feedback": ["tag", "judge", "judgements"],
}
"""The modules of this package that add commands, with the names of the commands, old names included."""

WAIT_SECONDS = 30.0
"""How long a command that writes waits while another process writes to the collection."""


def app_for(words: Sequence[str] = ()) -> typer.Typer:
    """Return the command line: with the commands of one module if the first word names one, else with all."""
    app = typer.Typer(
        name="sonde",
        cls=Panels,
        invoke_without_command=True,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"color": False, "help_option_names": list(HELP)},
    )
    app.callback()(_options)
    needed = [name for name, commands in ADDS.items() if words and words[0] in commands]
    for name in needed or ADDS:
        import_module(f".{name}", __package__).register(app)
    _give_once(app)
    return app


def _give_once(app: typer.Typer) -> None:
    """Let every command refuse an option that is given twice."""
    for command in app.registered_commands:
        if command.cls is TyperCommand:
            command.cls = Once
    for group in app.registered_groups:
        if group.typer_instance:
            _give_once(group.typer_instance)


def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Search texts by meaning, on your own machine."""
    if version:
        from importlib import metadata

        print(f"sonde {metadata.version('sonde')}")
        raise typer.Exit
    from ..api.functions import Patience, notices_to, patience

    context.with_resource(notices_to(say))
    if context.invoked_subcommand not in SERVERS:  # a service answers at once that another process is writing
        context.with_resource(patience(Patience(WAIT_SECONDS, lambda event: say(str(event)))))

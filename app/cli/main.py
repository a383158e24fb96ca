"""`sonde`: its commands, each from a module that is imported when it is needed, and how their failures come out."""

import errno
import io
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ...indexer.errors import SondeError
from ...indexer.wording import shown_path
from ..stopped import INTERRUPTED, SERVERS, TERMINATED, after_stop, terminable
from .command_classes import Once
from .corrected import corrected, shortened, swapped
from .groups import HELP, Panels
from .output import keep_error, option, say
from .terminal import show_controls

FULL_ONLY = ("accelerate", "datasets", "peft", "sentence_transformers", "torch", "transformers")
"""Libraries that the light installation leaves out."""
Misused: Any = typer.BadParameter.__base__
"""Click's `UsageError`, wherever the installed Typer keeps it."""

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


def main() -> None:
    """Run the command line; every failure that a user can fix is one line on stderr, exit code 1 or 2."""
    _print_anything()
    with terminable() as terminated:
        sys.exit(_run(terminated))


def _run(terminated: list[int]) -> int | None:
    """Run the command and return the exit code; `terminated` holds the signals that stopped it, apart from Ctrl-C."""
    try:
        code = app_for(sys.argv[1:])(standalone_mode=False, prog_name="sonde")
        return _stopped(terminated) if code == INTERRUPTED else code
    except (typer.Abort, KeyboardInterrupt):
        return _stopped(terminated)
    except Misused as error:
        return _misused(error)
    except SondeError as error:
        keep_error(error)
        return _fail(swapped(sys.argv[1:], error) or error.render(option), error.exit_code)
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in FULL_ONLY:
            raise
        return _fail(f"this needs {library}, which only the full installation includes: pip install 'sonde[all]'", 1)
    except OSError as error:
        name = f": {shown_path(error.filename)}" if error.filename else ""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return _fail(f"the disk is full{name}: free some space, then run the same command again", 1)
        return _fail(f"{error.strerror or error}{name}", 1)


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


def _print_anything() -> None:
    """Print what the terminal's encoding lacks, and control characters, as escapes; pipes are UTF-8 on Windows too."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            encoding = "utf-8" if sys.platform == "win32" and not stream.isatty() else None
            stream.reconfigure(encoding=encoding, errors=None if stream is sys.stdin else "backslashreplace")
    show_controls()


def _stopped(terminated: list[int]) -> int:
    return _fail(after_stop(sys.argv[1:]), TERMINATED if terminated else INTERRUPTED)


def _misused(error: Any) -> int:
    message = error.format_message()
    if "\n" in message:  # a command without anything: Click's message is its help
        print(message, file=sys.stderr)
        return 2
    if meant := corrected(sys.argv[1:], message, error.ctx):
        return _fail(meant, 2)
    command = error.ctx.command_path if error.ctx else "sonde"
    return _fail(f"{message.rstrip('.')}: see `{command} --help`", 2)


def _fail(message: str, code: int) -> int:
    for word in sys.argv[1:]:
        message = message.replace(word, shortened(word))
    print("sonde: " + " ".join(message.split()), file=sys.stderr)
    return code

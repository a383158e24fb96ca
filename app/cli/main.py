"""`sonde`: the commands, and how their failures come out."""

import errno
import io
import sys
from typing import Annotated, Any

import typer

from ...indexer.errors import SondeError
from ..stopped import INTERRUPTED, SERVERS, TERMINATED, after_stop, terminable
from . import (
    check,
    cluster,
    compare,
    demo,
    documents,
    duplicates,
    evaluate,
    feedback,
    index,
    label,
    map,
    model,
    runs,
    search,
    serve,
    texts,
    topic,
    topics,
    train,
    tune,
    upkeep,
    watch,
)
from .corrected import in_quotes, swapped
from .groups import Panels
from .output import option, say
from .terminal import show_controls

FULL_ONLY = ("accelerate", "datasets", "peft", "sentence_transformers", "torch", "transformers")
"""Libraries that the light installation leaves out."""
WAIT_SECONDS = 30.0
"""How long a command that writes waits while another process writes to the collection."""

app = typer.Typer(
    name="sonde",
    cls=Panels,
    invoke_without_command=True,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"color": False},
)


@app.callback()
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


for module in (
    *(index, search, tune, demo),
    *(cluster, topics, map, label, compare, texts),
    *(runs, documents, topic),
    *(check, watch, duplicates, evaluate, train),
    *(serve, upkeep, model),
):
    module.register(app)
feedback.register_tag(app)
feedback.register_judge(app)
serve.register_ui(app)

Misused: Any = typer.BadParameter.__base__
"""Click's `UsageError`, wherever the installed Typer keeps it."""


def main() -> None:
    """Run the command line; every failure that a user can fix is one line on stderr, exit code 1 or 2."""
    _print_anything()
    with terminable() as terminated:
        sys.exit(_run(terminated))


def _run(terminated: list[int]) -> int | None:
    """Run the command and return the exit code; `terminated` holds the signals that stopped it, apart from Ctrl-C."""
    try:
        code = app(standalone_mode=False, prog_name="sonde")
        return _stopped(terminated) if code == INTERRUPTED else code
    except (typer.Abort, KeyboardInterrupt):
        return _stopped(terminated)
    except Misused as error:
        return _misused(error)
    except SondeError as error:
        return _fail(swapped(sys.argv[1:], error) or error.render(option), error.exit_code)
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in FULL_ONLY:
            raise
        return _fail(f"this needs {library}, which only the full installation includes: pip install 'sonde[all]'", 1)
    except OSError as error:
        name = f": {error.filename}" if error.filename else ""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return _fail(f"the disk is full{name}: free some space, then run the same command again", 1)
        return _fail(f"{error.strerror or error}{name}", 1)


def _print_anything() -> None:
    """Print what the terminal's encoding lacks, and control characters, as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    show_controls()


def _stopped(terminated: list[int]) -> int:
    return _fail(after_stop(sys.argv[1:]), TERMINATED if terminated else INTERRUPTED)


def _misused(error: Any) -> int:
    message = error.format_message()
    if "\n" in message:  # a command without anything: Click's message is its help
        print(message, file=sys.stderr)
        return 2
    if meant := in_quotes(sys.argv[1:], message):
        return _fail(meant, 2)
    command = error.ctx.command_path if error.ctx else "sonde"
    return _fail(f"{message.rstrip('.')}: see `{command} --help`", 2)


def _fail(message: str, code: int) -> int:
    print("sonde: " + " ".join(message.split()), file=sys.stderr)
    return code

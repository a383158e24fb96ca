"""`sonde`: the commands, and how their failures come out."""

import errno
import io
import sys
from typing import Any

import typer

from ...indexer.errors import SondeError
from ...indexer.wording import shown_path
from ..stopped import INTERRUPTED, TERMINATED, after_stop, terminable
from .commands import app_for
from .corrected import corrected, shortened, swapped
from .output import keep_error, option
from .terminal import show_controls

FULL_ONLY = ("accelerate", "datasets", "peft", "sentence_transformers", "torch", "transformers")
"""Libraries that the light installation leaves out."""
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

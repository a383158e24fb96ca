"""`sonde`: the commands, and how their failures come out."""

import os
import sys

import typer

from ...indexer.errors import SondeError
from . import demo, evaluate, index, search, upkeep

app = typer.Typer(
    name="sonde",
    help="Search a pile of text by meaning, on your own machine.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)
index.register(app)
search.register(app)
evaluate.register(app)
upkeep.register(app)
demo.register(app)


def main() -> None:
    """Run the command line; every failure that a user can mend is one line on stderr, exit code 1 or 2."""
    try:
        app()
    except SondeError as error:
        sys.exit(_fail(str(error), error.exit_code))
    except BrokenPipeError:
        # The reader of the output is gone (`sonde search … | head`); Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(_fail("stopped; what was committed stays, and the same command goes on from there", 130))
    except OSError as error:
        name = f": {error.filename}" if error.filename else ""
        sys.exit(_fail(f"{error.strerror or error}{name}", 1))


def _fail(message: str, code: int) -> int:
    print("sonde: " + " ".join(message.split()), file=sys.stderr)
    return code

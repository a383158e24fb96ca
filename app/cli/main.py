"""`sonde`: its commands, each from a module that is imported when it is needed, and how their failures come out.

If it is clear what was meant, the message gives that command line: collection first, or a filter or query in quotes.
"""

import errno
import io
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ...indexer.errors import SondeError
from ...indexer.wording import on_one_line, shown_path
from ..stopped import INTERRUPTED, SERVERS, TERMINATED, after_stop, terminable
from .commands import HELP, DefaultGroup, Once, Panels, no_command
from .output import keep_error, option, say, show_controls

FULL_ONLY = ("accelerate", "datasets", "peft", "sentence_transformers", "torch", "transformers")
"""Libraries that the light installation leaves out."""
Misused: Any = typer.BadParameter.__base__
"""Click's `UsageError`, wherever the installed Typer keeps it."""

ADDS: Mapping[str, Sequence[str]] = {
    "index": ["index"],
    "search": ["search", "similar"],
    "tune": ["tune", "ask"],
    "demo": ["demo"],
    "cluster": ["cluster", "curve"],
    "topics": ["topics"],
    "map": ["map"],
    "label": ["label"],
    "documents": ["compare", "get", "count"],
    "texts": ["texts", "similarity", "entail", "bitext"],
    "runs": ["runs", "correct"],
    "taxonomy": ["taxonomy"],
    "topic": ["topic"],
    "checks": ["check", "watch", "duplicates"],
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

QUERIES = ("search", "ask")
"""Commands with a collection and a text."""
SEVERAL = ("serve", "mcp")
"""Commands with several collections, whose order does not matter."""
FILTER = "--where"
LONGEST_WORD = 500
"""Characters of an argument that a sentence shows, at most: long paths whole, but no text of a whole file."""
ELSEWHERE = {
    **dict.fromkeys(("--limit", "--top", "--top-k", "--num", "--number", "--n", "-n"), "-k"),
    **dict.fromkeys(("--output", "--out", "-o"), "--to"),
    "--filter": "--where",
}
"""Options that other programs have, with those of `sonde`."""
_NO_NUMBER = re.compile(r"Invalid value for '(?P<option>[^']+)'.*?: (?P<value>'.*') is not a valid (?P<kind>int|float)")
_COMPARISON = re.compile("[<>=!]+|i?like", re.IGNORECASE)
_OPERATOR = re.compile(r"[<>=!]+\S*|and|or|not|in|is|i?like|between", re.IGNORECASE)


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
        return _fail(_swapped(sys.argv[1:], error) or error.render(option), error.exit_code)
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
    if meant := _corrected(sys.argv[1:], message, error.ctx):
        return _fail(meant, 2)
    command = error.ctx.command_path if error.ctx else "sonde"
    return _fail(f"{message.rstrip('.')}: see `{command} --help`", 2)


def _fail(message: str, code: int) -> int:
    for word in sys.argv[1:]:
        message = message.replace(word, _shortened(word))
    print("sonde: " + " ".join(message.split()), file=sys.stderr)
    return code


def _swapped(words: Sequence[str], error: SondeError) -> str | None:
    """Return what to say if another argument is the collection that is missing; None if there is no such one.

    A missing one that is called as collections are was meant as such.

    Args:
        words: What follows `sonde`.
        error: Why the command failed.
    """
    given = str(error.value)
    if error.code != "no-collection" or given not in words or words[0] in SEVERAL or given.endswith(".sonde"):
        return None
    first = list(words).index(given)
    later = [
        place for place in range(first + 1, len(words)) if _is_value(words, place) and _is_collection(words[place])
    ]
    if not later:
        return None
    turned = list(words)
    turned[first], turned[later[0]] = words[later[0]], words[first]
    return f"{_shortened(given)!r} is not a collection; put the collection first: {_command(turned)}"


def _corrected(words: Sequence[str], message: str, context: Any) -> str | None:
    """Return what to say of an option, a number or arguments too many, if it is clear what was meant; None otherwise.

    Args:
        words: What follows `sonde`.
        message: What Click says.
        context: Click's context of the command, if it has one.
    """
    if said := _NO_NUMBER.match(message):
        return f"{said['option']} is {said['value']}: write {_number_like(said['value'], said['kind'])}"
    if message.startswith("No such option"):
        return _other_option(words, context) or _command_behind(words, context)
    if not message.startswith("Got unexpected extra argument"):
        return None
    said = _filter_in_quotes(words) or _query_in_quotes(words) or _command_behind(words, context)
    return said or _no_command(words, context)


def _number_like(value: str, kind: str) -> str:
    if kind == "int":
        return "a whole number"
    with_point = value.strip("'").replace(",", ".")
    return with_point if re.fullmatch(r"-?\d+\.\d+", with_point) else "a number such as 0.5"


def _other_option(words: Sequence[str], context: Any) -> str | None:
    known = {option for each in context.command.params for option in each.opts} if context else set()
    for given in (word.partition("=")[0] for word in words):
        if given not in known and (meant := ELSEWHERE.get(given)) in known:
            return f"there is no option {given} of `{context.command_path}`: did you mean {meant}?"
    return None


def _filter_in_quotes(words: Sequence[str]) -> str | None:
    place = words.index(FILTER) + 1 if FILTER in words else len(words)
    end = _next_option(words, place)
    if not any(map(_OPERATOR.fullmatch, words[place + 1 : place + 2])):
        return None
    parts = words[place:end]
    values = [_as_value(word) if _COMPARISON.fullmatch(before) else word for before, word in pairwise(["", *parts])]
    meant = _shortened(" ".join(values))
    quoted = shlex.quote(meant) if set(meant) & set('"$`\\!') else f'"{meant}"'
    said = [_command(words[:place]), quoted, shlex.join(map(_shortened, words[end:]))]
    return f"put the filter in quotes: {' '.join(said).strip()}"


def _as_value(word: str) -> str:
    """Return a number as it is, and text in single quotes, which the shell has removed."""
    return word if re.fullmatch(r"[-+.\d]+|'.*'|true|false|null", word, re.IGNORECASE) else f"'{word}'"


def _query_in_quotes(words: Sequence[str]) -> str | None:
    end = _next_option(words, 0)
    if end < 4 or words[0] not in QUERIES:
        return None
    query = " ".join(words[2:end])
    return f"put the words in quotes: {_command([*words[:2], query, *words[end:]])}"


def _command_behind(words: Sequence[str], context: Any) -> str | None:
    """Return what to say of a misspelt command of a group that follows its collection."""
    group = context.parent.command if context and context.parent else None
    if not isinstance(group, DefaultGroup) or len(words) < 3 or not _is_collection(words[1]):
        return None
    near = get_close_matches(words[2], group.commands, 1)
    turned = _command([words[0], *near, words[1], *words[3:]])
    return f"{no_command(context.parent.command_path, words[2], group.commands)} {turned}" if near else None


def _no_command(words: Sequence[str], context: Any) -> str | None:
    group = context.parent.command if context and context.parent else None
    if not isinstance(group, DefaultGroup) or words[1] in group.commands or _is_collection(words[1]):
        return None
    return no_command(context.parent.command_path, _shortened(words[1]), group.commands)


def _command(words: Sequence[str]) -> str:
    return f"sonde {shlex.join(map(_shortened, words))}"


def _shortened(word: str) -> str:
    """Return an argument as a sentence shows it: cut after `LONGEST_WORD` characters."""
    return word if len(word) <= LONGEST_WORD else on_one_line(word, LONGEST_WORD)


def _next_option(words: Sequence[str], place: int) -> int:
    return next((at for at in range(place, len(words)) if re.match("-[^0-9]", words[at])), len(words))


def _is_value(words: Sequence[str], place: int) -> bool:
    return not words[place].startswith("-") and not words[place - 1].startswith("--")


def _is_collection(word: str) -> bool:
    from ..api.functions import lasting_file

    try:
        return lasting_file(Path(word)) is not None
    except (OSError, ValueError):  # a long query is no path
        return False

"""Commands and groups of them: how they read their words, and the help of `sonde` on one screen."""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperGroup

from ...indexer.errors import UsageError

PANELS: Mapping[str, Mapping[str, str]] = {
    "Start": {
        "index": "Index files into a collection, or update it",
        "search": "Search by meaning, by words, or by both",
        "ask": "Answer a question, or say that nothing is similar enough",
        "similar": "Show documents similar to a stored one, or to a text",
        "demo": "Index Python's docstrings and run three searches",
    },
    "Explore": {
        "cluster": "Group documents by meaning",
        "topics": "Find topics at three nested levels",
        "map": "Draw a map: similar texts are close together",
        "label": "Give each document one of your labels",
        "compare": "Compare two clusters, filters, queries or runs",
        "texts": "Compare texts that are not in a collection",
    },
    "Results": {
        "runs": "Show, name, merge, correct, draw or delete results",
        "taxonomy": "Edit groups, and keep them as documents change",
        "tag": "Tag documents",
        "export": "Write documents and results to CSV, Parquet or JSONL",
        "get": "Print documents by id",
        "count": "Count documents, in all or by the values of a column",
    },
    "Quality": {
        "check": "Find doubtful labels, leaks, outliers, personal data",
        "watch": "Find what is new: groups that grew, shrank or appeared",
        "duplicates": "Find duplicates: exact, near or by meaning",
        "judge": "Record which documents are relevant to a query",
        "evaluate": "Measure search, labels, clusters and models",
        "tune": "Find the best search settings for a collection",
        "train": "Train your own models",
    },
    "Serve": {
        "ui": "Open the web UI: search, map, clusters, labels",
        "serve": "Serve collections over HTTP",
        "mcp": "Serve collections to an assistant (MCP)",
    },
    "Care": {
        "info": "Show counts, model, index and sizes",
        "verify": "Check a collection for damage",
        "repair": "Rebuild what is damaged",
        "compact": "Free the space of deleted documents",
        "late": "Build a late index, which makes --rerank fast",
        "model": "Change the model of a collection",
        "delete": "Delete documents",
    },
}
"""The visible commands of `sonde`, by panel, with the line that `sonde --help` shows: at most 56 characters."""

Context = Any
Formatter = Any
"""Click's own, wherever the installed Typer keeps them."""


HELP = ("--help", "-h")
"""The options that show a help."""


def no_command(group: str, name: str, commands: Iterable[str]) -> str:
    """Return what to say of a word that is no command of a group: a command with a similar name, or all of them."""
    known = list(commands)
    near = get_close_matches(name, known, 1)
    advice = f": did you mean {near[0]!r}?" if near else f"; its commands are {', '.join(known)}"
    return f"there is no command {name!r} of `{group}`{advice}"


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):  # too long for a path
        return False


class Named(TyperGroup):
    """A group that tells where the command belongs, and takes `help` for `--help`."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Look at the first words before Click does.

        Raises:
            UsageError: The command is the second word.
        """
        if args and args[0] == "help":
            args = [*args[1:], HELP[0]]
        self._check_order(ctx, args)
        return super().parse_args(ctx, args)

    def _check_order(self, ctx: Context, args: list[str]) -> None:
        first, second = [*args, "", ""][:2]
        known = first in self.commands or first.startswith("-") or ctx.resilient_parsing
        if second in self.commands and not known:
            turned = shlex.join([second, first, *args[2:]])
            raise UsageError(f"put the command first: {ctx.command_path} {turned}")


class Panels(Named):
    """The group `sonde`: its help has one line for each command and fits on a screen of 80 × 40 characters."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Refuse words after `--install-completion` and `--show-completion`, which would ignore them.

        Raises:
            UsageError: There are such words.
        """
        flags = [each for each in self.get_params(ctx) if getattr(each, "is_flag", False) and not each.expose_value]
        alone = {name for each in flags for name in each.opts if name not in HELP}
        if len(args) > 1 and args[0] in alone and not ctx.resilient_parsing:
            raise UsageError(f"{args[0]} takes no value: run it in the shell that it is for, without {args[1]!r}")
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Context, formatter: Formatter) -> None:
        """Write the usage, the commands by panel, and the names of the options."""
        formatter.write(f"Usage: {ctx.command_path} COMMAND …   (sonde COMMAND --help explains one command)\n")
        formatter.write("Search texts by meaning, on your own machine.\n\n")
        for panel, commands in PANELS.items():
            heads = [panel] + [""] * (len(commands) - 1)
            for head, (name, line) in zip(heads, commands.items(), strict=True):
                formatter.write(f"{head:<8} {name:<11} {line}\n")
        options = ", ".join(
            max(each.opts, key=len) for each in self.get_params(ctx) if not getattr(each, "hidden", False)
        )
        formatter.write(f"\nOptions: {options}\n")

    def list_commands(self, ctx: Context) -> list[str]:
        """Return the names in the order of the panels, old names after them."""
        shown = [name for commands in PANELS.values() for name in commands]
        return [*shown, *(name for name in self.commands if name not in shown)]

    def resolve_command(self, ctx: Context, args: list[str]) -> Any:
        """Propose visible commands only where a name is not known."""
        hidden = {name: self.commands[name] for name in self.commands if self.commands[name].hidden}
        if not args or args[0] in self.commands:
            return super().resolve_command(ctx, args)
        for name in hidden:
            del self.commands[name]
        try:
            return super().resolve_command(ctx, args)
        finally:
            self.commands.update(hidden)


class DefaultGroup(Named):
    """A group in which one command needs no name: `sonde runs C.sonde` is `sonde runs list C.sonde`.

    The default command is the first one. A collection with the name of a command needs its folder: `./show`.
    """

    @property
    def default(self) -> str:
        """The name of the command that is meant where none is named."""
        return next(iter(self.commands))

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Put the default command before anything but a command's name and `--help`.

        Raises:
            UsageError: The first word looks like a command, and there is no such command.
        """
        bare = not args and not ctx.resilient_parsing  # a shell that completes parses what there is so far
        if bare or (args and args[0] not in (*self.commands, *HELP, "help")):
            self._check_order(ctx, args)
            self._check_name(ctx, args)
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def _check_name(self, ctx: Context, args: list[str]) -> None:
        """Refuse a first word that is close to a command, or whose help is asked for, unless a collection has it."""
        name = next(iter(args), "")
        word = name.replace("-", "").isalpha() and not name.startswith("-") and not ctx.resilient_parsing
        if not word or _exists(name) or _exists(f"{name}.sonde"):
            return
        if get_close_matches(name, self.commands, 1) or any(option in args for option in HELP):
            raise UsageError(no_command(ctx.command_path, name, self.commands))

    def format_help(self, ctx: Context, formatter: Formatter) -> None:
        """Write the help of the default command, then the other commands."""
        with type(ctx)(self.commands[self.default], info_name=ctx.info_name, parent=ctx.parent) as inner:
            self.commands[self.default].format_help(inner, formatter)
        self.format_commands(ctx, formatter)

    def shell_complete(self, ctx: Context, incomplete: str) -> list[Any]:
        """Complete a command's name or the first argument of the default command."""
        default = self.commands[self.default]
        with type(ctx)(default, info_name=ctx.info_name, parent=ctx, resilient_parsing=True) as inner:
            first = next((each for each in default.params if each.param_type_name == "argument"), None)
            values = first.shell_complete(inner, incomplete) if first and not incomplete.startswith("-") else []
            options = default.shell_complete(inner, incomplete) if incomplete.startswith("-") else []
        return [*super().shell_complete(ctx, incomplete), *values, *options]


class Once(TyperCommand):
    """A command whose options with one value may be given once."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Count the options before Click reads their values.

        Raises:
            UsageError: An option with one value is given twice.
        """
        if not ctx.resilient_parsing:
            _, _, order = self.make_parser(ctx).parse_args(args=list(args))
            given = Counter(id(each) for each in order if _takes_one(each))
            for each in order:
                if given[id(each)] > 1:
                    raise UsageError(f"{max(each.opts, key=len)} is given {_times(given[id(each)])}: give it once")
        return super().parse_args(ctx, args)


def _takes_one(parameter: Any) -> bool:
    return parameter.param_type_name == "option" and not (parameter.multiple or parameter.is_flag or parameter.count)


def _times(count: int) -> str:
    return "twice" if count == 2 else f"{count} times"


class NegativeNumbers(Once):
    """A command whose argument may be a negative number, which Click would take for options."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Leave `-1` to the arguments; other unknown options are still refused, as arguments too many."""
        ctx.ignore_unknown_options = any(re.fullmatch(r"-\d+", each) for each in args)
        return super().parse_args(ctx, args)


def group_numbers(words: Sequence[str], name: str) -> list[int]:
    """Return the numbers in words such as "3", "7" or "3,7"; `name` is what the message calls them.

    Raises:
        UsageError: A part is not a whole number.
    """
    text = ",".join(words)
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"{name} is {text!r}: write numbers with commas between them, such as 3,7") from None

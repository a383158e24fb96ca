"""Groups of commands: the help of `sonde` on one screen, and groups whose first word may be left out."""

from collections.abc import Mapping
from typing import Any

from typer.core import TyperGroup

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


class Panels(TyperGroup):
    """The group `sonde`: its help has one line for each command and fits on a screen of 80 × 40 characters."""

    def format_help(self, ctx: Context, formatter: Formatter) -> None:
        """Write the usage, the commands by panel, and the names of the options."""
        formatter.write(f"Usage: {ctx.command_path} COMMAND …   (sonde COMMAND --help explains one command)\n")
        formatter.write("Search texts by meaning, on your own machine.\n\n")
        for panel, commands in PANELS.items():
            heads = [panel] + [""] * (len(commands) - 1)
            for head, (name, line) in zip(heads, commands.items(), strict=True):
                formatter.write(f"{head:<8} {name:<11} {line}\n")
        options = ", ".join(each.opts[0] for each in self.get_params(ctx) if not getattr(each, "hidden", False))
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


class DefaultGroup(TyperGroup):
    """A group in which one command needs no name: `sonde runs C.sonde` is `sonde runs list C.sonde`.

    The default command is the first one. A collection with the name of a command needs its folder: `./show`.
    """

    @property
    def default(self) -> str:
        """The name of the command that is meant where none is named."""
        return next(iter(self.commands))

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Put the default command before anything but a command's name and `--help`."""
        bare = not args and not ctx.resilient_parsing  # a shell that completes parses what there is so far
        if bare or (args and args[0] not in self.commands and args[0] != "--help"):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

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

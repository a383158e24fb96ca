"""Arguments and settings under the names that they have on the command line."""

from ...indexer.errors import Message

OTHERS = {"k": "-k", "kinds": "--by", "made_of": "--pairs", "ids": "ID", "query": "QUERY", "texts": "TEXT"}
"""What has another name here than in Python, or none: a positional argument has that of the help text."""


def option(field: str) -> str:
    """Return the option for an argument of Python: `--reduce-to` for `reduce_to`."""
    return OTHERS.get(field) or f"--{field.replace('_', '-')}"


def in_options(sentence: str) -> str:
    """Return a sentence of the library as the command line says it."""
    return sentence.render(option) if isinstance(sentence, Message) else sentence

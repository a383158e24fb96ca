"""Labels: names with optional descriptions, the sentences that an NLI model judges, and scores on one scale."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from ...indexer.errors import UsageError, arg, as_text, as_texts
from ...indexer.files import text_of
from ...indexer.store.kinds import NO_LABEL

NONE = -1
"""The number of "none of these"."""
NONE_NAME = NO_LABEL
MOST_LABELS = 2_000
"""Labels of one run. Each is embedded in eight wordings, half a minute for 2,000 of them, and the labels adapt to up to
50,000 texts in arrays of a number for each text and label: 800 MB with 2,000 labels. With 200,000 labels and a hundred
texts, it was 6 GB and several minutes.
"""


@dataclass(frozen=True, slots=True)
class Label:
    """A label: its name and, if the name is not clear enough, a description."""

    name: str
    description: str = ""

    @property
    def wording(self) -> str:
        """The name with its description, in the form that models read: "refund: the customer wants money back"."""
        return f"{self.name}: {self.description}" if self.description else self.name

    @classmethod
    def parse(cls, text: str) -> "Label":
        """Read "name" or "name: description"."""
        name, _, description = text.strip().partition(": ")
        return cls(" ".join(name.split()), " ".join(description.split()))


Labels = Iterable[str | Label] | Mapping[str, str] | Label | str


def make_labels(given: Labels, *, several: bool | None = None) -> tuple[Label, ...]:
    """Return the user's labels.

    Args:
        given: Names, "name: description" texts or `Label`s; a mapping of names to descriptions; or one
            comma-separated text, in which a label with commas is in double quotes.
        several: Whether a text may get several labels; a single label is then a yes-or-no question. None if the caller
            cannot choose this.

    Raises:
        UsageError: There are no labels, only one label to choose from, too many, an empty label, or a duplicate label;
            or a comma may be part of a description.
    """
    if isinstance(given, str):
        labels = tuple(map(Label.parse, _separated(given))) if given.strip() else ()
        if '"' not in given:  # with quotes, every comma is meant
            _check_commas(labels)
    elif isinstance(given, Mapping):
        texts = ((as_text(name, "label"), as_text(text or "", "description")) for name, text in given.items())
        labels = tuple(Label(*(" ".join(text.split()) for text in pair)) for pair in texts)
    else:
        labels = _listed(given)
    if not labels:
        raise UsageError("no labels given: give some, such as refund,praise,delivery", code="empty", field="labels")
    check_count(len(labels))
    seen: dict[str, int] = {}
    for number, label in enumerate(labels, 1):
        if not label.name:
            raise UsageError(f"label {number} of {len(labels)} is empty: leave it out", code="empty", field="labels")
        if label.name.casefold() == NONE_NAME:
            said = f"{label.name!r} is what Sonde calls a text that no label fits: leave it out"
            said += "" if several is None else f", and use {arg('none')}"
            raise UsageError(said, code="reserved", field="labels", value=label.name)
        if (first := seen.setdefault(label.name.casefold(), number)) != number:
            said = f"label {number} {label.name!r} repeats label {first}: leave one out"
            raise UsageError(said, code="repeated", field="labels", value=label.name)
    if len(labels) == 1 and not several:
        name = labels[0].name
        other = "" if several is None else f", or {arg('multi_label')}"
        said = f"{name!r} is the only label, so every text would get it: give two or more{other}"
        raise UsageError(said, code="too-few", field="labels", value=name)
    return labels


def check_count(labels: int) -> None:
    """Check that there are not too many labels for one run.

    Raises:
        UsageError: There are too many.
    """
    if labels > MOST_LABELS:
        said = f"there are {labels:,} labels; the maximum is {MOST_LABELS:,}: give fewer and broader ones, and label "
        said += "the documents of each in a second run"
        raise UsageError(said, code="too-many", field="labels", value=labels)


def _separated(given: str) -> list[str]:
    """Return the parts of a comma-separated text; a part in double quotes may hold commas.

    Raises:
        UsageError: A quote is not closed.
    """
    try:
        [parts] = csv.reader([" ".join(given.split())], skipinitialspace=True, strict=True)
    except csv.Error:
        said = f"the labels {given!r} have a double quote that is not closed, or text right after one"
        raise UsageError(f'{said}: write labels with commas as "a, b",c', code="bad-quotes", field="labels") from None
    return parts


def _check_commas(labels: Sequence[Label]) -> None:
    """Check that a label without a description does not follow one with: its comma may be part of that description.

    Raises:
        UsageError: One does.
    """
    for before, label in pairwise(labels):
        if before.description and label.name and not label.description:
            said = f"the comma before {label.name!r} may be part of the description of {before.name!r}, or begin a "
            said += f'label: for a description with commas, write "{before.wording}, {label.name}" in double quotes; '
            said += f"for a label, put {label.name!r} before the labels with a description"
            raise UsageError(said, code="ambiguous", field="labels", value=label.name)


def _listed(given: object) -> tuple[Label, ...]:
    if isinstance(given, Label):
        return (given,)
    each = given if isinstance(given, Iterable) and not isinstance(given, bytes) else as_texts(given, "label")
    return tuple(label if isinstance(label, Label) else Label.parse(as_text(label, "label")) for label in each)


def read_labels(path: Path) -> list[str]:
    """Return the labels in a file: one per line, "name" or "name: description"; "#" starts a comment.

    Double quotes around a whole line are removed.

    Raises:
        SondeError: The file cannot be read, or contains no labels.
    """
    lines = text_of(path, "the labels").splitlines()
    found = [_unquoted(line.strip()) for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not found:
        raise UsageError(f"{path} has no labels: write one per line, such as `refund: the customer wants money back`")
    return found


def _unquoted(line: str) -> str:
    return line[1:-1] if len(line) > 1 and line[0] == line[-1] == '"' and '"' not in line[1:-1] else line


TEMPLATE = "This example is {}."
"""The template of transformers' zero-shot pipeline, which makes results comparable."""

BUNDLED_TEMPLATE = "This text is about {}."
"""A better template for the bundled model: accuracy on `bbc` is 0.853 with this one, 0.720 with the other."""


def check_template(template: str) -> str:
    """Check that a template has exactly one placeholder for the label, and return it.

    Raises:
        UsageError: The template has no placeholder, or several.
    """
    if template.count("{}") != 1:
        said = f"the template {template!r} must hold {{}} once, where the label goes: {TEMPLATE!r}"
        raise UsageError(said, code="bad-template", field="template", value=template, alternatives=(TEMPLATE,))
    return template


def hypotheses(labels: Sequence[Label], template: str = TEMPLATE) -> list[str]:
    """Return a hypothesis for each label; a description follows the name."""
    return [check_template(template).replace("{}", label.wording) for label in labels]


def softmax(margins: np.ndarray) -> np.ndarray:
    """Return float64 [n, labels] that sum to one in each row; minus infinity and NaN count as impossible."""
    safe = np.where(np.isnan(margins), -np.inf, margins).astype(np.float64)
    shares = np.exp(safe - safe.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def sigmoid(margins: np.ndarray) -> np.ndarray:
    """Return float64 [n, labels], each from 0 to 1; NaN counts as impossible."""
    safe = np.where(np.isnan(margins), -np.inf, margins).astype(np.float64)
    return 0.5 * (1 + np.tanh(0.5 * safe))


def probabilities(margins: np.ndarray, multi_label: bool) -> np.ndarray:
    """Return float64 [n, labels]: probabilities that sum to one, or independent ones with several labels per text."""
    return sigmoid(margins) if multi_label else softmax(margins)


def log_odds(shares: np.ndarray, multi_label: bool) -> np.ndarray:
    """Return margins whose `probabilities` are `shares`."""
    safe = np.clip(shares, 1e-9, 1 - 1e-9)
    return np.log(safe) - np.log1p(-safe) if multi_label else np.log(safe)


def standardised(margins: np.ndarray) -> np.ndarray:
    """Scale each label's margins to mean 0 and deviation 1 over the texts; a label with constant margins gets zeros."""
    found = margins.astype(np.float64)
    spread = found.std(axis=0)
    return (found - found.mean(axis=0)) / np.where(spread > 0, spread, 1)

"""The languages of the documents in an index run, and a note if the model was not trained on them."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote

from ..document import Document
from ..encoder import ModelSpec
from ..encoder.models import known_languages
from ..languages import detect, english_name
from ..wording import counted, either

FEWEST = 20
"""Documents without a language of their own below which it is not detected: a small update must stay quick."""
SAMPLE, CHARACTERS = 100, 500
"""Texts whose language is detected, and how much of each is read."""
SURE = 10
"""Texts whose language is sure, below which the language of the collection counts for all."""
SHARE = 0.1
"""Least share of a run's documents in languages unknown to the model for which a note is shown."""
MULTILINGUAL = "intfloat/multilingual-e5-small"
"""The model that the note names, and docs/crosslingual.md."""
NAMED = 3
"""Languages that a sentence names, at most."""


class LanguagesMet:
    """Counts documents by language, and keeps a random sample of the texts without a stated language.

    Every text has the same chance to be in the sample (Vitter, "Random Sampling with a Reservoir", 1985). Every tenth
    text would not do: sources may alternate between languages.
    """

    def __init__(self) -> None:
        self.named: Counter[str] = Counter()
        self.unnamed = 0
        self.sample: list[str] = []
        self._chance = random.Random(0)

    def see(self, document: Document) -> None:
        """Count a document that is new or has changed."""
        if document.language:
            self.named[document.language] += 1
            return
        self.unnamed += 1
        place = len(self.sample) if len(self.sample) < SAMPLE else self._chance.randrange(self.unnamed)
        if place < SAMPLE:
            self.sample[place : place + 1] = [(document.text or document.title)[:CHARACTERS]]

    def note(self, spec: ModelSpec, folder: Path, usual: str | None, given: bool) -> str | None:
        """Return a sentence if the model was not trained on the language of many documents, else None.

        Args:
            spec: The model. If its languages are not known, there is nothing to say.
            folder: The collection, for the command that changes its model.
            usual: The language of documents that have none of their own; None if it is not known.
            given: Whether the user has named it, so that it need not be detected.
        """
        total = self.named.total() + self.unnamed
        known = known_languages(spec) if total else None
        if known is None:
            return None
        counts, estimated = self._counts(usual, given)
        foreign = [(code, count) for code, count in counts.most_common() if code not in known]
        affected = round(sum(count for _, count in foreign))
        if affected < max(1.0, SHARE * total):
            return None
        many = f"about {affected / total:.0%}" if estimated else f"{affected:,}"
        verb = "is" if affected == 1 and not estimated else "are"
        which = f"{many} of {total:,} documents {verb}" if total > 1 else "the document is"
        return (
            f"{which} in {_either([code for code, _ in foreign])}; the model {spec.name} was trained on "
            f"{_trained_on(known)}: `sonde model {quote(str(folder))} --to {MULTILINGUAL}` changes the model"
        )

    def _counts(self, usual: str | None, given: bool) -> tuple[Counter[str], bool]:
        """Return how many documents each language has, and whether that is an estimate."""
        found = Counter(self.named)
        shares = None if given or self.unnamed < FEWEST else _shares(self.sample)
        if shares is None:
            if usual and self.unnamed:
                found[usual] += self.unnamed
            return found, False
        for code, share in shares.items():
            found[code] += round(share * self.unnamed)
        return found, any(share < 1 for share in shares.values())


def _shares(texts: list[str]) -> Mapping[str, float] | None:
    """Return the share of each language among the texts whose language is sure; None if too few are."""
    found = [code for text in texts if (code := detect([text]))]
    return {code: count / len(found) for code, count in Counter(found).items()} if len(found) >= SURE else None


def _either(codes: Sequence[str]) -> str:
    names, more = [english_name(code) for code in codes[:NAMED]], len(codes) - NAMED
    return f"{', '.join(names)} or {counted(more, 'other language')}" if more > 0 else either(names)


def _trained_on(known: frozenset[str]) -> str:
    names = sorted(english_name(code) for code in known)
    return " and ".join(names) if len(names) <= NAMED else f"{len(names)} others"

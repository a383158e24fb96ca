"""Texts in languages that a collection's model was not trained on, and notes about them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from ...indexer.encoder.models import known_languages
from ...indexer.languages import NOT_LATIN, detect, english_name, likely_language, script_languages
from ...indexer.lexical.analysis import function_words, word_spans
from ...indexer.progress import NOTE, Notify
from ...indexer.store.documents import chosen_texts
from ...indexer.store.view import View
from ...indexer.wording import counted

if TYPE_CHECKING:
    from ...indexer.store.view import Generation

SAMPLE, CHARACTERS = 100, 500
"""Documents of a collection whose language is looked at, and how much of each is read."""
ENOUGH_LETTERS = 100
"""Letters of a text below which its language is not detected."""
MOST = 1 / 2
"""Share of the texts above which a note says that the model was not trained on their language."""
PART = 0.1
"""Share of the texts from which on a language counts where several are mixed."""
LEAD = 2
"""Function words of a language that a query needs beyond those of the languages that the model knows."""
UNSEEN, UNSEEN_SHARE = 3, 0.75
"""Words of a query that no document has, and their share of all its words, from which on its language is detected."""
NAMED = 3
"""Languages that a note names, at most."""


@dataclass(frozen=True, slots=True)
class Trained:
    """What the model of a collection was trained on.

    Attributes:
        model: Its name.
        known: ISO 639-1 codes of its languages; None if they are not known, and then no text is foreign.
        usual: The language of the collection; None if it has none that is sure.
    """

    model: str
    known: frozenset[str] | None
    usual: str | None

    @classmethod
    def of(cls, view: View) -> "Trained":
        """Read the languages from the model's card, and that of the collection from the catalog."""
        spec = view.collection.spec
        return cls(spec.name, known_languages(spec), view.catalog.get("language"))

    def unread(self, text: str, own: str | None = None) -> str | None:
        """Return the language of a text if its script is one that no language of the model uses, else None.

        Such letters mean next to nothing to the model, so that its embeddings of unrelated texts can be the same.

        Args:
            text: Any text, of which the beginning is read.
            own: The language that the document states.
        """
        if self.known is None:
            return None
        languages = script_languages(text[:CHARACTERS])
        if not languages or not self.known.isdisjoint(languages):
            return None
        return next((code for code in (own, self.usual) if code in languages), languages[0])

    def foreign(self, text: str, own: str | None = None) -> str | None:
        """Return the language of a text if the model was not trained on it; None if it was, or if that is not known."""
        if self.known is None:
            return None
        code = self.unread(text, own) or own
        if code is None and not script_languages(text[:CHARACTERS]):
            code = _detected(text) if self.usual is None else self.usual if self.usual not in NOT_LATIN else None
        return code if code not in self.known else None

    def asked(self, query: str, unseen: Sequence[str] = ()) -> str | None:
        """Return the language of a query if the model seems not to be trained on it, else None.

        Its script shows it, or words such as "nicht" and "noch". A query is too short to detect its language safely, so
        that is done only if hardly any of its words is known.

        Args:
            query: Any text.
            unseen: The words of the query that no document has.
        """
        if self.known is None:
            return None
        if code := self.unread(query):
            return code
        counts = function_words(query[:CHARACTERS])
        most = max((counts[code] for code in self.known), default=0) + LEAD
        code = next((code for code, count in counts.most_common(1) if count >= most), None)
        if code or len(unseen) >= max(UNSEEN, UNSEEN_SHARE * sum(1 for _ in word_spans(query[:CHARACTERS]))):
            code = likely_language(query[:CHARACTERS]) or code  # "de" and "du" are also Danish
        return None if code in self.known else code


def _detected(text: str) -> str | None:
    beginning = text[:CHARACTERS]
    return detect([beginning]) if sum(map(str.isalpha, beginning)) >= ENOUGH_LETTERS else None


@dataclass(frozen=True, slots=True)
class Languages:
    """The languages of a sample of a collection's texts.

    Attributes:
        trained: What the model was trained on.
        foreign: How many texts of the sample are in each language that the model was not trained on.
        read: How many texts were read.
    """

    trained: Trained
    foreign: Counter[str]
    read: int

    @property
    def mostly_foreign(self) -> bool:
        """Whether most texts are in languages that the model was not trained on."""
        return self.foreign.total() > MOST * self.read

    @property
    def mixed(self) -> bool:
        """Whether two languages or more have a tenth of the texts each; those that the model knows count as one."""
        counts = [*self.foreign.values(), self.read - self.foreign.total()]
        return sum(count >= PART * self.read for count in counts) > 1

    @property
    def why(self) -> str:
        """The beginning of a note, if most texts are foreign."""
        which = "the texts are" if self.foreign.total() == self.read else "most texts are"
        return f"{which} in {named(self.foreign)}, which the model {self.trained.model} was not trained on"


_KNOWN: "WeakKeyDictionary[Generation, Languages]" = WeakKeyDictionary()
"""What was read of each generation, for the next search."""


def languages_of(view: View) -> Languages:
    """Return the languages of up to 100 documents spread over a collection; read once per generation."""
    known = _KNOWN.get(view.generation)
    if known is None:
        known = _KNOWN[view.generation] = _read(view)
    return known


def _read(view: View) -> Languages:
    trained = Trained.of(view)
    if trained.known is None:
        return Languages(trained, Counter(), 0)
    owners = view.generation.owners
    rows = np.linspace(0, len(owners) - 1, min(SAMPLE, len(owners))).astype(np.int64)
    docs = np.unique(owners[rows])
    found = list(chosen_texts(view.catalog, docs[docs >= 0].tolist(), CHARACTERS))
    codes = (trained.foreign(each.text or each.title, each.language) for each in found)
    return Languages(trained, Counter(code for code in codes if code), len(found))


def named(codes: Iterable[str]) -> str:
    """Return the names of languages, the commonest first: "Korean", "Korean and Thai", "A, B, C and 2 others"."""
    counts = codes if isinstance(codes, Counter) else Counter(codes)
    names = [english_name(code) for code, _ in counts.most_common()]
    first, more = names[:NAMED], len(names) - NAMED
    if more > 0:
        return f"{', '.join(first)} and {counted(more, 'other language')}"
    return " and ".join([", ".join(first[:-1]), first[-1]] if len(first) > 1 else first)


def readable_texts(view: View, texts: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return which texts can be compared by meaning, bool [n], and a note if some cannot.

    The embeddings of a text are of no use if its script is one that no language of the model uses: unrelated texts
    then have a cosine of 1. In the model's own script, texts in other languages that are so near have nearly the same
    words ("Texts in other languages" in docs/crosslingual.md), so they are compared.
    """
    trained = Trained.of(view)
    unread = [trained.unread(text) for text in texts]
    codes = Counter(code for code in unread if code)
    readable = np.fromiter((code is None for code in unread), bool, len(unread))
    if not codes:
        return readable, ()
    many, verb = counted(codes.total(), "text"), "is" if codes.total() == 1 else "are"
    why = f"{many} in {named(codes)} {verb} compared by words only, because the model {trained.model} cannot read"
    return readable, (f"{why} {'it' if codes.total() == 1 else 'them'}: `sonde model` changes the model",)


def relevance_notes(view: View, query: str | None) -> tuple[str, ...]:
    """Return a note if the model was not trained on the language of the texts or the query, so relevance is unreliable.

    Args:
        view: What is searched.
        query: The query, if it is a text.
    """
    found = languages_of(view)
    if found.mostly_foreign:
        ways = "A search by words alone (mode lexical) works; `sonde model` changes the model"
        return (f"{found.why}: relevance is unreliable. {ways}",)
    trained = found.trained
    if not query or not trained.known:
        return ()
    lexical = view.generation.lexical
    code = trained.asked(query, lexical.absent(query[:CHARACTERS]) if lexical else ())
    if code is None:
        return ()
    seems = "is" if trained.unread(query) else "seems to be"
    why = f"the query {seems} in {english_name(code)}, which the model {trained.model} was not trained on"
    known = english_name(next(iter(trained.known))) if len(trained.known) == 1 else "a language that it knows"
    return (f"{why}: relevance is unreliable. Ask in {known}, or change the model (`sonde model`)",)


def notify_of_languages(view: View, notify: Notify) -> None:
    """Say that groups of the texts may not be subjects, if the model was not trained on the language of most texts."""
    found = languages_of(view)
    if found.mostly_foreign:
        instead = "be languages rather than subjects" if found.mixed else "not be subjects"
        notify(f"{NOTE}{found.why}: the groups may {instead}. `sonde model` changes the model")

"""Texts that stand where an answer was asked for and say nothing: "n/a", "see above", "-"; in seven languages."""

import re
import unicodedata
from collections import Counter
from pathlib import Path
from shlex import quote

from .document import Document
from .wording import cut, on_one_line

_PHRASES = {
    "en": "none|nothing|nothing really|nothing at all|nothing much|nothing in particular|nothing specific|nothing else"
    "|nothing to add|nothing to say|nothing comes to mind|nothing i can think of|cant think of anything|na|nil|not "
    "applicable|no comment|no comments|no further comment|no further comments|no answer|no response|no opinion|no idea"
    "|idk|dk|dont know|do not know|i dont know|i do not know|dunno|not sure|unsure|same|same as above|same as before"
    "|nope|nah|nothing to report|i have nothing to say|i have nothing to add"
    "|see above|as above|see previous answer|see my previous answer|ditto|prefer not to say|prefer not to answer|x",
    "de": "nichts|gar nichts|nichts besonderes|nix|keine|keines|keiner|kein kommentar|keine angabe|keine angaben|ka"
    "|keine antwort|keine ahnung|keine meinung|weiß nicht|weiß ich nicht|ich weiß nicht|siehe oben|wie oben|dito"
    "|entfällt",
    "fr": "rien|rien du tout|rien de particulier|rien à dire|rien à ajouter|rien à signaler|ras|aucun|aucune"
    "|sans réponse|pas de réponse|sans avis|sans opinion|pas de commentaire|aucun commentaire|je ne sais pas"
    "|je sais pas|sais pas|nsp|voir ci dessus|idem",
    "es": "nada|nada en particular|nada más|nada que añadir|ninguno|ninguna|sin respuesta|sin comentarios"
    "|ningún comentario|no sé|no lo sé|ni idea|no aplica|ver arriba|lo mismo|ns nc|nsnc",
    "it": "niente|nulla|niente di particolare|nulla di particolare|nessuno|nessuna|nessun commento|nessuna risposta"
    "|non so|non lo so|non saprei|vedi sopra|come sopra",
    "pt": "nenhum|nenhuma|nada a acrescentar|sem resposta|sem comentários|não sei|não se aplica|ver acima|o mesmo",
    "nl": "niets|niks|geen|geen idee|geen mening|geen antwoord|geen commentaar|nvt|weet niet|weet ik niet|zie boven"
    "|idem",
}
_NO_SPACE = str.maketrans("", "", "'’`´.")
"""What is left out within a word: "don't", "n.a."."""
_SIGNS = re.compile(r"[\W_]+")
LONGEST = 60
"""Characters of the longest text that is compared with the phrases."""


def _folded(text: str) -> str:
    """Return the words of a text in lower case, without accents and punctuation."""
    letters = unicodedata.normalize("NFKD", text.casefold().translate(_NO_SPACE))
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return " ".join(_SIGNS.sub(" ", plain).split())


NON_ANSWERS = frozenset(_folded(phrase) for phrases in _PHRASES.values() for phrase in phrases.split("|")) | {
    "n a",
    "k a",
}
"""Whole texts that say nothing, as `_folded` returns them."""


def non_answer(text: str, title: str = "") -> str | None:
    """Return why a document is no answer: its whole text says nothing, or has no letter; None if it may be one.

    A title that says something is an answer by itself.

    Example:
        >>> [non_answer(text) for text in ("N/A", "Don't know!", "siehe oben", "- ?", "nothing works", "no")]
        ['says nothing', 'says nothing', 'says nothing', 'no letter', None, None]
    """
    if title.strip() and non_answer(title) is None:
        return None
    if not any(map(str.isalpha, text)):
        return "no letter"
    return "says nothing" if len(text) <= LONGEST and _folded(text) in NON_ANSWERS else None


LEAST, LEAST_SHARE = 3, 0.01
"""Documents without an answer, and their share of the run's documents, from which on a note is shown."""
EXAMPLES = 2


class NonAnswersMet:
    """Counts the documents of an index run that are no answers, and keeps the commonest texts for a note."""

    def __init__(self) -> None:
        self.documents = 0
        self.texts: Counter[str] = Counter()

    def see(self, document: Document) -> None:
        """Count a document that is new or has changed."""
        self.documents += 1
        if non_answer(document.text, document.title):
            self.texts[cut(document.text.strip(" .!\r\n\t").lower() or document.text.strip(), LONGEST)] += 1

    def note(self, folder: Path) -> str | None:
        """Return a sentence if there are many of them, with the command that lists them, else None."""
        many = self.texts.total()
        if many < max(LEAST, LEAST_SHARE * self.documents):
            return None
        such = ", ".join(repr(on_one_line(text)) for text, _ in self.texts.most_common(EXAMPLES))
        return (
            f"{many:,} of {self.documents:,} documents look like non-answers, such as {such}: "
            f"`sonde check {quote(str(folder))} --only non-answer` finds them"
        )

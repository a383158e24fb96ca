"""Which column plays which role, and the names under which columns of each role are known."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..errors import arg
from ..wording import counted, listed, on_one_line
from .column_types import NAMED

TEXT = (
    ("text",),
    ("body", "content", "contents", "full_text", "fulltext", "document", "passage", "article"),
    (
        "abstract", "review", "description", "comment", "message", "answer", "question", "post", "tweet", "sentence",
        "paragraph", "utterance", "query", "selftext", "transcript", "snippet", "feedback", "note", "notes", "reply",
        "story", "lyrics", "complaint", "caption", "texte", "contenu", "inhalt", "beschreibung", "nachricht",
        "kommentar", "bewertung", "frage", "antwort", "texto", "contenido", "descripcion", "descripción", "comentario",
        "mensaje", "testo", "contenuto", "descrizione", "commento", "tekst", "conteudo", "conteúdo", "descricao",
        "descrição", "текст", "описание", "отзыв", "文本", "内容", "正文", "本文", "テキスト", "텍스트", "내용", "نص",
    ),
)  # fmt: skip
TITLE = (
    "title", "headline", "subject", "heading", "summary", "name", "question", "titel", "betreff", "titre", "titulo",
    "título", "titolo", "overskrift", "заголовок", "название", "标题", "題名", "タイトル", "제목", "عنوان",
)  # fmt: skip
ID = (
    "id", "_id", "uuid", "guid", "uid", "doc_id", "docid", "document_id", "documentid", "doi", "pmid", "key", "docno",
    "identifier", "review_id", "post_id", "tweet_id", "message_id", "ticket_id", "article_id", "paper_id", "asin",
)  # fmt: skip
LANGUAGE = ("language", "lang", "language_code", "lang_code", "locale", "sprache", "langue", "idioma", "lingua", "язык")

_CODES = ("id", "code", "key", "ref", "reference", "sku", "isbn")
_CODE_WORDS = {
    "id", "no", "nr", "num", "number", "code", "key", "ref", "reference", "ticket", "case", "order", "sku", "isbn",
    "nummer", "numero", "número", "numéro", "kennung", "номер", "编号", "番号",
}  # fmt: skip
_TEXT_WORDS = [name for tier in TEXT for name in tier if name not in ("query", "note", "notes", "document", "article")]
_TITLE_WORDS = ("title", "headline", "subject", "titel", "titre")
# A column "text_length" or "question_url" is about the text, not the text.
_ABOUT = {
    "id", "ids", "length", "len", "count", "num", "n", "date", "time", "url", "uri", "link", "lang", "language", "type",
    "label", "labels", "class", "category", "score", "hash", "format", "author", "user", "path", "file",
}  # fmt: skip


def normalised_name(name: str) -> str:
    """A column's name as it is compared: lower case, words joined by an underscore."""
    return "_".join(name_words(name)) if not name.startswith("_") else "_" + "_".join(name_words(name))


def name_words(name: str) -> list[str]:
    """The words of a column's name: "reviewText", "review_text" and "Review Text" have the same two."""
    return re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower())


def text_rank(name: str) -> int | None:
    """How telling a name is for a text, 0 the most; None for other names."""
    for rank, tier in enumerate(TEXT):
        if normalised_name(name) in tier:
            return rank
    named = set(name_words(name))
    return len(TEXT) if named & set(_TEXT_WORDS) and not named & _ABOUT else None


def title_rank(name: str) -> int | None:
    """How telling a name is for a title, 0 the most; None for other names."""
    if normalised_name(name) in TITLE:
        return TITLE.index(normalised_name(name))
    named = set(name_words(name))
    return len(TITLE) if named & set(_TITLE_WORDS) and not named & _ABOUT else None


def id_rank(name: str) -> int | None:
    """How telling a name is for an id, 0 the most; None for other names."""
    return ID.index(normalised_name(name)) if normalised_name(name) in ID else None


def place_of_ids(names: Sequence[str], usual: Sequence[str], own: str | None) -> int | None:
    """Return the place of the column of ids in the header of a file about a collection, None if there is none.

    Args:
        names: The columns.
        usual: Names of such a column, in small letters, the best first.
        own: The column that the ids of the collection come from, if it remembers one; it comes before all others.
    """
    plain = [name.strip().lower() for name in names]
    wanted = [own.strip().lower(), *usual] if own else usual
    return next((plain.index(name) for name in wanted if name in plain), None)


def ids_or(own: str | None) -> str:
    """Return what a message calls the column of ids in such a file: "id", or "id (or 'ticket')"."""
    return f"id (or {on_one_line(own)!r})" if own and own.strip().lower() != "id" else "id"


def names_code(name: str) -> bool:
    """Whether a word of the name says that a column holds codes or running numbers."""
    return bool(_CODE_WORDS & set(name_words(name)))


def ends_as_code(name: str) -> bool:
    """Whether the last word of the name says that a column holds codes, even if they look like decimal numbers."""
    return (name_words(name) or [""])[-1] in _CODES


def known(name: str) -> bool:
    """Whether a name says what its column is for."""
    ranks = (text_rank(name), title_rank(name), id_rank(name))
    return any(rank is not None for rank in ranks) or normalised_name(name) in LANGUAGE


_SHOWN = 12


@dataclass(frozen=True)
class Columns:
    """The role of each column of a source.

    `metadata` gives the type of every other column that holds something: text, integer, real, boolean, date or list.
    `reasons` says for text, title, id and language how the column was chosen, or why there is none.
    `dates` are columns of text that look like dates; `nearly` gives columns of text of which most values have another
    type, with what this is, and the first value that is not. `spellings` gives columns of real numbers with two strings
    that are the same number, such as 1.1 and 1.10. `points` gives those whose decimal points may separate thousands,
    with the first number that has one.
    `parts` holds the columns of each source by name where several that differ were given together.
    """

    text: tuple[str, ...]
    title: str | None = None
    id: str | None = None
    language: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    dates: tuple[str, ...] = ()
    nearly: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    spellings: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    points: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, "Columns"] = field(default_factory=dict)

    def describe(self) -> str:
        """One line that says every choice aloud; for several sources, one for each that differs from the first."""
        if self.parts:
            return "".join(f"\n  {line}" for line in self._lines())
        said = [*self._roles(), f"metadata: {self._metadata()}", *self._kept_as_text()]
        for name, (one, other) in list(self.spellings.items())[:_SHOWN]:
            same = f"{on_one_line(one)} and {on_one_line(other)} are one number in {on_one_line(name)}"
            said.append(f"{same}; to keep them apart, set {arg('type')} to text")
        if self.note:
            said.append(f"read as: {self.note}")
        return " · ".join(said)

    def _lines(self) -> list[str]:
        [(name, first), *others] = self.parts.items()
        found = [(other, columns._beside(first)) for other, columns in others]
        differing = [f"{other}: {' · '.join(said)}" for other, said in found if said]
        more, same = len(differing) - _SHOWN, len(others) - len(differing)
        rest = [f"and {counted(more, 'source')} with other columns"] if more > 0 else []
        rest += [f"and {counted(same, 'source')} with the columns of the first"] if same else []
        return [f"{name}: {first.describe()}", *differing[:_SHOWN], *rest]

    def _beside(self, first: "Columns") -> list[str]:
        """Return what to say of a source whose columns are not those of the first one, nothing if they are."""
        said = [role for role in self._roles() if role not in first._roles()]
        other = {name: kind for name, kind in self.metadata.items() if first.metadata.get(name) != kind}
        missing = [name for name in first.metadata if name not in self.metadata]
        said += [f"other metadata: {replace(self, metadata=other)._metadata()}"] if other else []
        said += [f"without {listed(missing)}"] if missing else []
        return [*said, *(each for each in self._kept_as_text() if each not in first._kept_as_text())]

    def _roles(self) -> list[str]:
        roles = [("text", " + ".join(self.text)), ("title", self.title), ("id", self.id)]
        return [self._role(*each) for each in [*roles, *([("language", self.language)] if self.language else [])]]

    def _kept_as_text(self) -> list[str]:
        kept = [
            f"{on_one_line(name)} ({on_one_line(value)!r} is not {NAMED[kind]})"
            for name, (kind, value) in list(self.nearly.items())[:_SHOWN]
        ]
        if self.dates:
            names = ", ".join(map(on_one_line, self.dates[:_SHOWN]))
            kept.append(f"{names} (the dates are not all in one clear form, such as 2024-04-03)")
        advice = f"to give a column another type, set {arg('type')}"
        return [f"kept as text: {', '.join(kept)}; {advice}"] if kept else []

    def _role(self, role: str, column: str | None) -> str:
        reason = self.reasons.get(role, "")
        if column is None:
            return f"{role}: none" + (f", {reason}" if reason else "")
        return f"{role}: {on_one_line(column)}" + (f" ({reason})" if reason else "")

    def _metadata(self) -> str:
        shown = [f"{on_one_line(name)} ({kind})" for name, kind in list(self.metadata.items())[:_SHOWN]]
        more = len(self.metadata) - len(shown)
        return (", ".join(shown) or "none") + (f" and {more} more" if more else "")


def merged(parts: Sequence[tuple[str, Columns]]) -> Columns:
    """The columns of several sources read as one: the first one's roles, everyone's metadata."""
    first = parts[0][1]
    if all(columns == first for _, columns in parts):
        return first
    metadata: dict[str, str] = {}
    for _, columns in parts:
        for name, kind in columns.metadata.items():
            metadata[name] = kind if metadata.get(name, kind) == kind else _wider(metadata[name], kind)
    return Columns(first.text, first.title, first.id, first.language, metadata, first.reasons, parts=dict(parts))


def _wider(one: str, other: str) -> str:
    return "real" if {one, other} == {"integer", "real"} else "text"

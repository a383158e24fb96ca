"""The names under which the world keeps its texts, titles, ids and languages."""

import re

TEXT = (
    ("text",),
    ("body", "content", "contents", "full_text", "fulltext", "document", "passage", "article"),
    (
        *("abstract", "review", "description", "comment", "message", "answer", "question", "post", "tweet", "sentence"),
        *("paragraph", "utterance", "query", "selftext", "transcript", "snippet", "feedback", "note", "notes", "reply"),
        *("story", "lyrics", "complaint", "caption", "texte", "contenu", "inhalt", "beschreibung", "nachricht"),
        *(
            "kommentar",
            "bewertung",
            "frage",
            "antwort",
            "texto",
            "contenido",
            "descripcion",
            "descripción",
            "comentario",
        ),
        *("mensaje", "testo", "contenuto", "descrizione", "commento", "tekst", "conteudo", "conteúdo", "descricao"),
        *(
            "descrição",
            "текст",
            "описание",
            "отзыв",
            "文本",
            "内容",
            "正文",
            "本文",
            "テキスト",
            "텍스트",
            "내용",
            "نص",
        ),
    ),
)
TITLE = (
    "title",
    "headline",
    "subject",
    "heading",
    "summary",
    "name",
    "question",
    "titel",
    "betreff",
    "titre",
    "titulo",
)
TITLE += ("título", "titolo", "overskrift", "заголовок", "название", "标题", "題名", "タイトル", "제목", "عنوان")
ID = ("id", "_id", "uuid", "guid", "uid", "doc_id", "docid", "document_id", "documentid", "doi", "pmid", "key", "docno")
ID += ("identifier", "review_id", "post_id", "tweet_id", "message_id", "ticket_id", "article_id", "paper_id", "asin")
LANGUAGE = ("language", "lang", "language_code", "lang_code", "locale", "sprache", "langue", "idioma", "lingua", "язык")

_TEXT_WORDS = [name for tier in TEXT for name in tier if name not in ("query", "note", "notes", "document", "article")]
_TITLE_WORDS = ("title", "headline", "subject", "titel", "titre")
# A column "text_length" or "question_url" is about the text, not the text.
_ABOUT = {"id", "ids", "length", "len", "count", "num", "n", "date", "time", "url", "uri", "link", "lang", "language"}
_ABOUT |= {"type", "label", "labels", "class", "category", "score", "hash", "format", "author", "user", "path", "file"}


def plain(name: str) -> str:
    """A column's name as it is compared: lower case, words joined by an underscore."""
    return "_".join(words(name)) if not name.startswith("_") else "_" + "_".join(words(name))


def words(name: str) -> list[str]:
    """The words of a column's name: "reviewText", "review_text" and "Review Text" have the same two."""
    return re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower())


def text_rank(name: str) -> int | None:
    """How telling a name is for a text, 0 the most; None for other names."""
    for rank, tier in enumerate(TEXT):
        if plain(name) in tier:
            return rank
    named = set(words(name))
    return len(TEXT) if named & set(_TEXT_WORDS) and not named & _ABOUT else None


def title_rank(name: str) -> int | None:
    """How telling a name is for a title, 0 the most; None for other names."""
    if plain(name) in TITLE:
        return TITLE.index(plain(name))
    named = set(words(name))
    return len(TITLE) if named & set(_TITLE_WORDS) and not named & _ABOUT else None


def id_rank(name: str) -> int | None:
    """How telling a name is for an id, 0 the most; None for other names."""
    return ID.index(plain(name)) if plain(name) in ID else None


def known(name: str) -> bool:
    """Whether a name says what its column is for."""
    ranks = (text_rank(name), title_rank(name), id_rank(name))
    return any(rank is not None for rank in ranks) or plain(name) in LANGUAGE

"""Queries whose right documents are known: from files, from clicks, or made of a collection's own texts."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ...indexer.document import Document
from ...indexer.errors import SondeError, UsageError
from ...indexer.progress import Notify, silent
from ...indexer.readers.columns import ids_or, place_of_ids
from ...indexer.readers.read import read_rows
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import document_texts
from ..evaluate.trec import note_unknown_queries, own_ids, read_qrels, read_queries, relevant

FEWEST = 20
"""Queries with a known answer below which nothing can be chosen on one half and checked on the other."""
QUERIES = 300
"""Queries that are made of a collection's own texts."""
CORPUS = 2_000
"""Documents among which made queries are searched."""
FINDS = 0.1
"""nDCG@10 that made queries must reach in some way of searching: those that find almost nothing compare nothing."""
WORDS = 8
"""Words at most of a query that is made of a sentence: its rarest."""
_SHORTEST = 100
"""Characters that a text must still have after a sentence is removed."""
_MORE = 5
"""Distinct words that a text must have beyond its title, so that the title can be a query for it."""
_WORD = re.compile(r"\w+")
_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")


@dataclass(frozen=True, slots=True)
class KnownQuery:
    """Queries with the documents that answer them.

    Attributes:
        texts: The queries.
        truth: For each query, the right documents' ids with their grades.
        source: Where they come from, in words.
    """

    texts: tuple[str, ...]
    truth: tuple[dict[str, int], ...]
    source: str

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, places: Sequence[int]) -> "KnownQuery":
        """Return the queries at some places."""
        return KnownQuery(tuple(self.texts[p] for p in places), tuple(self.truth[p] for p in places), self.source)

    def halves(self, seed: int) -> tuple["KnownQuery", "KnownQuery"]:
        """Return two halves: to choose on, and to check on."""
        order = np.random.default_rng(seed).permutation(len(self)).tolist()
        return self.take(sorted(order[::2])), self.take(sorted(order[1::2]))


def judged(queries: Path, qrels: Path, notify: Notify = silent) -> KnownQuery:
    """Return the queries of a file that have a relevant document; `notify` receives notes on ids that do not match.

    Raises:
        SondeError: A file cannot be read, or too few queries have a right document.
    """
    truth, asked = read_qrels(qrels, notify), read_queries(queries)
    note_unknown_queries(asked, truth, notify)
    known = [(text, truth[key]) for key, text in asked if relevant(truth.get(key, {}))]
    return _enough(
        KnownQuery(tuple(t for t, _ in known), tuple(j for _, j in known), f"judged queries of {queries.name}")
    )


def clicked(path: Path, own: str | None = None) -> KnownQuery:
    """Return the queries of a log: rows with a query and the id of a document that was taken for it.

    For `own`, see `place_of_ids`.

    Raises:
        UsageError: The file has no such columns.
        SondeError: It cannot be read, or holds too few queries.
    """
    rows = list(read_rows(path, lambda cells: True))
    names = [str(name).strip().lower() for name in rows.pop(0)[1]] if rows and not rows[0][0] else []
    query = next((names.index(name) for name in ("query", "question", "text") if name in names), None)
    key = place_of_ids(names, ("id", "document", "doc", "doc_id", "clicked", "click"), own)
    if query is None or key is None:
        header = ", ".join(names) or "a first row of data"
        raise UsageError(f"{path} must have the columns query and {ids_or(own)}, not {header}")
    found: dict[str, dict[str, int]] = {}
    for _, cells in rows:
        text, document = str(cells[query] or "").strip(), cells[key]
        if text and document not in (None, ""):
            found.setdefault(text, {})[str(document)] = 1
    return _enough(KnownQuery(tuple(found), tuple(found.values()), f"queries and clicks of {path.name}"))


def checked(asked: KnownQuery, collection: StoredCollection, notify: Notify = silent) -> KnownQuery:
    """Return the queries with a right document in the collection; `notify` receives a note on documents it lacks.

    Raises:
        SondeError: Too few have one: the ids are probably others.
    """
    own = own_ids(collection, (id for truth in asked.truth for id in truth), notify)
    kept = [p for p, truth in enumerate(asked.truth) if any(id in own and grade > 0 for id, grade in truth.items())]
    if len(kept) < FEWEST:
        raise SondeError(
            f"{len(kept)} of {len(asked)} queries have a right document in {collection.named}, at least {FEWEST} are "
            "needed: are the ids those of the collection?"
        )
    named = replace(asked, truth=tuple({own.get(id, id): g for id, g in truth.items()} for truth in asked.truth))
    return named.take(kept)


def made(
    collection: StoredCollection, seed: int = 0, count: int = QUERIES, corpus: int = CORPUS
) -> tuple[KnownQuery, list[Document]]:
    """Make known-item queries, and the documents to search: with what became a query taken out of them.

    A title asks for its text, which is searched without titles. A document without one is asked for by the rarest
    words of one of its sentences, which is taken out of it.

    Raises:
        SondeError: Too few documents are long enough.
    """
    chance = np.random.default_rng(seed)
    with collection.view() as view:
        rows = [(each.id, each.title, each.text) for each in document_texts(view.catalog)]
    places = np.sort(chance.choice(len(rows), min(corpus, len(rows)), replace=False)).tolist()
    sample: list[tuple[str, str, str]] = [rows[place] for place in places]
    titled = sum(bool(_titled(title, text)[0]) for _, title, text in sample) >= len(sample) / 4
    rarity = _rarity([text for _, _, text in sample])
    wanted = set(chance.permutation(len(sample)).tolist()[: 4 * count])
    texts, truth, documents = [], [], []
    for place, (key, title, text) in enumerate(sample):
        query, rest = "", text
        if place in wanted and len(texts) < count:
            query, rest = _titled(title, text) if titled else _without_a_sentence(text, rarity, chance)
        shown = "" if titled and text.strip() else title
        documents.append(
            Document(rest if rest.strip() else title or text, title=shown if rest.strip() else "", key=key)
        )
        if query:
            texts.append(query)
            truth.append({key: 1})
    kind = "titles, asking for their texts" if titled else "sentences, taken out of their texts"
    source = f"{len(texts)} queries made of {kind}, among {len(documents):,} documents"
    return _enough(KnownQuery(tuple(texts), tuple(truth), source)), documents


def _titled(title: str, text: str) -> tuple[str, str]:
    """Return the title as a query, if it has at least two words and the text has enough that are not in the title."""
    asks = {word.lower() for word in _WORD.findall(title)}
    says = {word.lower() for word in _WORD.findall(text)}
    return (title.strip(), text) if len(asks) >= 2 and len(says - asks) >= _MORE else ("", text)


def _without_a_sentence(text: str, rarity: dict[str, float], chance: np.random.Generator) -> tuple[str, str]:
    sentences = _END.split(text.strip())
    long = [place for place, sentence in enumerate(sentences) if len(_WORD.findall(sentence)) >= 5]
    if len(sentences) < 3 or not long:
        return "", text
    place = int(chance.choice(long))
    rest = " ".join(sentences[:place] + sentences[place + 1 :])
    if len(rest) < _SHORTEST:
        return "", text
    words = _WORD.findall(sentences[place])
    kept = set(sorted(dict.fromkeys(words), key=lambda word: -rarity.get(word.lower(), 0.0))[:WORDS])
    return " ".join(word for word in words if word in kept), rest


def _rarity(texts: Sequence[str]) -> dict[str, float]:
    """Return each word's inverse document frequency; a word of one document only says nothing of another."""
    found: Counter[str] = Counter(word for text in texts for word in {w.lower() for w in _WORD.findall(text)})
    return {word: math.log(len(texts) / n) if n > 1 else 0.0 for word, n in found.items()}


def _enough(asked: KnownQuery) -> KnownQuery:
    if len(asked) < FEWEST:
        raise SondeError(
            f"{asked.source}: {len(asked)} can be used, but at least {FEWEST} are needed: half to choose settings "
            "and half to check them"
        )
    return asked

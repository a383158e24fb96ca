"""One page of ranked documents as hits, with notes for the user."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from math import ceil

import numpy as np

from ...indexer.lexical import LexicalIndex
from ...indexer.lexical.analysis import word_spans
from ...indexer.progress import check_wanted
from ...indexer.store.documents import ids_by_number, languages_by_id
from ...indexer.store.view import View
from ...indexer.wording import counted, on_one_line
from .collapse import Collapsed, collapse
from .excerpts import Excerpts, explain
from .filters import empty_hint
from .first_stage import FirstStage
from .foreign import CHARACTERS
from .fusion import Ranked
from .rerank.stage import SecondStage
from .results import (
    NOT_CLOSE,
    NOTHING_ANSWERS,
    PARTIAL,
    STATIC_TOKENS,
    Hit,
    Passage,
    Reranking,
    Results,
    Sentence,
    rounded_down,
)
from .settings import SearchSettings

NO_WORDS, MEANT = "no document has any of these words", "did you mean"
DEEPER = 4
"""How many times as many documents are searched if too many have the same text."""
DEEPEST = 1_000
"""Documents beyond those wanted that are searched for other texts."""
VOCABULARY = 200
"""Passages from which on a note names words that no passage has; in fewer, many common words are missing."""
SHORTEST, ALIKE = 4, 0.75
"""Letters of a word for which a similar one is suggested, and how alike they are, 0 to 1 (Ratcliff and Obershelp)."""
ABSENT = 4
"""Such words that the note names, at most."""
_PHRASE = re.compile(r'(?<![^\s(])["“„«]\s*([^\s"“”„«»]+(?:\s+[^\s"“”„«»]+)+)\s*["”“»]')
"""Two or more words in quotes."""
_OPERATOR = re.compile(r"(?<=\S )(?:AND|OR|NOT)(?= \S)|(?<=\w\w)\*(?!\w)|\b[wW]/\d+\b|(?<!\S)[A-Za-z_]\w*:(?=[\w\"'])")
"""Operators that other programs know: those of Boole, a wildcard, nearness, and the name of a field."""


def build_results(
    view: View,
    stage: FirstStage,
    query: str,
    vector: np.ndarray,
    ranked: Ranked,
    notes: tuple[str, ...],
    second: SecondStage | None = None,
    asked: bool = True,
    excerpts: bool = True,
) -> Results:
    """Return one page of ranked documents as hits, with notes for the user.

    `asked` is whether answers are wanted. Without `excerpts`, the whole passage is the excerpt, which saves time.
    """
    settings = stage.settings
    kept, reranking = _kept(stage, query, vector, ranked, second, asked)
    page = kept.ranked.take(np.arange(len(kept.ranked.rows))[settings.offset : settings.offset + settings.k])
    hits = [replace(hit, reranker=reranking) for hit in _hits(view, page, stage, kept)]
    if settings.explain:
        reasons = explain(view, hits, query, vector, second.reranker if second else None)
        hits = [replace(hit, why=why) for hit, why in zip(hits, reasons, strict=True)]
    chosen = Excerpts.over(view, query)
    own = languages_by_id(view.catalog, [hit.id for hit in hits])
    if excerpts:
        hits = [replace(hit, excerpt=chosen.choose(hit.passage, own[hit.id], _sentences(hit))) for hit in hits]
    hits = [replace(hit, page=chosen.page(hit.text, hit.excerpt, own[hit.id])) for hit in hits]
    strategy = "lexical index" if settings.mode == "lexical" else stage.dense.strategy(settings.k + settings.offset)
    worded = (chosen.has_all_words(hit.passage, own[hit.id]) for hit in hits)  # counted only if a note needs it
    nothing = _nothing(kept.ranked, stage.estimate.weak, worded) if asked else ()
    said = () if stage.missing and not len(ranked.rows) else _notes(view, settings, ranked, kept.ranked)
    if asked and excerpts and not notes:
        said = _with_absent(view, query, said)
    notes = nothing + _partial(stage) + notes + said + (_literal(query) if asked else ())
    if reranking and reranking.depth < reranking.wanted:
        notes += (
            f"{settings.rerank_budget} sufficed to rerank {reranking.depth} of {reranking.wanted} documents; "
            "the others follow in the first stage's order",
        )
    if reranking and reranking.model == "late" and view.collection.spec.kind == "static":
        notes += (STATIC_TOKENS,)
    return Results(
        query, settings.mode, tuple(hits), strategy, notes, 0.0, reranking, fusion=ranked.weight, tuned=stage.tuned,
        missing_shards=stage.missing,
    )  # fmt: skip


def _kept(
    stage: FirstStage, query: str, vector: np.ndarray, ranked: Ranked, second: SecondStage | None, asked: bool
) -> tuple[Collapsed, Reranking | None]:
    """Return the documents that may be shown, in their final order, and what the second stage did."""
    settings, deepest = stage.settings, stage.wanted + DEEPEST
    while True:
        above, reranking = (
            second.run(query, ranked, settings.threshold) if second else (ranked.above(settings.threshold), None)
        )
        if not (asked and settings.collapse):
            return Collapsed(above), reranking
        needed = settings.k + settings.offset
        kept = collapse(stage.view, above, needed)
        enough = kept.ranked.settled >= needed  # the others would move, and pages would not fit together
        if enough or len(above.rows) < stage.wanted or stage.wanted >= deepest:
            return kept, reranking
        stage = replace(stage, settings=replace(stage.settings, k=stage.settings.k + DEEPER * stage.wanted))
        [ranked] = stage.run([query], vector[None])


def _hits(view: View, page: Ranked, stage: FirstStage, kept: Collapsed) -> list[Hit]:
    passages = view.passages(page.rows.tolist())
    documents = view.documents([passage.doc for passage in passages.values()])
    check_wanted()
    copies = _copies(view, page, kept)
    hits = []
    for place, row in enumerate(page.rows.tolist()):
        passage = passages[row]
        found = documents[passage.doc]
        best = Passage(passage.start, passage.end, found.text[passage.start : passage.end])
        relevant = 0.0 if page.relevance is None else round(float(page.relevance[place]), 6)
        hits.append(
            Hit(
                rank=stage.settings.offset + place + 1, id=found.id, score=float(page.scores[place]), title=found.title,
                text=found.text, metadata=found.metadata, scores=page.scores_at(place), passage=best, excerpt=best,
                relevance=relevant, weak=relevant < stage.estimate.weak, copies=copies.get(row, ()),
            )
        )  # fmt: skip
    return hits


def _copies(view: View, page: Ranked, kept: Collapsed) -> dict[int, tuple[str, ...]]:
    """Return, for each row of the page that stands for others, the ids of their documents."""
    owners = view.generation.owners
    rows = {row: kept.copies[row] for row in page.rows.tolist() if row in kept.copies}
    ids = ids_by_number(view.catalog, [int(owners[copy]) for copies in rows.values() for copy in copies])
    return {row: tuple(ids[int(owners[copy])] for copy in copies) for row, copies in rows.items()}


def _sentences(hit: Hit) -> Sequence[Sentence]:
    return hit.why.sentences if hit.why else ()


def _nothing(kept: Ranked, weak: float, worded: Iterable[bool]) -> tuple[str, ...]:
    """Return the note that comes before all others if every hit is weak.

    Relevance is mostly similarity, and a static model often sees none between a few words and a long text. So the note
    does not deny hits that have all the words of the query; `worded` says of each hit whether it has. There is no
    note if they were found by words alone.
    """
    if kept.relevance is None or not len(kept.rows) or (best := float(kept.relevance.max())) >= weak:
        return ()
    below = ceil(round(100 * weak, 6)) / 100  # rounded apart, so that the two never look equal
    having = sum(worded)
    if having and kept.dense is None:  # nothing was compared but the words, and all of them were found
        return ()
    figures = f"the highest relevance is {rounded_down(best):.2f}, and hits below {below:.2f} are weak"
    if not having:
        return (f"{NOTHING_ANSWERS}: {figures}",)
    some = "1 hit has" if having == 1 else f"{having} hits have"
    return (f"{NOT_CLOSE}: {figures}. But {some} all the words of the query",)


def _partial(stage: FirstStage) -> tuple[str, ...]:
    """Return the note that some shards did not answer, if any."""
    if not stage.missing:
        return ()
    one, listed = len(stage.missing) == 1, ", ".join(f"{shard:02d}" for shard in stage.missing)
    which, whose = (f"shard {listed}", "its") if one else (f"shards {listed}", "their")
    how = "found by their words only" if stage.settings.mode == "hybrid" else "missing"
    return (f"{PARTIAL}: {which} did not answer, so {whose} documents are {how}; try again in a few seconds",)


def _with_absent(view: View, query: str, said: tuple[str, ...]) -> tuple[str, ...]:
    """Return notes with that on absent words, if there are no others; in the place of `NO_WORDS` if it suggests one."""
    if said not in ((), (NO_WORDS,)):
        return said
    absent = _absent(view, query)
    return absent if not said or any(MEANT in note for note in absent) else said


def _absent(view: View, query: str) -> tuple[str, ...]:
    """Return a note that names the query's words that no document has: relevance hardly distinguishes names."""
    lexical = view.generation.lexical
    if lexical is None or lexical.rows < VOCABULARY or len(query) > CHARACTERS:
        return ()
    if not (words := lexical.absent(query)):
        return ()
    named = ", ".join(repr(word) + _meant(view, lexical, word) for word in words[:ABSENT])
    more = ", …" if len(words) > ABSENT else ""
    return (f"no document has the {'word' if len(words) == 1 else 'words'} {named}{more}",)


def _meant(view: View, lexical: LexicalIndex, word: str) -> str:
    """Return the question whether a similar word was meant, if a document has one."""
    if len(word) < SHORTEST or not word.isalpha():
        return ""
    passages = view.passages(lexical.misspelled(word).tolist()).values()
    documents = view.documents([passage.doc for passage in passages])
    found = ((documents[passage.doc], passage) for passage in passages)
    texts = [f"{document.title} {document.text[passage.start : passage.end]}" for document, passage in found]
    known = {text[start:end].casefold() for text in texts for start, end in word_spans(text)}
    longer = sorted((each for each in known if each.startswith(word.casefold())), key=lambda each: (len(each), each))
    close = longer or get_close_matches(word.casefold(), known, n=1, cutoff=ALIKE)
    return f" ({MEANT} {close[0]!r}?)" if close else ""


def _literal(query: str) -> tuple[str, ...]:
    """Return notes on quotes and operators, which elsewhere find exact phrases or combine words."""
    if len(query) > CHARACTERS:
        return ()
    notes: tuple[str, ...] = ()
    if found := _PHRASE.search(query):
        phrase = on_one_line(found[1]).replace("'", "''")
        notes += (f"quotes do not make a phrase: the filter text ILIKE '%{phrase}%' keeps the texts that have it",)
    if not query.isupper() and (found := _OPERATOR.search(query)):
        rather = "a filter combines conditions, such as text ILIKE '%lease%' AND NOT text ILIKE '%car%'"
        notes += (f"{found[0].strip()} is no operator in a query, which is compared by meaning and words: {rather}",)
    return notes


def _notes(view: View, settings: SearchSettings, ranked: Ranked, kept: Ranked) -> tuple[str, ...]:
    notes = []
    if not len(ranked.rows) and not view.generation.alive.any():
        return ("the collection holds no documents: add some with `sonde index FILE --to COLLECTION`",)
    if settings.mode == "hybrid" and view.generation.lexical is None:
        notes.append("the lexical index is missing, so the order is by meaning alone: `sonde repair` rebuilds it")
    if settings.mode == "lexical" and view.generation.lexical is None:
        return ("the lexical index is missing: `sonde repair` rebuilds it",)
    if not len(ranked.rows) and settings.where:
        notes.append(
            f"no document passes the filter{empty_hint(view.catalog, settings.where)}"
            if settings.mode != "lexical"
            else "no document that passes the filter has these words"
        )
    elif not len(ranked.rows) and settings.mode == "lexical":
        notes.append(NO_WORDS)
    elif len(ranked.rows) and not len(kept.rows):
        similarity = ranked.dense if ranked.dense is not None else ranked.lexical
        best = float(similarity.max()) if similarity is not None else 0.0
        notes.append(f"nothing similar enough: the best score, {best:.3f}, is below the threshold {settings.threshold}")
    elif settings.offset >= len(kept.rows) > 0:
        notes.append(f"only {counted(len(kept.rows), 'hit')}")
    return tuple(notes)

"""A hit's title and best passage as HTML: the query's terms and the closest sentence stand out, all else is text."""

import html
from collections.abc import Iterable
from itertools import pairwise

from .....pipelines.results import Hit
from ...plain import MARK, joined, marked

CLOSEST = "<span class='sonde-closest'>{}</span>"

EXCERPT = 520
"""Characters of a passage that are shown."""
BEFORE = 120
"""Of these, how many at most stand before the closest sentence."""

Span = tuple[int, int]


def title_html(hit: Hit) -> str:
    """Return rank, title and score in one line; a document without a title is called by its id."""
    title = hit.title.strip() or hit.id
    marks = hit.why.title_terms if hit.why and hit.title.strip() else ()
    name = marked(title, marks) if marks else html.escape(title)
    return (
        f"<div class='sonde-hit'><span class='sonde-rank'>{hit.rank:,}</span>"
        f"<span class='sonde-title'>{name}</span><span class='sonde-score'>{hit.score:.3f}</span></div>"
    )


def passage_html(hit: Hit) -> str:
    """Return the best passage or, of a long one, what stands around the closest sentence."""
    terms = hit.why.terms if hit.why else ()
    closest = [(sentence.start, sentence.end) for sentence in (hit.why.sentences[:1] if hit.why else ())]
    begin, end = excerpt(hit.passage.text, closest[0][0] - hit.passage.start if closest else 0)
    shown = lit(hit.passage.text[begin:end], hit.passage.start + begin, terms, closest)
    before, after = "… " if begin else "", " …" if end < len(hit.passage.text) else ""
    return f"<div class='sonde-text sonde-excerpt'>{before}{shown}{after}</div>"


def excerpt(text: str, place: int) -> Span:
    """Return from where to where a long text is shown so that what begins at `place` is seen; cut between words."""
    if len(text) <= EXCERPT:
        return 0, len(text)
    begin = max(0, min(place - BEFORE, len(text) - EXCERPT))
    if begin:
        begin = text.find(" ", begin, begin + BEFORE) + 1 or begin
    end = min(len(text), begin + EXCERPT)
    return begin, end if end == len(text) else max(text.rfind(" ", end - BEFORE, end), 0) or end


def lit(text: str, offset: int, terms: Iterable[Span], closest: Iterable[Span]) -> str:
    """Return text as HTML that shows exactly it, with two kinds of spans, which may overlap.

    Args:
        text: A stretch of a document.
        offset: Where it begins in the document.
        terms: Characters of the document, from and to, that are marked.
        closest: Those that are underlaid.
    """
    inner, outer = (
        joined(((begin - offset, end - offset) for begin, end in spans), len(text)) for spans in (terms, closest)
    )
    cuts = sorted({0, len(text), *(place for span in (*inner, *outer) for place in span)})
    pieces = []
    for begin, end in pairwise(cuts):
        piece = html.escape(text[begin:end])
        piece = MARK.format(piece) if _within(begin, inner) else piece
        pieces.append(CLOSEST.format(piece) if _within(begin, outer) else piece)
    return "".join(pieces)


def _within(place: int, spans: Iterable[Span]) -> bool:
    return any(begin <= place < end for begin, end in spans)

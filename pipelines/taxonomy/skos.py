"""Taxonomies in SKOS, the W3C's vocabulary for concept schemes (Recommendation of 18 August 2009).

A group is a `skos:Concept` with a preferred label, a notation (its number), a definition (its description), a broader
concept and examples. Turtle and JSON-LD are written here; rdflib reads them, and RDF/XML.
"""

import json
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from xml.parsers import expat

from ...indexer.errors import MissingExtraError, SondeError
from ...indexer.wording import on_one_line
from .groups import DIGITS, Group, walk
from .portable import Portable, checked

if TYPE_CHECKING:
    from rdflib import Graph
    from rdflib.term import Node

SKOS = "http://www.w3.org/2004/02/skos/core#"
CONTEXT = {
    "skos": SKOS,
    "id": "@id",
    "type": "@type",
    **{name: f"skos:{name}" for name in ("prefLabel", "definition", "notation", "example")},
    **{name: {"@id": f"skos:{name}", "@type": "@id"} for name in ("broader", "inScheme", "topConceptOf")},
}


def _scheme(found: Portable) -> str:
    return f"urn:sonde:taxonomy:{quote(found.title or 'taxonomy', safe='')}"


def _concepts(found: Portable) -> Iterator[dict[str, Any]]:
    """Yield the properties of the scheme and of each group, by the names of JSON-LD."""
    scheme = _scheme(found)
    yield {"id": scheme, "type": "skos:ConceptScheme", "prefLabel": found.title or "taxonomy"}
    for group, _ in walk(found.groups):
        concept: dict[str, Any] = {"id": f"{scheme}:{group.number}", "type": "skos:Concept", "prefLabel": group.name}
        concept["notation"] = str(group.number)
        if group.description:
            concept["definition"] = group.description
        if group.parent is None:
            concept["topConceptOf"] = scheme
        else:
            concept["broader"] = f"{scheme}:{group.parent}"
        concept["inScheme"] = scheme
        if examples := found.examples(group.number):
            concept["example"] = list(examples)
        yield concept


def to_jsonld(found: Portable) -> str:
    """Return a taxonomy in JSON-LD; its rules, locks and documents are left out."""
    return json.dumps({"@context": CONTEXT, "@graph": list(_concepts(found))}, ensure_ascii=False, indent=1) + "\n"


def to_turtle(found: Portable) -> str:
    """Return a taxonomy in Turtle; its rules, locks and documents are left out."""
    blocks = []
    for concept in _concepts(found):
        lines = [f"<{concept['id']}> a {concept['type']}"]
        for name, value in concept.items():
            if name not in ("id", "type"):
                lines.append(f"skos:{name} {_turtle(name, value)}")
        blocks.append(" ;\n    ".join(lines) + " .\n")
    return f"@prefix skos: <{SKOS}> .\n\n" + "\n".join(blocks)


def _turtle(name: str, value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_turtle(name, one) for one in value)
    return f"<{value}>" if isinstance(CONTEXT[name], dict) else json.dumps(value, ensure_ascii=False)


FORMATS = {"ttl": "turtle", "jsonld": "json-ld", "rdf": "xml"}
"""rdflib's names of the forms."""


def from_skos(text: str, form: str) -> Portable:
    """Return the taxonomy of a concept scheme.

    Of several broader concepts the first by its address counts; a note names the others. Labels in English or without a
    language are preferred. Concepts are numbered by their notations if these are different whole numbers, else in the
    order of their addresses.

    Args:
        text: The file.
        form: "ttl" (Turtle), "jsonld" (JSON-LD) or "rdf" (RDF/XML).

    Raises:
        MissingExtraError: rdflib is not installed.
        SondeError: The text is not valid, or holds no concept.
    """
    graph = _graph(text, form)
    from rdflib.namespace import RDF
    from rdflib.namespace import SKOS as NAMES

    concepts = sorted(set(graph.subjects(RDF.type, NAMES.Concept)) | set(graph.subjects(NAMES.inScheme)), key=str)
    if not concepts:
        raise SondeError("the file has no skos:Concept", code="bad-file")
    numbers = _numbers(graph, concepts)
    above = {one: _broader(graph, one, numbers) for one in concepts}
    groups = {number: _group(graph, one, number, next(iter(above[one]), None)) for one, number in numbers.items()}
    notes = tuple(_several(groups, numbers[one], found) for one, found in above.items() if len(found) > 1)
    scheme = next(iter(sorted(graph.subjects(RDF.type, NAMES.ConceptScheme), key=str)), None)
    title = _label(graph, scheme) if scheme is not None else ""
    return checked(Portable(groups, title=title, notes=notes))


def _graph(text: str, form: str) -> "Graph":
    try:
        import rdflib
    except ImportError as error:
        raise MissingExtraError("rdflib", "skos", "reading SKOS") from error
    graph = rdflib.Graph()
    try:
        if form == "jsonld":
            _refuse_addresses(json.loads(text))
        if form == "rdf":
            _refuse_entities(text)
        with _literals_as_written():
            graph.parse(data=text, format=FORMATS[form])
    except SondeError:
        raise
    except Exception as error:  # rdflib's parsers raise errors of many kinds
        said = " ".join(str(error).split())[:200]
        raise SondeError(f"the file is not valid {FORMATS[form]}: {said}", code="bad-file") from None
    return graph


_ONE_AT_A_TIME = threading.Lock()


@contextmanager
def _literals_as_written() -> Iterator[None]:
    """Let rdflib keep literals as they are: it would write the decimal 1E+999999999 with all its digits."""
    import rdflib

    log = logging.getLogger("rdflib.term")
    with _ONE_AT_A_TIME:  # both settings are those of the process
        before = rdflib.NORMALIZE_LITERALS, log.disabled
        # The log gets a traceback for each literal that is not of its type.
        rdflib.NORMALIZE_LITERALS, log.disabled = False, True
        try:
            yield
        finally:
            rdflib.NORMALIZE_LITERALS, log.disabled = before


def _refuse_entities(text: str) -> None:
    """Refuse XML that declares entities: a few nested ones stand for gigabytes of text.

    Raises:
        SondeError: There is a document type declaration, which holds such entities.
        ExpatError: It is not XML.
    """

    def refuse(*_: object) -> None:
        said = "the file has a DOCTYPE, which Sonde does not read: save it without one, or as Turtle or JSON-LD"
        raise SondeError(said, code="bad-file")

    parser = expat.ParserCreate("utf-8")
    parser.StartDoctypeDeclHandler = refuse
    parser.Parse(text, True)


def _refuse_addresses(value: Any) -> None:
    """Refuse a context that would have to be fetched: nothing is read from a network.

    Raises:
        SondeError: A context is an address.
    """
    if isinstance(value, list):
        for one in value:
            _refuse_addresses(one)
    if isinstance(value, dict):
        context = value.get("@context", {})
        parts = context if isinstance(context, list) else [context]
        if any(isinstance(one, str) for one in parts) or any(
            "@import" in one for one in parts if isinstance(one, dict)
        ):
            said = "the file's @context is an address, and Sonde fetches nothing: put the context into the file"
            raise SondeError(said, code="bad-file")
        for one in value.values():
            _refuse_addresses(one)


def _numbers(graph: "Graph", concepts: "list[Node]") -> "dict[Node, int]":
    from rdflib.namespace import SKOS as NAMES

    codes = [sorted(str(one) for one in graph.objects(concept, NAMES.notation)) for concept in concepts]
    plain = [found[0] for found in codes if len(found) == 1 and found[0].isdecimal() and len(found[0]) < DIGITS // 2]
    if len(set(map(int, plain))) == len(concepts):
        return {concept: int(code[0]) for concept, code in zip(concepts, codes, strict=True)}
    return {concept: number for number, concept in enumerate(concepts)}


def _several(groups: Mapping[int, Group], number: int, broader: list[int]) -> str:
    """Return which of the broader concepts of a group is the one above it."""
    kept, *others = (on_one_line(groups[one].name) for one in broader)
    name, left = on_one_line(groups[number].name), ", ".join(map(repr, others))
    return f"{name!r} has {len(broader)} broader concepts: it lies under {kept!r}, not under {left}"


def _broader(graph: "Graph", concept: "Node", numbers: "Mapping[Node, int]") -> list[int]:
    """Return the numbers of the broader concepts, in the order of their addresses."""
    from rdflib.namespace import SKOS as NAMES

    found = {*graph.objects(concept, NAMES.broader), *graph.subjects(NAMES.narrower, concept)}
    return [numbers[one] for one in sorted(found, key=str) if one in numbers]


def _group(graph: "Graph", concept: "Node", number: int, parent: int | None) -> Group:
    from rdflib.namespace import SKOS as NAMES

    notes = [_text(graph, concept, name) for name in (NAMES.definition, NAMES.scopeNote)]
    examples = tuple(sorted(str(one) for one in graph.objects(concept, NAMES.example)))
    description = " ".join(next((note for note in notes if note), "").split())
    return Group(number, _label(graph, concept), description, parent, source=str(concept), examples=examples)


def _label(graph: "Graph", concept: "Node") -> str:
    from rdflib.namespace import SKOS as NAMES

    found = " ".join(_text(graph, concept, NAMES.prefLabel).split())
    return found or str(concept).rstrip("/#").replace("#", "/").rpartition("/")[2]


def _text(graph: "Graph", concept: "Node", name: Any) -> str:
    """Return a property's text, in English or without a language where there is one."""
    found = sorted(graph.objects(concept, name), key=lambda one: (_order(one), str(one)))
    return str(found[0]) if found else ""


def _order(literal: Any) -> int:
    language = (getattr(literal, "language", None) or "").lower()
    return 0 if language.partition("-")[0] == "en" else 1 if not language else 2

"""Check a collection: every digest and count, every passage, and both derived indexes."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from ..ann import AnnIndex, exact_search
from ..errors import SondeError, WriterBusyError
from ..files import sha256
from ..ingest.chunker import passage_text
from ..late import LateIndex
from ..small_files import JUDGEMENTS, damaged_lines
from ..store.catalog import Catalog
from ..store.checksums import PASSAGES
from ..store.collection import StoredCollection
from ..store.derived import ANN_BUILT, Loaded
from ..store.integrity import (
    Span,
    changed_documents,
    changed_runs,
    changed_tables,
    damage,
    documents_of_another_checksum,
    documents_with_spans,
    documents_without_metadata,
    lost_runs,
    orphaned_metadata,
    orphaned_passages,
    passage_rows,
)
from ..store.late import LATE_BUILT, is_wanted, late_folder
from ..store.lock import is_noted, writer_lock
from ..store.models import PREVIOUS, model_folder
from ..store.segments import Segment, Segments
from ..store.view import View
from ..store.writing import digest
from ..wording import counted


def astray(catalog: Catalog, fingerprint: str) -> Iterator[tuple[int, str]]:
    """Yield (document, problem) for every document whose passages are not those that were made of its text.

    Args:
        catalog: An open catalog, best in a transaction.
        fingerprint: Of the collection's model, which is part of a passage's digest.
    """
    for doc, title, text, spans in documents_with_spans(catalog):
        if problem := _problem(title, text, spans, fingerprint):
            yield doc, problem


def _problem(title: str, text: str, spans: Sequence[Span], fingerprint: str) -> str | None:
    if not spans:
        return "without passages"
    if any(not 0 <= start <= end <= len(text) for start, end, _ in spans):
        return "with passages beyond the end of the text"
    covered = 0
    for start, end, _ in [*spans, (len(text), len(text), b"")]:
        if text[covered:start].strip():
            return "with text that is in no passage"
        covered = max(covered, end)
    if not all(_digest_fits(title, text[start:end], stored, fingerprint) for start, end, stored in spans):
        return "with passages of another text"
    return None


def _digest_fits(title: str, text: str, stored: bytes, fingerprint: str) -> bool:
    # A title too long for the model's window was cut; where, only the model's tokenizer knows. A window holds a short
    # part of a long title, so the shortest parts come first: from the other end, the work would be quadratic.
    return any(
        digest(fingerprint, passage_text(title[:end].rstrip() if end < len(title) else title, text)) == stored
        for end in (len(title), *range(len(title)))
    )


Part = Literal["catalog", "runs", "judgements", "models", "vectors", "passages", "lexical", "ann", "late"]
CHANGED = "has changed since it was written"
PROBES = 200
RECALL_SLACK = 0.03
"""How far recall on new probes may fall below the stored one before the index counts as damaged."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong: in which part, and what."""

    part: Part
    problem: str


ATTEMPTS = 3
"""Of a verification beside writers, before it keeps them out."""


def verify_beside_writers(collection: StoredCollection) -> list[Finding]:
    """Return everything that is wrong with a collection, and nothing that another process was just writing.

    What is found beside a writer is looked for again, in the end with writers kept out.

    Raises:
        WriterBusyError: Something was found, and another process goes on writing.
    """
    found: list[Finding] = []
    for _ in range(ATTEMPTS):
        before = _moment(collection)
        found = verify(collection)
        if not found or (before == _moment(collection) and not before[1]):
            return found
    try:
        with writer_lock(collection.path):
            return verify(collection)
    except WriterBusyError:
        raise
    except SondeError:  # the folder is read-only, or has damage for which no lock is given
        return found


def _moment(collection: StoredCollection) -> tuple[int, bool]:
    """Return a number that other connections' commits change, and whether a writer is at work or was killed."""
    return collection.open_catalog().version(), is_noted(collection.path)


def verify(collection: StoredCollection) -> list[Finding]:
    """Return everything that is wrong with a collection; an empty list means that all is well.

    Digests of all segments and documents are recomputed, so it reads the whole collection. A writer at work must be
    kept out: between its commits, indexes lag behind.
    """
    catalog = collection.open_catalog()
    if problems := damage(catalog):
        return [Finding("catalog", f"catalog.db is damaged: {problem}") for problem in problems]
    findings = [*_tables(catalog), *_rows(catalog)]
    findings += [finding for segment in catalog.segments() for finding in _segment(collection, segment)]
    if any(finding.part in ("catalog", "vectors") for finding in findings) or not _numbered(catalog):
        return findings
    with collection.view() as view:
        loaded = Loaded(collection.path)  # what is on the disk now, not what the collection holds in memory
        findings += [*_documents(view), *_runs(catalog), *verify_judgements(collection), *verify_kept(collection)]
        return [*findings, *_lexical(view, loaded), *_ann(view, loaded), *_late(view)]


def verify_runs(catalog: Catalog) -> list[Finding]:
    """Return everything that is wrong with a catalog that holds nothing but runs."""
    if problems := damage(catalog):
        return [Finding("runs", f"the catalog of runs is damaged: {problem}") for problem in problems]
    tables = [Finding("runs", f"the catalog of runs is damaged: {found.problem}") for found in _tables(catalog)]
    return tables or list(_runs(catalog))


def verify_judgements(collection: StoredCollection) -> Iterator[Finding]:
    """Yield what is wrong with the judgements of a collection."""
    try:
        damaged = damaged_lines(collection.path / JUDGEMENTS)
    except OSError as error:
        yield Finding("judgements", f"{JUDGEMENTS} cannot be read ({error.strerror or error})")
    else:
        if damaged:
            yield Finding("judgements", f"{counted(damaged, 'judgement')} damaged or cut off, and not counted")


def verify_kept(
    collection: StoredCollection, parts: Callable[[Path], Iterable[Path]] = lambda folder: (folder,)
) -> Iterator[Finding]:
    """Yield what is wrong with the previous model's embeddings; its indexes are rebuilt when they are needed.

    `parts` returns the collections in the folder of that model.
    """
    previous = collection.get(PREVIOUS)
    if previous is None:
        return
    advice = "`sonde model --undo` repairs what it can and switches back, `sonde model --forget` removes them"
    if not model_folder(collection.path, previous).is_dir():
        lost = "the embeddings of the previous model are missing, so `sonde model --undo` cannot switch back"
        yield Finding("models", f"{lost}: `sonde model --forget` stops looking for them")
        return
    for part in parts(model_folder(collection.path, previous)):
        try:
            with closing(StoredCollection.open(part)) as kept:
                problems = [finding.problem for finding in verify(kept) if finding.part not in ("ann", "lexical")]
        except SondeError as error:
            problems = [str(error)]
        said = "the embeddings of the previous model"
        yield from (Finding("models", f"{said}: {problem}: {advice}") for problem in problems)


def _tables(catalog: Catalog) -> Iterator[Finding]:
    for table in changed_tables(catalog):
        yield Finding("passages" if table == PASSAGES else "catalog", f"the table {table} {CHANGED}")


def _runs(catalog: Catalog) -> Iterator[Finding]:
    for run in changed_runs(catalog):
        yield Finding("runs", f"{run} {CHANGED}: create it again under the same name, or delete it")
    if lost := lost_runs(catalog):
        yield Finding("passages", f"{counted(len(lost), 'run')} without a description")


def _segment(collection: StoredCollection, segment: Segment) -> Iterator[Finding]:
    path, spec = segment.path(collection.vectors_path), collection.spec
    if not path.is_file():
        yield Finding("vectors", f"{path.name} is missing: {counted(segment.count, 'vector')}")
    elif sha256(path) != segment.sha256:
        yield Finding("vectors", f"{path.name} does not match its digest")
    else:
        try:
            sound = finite(Segments(path.parent, [segment], spec.dimension, normalized=spec.normalize))
        except SondeError as error:
            yield Finding("vectors", str(error))
        else:
            if not sound:
                yield Finding("vectors", f"{path.name} holds values that are not numbers")


def finite(vectors: Segments) -> bool:
    """Whether all values are numbers."""
    return all(np.isfinite(chunk).all() for _, chunk in vectors.chunks(65_536))


def _numbered(catalog: Catalog) -> bool:
    """Whether every passage has a row among the segments; without that, no view can be opened."""
    return passage_rows(catalog) <= catalog.rows()


def _rows(catalog: Catalog) -> Iterator[Finding]:
    end = 0
    for segment in catalog.segments():
        if segment.start != end:
            yield Finding("vectors", f"segment {segment.number} starts at row {segment.start}, expected {end}")
        end = segment.start + segment.count
    if (rows := passage_rows(catalog)) > end:
        yield Finding("passages", f"passages refer to {counted(rows, 'row')}, but the segments have {end:,}")
    if count := orphaned_passages(catalog):
        yield Finding("passages", f"{counted(count, 'passage')} without a document")
    if count := orphaned_metadata(catalog):
        yield Finding("passages", f"{counted(count, 'metadata row')} without a document")


def _documents(view: View) -> Iterator[Finding]:
    if changed := changed_documents(view.catalog):
        yield Finding("catalog", f"{counted(changed, 'document')} with changed text")
    if changed := documents_of_another_checksum(view.catalog):
        yield Finding("catalog", f"{counted(changed, 'document')} with a changed id or changed metadata")
    if lost := documents_without_metadata(view.catalog):
        yield Finding("catalog", f"{counted(lost, 'document')} without metadata")
    problems = Counter(problem for _, problem in astray(view.catalog, view.collection.spec.fingerprint))
    yield from (Finding("passages", f"{counted(count, 'document')} {problem}") for problem, count in problems.items())


def _lexical(view: View, loaded: Loaded) -> Iterator[Finding]:
    index, live = loaded.lexical(view.generation.epoch), int(view.generation.alive.sum())
    if index is None:
        yield Finding("lexical", "the lexical index is missing or damaged")
        return
    yield from (Finding("lexical", problem) for problem in index.verify())
    if index.rows != live or index.state.through_row != len(view.generation.owners):
        yield Finding("lexical", f"the lexical index holds {counted(index.rows, 'passage')} instead of {live:,}")


def _ann(view: View, loaded: Loaded) -> Iterator[Finding]:
    generation = view.generation
    ann = loaded.ann(generation.epoch)
    if ann is None:
        if view.catalog.get(ANN_BUILT) == generation.epoch:
            yield Finding("ann", "the FAISS index is missing or damaged")
    elif ann.info.rows > len(generation.owners):
        yield Finding(
            "ann",
            f"the FAISS index covers {counted(ann.info.rows, 'row')}, but there are only {len(generation.owners):,}",
        )
    elif (recall := measured_recall(view, ann)) < ann.info.recall - RECALL_SLACK:
        yield Finding("ann", f"recall@10 of the FAISS index is {recall:.3f}, but was {ann.info.recall:.3f} when built")


def _late(view: View) -> Iterator[Finding]:
    """An index that does not cover every passage is not damaged: a run was stopped, or not yet complete."""
    if not is_wanted(view.catalog):
        return
    folder, built = late_folder(view.collection.path, view.generation.epoch), view.catalog.get(LATE_BUILT)
    try:
        index = LateIndex.open(folder, view.collection.spec.fingerprint)
        problems = [problem for each in index.info.segments if (problem := each.problem(folder))]
    except FileNotFoundError:
        problems = ["it is missing"] if built == view.generation.epoch else []
    except (OSError, SondeError) as error:
        problems = [str(error)]
    yield from (Finding("late", f"the late index is damaged: {problem}") for problem in problems)


def measured_recall(view: View, ann: AnnIndex) -> float:
    """Return recall@10 of the index against the exact scan over evenly spaced stored vectors; ties count as found."""
    vectors = view.generation.segments
    alive = view.generation.alive[: ann.info.rows]
    live = np.flatnonzero(alive)
    k = min(10, len(live))
    if not k:
        return 1.0
    queries = vectors.read(live[np.linspace(0, len(live) - 1, min(PROBES, len(live))).astype(np.int64)])
    truth, _ = exact_search(vectors, queries, k, rows=live)
    scores, _ = ann.search(queries, k, allowed=alive, vectors=vectors)
    return float((scores >= truth[:, -1:] - 1e-6).mean())

"""Repairing a collection: whatever can be rebuilt is rebuilt; texts are never touched."""

import shutil
from contextlib import closing
from pathlib import Path

import numpy as np

from ..ann import AnnSettings
from ..document import Document
from ..encoder import Tokens
from ..errors import SondeError
from ..files import sha256
from ..ingest.chunker import Chunker
from ..ingest.late import fill_late
from ..ingest.plan import Batch, PlannedDocument
from ..ingest.report import Tally
from ..ingest.run import Committer
from ..late import LateWriter
from ..progress import Notify, silent
from ..small_files import JUDGEMENTS, damaged_lines, drop_damaged
from ..store.catalog import Catalog
from ..store.checksums import PASSAGES, passages_now, reset_sequence, store
from ..store.collection import StoredCollection
from ..store.derived import LexicalFollower, repaired_ann, update_derived, update_lexical
from ..store.documents import chosen_texts
from ..store.integrity import bury_orphans, changed_tables, lost_runs, remove_orphaned_metadata, sweep
from ..store.late import late_folder
from ..store.lock import writer_lock
from ..store.passages import places_in, remove_tombstones, replace_segment
from ..store.run_writing import remove_run
from ..store.segments import Segment, Segments, write_segment
from ..store.writing import identities_by_id
from ..wording import counted
from .verify import Finding, astray, finite, verify

AT_ONCE = 1_024


def repair(collection: StoredCollection, notify: Notify = silent) -> list[str]:
    """Rebuild what `verify` finds broken; return what was done, nothing where all was well.

    Derived indexes are rebuilt from the vectors and texts; vectors of a lost or damaged segment are embedded again
    from the texts. An older format is brought up to date.

    Raises:
        SondeError: The catalog itself is damaged, which holds the texts, or the model is not available.
    """
    folder = collection.path
    done: list[str] = []
    with writer_lock(folder), closing(Catalog.open(collection.catalog_path, write=True)) as catalog:
        done += ["corrected the number of the next run"] if reset_sequence(catalog.connection) else []
        findings = verify(collection)
        if broken := [finding for finding in findings if finding.part == "catalog"]:
            raise SondeError(f"{broken[0].problem}: this cannot be rebuilt, so restore {folder} from a backup")
        collection.vectors_path.mkdir(exist_ok=True)
        done += _vectors(collection, catalog)
        done += [f"removed {path.name}" for path in sweep(folder, catalog)]
        done += _orphans(catalog)
        done += repair_judgements(folder)
        done += _passages(collection, catalog)
        done += _rows(collection, catalog)
        findings = verify(collection)
        done += _derived(collection, catalog, findings, notify)
        if runs := [finding for finding in findings if finding.part == "runs"]:
            raise SondeError(f"{'; '.join([*done, runs[0].problem])}")
    return done


def _vectors(collection: StoredCollection, catalog: Catalog) -> list[str]:
    done = []
    for segment in catalog.segments():
        path = segment.path(collection.vectors_path)
        if not path.is_file() or sha256(path) != segment.sha256 or not _readable(collection, segment):
            count = _embed_anew(collection, catalog, segment)
            done.append(f"embedded {counted(count, 'passage')} of {path.name} again")
    return done


def _readable(collection: StoredCollection, segment: Segment) -> bool:
    spec = collection.spec
    try:
        return finite(Segments(collection.vectors_path, [segment], spec.dimension, normalized=spec.normalize))
    except SondeError:
        return False


def _embed_anew(collection: StoredCollection, catalog: Catalog, segment: Segment) -> int:
    lost = places_in(catalog, segment)
    vectors = np.zeros((segment.count, collection.spec.dimension), dtype=np.float32)
    for offset in range(0, len(lost), AT_ONCE):
        some = lost[offset : offset + AT_ONCE]
        places = [row - segment.start for row, *_ in some]
        vectors[places] = collection.encoder.encode(_tokens(collection, catalog, some))
    number = 1 + max(known.number for known in catalog.segments())
    written = write_segment(collection.vectors_path, number, segment.start, vectors)
    with catalog.transaction(write=True):
        # The lost vectors of tombstones cannot be embedded again, and nothing may reuse them.
        remove_tombstones(catalog, segment)
        replace_segment(catalog, segment, written)
        catalog.advance()
    return len(lost)


def _tokens(collection: StoredCollection, catalog: Catalog, lost: list[tuple[int, int, int, int]]) -> list[Tokens]:
    """Return the tokens of passages (row, document, start, end), split from their documents as when they were new."""
    docs = sorted({doc for _, doc, _, _ in lost})
    found = list(chosen_texts(catalog, docs))
    documents = [Document(each.text, each.title, language=each.language) for each in found]
    split = Chunker(collection.encoder).split(documents)
    inputs = {
        (each.doc, passage.start, passage.end): passage.tokens
        for each, passages in zip(found, split, strict=True)
        for passage in passages
    }
    missing = [place for place in lost if place[1:] not in inputs]
    if missing:
        raise SondeError(
            f"row {missing[0][0]} is not a passage that this version makes from its document: "
            f"export the texts with `sonde export` and index them into a new collection"
        )
    return [inputs[doc, start, end] for _, doc, start, end in lost]


def repair_judgements(folder: Path) -> list[str]:
    """Remove the damaged judgements of a collection; return what was done."""
    path = folder / JUDGEMENTS
    dropped = drop_damaged(path) if path.exists() and damaged_lines(path) else 0
    return [f"removed {counted(dropped, 'damaged judgement')}"] if dropped else []


def _orphans(catalog: Catalog) -> list[str]:
    with catalog.transaction(write=True):
        found, records, runs = bury_orphans(catalog), remove_orphaned_metadata(catalog), lost_runs(catalog)
        for number in runs:
            remove_run(catalog, number)
        if found or records or runs:
            catalog.advance()
    done = [f"removed {counted(found, 'passage')} without a document"] if found else []
    done += [f"removed {counted(records, 'metadata row')} without a document"] if records else []
    return done + ([f"removed the remains of {counted(len(runs), 'run')}"] if runs else [])


def _passages(collection: StoredCollection, catalog: Catalog) -> list[str]:
    """Split documents again whose passages are not those of their text; vectors that are still there are reused."""
    docs = [doc for doc, _ in astray(catalog, collection.spec.fingerprint)]
    for offset in range(0, len(docs), AT_ONCE):
        planned = _planned(collection, catalog, docs[offset : offset + AT_ONCE])
        with LexicalFollower(collection.path, catalog) as lexical:
            tally = Tally(collection.path / "skipped.jsonl")
            Committer(collection.path, catalog, lexical, collection.encoder, tally).commit(Batch(planned))
    if docs:
        update_lexical(collection.path, catalog)
    return [f"split {counted(len(docs), 'document')} again"] if docs else []


def _rows(collection: StoredCollection, catalog: Catalog) -> list[str]:
    """Embed every passage again where nothing else tells which embedding belongs to which passage."""
    if PASSAGES not in changed_tables(catalog):
        return []
    count = sum(_embed_anew(collection, catalog, segment) for segment in catalog.segments())
    with catalog.transaction(write=True):
        store(catalog.connection, PASSAGES, passages_now(catalog.connection))
    sweep(collection.path, catalog)
    return [f"embedded all passages again ({count:,})"]


def _planned(collection: StoredCollection, catalog: Catalog, docs: list[int]) -> list[PlannedDocument]:
    metadata = catalog.metadata(docs)
    stored = list(chosen_texts(catalog, docs))
    documents = [Document(each.text, each.title, each.id, metadata[each.doc], each.language) for each in stored]
    identities = identities_by_id(catalog, [each.id for each in stored])
    split = Chunker(collection.encoder).split(documents)
    return [
        PlannedDocument(each.id, document, identities[each.id], True, passages)
        for each, document, passages in zip(stored, documents, split, strict=True)
    ]


def _derived(collection: StoredCollection, catalog: Catalog, findings: list[Finding], notify: Notify) -> list[str]:
    if repaired_ann(collection.path, catalog, notify):
        return ["built a FAISS index for this CPU", *_derived(collection, catalog, findings, notify)]
    broken = sorted({finding.part for finding in findings if finding.part in ("ann", "lexical")})
    for part in broken:
        shutil.rmtree(collection.path / part, ignore_errors=True)
    if broken:
        update_derived(collection.path, catalog, AnnSettings(), notify)
        with catalog.transaction(write=True):
            catalog.advance()
    done = [f"rebuilt the {'FAISS' if part == 'ann' else 'lexical'} index" for part in broken]
    return done + _late(collection, catalog, findings, notify)


def _late(collection: StoredCollection, catalog: Catalog, findings: list[Finding], notify: Notify) -> list[str]:
    """Embed the tokens again that damaged parts of the late index held."""
    if not any(finding.part == "late" for finding in findings):
        return []
    writer = LateWriter(late_folder(collection.path, catalog.epoch()), collection.spec.fingerprint)
    writer.drop(writer.damaged())
    report = fill_late(collection.path, catalog, collection.encoder, notify)
    with catalog.transaction(write=True):
        catalog.advance()
    return [f"embedded the tokens of {counted(report.embedded, 'passage')} again for the late index"]

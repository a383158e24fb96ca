"""One commit: vectors into a segment, then documents and passages into the catalog, in one transaction."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..encoder import Encoder, Tokens
from ..store.catalog import Catalog
from ..store.derived import LexicalFollower
from ..store.documents import numbers_by_id
from ..store.integrity import merge_segments
from ..store.kinds import CORRECTION
from ..store.members import documents_of_kind
from ..store.passages import PassageRow, add_passages, add_segment, digests_in_use, rows_by_digest
from ..store.segments import Segment, Segments, write_segment
from ..store.writing import bury, digest, put_documents
from .chunker import PassageInput
from .late import LateFollower
from .plan import Batch, PlannedDocument
from .report import Tally


class Committer:
    """Embeds planned batches and commits them one by one."""

    def __init__(
        self,
        folder: Path,
        catalog: Catalog,
        lexical: LexicalFollower,
        encoder: Encoder,
        tally: Tally,
        late: LateFollower | None = None,
        numbers: Mapping[str, int] | None = None,
    ) -> None:
        self.folder = folder
        self.catalog = catalog
        self.lexical = lexical
        self.encoder = encoder
        self.fingerprint = encoder.spec.fingerprint
        self.tally = tally
        self.late = late
        self.numbers = numbers or {}
        self.corrected = documents_of_kind(catalog, CORRECTION)
        segments = catalog.segments()
        self._rows_before = segments[-1].start + segments[-1].count if segments else 0

    def commit(self, batch: Batch) -> None:
        """Embed what is new in the batch and make all of it visible at once."""
        if batch.documents:
            inputs = [passage for planned in batch.documents for passage in planned.passages or []]
            digests = [digest(self.fingerprint, passage.text) for passage in inputs]
            stored = rows_by_digest(self.catalog, digests)
            vectors = self._vectors(inputs, digests, stored)
            there = digests_in_use(self.catalog, stored, self._rows_before)
            existing = self._write(batch.documents, digests, vectors, stored)
            self._count(batch.documents, existing, digests, there)
        self.tally.unchanged += batch.unchanged
        self.tally.duplicate_ids += batch.duplicate_ids
        self.tally.skip(batch.skipped)

    def _vectors(self, inputs: list[PassageInput], digests: list[bytes], stored: Mapping[bytes, int]) -> np.ndarray:
        """Return float32 [n, d], embedding each distinct text that no stored vector stands for."""
        fresh = {key: place for place, key in enumerate(digests) if key not in stored}
        vectors = np.empty((len(inputs), self.encoder.spec.dimension), dtype=np.float32)
        embedded = self._encode(list(fresh), [inputs[place].tokens for place in fresh.values()])
        order = {key: place for place, key in enumerate(fresh)}
        reused = [place for place, key in enumerate(digests) if key in stored]
        anew = [place for place, key in enumerate(digests) if key in order]
        vectors[anew] = embedded[[order[digests[place]] for place in anew]]
        vectors[reused] = self._read([stored[digests[place]] for place in reused])
        self.tally.embedded += len(fresh)
        self.tally.reused += len(inputs) - len(fresh)
        self.tally.tokens += sum(len(inputs[place].tokens.ids) for place in fresh.values())
        return vectors

    def _encode(self, digests: list[bytes], tokens: list[Tokens]) -> np.ndarray:
        if not tokens:
            return np.empty((0, self.encoder.spec.dimension), np.float32)
        return self.late.encode(digests, tokens) if self.late else self.encoder.encode(tokens)

    def _read(self, rows: list[int]) -> np.ndarray:
        segments = self.catalog.segments() if rows else []
        return Segments(self.folder / "vectors", segments, self.encoder.spec.dimension).read(np.array(rows, np.int64))

    def _write(
        self,
        documents: list[PlannedDocument],
        digests: list[bytes],
        vectors: np.ndarray,
        stored: Mapping[bytes, int],
    ) -> Mapping[str, int]:
        """Return the numbers of the documents that were there, by id."""
        segment = self._segment(vectors) if len(vectors) else None
        with self.catalog.transaction(write=True):
            existing = numbers_by_id(self.catalog, [planned.key for planned in documents])
            put = [(p.key, p.document, p.identity) for p in documents]
            numbers = put_documents(self.catalog, put, existing, self.numbers)
            pairs = list(zip(documents, numbers, strict=True))
            changed = [doc for p, doc in pairs if p.passages is not None and p.key in existing]
            bury(self.catalog, changed, replaced=True)
            if segment:
                self._add_passages(segment, pairs, digests)
            self.catalog.advance()
            self.lexical.add()
        self.lexical.bury()
        if segment and self.late:
            self.late.commit(range(segment.start, segment.start + segment.count), digests, stored)
        merge_segments(self.folder, self.catalog)
        return existing

    def _segment(self, vectors: np.ndarray) -> Segment:
        known = self.catalog.segments()
        start = known[-1].start + known[-1].count if known else 0
        number = 1 + max((segment.number for segment in known), default=0)
        return write_segment(self.folder / "vectors", number, start, vectors)

    def _add_passages(self, segment: Segment, pairs: list[tuple[PlannedDocument, int]], digests: list[bytes]) -> None:
        owners = [(doc, passage) for planned, doc in pairs for passage in planned.passages or []]
        rows = [
            PassageRow(segment.start + offset, doc, passage.start, passage.end, digests[offset])
            for offset, (doc, passage) in enumerate(owners)
        ]
        add_segment(self.catalog, segment)
        add_passages(self.catalog, rows)

    def _count(
        self, documents: list[PlannedDocument], existing: Mapping[str, int], digests: list[bytes], there: set[bytes]
    ) -> None:
        place = 0
        for planned in documents:
            own = digests[place : (place := place + len(planned.passages or []))]
            self.tally.known_texts += bool(own) and planned.key not in existing and there.issuperset(own)
            self.tally.added += planned.key not in existing
            self.tally.replaced += planned.key in existing and not planned.again
            if planned.passages is not None and not planned.again:
                self.tally.languages.see(planned.document)
                self.tally.non_answers.see(planned.document)
                self.tally.new_texts += planned.key in existing
                if existing.get(planned.key) in self.corrected:
                    self.tally.recoded.append(planned.key)
            cut = sum(passage.cut for passage in planned.passages or [])
            self.tally.cut_tokens += cut
            self.tally.cut_documents += cut > 0

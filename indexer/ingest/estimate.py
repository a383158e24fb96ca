"""What an index run or a late index will take: a look at the source, and documents embedded to measure the time."""

import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from ..ann import AnnSettings
from ..ann.kinds import bytes_needed, choose_kind
from ..document import Document
from ..encoder import Encoder, Tokens
from ..late import one_thread_each, token_rows
from ..progress import Notify
from ..readers import Reading
from ..store.catalog import Catalog
from ..store.passages import passage_texts
from ..wording import counted, size
from .chunker import Chunker, passage_text

PROBE_DOCUMENTS = 64
GLANCE_DOCUMENTS = 6
"""Enough to tell a short run, whose probe would be a good part of the work, from one that is worth probing."""
LONG_RUN_SECONDS = 60.0
START_SECONDS = 0.5
"""What any run takes: making the collection, the first commit, and trying the index."""
STORING_SECONDS = 0.00013
"""What storing a passage takes: catalog, lexical index and FAISS index. Measured with 20,000 and 500,000 short texts
and the static model on 2 idle cores; on busy ones it takes up to three times as long."""
STORED_PER_BYTE, STORED_PER_ROW = 1.4, 200
"""Bytes on the disk for a byte of text and for a passage, in the catalog and the lexical index. Measured with four
collections of 1,460 to 100,000 texts, within a twentieth."""
INDEX_BYTES_PER_ROW = 300
"""Links of the graph and postings of the lexical index, beside the vectors and the texts."""
SURVEY_SECONDS = 5.0
"""Longest time to look; a larger source is extrapolated from the part that was read."""
PROBED_OF = 20
"""A probe is made only if there are at least this many times as many passages to embed."""
_BYTES_PER_ROW, _BYTES_PER_PASSAGE = 49, 32
"""Of the late index: a pooled token's code and weight, and what is stored of each passage besides."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Wall-clock seconds, peak memory beyond the model and disk, both in bytes, for `documents` documents."""

    documents: int
    passages: int
    seconds: float
    memory: int
    disk: int

    @property
    def long(self) -> bool:
        """Whether the run is long enough to say so before it starts."""
        return self.seconds > LONG_RUN_SECONDS

    def to_dict(self) -> dict[str, float]:
        """Return the estimate as JSON values."""
        return asdict(self)

    def describe(self) -> str:
        """Return the estimate as one line."""
        return (
            f"about {counted(self.documents, 'document')} in {counted(self.passages, 'passage')}: "
            f"{duration(self.seconds)}, {size(self.memory)} of memory besides the model, {size(self.disk)} of disk"
        )


def estimate(
    sample: Sequence[Document], documents: int, encoder: Encoder, count: int = PROBE_DOCUMENTS, *,
    characters: int | None = None, reading: float = 0.0,
) -> Estimate:  # fmt: skip
    """Embed the first `count` documents of `sample` and extrapolate to `documents` documents.

    Args:
        sample: Documents of the source.
        documents: Number of documents in the source.
        encoder: The bi-encoder.
        count: Number of documents to embed.
        characters: Of all texts and titles of the source, if known: longer texts take longer.
        reading: Seconds that it takes to read the source.
    """
    probe = [document for document in sample[:count] if document.text.strip() or document.title.strip()]
    chunker = Chunker(encoder)
    passages, seconds = [], 0.0
    for _ in range(2):  # the first pass over the same texts is much slower
        began = time.perf_counter()
        passages = [passage for split in chunker.split(probe) for passage in split]
        encoder.encode([passage.tokens for passage in passages])
        seconds = time.perf_counter() - began
    scale = documents / max(len(probe), 1)
    probed = sum(len(document.title) + len(document.text) for document in probe)
    longer = scale if characters is None else characters / max(probed, 1)
    rows = round(len(passages) * scale)
    text = sum(len(document.text.encode()) + len(document.title.encode()) for document in probe) * longer
    vectors = rows * encoder.spec.dimension
    memory = vectors * 4 + rows * INDEX_BYTES_PER_ROW
    index = bytes_needed(choose_kind(AnnSettings(), encoder.spec.dimension, rows)[0], encoder.spec.dimension, rows)
    disk = round(text * STORED_PER_BYTE + rows * STORED_PER_ROW + vectors * 2 + index)
    return Estimate(documents, rows, START_SECONDS + seconds * longer + rows * STORING_SECONDS + reading, memory, disk)


@dataclass(frozen=True, slots=True)
class Survey:
    """What a pass over a source has found.

    Attributes:
        documents: Documents in the whole source.
        characters: Characters of their titles and texts.
        seconds: Seconds that it takes to read all of it.
        sample: Some of the documents, drawn at random from the part that was read.
    """

    documents: int
    characters: int
    seconds: float
    sample: list[Document]


def survey(reading: Reading, size: int, limit: float = SURVEY_SECONDS) -> Survey:
    """Read a source, at most for `limit` seconds, and return what the whole of it is like.

    Args:
        reading: A source. One that can be read only once is used up.
        size: Number of documents to draw; the same documents are drawn each time.
        limit: In seconds.
    """
    chance, began = random.Random(0), time.perf_counter()
    count = characters = 0
    sample: list[Document] = []
    for item in reading:
        if not isinstance(item, Document):
            continue
        count += 1
        characters += len(item.title) + len(item.text)
        if len(sample) < size:
            sample.append(item)
        elif (place := chance.randrange(count)) < size:
            sample[place] = item
        if time.perf_counter() - began > limit:
            break
    seconds = time.perf_counter() - began
    part = (reading.progress().fraction if seconds > limit else None) or 1.0
    return Survey(round(count / part), round(characters / part), seconds / part, sample)


def report_late_estimate(catalog: Catalog, rows: np.ndarray, count: int, encoder: Encoder, notify: Notify) -> None:
    """Report the time and disk space that embedding the tokens of passages will take, if it takes long.

    Args:
        catalog: Of the passages.
        rows: int64 [n], passages of which some are embedded to see how long that takes.
        count: How many passages will be embedded.
        encoder: The bi-encoder.
        notify: Receives the sentence.
    """
    for most in (GLANCE_DOCUMENTS, PROBE_DOCUMENTS):
        if count < most * PROBED_OF:
            return
        some = rows[:: max(1, len(rows) // most)][:most]
        tokens = encoder.tokenize([passage_text(*each) for each in passage_texts(catalog, some.tolist())])
        times = count / len(some)
        seconds = min(_seconds(encoder, tokens) for _ in range(2)) * times
        if seconds < LONG_RUN_SECONDS / 2:
            return
        if most == PROBE_DOCUMENTS and seconds > LONG_RUN_SECONDS:
            stored = sum(_BYTES_PER_PASSAGE + _BYTES_PER_ROW * token_rows(len(each.ids)) for each in tokens)
            disk = size(round(stored * times))
            notify(f"estimate: {counted(count, 'passage')}: {duration(seconds)}, {disk} of disk")


def _seconds(encoder: Encoder, tokens: Sequence[Tokens]) -> float:
    began = time.perf_counter()
    with one_thread_each():
        encoder.encode_with_tokens(tokens, lambda *_: None)
    return time.perf_counter() - began


def duration(seconds: float) -> str:
    """Return seconds in words: "40 s", "12 min", "3.5 h"."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"
